"""Means over splits, with their spread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats


def summarised(
    table: pd.DataFrame, by: list[str], measures: Sequence[str], medians: Sequence[str]
) -> pd.DataFrame:
    """Return means and standard deviations of measures over splits, and medians of counts."""
    grouped = table.groupby(by, sort=False)
    columns = {}
    for name in table.columns:
        if name in medians:
            columns[name] = grouped[name].median()
        elif name in measures:
            columns[name] = grouped[name].mean()
            columns[f"{name}_spread"] = grouped[name].std()
    return pd.DataFrame(columns).reset_index()


def bands(table: pd.DataFrame, value: str, *, level: float = 0.95) -> pd.DataFrame:
    """Return the mean of a value for each method and size, with the t interval of that mean (from 3 on).

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"method": "ICQF", "size": 0.2, "auc": [0.70, 0.72, 0.74]})
    >>> bands(table, "auc").round(3)
      method  size   auc   low  high
    0   ICQF   0.2  0.72  0.67  0.77
    """
    found = []
    for (method, size), values in table.groupby(["method", "size"], sort=False)[value]:
        n, mean = len(values), float(values.mean())
        half = float(stats.t.ppf((1 + level) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n)) if n > 2 else 0.0
        found.append({"method": method, "size": size, value: mean, "low": mean - half, "high": mean + half})
    return pd.DataFrame(found)
