"""The default solver: extrapolated block coordinate descent, one pass over the rows an iteration."""

from __future__ import annotations

import math

import numpy as np

from icqf.solvers.blocks import Loadings, Pass, Pressing, Sums, into_box, unpack, update_multipliers
from icqf.solvers.problem import Array, Problem
from icqf.solvers.result import Factors, Move, Trace
from icqf.solvers.sweeps import penalized_sweeps, penalized_sweeps_each

_LOADING_SWEEPS = 3
_EXACT_MOVES_EVERY = 3
_PRESS_BELOW = 0.03  # the bounds on reconstructed answers wait until the loadings move less than this
_MOMENTUM_CAP = 0.9
_SHRINK, _GROW = 0.8, 1.01  # of the cap, when an iteration finds F higher or lower than the last


class FastIteration:
    """The state of the fast solver; `advance` runs one iteration.

    An iteration extrapolates scores and loadings along their last move (Nesterov's sequence,
    restarted when the loadings' move turns back), lets each block of rows move its scores, then
    moves the loadings by coordinate sweeps on the sums. Two exact moves that leave every
    reconstructed answer as it is end slow crawls: the scale of each factor goes to where the
    penalty is least (`_balance`), and what all levels of a confound share goes to the intercept
    (`_to_intercept`).
    """

    def __init__(self, problem: Problem, start: Factors) -> None:
        self.problem = problem
        self.k = len(start.scores)
        self.A = problem.with_confounds(start.scores)
        self.previous = self.A[: self.k].copy()
        self.Q = start.loadings.astype(problem.dtype)
        self.Q_previous = self.Q.copy()
        self.pressing = start.pressing or Pressing.none(problem.m, problem.dtype)
        self.trace = Trace()
        self._t = 1.0
        self._momentum = 0.0
        self._moved = math.inf
        self._cap = _MOMENTUM_CAP
        self._objective = math.inf

    def factors(self) -> Factors:
        """The current scores (k, n) and loadings (K, m)."""
        return Factors(self.A[: self.k], self.Q, self.pressing)

    def advance(self) -> Move:
        """One iteration."""
        problem, k = self.problem, self.k
        y = into_box(
            self.Q + np.asarray(self._momentum, self.Q.dtype) * (self.Q - self.Q_previous),
            problem.bounds.loading,
        )
        looked_at = len(self.pressing.rows) > 0 or self._moved < _PRESS_BELOW
        pressing = self.pressing if looked_at and problem.bounds.reconstruction is not None else None
        over_rows = Pass(problem, self.A, self.previous, Loadings(y, k), pressing, self._momentum)
        pressed = over_rows.run()
        sums = over_rows.sums
        objective = sums.objective + problem.penalty.of_loadings(y)

        Q = self._loading_step(y, sums)
        score_unit, loading_unit = problem.units(sums.peak, Q)
        step = self._moved = float((np.abs(Q - y) / loading_unit).max())
        score_step = float((sums.step / score_unit).max())
        self._set_momentum(y, Q, np.diag(sums.S), objective)
        self.Q_previous, self.Q = self.Q, Q
        if len(self.trace.step) % _EXACT_MOVES_EVERY == 0:
            self._to_intercept()
        self.pressing = update_multipliers(problem, self.A, self.Q, pressed)
        if problem.bounds.score is None or len(self.trace.step) % _EXACT_MOVES_EVERY == 0:
            self._balance(sums.mass, sums.peak)
        self.trace.add(objective=objective, excess=sums.excess, step=step)
        return Move(step, score_step, sums.excess)

    def _loading_step(self, y: Array, sums: Sums) -> Array:
        problem, penalty = self.problem, self.problem.penalty
        S = sums.S.astype(y.dtype)
        P = (sums.P + sums.cross @ y).astype(y.dtype)
        Q = y.copy()
        top, lam = problem.bounds.loading, penalty.beta * penalty.gamma
        if sums.active is None:
            penalized_sweeps(Q, S, P, top, kind=penalty.kind, lam=lam, sweeps=_LOADING_SWEEPS, xp=np)
        else:
            gram = S[:, :, None] + unpack(sums.active, len(y)).astype(y.dtype)
            penalized_sweeps_each(
                Q, S @ y - P, gram, top, kind=penalty.kind, lam=lam, sweeps=_LOADING_SWEEPS, xp=np
            )
        return Q

    def _set_momentum(self, y: Array, Q: Array, curvature: Array, objective: float) -> None:
        """Nesterov's sequence; restarted when the loadings turn back, held shorter when F has risen."""
        rose = objective > self._objective
        self._objective = objective
        self._cap = _SHRINK * self._cap if rose else min(_MOMENTUM_CAP, _GROW * self._cap)
        turned = curvature @ ((y - Q) * (Q - self.Q)).sum(axis=1) > 0
        if rose or turned:
            self._t, self._momentum = 1.0, 0.0
            return
        t = (1 + math.sqrt(1 + 4 * self._t**2)) / 2
        self._momentum = min(self._cap, (self._t - 1) / t)
        self._t = t

    def _to_intercept(self) -> None:
        if self.problem.penalty.kind == "l1":
            share_with_intercept(self.problem, self.Q, self.k)

    def _balance(self, mass: Array, peak: Array) -> None:
        """Scale each factor to its least penalty: W_r·s, Q_r/s, as far as the boxes allow."""
        problem = self.problem
        if problem.penalty.kind == "l21":
            return
        own = self.Q[: self.k].astype(np.float64)
        size = own.sum(axis=1)
        used = (mass > 0) & (size > 0)
        if problem.penalty.kind == "l1":
            s = np.sqrt(problem.penalty.gamma * size / np.where(used, mass, 1.0))
        else:
            weights = np.ones(problem.n) if problem.weights is None else problem.weights
            squares = self.A[: self.k].astype(np.float64) ** 2 @ weights
            s = (problem.penalty.gamma * (own**2).sum(axis=1) / np.where(used, squares, 1.0)) ** 0.25
        if problem.bounds.loading is not None:
            s = np.maximum(s, (own / problem.bounds.loading).max(axis=1))
        if problem.bounds.score is not None:
            s = np.minimum(s, problem.bounds.score / np.where(used, peak, 1.0))
        s = np.where(used, s, 1.0).astype(self.A.dtype)
        if np.abs(s - 1).max() < 1e-6:
            return
        self.A[: self.k] *= s[:, None]
        self.previous *= s[:, None]
        self.Q[: self.k] /= s[:, None]
        self.Q_previous[: self.k] /= s[:, None]
        into_box(self.A[: self.k], problem.bounds.score)
        into_box(self.Q, problem.bounds.loading)


def share_with_intercept(problem: Problem, Q: Array, k: int) -> None:
    """Move what all columns of a partition have in common to the intercept, in place.

    The columns of a partition add up to one for everybody, so R stays as it is, and the ℓ1
    penalty falls: one loading carries what two or more did.
    """
    if problem.intercept is None:
        return
    intercept = k + problem.intercept
    for partition in problem.partitions:
        columns = [k + column for column in partition]
        common = Q[columns].min(axis=0)
        if problem.bounds.loading is not None:
            common = np.minimum(common, np.maximum(problem.bounds.loading - Q[intercept], 0))
        common = common.astype(Q.dtype)
        Q[columns] -= common
        Q[intercept] += common
