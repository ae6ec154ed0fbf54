"""Run a solver until the certificate holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from icqf.solvers.finish import finish
from icqf.solvers.problem import Problem
from icqf.solvers.result import Factorization, Factors, Move, Trace


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each iteration."""

    iteration: int
    max_iter: int
    objective: float
    excess: float
    step: float


Callback = Callable[[Progress], object]


class Iteration(Protocol):
    """A solver that advances one iteration at a time."""

    trace: Trace

    def advance(self) -> Move:
        """One iteration."""

    def factors(self) -> Factors:
        """The current point."""


def iterate(
    iteration: Iteration, *, tol: float, max_iter: int, done: int = 0, callback: Callback | None = None
) -> int:
    """Advance until the move has settled to `tol`; returns the number of iterations so far."""
    while done < max_iter:
        move = iteration.advance()
        done += 1
        if callback is not None:
            callback(Progress(done, max_iter, iteration.trace.objective[-1], move.excess, move.loading_step))
        if move.settled(tol):
            break
    return done


def run(
    problem: Problem, iteration: Iteration, *, tol: float, max_iter: int, callback: Callback | None = None
) -> Factorization:
    """Iterate, finish and certify; go on when the certificate does not hold yet."""
    threshold, done = tol / 1.25, 0  # half, so that the certificate rarely asks for more
    while True:
        done = iterate(iteration, tol=threshold, max_iter=max_iter, done=done, callback=callback)
        finished = finish(problem, iteration.factors().loadings, tol=score_tolerance(tol))
        converged = finished.certificate.holds(tol)
        if converged or done >= max_iter:
            break
        threshold /= 2
    return Factorization(
        finished.factors,
        finished.objective,
        finished.certificate,
        finished.fit,
        iteration.trace,
        converged,
        done,
    )


def score_tolerance(tol: float) -> float:
    """How exactly the scores are solved for given loadings."""
    return max(1e-6, min(1e-4, tol / 100))
