"""LongitudinalICQF and its search: one score vector per participant, loadings that change with age."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import false_discovery_control
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.core.problem import Problem
from icqf.core.result import Factorization, Factors
from icqf.data.confounds import ConfoundEncoder
from icqf.data.disclosure import SMALLEST_CATEGORY
from icqf.data.questionnaire import StoredCodebook
from icqf.data.settings import check_parameter, check_parameters, parameter_error
from icqf.data.visits import AgeBins
from icqf.engines.base import Callback
from icqf.engines.choice import run
from icqf.engines.parallel import Progress, run_all
from icqf.errors import InputError, counted, listed, shown_p
from icqf.io.model_file import StoredModel, damage_refused, read_model, write_model
from icqf.models.icqf import ICQF, warned_if_empty
from icqf.models.longitudinal_problem import (
    NewVisits,
    VisitObservations,
    Visits,
    VisitStatement,
    column_names,
    smoothed,
)
from icqf.models.persistence import check_description, described, rebuild
from icqf.models.search import COLUMNS, Plan, Task, first_candidates, run_task, suggested_count
from icqf.models.selection_rules import choose, error_table
from icqf.models.statement import state
from icqf.resampling import tolerances
from icqf.resampling.bootstrap import bootstrap
from icqf.resampling.folds import folds_of
from icqf.resampling.matching import aligned

if TYPE_CHECKING:
    from icqf.models.longitudinal_problem import VisitStatement

LEVEL = 0.05
WORTH_TESTING = 0.05  # smallest loading of a tested item, as a share of its range
_AT_A_TIME = 10  # shuffles in one job


def course_table(model: LongitudinalICQF) -> pd.DataFrame:
    """One row per item, factor and bin: the loading, and the bin's age."""
    cube = model.loadings_by_age_
    items, factors, bins = model.items_, list(model.get_feature_names_out()), model.bins_
    index = pd.MultiIndex.from_product([items, factors, bins.labels], names=["item", "factor", "bin"])
    table = index.to_frame(index=False)
    table["age"] = np.tile(bins.places, len(items) * len(factors))
    return table.assign(loading=cube.ravel())


