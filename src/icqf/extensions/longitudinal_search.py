"""LongitudinalICQFCV: the number of factors, the penalty and the smoothness by cross-validation."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from icqf.core.result import Factorization
from icqf.data.parameters import check_parameter, parameter_error
from icqf.errors import InputError
from icqf.extensions.longitudinal import LongitudinalICQF
from icqf.extensions.smoothness import smoothed
from icqf.extensions.visit_problem import VisitStatement
from icqf.jobs.parallel import Progress, run_all
from icqf.resampling import tolerances
from icqf.resampling.folds import folds_of
from icqf.selection.rules import choose, error_table
from icqf.selection.run import first_candidates, suggested_count
from icqf.selection.search import COLUMNS, Plan, Task, run_task

BETAS = (0.01, 0.1, 0.5)
SMOOTHNESS = (0.0, 1.0, 10.0, 100.0, 1000.0)


class LongitudinalICQFCV(BaseEstimator):
    """`LongitudinalICQF` with the number of factors, β and the smoothness β₂ chosen together.

    Blocks of participants × (bin, item) columns are hidden in turn, as `ICQFCV` does it, and every candidate
    is judged by how well it predicts them. What is hidden is a whole answer (the mean of several visits of
    one participant in one bin is one), and nothing of it reaches the fit: not the start, which comes from
    pooled answers, nor a range that is not declared.

    Parameters
    ----------
    estimator : LongitudinalICQF, optional
        The model to choose for, with all settings that are not chosen.
    n_components : "auto", sequence of int, or int
        The numbers of factors to try; "auto" tries those up to four more than parallel analysis of the
        participants' mean answers suggests.
    betas, smoothness : sequence of float
        The penalties to try. A smoothness of 0 lets every bin stand by itself; the strongest leaves hardly
        any change with age.
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
        One row per fit, as of `ICQFCV`, with its smoothness.
    errors_ : DataFrame
        Mean error and standard error of each candidate.

    Examples
    --------
    >>> from icqf.extensions import LongitudinalICQF, LongitudinalICQFCV
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
        statement, found = self._search(X)
        return self.best_estimator_.scores_of_fit(statement, found)

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
        found = run_all(
            jobs,
            _trials,
            n_jobs=self.n_jobs,
            checkpoint=self.checkpoint,
            callback=self.callback,
        )
        self.cv_results_ = pd.DataFrame([trial for result in found.values() for trial in result["trials"]])
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
            raise parameter_error("rule", f"={self.rule!r} is not known here; choose 'min' or 'one_se'.")
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
        """What is tried with each smoothness, all on the same folds."""
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
