from .about import About as About
from .battery import Battery as Battery
from .battery import by_instrument as by_instrument
from .check import Finding as Finding
from .check import Findings as Findings
from .questionnaire import Item as Item
from .questionnaire import Questionnaire as Questionnaire
from .study import Study as Study
