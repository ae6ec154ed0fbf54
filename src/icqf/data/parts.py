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
class SomeAnswers:
    """Consecutive participants: their answers (a table, an array or a questionnaire) and their confounds.

    `source` is the file that the table's row labels count in; empty where it has none.
    """

    answers: Any
    confounds: pd.DataFrame | None = None
    source: str = ""


@dataclass(frozen=True, eq=False)
class AnswersInParts:
    """Answers that are read in parts, as often as they are needed.

    Parameters
    ----------
    parts : callable
        Gives the parts from the first on, each time it is called.
    stored : memmap, optional
        The array itself, where the answers are one in a file.
    missing : int, optional
        The number that stands for a missing answer, which is read as NaN; no range may hold it.

    Examples
    --------
    >>> import numpy as np
    >>> parts = [SomeAnswers(np.array([[0, 1], [2, 2]])), SomeAnswers(np.array([[1, 0]]))]
    >>> source = AnswersInParts(lambda: iter(parts))
    >>> sum(len(part.answers) for part in source.parts())
    3
    """

    parts: Callable[[], Iterator[SomeAnswers]]
    stored: np.memmap[Any, Any] | None = None
    missing: int | None = None

    @classmethod
    def of(cls, answers: Any) -> AnswersInParts | None:
        """What is read in parts without a file reader; None for anything else."""
        if isinstance(answers, AnswersInParts):
            return answers
        if is_dask_array(answers):
            return cls.of_blocks(answers)
        return cls.of_array(answers) if isinstance(answers, np.memmap) else None

    @classmethod
    def of_blocks(cls, answers: Any) -> AnswersInParts:
        """The rows of a dask array, one of its blocks after the other."""
        whole = answers.rechunk({1: -1})
        return cls(lambda: (SomeAnswers(block.compute()) for block in whole.blocks))

    @classmethod
    def of_array(cls, answers: np.memmap[Any, Any]) -> AnswersInParts:
        """The rows of an array in a file. In whole numbers, -1 is a missing answer."""
        missing = -1 if answers.dtype.kind == "i" else None

        def parts() -> Iterator[SomeAnswers]:
            for start in range(0, len(answers), _ROWS):
                part = np.asarray(answers[start : start + _ROWS])
                if missing is not None and (part == missing).any():
                    part = np.where(part == missing, np.nan, part)
                yield SomeAnswers(part)

        return cls(parts, answers if isinstance(answers.base, mmap.mmap) else None, missing)


def is_dask_array(X: Any) -> bool:
    """Whether something is a dask array, told without importing dask."""
    return type(X).__module__.startswith("dask.array") and hasattr(X, "to_delayed")
