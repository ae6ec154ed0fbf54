"""Is one method better than the others? Paired signed-rank tests over splits, with a false discovery rate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from icqf.errors import InputError, listed

ALPHA = 0.01


def compare_methods(
    table: pd.DataFrame,
    value: str,
    *,
    method: str = "ICQF",
    by: Sequence[str] = ("size",),
    alpha: float = ALPHA,
) -> pd.DataFrame:
    """Test one method against each other one, split by split.

    Both one-sided Wilcoxon signed-rank tests are done, that the method is better and that it is worse, and
    each family of p-values is adjusted to control the false discovery rate (Benjamini and Hochberg).

    Parameters
    ----------
    table : DataFrame
        Columns ``split``, ``method``, `value`, and those of `by`.
    value : str
        What is compared; more is better.
    method : str
        The method to test.
    by : sequence of str
        A separate test for each value of these columns.
    alpha : float
        False discovery rate below which a difference counts.

    Returns
    -------
    DataFrame
        Columns of `by`, ``against``, ``n_splits``, ``difference`` (mean), ``p_better``, ``p_worse``,
        ``q_better``, ``q_worse`` (adjusted) and ``verdict`` (better, worse, no difference, or too few splits:
        with fewer than 7, not even a difference in every split is below an `alpha` of 0.01).

    Notes
    -----
    Splits of one study share most of their participants, so the tests are not independent: they say whether a
    difference is systematic in this sample, not that it would hold in another.

    Examples
    --------
    >>> import pandas as pd
    >>> fa = pd.DataFrame({"split": range(12), "method": "FA", "auc": 0.7, "size": 0.8})
    >>> table = pd.concat([fa.assign(method="ICQF", auc=0.72), fa])
    >>> compare_methods(table, "auc")[["against", "difference", "verdict"]].round(3)
      against  difference verdict
    0      FA        0.02  better
    """
    names = list(dict.fromkeys(table["method"]))
    if method not in names:
        raise InputError(f"There is no method {method!r} in the table; it has {listed(names)}.")
    rows = []
    for level, part in table.groupby(list(by), sort=False):
        wide = part.pivot_table(index="split", columns="method", values=value)
        for other in names:
            if other == method or other not in wide or method not in wide:
                continue
            gain = (wide[method] - wide[other]).dropna().to_numpy()
            rows.append(
                dict(zip(by, level, strict=True))
                | {"against": other, "n_splits": len(gain), "difference": float(gain.mean())}
                | {"p_better": _one_sided(gain), "p_worse": _one_sided(-gain)}
            )
    tests = pd.DataFrame(rows, columns=[*by, "against", "n_splits", "difference", "p_better", "p_worse"])
    for side in ("better", "worse"):
        tests[f"q_{side}"] = stats.false_discovery_control(tests[f"p_{side}"]) if len(tests) else []
    tests["verdict"] = np.select(
        [tests["q_better"] <= alpha, tests["q_worse"] <= alpha, 0.5 ** tests["n_splits"] > alpha],
        ["better", "worse", "too few splits"],
        "no difference",
    )
    return tests


def _one_sided(gain: np.ndarray) -> float:
    """The p-value that gains are not above 0."""
    if not len(gain) or not np.any(gain):
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few splits with ties, which the number of splits tells already
        return float(stats.wilcoxon(gain, alternative="greater").pvalue)
