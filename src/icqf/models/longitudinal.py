"""LongitudinalICQF, its search, and tests whether loadings or items' levels differ between visits."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import false_discovery_control
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.core.problem import Problem
from icqf.core.result import Factorization, Factors, Fit
from icqf.core.start import Starts
from icqf.data.confounds import ConfoundEncoder
from icqf.data.disclosure import SMALLEST_CATEGORY
from icqf.data.questionnaire import StoredCodebook
from icqf.data.settings import check_parameter, check_parameters, parameter_error
from icqf.data.visits import AgeBins
from icqf.engines.base import Callback
from icqf.engines.choice import run
from icqf.engines.journal import WorkJournal
from icqf.engines.parallel import run_all
from icqf.engines.progress import Progress
from icqf.errors import InputError, counted, listed, shown_p
from icqf.io.model_file import StoredModel, damage_refused, read_model, write_model
from icqf.models.icqf import ICQF, warned_if_empty
from icqf.models.icqfcv import ICQFCV
from icqf.models.longitudinal_problem import NewVisits, Visits, VisitStatement, column_names, smoothed
from icqf.models.persistence import check_description, described, rebuild
from icqf.models.statement import state
from icqf.resampling import tolerances
from icqf.resampling.bootstrap import bootstrap
from icqf.resampling.folds import folds_of
from icqf.resampling.hidden import HeldOut
from icqf.resampling.matching import aligned
from icqf.resampling.propensity_bands import make_bands, standardized

if TYPE_CHECKING:
    from icqf.resampling.folds import Folds

Array = NDArray[Any]
LEVEL = 0.05
WORTH_TESTING = 0.05  # smallest loading of a tested item, as a share of its range
FEWEST = 99  # permutations
# docs/results/calibration.md has the cases.
UNSURE = (
    "Where the levels of items differ as well, a difference in loadings is less sure: it was said in about 1 "
    "of 14 simulated studies in which only levels differed."
)
_SHOWN = 3  # items with the largest differences in level
_LEAST_DEVIATION = 0.3  # expected standard deviation of an answer, relative to the item's median
_CLASSES = 10  # of answers, at most
_RIDGE = 0.5
_NEWTON = 30  # steps, at most


@dataclass(frozen=True, eq=False)
class LoadingChanges:
    """Whether loadings, or the levels of items, differ between visits.

    The hypothesis of a factor: its items rise equally steeply with the scores at every visit. That
    participants have higher or lower scores at some visits does not count against it, nor does an item that
    is answered higher or lower at the same scores: that is a difference in the item's level.

    Attributes
    ----------
    factors : DataFrame
        By factor: ``spread`` (root mean square of its items' differences between visits, as a share of their
        ranges), ``p``, ``q`` (after false discovery control over the factors) and ``changes``.
    items : DataFrame
        The same by factor and item, for the items of each factor.
    levels : DataFrame
        By item: ``difference`` (between the visits at which participants with the same scores answer highest
        and lowest, in points), ``highest`` and ``lowest`` (these visits), ``p``, ``q`` and ``changes``.
    n_permutations : int

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.models import LoadingChanges
    >>> factors = pd.DataFrame({"spread": [0.1], "p": [0.01], "q": [0.01], "changes": [True]}, ["factor1"])
    >>> index = pd.MultiIndex.from_tuples([("factor1", "q1"), ("factor1", "q2")], names=["factor", "item"])
    >>> items = pd.DataFrame({"spread": [0.2, 0], "p": 0.1, "q": 0.1, "changes": [True, False]}, index)
    >>> levels = pd.DataFrame(
    ...     {"difference": 0.1, "highest": "12", "lowest": "0", "p": 0.2, "q": 0.2, "changes": False},
    ...     ["q1", "q2"],
    ... )
    >>> print(LoadingChanges(factors, items, levels, 999))
    factor1: its loadings differ between visits (q = 0.010), most clearly that of 'q1'.
    """

    factors: pd.DataFrame
    items: pd.DataFrame
    levels: pd.DataFrame
    n_permutations: int

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """One sentence per factor, which says what q was computed for, and one about the items' levels."""
        lines = []
        for factor, row in self.factors.iterrows():
            judged = f"(q {shown_p(row['q'], LEVEL, equals='= ')})"
            moved = self.moved(str(factor))
            if not row["changes"]:
                lines.append(f"{factor}: no evidence that its loadings differ between visits {judged}.")
            elif moved:
                own = "that of" if len(moved) == 1 else "those of"
                lines.append(
                    f"{factor}: its loadings differ between visits {judged}, most clearly {own} "
                    f"{listed(moved)}."
                )
            else:
                lines.append(
                    f"{factor}: its loadings differ between visits {judged}; no single item stands out."
                )
        levels = self.level_sentences()
        if levels and self.factors["changes"].any():
            levels.append(UNSURE)
        return lines + levels

    def level_sentences(self) -> list[str]:
        """The items that are answered higher or lower at the same scores; nothing if there are none."""
        own = self.levels[self.levels["changes"].to_numpy(bool)]
        if own.empty:
            return []
        shown = [
            f"{str(item)!r} ({row['difference']:.2f} points higher at {row['highest']} than at "
            f"{row['lowest']})"
            for item, row in own.nlargest(_SHOWN, "difference").iterrows()
        ]
        more = f" and {len(own) - _SHOWN} more" * (len(own) > _SHOWN)
        return [
            f"{len(own)} of {counted(len(self.levels), 'item')} {'is' if len(own) == 1 else 'are'} answered "
            f"higher or lower at the same scores: {', '.join(shown)}{more}."
        ]

    def moved(self, factor: str) -> list[str]:
        """The items of a factor whose own loadings differ between visits, if the factor's do."""
        if not self.factors.at[factor, "changes"]:
            return []
        own = self.items[self.items.index.get_level_values(0) == factor]
        return [str(item) for _, item in own.index[own["changes"].to_numpy(bool)]]


