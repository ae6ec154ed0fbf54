"""Properties of one fit: hidden answers, factor analysis, lineage, reliability, scores, a general factor."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from icqf.baselines import bartlett_sphericity, item_moments, item_shape, kmo, reliability
from icqf.baselines.correlation import KMO, Sphericity
from icqf.baselines.factor_analysis import FactorAnalysis, SchmidLeiman, schmid_leiman
from icqf.data.questionnaire import Item, Questionnaire
from icqf.errors import InputError
from icqf.models.icqf import ICQF
from icqf.models.selection_rules import best_by_k
from icqf.models.statement import StatedProblem
from icqf.models.summary import own_items
from icqf.resampling import match_factors
from icqf.resampling.hidden import HiddenFit, predict_hidden
from icqf.resampling.matching import correlations

Array = NDArray[Any]
FOLDS = 10


def hidden_fit(
    model: ICQF,
    stated: StatedProblem,
    *,
    groups: Array | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> HiddenFit | None:
    """Prediction of hidden answers in ten folds; None if participants or items are fewer than folds."""
    problem = stated.problem
    if min(problem.n, problem.m) < FOLDS:
        return None
    return predict_hidden(
        problem,
        len(model.components_),
        init=model.init if isinstance(model.init, str) else "nndsvd",
        n_splits=FOLDS,
        groups=groups,
        n_jobs=n_jobs,
        engine=model.engine,
        rng=np.random.default_rng([random_state, 1]),
    )


_MOST_ITEMS = 2000  # of a factor analysis, which needs all pairs
_SMALL = 0.1  # of the factor's largest loading


@dataclass(frozen=True, eq=False)
class Counterparts:
    """A factor analysis with the same number of factors as a model, matched to it.

    Attributes
    ----------
    pairs : DataFrame
        ``factor_a`` (of the model), ``factor_b`` (of the factor analysis) and the ``pearson`` correlation of
        their loadings.
    similarities : DataFrame (k, k)
        Correlation of the loadings of every pair.
    items : Series (m,)
        R² of the factor analysis by item, in this sample; NaN for an item without variance.
    r_squared : float
        The same for all items together.
    negative : float
        Share of its loadings that are negative.
    small, small_here : float
        Share of its, and of the model's, loadings below a tenth of the factor's largest.
    loadings : DataFrame (m, k)
        Its loadings, in the order of the model's factors; NaN for an item without variance.
    communalities : Series (m,)
        Share of each standardised item's variance that the factors explain.
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
    """Run a factor analysis (minimum residual, promax) with the same number of factors, and match them.

    Parameters
    ----------
    loadings : DataFrame (m, k)
        The model's.
    answers : DataFrame (n, m)
        The answers it was fitted to.
    item_scale : array (m,), optional
        What the model multiplied answers by; errors are summed over items in these units.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import factor_analysis_counterparts
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> answers = demo.keyed_answers()
    >>> model = ICQF(2, item_range=demo.ranges()).fit(answers)
    >>> factor_analysis_counterparts(model.loadings_, answers).pairs.shape
    (2, 4)
    """
    if len(loadings) > _MOST_ITEMS:
        raise InputError(
            f"The loadings have {len(loadings)} items; a factor analysis compares all pairs of items, and is "
            f"limited to {_MOST_ITEMS}."
        )
    values = pd.DataFrame(answers.to_numpy(dtype=float, na_value=np.nan), columns=loadings.index)
    varying = values.loc[:, values.std() > 0]
    analysis = FactorAnalysis(loadings.shape[1]).fit(varying)
    theirs = pd.DataFrame(
        analysis.loadings_, index=varying.columns, columns=[f"FA {r + 1}" for r in range(loadings.shape[1])]
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


def factor_lineage(loadings: Sequence[pd.DataFrame | np.ndarray]) -> pd.DataFrame:
    """Link the factors of fits with increasing numbers of factors by the correlation of their loadings.

    Parameters
    ----------
    loadings : sequence of DataFrame or array (m, k)
        Fits of the same items, such as ``model.loadings_``, in any order.

    Returns
    -------
    DataFrame
        One row per link, with a correlation of 0.4 or more, or to a factor's closest predecessor: ``k`` and
        ``factor`` (counted from 1), ``next_k`` and ``next_factor`` in the next larger fit, and the
        ``correlation`` of their loadings.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.analyses import factor_lineage
    >>> one = np.array([[1.0], [1], [0], [0]])
    >>> two = np.array([[1.0, 0], [0, 1], [0, 0], [0, 0]])
    >>> factor_lineage([two, one]).round(2)
       k  factor  next_k  next_factor  correlation
    0  1       1       2            1         0.58
    1  1       1       2            2         0.58
    """
    fits = sorted((np.asarray(each, dtype=float).T for each in loadings), key=len)
    if len(fits) < 2:
        raise InputError("A lineage of factors needs at least two fits.")
    if len({fit.shape[1] for fit in fits}) > 1:
        raise InputError("The fits are of different items; a lineage needs fits of the same items.")
    rows = []
    for first, second in pairwise(fits):
        values = correlations(first, second)
        closest = values.argmax(axis=0)
        rows += [
            (len(first), r + 1, len(second), s + 1, values[r, s])
            for r in range(len(first))
            for s in range(len(second))
            if r == closest[s] or values[r, s] >= 0.4
        ]
    return pd.DataFrame(rows, columns=["k", "factor", "next_k", "next_factor", "correlation"])


LARGEST_RESIDUALS = 10
_MOST_TABULATED = 1000  # items whose pairs are compared


@dataclass(frozen=True, eq=False)
class Psychometry:
    """Item statistics, reliability of scales, adequacy and residuals.

    Attributes
    ----------
    items : DataFrame (m, 4)
        ``skew``, ``kurtosis``, ``item_rest``: the correlation with the rest of the item's subscale, or else
        of its factor's items, and ``kmo``: its sampling adequacy, NaN if everyone gave the same answer.
    standardised : DataFrame (m, k)
        Standardised loadings: the change in the item for a score one standard deviation higher.
    scales : DataFrame
        One row per factor's items and per subscale: ``kind``, ``place`` (of the factor), ``name``, and the
        fields of `icqf.baselines.Reliability`.
    kmo : KMO
    bartlett : Sphericity
    residuals : DataFrame
        The pairs of items whose residuals correlate most: ``item``, ``other``, ``correlation``.
    """

    items: pd.DataFrame
    standardised: pd.DataFrame
    scales: pd.DataFrame
    kmo: KMO
    bartlett: Sphericity
    residuals: pd.DataFrame


def psychometrics(
    model: Any,
    answers: pd.DataFrame,
    *,
    items: Sequence[Item] = (),
    confounds: pd.DataFrame | None = None,
    scores: Any = None,
    n_resamples: int = 100,
    random_state: int | np.random.Generator = 0,
) -> Psychometry:
    """Item statistics, reliability, sampling adequacy and residual correlations of a fitted model's data.

    Parameters
    ----------
    answers : DataFrame (n, m)
        The answers it was fitted to, reversed items reversed; NaN is missing.
    items : sequence of Item
        The items, with their subscales.
    confounds : DataFrame, optional
        The confounds it was fitted with.
    scores : array (n, k), optional
        The participants' scores, if already computed.
    n_resamples : int
        Resamples for the intervals of ω.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.analyses import psychometrics
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2).fit(demo)
    >>> measured = psychometrics(model, demo.keyed_answers(), items=demo.items, confounds=demo.confounds)
    >>> measured.scales["kind"].unique().tolist()
    ['factor', 'subscale']
    """
    values = answers.to_numpy(dtype=float, na_value=np.nan)
    if values.shape[1] > _MOST_TABULATED:
        raise InputError(
            f"There are {values.shape[1]} items; their pairs are compared for at most {_MOST_TABULATED}."
        )
    names = [str(name) for name in model.item_range_.index]
    if scores is None:
        scores = model.transform(answers, confounds=confounds)
    scores = np.asarray(scores, dtype=float)
    varying = np.flatnonzero(np.nanstd(values, axis=0) > 0)
    R = item_moments(values[:, varying]).correlation
    span = (model.item_range_["max"] - model.item_range_["min"]).to_numpy()
    own = own_items(model.components_.T / span[:, None])
    subscales = {item.name: item.subscale for item in items}
    groups = [("factor", r, "", np.flatnonzero(own[:, r])) for r in range(own.shape[1])]
    for scale in dict.fromkeys(subscales.get(name, "") for name in names):
        if scale:
            places = [j for j, name in enumerate(names) if subscales.get(name) == scale]
            groups.append(("subscale", -1, scale, np.array(places)))
    rng = np.random.default_rng(random_state)
    rows, rest = [], np.full(len(names), np.nan)
    for kind, place, name, members in groups:
        members = np.intersect1d(members, varying)
        if len(members) < 2:
            continue
        scale_reliability = reliability(values[:, members], n_resamples=n_resamples, random_state=rng)
        plain = {key: value for key, value in vars(scale_reliability).items() if key != "item_rest"}
        rows.append({"kind": kind, "place": place, "name": name, **plain})
        # subscales come last and take precedence
        rest[members] = scale_reliability.item_rest
    with np.errstate(invalid="ignore", divide="ignore"):
        spread, own_spread = np.nanstd(values, axis=0, ddof=1), np.nanstd(scores, axis=0, ddof=1)
        standardised = model.components_.T * own_spread / spread[:, None]
    rebuilt = np.asarray(model.inverse_transform(scores, confounds=confounds), dtype=float)
    adequacy, of_items = kmo(R), np.full(len(names), np.nan)
    of_items[varying] = adequacy.per_item
    return Psychometry(
        items=item_shape(values).set_axis(names, axis=0).assign(item_rest=rest, kmo=of_items),
        standardised=pd.DataFrame(standardised, index=names, columns=model.factor_names_),
        scales=pd.DataFrame(rows),
        kmo=adequacy,
        bartlett=bartlett_sphericity(R, int((~np.isnan(values)).any(axis=1).sum())),
        residuals=_largest(values[:, varying] - rebuilt[:, varying], [names[j] for j in varying]),
    )


def _largest(residuals: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """The pairs of items whose residuals correlate most, whatever the sign."""
    R = pd.DataFrame(residuals).corr().to_numpy()
    one, other = np.tril_indices(len(R), -1)
    order = np.argsort(-np.abs(np.nan_to_num(R[one, other])), kind="stable")[:LARGEST_RESIDUALS]
    return pd.DataFrame(
        [(names[other[at]], names[one[at]], float(R[one[at], other[at]])) for at in order],
        columns=["item", "other", "correlation"],
    )


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """Aggregate statistics of the scores of a sample.

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
    """

    factors: pd.DataFrame
    histograms: pd.DataFrame
    n_present: pd.DataFrame
    correlations: pd.DataFrame
    threshold: float
    n_scored: int


_PRESENT = 0.1  # share of the highest score from which a participant has a factor
_BARS = 40  # of the histograms


def describe_scores(scores: pd.DataFrame, *, top: float = 1.0) -> ScoreTables:
    """Describe scores: their distributions, how many factors participants have, and their correlations.

    Parameters
    ----------
    scores : DataFrame (n, k)
        Rows with missing scores are left out.
    top : float
        Highest possible score; a participant has a factor from a tenth of it.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.analyses import describe_scores
    >>> tables = describe_scores(pd.DataFrame({"worry": [0.0, 0.4, 0.8], "temper": [0.0, 0.0, 0.6]}))
    >>> tables.n_present
       factors  n     share
    0        0  1  0.333333
    1        1  1  0.333333
    2        2  1  0.333333
    """
    scores = scores.dropna()
    n, threshold = len(scores), _PRESENT * top
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
    edges = np.linspace(0, max(top, float(scores.to_numpy().max(initial=top))), _BARS + 1)
    histograms = {name: np.histogram(values[values > 0], edges)[0] for name, values in scores.items()}
    counts = np.bincount((scores >= threshold).sum(axis=1), minlength=scores.shape[1] + 1)
    n_present = pd.DataFrame({"factors": range(len(counts)), "n": counts, "share": counts / n})
    return ScoreTables(
        factors, pd.DataFrame(histograms, index=edges[:-1]), n_present, scores.corr(), threshold, n
    )


ONE = "The model has one factor, so there is nothing that several factors could have in common."


@dataclass(frozen=True, eq=False)
class GeneralFactor:
    """What the factors of a model have in common.

    Attributes
    ----------
    factors : DataFrame
        By factor: mean correlation of its scores ``with_others``, and their correlation ``with_one``, the
        score of a model with one factor.
    mean, low, high : float
        Correlations between scores of different factors: mean, lowest and highest.
    variance, variance_one : float
        Share of the answers' variance that the factors explain, and that one factor would.
    error, error_one : float
        Cross-validated errors of both numbers of factors; NaN where the search did not try one factor.
    hierarchy : SchmidLeiman or None
        The general factor of a factor analysis with as many factors (minimum residual, oblimin rotation).
    reason : str
        Why there is none; empty otherwise.
    """

    factors: pd.DataFrame
    mean: float
    low: float
    high: float
    variance: float
    variance_one: float
    error: float = np.nan
    error_one: float = np.nan
    hierarchy: SchmidLeiman | None = None
    reason: str = ""


def general_factor(
    model: ICQF,
    questionnaire: Questionnaire,
    *,
    stated: StatedProblem | None = None,
    scores: Any = None,
    search: Any = None,
) -> GeneralFactor:
    """Compare the factors of a fit with a general factor; the model does not change.

    Parameters
    ----------
    model : fitted ICQF
        With two or more factors.
    questionnaire : Questionnaire
        The answers that it was fitted to.
    stated : StatedProblem, optional
        The problem that it was fitted to (`ICQF.state`).
    scores : array (n, k), optional
        The participants' scores, if already computed.
    search : fitted ICQFCV, optional
        The cross-validation that chose the model.

    Notes
    -----
    The one-factor model has the same penalties. ω hierarchical is the share of the variance of the sum of all
    items that the general factor of a Schmid-Leiman solution explains (`icqf.baselines.schmid_leiman`).

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.analyses import general_factor
    >>> from icqf.datasets import load_demo
    >>> demo = load_demo().select(["q00*", "q01*", "q02*"])
    >>> found = general_factor(ICQF(3).fit(demo), demo)
    >>> 0 < found.hierarchy.omega_hierarchical < found.hierarchy.omega_total < 1
    True
    """
    k = len(model.components_)
    if k < 2:
        raise InputError(ONE)
    stated = model.state(questionnaire) if stated is None else stated
    known = scores is not None
    W = np.asarray(scores, dtype=float)[stated.kept].T if known else model.solve_scores(stated.problem)
    one = clone(model).set_params(n_components=1, n_init=1, init="nndsvd", callback=None)
    with warnings.catch_warnings(action="ignore"):  # whether one factor settles is no news about the model
        solution = one.solve(stated)
        one.keep(stated, solution)
    between = correlations(W, W)
    off = between[~np.eye(k, dtype=bool)]
    hierarchy, reason = _hierarchy(k, questionnaire.keyed_answers()[stated.kept])
    return GeneralFactor(
        pd.DataFrame(
            {
                "factor": list(model.get_feature_names_out()),
                "with_others": (between.sum(axis=1) - np.diag(between)) / (k - 1),
                "with_one": correlations(W, np.asarray(solution.factors.scores, dtype=float))[:, 0],
            }
        ),
        float(off.mean()),
        float(off.min()),
        float(off.max()),
        float(model.summary().variance_explained),
        float(one.summary().variance_explained),
        *_errors(search, k),
        hierarchy=hierarchy,
        reason=reason,
    )


def _errors(search: Any, k: int) -> tuple[float, float]:
    """Cross-validated errors of k factors and of one; NaN where they were not tried."""
    if search is None:
        return np.nan, np.nan
    best = best_by_k(search.errors_).set_index("n_components")["error"]
    return float(best.get(k, np.nan)), float(best.get(1, np.nan))


def _hierarchy(k: int, answers: pd.DataFrame) -> tuple[SchmidLeiman | None, str]:
    """The Schmid-Leiman solution of a factor analysis, or why there is none."""
    if answers.shape[1] > _MOST_ITEMS:
        return None, f"There are more than {_MOST_ITEMS} items, too many for a factor analysis."
    varied = answers.loc[:, answers.nunique() > 1]
    try:
        if k < 3:
            schmid_leiman(np.zeros((1, k)), np.eye(k), np.eye(1))
        with warnings.catch_warnings(action="ignore"):  # of the factor analysis, which is not the model
            rival = FactorAnalysis(k, rotation="oblimin").fit(varied.to_numpy(dtype=float, na_value=np.nan))
            return schmid_leiman(rival.loadings_, rival.factor_correlations_, rival.correlation_), ""
    except InputError as error:
        return None, str(error)
