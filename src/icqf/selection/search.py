"""Cross-validation over the number of factors and the penalty: the work itself, fold by fold."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from icqf.engines.local import run
from icqf.errors import InputError
from icqf.resampling.folds import Folds
from icqf.solvers.problem import Problem
from icqf.solvers.result import Factors
from icqf.solvers.start import Starts

Array = NDArray[Any]


@dataclass(frozen=True)
class Trial:
    """One fit with some answers hidden."""

    repeat: int
    fold: int
    n_components: int
    beta: float
    error: float
    n_hidden: int
    n_iter: int
    seconds: float


@dataclass(frozen=True)
class Task:
    """The fits of one fold that run together: several numbers of factors, each with all penalties."""

    repeat: int
    fold: int
    ks: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """What all tasks share."""

    problem: Problem
    folds: tuple[Folds, ...]  # one a repeat
    betas: tuple[float, ...]
    init: str
    tol: float
    max_iter: int
    seed: int = 0  # of random starts
    given: Array | None = None  # the answers in their own units, when their range is not declared


def tasks(plan: Plan, ks: Sequence[int], *, pieces: int) -> list[Task]:
    """All folds of all repeats, each cut into `pieces` of about equal cost, the costliest first."""
    groups = [tuple(sorted(ks))[at::pieces] for at in range(min(pieces, len(ks)))]
    return [
        Task(repeat, fold, group)
        for group in groups
        for repeat, folds in enumerate(plan.folds)
        for fold in range(folds.n_splits)
    ]


def run_task(plan: Plan, task: Task) -> list[Trial]:
    """Fit every candidate of a task with the fold's answers hidden; one BLAS thread."""
    with threadpool_limits(limits=1):
        return list(_trials(plan, task))


def _trials(plan: Plan, task: Task) -> Iterator[Trial]:
    mask = plan.folds[task.repeat].mask(task.fold)
    visible = plan.problem.hide(mask)
    problem, low = (visible, 0.0) if plan.given is None else _in_visible_range(visible, plan.given)
    # The bound on reconstructed answers is left to the clipping of the predictions: the errors of all
    # candidates move alike by it, and candidates cost several times less without it.
    problem = problem.without_reconstruction_bound()
    starts = Starts(problem)
    betas = sorted(plan.betas)
    for k in task.ks:
        clock = time.perf_counter()
        # A generator for each k: a start does not depend on what else the task tries.
        rng = np.random.default_rng([plan.seed, task.repeat, task.fold, k])
        found = run(
            [problem.with_beta(beta) for beta in betas],
            starts.make(plan.init, k, rng),
            tol=plan.tol,
            max_iter=plan.max_iter,
            exact=False,
            chained=True,
        )
        seconds = (time.perf_counter() - clock) / len(betas)
        for beta, fit in zip(betas, found, strict=True):
            error, n_hidden = hidden_error(plan.problem, mask, fit.factors, low=low, span=problem.span)
            yield Trial(task.repeat, task.fold, k, beta, error, n_hidden, fit.n_iter, seconds)


def _in_visible_range(problem: Problem, given: Array) -> tuple[Problem, float]:
    """The problem with the range of its visible answers, and their lowest in the units of `problem`.

    Everything is worked out from the answers as given: a shift by the lowest answer of all, a hidden
    one perhaps, would leave its trace in the last digit.
    """
    seen = problem.answers >= 0
    if problem.hidden is not None:
        seen &= ~problem.hidden
    visible = given[seen]
    low, high = (visible.min(), visible.max()) if visible.size else (0, 0)
    if not low < high:
        raise InputError(
            "The answers that a fold leaves are all alike, so their range cannot be told; declare "
            "item_range=(lowest, highest)."
        )
    if np.issubdtype(problem.answers.dtype, np.integer):
        answers = np.subtract(given, low, dtype=problem.answers.dtype)
    else:
        answers = np.subtract(given, low).astype(problem.answers.dtype)
    span = np.full(problem.m, float(high) - float(low))
    bounds, visible_ones = problem.bounds, problem.hide(~seen).observations
    counted_anew = replace(
        problem,
        observations=replace(visible_ones, answers=answers),
        span=span,
        bounds=replace(bounds, loading=None if bounds.loading is None else np.minimum(bounds.loading, span)),
    )
    return counted_anew, float(problem.answers[seen].min())


def hidden_error(
    problem: Problem, mask: Array, factors: Factors, *, low: float = 0.0, span: Array | None = None
) -> tuple[float, int]:
    """Mean squared error of the hidden answers, predicted by R clipped to the range, and their number."""
    A = problem.with_confounds(factors.scores)
    top = (problem.span if span is None else span).astype(A.dtype)
    total, weight, count = 0.0, 0.0, 0
    for block in problem.blocks():
        hidden = mask[block.rows]
        if block.O is not None:
            hidden = hidden & (block.O > 0)
        R = np.minimum(A[:, block.rows].T @ factors.loadings, top) + A.dtype.type(low)
        squares = np.where(hidden, (block.X - R) ** 2, 0).sum(axis=1, dtype=np.float64)
        number = hidden.sum(axis=1)
        weights = np.ones(len(number)) if block.weights is None else block.weights
        total += float(squares @ weights)
        weight += float(number @ weights)
        count += int(number.sum())
    return total / max(weight, 1e-300), count
