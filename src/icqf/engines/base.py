"""What engines have in common: iterations over participants, wherever these are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np

from icqf.core.certificate import PlaceSolved, finish
from icqf.core.fast import FastIteration
from icqf.core.problem import Array, Problem
from icqf.core.result import Factorization, Factors, Iterated
from icqf.core.rows import Rows
from icqf.core.start import Starts, begin
from icqf.errors import InputError

if TYPE_CHECKING:
    from icqf.core.admm import ADMMIteration

_STILL = 20  # iterations without a move of the loadings, after which the certificate is asked all the same
_SCORES = 1e-3  # how exactly scores are solved for loadings that a fit goes on from
MARGIN = 1.25  # iterations stop this much below the tolerance, so that the certificate rarely asks for more


@dataclass(frozen=True)
class Solver:
    """Which solver runs, and ADMM's settings."""

    name: Literal["fast", "admm"] = "fast"
    inner: Literal["cd", "fista", "admm"] = "cd"
    rho: float | Literal["adaptive"] = 3.0


@dataclass(frozen=True)
class NamedStart:
    """A start by its name, which is made where the participants are."""

    name: str
    k: int
    rng: np.random.Generator


@dataclass(frozen=True)
class WarmStart:
    """Loadings (K, m) to go on from, with the scores that are best for them."""

    loadings: Array


@dataclass(frozen=True)
class IterationProgress:
    """What a callback is told after each iteration."""

    iteration: int
    max_iter: int
    objective: float
    excess: float
    step: float


@dataclass(frozen=True, eq=False)
class Judge:
    """What the fits of one fold are judged by."""

    hidden: Array  # (n, m), where answers were hidden
    answers: Array  # (n, m), all answers; those that are not hidden do not count
    scale: Array  # (m,), errors are those of ``scale * answer``
    top: Array  # (m,), a prediction p is ``units * min(p, top) + low``
    units: Array
    low: Array
    row_block: Array  # (n,), the block of each participant


@dataclass(frozen=True)
class Judged:
    """Mean squared error on hidden answers, and iterations, of the fit of a fold with k factors."""

    fold: int
    k: int
    beta: float
    error: float
    n_iter: int
    blocks: Array  # (2, blocks), squared errors and weights by block of participants


Start = Factors | NamedStart | WarmStart
Callback = Callable[[IterationProgress], object]
FAST = Solver()


