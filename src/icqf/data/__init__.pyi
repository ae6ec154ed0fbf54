from .check import Finding as Finding
from .check import Findings as Findings
from .questionnaire import Item as Item
from .questionnaire import Questionnaire as Questionnaire
from .study import Study as Study
