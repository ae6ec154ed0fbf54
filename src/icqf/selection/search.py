"""Cross-validation over the number of factors and the penalty: the work itself, fold by fold."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from icqf.selection.folds import Folds
from icqf.solvers import start as starts
from icqf.solvers.fast import FastIteration
from icqf.solvers.loop import iterate
from icqf.solvers.problem import Problem
from icqf.solvers.result import Factors

Array = NDArray[Any]
LEAST_SPECTRUM = 40  # singular vectors computed at least, so that a start does not depend on the candidates


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
    k_max: int
    range_declared: bool = True


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
    problem, low = (visible, 0.0) if plan.range_declared else _in_visible_range(visible)
    # The bound on reconstructed answers is left to the clipping of the predictions: it hardly
    # moves the loadings, and candidates cost several times less without it.
    problem = replace(problem, bounds=replace(problem.bounds, reconstruction=None))
    clock = time.perf_counter()
    start_of = _starter(plan, problem, task)
    for k in task.ks:
        start = starts.settle(problem, start_of(k))
        for beta in sorted(plan.betas):
            candidate = with_beta(problem, beta)
            iteration = FastIteration(candidate, start)
            n_iter = iterate(iteration, tol=plan.tol, max_iter=plan.max_iter)
            factors = iteration.factors()
            error, n_hidden = hidden_error(plan.problem, mask, factors, low=low, span=problem.span)
            now = time.perf_counter()
            yield Trial(task.repeat, task.fold, k, beta, error, n_hidden, n_iter, now - clock)
            start, clock = factors, now


def _in_visible_range(problem: Problem) -> tuple[Problem, float]:
    """The problem counted from the lowest visible answer, its range that of the visible answers."""
    low, high = np.inf, -np.inf
    for block in problem.blocks():
        seen = block.X if block.O is None else block.X[block.O > 0]
        if seen.size:
            low, high = min(low, float(seen.min())), max(high, float(seen.max()))
    span = np.full(problem.m, high - low)
    if low == 0 and (span == problem.span).all():
        return problem, 0.0
    whole = np.issubdtype(problem.answers.dtype, np.integer)
    shift = problem.answers.dtype.type(low) if whole else low
    bounds = problem.bounds
    shifted = replace(
        problem.hide(~(problem.answers >= low)),
        answers=problem.answers - shift,
        span=span,
        bounds=replace(bounds, loading=None if bounds.loading is None else np.minimum(bounds.loading, span)),
        penalty=replace(problem.penalty, gamma=problem.penalty.gamma * span.max() / problem.span.max()),
    )
    return shifted, low


def _starter(plan: Plan, problem: Problem, task: Task) -> Any:
    if plan.init == "random":
        rng = np.random.default_rng([task.repeat, task.fold])
        return lambda k: starts.random(problem, k, rng)
    spectrum = starts.Spectrum(problem, plan.k_max, centred=plan.init == "rotated")
    make = starts.rotated if plan.init == "rotated" else starts.nndsvd
    return lambda k: make(spectrum, k)


def with_beta(problem: Problem, beta: float) -> Problem:
    """The same problem (and its decoded answers) with another penalty."""
    changed = replace(problem, penalty=replace(problem.penalty, beta=beta))
    if problem._cached is not None:
        changed.__dict__["_cached"] = problem._cached
    return changed


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
