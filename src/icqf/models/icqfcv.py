"""ICQFCV: one call that picks the number of factors and the penalty."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from icqf.baselines.retention import FactorCount
from icqf.core.problem import Problem
from icqf.core.result import Factorization
from icqf.data.frames import refuse_other_rows
from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import BETAS, RULES, check_parameter, parameter_error
from icqf.engines.choice import engine_of
from icqf.engines.journal import WorkJournal, fingerprint
from icqf.engines.parallel import spread_over
from icqf.engines.progress import Progress
from icqf.engines.threads import one_blas_thread
from icqf.errors import Advice, InputError, InputWarning, counted
from icqf.models.icqf import ICQF, refuse_fixed, scores_of_fit, warned_if_empty
from icqf.models.multistart import in_memory, solver_of
from icqf.models.score_intervals import ScoreIntervals
from icqf.models.search import (
    Plan,
    Race,
    SearchJournal,
    as_table,
    blocks_of,
    first_candidates,
    hidden_fit_of,
    replicable_curve,
    suggested_count,
)
from icqf.models.selection_rules import (
    Choice,
    Evidence,
    best_of_each,
    best_row,
    choice_frequencies,
    choose,
    count_of,
    level_with,
)
from icqf.models.statement import StatedProblem
from icqf.resampling import tolerances
from icqf.resampling.bootstrap import best_fits, stability_curve
from icqf.resampling.folds import folds_of, halves_of, units_of

Array = NDArray[Any]
FEWEST = 30  # participants; below, chance decides which candidate predicts best
MOST_REPEATS = 10  # divisions into folds, where candidates race
PAPER_SEARCH: dict[str, Any] = {  # section 3.2 of the paper and its Appendix E
    "betas": BETAS,
    "n_splits": 10,
    "row_blocks": 10,
    "col_blocks": 10,
    "n_repeats": 1,
    "rule": "min",
    "thorough": False,
    "search": "estimator",
}


class ICQFCV(TransformerMixin, BaseEstimator):
    """ICQF with the number of factors and the penalty chosen by blockwise cross-validation.

    The table is cut into blocks of participants × items, the blocks are dealt into folds, and every
    candidate is judged by how well it predicts the answers of the fold that it did not see.

    Parameters
    ----------
    estimator : ICQF, optional
        The model to choose for, with all settings that are not chosen, such as
        ``ICQF(item_range=(0, 2), penalty="l2")`` or ``L1NMF()``; ``ICQF()`` by default. Its own
        `n_components` and `beta` are not used; `callback` hears of the final fit, and `random_state` seeds
        its starts.
    n_components : "auto", sequence of int, or int
        The numbers of factors to try. "auto" tries those around the number that parallel analysis
        suggests, and further ones while the best lies at the edge.
        With fewer than 30 participants nothing can be chosen, and it is one factor, with a warning.
    betas : "auto" or sequence of float
        The penalties to try. "auto" tries 0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3 and 0.5, and twice the strongest
        (up to 8) while that is the best; with fewer than 30 participants, 0.1 alone.
    n_splits : int
        Number of folds.
    row_blocks, col_blocks : int, optional
        Number of blocks each way; by default 100 blocks of participants, and each item for itself.
    n_repeats : "auto" or int
        In how many divisions into folds candidates are compared. "auto" gives up candidates that are out of
        the running, and repeats the division for the others, up to ten times, until the number of factors no
        longer depends on it. A number fits every candidate in every fold of so many divisions.
    rule : {"min", "one_se", "stable", "replicable"}
        "min" is the lowest error (the fewest factors, if errors differ by less than 1 part in 10 000);
        "one_se" the fewest factors within one standard error of it; "stable", among those within one standard
        error (or within the share `within`), the number whose factors agree best between halves of the
        sample; "replicable", of the numbers up to the one with the lowest error,
        the one with most factors that an independent study is expected to find again, where each factor
        costs 0.3 (see `icqf.replication_probability`).
    within : float, optional
        For "one_se" and "stable": the share of the lowest error that counts as close, such as 0.01,
        instead of one standard error.
    stability : bool
        Whether to compute `stability_` even if the rule does not need it.
    n_halves : int
        How often the sample is halved for that, and for "replicable".
    thorough : bool
        Whether the fits that are compared also begin at a second start, one that grows factor by factor out
        of what is left unexplained; the better fit to the visible answers counts. It costs about half as much
        again, and finds the number of factors more often where there are many or answers are few and noisy.
    search_tol : float
        Tolerance of the fits that are compared; the final fit uses the estimator's `tol`.
    search : {"fast", "estimator"}
        How the fits that are compared are made: with the fast solver and without the bound on reconstructed
        answers (predictions are clipped instead), each from where the last penalty's ended; or with the
        estimator's own solver, bounds, `tol` and `stop`, each from its own start, which takes much longer.
    engine : {"local", "dask", "torch"} or Engine, optional
        Where the fits run, as for `ICQF`; None leaves it to the estimator.
    n_jobs : int, optional
        Processes to spread the fits over (joblib). The results do not depend on it.
    checkpoint : path, optional
        Journal of finished fits, from which the same call continues after an interruption.
    callback : callable, optional
        Called with a `Progress` (done, total, best) as fits finish.
    random_state : int, RandomState or None
        Folds, halves, resamples and the starts of the fits that are compared.

    Attributes
    ----------
    best_estimator_ : ICQF
        Fitted to all data with the chosen number of factors and penalty.
    n_components_, beta_, n_iter_ : int, float, int
        The choice, and the iterations of its final fit.
    cv_results_ : DataFrame
        One row per fit: repeat, fold, n_components, beta, error, n_hidden, weight, n_iter, seconds.
    errors_ : DataFrame
        Mean error of each candidate, its standard error (between participants), and the number of folds in
        which it was fitted. Errors of candidates that were given up are compared in the folds they had.
    choice_ : Choice
        How often each candidate would be chosen with another seed, which divides the same answers anew.
    sample_choice_ : Choice
        How often each candidate would be chosen in other samples of this size from the same population.
    level_ : dict
        The numbers of factors next to the chosen one that predict hidden answers as well (their errors differ
        by less than the standard error of the difference), each with the loadings of a fit, items × factors,
        in the units of `ICQF.weighted_loadings_`.
    evidence_ : Evidence
        What the fits say about the candidates, from which all of the above is computed.
    stability_ : DataFrame or None
        Agreement between halves for each number of factors at its best penalty.
    replicable_ : DataFrame or None
        For each number of factors up to the one that predicts best: the replication probability of the
        `weakest` factor, how many factors another study is expected to have `found`, and the `gain` (those
        less 0.3 for each factor).
    count_ : FactorCount
        The choice with its curve and reason.
    hidden_ : HiddenFit or None
        How well the choice predicted hidden answers, by fold of the first repeat and item. None where
        participants or items are fewer than folds, or where the fits were judged on a GPU.
    parallel_ : FactorCount or None
        Parallel analysis, if it suggested the numbers to try.

    Examples
    --------
    >>> from icqf import ICQF, ICQFCV
    >>> from icqf.datasets import make_synthetic
    >>> answers = make_synthetic(n=100, m=40, k=4, noise=0.1, random_state=0).answers
    >>> model = ICQF(item_range=(0, 100))
    >>> search = ICQFCV(model, n_components=[3, 4, 5], betas=[0.1], n_splits=5, random_state=0).fit(answers)
    >>> search.n_components_
    4
    >>> search.choice_
    k = 4 in 99%, 5 in 1%
    """

    def __init__(
        self,
        estimator: ICQF | None = None,
        *,
        n_components: Literal["auto"] | Sequence[int] | int = "auto",
        betas: Literal["auto"] | Sequence[float] = "auto",
        n_splits: int = 10,
        row_blocks: int | None = None,
        col_blocks: int | None = None,
        n_repeats: Literal["auto"] | int = "auto",
        rule: str = "min",
        within: float | None = None,
        stability: bool = False,
        n_halves: int = 6,
        thorough: bool = False,
        search_tol: float = tolerances.SEARCH,
        search: Literal["fast", "estimator"] = "fast",
        engine: Any = None,
        n_jobs: int | None = None,
        checkpoint: str | os.PathLike[str] | WorkJournal | None = None,
        callback: Callable[[Progress], object] | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.betas = betas
        self.n_splits = n_splits
        self.row_blocks = row_blocks
        self.col_blocks = col_blocks
        self.n_repeats = n_repeats
        self.rule = rule
        self.within = within
        self.stability = stability
        self.n_halves = n_halves
        self.thorough = thorough
        self.search_tol = search_tol
        self.search = search
        self.engine = engine
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state

    @classmethod
    def paper(cls, estimator: ICQF | None = None, **more: Any) -> Self:
        """The search with the paper's settings, for `ICQF.paper` unless another estimator is given.

        One division of 10 × 10 blocks into ten folds; every candidate is fitted in every fold, with ADMM and
        all bounds, and the lowest error wins. β is one of 0 and those in the paper's appendix (0.01, 0.02,
        0.05, 0.1, 0.2, 0.3, 0.5), unless others are given. Unlike in the authors' program, the start of a fit
        sees no hidden answer.

        Examples
        --------
        >>> from icqf import ICQF, ICQFCV
        >>> ICQFCV.paper(ICQF.paper(item_range=(0, 4)), n_components=[2, 3]).search
        'estimator'
        """
        refuse_fixed({name: value for name, value in PAPER_SEARCH.items() if name != "betas"}, more)
        return cls(ICQF.paper() if estimator is None else estimator, **{**PAPER_SEARCH, **more})

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self, X: Any, y: Any = None, *, confounds: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> ICQFCV:
        """Choose the number of factors and the penalty, and fit with them.

        Parameters
        ----------
        X, confounds, sample_weight
            As for `ICQF.fit`. Where the answers are read in parts, the choice rests on 20 000 participants
            drawn at random; the final fit is of all of them.
        groups : array (n,), optional
            Family or site: participants of one group are always hidden together. None: those of the
            questionnaire, if X is one.
        """
        self._search(X, confounds, sample_weight, groups)
        return self

    def _search(
        self, X: Any, confounds: Any, sample_weight: Any, groups: Any
    ) -> tuple[StatedProblem, Factorization]:
        self._check()
        if isinstance(X, Questionnaire) and groups is None:
            groups = X.groups
        refuse_other_rows(X, groups=groups)
        stated = self._estimator().state(X, confounds=confounds, sample_weight=sample_weight)
        return stated, self.solve(stated, groups=groups)

    @one_blas_thread()
    def solve(self, stated: StatedProblem, *, groups: Any = None) -> Factorization:
        """Choose for a problem that `ICQF.state` stated, and fit; returns the factorization of the choice."""
        self._check()
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        model = self._estimator()
        problem = in_memory(stated.problem, np.random.default_rng([seed, 4]))
        if groups is not None and problem is not stated.problem:
            raise InputError("groups cannot be used with answers that are read in parts.")
        problem = problem.with_confounds_in_order()
        together = units_of(problem, groups, stated.kept)
        self._warn_if_few(problem.n)
        plan = self._plan(model, replace(stated, problem=problem), together, seed)
        journal = None if self.checkpoint is None else SearchJournal(self.checkpoint, fingerprint(plan))
        self.parallel_: FactorCount | None = None
        ks = self._candidates(problem, seed)
        with spread_over(engine_of(model.engine), self.n_jobs, shared=[plan]) as n_jobs:
            race = Race(
                plan,
                ks,
                widen=isinstance(self.n_components, str) and problem.n >= FEWEST,
                strengthen=isinstance(self.betas, str) and problem.n >= FEWEST,
                journal=journal,
                n_jobs=n_jobs,
                callback=self.callback,
            )
            racing = isinstance(self.n_repeats, str)
            trials = race.run(self.rule, self.within) if racing else race.run_all()
            self.cv_results_ = as_table(trials)
            self.evidence_ = evidence = Evidence(self.cv_results_, blocks_of(trials))
            self.errors_ = evidence.table()
            needed, given = RULES.load(self.rule).looks_at or (), (model, problem, together, seed, n_jobs)
            self.stability_ = self._stability(*given) if self.stability or "stability" in needed else None
            self.replicable_ = self._replicable(*given) if "replicable" in needed else None
        looked_at: dict[str, Any] = {"stability": self.stability_, "replicable": self.replicable_}
        looked_at["within"] = self.within
        self.n_components_, self.beta_ = choose(self.errors_, self.rule, **looked_at)
        self.choice_: Choice
        self.sample_choice_: Choice
        self.choice_, self.sample_choice_ = (
            choice_frequencies(
                evidence, noise, self.rule, rng=np.random.default_rng([seed, part]), **looked_at
            )
            for part, noise in ((2, evidence.between_divisions()), (6, evidence.between_samples()))
        )
        self.level_ = self._level(model, replace(stated, problem=problem), evidence)
        self.count_ = count_of(
            self.errors_,
            self.rule,
            self.n_components_,
            self.sample_choice_,
            self.stability_,
            self.replicable_,
        )
        self.hidden_ = hidden_fit_of(plan, trials, self.n_components_, self.beta_)
        model.set_params(n_components=self.n_components_, beta=self.beta_)
        if self.callback is not None:
            self.callback(Progress(0, 0, what="Fitting the choice"))
        found = model.solve(stated)
        self.best_estimator_ = warned_if_empty(model.keep(stated, found))
        model.record_ = model.record_.chosen_by(self)
        self.n_iter_ = model.n_iter_
        return found

    def _check(self) -> None:
        for name in ("rule", "n_splits", "thorough", "search"):
            check_parameter(name, getattr(self, name))
        if not isinstance(self.n_repeats, str) or self.n_repeats != "auto":
            check_parameter("n_repeats", self.n_repeats)
        if isinstance(self.betas, str) and self.betas != "auto":
            raise InputError(f"betas must be 'auto' or the penalties to try, not {self.betas!r}.")
        if len(self.betas) == 0:
            raise InputError("betas must hold at least one penalty.")
        for beta in () if isinstance(self.betas, str) else self.betas:
            check_parameter("beta", beta)
        if isinstance(self.n_components, str) and self.n_components != "auto":
            raise InputError(f"n_components must be 'auto' or the numbers to try, not {self.n_components!r}.")
        if self.checkpoint is not None and self.random_state is None:
            raise InputError(
                "With a checkpoint, give a random_state, such as 0: without one the next run would draw "
                "other folds and could not continue the journal."
            )

    def _estimator(self) -> ICQF:
        """The estimator to choose for, unfitted."""
        if self.estimator is None:
            return ICQF(engine=self.engine or "local", random_state=self.random_state)
        if not isinstance(self.estimator, ICQF):
            raise InputError(f"estimator must be an ICQF or L1NMF, not {type(self.estimator).__name__}.")
        if not isinstance(self.estimator.init, str):
            raise InputError(
                "A search needs starts for any number of factors: name one, as in init='nndsvd'."
            )
        model: ICQF = clone(self.estimator)
        if self.engine is not None:
            model.set_params(engine=self.engine)
        return model

    def _plan(self, model: ICQF, stated: StatedProblem, groups: Array | None, seed: int) -> Plan:
        problem = stated.problem
        by_name = np.argsort(np.array(stated.items)) if stated.named else None  # in any order of the columns
        folds = tuple(
            folds_of(
                problem,
                groups=groups,
                n_splits=self.n_splits,
                row_blocks=self.row_blocks,
                col_blocks=self.col_blocks,
                items=by_name,
                rng=np.random.default_rng([seed, 0, repeat]),
            )
            for repeat in range(MOST_REPEATS if isinstance(self.n_repeats, str) else self.n_repeats)
        )
        own = self.search == "estimator"
        engine = engine_of(model.engine)
        return Plan(
            problem.with_beta(0.0),  # the estimator's own penalty is not tried, so no start depends on it
            folds,
            self._penalties(problem.n),
            model.init,
            model.tol if own else self.search_tol,
            model.max_iter,
            seed=seed,
            given=stated.given,
            engine=engine.for_many(problem if own else problem.without_reconstruction_bound()),
            thorough=self.thorough,
            solver=solver_of(model) if own else None,
        )

    def _warn_if_few(self, n: int) -> None:
        if n < FEWEST and (isinstance(self.n_components, str) or isinstance(self.betas, str)):
            warnings.warn(
                InputWarning(
                    f"{counted(n, 'participant')} {'is' if n == 1 else 'are'} too few to choose with: "
                    f"below {FEWEST}, 'auto' tries one factor and one penalty.",
                    code="too-few",
                    remedy=Advice("Give {n_components} and {betas} to try more."),
                ),
                stacklevel=5,
            )

    def _penalties(self, n: int) -> tuple[float, ...]:
        if isinstance(self.betas, str):
            return BETAS if n >= FEWEST else (ICQF().beta,)
        return tuple(sorted({float(beta) for beta in self.betas}))

    def _candidates(self, problem: Problem, seed: int) -> list[int]:
        highest = min(problem.n, problem.m)
        if isinstance(self.n_components, str):
            if problem.n < FEWEST:
                return [1]
            self.parallel_ = suggested_count(problem, seed)
            return first_candidates(problem, self.parallel_)
        ks = sorted({int(k) for k in np.atleast_1d(self.n_components)})
        if not ks or ks[0] < 1 or ks[-1] > highest:
            shown = ", ".join(map(str, ks))
            raise parameter_error(
                "n_components",
                f"={shown} cannot be tried: each number must lie between 1 and {highest}, as the table has "
                f"{problem.n} sample(s) and {problem.m} feature(s).",
                value=ks,
            )
        return ks

    def _level(self, model: ICQF, stated: StatedProblem, evidence: Evidence) -> dict[int, pd.DataFrame]:
        best = dict(best_of_each(self.errors_))
        level = [(k, best[k]) for k in level_with(evidence, self.n_components_)]
        fits = best_fits(stated.problem, level, engine=engine_of(model.engine)) if level else []
        return {
            k: pd.DataFrame(loadings[:k].T, index=list(stated.items))
            for (k, _), loadings in zip(level, fits, strict=True)
        }

    def _stability(
        self, model: ICQF, problem: Problem, groups: Array | None, seed: int, n_jobs: int | None
    ) -> pd.DataFrame:
        rng = np.random.default_rng([seed, 1])
        return stability_curve(
            problem,
            best_of_each(self.errors_),
            [halves_of(problem, groups=groups, rng=rng) for _ in range(self.n_halves)],
            tol=self.search_tol,
            max_iter=model.max_iter,
            n_jobs=n_jobs,
            engine=engine_of(model.engine),
        )

    def _replicable(
        self, model: ICQF, problem: Problem, groups: Array | None, seed: int, n_jobs: int | None
    ) -> pd.DataFrame:
        """What another study would find, for the numbers of factors up to the one that predicts best."""
        return replicable_curve(
            problem,
            [(k, beta) for k, beta in best_of_each(self.errors_) if k <= best_row(self.errors_)[0]],
            n_halves=self.n_halves,
            groups=groups,
            n_jobs=n_jobs,
            engine=engine_of(model.engine),
            rng=np.random.default_rng([seed, 3]),
        )

    # --- using the chosen model ----------------------------------------------------------------------

    def fit_transform(
        self, X: Any, y: Any = None, *, confounds: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Any:
        """Choose, fit, and return the scores (n, k) that the final fit found."""
        stated, found = self._search(X, confounds, sample_weight, groups)
        return scores_of_fit(self.best_estimator_, stated, found, X, confounds)

    def transform(self, X: Any, *, confounds: Any = None) -> Any:
        """Scores of these participants by the chosen model."""
        check_is_fitted(self)
        return self.best_estimator_.transform(X, confounds=confounds)

    def score_intervals(self, X: Any, *, confounds: Any = None, level: float = 0.9) -> ScoreIntervals:
        """Scores with intervals by the chosen model; see `ICQF.score_intervals`."""
        check_is_fitted(self)
        return self.best_estimator_.score_intervals(X, confounds=confounds, level=level)

    def inverse_transform(self, X: Any, *, confounds: Any = None) -> Any:
        """Reconstructed answers by the chosen model."""
        check_is_fitted(self)
        return self.best_estimator_.inverse_transform(X, confounds=confounds)

    def score(self, X: Any, y: Any = None, *, confounds: Any = None, sample_weight: Any = None) -> float:
        """Minus the mean squared error of the chosen model on observed answers."""
        check_is_fitted(self)
        return self.best_estimator_.score(X, confounds=confounds, sample_weight=sample_weight)

    @property
    def n_features_in_(self) -> int:
        """Number of items."""
        return self._fitted("n_features_in_")

    @property
    def feature_names_in_(self) -> Array:
        """Names of the items, when the table gave them."""
        return self._fitted("feature_names_in_")

    def _fitted(self, name: str) -> Any:
        # A property that raises AttributeError counts as absent, as scikit-learn expects before `fit`.
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"ICQFCV has no {name!r} before it is fitted.")
        return getattr(self.best_estimator_, name)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The factors' names."""
        check_is_fitted(self)
        return self.best_estimator_.get_feature_names_out()