def interval_table(
    model: LongitudinalICQF,
    statement: VisitStatement,
    *,
    n_resamples: int,
    n_jobs: int | None,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """`course_table` with 95 % intervals, from resampled participants."""
    if n_resamples < 2:
        raise InputError(f"n_resamples={n_resamples} is too few for an interval; draw 100.", code="resamples")
    inner, problem = model.model_, model.problem_of(statement)
    loadings = np.concatenate([inner.components_, inner.confound_components_])
    drawn = bootstrap(
        problem,
        inner.solve_scores(problem),
        loadings,
        n_resamples=n_resamples,
        n_jobs=n_jobs,
        engine=inner.engine,
        rng=rng,
    )
    top = np.ptp(inner.item_range_.to_numpy(), axis=1)
    low, high = drawn.interval(loadings, top)
    k = len(inner.components_)

    def column(values: Array) -> Array:
        return values[:k].reshape(k, len(model.bins_), -1).transpose(2, 0, 1).ravel()

    return course_table(model).assign(low=column(low), high=column(high))


@dataclass(frozen=True, eq=False)
class AgeChanges:
    """Whether loadings change with age.

    Attributes
    ----------
    factors : DataFrame
        By factor: ``spread`` (root mean square of its items' changes, as a share of their ranges), ``p``,
        ``q`` (after false discovery control over the factors) and ``changes``.
    items : DataFrame
        The same by factor and item, for the items of each factor.
    n_permutations : int

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.models import AgeChanges
    >>> factors = pd.DataFrame({"spread": [0.1], "p": [0.01], "q": [0.01], "changes": [True]}, ["factor1"])
    >>> index = pd.MultiIndex.from_tuples([("factor1", "q1"), ("factor1", "q2")], names=["factor", "item"])
    >>> items = pd.DataFrame({"spread": [0.2, 0], "p": 0.1, "q": 0.1, "changes": [True, False]}, index)
    >>> print(AgeChanges(factors, items, 99))
    factor1: changes with age (q = 0.010); 1 of its 2 items changes individually: q1.
    """

    factors: pd.DataFrame
    items: pd.DataFrame
    n_permutations: int

    def __str__(self) -> str:
        lines = []
        for factor, row in self.factors.iterrows():
            own = self.items.loc[[factor]] if factor in self.items.index.get_level_values(0) else None
            if own is None:
                lines.append(f"{factor}: no item has a loading large enough to test.")
                continue
            moved = [str(item) for _, item in own.index[own["changes"].to_numpy(bool)]]
            whole = "changes with age" if row["changes"] else "no overall change with age"
            some = "none" if not moved else str(len(moved))
            verb = "change individually" if len(moved) > 1 else "changes individually"
            named = f": {', '.join(moved)}" if moved else ""
            n_items = counted(len(own), "item")
            judged = f"q {shown_p(row['q'], LEVEL, equals='= ')}"
            lines.append(f"{factor}: {whole} ({judged}); {some} of its {n_items} {verb}{named}.")
        least = 1 / (self.n_permutations + 1)
        if len(self.factors) * least > LEVEL and not self.factors["changes"].all():
            lines.append(
                f"With {self.n_permutations} shuffles p cannot be below {least:.3f}, which is too coarse to "
                f"test {counted(len(self.factors), 'factor')}; 199 shuffles are enough for up to ten."
            )
        return "\n".join(lines)


def age_changes(
    model: LongitudinalICQF,
    statement: VisitStatement,
    *,
    n_permutations: int,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> AgeChanges:
    """Test each factor and item by shuffling each participant's visits over the bins they were seen in.

    The observed and the shuffled tables are fitted from the same start, the solution of the pooled answers,
    and the spread of each loading over the bins is compared. Items are standardised over the shuffles and
    share one null distribution, so that 199 shuffles are enough for hundreds of items.
    """
    if n_permutations < 9:
        raise InputError(
            f"n_permutations={n_permutations} is too few to tell change from chance; shuffle 199 times.",
            code="permutations",
        )
    problem = model.problem_of(statement).without_reconstruction_bound()
    start = _pooled_solution(model, problem)
    seeds = list(range(-1, n_permutations))  # −1 is the observed table
    jobs = {
        f"shuffles {part[0]}-{part[-1]}": (problem, start, part)
        for part in (seeds[at : at + _AT_A_TIME] for at in range(0, len(seeds), _AT_A_TIME))
    }
    results = run_all(
        jobs,
        _spreads,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        callback=callback,
        what="Change with age",
    )
    spreads = np.array([each for part in results.values() for each in part["spreads"]])  # (1 + B, k, items)
    k, p = spreads.shape[1:]
    span = problem.span[:p]
    part_of = start.loadings[:k, :p] / span >= WORTH_TESTING
    names = list(model.get_feature_names_out())
    return AgeChanges(
        _factor_tests(spreads, part_of, names),
        _item_tests(spreads, part_of, names, model.items_),
        n_permutations,
    )


def _pooled_solution(model: LongitudinalICQF, problem: Problem) -> Factors:
    """The solution of the pooled answers nearest to the model, with its order of factors."""
    inner, pooled = model.model_, problem.pooled()
    own = problem.scaled_loadings(np.concatenate([inner.components_, inner.confound_components_]))
    mean = own.reshape(len(own), len(model.bins_), -1).mean(axis=1)
    scores = inner.solve_scores(problem)
    (fit,) = run(
        pooled, Factors(scores, mean), tol=tolerances.SETTLE, max_iter=tolerances.MAX_ITER, exact=False
    )
    W, Q, k = fit.factors.scores, fit.factors.loadings, len(scores)
    order, _ = aligned(mean[:k], Q[:k])
    Q = np.concatenate([Q[:k][order], Q[k:]])
    return Factors(W[order], problem.spread(Q).astype(np.float64))


def _spreads(problem: Problem, start: Factors, seeds: Sequence[int]) -> dict[str, Any]:
    """Spread of each loading over the bins (k, items), as a share of the range, for each shuffle."""
    visits = problem.observations
    if not isinstance(visits, VisitObservations):
        raise TypeError("Only visits can be shuffled.")
    k, bins = len(start.scores), visits.bins
    seen = np.bincount(visits.bin, minlength=bins) / len(visits.bin)
    spreads = []
    for seed in seeds:
        shuffled = visits if seed < 0 else visits.shuffled(np.random.default_rng([seed, 7]))
        (fit,) = run(
            replace(problem, observations=shuffled),
            start,
            tol=tolerances.RESAMPLE,
            max_iter=tolerances.MAX_ITER,
            exact=False,
        )
        Q = fit.factors.loadings[:k].astype(np.float64)
        order, _ = aligned(start.loadings[:k], Q)
        courses = (Q[order] / problem.span).reshape(k, bins, -1)
        middle = np.einsum("t,ktj->kj", seen, courses)
        spreads.append(np.sqrt(np.einsum("t,ktj->kj", seen, (courses - middle[:, None]) ** 2)).tolist())
    return {"spreads": spreads}


def _factor_tests(spreads: Array, part_of: Array, names: list[str]) -> pd.DataFrame:
    counts = np.maximum(part_of.sum(axis=1), 1)
    together = np.sqrt((spreads**2 * part_of).sum(axis=2) / counts)  # (1 + B, k)
    p = (together >= together[0]).mean(axis=0)
    return _test_table(together[0], p, pd.Index(names, name="factor"))


def _item_tests(spreads: Array, part_of: Array, names: list[str], items: list[str]) -> pd.DataFrame:
    own = spreads[:, part_of]  # (1 + B, pairs)
    middle, width = own[1:].mean(axis=0), own[1:].std(axis=0, ddof=1)
    z = (own - middle) / np.where(width > 0, width, np.inf)
    null = np.sort(z[1:].ravel())
    p = (1 + len(null) - np.searchsorted(null, z[0], side="left")) / (1 + len(null))
    at = [(names[r], items[j]) for r, j in np.argwhere(part_of)]
    return _test_table(own[0], p, pd.MultiIndex.from_tuples(at, names=["factor", "item"]))


def _test_table(spread: Array, p: Array, index: pd.Index) -> pd.DataFrame:
    q = false_discovery_control(p) if len(p) else p
    return pd.DataFrame({"spread": spread, "p": p, "q": q, "changes": q <= LEVEL}, index=index)


Model = TypeVar("Model", bound="LongitudinalICQF")


KIND = "longitudinal"
_SETTINGS = ("participant", "age", "confounds", "binning", "within_bin", "smoothness", "weigh_nonresponse")
_SHARED = (
    *("beta", "confound_ranges", "intercept", "n_init", "tol", "max_iter", "dtype"),
    *("missing_confounds", "smallest_category"),
)
Array = NDArray[Any]
BETAS = (0.01, 0.1, 0.5)
SMOOTHNESS = (0.0, 1.0, 10.0, 100.0, 1000.0)


def described_visits(model: LongitudinalICQF) -> StoredModel:
    """The description of a fitted model; see `LongitudinalICQF.describe`."""
    stored = model.model_.describe()
    own = {name: getattr(model, name) for name in _SETTINGS} | {
        "confounds": list(model.confounds),
        "bins": asdict(model.bins_),
        "items": model.items_,
        "gaps": model.gaps_.to_dict("list"),
    }
    header = {**stored.header, KIND: json.loads(json.dumps(own))}
    return StoredModel(header, stored.arrays, described(model, model.codebook_))


def rebuilt_visits(kind: type[Model], stored: StoredModel) -> Model:
    """The fitted model from its description; any error means that the description is not valid."""
    own = stored.header[KIND]
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
    check_description(described_visits(model), stored)
    return model


def _numbers(ages: tuple[float, ...]) -> bool:
    return all(isinstance(age, (int, float)) and math.isfinite(age) for age in ages)


class LongitudinalICQF(BaseEstimator):
    """ICQF of repeated visits: the same factors at all ages, with loadings that may change with age.

    Visits are grouped into age bins, and the columns of the factorized table are the items of each bin. A
    participant has one score vector; bins without a visit are missing. The objective is that of `ICQF` with
    one more term,

        ½ β₂ γ Σ_j Σ_r Σ_t (Q_jtr − Q_j,t+1,r)²,

    over factors and confounds r (but not the intercept), which penalises change between neighbouring bins:
    with β₂ = 0 bins are independent, and with a large β₂ loadings are constant. `LongitudinalICQFCV` chooses
    it. Memory grows with the number of answers, not with participants × bins × items.

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
        Strength of the smoothness penalty, β₂.
    weigh_nonresponse : bool
        Whether to weight participants by items asked over items answered at their visits (at most 4), so that
        non-response does not reduce their weight. Visits that did not take place do not count.
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
    focus_ : DataFrame (k, bins)
        How much of each factor lies in each bin.
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
    >>> model.transform(visits.head(4)).shape[1]  # any subset of visits can be scored
    2
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
        smoothness: float = 10.0,
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
        y : ignored
        """
        stated = self.state(X)
        return self.keep(stated, self.solve(stated))

    def fit_transform(self, X: Any, y: Any = None) -> pd.DataFrame:
        """Factorize the visits and return the participants' scores (n, k)."""
        stated = self.state(X)
        factorization = self.solve(stated)
        return self.keep(stated, factorization).scores_of_fit(stated, factorization)

    def state(self, X: Any) -> VisitStatement:
        """Check parameters and data and state the problem, for any number of factors, β and smoothness."""
        check_parameters(self._inner())
        check_parameter("smoothness", self.smoothness)
        if isinstance(self.item_weight, str) and self.item_weight == "variance":
            raise parameter_error(
                "item_weight",
                "='variance' would give an item different units in each bin, so that its loadings could not "
                "be compared; choose 'range'.",
                value="variance",
            )
        source = Visits(self, X)
        return source.statement(state(self._inner(), source))

    def solve(self, statement: VisitStatement) -> Factorization:
        """The best factorization of a stated problem, with this model's k, β and smoothness."""
        return self._inner().solve(replace(statement.stated, problem=self.problem_of(statement)))

    def problem_of(self, statement: VisitStatement) -> Problem:
        """The stated problem with this model's β and smoothness."""
        problem = statement.problem.with_beta(float(self.beta))
        return smoothed(problem, float(self.smoothness))

    def keep(self, statement: VisitStatement, factorization: Factorization) -> LongitudinalICQF:
        """Set the fitted attributes from a stated problem and a factorization of it."""
        bins = len(statement.bins)
        inner = self._inner()
        if isinstance(inner.item_weight, np.ndarray):
            inner.item_weight = np.tile(inner.item_weight, bins)
        self.model_ = warned_if_empty(inner.keep(statement.stated, factorization))
        self.items_ = list(statement.items)
        self.bins_, self.gaps_, self.codebook_ = statement.bins, statement.gaps, statement.codebook
        return self

    def scores_of_fit(self, statement: VisitStatement, factorization: Factorization) -> pd.DataFrame:
        """Scores (n, k) of all participants of the table that the model was just fitted to."""
        scores = np.full((len(statement.names), len(factorization.factors.scores)), np.nan)
        scores[statement.stated.kept] = factorization.factors.scores.T
        return pd.DataFrame(scores, index=statement.names, columns=self.get_feature_names_out())

    def _inner(self) -> ICQF:
        """The plain model whose items are the (bin, item) columns."""
        return ICQF(
            self.n_components,
            beta=self.beta,
            item_weight=self.item_weight
            if isinstance(self.item_weight, str | None)
            else np.array(self.item_weight),
            confound_ranges=self.confound_ranges,
            intercept=self.intercept,
            n_init=self.n_init,
            tol=self.tol,
            max_iter=self.max_iter,
            dtype=self.dtype,
            missing_confounds=self.missing_confounds,
            smallest_category=self.smallest_category,
            random_state=self.random_state,
            callback=self.callback,
        )

    # --- using the fitted model ----------------------------------------------------------------------

    def transform(self, X: Any) -> pd.DataFrame:
        """Scores (n, k) of the participants of these visits, with the loadings of the bins they were seen in.

        A visit beyond the fitted ages counts as one in the nearest bin. A participant who answered nothing
        gets NaN, with a warning.
        """
        check_is_fitted(self, "model_")
        inner, visits = self.model_, NewVisits(self, X)
        stated = state(inner, visits)
        scores = np.full((len(stated.kept), len(inner.components_)), np.nan)
        if stated.kept.any():
            scores[stated.kept] = inner.solve_scores(stated.problem).T
        return pd.DataFrame(scores, index=visits.arranged.names, columns=self.get_feature_names_out())

    def courses(self, X: Any = None, *, n_resamples: int = 100, n_jobs: int | None = None) -> pd.DataFrame:
        """Each loading over age, one row per item, factor and bin.

        If X is the visits that the model was fitted to, with 95 % bootstrap intervals (``low``, ``high``).
        """
        check_is_fitted(self, "model_")
        if X is None:
            return course_table(self)
        rng = np.random.default_rng([int(self.random_state or 0), 1])
        return interval_table(self, self.restate(X), n_resamples=n_resamples, n_jobs=n_jobs, rng=rng)

    def changes(
        self,
        X: Any,
        *,
        n_permutations: int = 199,
        n_jobs: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Any = None,
    ) -> AgeChanges:
        """Test whether loadings change with age, by shuffling each participant's visits over the ages seen.

        Parameters
        ----------
        X : table or Questionnaire
            The visits that the model was fitted to.
        n_permutations : int
            How often the visits are shuffled and the model is refitted.
        n_jobs, checkpoint, callback
            Processes, a journal from which an interrupted run continues, and a function for the progress.
        """
        check_is_fitted(self, "model_")
        return age_changes(
            self,
            self.restate(X),
            n_permutations=n_permutations,
            n_jobs=n_jobs,
            checkpoint=checkpoint,
            callback=callback,
        )

    def restate(self, X: Any) -> VisitStatement:
        """The statement of the visits that the model was fitted to; refused if bins or items differ."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit has already warned
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
        return described_visits(self)

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
    def focus_(self) -> pd.DataFrame:
        """Share of each factor's squared loadings (relative to the ranges) in each bin (k, bins)."""
        span = np.ptp(self.item_range_.to_numpy(), axis=1)[:, None, None]
        squares = ((self.loadings_by_age_ / span) ** 2).sum(axis=0)
        shares = squares / np.maximum(squares.sum(axis=1, keepdims=True), 1e-300)
        return pd.DataFrame(shares, index=self.get_feature_names_out(), columns=list(self.bins_.labels))

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
    """`LongitudinalICQF` with the number of factors, β and the smoothness β₂ chosen together.

    Blocks of participants × (bin, item) columns are hidden in turn, as in `ICQFCV`, and every candidate is
    judged by how well it predicts them. Nothing of a hidden answer reaches the fit.

    Parameters
    ----------
    estimator : LongitudinalICQF, optional
        The model to choose for, with all settings that are not chosen.
    n_components : "auto", sequence of int, or int
        The numbers of factors to try; "auto" tries those up to four more than parallel analysis of the
        participants' mean answers suggests.
    betas, smoothness : sequence of float
        The penalties to try. With a smoothness of 0 bins are independent; the strongest allows hardly any
        change with age.
    n_splits, n_repeats : int
        Folds, and how often they are drawn.
    rule : {"min", "one_se"}
        As for `ICQFCV`.
    search_tol : float
        Tolerance of the fits that are compared.
    n_jobs, checkpoint, callback, random_state
        As for `ICQFCV`.

    Attributes
    ----------
    best_estimator_ : LongitudinalICQF
    n_components_, beta_, smoothness_ : int, float, float
    cv_results_ : DataFrame
        One row per fit, as for `ICQFCV`, with its smoothness.
    errors_ : DataFrame
        Mean error and standard error of each candidate.

    Examples
    --------
    >>> from icqf.models import LongitudinalICQF, LongitudinalICQFCV
    >>> from icqf.datasets import make_longitudinal
    >>> visits = make_longitudinal(n=80, n_items=9, n_bins=3, k=2, random_state=0).visits
    >>> search = LongitudinalICQFCV(
    ...     LongitudinalICQF(item_range=(0, 4)), n_components=[1, 2], betas=[0.1], smoothness=[1, 1000]
    ... ).fit(visits)
    >>> search.n_components_
    2
    """

    def __init__(
        self,
        estimator: LongitudinalICQF | None = None,
        *,
        n_components: Literal["auto"] | Sequence[int] | int = "auto",
        betas: Sequence[float] = BETAS,
        smoothness: Sequence[float] = SMOOTHNESS,
        n_splits: int = 5,
        n_repeats: int = 1,
        rule: Literal["min", "one_se"] = "min",
        search_tol: float = tolerances.SEARCH,
        n_jobs: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callable[[Progress], object] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.betas = betas
        self.smoothness = smoothness
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.rule = rule
        self.search_tol = search_tol
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> LongitudinalICQFCV:
        """Choose, and fit with the choice; X as for `LongitudinalICQF.fit`."""
        self._search(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> pd.DataFrame:
        """Choose, fit, and return the participants' scores (n, k)."""
        statement, factorization = self._search(X)
        return self.best_estimator_.scores_of_fit(statement, factorization)

    def transform(self, X: Any) -> pd.DataFrame:
        """Scores of the participants of these visits by the chosen model."""
        return self.best_estimator_.transform(X)

    def _search(self, X: Any) -> tuple[VisitStatement, Factorization]:
        self._check()
        model = LongitudinalICQF() if self.estimator is None else clone(self.estimator)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        statement = model.state(X)
        plans = self._plans(model, statement, seed)
        jobs = {
            f"fold {repeat}.{fold}, {k} factors, smoothness {smoothness:g}": (
                plan,
                Task(((repeat, fold),), (k,)),
                smoothness,
            )
            for smoothness, plan in plans.items()
            for k in self._numbers(statement, seed)
            for repeat, fold in plan.every_fold
        }
        results = run_all(
            jobs,
            _trials,
            n_jobs=self.n_jobs,
            checkpoint=self.checkpoint,
            callback=self.callback,
        )
        self.cv_results_ = pd.DataFrame([trial for result in results.values() for trial in result["trials"]])
        self.errors_ = pd.concat(
            [
                error_table(part).assign(smoothness=value)
                for value, part in self.cv_results_.groupby("smoothness")
            ],
            ignore_index=True,
        )
        best = self.errors_.loc[self.errors_.groupby(["n_components", "beta"])["error"].idxmin()]
        best = best.sort_values(["n_components", "beta"], ignore_index=True)
        self.n_components_, self.beta_ = choose(best, self.rule)
        chosen = best[(best["n_components"] == self.n_components_) & (best["beta"] == self.beta_)]
        self.smoothness_ = float(chosen["smoothness"].iloc[0])
        model.set_params(n_components=self.n_components_, beta=self.beta_, smoothness=self.smoothness_)
        solved = model.solve(statement)
        self.best_estimator_ = model.keep(statement, solved)
        return statement, solved

    def _check(self) -> None:
        for name in ("n_splits", "n_repeats"):
            check_parameter(name, getattr(self, name))
        if self.rule not in ("min", "one_se"):
            raise parameter_error("rule", f"={self.rule!r} is not available here; choose 'min' or 'one_se'.")
        for name, values, one in (
            ("betas", self.betas, "beta"),
            ("smoothness", self.smoothness, "smoothness"),
        ):
            if isinstance(values, str) or not np.size(values):
                raise parameter_error(name, " must hold at least one number.", value=values)
            for value in np.atleast_1d(values).tolist():
                check_parameter(one, value)
        if self.checkpoint is not None and self.random_state is None:
            raise InputError(
                "With a checkpoint, give a random_state, such as 0, so that folds are the same again."
            )

    def _plans(self, model: LongitudinalICQF, statement: VisitStatement, seed: int) -> dict[float, Plan]:
        """The plan for each smoothness, all on the same folds."""
        problem = statement.problem.with_beta(0.0)
        folds = tuple(
            folds_of(problem, n_splits=self.n_splits, rng=np.random.default_rng([seed, 0, repeat]))
            for repeat in range(self.n_repeats)
        )
        betas = tuple(sorted({float(beta) for beta in np.atleast_1d(self.betas)}))
        return {
            value: Plan(
                smoothed(problem, value),
                folds,
                betas,
                "nndsvd",
                self.search_tol,
                model.max_iter,
                seed=seed,
                given=statement.stated.given,
            )
            for value in sorted({float(value) for value in np.atleast_1d(self.smoothness)})
        }

    def _numbers(self, statement: VisitStatement, seed: int) -> list[int]:
        pooled = statement.problem.pooled()
        if isinstance(self.n_components, str):
            return first_candidates(pooled, suggested_count(pooled, seed))
        numbers = sorted({int(k) for k in np.atleast_1d(self.n_components)})
        highest = min(pooled.n, pooled.m)
        if not numbers or numbers[0] < 1 or numbers[-1] > highest:
            raise parameter_error(
                "n_components",
                f"={', '.join(map(str, numbers))} cannot be tried: each must lie between 1 and {highest}.",
                value=numbers,
            )
        return numbers


def _trials(plan: Plan, task: Task, smoothness: float) -> dict[str, Any]:
    trials = run_task(plan, task)
    return {
        "trials": [
            {"smoothness": smoothness, **{name: getattr(trial, name) for name in COLUMNS}} for trial in trials
        ]
    }
