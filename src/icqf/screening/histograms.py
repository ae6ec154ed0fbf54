"""A small histogram of any column, for pages that show what a file contains."""

from __future__ import annotations

import numpy as np
import pandas as pd

from icqf.screening.missing_codes import number
from icqf.screening.value_counts import ValueCounts

_MOST_BARS = 20
_BINS = 12
_MOST_TEXTS = 8
_TOO_MANY_TEXTS = 40


def bars_of(cells: pd.Series) -> tuple[tuple[str, int], ...]:
    """Return the bars of a column's histogram, each with its label and number of cells.

    Few whole numbers have a bar each, also where nobody has one between them; other numbers are binned.
    Texts have a bar each, the most frequent first, and one for all others; very many have none.
    """
    values = pd.to_numeric(cells, errors="coerce")
    if values.notna().sum() < cells.notna().sum():
        return _text_bars(cells.dropna().astype(str))
    counts = ValueCounts.of(values.to_numpy(dtype=float, na_value=np.nan))
    low, high = counts.ends
    if not counts.values.size:
        return ()
    whole = bool((counts.values == np.rint(counts.values)).all())
    if whole and high - low < _MOST_BARS:
        return tuple((number(value), int(counts.count(value))) for value in np.arange(low, high + 1))
    if counts.values.size <= _BINS:
        return tuple((number(value), int(n)) for value, n in zip(counts.values, counts.counts, strict=True))
    heights, edges = np.histogram(counts.values, bins=_BINS, weights=counts.counts)
    ends = [f"{edge:.4g}" for edge in edges]
    return tuple((f"{a} to {b}", int(n)) for a, b, n in zip(ends, ends[1:], heights, strict=False))


def _text_bars(cells: pd.Series) -> tuple[tuple[str, int], ...]:
    counts = cells.value_counts()
    if len(counts) > _TOO_MANY_TEXTS:  # ids, families, remarks
        return ()
    bars = [(str(text), int(n)) for text, n in counts.head(_MOST_TEXTS).items()]
    others = len(counts) - len(bars)
    return (*bars, (f"{others} others", int(counts.iloc[_MOST_TEXTS:].sum()))) if others else tuple(bars)
