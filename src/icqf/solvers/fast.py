"""The default solver: extrapolated block coordinate descent, one pass over the participants per iteration."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from icqf.solvers.block_step import Loadings, Multipliers, Sums, into_box, unpack
from icqf.solvers.exact_moves import balance, share_with_intercept
from icqf.solvers.problem import Array, Problem
from icqf.solvers.result import Factors, Move, Trace

_LOADING_SWEEPS = 3
_EXACT_MOVES_EVERY = 3
_PRESS_BELOW = 0.03  # the bounds on reconstructed answers wait until the loadings move less than this
_MOMENTUM_CAP = 0.9
_SHRINK, _GROW = 0.8, 1.01  # of the cap, when an iteration finds F higher or lower than the last


class Rows(Protocol):
    """The participants' side of an iteration, wherever their blocks are kept."""

    def step(self, loadings: Loadings, *, momentum: float, look: bool) -> Sums:
        """Extrapolate and move all scores; `look` at the bound on reconstructed answers or not."""

    def update_multipliers(self, Q: Array) -> int:
        """Move the multipliers to new loadings; returns how many participants still press."""

    def rescale(self, s: Array) -> None:
        """Multiply each factor's scores, and those of the step before, by s (k,)."""

    def scores(self) -> Array:
        """All scores (k, n)."""

    def multipliers(self) -> Multipliers:
        """The multipliers of all participants who press."""


class FastIteration:
    """The state of the fast solver; `advance` runs one iteration.

    An iteration extrapolates scores and loadings along their last move (Nesterov's sequence,
    restarted when the loadings' move turns back), lets each block of participants move its scores, then
    moves the loadings by coordinate sweeps on the sums. Two exact moves that leave every
    reconstructed answer as it is end slow crawls: the scale of each factor goes to where the
    penalty is least, and what all levels of a confound share goes to the intercept.
    """

    def __init__(self, problem: Problem, start: Factors, rows: Rows) -> None:
        self.problem = problem
        self.rows = rows
        self.k = len(start.scores)
        self.Q = start.loadings.astype(problem.dtype)
        self.Q_previous = self.Q.copy()
        self.trace = Trace()
        self._pressing = 0 if start.multipliers is None else len(start.multipliers.rows)
        self._t = 1.0
        self._momentum = 0.0
        self._moved = math.inf
        self._cap = _MOMENTUM_CAP
        self._objective = math.inf

    def factors(self) -> Factors:
        """The current scores (k, n) and loadings (K, m), with the multipliers of active bounds."""
        return Factors(self.rows.scores(), self.Q, self.rows.multipliers())

    def advance(self) -> Move:
        """One iteration."""
        problem = self.problem
        y = into_box(
            self.Q + np.asarray(self._momentum, self.Q.dtype) * (self.Q - self.Q_previous),
            problem.bounds.loading,
        )
        bounded = problem.bounds.reconstruction is not None
        look = bounded and (self._pressing > 0 or self._moved < _PRESS_BELOW)
        sums = self.rows.step(Loadings(y, self.k), momentum=self._momentum, look=look)
        objective = problem.total(sums.misfit, sums.penalty, y)

        Q = self._loading_step(y, sums)
        score_unit, loading_unit = problem.units(sums.peak, Q)
        step = self._moved = float((np.abs(Q - y) / loading_unit).max())
        score_step = float((sums.step / score_unit).max())
        self._set_momentum(y, Q, sums.curvature, objective)
        self.Q_previous, self.Q = self.Q, Q
        exact_moves = len(self.trace.step) % _EXACT_MOVES_EVERY == 0
        if exact_moves:
            share_with_intercept(problem, self.Q, self.k)
        self._pressing = self.rows.update_multipliers(self.Q)
        if problem.bounds.score is None or exact_moves:
            self._balance(sums)
        self.trace.add(objective=objective, excess=sums.excess, step=step)
        return Move(step, score_step, sums.excess)

    def _loading_step(self, y: Array, sums: Sums) -> Array:
        problem = self.problem
        penalty, top, gamma = problem.penalty_of_loadings, problem.bounds.loading, problem.gamma
        S = sums.S.astype(y.dtype)
        P = (sums.P + sums.cross @ y).astype(y.dtype)
        Q = y.copy()
        if sums.active is None:
            penalty.sweep(Q, S, P, top, scale=gamma, sweeps=_LOADING_SWEEPS, xp=np)
        else:
            gram = S[:, :, None] + unpack(sums.active, len(y)).astype(y.dtype)
            penalty.sweep_each(Q, S @ y - P, gram, top, scale=gamma, sweeps=_LOADING_SWEEPS, xp=np)
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

    def _balance(self, sums: Sums) -> None:
        s = balance(self.problem, sums.mass, sums.peak, self.Q[: self.k])
        if s is None:
            return
        s = s.astype(self.Q.dtype)
        self.rows.rescale(s)
        self.Q[: self.k] /= s[:, None]
        self.Q_previous[: self.k] /= s[:, None]
        into_box(self.Q, self.problem.bounds.loading)
