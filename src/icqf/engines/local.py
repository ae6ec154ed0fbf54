"""The engine of this machine: the only place where an iteration object is made and advanced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Literal, overload

import numpy as np

from icqf.solvers.admm import ADMMIteration
from icqf.solvers.block_step import (
    Loadings,
    Multipliers,
    Sums,
    block_step,
    extrapolated,
    into_box,
    updated_multipliers,
)
from icqf.solvers.fast import FastIteration
from icqf.solvers.finish import finish, score_tolerance
from icqf.solvers.problem import Array, Problem
from icqf.solvers.result import Factorization, Factors, Iterated

_STILL = 20  # iterations without a move of the loadings, after which the certificate is asked all the same
_MARGIN = 1.25  # iterations stop this much below the tolerance, so that the certificate rarely asks for more


@dataclass(frozen=True)
class Solver:
    """Which solver runs, and ADMM's settings."""

    name: Literal["fast", "admm"] = "fast"
    inner: Literal["cd", "fista", "admm"] = "cd"
    rho: float | Literal["adaptive"] = 3.0


@dataclass(frozen=True)
class IterationProgress:
    """What a callback is told after each iteration."""

    iteration: int
    max_iter: int
    objective: float
    excess: float
    step: float


Callback = Callable[[IterationProgress], object]
FAST = Solver()


@overload
def run(
    problems: Problem | Iterable[Problem],
    starts: Factors | Iterable[Factors],
    *,
    tol: float,
    max_iter: int = ...,
    solver: Solver = ...,
    exact: Literal[True] = ...,
    callback: Callback | None = ...,
) -> list[Factorization]: ...


@overload
def run(
    problems: Problem | Iterable[Problem],
    starts: Factors | Iterable[Factors],
    *,
    tol: float,
    max_iter: int = ...,
    solver: Solver = ...,
    exact: Literal[False],
    callback: Callback | None = ...,
) -> list[Iterated]: ...


def run(
    problems: Problem | Iterable[Problem],
    starts: Factors | Iterable[Factors],
    *,
    tol: float,
    max_iter: int = 500,
    solver: Solver = FAST,
    exact: bool = True,
    callback: Callback | None = None,
) -> list[Factorization] | list[Iterated]:
    """Factorize each problem from its start.

    Parameters
    ----------
    problems : Problem or iterable of Problem
        One, or a batch; problems that share answers and differ in mask, weights or β are made by
        `Problem.hide`, `Problem.drawn` and `Problem.with_beta`. A generator's problems are let go as they are
        done, so that a thousand resamples take the memory of one.
    starts : Factors or iterable of Factors
        One for all, or one per problem; several starts of one problem are a batch as well.
    tol : float
        With `exact`, the tolerance of the certificate; otherwise, of an iteration's move.
    exact : bool
        Whether each fit ends with exact scores, exact bounds and a certificate that holds (a final fit), or
        as soon as its moves have settled (fits that are compared with each other).
    callback : callable, optional
        Called after each iteration.
    """
    if isinstance(problems, Problem):
        starts = [starts] if isinstance(starts, Factors) else list(starts)
        problems = [problems] * len(starts)
    elif isinstance(starts, Factors):
        problems = list(problems)
        starts = [starts] * len(problems)
    fit = _certified if exact else _settled
    return [
        fit(problem, start, solver, tol, max_iter, callback)
        for problem, start in zip(problems, starts, strict=True)
    ]


def _settled(
    problem: Problem, start: Factors, solver: Solver, tol: float, max_iter: int, callback: Callback | None
) -> Iterated:
    iteration = _iteration(problem, start, solver)
    n_iter, converged = _advance(iteration, tol, max_iter, 0, callback, patience=max_iter)
    return Iterated(iteration.factors(), iteration.trace, converged, n_iter)


