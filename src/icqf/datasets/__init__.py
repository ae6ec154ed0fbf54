"""Data to try things on: a simulated demo that is embedded, simulated studies with known factors, and real
public questionnaires from other packages.
"""

from icqf.datasets.cohort import Cohort, make_cohort
from icqf.datasets.demo import DemoPaths, demo_paths, load_demo
from icqf.datasets.real import (
    load_bfi,
    load_help,
    load_help_labels,
    load_msq,
    load_phq9,
    load_phq9_labels,
)
from icqf.datasets.synthetic import Synthetic, make_synthetic

__all__ = [
    "Cohort",
    "DemoPaths",
    "Synthetic",
    "demo_paths",
    "load_bfi",
    "load_demo",
    "load_help",
    "load_help_labels",
    "load_msq",
    "load_phq9",
    "load_phq9_labels",
    "make_cohort",
    "make_synthetic",
]
