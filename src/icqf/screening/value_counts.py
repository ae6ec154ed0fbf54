"""Frequencies of the answers to an item."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_FEW = 32  # values on a scale; counting these one by one is faster than sorting


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """The different answers to an item, in order, and how often each was given."""

    values: Array
    counts: Array

    @classmethod
    def of(cls, answers: Array) -> ValueCounts:
        """Count the finite answers."""
        answers = np.ascontiguousarray(answers)
        low, high = np.fmin.reduce(answers, initial=np.nan), np.fmax.reduce(answers, initial=np.nan)
        if high - low < _FEW and low == np.rint(low):  # false if an end is infinite or NaN
            scale = np.arange(low, high + 1)
            counts = np.array([np.count_nonzero(answers == value) for value in scale], dtype=float)
            if counts.sum() == len(answers) - np.count_nonzero(answers != answers):
                return cls(scale[counts > 0], counts[counts > 0])
        known = answers[np.isfinite(answers)]
        if not known.size:
            return cls(known, known)
        values, numbers = np.unique(known, return_counts=True)
        return cls(values, numbers.astype(float))

    @cached_property
    def n(self) -> float:
        """Number of answers."""
        return float(self.counts.sum())

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest answer; infinite when there is none."""
        return (float(self.values[0]), float(self.values[-1])) if self.values.size else (np.inf, -np.inf)

    def without(self, values: Iterable[float]) -> ValueCounts:
        """Return the same without some values."""
        values = list(values)
        if not values:
            return self
        keep = ~np.isin(self.values, values)
        return ValueCounts(self.values[keep], self.counts[keep])

    def count(self, value: float) -> float:
        """How often a value was given."""
        return float(self.counts[self.values == value].sum())

    def beyond(self, end: float, side: float, *, inclusive: bool) -> float:
        """How many answers lie beyond an end, above it (side 1) or below it (-1)."""
        distance = side * (self.values - end)
        return float(self.counts[distance >= 0 if inclusive else distance > 0].sum())
