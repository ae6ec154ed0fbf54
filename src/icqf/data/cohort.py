"""Answers that are read in parts, because the table as a whole may be larger than memory."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

_ROWS = 32768


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive participants: their answers (a table, an array or a questionnaire) and their confounds."""

    answers: Any
    confounds: pd.DataFrame | None = None


@dataclass(frozen=True, eq=False)
class Cohort:
    """Answers that are read in parts, as often as they are needed.

    Parameters
    ----------
    parts : callable
        Gives the parts from the first on, each time it is called.
    stored : memmap, optional
        The array itself, where the answers are one in a file.

    Examples
    --------
    >>> import numpy as np
    >>> cohort = Cohort(lambda: iter([Part(np.array([[0, 1], [2, 2]])), Part(np.array([[1, 0]]))]))
    >>> sum(len(part.answers) for part in cohort.parts())
    3
    """

    parts: Callable[[], Iterator[Part]]
    stored: np.memmap[Any, Any] | None = None

    @classmethod
    def of_array(cls, answers: np.memmap[Any, Any]) -> Cohort:
        """The rows of an array in a file. In whole numbers, -1 is a missing answer."""

        def parts() -> Iterator[Part]:
            for start in range(0, len(answers), _ROWS):
                part = np.asarray(answers[start : start + _ROWS])
                if part.dtype.kind == "i" and (part == -1).any():
                    part = np.where(part == -1, np.nan, part)
                yield Part(part)

        return cls(parts, answers if isinstance(answers.base, mmap.mmap) else None)