def loading_changes(
    problem: Problem,
    scores: Array,
    loadings: Array,
    *,
    factors: list[str],
    items: list[str],
    visits: list[str],
    n_permutations: int,
    seed: int = 0,
) -> LoadingChanges:
    """Test the loadings of a model that has the same ones at every visit, and the items' levels.

    An item's answers are compared with those expected from the scores (k, V) on the item's own curve between
    its lowest and highest answer, with its own level at each visit. What is left, relative to its expected
    standard deviation, is regressed on the scores, visit by visit. If the loadings are the same at every
    visit, these slopes differ no more than between visits that are assigned at random within bands of answers
    with the same scores and level. The bands matter: where participants are worse at some visits, up to the
    end of the range, slopes differ for that reason alone. So does the curve: an item that is answered higher
    at some visits, whatever the scores, comes closer to the end of its range there. Levels are compared
    likewise, on a curve that is the same at every visit. The loadings are those of the pooled problem
    (k + c, items). Nothing is refitted.
    """
    if n_permutations < FEWEST:
        raise InputError(
            f"n_permutations={n_permutations} is too few to tell change from chance; take 999.",
            code="permutations",
        )
    bin_, k = problem.observations.bin, len(scores)  # type: ignore[attr-defined]
    pooled = problem.pooled()
    answers, seen = _answers(pooled)
    level = (answers / pooled.span).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    W = scores.T.astype(np.float64)
    bands = make_bands(np.column_stack([W, level]), bin_)
    rng = np.random.default_rng([seed, 7])
    orders = [bin_, *(bands.permuted(bin_, rng) for _ in range(n_permutations))]
    varying = pooled.design[np.ptp(pooled.design, axis=1) > 0]
    known = standardized(np.column_stack([W, W**2, varying.T]))
    residuals, relative = _residuals(
        answers, seen, np.column_stack([known, bin_[:, None] == np.arange(1, len(visits))])
    )
    slopes = _statistic(np.stack([_slopes(relative, W, order) for order in orders]))
    share = np.bincount(bin_) / len(bin_)
    apart = _slopes(residuals, W, bin_)
    apart = apart - np.einsum("t,tkj->kj", share, apart)
    spread = np.sqrt(np.einsum("t,tkj->kj", share, apart**2)) / pooled.span
    part_of = loadings[:k] / pooled.span >= WORTH_TESTING
    residuals, relative = _residuals(answers, seen, known)
    points = residuals if pooled.scaling is None else residuals / pooled.scaling.scale
    higher = _means(points, seen, bin_)
    higher = higher - np.mean([_means(points, seen, order) for order in orders[1:]], axis=0)
    levels = _statistic(np.stack([_means(relative, seen, order) for order in orders]))
    return LoadingChanges(
        _factor_tests(slopes, spread, part_of, factors),
        _item_tests(slopes, spread, part_of, factors, items),
        _level_tests(levels, higher, items, visits),
        n_permutations,
    )


def _answers(pooled: Problem) -> tuple[Array, Array]:
    """The answers (V, items), 0 where missing, and where they were given."""
    blocks = list(pooled.precise_blocks())
    seen = np.concatenate([block.observed() > 0 for block in blocks])
    return np.where(seen, np.concatenate([block.X for block in blocks]), 0.0), seen


def _residuals(answers: Array, seen: Array, known: Array) -> tuple[Array, Array]:
    """Answers (V, items) less those expected given `known` (V, q): in points, and in standard deviations."""
    residuals, relative = np.zeros_like(answers), np.zeros_like(answers)
    for j, own in enumerate(seen.T):
        if not own.any():
            continue
        mean, deviation = expected_answers(answers[own, j], known[own])
        residuals[own, j] = answers[own, j] - mean
        floor = max(float(np.median(deviation)) * _LEAST_DEVIATION, 1e-9)
        relative[own, j] = residuals[own, j] / np.maximum(deviation, floor)
    return residuals, relative / np.maximum(relative.std(axis=0), 1e-9)


