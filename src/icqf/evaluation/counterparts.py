"""The same answers by exploratory factor analysis, factor by factor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from icqf.baselines import FactorAnalysis
from icqf.errors import InputError
from icqf.resampling import match_factors

_MOST_ITEMS = 2000  # it takes all their pairs, again and again
_SMALL = 0.1  # of the factor's largest loading


@dataclass(frozen=True, eq=False)
class Counterparts:
    """Factor analysis beside a model with as many factors.

    Attributes
    ----------
    pairs : DataFrame
        ``factor_a`` (of the model), ``factor_b`` (of the factor analysis) and the ``pearson`` correlation of
        their loadings.
    similarities : DataFrame (k, k)
        Correlation of the loadings of every pair.
    items : Series (m,)
        How much smaller the factor analysis's squared error is than that of the item's mean, as a share (R²),
        in this sample; NaN where an item does not vary.
    r_squared : float
        The same for all items together.
    negative : float
        Share of its loadings that are negative.
    small, small_here : float
        Share of its, and of the model's, loadings below a tenth of the factor's largest.
    loadings : DataFrame (m, k)
        Its loadings, in the order of the model's factors; NaN where an item does not vary.
    communalities : Series (m,)
        Share of each standardised item's variance that its factors explain.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.evaluation import factor_analysis_counterparts
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers())
    >>> found = factor_analysis_counterparts(model.loadings_, demo.keyed_answers())
    >>> found.similarities.shape, 0 < found.r_squared < 1
    ((2, 2), True)
    """

    pairs: pd.DataFrame
    similarities: pd.DataFrame
    items: pd.Series
    r_squared: float
    negative: float
    small: float
    small_here: float
    loadings: pd.DataFrame
    communalities: pd.Series


def factor_analysis_counterparts(
    loadings: pd.DataFrame, answers: pd.DataFrame, *, item_scale: np.ndarray | None = None
) -> Counterparts:
    """Run factor analysis (minimum residual, promax) with as many factors, and match them.

    Parameters
    ----------
    loadings : DataFrame (m, k)
        The model's.
    answers : DataFrame (n, m)
        The answers it was fitted to.
    item_scale : array (m,), optional
        What the model multiplied answers by; errors of all items together are added up in these units.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.evaluation import factor_analysis_counterparts
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> answers = demo.keyed_answers()
    >>> model = ICQF(2, item_range=demo.ranges()).fit(answers)
    >>> factor_analysis_counterparts(model.loadings_, answers).pairs.shape
    (2, 4)
    """
    if len(loadings) > _MOST_ITEMS:
        raise InputError(
            f"The loadings have {len(loadings)} items, and a factor analysis, which takes all their pairs, "
            f"is made of at most {_MOST_ITEMS}."
        )
    values = pd.DataFrame(answers.to_numpy(dtype=float, na_value=np.nan), columns=loadings.index)
    varying = values.loc[:, values.std() > 0]
    analysis = FactorAnalysis(loadings.shape[1]).fit(varying)
    theirs = pd.DataFrame(
        analysis.loadings_,
        index=varying.columns,
        columns=[f"FA {r + 1}" for r in range(loadings.shape[1])],
    )
    match = match_factors(loadings.loc[varying.columns], theirs, method="optimal")
    partner = dict(zip(match.pairs["factor_a"].astype(str), match.pairs["factor_b"], strict=True))
    rebuilt = analysis.mean_ + analysis.scale_ * (
        np.asarray(analysis.transform(varying)) @ analysis.loadings_.T
    )
    error = ((varying - rebuilt) ** 2).sum()
    around = ((varying - varying.mean()) ** 2).sum()
    counted = pd.Series(1.0 if item_scale is None else item_scale**2, index=loadings.index)[varying.columns]
    return Counterparts(
        pairs=match.pairs,
        similarities=match.similarities,
        items=(1 - error / around).reindex(loadings.index),
        r_squared=float(1 - (error * counted).sum() / (around * counted).sum()),
        negative=float((analysis.loadings_ < 0).mean()),
        small=_share_small(analysis.loadings_),
        small_here=_share_small(loadings.to_numpy()),
        loadings=theirs[[partner[str(name)] for name in loadings.columns]].reindex(loadings.index),
        communalities=pd.Series(analysis.communalities_, index=varying.columns).reindex(loadings.index),
    )


def _share_small(loadings: np.ndarray) -> float:
    largest = np.maximum(np.abs(loadings).max(axis=0), 1e-300)
    return float((np.abs(loadings) < _SMALL * largest).mean())
