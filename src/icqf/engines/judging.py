"""What fits are judged by where an engine compares candidates itself, and what it tells of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Judge:
    """What the fits of one fold are judged by.

    Attributes
    ----------
    hidden : bool array (n, m)
        Where answers were hidden.
    answers : array (n, m)
        All answers; those that are not hidden do not count.
    scale : array (m,)
        Errors are those of ``scale * answer``.
    top, units, low : array (m,)
        A prediction p is ``units * min(p, top) + low``.
    """

    hidden: Array
    answers: Array
    scale: Array
    top: Array
    units: Array
    low: Array


@dataclass(frozen=True)
class Judged:
    """Mean squared error on hidden answers, and iterations, of the fit of a fold with k factors."""

    fold: int
    k: int
    beta: float
    error: float
    n_iter: int
