"""The embedded demo: a simulated child-behaviour questionnaire, as a CSV file and its codebook.

`python benchmarks/_demo.py` made the two files under ``data/``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from icqf.data.questionnaire import Item, Questionnaire
from icqf.io.codebook import read_codebook
from icqf.io.readers.questionnaires import read_questionnaire


class DemoPaths(NamedTuple):
    """Paths of the demo's two files."""

    answers: Path
    codebook: Path


def demo_paths() -> DemoPaths:
    """Return the paths of the embedded answers and codebook.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> demo_paths().answers.name
    'demo_answers.csv'
    """
    folder = Path(__file__).parent / "data"
    return DemoPaths(folder / "demo_answers.csv", folder / "demo_codebook.csv")


def load_demo() -> Questionnaire:
    """Load the demo: 600 simulated children, 119 items (0-2) in eight syndromes, age, sex and family.

    Examples
    --------
    >>> from icqf.datasets import load_demo
    >>> demo = load_demo()
    >>> demo.answers.shape, sum(item.reverse for item in demo.items)
    ((600, 119), 2)
    """
    answers, codebook = demo_paths()
    return read_questionnaire(
        answers, codebook=codebook, id="child_id", confounds=("age", "sex"), groups="family"
    )


@cache
def demo_items() -> tuple[Item, ...]:
    """Return the demo's items, the syndromes in turn."""
    return tuple(read_codebook(demo_paths().codebook))