def expected_answers(answers: Array, known: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (n,) of an item's answers given `known` (n, q).

    By a proportional-odds model: the log-odds of an answer above each step of the item are a constant of the
    step plus a linear function of `known`. It is fitted by Newton's method to all steps, as if they were
    independent, with a weak ridge penalty. Items with many different answers are cut into classes first.
    """
    cuts = np.unique(answers)[:-1]
    if len(cuts) >= _CLASSES:
        cuts = np.unique(np.quantile(answers, np.arange(1, _CLASSES) / _CLASSES, method="inverted_cdf"))
        cuts = cuts[cuts < answers.max()]
    above = (answers[:, None] > cuts).astype(np.float64)
    steps, q = len(cuts), known.shape[1]
    classes = above.sum(axis=1).astype(np.intp)
    points = np.bincount(classes, answers) / np.bincount(classes)
    share = above.mean(axis=0)
    at = np.concatenate([np.log(share / (1 - share)), np.zeros(q)])
    hessian = np.zeros((steps + q, steps + q))
    for _ in range(_NEWTON):
        odds = np.clip(at[:steps] + (known @ at[steps:])[:, None], -30, 30)
        chance = 1 / (1 + np.exp(-odds))
        weight, left = chance * (1 - chance), above - chance
        hessian[:steps, :steps] = np.diag(weight.sum(axis=0) + 1e-6)
        hessian[:steps, steps:] = weight.T @ known
        hessian[steps:, :steps] = hessian[:steps, steps:].T
        hessian[steps:, steps:] = known.T @ (known * weight.sum(axis=1)[:, None]) + _RIDGE * np.eye(q)
        gradient = np.concatenate([left.sum(axis=0), known.T @ left.sum(axis=1) - _RIDGE * at[steps:]])
        step = np.linalg.solve(hessian, gradient)
        largest = float(np.abs(step).max(initial=0.0))
        at += step / max(1.0, largest / 2)
        if largest < 1e-4:
            break
    chance = 1 / (1 + np.exp(-np.clip(at[:steps] + (known @ at[steps:])[:, None], -30, 30)))
    mean = points[0] + chance @ np.diff(points)
    square = points[0] ** 2 + chance @ np.diff(points**2)
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _slopes(residuals: Array, W: Array, bin_: Array) -> Array:
    """Slopes (bins, k, items) of residuals on scores within each bin."""
    found = []
    for t in range(int(bin_.max()) + 1):
        own = bin_ == t
        X = W[own] - W[own].mean(axis=0)
        found.append(np.linalg.pinv(X.T @ X, hermitian=True) @ (X.T @ residuals[own]))
    return np.stack(found)


def _means(residuals: Array, seen: Array, bin_: Array) -> Array:
    """Means (bins, items) of the residuals of the answers given."""
    member = (np.arange(int(bin_.max()) + 1)[:, None] == bin_).astype(np.float64)
    return (member @ residuals) / np.maximum(member @ seen, 1.0)


def _statistic(every: Array) -> Array:
    """Sum over bins of the squares of (1 + B, bins, …), relative to their spread over the permutations."""
    width = every[1:].std(axis=0, ddof=1)
    z = (every - every[1:].mean(axis=0)) / np.where(width > 0, width, np.inf)
    return (z**2).sum(axis=1)


def _factor_tests(statistic: Array, spread: Array, part_of: Array, names: list[str]) -> pd.DataFrame:
    together = (statistic * part_of).sum(axis=2)  # (1 + B, k)
    p = (together >= together[0]).mean(axis=0)
    counts = np.maximum(part_of.sum(axis=1), 1)
    size = np.sqrt((spread**2 * part_of).sum(axis=1) / counts)
    return _test_table(size, p, pd.Index(names, name="factor"))


def _item_tests(
    statistic: Array, spread: Array, part_of: Array, names: list[str], items: list[str]
) -> pd.DataFrame:
    """Items share one null distribution, so that 999 permutations are enough for hundreds of items."""
    p = _pooled(statistic[:, part_of])
    at = [(names[r], items[j]) for r, j in np.argwhere(part_of)]
    return _test_table(spread[part_of], p, pd.MultiIndex.from_tuples(at, names=["factor", "item"]))


def _level_tests(statistic: Array, higher: Array, items: list[str], visits: list[str]) -> pd.DataFrame:
    """`higher` (bins, items): how many points higher each visit's answers are than those of all visits."""
    table = _test_table(np.ptp(higher, axis=0), _pooled(statistic), pd.Index(items, name="item"))
    table = table.rename(columns={"spread": "difference"})
    table.insert(1, "highest", [visits[t] for t in higher.argmax(axis=0)])
    table.insert(2, "lowest", [visits[t] for t in higher.argmin(axis=0)])
    return table


def _pooled(statistic: Array) -> Array:
    """p of statistics (1 + B, number), the first of which are observed, against all permuted ones."""
    null = np.sort(statistic[1:].ravel())
    return (1 + len(null) - np.searchsorted(null, statistic[0], side="left")) / (1 + len(null))


def _test_table(spread: Array, p: Array, index: pd.Index) -> pd.DataFrame:
    q = false_discovery_control(p) if len(p) else p
    return pd.DataFrame({"spread": spread, "p": p, "q": q, "changes": q <= LEVEL}, index=index)


CONSTANT = math.inf  # smoothness with which loadings are the same in every bin
SMOOTHNESS = (0.01, 0.1, 1.0, 10.0, 100.0)  # tried against constant loadings
SAME = 0.85  # congruence from which loadings at two visits are those of one factor
PERMUTATIONS = 999
BY_VISIT, TESTING = "Loadings by visit", "Testing whether loadings differ"  # stages


Model = TypeVar("Model", bound="LongitudinalICQF")


KIND = "longitudinal"
_SETTINGS = ("participant", "age", "confounds", "binning", "within_bin", "smoothness", "weigh_nonresponse")
_SHARED = (
    *("beta", "confound_ranges", "intercept", "n_init", "tol", "max_iter", "dtype"),
    *("missing_confounds", "smallest_category"),
)


def rebuilt_visits(kind: type[Model], stored: StoredModel) -> Model:
    """The fitted model from its description; any error means that the description is not valid."""
    own = stored.header[KIND]
    own = own | {"smoothness": CONSTANT if own["smoothness"] is None else own["smoothness"]}
    header = {name: value for name, value in stored.header.items() if name != KIND}
    inner = rebuild(ICQF, StoredModel(header, stored.arrays))
    bins = AgeBins(**{name: tuple(values) for name, values in own["bins"].items()})
    items = [str(item) for item in own["items"]]
    ends = inner.item_range_.to_numpy()[: len(items)]
    weight = inner.item_weight
    model = kind(
        inner.n_components,
        **{name: own[name] for name in _SETTINGS},
        **{name: getattr(inner, name) for name in _SHARED},
        item_range=pd.DataFrame(ends, index=items, columns=["min", "max"]),
        item_weight=weight if isinstance(weight, str | None) else weight[: len(items)],
        bins=list(bins.visits or bins.edges),
    )
    model.model_, model.bins_, model.items_, model.codebook_ = inner, bins, items, stored.codebook
    model.gaps_ = pd.DataFrame(own["gaps"], index=pd.Index(bins.labels, name="bin"))
    check_parameter("smoothness", model.smoothness)
    for name in ("binning", "within_bin", "weigh_nonresponse"):
        check_parameter(name, getattr(model, name))
    names = (model.participant, model.age, *model.confounds)
    right = all(isinstance(name, str) for name in names)
    right &= list(inner.item_range_.index) == column_names(items, bins)
    right &= len(bins.places) == len(bins) >= 2 and len(bins) in (len(bins.visits), len(bins.edges) - 1)
    right &= _numbers(bins.places) and _numbers(bins.edges)
    right &= all(lower < upper for lower, upper in pairwise(bins.edges))
    right &= all(isinstance(text, str) for text in (*bins.labels, *bins.visits))
    right &= all(isinstance(count, int) and count >= 0 for counts in own["gaps"].values() for count in counts)
    if not right:
        raise ValueError("its description of visits is not valid")
    check_description(model.describe(), stored)
    return model


def _score_table(scores: Array, visits: pd.MultiIndex, columns: Array) -> pd.DataFrame:
    index = pd.MultiIndex.from_arrays(
        [visits.get_level_values(0).astype(object), visits.get_level_values(1)], names=visits.names
    )
    return pd.DataFrame(scores, index=index, columns=columns)


def _fit_by_bin(problem: Problem, scores: Array, loadings: Array) -> Fit:
    """How well the solution describes the answers in each (bin, item) column; see `Fit`."""
    A = problem.with_confounds(scores).astype(np.float64)
    total, count, square, sse = np.zeros((4, problem.m))
    together, answered = np.zeros((2, len(A), problem.m))
    for block in problem.blocks():
        block = block.precise()
        own = A[:, block.rows] * (1.0 if block.weights is None else block.weights)
        weights, seen = np.ones(block.n) if block.weights is None else block.weights, block.observed()
        total, count = total + weights @ block.X, count + weights @ seen
        square = square + weights @ block.X**2
        sse = sse + weights @ block.masked(block.X - A[:, block.rows].T @ loadings) ** 2
        together, answered = together + own @ block.X, answered + own @ seen
    means = total / np.maximum(count, 1e-300)
    sst = np.maximum(square - total * means, 0.0)
    return Fit(sse, sst, np.where(sst > 0, loadings * (together - answered * means), 0.0))


def _numbers(ages: tuple[float, ...]) -> bool:
    return all(isinstance(age, (int, float)) and math.isfinite(age) for age in ages)


class LongitudinalICQF(BaseEstimator):
    """ICQF of repeated visits: scores at every visit, and constant loadings or ones that differ.

    A participant has scores at each visit, so that change shows in the scores. By default the loadings, and
    what is common to everybody (the intercept), are the same at every visit. With a finite smoothness β₂ they
    may differ between bins of age, and

        ½ β₂ γ Σ_j Σ_r Σ_t (Q_jtr − Q_j,t+1,r)²

    is added to the objective of `ICQF`, over factors and confounds r, which penalises differences between
    neighbouring bins. `LongitudinalICQFCV` decides whether loadings may differ.

    Parameters
    ----------
    n_components : int
        The number of factors.
    participant, age : str
        Columns of the long table: the participant, and an age or the name or number of a visit. All other
        columns are items or confounds.
    confounds : sequence of str
        Columns such as sex or site, with one value per participant.
    bins : "auto", int or sequence
        The age bins; see `icqf.data.visits.age_bins`.
    binning : {"quantile", "width"}
        Whether bins have about the same number of visits, or the same width.
    within_bin : {"mean", "first", "last"}
        How several visits of one participant in one bin are combined, with a warning.
    beta : float
        Strength of the sparsity penalty, β.
    smoothness : float
        Strength of the smoothness penalty, β₂; ``math.inf``, the default, means that loadings are the same at
        every visit.
    weigh_nonresponse : bool
        Whether to weight visits by items asked over items answered (at most 4), so that non-response does not
        reduce their weight.
    item_range, item_weight, confound_ranges, intercept, n_init, tol, max_iter, dtype, missing_confounds, \
smallest_category, random_state, callback
        As for `ICQF`, `item_weight` being "range", None or one weight per item.

    Attributes
    ----------
    loadings_ : DataFrame (items × bins, k)
        Indexed by item and bin.
    loadings_by_age_ : array (items, k, bins)
        The same.
    confound_loadings_ : DataFrame (items × bins, c)
    same_factors_ : DataFrame
        By factor, whether its loadings are those of one factor at all visits.
    bins_ : AgeBins
    gaps_ : DataFrame
        By bin: participants seen and not seen, and items asked, answered and unanswered.
    model_ : ICQF
        The fitted model of all (bin, item) columns.
    items_ : list of str
    item_range_ : DataFrame (items, 2)

    Examples
    --------
    >>> from icqf.models import LongitudinalICQF
    >>> from icqf.datasets import make_longitudinal
    >>> visits = make_longitudinal(n=80, n_items=8, n_bins=3, k=2, random_state=0).visits
    >>> model = LongitudinalICQF(2, item_range=(0, 4)).fit(visits)
    >>> model.loadings_by_age_.shape
    (8, 2, 3)
    >>> scores = model.transform(visits)  # one row per participant and visit
    >>> scores.index.names
    FrozenList(['participant', 'age'])
    >>> course = scores.loc["P0001"]  # one participant's course over the visits
    >>> scores.groupby(level="age").mean().shape  # the mean course of everybody
    (3, 2)
    """

    model_: ICQF
    bins_: AgeBins
    items_: list[str]
    gaps_: pd.DataFrame
    codebook_: StoredCodebook

    def __init__(
        self,
        n_components: int | None = None,
        *,
        participant: str = "participant",
        age: str = "age",
        confounds: Sequence[str] = (),
        bins: Any = "auto",
        binning: Literal["quantile", "width"] = "quantile",
        within_bin: Literal["mean", "first", "last"] = "mean",
        beta: float = 0.1,
        smoothness: float = CONSTANT,
        weigh_nonresponse: bool = False,
        item_range: Any = None,
        item_weight: Any = "range",
        confound_ranges: Mapping[str, tuple[float, float]] | None = None,
        intercept: bool = True,
        n_init: int | Literal["auto"] = "auto",
        tol: float = 1e-3,
        max_iter: int = 500,
        dtype: Any = "auto",
        missing_confounds: Literal["error", "mean"] = "error",
        smallest_category: int = SMALLEST_CATEGORY,
        random_state: Any = 0,
        callback: Callback | None = None,
    ) -> None:
        self.n_components = n_components
        self.participant = participant
        self.age = age
        self.confounds = confounds
        self.bins = bins
        self.binning = binning
        self.within_bin = within_bin
        self.beta = beta
        self.smoothness = smoothness
        self.weigh_nonresponse = weigh_nonresponse
        self.item_range = item_range
        self.item_weight = item_weight
        self.confound_ranges = confound_ranges
        self.intercept = intercept
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.dtype = dtype
        self.missing_confounds = missing_confounds
        self.smallest_category = smallest_category
        self.random_state = random_state
        self.callback = callback

    # --- fitting -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> LongitudinalICQF:
        """Factorize the visits.

        Parameters
        ----------
        X : table or Questionnaire
            One row per visit: the participant, the age, and the answer to each item. In a questionnaire, the
            groups are the participants, and one confound is the age.
        """
        stated = self.state(X)
        return self.keep(stated, self.solve(stated))

    def fit_transform(self, X: Any, y: Any = None) -> pd.DataFrame:
        """Factorize the visits and return the scores (V, k), as `transform` does."""
        stated = self.state(X)
        factorization = self.solve(stated)
        return self.keep(stated, factorization).scores_of_fit(stated, factorization)

    def state(self, X: Any) -> VisitStatement:
        """Check parameters and data and state the problem, for any number of factors, β and smoothness."""
        check_parameters(self.plain())
        check_parameter("smoothness", self.smoothness)
        if isinstance(self.item_weight, str) and self.item_weight == "variance":
            raise parameter_error(
                "item_weight",
                "='variance' would give an item different units in each bin, so that its loadings could not "
                "be compared; choose 'range'.",
                value="variance",
            )
        source = Visits(self, X)
        return source.statement(state(self.plain(), source))

    def solve(self, statement: VisitStatement) -> Factorization:
        """The best factorization of a stated problem, with this model's k, β and smoothness."""
        same = self.plain().solve(statement.pooled)
        return self.spread(statement, same) if self.smoothness == CONSTANT else self.loosen(statement, same)

    def loosen(self, statement: VisitStatement, same: Factorization) -> Factorization:
        """The factorization with this model's smoothness, starting from that with constant loadings."""
        problem = self.problem_of(statement)
        loadings = problem.own_loadings(problem.spread(same.factors.loadings[: len(same.factors.scores)]))
        inner = self.plain().set_params(init=(same.factors.scores.T, loadings.T))
        return inner.solve(replace(statement.stated, problem=problem))

    def spread(self, statement: VisitStatement, same: Factorization) -> Factorization:
        """A factorization with constant loadings as one of the (bin, item) columns."""
        problem, found = statement.problem, same.factors
        loadings = problem.spread(found.loadings)
        fit = _fit_by_bin(problem, found.scores, loadings)
        return replace(same, factors=Factors(found.scores, loadings), fit=fit)

    def problem_of(self, statement: VisitStatement) -> Problem:
        """The stated problem with this model's β and smoothness."""
        problem = statement.problem.with_beta(float(self.beta))
        return problem if self.smoothness == CONSTANT else smoothed(problem, float(self.smoothness))

    def keep(self, statement: VisitStatement, factorization: Factorization) -> LongitudinalICQF:
        """Set the fitted attributes from a stated problem and a factorization of it."""
        bins = len(statement.bins)
        inner = self.plain()
        if isinstance(inner.item_weight, np.ndarray):
            inner.item_weight = np.tile(inner.item_weight, bins)
        self.model_ = warned_if_empty(inner.keep(statement.stated, factorization))
        self.model_.score_distribution_ = None  # scores of visits have no intervals
        self.items_ = list(statement.items)
        self.bins_, self.gaps_, self.codebook_ = statement.bins, statement.gaps, statement.codebook
        return self

    def scores_of_fit(self, statement: VisitStatement, factorization: Factorization) -> pd.DataFrame:
        """Scores (V, k) at all visits of the table that the model was just fitted to."""
        scores = np.full((len(statement.visits), len(factorization.factors.scores)), np.nan)
        found = factorization.factors.scores
        if self.smoothness == CONSTANT:  # of the pooled columns, and so in another order of sums
            found = self.model_.solve_scores(statement.problem.with_beta(float(self.beta)))
        scores[statement.stated.kept] = found.T
        return _score_table(scores, statement.visits, self.get_feature_names_out())

    def plain(self) -> ICQF:
        """The plain model whose items are the (bin, item) columns."""
        shared = {name: getattr(self, name) for name in (*_SHARED, "random_state", "callback")}
        weight = self.item_weight
        weight = weight if isinstance(weight, str | None) else np.array(weight)
        return ICQF(self.n_components, item_weight=weight, **shared)

    # --- using the fitted model ----------------------------------------------------------------------

    def transform(self, X: Any) -> pd.DataFrame:
        """Scores (V, k), one row per participant and visit: a participant's rows are their course.

        Each visit is scored by its own answers, with the loadings of its bin. A visit beyond the fitted ages
        counts as one in the nearest bin. A visit without answers gets NaN.
        """
        check_is_fitted(self, "model_")
        inner, visits = self.model_, NewVisits(self, X)
        stated = state(inner, visits)
        scores = np.full((len(stated.kept), len(inner.components_)), np.nan)
        if stated.kept.any():
            scores[stated.kept] = inner.solve_scores(stated.problem).T
        return _score_table(scores, visits.visits, self.get_feature_names_out())

    def courses(self, X: Any = None, *, n_resamples: int = 100, n_jobs: int | None = None) -> pd.DataFrame:
        """Each loading over age, one row per item, factor and bin.

        If X is the visits that the model was fitted to, with 95 % bootstrap intervals (``low``, ``high``).
        """
        check_is_fitted(self, "model_")
        inner, p, k, bins = self.model_, len(self.items_), len(self.model_.components_), len(self.bins_)
        names = [self.items_, list(self.get_feature_names_out()), self.bins_.labels]
        table = pd.MultiIndex.from_product(names, names=["item", "factor", "bin"]).to_frame(index=False)
        table = table.assign(age=np.tile(self.bins_.places, p * k), loading=self.loadings_by_age_.ravel())
        if X is None:
            return table
        if n_resamples < 2:
            raise InputError(
                f"n_resamples={n_resamples} is too few for an interval; draw 100.", code="resamples"
            )
        statement = self.restate(X)
        problem = self.problem_of(statement)
        loadings = np.concatenate([inner.components_, inner.confound_components_])
        scores = inner.solve_scores(statement.problem.with_beta(float(self.beta)))
        if self.smoothness == CONSTANT:
            problem, loadings = problem.pooled(), loadings[:, :p]
        drawn = bootstrap(
            problem,
            scores,
            loadings,
            n_resamples=n_resamples,
            groups=np.unique(statement.participants, return_inverse=True)[1],
            n_jobs=n_jobs,
            engine=inner.engine,
            rng=np.random.default_rng([int(self.random_state or 0), 1]),
        )
        top = np.ptp(inner.item_range_.to_numpy(), axis=1)[: loadings.shape[1]]
        for name, ends in zip(("low", "high"), drawn.interval(loadings, top), strict=True):
            every = np.broadcast_to(ends[:k].reshape(k, -1, p), (k, bins, p))
            table[name] = every.transpose(2, 0, 1).ravel()
        return table

    def changes(self, X: Any, *, n_permutations: int = PERMUTATIONS) -> LoadingChanges:
        """Test whether the loadings differ between visits, without refitting.

        The test starts from the model with constant loadings: a model whose loadings differ is first fitted
        with constant ones.

        Parameters
        ----------
        X : table or Questionnaire
            The visits that the model was fitted to.
        n_permutations : int
            How often visits with the same scores change places.
        """
        check_is_fitted(self, "model_")
        statement = self.restate(X)
        same = clone(self).set_params(n_components=len(self.model_.components_), smoothness=CONSTANT)
        with warnings.catch_warnings(action="ignore"):  # the fit has already warned
            found = self if self.smoothness == CONSTANT else same.keep(statement, same.solve(statement))
        return found.test(statement, n_permutations=n_permutations)

    def test(self, statement: VisitStatement, *, n_permutations: int) -> LoadingChanges:
        """The test of `changes` for a model with constant loadings."""
        inner, p = self.model_, len(self.items_)
        problem = statement.problem.with_beta(float(self.beta))
        loadings = np.concatenate([inner.components_, inner.confound_components_])
        return loading_changes(
            problem,
            inner.solve_scores(problem),
            problem.scaled_loadings(loadings)[:, :p],
            factors=[str(name) for name in self.get_feature_names_out()],
            items=self.items_,
            visits=[str(label) for label in self.bins_.labels],
            n_permutations=n_permutations,
            seed=int(self.random_state or 0),
        )

    def restate(self, X: Any) -> VisitStatement:
        """The statement of the visits that the model was fitted to; refused if bins or items differ."""
        with warnings.catch_warnings(action="ignore"):  # the fit has already warned
            statement = self.state(X)
        if statement.bins != self.bins_ or list(statement.items) != self.items_:
            raise InputError(
                "These are not the visits that the model was fitted to: their bins or items differ "
                f"({listed(statement.bins.labels)} instead of {listed(self.bins_.labels)}).",
                code="other-visits",
                remedy="Give the table that was passed to fit.",
            )
        return statement

    # --- files ---------------------------------------------------------------------------------------

    def describe(self) -> StoredModel:
        """The fitted model as plain values, without participants' data."""
        check_is_fitted(self, "model_")
        stored = self.model_.describe()
        own = {name: getattr(self, name) for name in _SETTINGS} | {
            "smoothness": None if self.smoothness == CONSTANT else self.smoothness,
            "confounds": list(self.confounds),
            "bins": asdict(self.bins_),
            "items": self.items_,
            "gaps": self.gaps_.to_dict("list"),
        }
        header = {**stored.header, KIND: json.loads(json.dumps(own))}
        return StoredModel(header, stored.arrays, described(self, self.codebook_))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file. It holds no participant's data."""
        write_model(path, self.describe())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LongitudinalICQF:
        """Read a model that `save` wrote."""
        stored = read_model(path)
        if KIND not in stored.header:
            raise InputError(
                f"{os.fspath(path)}: this is not a longitudinal model.",
                code="plain-model",
                remedy="Read it with ICQF.load.",
            )
        with damage_refused(path):
            return rebuilt_visits(cls, stored)

    # --- results -------------------------------------------------------------------------------------

    @property
    def loadings_by_age_(self) -> Array:
        """Loadings (items, k, bins)."""
        check_is_fitted(self, "model_")
        shape = (len(self.model_.components_), len(self.bins_), len(self.items_))
        return np.ascontiguousarray(self.model_.components_.reshape(shape).transpose(2, 0, 1))

    @property
    def loadings_(self) -> pd.DataFrame:
        """Loadings (items × bins, k), indexed by item and bin."""
        return self._by_item(self.loadings_by_age_, list(self.get_feature_names_out()))

    @property
    def same_factors_(self) -> pd.DataFrame:
        """Whether each factor is the same one at all visits.

        By factor: ``congruence``, the lowest cosine between its loadings (relative to the ranges) at two
        visits; those visits, ``first`` and ``second``; ``matches``, the factor at ``second`` that its
        loadings at ``first`` resemble most; and ``same``: the congruence is at least 0.85, and at
        no two visits is another factor more similar.
        """
        names, labels = list(self.get_feature_names_out()), self.bins_.labels
        span = np.ptp(self.item_range_.to_numpy(), axis=1)[:, None, None]
        by_bin = (self.loadings_by_age_ / span).transpose(2, 1, 0)  # (bins, k, items)
        length = np.linalg.norm(by_bin, axis=2, keepdims=True)
        unit = by_bin / np.where(length > 0, length, 1.0)
        rows = []
        for r, name in enumerate(names):
            pairs = []
            for s, t in combinations(range(len(labels)), 2):
                likeness, (order, _) = float(unit[s, r] @ unit[t, r]), aligned(by_bin[s], by_bin[t])
                moved = self.smoothness != CONSTANT and int(order[r]) != r
                match = names[int(order[r])] if moved else name
                pairs.append((not moved and likeness >= SAME, likeness, labels[s], labels[t], match))
            rows.append(min(pairs, key=lambda pair: pair[:2]))
        table = pd.DataFrame(rows, index=names, columns=["same", "congruence", "first", "second", "matches"])
        return table[["congruence", "first", "second", "matches", "same"]]

    @property
    def confound_loadings_(self) -> pd.DataFrame:
        """Loadings of the confounds (items × bins, c), indexed by item and bin."""
        check_is_fitted(self, "model_")
        own = self.model_.confound_components_
        cube = own.reshape(len(own), len(self.bins_), len(self.items_)).transpose(2, 0, 1)
        return self._by_item(cube, self.model_.confound_names_)

    def _by_item(self, cube: Array, columns: list[str]) -> pd.DataFrame:
        index = pd.MultiIndex.from_product([self.items_, self.bins_.labels], names=["item", "bin"])
        return pd.DataFrame(cube.transpose(0, 2, 1).reshape(len(index), -1), index=index, columns=columns)

    @property
    def item_range_(self) -> pd.DataFrame:
        """Lowest and highest answer of each item."""
        check_is_fitted(self, "model_")
        ends = self.model_.item_range_.to_numpy()[: len(self.items_)]
        return pd.DataFrame(ends, index=pd.Index(self.items_, name="item"), columns=["min", "max"])

    @property
    def confound_encoder_(self) -> ConfoundEncoder:
        """How confounds become columns between 0 and 1."""
        check_is_fitted(self, "model_")
        return self.model_.confound_encoder_

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The factors' names: factor1, factor2, …"""
        check_is_fitted(self, "model_")
        return self.model_.get_feature_names_out()


class LongitudinalICQFCV(BaseEstimator):
    """`LongitudinalICQF` with the number of factors, β, and whether loadings may differ, chosen.

    The number of factors and β are chosen as by `ICQFCV`, with the same loadings at every visit. Then models
    whose loadings may differ, a little or a lot, predict the same hidden answers. The loadings stay the same
    unless both agree: a freer model predicts better by more than one standard error of the difference, and
    the loadings differ by more than chance between visits with the same scores (`LongitudinalICQF.changes`).

    Parameters
    ----------
    estimator : LongitudinalICQF, optional
        The model to choose for, with all settings that are not chosen.
    n_components, betas, n_splits, n_repeats, rule, n_jobs, checkpoint, callback, random_state
        As for `ICQFCV`. A participant's visits are always hidden together.
    smoothness : sequence of float
        The penalties on differences between visits that are tried; constant loadings (``math.inf``) are
        always among them. With 0 visits are independent.
    n_permutations : int
        For the test; 0 leaves the decision to cross-validation alone.

    Attributes
    ----------
    best_estimator_ : LongitudinalICQF
    n_components_, beta_, smoothness_ : int, float, float
    search_ : ICQFCV
        The choice of the number of factors and β.
    smoothness_errors_ : DataFrame
        By smoothness: the mean error of the hidden answers, the ``difference`` from the best and its
        ``std_error``.
    changes_ : LoadingChanges or None
        The test, if a freer model predicted better.

    Examples
    --------
    >>> from icqf.models import LongitudinalICQF, LongitudinalICQFCV
    >>> from icqf.datasets import make_longitudinal
    >>> visits = make_longitudinal(n=80, n_items=9, n_bins=3, k=2, drift=0, random_state=0).visits
    >>> search = LongitudinalICQFCV(
    ...     LongitudinalICQF(item_range=(0, 4)), n_components=[1, 2], betas=[0.1], random_state=0
    ... ).fit(visits)
    >>> search.n_components_, search.smoothness_
    (2, inf)
    """

    def __init__(
        self,
        estimator: LongitudinalICQF | None = None,
        *,
        n_components: Literal["auto"] | Sequence[int] | int = "auto",
        betas: Literal["auto"] | Sequence[float] = "auto",
        smoothness: Sequence[float] = SMOOTHNESS,
        n_permutations: int = PERMUTATIONS,
        n_splits: int = 5,
        n_repeats: Literal["auto"] | int = "auto",
        rule: str = "min",
        n_jobs: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callable[[Progress], object] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.betas = betas
        self.smoothness = smoothness
        self.n_permutations = n_permutations
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.rule = rule
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> LongitudinalICQFCV:
        """Choose, and fit with the choice; X as for `LongitudinalICQF.fit`."""
        self._search(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> pd.DataFrame:
        """Choose, fit, and return the scores (V, k), one row per participant and visit."""
        statement, factorization = self._search(X)
        return self.best_estimator_.scores_of_fit(statement, factorization)

    def transform(self, X: Any) -> pd.DataFrame:
        """Scores at these visits by the chosen model."""
        return self.best_estimator_.transform(X)

    def _search(self, X: Any) -> tuple[VisitStatement, Factorization]:
        values = self._values()
        model = LongitudinalICQF() if self.estimator is None else clone(self.estimator)
        model.set_params(smoothness=CONSTANT)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        statement = model.state(X)
        journal = None if self.checkpoint is None else WorkJournal(self.checkpoint)
        names = ("n_components", "betas", "n_splits", "n_repeats", "rule", "n_jobs")
        shared = {name: getattr(self, name) for name in (*names, "callback", "random_state")}
        self.search_ = ICQFCV(model.plain(), checkpoint=journal, **shared)
        same = self.search_.solve(statement.pooled, groups=self._groups(statement))
        self.n_components_, self.beta_ = self.search_.n_components_, self.search_.beta_
        model.set_params(n_components=self.n_components_, beta=self.beta_)
        found = model.spread(statement, same)
        model.keep(statement, found)
        self.smoothness_errors_ = self._compare(model, statement, values, seed, journal)
        errors = self.smoothness_errors_
        near = errors["difference"] <= errors["std_error"]  # of the lowest: the strongest of these is chosen
        self.smoothness_, self.changes_ = float(errors.loc[near, "smoothness"].max()), None
        if self.smoothness_ != CONSTANT and self.n_permutations:
            if self.callback is not None:
                self.callback(Progress(0, 0, what=TESTING))
            self.changes_ = model.test(statement, n_permutations=self.n_permutations)
            if not self.changes_.factors["changes"].any():
                self.smoothness_ = CONSTANT
        if self.smoothness_ != CONSTANT:
            model.set_params(smoothness=self.smoothness_)
            found = model.loosen(statement, same)
            model.keep(statement, found)
        self.best_estimator_ = model
        return statement, found

    def _values(self) -> list[float]:
        """The finite candidates of the smoothness, the strongest first."""
        if isinstance(self.smoothness, str):
            raise parameter_error("smoothness", " must hold numbers.", value=self.smoothness)
        values = {float(value) for value in np.atleast_1d(np.asarray(self.smoothness, dtype=float))} - {
            CONSTANT
        }
        for value in values:
            check_parameter("smoothness", value)
        return sorted(values, reverse=True)

    def _groups(self, statement: VisitStatement) -> Array:
        """The participant of each visit of the table."""
        return np.asarray(statement.visits.codes[0])

    def _compare(
        self,
        model: LongitudinalICQF,
        statement: VisitStatement,
        values: list[float],
        seed: int,
        journal: WorkJournal | None,
    ) -> pd.DataFrame:
        """Errors on hidden answers with constant loadings and with ones that may differ."""
        problem = statement.problem.with_beta(self.beta_)
        who = np.unique(statement.participants, return_inverse=True)[1]
        folds = folds_of(problem, groups=who, n_splits=self.n_splits, rng=np.random.default_rng([seed, 0, 0]))
        jobs = {
            f"smoothness, fold {fold}": (
                *(problem, folds, fold, statement.stated.given, who, self.n_components_, values),
                model.max_iter,
            )
            for fold in range(self.n_splits if values else 0)
        }
        results = run_all(
            jobs,
            _hidden_errors,
            n_jobs=self.n_jobs,
            checkpoint=journal,
            callback=self.callback,
            what=BY_VISIT,
        )
        if not results:
            return pd.DataFrame(
                {"smoothness": [CONSTANT], "error": np.nan, "difference": 0.0, "std_error": 0.0}
            )
        squares = np.sum([each["squares"] for each in results.values()], axis=0)  # (1 + values, participants)
        number = sum(each["count"] for each in results.values())
        apart = squares - squares[squares.sum(axis=1).argmin()]
        return pd.DataFrame(
            {
                "smoothness": [CONSTANT, *values],
                "error": squares.sum(axis=1) / number,
                "difference": apart.sum(axis=1) / number,
                "std_error": apart.std(axis=1, ddof=1) * math.sqrt(apart.shape[1]) / number,
            }
        )


def _hidden_errors(
    problem: Problem,
    folds: Folds,
    fold: int,
    given: Array | None,
    who: Array,
    k: int,
    values: Sequence[float],
    max_iter: int,
) -> dict[str, Any]:
    """Squared errors of one fold by smoothness and participant, with constant loadings first."""
    held_out = HeldOut(problem, folds.mask(fold, problem), given=given)
    settings: dict[str, Any] = {"tol": tolerances.SEARCH, "max_iter": max_iter, "exact": False}
    pooled = held_out.visible.pooled()
    (same,) = run(pooled, Starts(pooled).make("nndsvd", k, np.random.default_rng([fold, k])), **settings)
    factors = Factors(same.factors.scores, held_out.visible.spread(same.factors.loadings))
    found = [factors]
    for value in values:
        (fit,) = run(smoothed(held_out.visible, value), found[-1], **settings)
        found.append(fit.factors)
    errors = [held_out.error(each).by_row for each in found]
    return {
        "squares": [np.bincount(who, weights=each, minlength=int(who.max()) + 1).tolist() for each in errors],
        "count": held_out.weight,
    }