class Engine(ABC):
    """Where iterations run.

    `batches` says whether it solves many problems at once, so that one call should give it all.
    """

    batches: ClassVar[bool] = False

    @abstractmethod
    def participants(self, problem: Problem) -> AbstractContextManager[Rows]:
        """The participants of a problem, for as long as a fit takes."""

    def here(self) -> Engine:
        """Itself, or another engine where this machine lacks what it needs."""
        return self

    def for_many(self, problem: Problem) -> Engine:
        """The engine for many fits of problems like this one: itself, or another where it cannot do them."""
        return self

    def searched(
        self,
        problems: Sequence[Problem],
        judges: Sequence[Judge],
        ks: Sequence[int],
        betas: Sequence[float],
        *,
        tol: float,
        max_iter: int,
    ) -> list[Judged] | None:
        """Fits of every fold, number of factors and penalty, judged where they were made.

        None where the engine does not compare such candidates itself.

        Parameters
        ----------
        problems, judges : sequences
            Of each fold: what its fits may see, and what they are judged by.
        ks, betas : sequences
            Numbers of factors, each from its NNDSVD start; and penalties, each from where the last ended.
        """
        return None

    def processes(self, shared: Sequence[Any]) -> dict[str, Any] | None:
        """What joblib is to be configured with so that many small fits run in the engine's own processes.

        `shared` is what these fits have in common. None leaves them to the processes of this machine.
        """
        return None

    @overload
    def run(
        self,
        problems: Problem | Iterable[Problem],
        starts: Start | Iterable[Start],
        *,
        tol: float,
        max_iter: int = ...,
        solver: Solver = ...,
        exact: Literal[True] = ...,
        callback: Callback | None = ...,
    ) -> list[Factorization]: ...

    @overload
    def run(
        self,
        problems: Problem | Iterable[Problem],
        starts: Start | Iterable[Start],
        *,
        tol: float,
        max_iter: int = ...,
        solver: Solver = ...,
        exact: Literal[False],
        callback: Callback | None = ...,
    ) -> list[Iterated]: ...

    def run(
        self,
        problems: Problem | Iterable[Problem],
        starts: Start | Iterable[Start],
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
            `Problem.hide`, `Problem.drawn` and `Problem.with_beta`. A generator's problems are let go as they
            are done, so that a thousand resamples take the memory of one.
        starts : Factors, NamedStart or iterable of them
            One for all, or one per problem; several starts of one problem are a batch as well.
        tol : float
            With `exact`, the tolerance of the certificate; otherwise, of an iteration's move.
        exact : bool
            Whether each fit ends with exact scores, exact bounds and a certificate that holds (a final fit),
            or as soon as its moves have settled (fits that are compared with each other).
        callback : callable, optional
            Called after each iteration.
        """
        fit = self._certified if exact else self._settled
        together = paired(problems, starts)
        return [fit(problem, start, solver, tol, max_iter, callback) for problem, start in together]

    def _settled(
        self,
        problem: Problem,
        start: Start,
        solver: Solver,
        tol: float,
        max_iter: int,
        callback: Callback | None,
    ) -> Iterated:
        with self.participants(problem) as rows:
            iteration = _iteration(problem, start, solver, rows)
            n_iter, converged = _advance(iteration, tol, max_iter, 0, callback, patience=max_iter)
            return Iterated(iteration.factors(), iteration.trace, converged, n_iter)

    def _certified(
        self,
        problem: Problem,
        start: Start,
        solver: Solver,
        tol: float,
        max_iter: int,
        callback: Callback | None,
    ) -> Factorization:
        """Iterate, finish and certify; go on when the certificate does not hold yet."""
        with self.participants(problem) as rows:
            iteration = _iteration(problem, start, solver, rows)
            threshold, done = tol / MARGIN, 0
            patience = _STILL if problem.observations.repeats > 1 else max_iter
            while True:
                done, _ = _advance(iteration, threshold, max_iter, done, callback, patience=patience)
                finished = finish(problem, iteration.Q, tol=tol, rows=rows)
                converged = finished.certificate.holds(tol)
                if converged or done >= max_iter:
                    break
                threshold /= 2
        return finished.factorization(iteration.trace, converged, done)


def paired(
    problems: Problem | Iterable[Problem], starts: Start | Iterable[Start]
) -> Iterator[tuple[Problem, Start]]:
    """Each problem with its start, where one of them may serve for all; a generator is not run ahead of."""
    if isinstance(problems, Problem):
        starts = [starts] if isinstance(starts, Start) else list(starts)
        problems = [problems] * len(starts)
    elif isinstance(starts, Start):
        problems = list(problems)
        starts = [starts] * len(problems)
    return zip(problems, starts, strict=True)


def _iteration(problem: Problem, start: Start, solver: Solver, rows: Rows) -> ADMMIteration | FastIteration:
    if solver.name == "admm" and not problem.observations.here:
        raise InputError(
            "solver='admm' needs all answers in memory; the answers of this fit are read in parts.",
            remedy="Leave solver at 'fast'.",
        )
    if isinstance(start, WarmStart):
        rows.apply(PlaceSolved(start.loadings, problem.terms, _SCORES))
        return FastIteration(problem, start.loadings, rows)
    if isinstance(start, NamedStart):
        if solver.name == "fast" and problem.observations.repeats == 1:
            return FastIteration(problem, begin(problem, rows, start.name, start.k, start.rng), rows)
        start = Starts(problem).make(start.name, start.k, start.rng)
    if solver.name == "admm":
        from icqf.core.admm import ADMMIteration

        return ADMMIteration(problem, start, rho=solver.rho, inner=solver.inner)
    rows.start_at(start)
    at_bound = start.multipliers is not None and len(start.multipliers.rows) > 0
    return FastIteration(problem, start.loadings, rows, looks=at_bound)


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

    Where items come several times and their loadings are drawn together, a participant at the edge of a bound
    may cross it forth and back for ever, and stir nothing else: after `patience` iterations in which the
    loadings did not move, that is not waited for.
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
