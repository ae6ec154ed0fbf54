"""Cross-validation over the number of factors and the penalty: the fits of some folds, as one batch."""

from __future__ import annotations

import os
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from icqf.core.problem import Array, Problem
from icqf.core.result import Factors, Iterated
from icqf.core.start import Starts, settle
from icqf.engines.choice import engine_of, run
from icqf.engines.journal import WorkJournal
from icqf.resampling.folds import Folds
from icqf.resampling.hidden import HeldOut, HiddenFit

_ITERATIONS = 20  # of the fit with each number of factors, before the next factor is added
_POWER_STEPS = 15  # towards the strongest pattern of what is left; a rough one will do
Place = tuple[int, int, int]  # repeat, fold and number of factors
_WORK = "search"


class Growth:
    """Starts of one problem for every number of factors, each grown from the one before.

    The first factor is that of NNDSVD. Further on, the strongest non-negative pattern of the residuals is
    added, and all factors settle for a few iterations. What is found for k factors does not depend on
    which other numbers are asked for.
    """

    def __init__(self, problem: Problem, *, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self._grown: list[Factors] = []

    def start(self, k: int) -> Factors:
        """The start with k factors."""
        while len(self._grown) < k:
            start = self._with_one_more(self._grown[-1]) if self._grown else self._first()
            (fit,) = run(self.problem, start, tol=self.tol, max_iter=_ITERATIONS, exact=False)
            self._grown.append(fit.factors)
        return self._grown[k - 1]

    def _first(self) -> Factors:
        return Starts(self.problem).make("nndsvd", 1)

    def _with_one_more(self, factors: Factors) -> Factors:
        k = len(factors.scores)
        scores, loadings = self._strongest_pattern(factors)
        return settle(
            self.problem,
            Factors(
                np.concatenate([factors.scores, scores[None]]),
                np.concatenate([factors.loadings[:k], loadings[None]]),
            ),
        )

    def _strongest_pattern(self, factors: Factors) -> tuple[Array, Array]:
        """Of the residuals' leading singular pair, the heavier of its two signed halves: (n,) and (m,)."""
        residuals = self._residuals(factors)
        weights = np.ones(self.problem.n) if self.problem.weights is None else self.problem.weights
        v = np.zeros(self.problem.m)
        v[int(np.argmax(sum((E**2).sum(axis=0) for E in residuals)))] = 1.0
        for _ in range(_POWER_STEPS):
            u = np.concatenate([E @ v for E in residuals])
            v = _row_sums(residuals, weights * u)
            v /= max(float(np.linalg.norm(v)), 1e-300)
        u = np.concatenate([E @ v for E in residuals])
        halves = [(np.maximum(sign * u, 0), np.maximum(sign * v, 0)) for sign in (1.0, -1.0)]
        return max(halves, key=lambda half: float(weights @ half[0] ** 2) * float(half[1] @ half[1]))

    def _residuals(self, factors: Factors) -> list[Array]:
        """What the factors leave of the observed answers, block by block."""
        A, Q = self.problem.with_confounds(factors.scores), factors.loadings
        return [block.masked(block.X - A[:, block.rows].T @ Q) for block in self.problem.blocks()]


def _row_sums(residuals: list[Array], u: Array) -> Array:
    """Σ_i u_i e_i over the rows of all blocks."""
    total, first = np.zeros(residuals[0].shape[1]), 0
    for E in residuals:
        total += u[first : first + len(E)] @ E
        first += len(E)
    return total


@dataclass(frozen=True)
class Trial:
    """One fit with some answers hidden."""

    repeat: int  # what was fitted
    fold: int
    n_components: int
    beta: float
    error: float  # mean squared error of the hidden answers
    n_hidden: int  # hidden answers
    # sum of their participants' weights, by which folds are pooled; without weights, their number
    weight: float
    n_iter: int  # iterations of the fit
    # the fit's equal share of the time of its batch: the fits of one number of factors in one task,
    # with their starts and without their judging
    seconds: float
    # squared error of the hidden answers by item, packed to be small in a journal (`unpacked_squares`);
    # empty where the engine judges the fits itself
    squares: str = ""


COLUMNS = tuple(each.name for each in fields(Trial) if each.name != "squares")  # of a table of trials


def packed_squares(squares: Array) -> str:
    """Numbers (m,) in single precision as a text."""
    return b64encode(squares.astype("<f4").tobytes()).decode()


def unpacked_squares(text: str) -> Array:
    """The numbers (m,) of a text that `packed_squares` made."""
    return np.frombuffer(b64decode(text), "<f4").astype(float)


@dataclass(frozen=True)
class End:
    """Where the fits with all penalties, each from where the last ended, have come: to this one."""

    beta: float
    factors: Factors


@dataclass(frozen=True)
class Task:
    """Fits that run together: folds (repeat, fold), and numbers of factors, each with all penalties.

    With `ends`, of each fold and number of factors, only with the penalties that come after those.
    """

    folds: tuple[tuple[int, int], ...]
    ks: tuple[int, ...]
    ends: Mapping[Place, End] | None = None


@dataclass(frozen=True)
class Plan:
    """What all tasks share."""

    problem: Problem
    folds: tuple[Folds, ...]  # one per repeat
    betas: tuple[float, ...]
    init: str
    tol: float
    max_iter: int
    seed: int = 0  # of random starts
    given: Array | None = None  # the answers in their own units, when their range is not declared
    engine: Any = "local"  # where the fits run
    thorough: bool = False  # whether fits also begin at a start that has grown, and the better one counts

    @property
    def every_fold(self) -> list[tuple[int, int]]:
        """(repeat, fold) of all folds."""
        return [(repeat, fold) for repeat, cut in enumerate(self.folds) for fold in range(cut.n_splits)]


def tasks(plan: Plan, ks: Sequence[int], *, pieces: int) -> list[Task]:
    """All folds of all repeats, each cut into `pieces` of about equal cost, the costliest first.

    An engine that solves many problems at once is given all of them.
    """
    if engine_of(plan.engine).batches:
        return [Task(tuple(plan.every_fold), tuple(sorted(ks)))]
    groups = [tuple(sorted(ks))[at::pieces] for at in range(min(pieces, len(ks)))]
    return [Task((fold,), group) for group in groups for fold in plan.every_fold]


def run_task(plan: Plan, task: Task, ends: dict[Place, End] | None = None) -> list[Trial]:
    """Fit every candidate of a task with its folds' answers hidden, and judge it by them.

    Where the fits with the strongest penalty ended is added to `ends`, if given; an engine that compares
    candidates itself does not tell.
    """
    held_out = [
        HeldOut(plan.problem, plan.folds[repeat].mask(fold, plan.problem), given=plan.given)
        for repeat, fold in task.folds
    ]
    batches = engine_of(plan.engine).batches
    if batches and plan.init == "nndsvd" and not plan.thorough and task.ends is None:
        trials = _judged_together(plan, task, held_out)
        if trials is not None:
            return trials
    first = min(plan.betas)
    grown = [Growth(each.visible.with_beta(first), tol=plan.tol) for each in held_out if plan.thorough]
    return [trial for k in task.ks for trial in _trials(plan, task, held_out, grown, k, ends)]


def hidden_fit_of(plan: Plan, trials: Iterable[Trial], k: int, beta: float) -> HiddenFit | None:
    """How well one candidate predicted hidden answers, beside the items' means, in the first repeat's folds.

    None where participants or items are fewer than the folds, or where the engine told no more than means.
    """
    of_fold = {
        trial.fold: trial.squares
        for trial in trials
        if (trial.repeat, trial.n_components, trial.beta) == (0, k, beta)
    }
    problem, cut = plan.problem, plan.folds[0]
    if min(problem.n, problem.m) < cut.n_splits or not all(of_fold.values()):
        return None
    means = (
        HeldOut(problem, cut.mask(fold, problem), given=plan.given).error_of_means()
        for fold in range(cut.n_splits)
    )
    return HiddenFit(
        np.array([unpacked_squares(of_fold[fold]) for fold in range(cut.n_splits)]),
        np.array([each.squares for each in means]),
    )


def _judged_together(plan: Plan, task: Task, held_out: Sequence[HeldOut]) -> list[Trial] | None:
    """The trials of a task by an engine that compares candidates itself; None where it does not."""
    clock = time.perf_counter()
    problems, judges = [each.visible for each in held_out], [each.judge() for each in held_out]
    found = engine_of(plan.engine).searched(
        problems, judges, task.ks, sorted(plan.betas), tol=plan.tol, max_iter=plan.max_iter
    )
    if found is None:
        return None
    seconds = (time.perf_counter() - clock) / len(found)
    hidden = [
        (int(np.count_nonzero(judge.hidden)), each.weight)
        for judge, each in zip(judges, held_out, strict=True)
    ]
    return [
        Trial(*task.folds[each.fold], each.k, each.beta, each.error, *hidden[each.fold], each.n_iter, seconds)
        for each in found
    ]


def _trials(
    plan: Plan,
    task: Task,
    held_out: Sequence[HeldOut],
    grown: Sequence[Growth],
    k: int,
    ends: dict[Place, End] | None,
) -> Iterator[Trial]:
    """The trials of one number of factors: for each penalty one batch of folds, from where the last ended."""
    clock = time.perf_counter()
    betas = sorted(plan.betas)
    if task.ends is None:
        factors = [
            # A generator for each fold and k: a start does not depend on what else the task tries.
            each.starts.make(plan.init, k, np.random.default_rng([plan.seed, *place, k]))
            for each, place in zip(held_out, task.folds, strict=True)
        ]
    else:
        before = [task.ends[*place, k] for place in task.folds]
        factors = [end.factors for end in before]
        betas = [beta for beta in betas if beta > before[0].beta]
    found: list[tuple[float, list[Iterated]]] = []
    settings: dict[str, Any] = {"tol": plan.tol, "max_iter": plan.max_iter, "engine": plan.engine}
    for beta in betas:
        problems = [each.visible.with_beta(beta) for each in held_out]
        fits = run(problems, factors, exact=False, **settings)
        if grown and not found and task.ends is None:
            starts = [growth.start(k) for growth in grown]
            others = run(problems, starts, exact=False, **settings)
            fits = [
                min(both, key=partial(_reached, problem))
                for problem, *both in zip(problems, fits, others, strict=True)
            ]
        factors = [fit.factors for fit in fits]
        found.append((beta, fits))
    seconds = (time.perf_counter() - clock) / (len(found) * len(held_out))
    for beta, fits in found:
        for (repeat, fold), each, fit in zip(task.folds, held_out, fits, strict=True):
            error = each.error(fit.factors)
            squares = packed_squares(error.squares)
            counts = error.count, each.weight, fit.n_iter, seconds
            yield Trial(repeat, fold, k, beta, error.mean, *counts, squares)
    if ends is not None:
        for place, fit in zip(task.folds, found[-1][1], strict=True):
            ends[*place, k] = End(betas[-1], fit.factors)


def _reached(problem: Problem, fit: Iterated) -> float:
    """The objective on the answers that a fit was shown, at the point that it returns."""
    return problem.objective(fit.factors.scores, fit.factors.loadings)


class SearchJournal:
    """The trials of one search in a journal, which other searches and other work may share."""

    def __init__(self, checkpoint: str | os.PathLike[str] | WorkJournal, identity: str) -> None:
        journal = checkpoint if isinstance(checkpoint, WorkJournal) else WorkJournal(checkpoint)
        journal.recognise(_WORK, [identity])
        self.trials: list[Trial] = []
        self._journal, self._identity = journal, identity
        for number, record in enumerate(journal.records, start=2):
            try:
                if record["key"] == identity:
                    self.trials.append(Trial(**record["result"]))
            except (TypeError, KeyError):
                raise journal.damaged(number) from None

    def add(self, trials: Iterable[Trial]) -> None:
        """Write finished fits and make sure that they are on disk."""
        common = {"work": _WORK, "key": self._identity}
        self._journal.append({**common, "result": asdict(trial)} for trial in trials)
