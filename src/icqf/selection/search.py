"""Cross-validation over the number of factors and the penalty: the fits of some folds, as one batch."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.core.problem import Problem
from icqf.core.result import Factors, Iterated
from icqf.engines.choice import engine_of, run
from icqf.resampling.folds import Folds
from icqf.resampling.hidden import HeldOut, HiddenFit
from icqf.selection.growth import Growth

Array = NDArray[Any]


@dataclass(frozen=True)
class Trial:
    """One fit with some answers hidden.

    Attributes
    ----------
    repeat, fold, n_components, beta
        What was fitted.
    error : float
        Mean squared error of the hidden answers.
    n_hidden : int
        Hidden answers.
    weight : float
        Sum of their participants' weights, by which folds are pooled; without weights, their number.
    n_iter : int
        Iterations of the fit.
    seconds : float
        The fit's equal share of the time of its batch: the fits of one number of factors in one task, with
        their starts and without their judging.
    squares : str
        Squared error of the hidden answers by item, packed to be small in a journal (`unpacked_squares`);
        empty where the engine judges the fits itself.
    """

    repeat: int
    fold: int
    n_components: int
    beta: float
    error: float
    n_hidden: int
    weight: float
    n_iter: int
    seconds: float
    squares: str = ""


COLUMNS = tuple(each.name for each in fields(Trial) if each.name != "squares")  # of a table of trials


def packed_squares(squares: Array) -> str:
    """Numbers (m,) in single precision as a text."""
    return b64encode(squares.astype("<f4").tobytes()).decode()


def unpacked_squares(text: str) -> Array:
    """The numbers (m,) of a text that `packed_squares` made.

    Examples
    --------
    >>> unpacked_squares(packed_squares(np.array([0.5, 2.0]))).tolist()
    [0.5, 2.0]
    """
    return np.frombuffer(b64decode(text), "<f4").astype(float)


Place = tuple[int, int, int]  # repeat, fold and number of factors


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