def _certified(
    problem: Problem, start: Factors, solver: Solver, tol: float, max_iter: int, callback: Callback | None
) -> Factorization:
    """Iterate, finish and certify; go on when the certificate does not hold yet."""
    iteration = _iteration(problem, start, solver)
    threshold, done = tol / _MARGIN, 0
    patience = _STILL if problem.observations.n_bins > 1 else max_iter
    while True:
        done, _ = _advance(iteration, threshold, max_iter, done, callback, patience=patience)
        finished = finish(problem, iteration.factors().loadings, tol=score_tolerance(tol))
        converged = finished.certificate.holds(tol)
        if converged or done >= max_iter:
            break
        threshold /= 2
    return Factorization(
        finished.factors,
        iteration.trace,
        converged,
        done,
        finished.objective,
        finished.certificate,
        finished.fit,
        finished.order,
    )


def _iteration(problem: Problem, start: Factors, solver: Solver) -> ADMMIteration | FastIteration:
    if solver.name == "admm":
        return ADMMIteration(problem, start, rho=solver.rho, inner=solver.inner)
    return FastIteration(problem, start, LocalRows(problem, start))


def _advance(
    iteration: ADMMIteration | FastIteration,
    tol: float,
    max_iter: int,
    done: int,
    callback: Callback | None,
    *,
    patience: int,
) -> tuple[int, bool]:
    """Advance until the move has settled to `tol`: the number of iterations so far, and whether it has.

    Where loadings of several bins are drawn together, a participant at the edge of a bound may cross it forth
    and back for ever, and stir nothing else: after `patience` iterations in which the loadings did not move,
    that is not waited for.
    """
    still = 0
    while done < max_iter:
        move = iteration.advance()
        done += 1
        still = still + 1 if move.loading_step <= tol else 0
        if callback is not None:
            objective = iteration.trace.objective[-1]
            callback(IterationProgress(done, max_iter, objective, move.excess, move.loading_step))
        if move.settled(tol) or still > patience:
            return done, True
    return done, False


class LocalRows:
    """All participants in this process: scores and multipliers of each block, and the blocks in turn."""

    def __init__(self, problem: Problem, start: Factors) -> None:
        self.problem, self.terms = problem, problem.terms
        known = start.multipliers or Multipliers.none(problem.m, problem.dtype)
        scores = start.scores.astype(problem.dtype)
        self._scores = [scores[:, block.rows] for block in problem.blocks()]
        self._previous = self._scores
        self._multipliers = [known.within(block.rows) for block in problem.blocks()]

    def step(self, loadings: Loadings, *, momentum: float, look: bool) -> Sums:
        top, parts = self.terms.bounds.score, []
        before, self._scores = self._scores, []
        for block, W, previous, multipliers in zip(
            self.problem.blocks(), before, self._previous, self._multipliers, strict=True
        ):
            y = extrapolated(W, previous, momentum, top, still=multipliers.rows)
            parts.append(block_step(block, y, multipliers if look else None, loadings, self.terms))
            self._scores.append(parts[-1][0])
        self._previous = before
        if look:
            self._multipliers = [multipliers for _, multipliers, _ in parts if multipliers is not None]
        return reduce(add, (sums for _, _, sums in parts))

    def update_multipliers(self, Q: Array) -> int:
        if not any(len(each.rows) for each in self._multipliers):
            return 0
        self._multipliers = [
            updated_multipliers(block, W, multipliers, Q, self.terms)
            for block, W, multipliers in zip(
                self.problem.blocks(), self._scores, self._multipliers, strict=True
            )
        ]
        return sum(len(each.rows) for each in self._multipliers)

    def rescale(self, s: Array) -> None:
        self._previous = [W * s[:, None] for W in self._previous]
        self._scores = [into_box(W * s[:, None], self.terms.bounds.score) for W in self._scores]

    def scores(self) -> Array:
        return self._scores[0] if len(self._scores) == 1 else np.concatenate(self._scores, axis=1)

    def multipliers(self) -> Multipliers:
        firsts = [block.rows.start for block in self.problem.blocks()]
        return Multipliers.joined(list(zip(firsts, self._multipliers, strict=True)))
