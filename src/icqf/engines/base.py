"""The base class of engines: iterations over participants, wherever their data are."""

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
from icqf.core.start import Starts, begin, plain_nndsvd
from icqf.errors import InputError

if TYPE_CHECKING:
    from icqf.core.admm import ADMMIteration

_AT_LEAST = 10  # iterations before the change of the objective counts, as in the authors' program
_STILL = 20  # iterations without a move of the loadings, after which the certificate is computed anyway
_SCORES = 1e-3  # tolerance of the scores at a warm start
FINEST = 2e-5  # moves that single precision settles to
MARGIN = 1.25  # iterations stop this much below the tolerance, so that the certificate rarely needs more


@dataclass(frozen=True)
class Solver:
    """Which solver runs, and ADMM's settings.

    `steady` iterations of "fast" keep their momentum where F rises by no more than rounding explains: they
    leave a flat valley several times as fast. A certified fit is iterated `finer` times as far as its
    tolerance asks, unless single precision would not settle there. With `stop` "objective", iterations end
    where the objective changes by less than the tolerance of itself, after ten at least (the paper's rule).
    """

    name: Literal["fast", "admm"] = "fast"
    inner: Literal["cd", "fista", "admm", "sweep"] = "cd"
    rho: float | Literal["adaptive"] = 3.0
    steady: bool = False
    finer: float = 1.0
    stop: Literal["certificate", "objective"] = "certificate"


@dataclass(frozen=True)
class NamedStart:
    """A start by name, which is computed where the participants' data are."""

    name: str
    k: int
    rng: np.random.Generator


@dataclass(frozen=True)
class WarmStart:
    """Loadings (K, m) to continue from, with the optimal scores for them."""

    loadings: Array


@dataclass(frozen=True)
class IterationProgress:
    """What a callback receives after each iteration."""

    iteration: int
    max_iter: int
    objective: float
    excess: float
    step: float


@dataclass(frozen=True, eq=False)
class HiddenAnswers:
    """The hidden answers of one fold, on which its fits are evaluated."""

    hidden: Array  # (n, m), which answers are hidden
    answers: Array  # (n, m), all answers
    scale: Array  # (m,), errors are those of ``scale * answer``
    top: Array  # (m,), a prediction p is ``units * min(p, top) + low``
    units: Array
    low: Array
    row_block: Array  # (n,), the block of each participant


