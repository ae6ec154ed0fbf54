from .battery import Battery as Battery
from .battery import by_instrument as by_instrument
from .findings import Finding as Finding
from .findings import Findings as Findings
from .questionnaire import Item as Item
from .questionnaire import Questionnaire as Questionnaire
from .study import Study as Study
