"""The answers and the sample in numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

# Bands of the share of missing answers that a participant may fall into, each up to its upper end.
_ENDS = (-1.0, 0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
_BANDS = ("none", "up to 1%", "1–5%", "5–10%", "10–20%", "20–50%", "over half")


def describe_answers(answers: pd.DataFrame, ranges: pd.DataFrame) -> pd.DataFrame:
    """Describe the answers to each item.

    Parameters
    ----------
    answers : DataFrame (n, m)
    ranges : DataFrame (m, 2)
        Lowest and highest answer of each item, columns ``min`` and ``max``.

    Returns
    -------
    DataFrame (m, 6)
        ``n_answered``, ``share_missing``, ``mean``, ``sd``, and the shares of answers at the lowest
        (``floor``) and highest answer (``ceiling``).

    Examples
    --------
    >>> import pandas as pd
    >>> answers = pd.DataFrame({"q1": [0.0, 1, 2, None]})
    >>> ranges = pd.DataFrame({"min": [0], "max": [2]}, index=["q1"])
    >>> describe_answers(answers, ranges).round(2)
        n_answered  share_missing  mean   sd  floor  ceiling
    q1           3           0.25   1.0  1.0   0.33     0.33
    """
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
    """Count the participants by their share of missing answers: columns ``label``, ``n`` and ``share``.

    Examples
    --------
    >>> import pandas as pd
    >>> missing_bands(pd.DataFrame({"q1": [1.0, None], "q2": [0.0, 1.0]})).query("n > 0")
        label  n  share
    0    none  1    0.5
    5  20–50%  1    0.5
    """
    shares = answers.isna().to_numpy().mean(axis=1)
    counts = pd.cut(pd.Series(shares), list(_ENDS), labels=list(_BANDS)).value_counts(sort=False)
    return pd.DataFrame(
        {"label": list(_BANDS), "n": counts.to_numpy(), "share": counts.to_numpy() / len(shares)}
    )


def describe_confound(values: pd.Series) -> pd.Series:
    """Describe a confound: its ``mean``, ``sd``, ``low`` and ``high``, or the counts of its categories.

    Text, true/false and numbers with at most two values are categories; the index then holds them, and
    the name of the result is "n".

    Examples
    --------
    >>> import pandas as pd
    >>> describe_confound(pd.Series(["f", "m", "f"], name="sex")).to_dict()
    {'f': 2, 'm': 1}
    >>> describe_confound(pd.Series([8.0, 10, 12], name="age")).to_dict()
    {'mean': 10.0, 'sd': 2.0, 'low': 8.0, 'high': 12.0}
    """
    known = values.dropna()
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not numeric or known.nunique() <= 2:
        return known.astype(str).value_counts().sort_index().rename("n")
    numbers = known.astype(float)
    return pd.Series(
        {"mean": numbers.mean(), "sd": numbers.std(), "low": numbers.min(), "high": numbers.max()}
    )
