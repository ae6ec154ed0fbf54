"""The answers and the sample in numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

# Bands of the share of missing answers that a participant may fall into, each up to its upper end.
_ENDS = (-1.0, 0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
_BANDS = ("none", "up to 1%", "1–5%", "5–10%", "10–20%", "20–50%", "over half")


def describe_answers(answers: pd.DataFrame, ranges: pd.DataFrame) -> pd.DataFrame:
    """Describe the answers to each item."""
    values = pd.DataFrame(
        answers.to_numpy(dtype=float, na_value=np.nan), columns=[str(name) for name in answers.columns]
    )
    n = values.notna().sum()
    low, high = (pd.Series(ranges[end].to_numpy(), index=values.columns) for end in ("min", "max"))
    return pd.DataFrame(
        {
            "n_answered": n,
            "share_missing": values.isna().mean(),
            "mean": values.mean(),
            "sd": values.std().fillna(0.0),
            "floor": values.eq(low).sum() / n,
            "ceiling": values.eq(high).sum() / n,
        }
    )


def missing_bands(answers: pd.DataFrame) -> pd.DataFrame:
    """Count the participants by their share of missing answers: columns ``label``, ``n`` and ``share``."""
    shares = answers.isna().to_numpy().mean(axis=1)
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
