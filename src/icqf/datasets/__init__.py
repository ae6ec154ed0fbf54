"""Data to try things on: a simulated demo that is embedded, and real public questionnaires from other
packages.
"""

from icqf.datasets.demo import DemoPaths, demo_paths, load_demo
from icqf.datasets.real import load_bfi, load_help, load_phq9
from icqf.datasets.synthetic import Synthetic, make_synthetic

__all__ = [
    "DemoPaths",
    "Synthetic",
    "demo_paths",
    "load_bfi",
    "load_demo",
    "load_help",
    "load_phq9",
    "make_synthetic",
]
