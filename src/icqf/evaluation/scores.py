"""How the scores of a sample are distributed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """The scores of a sample, never one participant at a time.

    Attributes
    ----------
    factors : DataFrame
        One row per factor: ``mean``, ``median``, ``sd``, and the shares of participants with a score of 0
        (``none``), of at least the threshold (``present``) and of at least half the highest (``high``).
    histograms : DataFrame
        Counts of the scores above 0, one column per factor and one row per bar, from 0 to the highest score.
    n_present : DataFrame
        Participants by the number of factors they have: columns ``factors``, ``n`` and ``share``.
    correlations : DataFrame (k, k)
        Pearson correlations between scores; NaN where all scores are equal.
    threshold : float
        Score from which a participant counts as having a factor.
    n_scored : int
        Participants with scores.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.evaluation import describe_scores
    >>> found = describe_scores(pd.DataFrame({"worry": [0.0, 0.4, 0.8], "temper": [0.0, 0.0, 0.6]}))
    >>> found.n_scored, found.factors["none"].round(2).tolist()
    (3, [0.33, 0.67])
    """

    factors: pd.DataFrame
    histograms: pd.DataFrame
    n_present: pd.DataFrame
    correlations: pd.DataFrame
    threshold: float
    n_scored: int


def describe_scores(
    scores: pd.DataFrame, *, top: float = 1.0, present: float = 0.1, bins: int = 40
) -> ScoreTables:
    """Describe scores: their spread, how many factors participants have, and their correlations.

    Parameters
    ----------
    scores : DataFrame (n, k)
        Rows with missing scores are left out.
    top : float
        Highest possible score.
    present : float
        Share of it from which a participant counts as having the factor.
    bins : int
        Bars of the histograms.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.evaluation import describe_scores
    >>> found = describe_scores(pd.DataFrame({"worry": [0.0, 0.4, 0.8], "temper": [0.0, 0.0, 0.6]}))
    >>> found.n_present
       factors  n     share
    0        0  1  0.333333
    1        1  1  0.333333
    2        2  1  0.333333
    """
    scores = scores.dropna()
    n, threshold = len(scores), present * top
    factors = pd.DataFrame(
        {
            "mean": scores.mean(),
            "median": scores.median(),
            "sd": scores.std().fillna(0.0),
            "none": (scores <= 0).mean(),
            "present": (scores >= threshold).mean(),
            "high": (scores >= 0.5 * top).mean(),
        }
    )
    edges = np.linspace(0, max(top, float(scores.to_numpy().max(initial=top))), bins + 1)
    histograms = {name: np.histogram(values[values > 0], edges)[0] for name, values in scores.items()}
    counts = np.bincount((scores >= threshold).sum(axis=1), minlength=scores.shape[1] + 1)
    n_present = pd.DataFrame({"factors": range(len(counts)), "n": counts, "share": counts / n})
    return ScoreTables(
        factors, pd.DataFrame(histograms, index=edges[:-1]), n_present, scores.corr(), threshold, n
    )
