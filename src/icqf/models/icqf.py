"""ICQF as a scikit-learn estimator, and ℓ1-NMF, which is its solver with the bounds off."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from icqf.core.certificate import score_tolerance, solve_scores_inside
from icqf.core.problem import Problem
from icqf.core.result import Certificate, Factorization
from icqf.data.about import About
from icqf.data.disclosure import SMALLEST_CATEGORY
from icqf.data.frames import AnswersInParts, as_pandas, is_dask_array, like, refuse_other_rows
from icqf.data.questionnaire import Item, Questionnaire
from icqf.data.settings import check_parameters, given_start, parameter_error
from icqf.data.validate import weights_of
from icqf.engines.base import Callback
from icqf.engines.threads import one_blas_thread
from icqf.errors import Advice, InputError, InputWarning, Worded
from icqf.models.multistart import fit_from_starts, starts_table
from icqf.models.score_intervals import ScoreDistribution, ScoreIntervals, score_intervals
from icqf.models.statement import Memory, NewAnswers, Source, StatedProblem, state
from icqf.models.summary import FitRecord, FitStatistics, Summary, checked_names, default_names

if TYPE_CHECKING:
    from icqf.io.model_file import StoredModel

Array = NDArray[Any]


# The paper's settings: section 4 and Appendix C ("We set ρ = 3 in all experiments").
PAPER: dict[str, Any] = {
    "item_weight": None,
    "n_init": 1,
    "init": "nndsvd",
    "penalty": "l1",
    "score_max": 1.0,
    "loading_max": "item_range",
    "reconstruction_max": "item_range",
    "solver": "admm",
    "inner": "sweep",
    "rho": 3.0,
    "tol": 1e-3,
    "stop": "objective",
}


def refuse_fixed(fixed: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    """Refuse settings that are fixed to those of the paper."""
    for name, value in more.items():
        if name in fixed and (value is not fixed[name] and value != fixed[name]):
            raise parameter_error(
                name,
                f"={value!r} contradicts the paper, which has {fixed[name]!r}; leave it out, or do without "
                "the paper's settings.",
                value=value,
            )


class UnsettledWarning(Worded, ConvergenceWarning):
    """A fit ended before scores and loadings had settled."""


class ICQF(TransformerMixin, BaseEstimator):
    """Interpretability Constrained Questionnaire Factorization.

    Describes answers (participants × items) by a few factors: scores W between 0 and 1 (how much of
    a factor a participant has) and loadings Q on the questionnaire's own answer scale (what the factor
    looks like as answers), together with confounds C. With X the answers counted from each item's
    lowest one, b_j the width of item j's range and R = [W, C]Qᵀ, it minimises

        ½ Σ_i ω_i Σ_j (X_ij − R_ij)²  +  β Σ_i ω_i ‖W_i‖₁  +  βγ ‖Q‖₁,     γ = (Σω / m) max b,

    over the observed answers, subject to 0 ≤ W ≤ 1, 0 ≤ Q_j ≤ b_j and 0 ≤ R_ij ≤ b_j. A missing
    answer (NaN) is left out of the sum and has no influence.

    Parameters
    ----------
    n_components : int
        The number of factors, k. `ICQFCV` chooses it.
    beta : float
        Strength of the sparsity penalty, β.
    loading_beta : float or None
        Strength of the penalty on the loadings, β_Q, if other than that on the scores (β_W, which is then
        `beta`); None is the same for both. A search varies `beta` alone.
    item_range : (lowest, highest), table, mapping or None
        The declared answer range: one pair for all items, a table or mapping with a pair for each
        item's name, or an array (m, 2). None takes the lowest and highest answer found, and says so.
    item_weight : {"range", "variance"}, array (m,) or None
        How items with different ranges are weighted. With "range", a difference as wide as the
        range counts alike for every item: answers and loadings are multiplied by s_j = max(b) / b_j inside
        the problem, and loadings are reported in each item's own units. "variance" divides by the standard
        deviation of the item's answers instead (by no less than a tenth of the range), an array multiplies
        by weights of one's own (only their ratios matter), and None counts a point as a point, so that a
        0–3 item outweighs a 0/1 item nine to one. With equal ranges, "range" and None are the same.
    confound_ranges : mapping, optional
        Known (lowest, highest) of continuous confounds, such as ``{"age": (5, 21)}``.
    intercept : bool
        Whether the model has an intercept.
    n_init : int or "auto"
        Number of starts; the fit with the lowest objective is kept. The first is `init`, then comes
        the other one of "nndsvd" and "rotated", then random ones. "auto" is three where these all find the
        same factors (`starts_`). Where they do not, twelve random starts go some of the way and the most
        promising of them to the end, and twelve more if the best solution was reached only once. "auto" is
        one where `init` is arrays. Where the answers are read in parts, "auto" tries the starts with 20 000
        participants, drawn at random, and continues with all participants from the best of these fits.
    penalty : {"l1", "l2", "l21"}
        ‖·‖₁, ½‖·‖², or the sum of the rows' Euclidean norms.
    score_max : float or None
        Highest score; None lifts the bound.
    loading_max : "item_range", float or None
        Highest loading: the item's range, a number, or no bound.
    reconstruction_max : "item_range" or None
        Whether reconstructed answers stay inside the item's range.
    solver : {"fast", "admm"}
        "fast" is the default; "admm" is the paper's procedure. Both reach the same objective.
    engine : {"local", "dask", "torch"} or Engine
        Where the iterations run: in threads of this machine; on a Dask cluster, where answers and scores stay
        with its workers (an `icqf.engines.Dask` names one); or, where many fits are compared, on a GPU. They
        reach the same solution, to the precision of the arithmetic.
    inner : {"cd", "fista", "admm", "sweep"}
        How ADMM solves its inner problems; "sweep" is a single sweep of coordinate descent in each iteration,
        from the NNDSVD of the answers as it is (missing ones as 0), as in the authors' program.
    rho : float or "adaptive"
        ADMM's penalty; below √2 it need not converge. "adaptive" is residual balancing: ρ is doubled or
        halved to keep the primal and dual residuals alike, never below √2, for the first 100 iterations.
    tol : float
        A start ends when no single loading would move by more than `tol` of its item's range, and no
        score by more than `tol`, in its own exact step (see `certificate_`). Such steps are small in a flat
        valley, too: the best fit is tested by an exchange of loadings between factors, and continued until
        its moves are ten times smaller where it does not come back (with n_init="auto", in any case).
    stop : {"certificate", "objective"}
        When a start ends: by `certificate_`, as described under `tol`; or, as in the paper, where the
        objective changes by less than `tol` of itself from one iteration to the next, which leaves it about
        half a percent above its limit. `converged_` then says only that.
    max_iter : int
        Most iterations of one start.
    init : {"nndsvd", "rotated", "random"} or (scores, loadings)
        The start: non-negative SVD, the positive part of a varimax-rotated SVD, random, or arrays of
        shape (n, k) and (m, k), such as ``(model.transform(X), model.components_.T)``.
    missing_confounds : {"error", "mean"}
        What to do with a participant whose confound is missing.
    smallest_category : int
        Fewest members of a category of a confound; a smaller one is refused, because the model would disclose
        their answers. Answers to an item that fewer of a category gave are left out of the fit, with a
        warning. 1 switches this off; see `icqf.data.confounds.ConfoundEncoder`.
    dtype : {"auto", "float32", "float64"}
        Arithmetic of the iterations: "auto" is double precision for tables of up to 5 000 answers, where it
        costs nothing, and single precision for larger ones, which it makes nearly twice as fast. Scores,
        loadings and the certificate are always double precision.
    random_state : int, RandomState or None
        Only random starts use it. The same number gives the same bytes.
    callback : callable, optional
        Called after each iteration with a `Progress` (iteration, max_iter, objective, excess, step).

    Attributes
    ----------
    components_ : array (k, m)
        Loadings, one row per factor, most explained variance first.
    loadings_ : DataFrame (m, k)
        The same, items × factors.
    factor_names_ : list of str
        factor1, factor2, … until `name_factors` gives them others.
    confound_loadings_ : DataFrame (m, c)
        The answering pattern that goes with each confound.
    confound_components_ : array (c, m)
        The same, one row per confound column.
    confound_names_ : list of str
    confound_encoder_ : ConfoundEncoder
        How confounds become columns between 0 and 1.
    solving_order_ : int array (k,)
        The place each factor had while scores were solved for; `transform` solves in that order, too.
    dtype_ : dtype
        The arithmetic that was used.
    fit_statistics_ : FitStatistics
        Squared errors, explained sums of squares and missing answers of the fit, as `summary` reports them.
    item_range_ : DataFrame (m, 2)
    item_scale_ : array (m,)
        What answers and loadings were multiplied by in the fit (see `item_weight`); 1 where items count as
        they are. Objective, trace and squared errors are in these units.
    objective_ : float
    certificate_ : Certificate
        How far any single score or loading could still move, what that would gain, and how far the
        loadings drift when factors have exchanged some of them.
    trace_ : DataFrame
        Objective, excess over the range and largest step, one row per iteration.
    starts_ : DataFrame
        One row per start: its name, the objective it reached, iterations, whether it settled (a random start
        that fell behind was left on the way), and, for each
        factor, the correlation of its loadings with those of its counterpart in the fit from that start.
        Starts that are as good and have other factors are a warning sign. Empty where loadings were averaged.
    replication_ : DataFrame or None
        How likely another study finds each factor, once `icqf.replication_probability` has estimated it.
    n_averaged_ : int
        Fits that the loadings are the average of, to resampled participants (`icqf.consensus`) or of several
        sites (`icqf.analyses.pool`); 0 for a fit.
    converged_ : bool
        Whether `certificate_` holds at `tol` and the loadings do not drift by more than 0.02 of an item's
        range (more below 400 participants: 0.4 / √n). It does not say that no other start would end lower.
    n_iter_ : int
    n_participants_ : int
        Participants who answered anything.
    score_distribution_ : ScoreDistribution or None
        How the scores are distributed, from which `score_intervals` is simulated; no single participant's.
        None below 100 participants, where scores stayed on a cluster, and for averaged models.
    codebook_ : StoredCodebook
        Wordings, directions and missing codes of the items, and the name of the ids, when the model was
        fitted to a questionnaire or loaded from a file that holds them.
    about_ : About
        What is stated about instrument, sample, licence and citation; `set_about` states it.
    record_ : FitRecord
        Version of icqf, whether answers were weighted, and how the number of factors was chosen.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_synthetic
    >>> answers = make_synthetic(noise=0.1, random_state=0).answers
    >>> model = ICQF(n_components=10, item_range=(0, 100)).fit(answers)
    >>> model.loadings_.shape, model.converged_
    ((100, 10), True)
    >>> scores = model.transform(answers)
    >>> float(scores.min()) >= 0 and float(scores.max()) <= 1
    True
    """

    score_distribution_: ScoreDistribution | None = None  # files of earlier versions have none

    def __init__(
        self,
        n_components: int | None = None,
        *,
        beta: float = 0.1,
        loading_beta: float | None = None,
        item_range: Any = None,
        item_weight: Any = "range",
        confound_ranges: Mapping[str, tuple[float, float]] | None = None,
        intercept: bool = True,
        n_init: int | Literal["auto"] = "auto",
        penalty: str = "l1",
        score_max: float | None = 1.0,
        loading_max: float | Literal["item_range"] | None = "item_range",
        reconstruction_max: Literal["item_range"] | None = "item_range",
        solver: Literal["fast", "admm"] = "fast",
        engine: Any = "local",
        inner: Literal["cd", "fista", "admm", "sweep"] = "cd",
        rho: float | Literal["adaptive"] = 3.0,
        tol: float = 1e-3,
        stop: Literal["certificate", "objective"] = "certificate",
        max_iter: int = 500,
        init: Any = "nndsvd",
        missing_confounds: Literal["error", "mean"] = "error",
        smallest_category: int = SMALLEST_CATEGORY,
        dtype: Any = "auto",
        random_state: Any = 0,
        callback: Callback | None = None,
    ) -> None:
        self.n_components = n_components
        self.beta = beta
        self.loading_beta = loading_beta
        self.item_range = item_range
        self.item_weight = item_weight
        self.confound_ranges = confound_ranges
        self.intercept = intercept
        self.n_init = n_init
        self.penalty = penalty
        self.score_max = score_max
        self.loading_max = loading_max
        self.reconstruction_max = reconstruction_max
        self.solver = solver
        self.engine = engine
        self.inner = inner
        self.rho = rho
        self.tol = tol
        self.stop = stop
        self.max_iter = max_iter
        self.init = init
        self.missing_confounds = missing_confounds
        self.smallest_category = smallest_category
        self.dtype = dtype
        self.random_state = random_state
        self.callback = callback

    @classmethod
    def paper(cls, n_components: int | None = None, **more: Any) -> Self:
        """The model with the paper's settings, to reproduce it exactly.

        ADMM with ρ = 3, one sweep of coordinate descent at a time, stopped where the objective changes by
        less than 1e-3 of itself, from one NNDSVD start; items point for point; all bounds. `trace_` is that
        of the authors' program; then scores are solved for exactly and bounds are made exact, as in any fit.
        `ICQFCV.paper` adds the cross-validation. Other values of these settings are refused in `more`.

        Examples
        --------
        >>> from icqf import ICQF
        >>> ICQF.paper(8)
        ICQF(inner='sweep', item_weight=None, n_components=8, n_init=1, solver='admm',
             stop='objective')
        """
        refuse_fixed(PAPER, more)
        return cls(n_components, **{**more, **PAPER})

    # --- fitting -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, confounds: Any = None, sample_weight: Any = None) -> ICQF:
        """Factorize the answers.

        Parameters
        ----------
        X : table, array (n, m), Questionnaire, or what is read in parts
            Answers; NaN or NA is missing. Tables of pandas, polars and the like are taken. A
            questionnaire brings its ranges, confounds and weights, unless others are given, and its
            reverse-keyed items are reversed. A path (a Parquet, Arrow or CSV file, or a folder of Parquet
            files), an Arrow dataset and a memory-mapped array (in whole numbers, -1 is missing) are read in
            parts and never held whole; of a file, all columns but ids and confounds are items. A dask array
            is read in parts, too, or stays with its cluster's workers where the engine is "dask".
        confounds : table or list of str, optional
            Age, sex and the like, one row per participant in the same order; of a file, also the names of
            its columns.
        sample_weight : array (n,), optional
            Survey weights; a weight of 2 is the same as the participant twice.
        """
        stated = self.state(X, confounds=confounds, sample_weight=sample_weight)
        return warned_if_empty(self.keep(stated, self.solve(stated)))

    def fit_transform(
        self, X: Any, y: Any = None, *, confounds: Any = None, sample_weight: Any = None
    ) -> Any:
        """Factorize the answers and return the scores (n, k) that the fit found.

        `transform` gives the same scores for the same participants. Those who answered nothing get NaN.
        """
        stated = self.state(X, confounds=confounds, sample_weight=sample_weight)
        factorization = self.solve(stated)
        return scores_of_fit(
            warned_if_empty(self.keep(stated, factorization)), stated, factorization, X, confounds
        )

    def state(self, X: Any, *, confounds: Any = None, sample_weight: Any = None) -> StatedProblem:
        """Check parameters and data and state the problem; the model does not change.

        Participants without answers are left out, with a warning, and so are those with a weight of 0. A
        stated problem is returned with this model's β.
        """
        check_parameters(self)
        if isinstance(X, StatedProblem):
            return replace(X, problem=X.problem.with_beta(float(self.beta)))
        return state(self, self._source(X, confounds, sample_weight))

    def solve(self, stated: StatedProblem) -> Factorization:
        """The best factorization of a stated problem, with this model's number of factors, β and starts."""
        problem = stated.problem.with_beta(float(self.beta))
        k = self._number_of_factors(problem)
        init = self.init
        if not isinstance(init, str):
            init = given_start(init, stated.kept, (problem.n, k), (problem.m, k))
        best = fit_from_starts(self, problem, k, init)
        if not best.converged:
            warnings.warn(_unsettled(best, self.tol), stacklevel=3)
        return best

    def keep(self, stated: StatedProblem, factorization: Factorization) -> ICQF:
        """Set the fitted attributes from a stated problem and a factorization of it."""
        problem, loadings = stated.problem, stated.problem.own_loadings(factorization.factors.loadings)
        k = len(loadings) - problem.c
        self.n_features_in_ = problem.m
        if stated.named:
            self.feature_names_in_ = np.array(stated.items, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self.item_range_ = pd.DataFrame(stated.ranges, index=list(stated.items), columns=["min", "max"])
        self.item_scale_ = np.ones(problem.m) if problem.scaling is None else problem.scaling.scale
        self.confound_encoder_ = stated.encoder
        self.confound_names_ = list(stated.encoder.names)
        self.components_ = loadings[:k]
        self.confound_components_ = loadings[k:]
        self.solving_order_ = factorization.order
        self.dtype_ = np.dtype(problem.dtype)
        self.objective_ = factorization.objective
        self.certificate_: Certificate = factorization.certificate
        self.trace_ = pd.DataFrame(factorization.trace.columns()).rename_axis("iteration")
        self.factor_names_ = default_names(k)
        self.starts_ = starts_table(factorization.starts, self.factor_names_)
        self.replication_: pd.DataFrame | None = None
        self.n_averaged_ = 0
        self.converged_ = factorization.converged
        self.n_iter_ = factorization.n_iter
        self.n_participants_ = problem.n
        self.codebook_ = stated.codebook
        self.record_ = FitRecord(weighted=stated.weighted)
        self.fit_statistics_ = FitStatistics(
            factorization.fit.sse,
            factorization.fit.sst,
            factorization.fit.explained,
            problem.n - problem.observations.answer_counts(),
        )
        self.score_distribution_ = ScoreDistribution.of(
            problem, factorization.factors.scores, factorization.fit
        )
        return self

    def _source(self, X: Any, confounds: Any, sample_weight: Any) -> Source:
        """Where these answers are."""
        if is_dask_array(X):
            from icqf.models.sources import OnCluster, cluster_of

            cluster = cluster_of(self.engine)
            if cluster is not None:
                return OnCluster(X, cluster, confounds, sample_weight)
        parts, confounds = in_parts(X, confounds)
        if parts is not None:
            from icqf.models.sources import InParts

            return InParts(parts, confounds, sample_weight)
        return Memory(X, confounds, sample_weight)

    def _number_of_factors(self, problem: Problem) -> int:
        k = self.n_components
        if k is None:
            raise InputError("Set n_components, as in n_components=8, or let ICQFCV choose.")
        if k > min(problem.n, problem.m):
            shape = f"it has {problem.n} sample(s) with answers and {problem.m} feature(s)"
            most = f"ask for {min(problem.n, problem.m)} or fewer."
            raise parameter_error("n_components", f"={k} is more than this table can carry: {shape}; {most}")
        return int(k)

    # --- using the fitted model ----------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def transform(self, X: Any, *, confounds: Any = None) -> Any:
        """Scores (n, k) of these participants, estimated one by one with the loadings fixed.

        A participant who answered nothing gets NaN, with a warning. The scores of a dask array are a dask
        array, computed where its parts are.
        """
        check_is_fitted(self)
        if is_dask_array(X):
            from icqf.models.sources import lazy_scores

            return lazy_scores(self, X, confounds)
        source, confounds = in_parts(X, confounds)
        if source is not None:
            return self._transform_in_parts(source, confounds)
        stated = state(self, NewAnswers(self, X, confounds))
        scores = np.full((len(stated.kept), len(self.components_)), np.nan)
        if stated.kept.any():
            scores[stated.kept] = self.solve_scores(stated.problem).T
        return scores

    def _transform_in_parts(self, source: AnswersInParts, confounds: Any) -> Array:
        table, first, scores = as_pandas(confounds), 0, []
        for part in source.parts():
            answers, design = part.answers, part.confounds
            n = answers.n_participants if isinstance(answers, Questionnaire) else len(answers)
            if table is not None:
                design = pd.DataFrame(table).iloc[first : first + n]
                if len(design) == n and isinstance(answers, pd.DataFrame):
                    design = design.set_axis(answers.index)
            first += n
            if design is None or len(design) == n:
                scores.append(np.asarray(self.transform(answers, confounds=design)))
        if table is not None and first != len(table):
            raise InputError(
                f"There are {first} participants but {len(table)} rows of confounds; give one row per "
                "participant, in the same order."
            )
        return np.concatenate(scores)

    def score_intervals(self, X: Any, *, confounds: Any = None, level: float = 0.9) -> ScoreIntervals:
        """Scores with intervals that hold the true score with this probability, and their information.

        The true score is what the model would find if the same items were answered without error. The
        interval comes from simulated participants like those of the fit, who are scored by the items that
        this participant answered; fewer answers give wider intervals. A score about which the answers say
        next to nothing is NaN, and `reasons` tells why. The first call takes a second for the simulation,
        which has a fixed seed.

        Parameters
        ----------
        X, confounds
            Answers and confounds in memory, as for `transform`.
        level : float
            Probability of the interval, at least 0.5.

        Examples
        --------
        >>> from icqf import ICQF
        >>> from icqf.datasets import load_demo
        >>> study = load_demo()
        >>> found = ICQF(4).fit(study).score_intervals(study)
        >>> list(found.table().columns[:4])
        ['factor1', 'factor1_low', 'factor1_high', 'factor1_information']
        >>> bool((found.low <= found.high).all(axis=None))
        True
        """
        return score_intervals(self, X, confounds=confounds, level=level)

    def solve_scores(self, problem: Problem) -> Array:
        """Scores (k, n) for a stated problem, with the factors in the order of the fit."""
        loadings = np.concatenate(
            [self.components_[np.argsort(self.solving_order_)], self.confound_components_]
        )
        loadings = problem.scaled_loadings(loadings)
        with one_blas_thread():
            scores = solve_scores_inside(problem, loadings, tol=score_tolerance(self.tol))
        return scores[self.solving_order_]

    def inverse_transform(self, X: Any, *, confounds: Any = None) -> Any:
        """Reconstructed answers (n, m) in the items' own units from scores X (n, k); a table for a table."""
        check_is_fitted(self)
        try:
            scores = np.asarray(X, dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(f"The scores must be numbers ({error}).") from None
        if scores.ndim != 2 or scores.shape[1] != len(self.components_):
            raise InputError(
                f"The scores have the shape {scores.shape}; the model has {len(self.components_)} factors, "
                f"so give (participants, {len(self.components_)})."
            )
        refuse_other_rows(X, to="scores", confounds=confounds)
        design = self.confound_encoder_.transform(confounds, n_rows=len(scores))
        R = scores @ self.components_ + design @ self.confound_components_
        low, high = self.item_range_["min"].to_numpy(), self.item_range_["max"].to_numpy()
        answers = low + R
        if self.reconstruction_max == "item_range":
            answers = np.minimum(answers, high)
        return like(X, answers, list(self.item_range_.index))

    def score(self, X: Any, y: Any = None, *, confounds: Any = None, sample_weight: Any = None) -> float:
        """Minus the mean squared error of the observed answers, in the units of the fit (`item_scale_`)."""
        check_is_fitted(self)
        refuse_other_rows(X, sample_weight=sample_weight)
        stated = state(self, NewAnswers(self, X, confounds))
        problem, filled = stated.problem, stated.kept
        if not filled.any():
            raise InputError("No participant in this table answered anything, so there is nothing to score.")
        weights = None if sample_weight is None else weights_of(sample_weight, filled)
        loadings = problem.scaled_loadings(np.concatenate([self.components_, self.confound_components_]))
        A = problem.with_confounds(self.solve_scores(problem), np.float64)
        total, count = 0.0, 0.0
        for block in problem.precise_blocks():
            D = block.masked(block.X - A[:, block.rows].T @ loadings)
            weight = np.ones(len(D)) if weights is None else weights[filled][block.rows]
            total += float(weight @ (D**2).sum(axis=1))
            count += float(
                weight @ (block.O.sum(axis=1) if block.O is not None else np.full(len(D), D.shape[1]))
            )
        return -total / count

    @property
    def loadings_(self) -> pd.DataFrame:
        """Loadings, items × factors."""
        check_is_fitted(self)
        return pd.DataFrame(
            self.components_.T, index=list(self.item_range_.index), columns=self.get_feature_names_out()
        )

    @property
    def confound_loadings_(self) -> pd.DataFrame:
        """Loadings of the confounds, items × confound columns."""
        check_is_fitted(self)
        return pd.DataFrame(
            self.confound_components_.T, index=list(self.item_range_.index), columns=self.confound_names_
        )

    @property
    def weighted_loadings_(self) -> pd.DataFrame:
        """Loadings, items × factors, in the units of the fit (`item_scale_`), as used for matching."""
        return self.loadings_.mul(self.item_scale_, axis=0)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The factors' names: factor1, factor2, … or those given with `name_factors`."""
        check_is_fitted(self)
        return np.array(self.factor_names_, dtype=object)

    def name_factors(self, names: Sequence[str] | Mapping[str, str]) -> Self:
        """Name the factors: one name each in their order, or a mapping from old to new names."""
        check_is_fitted(self)
        old = self.factor_names_
        new = checked_names(old, names, taken=self.confound_names_)
        renamed = dict(zip(old, new, strict=True))
        self.factor_names_ = new
        self.starts_ = self.starts_.rename(columns=renamed)
        if self.replication_ is not None:
            self.replication_ = self.replication_.rename(index=renamed)
        return self

    @property
    def about_(self) -> About:
        """What is stated about instrument, sample, licence and citation."""
        check_is_fitted(self)
        return self.codebook_.about

    def set_about(self, **fields: str) -> Self:
        """State fields of `icqf.data.About`, as in ``licence="CC-BY-4.0"``; an empty text takes one back."""
        check_is_fitted(self)
        self.codebook_ = replace(self.codebook_, about=self.codebook_.about.changed(fields))
        return self

    def summary(self, *, n_top: int = 5) -> Summary:
        """Each factor's share of variance and top items, and each item's fit."""
        check_is_fitted(self)
        return Summary.of(self, n_top=n_top)

    def describe(self) -> StoredModel:
        """The fitted model as plain values, as in a model file, without participants' data."""
        check_is_fitted(self)
        settings = set(ICQF().get_params(deep=False)) - {"engine"}  # not a property of the model
        from icqf.models.persistence import description

        return description(self, sorted(settings))

    def save(self, path: str | os.PathLike[str], *, items: Iterable[Item] = (), id: str = "") -> None:
        """Write the fitted model to a file. It holds no participant's data.

        Parameters
        ----------
        items : iterable of Item, optional
            The codebook, saved in the file so that new answers are read in the same way. A model that was
            fitted to a questionnaire or loaded from a file already has one (`codebook_`).
        id : str
            Name of the id column.
        """
        from icqf.io.model_file import write_model
        from icqf.models.persistence import described

        stored, items = self.describe(), tuple(items)
        if items or id:
            known = self.codebook_
            given = replace(known, items=items or known.items, id=id or known.id)
            stored = replace(stored, codebook=described(self, given))
        write_model(path, stored)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote. An ℓ1-NMF is also read as an `ICQF` without bounds."""
        from icqf.io.model_file import damage_refused, read_model
        from icqf.models.persistence import rebuild

        stored = read_model(path)
        if "longitudinal" in stored.header:
            raise InputError(
                f"{os.fspath(path)}: this is a model of repeated visits, whose loadings change with age.",
                code="longitudinal-model",
                remedy=Advice(
                    "Read it with icqf.models.LongitudinalICQF.load.", typed="Use it with icqf score."
                ),
            )
        with damage_refused(path):
            return rebuild(cls, stored)


def in_parts(X: Any, confounds: Any = None) -> tuple[AnswersInParts | None, Any]:
    """The parts of a file, folder, Arrow dataset, memory map or dask array (else None), and the confounds."""
    if isinstance(X, (str, os.PathLike)) or hasattr(X, "get_fragments"):
        from icqf.io.readers.streams import parts_of_file

        names = [confounds] if isinstance(confounds, str) else confounds
        named = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)
        return parts_of_file(X, names if named else ()), None if named else confounds
    return AnswersInParts.of(X), confounds


def _unsettled(found: Factorization, tol: float) -> UnsettledWarning:
    """What is said of a fit that has not settled."""
    certificate, drift = found.certificate, found.certificate.drift
    if drift is not None and certificate.holds(tol):
        return UnsettledWarning(
            f"The answers leave the loadings open: others that differ by up to {drift:.2g} of an item's "
            "range describe them as well.",
            code="not-settled",
            remedy=Advice("Take fewer factors, or a larger {beta}."),
        )
    return UnsettledWarning(
        f"The fit stopped after {found.n_iter} iterations before it settled: a score would still "
        f"move by {certificate.score_step:.2g} and a loading by {certificate.loading_step:.2g} "
        f"of its item's range (tol={tol:g}).",
        code="not-settled",
        remedy=Advice("Raise {max_iter}, or loosen {tol} if that is close enough."),
    )


def warned_if_empty(model: ICQF) -> ICQF:
    """The fitted model, after a warning where the penalty has left nothing of its factors."""
    if not model.components_.any() and model.fit_statistics_.sst.any():
        warnings.warn(
            InputWarning(
                f"All loadings are 0: the penalty beta={model.beta:g} outweighs whatever factors would "
                "explain of the answers.",
                code="all-zero",
                remedy=Advice("Lower {beta}."),
            ),
            stacklevel=3,
        )
    return model


def scores_of_fit(
    model: ICQF, stated: StatedProblem, factorization: Factorization, X: Any, confounds: Any
) -> Any:
    """Scores (n, k) of all participants of the table that `model` was just fitted to."""
    without_weight = (stated.answered & ~stated.kept).any()  # who had no part in the fit
    if without_weight or not stated.problem.observations.here:
        # what there is to say about these data was said by the fit
        with warnings.catch_warnings(action="ignore"):
            return model.transform(X, confounds=confounds)
    scores = np.full((len(stated.kept), len(model.components_)), np.nan)
    scores[stated.kept] = factorization.factors.scores.T
    return scores


class L1NMF(ICQF):
    """Non-negative matrix factorization with ℓ1 penalties, missing answers left out.

    The paper's main baseline: the same objective and solver as `ICQF`, without bounds on scores,
    loadings and reconstructed answers, without confounds and without an intercept. On complete data
    the objective is that of scikit-learn's NMF with ``alpha_W = beta / m``, ``alpha_H = beta * b / m``
    (b the answers' range) and ``l1_ratio = 1``.

    Parameters
    ----------
    n_components, beta, item_range, item_weight, n_init, engine, tol, max_iter, init, dtype, random_state,
    callback
        As for `ICQF`. The range only sets the zero point and scales the penalty and, where ranges differ, the
        items.

    Examples
    --------
    >>> from icqf.models import L1NMF
    >>> from icqf.datasets import make_synthetic
    >>> answers = make_synthetic(n=100, m=40, k=4, noise=0.1, random_state=0).answers
    >>> L1NMF(4, item_range=(0, 100)).fit(answers).loadings_.shape
    (40, 4)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        beta: float = 0.1,
        item_range: Any = None,
        item_weight: Any = "range",
        n_init: int | Literal["auto"] = "auto",
        engine: Any = "local",
        tol: float = 1e-3,
        max_iter: int = 500,
        init: Literal["nndsvd", "rotated", "random"] | tuple[Any, Any] = "nndsvd",
        dtype: Any = "auto",
        random_state: Any = 0,
        callback: Callback | None = None,
    ) -> None:
        self.n_components = n_components
        self.beta = beta
        self.item_range = item_range
        self.item_weight = item_weight
        self.n_init = n_init
        self.engine = engine
        self.tol = tol
        self.max_iter = max_iter
        self.init = init
        self.dtype = dtype
        self.random_state = random_state
        self.callback = callback

    loading_beta = None
    stop = "certificate"
    confound_ranges = None
    intercept = False
    penalty = "l1"
    score_max = None
    loading_max = None
    reconstruction_max = None
    solver = "fast"
    inner = "cd"
    rho = 3.0
    missing_confounds = "error"
    smallest_category = 1
