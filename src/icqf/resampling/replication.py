"""How likely another study finds a factor, by how well halves of this one agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[Any]
MEASURED = ("halves", "low", "high", "largest", "probability")
FOUND = 0.8  # correlation of loadings from which a factor counts as found again
FRAGILE = 0.5  # a factor with a lower probability is marked wherever it is shown
ONE_ITEM = 0.8  # share of the squared loadings above which one item carries a factor
NOT_REPLICABLE = "No replicable structure was found"
LIKE_THIS = "as many participants, fitted with as many factors"
HIGHEST = 0.99  # agreement beyond which more of it tells no more

# Learned by `icqf reproduce calibration`; docs/results/calibration.md says from which studies, what else was
# tried, and how far the probability is off in studies that were left out.
COEFFICIENTS = {"intercept": -3.19, "halves": 3.20}


def fisher_z(agreement: Any) -> Array:
    """Fisher's z of correlations, which spreads out the high ones."""
    return np.asarray(np.arctanh(np.clip(np.asarray(agreement, dtype=float), -HIGHEST, HIGHEST)))


def stepped_up(agreement: Any, times: float = 2) -> Array:
    """The agreement of samples `times` as large, by Spearman and Brown; none where samples do not agree.

    Examples
    --------
    >>> stepped_up([-0.2, 0.5, 0.8]).round(3).tolist()
    [0.0, 0.667, 0.889]
    """
    r = np.clip(np.asarray(agreement, dtype=float), 0, 1)
    return np.asarray(times * r / (1 + (times - 1) * r))


def probability_of(halves: Any, largest: Any) -> Array:
    """How likely another study finds factors, by the agreement of halves and the share of the strongest item.

    A factor that one item carries is that item, which needs no study to be found: it counts as not found.
    """
    logit = COEFFICIENTS["intercept"] + COEFFICIENTS["halves"] * fisher_z(stepped_up(halves))
    return np.where(np.asarray(largest) > ONE_ITEM, 0.0, 1 / (1 + np.exp(-logit)))


def strongest_share(loadings: Array) -> Array:
    """The share (k,) of each factor's squared loadings (k, m) that its strongest item has."""
    squares = np.asarray(loadings, dtype=float) ** 2
    return np.asarray(squares.max(axis=1) / np.maximum(squares.sum(axis=1), 1e-300))


def replication_in_words(probability: float, largest: float) -> str:
    """Say how likely another study finds a factor, in words that follow its name.

    Examples
    --------
    >>> replication_in_words(0.71, 0.2)
    'would be found in about 7 of 10 studies like this one'
    """
    if largest > ONE_ITEM:
        return "is one item, not a factor that another study could confirm"
    tenths = round(10 * probability)
    if tenths == 0:
        return "would hardly be found in another study like this one"
    if tenths == 10:
        return "would be found in nearly every study like this one"
    return f"would be found in about {tenths} of 10 studies like this one"


def replication_table(halves: Array, loadings: Array, names: Iterable[str]) -> pd.DataFrame:
    """Return agreement of halves (divisions, k) with its 90 % interval, and the replication probability."""
    low, high = np.quantile(halves, [0.05, 0.95], axis=0)
    mean, largest = np.mean(halves, axis=0), strongest_share(loadings)
    return table_of(np.column_stack([mean, low, high, largest, probability_of(mean, largest)]), names)


def table_of(numbers: Array, names: Iterable[str]) -> pd.DataFrame:
    """Return the table of `replication_table` from its numbers (k, 5)."""
    table = pd.DataFrame(numbers, index=pd.Index(list(names), name="factor"), columns=list(MEASURED))
    return table.assign(fragile=table["probability"] < FRAGILE)


def no_factor_replicates(table: pd.DataFrame | None) -> str:
    """Say that no factor is likely to be found by another study; nothing where one is, or nobody knows."""
    if table is None or not table["fragile"].all():
        return ""
    highest = f"{100 * float(table['probability'].max()):.0f} %"
    if len(table) == 1:
        return f"another study like this one would find the factor with a probability of {highest}"
    return f"another study like this one would find none of the factors with a probability above {highest}"