@dataclass(frozen=True)
class FoldError:
    """Mean squared error on the hidden answers of a fold, and iterations, of a fit with k factors."""

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

    `batches` is true if it solves many problems at once, so that one call should pass all of them.
    """

    batches: ClassVar[bool] = False

    @abstractmethod
    def participants(self, problem: Problem) -> AbstractContextManager[Rows]:
        """The participants of a problem, for the duration of a fit."""

    def here(self) -> Engine:
        """Itself, or another engine if this machine lacks what it needs."""
        return self

    def for_many(self, problem: Problem) -> Engine:
        """The engine for many fits of such problems: itself, or another if it cannot do them."""
        return self

    def search(
        self,
        problems: Sequence[Problem],
        hidden: Sequence[HiddenAnswers],
        ks: Sequence[int],
        betas: Sequence[float],
        *,
        tol: float,
        max_iter: int,
    ) -> list[FoldError] | None:
        """Fit every fold with every number of factors and penalty; None if the engine has no own search.

        Parameters
        ----------
        problems, hidden : sequences
            What the fits of each fold may see, and the answers that they are evaluated on.
        ks, betas : sequences
            Numbers of factors, each from its NNDSVD start, and penalties, each from the end of the last.
        """
        return None

    def processes(self, shared: Sequence[Any]) -> dict[str, Any] | None:
        """Settings of joblib that run many small fits in the engine's own processes.

        `shared` is what these fits have in common. None: they run in processes of this machine.
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
            One, or a batch; problems that share answers and differ in mask, weights or β come from
            `Problem.hide`, `Problem.drawn` and `Problem.with_beta`. Problems of a generator are released one
            by one, so that a thousand resamples take the memory of one.
        starts : Factors, NamedStart or iterable of them
            One for all, or one per problem; or several for one problem.
        tol : float
            With `exact`, the tolerance of the certificate; otherwise, of an iteration's move.
        exact : bool
            Whether each fit ends with exact scores, exact bounds and a certificate that holds (a final fit),
            or as soon as its moves have settled (fits that are compared with each other).
        callback : callable, optional
            Called after each iteration.
        """
        fit = self._certified if exact else self._settled
        pairs = paired(problems, starts)
        return [fit(problem, start, solver, tol, max_iter, callback) for problem, start in pairs]

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
            rule = _objective_settled if solver.stop == "objective" else None
            n_iter, converged = _advance(iteration, tol, max_iter, 0, callback, patience=max_iter, rule=rule)
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
        """Iterate, finish and certify, until the certificate holds."""
        with self.participants(problem) as rows:
            iteration = _iteration(problem, start, solver, rows)
            threshold, done = min(tol, max(tol / solver.finer, FINEST)) / MARGIN, 0
            patience = _STILL if problem.observations.repeats > 1 else max_iter
            if solver.stop == "objective":
                how: Any = {"patience": patience, "rule": _objective_settled}
                done, converged = _advance(iteration, tol, max_iter, 0, callback, **how)
                finished = finish(problem, iteration.Q, tol=tol, rows=rows)
                return finished.factorization(iteration.trace, converged, done)
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
    """Pair problems with starts, lazily; a single one of either serves for all."""
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
            "solver='admm' needs all answers in memory, but the answers of this fit are read in parts.",
            remedy="Use solver='fast'.",
        )
    if isinstance(start, WarmStart):
        rows.apply(PlaceSolved(start.loadings, problem.terms, _SCORES))
        return FastIteration(problem, start.loadings, rows, bounds_checked=True, steady=solver.steady)
    if isinstance(start, NamedStart):
        if solver.name == "fast" and problem.observations.repeats == 1:
            return FastIteration(problem, begin(problem, rows, start.name, start.k, start.rng), rows)
        if solver.name == "admm" and solver.inner == "sweep" and start.name == "nndsvd":
            start = plain_nndsvd(problem, start.k)
        else:
            start = Starts(problem).make(start.name, start.k, start.rng)
    if solver.name == "admm":
        from icqf.core.admm import ADMMIteration

        return ADMMIteration(problem, start, rho=solver.rho, inner=solver.inner)
    rows.start_at(start)
    at_bound = start.multipliers is not None and len(start.multipliers.rows) > 0
    return FastIteration(problem, start.loadings, rows, bounds_checked=at_bound, steady=solver.steady)


def _objective_settled(iteration: ADMMIteration | FastIteration, tol: float) -> bool:
    """Whether the objective has changed by less than `tol` of itself, after more than ten iterations."""
    values = iteration.trace.objective
    return len(values) > _AT_LEAST + 1 and abs(values[-1] - values[-2]) < tol * abs(values[-1])


def _advance(
    iteration: ADMMIteration | FastIteration,
    tol: float,
    max_iter: int,
    done: int,
    callback: Callback | None,
    *,
    patience: int,
    rule: Callable[[Any, float], bool] | None = None,
) -> tuple[int, bool]:
    """Advance until the move has settled to `tol`; return the number of iterations, and whether it has.

    `rule`, of the iteration and `tol`, replaces that criterion.

    With repeated items and smoothed loadings, a participant at the edge of a bound may cross it back and
    forth forever without moving anything else: `patience` iterations without a move of the loadings suffice.
    """
    still = 0
    while done < max_iter:
        move = iteration.advance()
        done += 1
        still = still + 1 if move.loading_step <= tol else 0
        if callback is not None:
            objective = iteration.trace.objective[-1]
            callback(IterationProgress(done, max_iter, objective, move.excess, move.loading_step))
        if (move.settled(tol) or still > patience) if rule is None else rule(iteration, tol):
            return done, True
    return done, False
