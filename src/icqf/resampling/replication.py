"""How likely another study finds a factor, by its agreement over resamples of this one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[Any]
MEASURED = ("agreement", "low", "high", "found")
FOUND = 0.8  # correlation of loadings from which a factor counts as found again
FRAGILE = 0.5  # a factor with a lower chance is marked wherever it is shown
HIGHEST = 0.99  # mean agreement beyond which a curve cannot tell more


@dataclass(frozen=True)
class ChanceCurve:
    """Chance of replication by mean agreement over resamples: a logistic curve in Fisher's z of it."""

    intercept: float
    slope: float

    def __call__(self, agreement: Any) -> Array:
        """The chance of factors with this mean agreement."""
        z = fisher_z(agreement)
        return np.asarray(1 / (1 + np.exp(-(self.intercept + self.slope * z))))


def fisher_z(agreement: Any) -> Array:
    """Fisher's z of correlations, which spreads out the high ones."""
    return np.asarray(np.arctanh(np.clip(np.asarray(agreement, dtype=float), -HIGHEST, HIGHEST)))


# Learned by `icqf reproduce replication-chance`; docs/results/replication-chance.md says from which studies,
# and how far the chance is off in studies that were left out.
CURVE = ChanceCurve(-3.28, 3.41)


def chance_in_words(chance: float) -> str:
    """Say a chance in words that follow the name of a factor."""
    tenths = round(10 * chance)
    if tenths == 0:
        return "would hardly be found again in another study like this one"
    if tenths == 10:
        return "would be found again in nearly every study like this one"
    return f"would be found again in about {tenths} of 10 studies like this one"


def replication_table(agreement: Array, names: Iterable[str]) -> pd.DataFrame:
    """Return agreement over resamples with its 90 % interval, and the chance of replication, by factor."""
    low, high = np.quantile(agreement, [0.05, 0.95], axis=0)
    found = (np.asarray(agreement) >= FOUND).mean(axis=0)
    numbers = np.column_stack([np.mean(agreement, axis=0), low, high, found])
    return with_chances(numbers, names)


def with_chances(numbers: Array, names: Iterable[str]) -> pd.DataFrame:
    """Return the table of `replication_table` from its first four columns (k, 4)."""
    table = pd.DataFrame(numbers, index=pd.Index(list(names), name="factor"), columns=list(MEASURED))
    chance = CURVE(table["agreement"].to_numpy())
    return table.assign(chance=chance, fragile=chance < FRAGILE)
