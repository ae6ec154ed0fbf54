"""Descriptive statistics of answers and confounds, and duplicated answer sheets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.screening.value_counts import ValueCounts

# Bands of the share of missing answers.
_ENDS = (-1.0, 0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
_BANDS = ("none", "up to 1%", "1–5%", "5–10%", "10–20%", "20–50%", "over half")


def describe_answers(
    answers: pd.DataFrame, ranges: pd.DataFrame, asked: NDArray[Any] | None = None
) -> pd.DataFrame:
    """Describe the answers to each item; those that were not `asked` for (n, m) are not missing."""
    values = pd.DataFrame(
        answers.to_numpy(dtype=float, na_value=np.nan), columns=[str(name) for name in answers.columns]
    )
    n = values.notna().sum()
    n_asked = len(values) if asked is None else np.maximum((asked | values.notna()).sum(), 1)
    low, high = (pd.Series(ranges[end].to_numpy(), index=values.columns) for end in ("min", "max"))
    return pd.DataFrame(
        {
            "n_answered": n,
            "share_missing": 1 - n / n_asked,
            "mean": values.mean(),
            "sd": values.std().fillna(0.0),
            "floor": values.eq(low).sum() / n,
            "ceiling": values.eq(high).sum() / n,
        }
    )


def missing_bands(answers: pd.DataFrame, asked: np.ndarray | None = None) -> pd.DataFrame:
    """Count the participants by their share of missing answers: columns ``label``, ``n`` and ``share``.

    Answers that were not asked for do not count.
    """
    answered = answers.notna().to_numpy()
    asked = np.ones_like(answered) if asked is None else answered | asked
    shares = (asked & ~answered).sum(axis=1) / np.maximum(asked.sum(axis=1), 1)
    counts = pd.cut(pd.Series(shares), list(_ENDS), labels=list(_BANDS)).value_counts(sort=False)
    return pd.DataFrame(
        {"label": list(_BANDS), "n": counts.to_numpy(), "share": counts.to_numpy() / len(shares)}
    )


def describe_confound(values: pd.Series) -> pd.Series:
    """Describe a confound: its ``mean``, ``sd``, ``low`` and ``high``, or the counts of its categories.

    Text, true/false and numbers with at most two values are categories; the index then holds them, and
    the name of the result is "n".
    """
    known = values.dropna()
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not numeric or known.nunique() <= 2:
        return known.astype(str).value_counts().sort_index().rename("n")
    numbers = known.astype(float)
    return pd.Series(
        {"mean": numbers.mean(), "sd": numbers.std(), "low": numbers.min(), "high": numbers.max()}
    )


# Participants with exactly the same answers as somebody else, more than chance explains.

Array = NDArray[Any]
FEWEST_ANSWERS = 10
MOST_ALIKE = 0.8  # share of a sheet's answers with one value; more uniform sheets coincide without copying
BY_CHANCE = 0.01  # expected number of participants with a sheet, below which a second one is a copy
_ROWS_IN_CACHE = 1024


def copied_sheets(values: Array, answered: Array) -> Array | None:
    """Label each participant's answer sheet, copies alike; None if there are no copies.

    A sheet counts as copied if it has at least ten answers, no value makes up more than four fifths of them,
    and fewer than 0.01 participants are expected to give it by chance, from the items' answer frequencies.
    As answers correlate, only half of its log-probability counts.
    """
    n, m = values.shape
    at = np.flatnonzero(answered.sum(axis=1) >= FEWEST_ANSWERS)
    for columns in (slice(None, None, max(1, m // FEWEST_ANSWERS)), slice(None)):  # few items rule most out
        _, place, counts = np.unique(
            fingerprints(values[at, columns], answered[at, columns]), return_inverse=True, return_counts=True
        )
        at = at[counts[place] > 1]
    if not len(at):
        return None
    some = np.where(answered[at], values[at].astype(float), np.nan)
    sheets, place, counts = np.unique(
        np.where(answered[at], some, -np.inf), axis=0, return_inverse=True, return_counts=True
    )
    bits = np.zeros(len(sheets))
    for j in range(m):
        given = ValueCounts.of(np.where(answered[:, j], values[:, j].astype(float), np.nan))
        shares = dict(zip(given.values.tolist(), (given.counts / given.n).tolist(), strict=True))
        bits -= np.log2([shares.get(value, 1.0) for value in sheets[:, j].tolist()])
    answers = [sheet[np.isfinite(sheet)] for sheet in sheets]
    alike = np.array([np.unique(own, return_counts=True)[1].max() / len(own) for own in answers])
    copied = (counts > 1) & (alike <= MOST_ALIKE) & (n * 2.0 ** (-bits / 2) < BY_CHANCE)
    place = place.reshape(-1)
    if not copied.any():
        return None
    labels = np.arange(n)
    chosen = copied[place]
    first = np.full(len(sheets), n)
    np.minimum.at(first, place, at)
    labels[at[chosen]] = first[place[chosen]]
    return np.unique(labels, return_inverse=True)[1]


def together(groups: Array | None, sheets: Array | None) -> Array | None:
    """Label each participant's unit: those who share a group or a sheet are in one."""
    if groups is None or sheets is None:
        return sheets if groups is None else groups
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, first = len(groups), int(groups.max()) + 1
    edges = coo_array((np.ones(n), (groups, first + sheets)), shape=(first + int(sheets.max()) + 1,) * 2)
    _, label = connected_components(edges, directed=False)
    units: Array = np.unique(label[groups], return_inverse=True)[1]
    return units


def fingerprints(values: Array, answered: Array) -> Array:
    """A hash of each row: equal for equal rows, and hardly ever for others."""
    weights = np.random.default_rng(0).integers(1, 2**63, values.shape[1], dtype=np.uint64)
    hashes = np.empty(len(values), dtype=np.uint64)
    for start in range(0, len(values), _ROWS_IN_CACHE):
        part = slice(start, start + _ROWS_IN_CACHE)
        bits = (values[part].astype(float) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        bits ^= bits >> np.uint64(33)  # whole numbers differ only in their first dozen bits
        bits *= answered[part]
        bits *= weights
        hashes[part] = bits.sum(axis=1)
    return hashes
