"""The default solver: extrapolated block coordinate descent, one pass over the participants per iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from icqf.core.acceleration import (
    EXACT_MOVES_EVERY,
    LOADING_SWEEPS,
    MOMENTUM_CAP,
    balance,
    next_momentum,
    of_numbers,
    share_with_intercept,
    turns_back,
)
from icqf.core.block_step import (
    Loadings,
    Multipliers,
    Sums,
    ahead,
    block_step,
    extrapolated,
    into_box,
    unpack,
    updated_multipliers,
)
from icqf.core.observations import Block
from icqf.core.problem import Array, Problem, Terms
from icqf.core.result import Factors, Move, Trace
from icqf.core.rows import BlockState, InTurn, Pass, Rescale, Rows

_next_momentum = of_numbers(next_momentum)
ROUNDING = 1e-6  # of F: where iterations are steady, a rise by less does not end their momentum
CHECK_BOUNDS_BELOW = 0.05  # the bounds on reconstructed answers wait until the loadings move less than this


def momentum_at_bound(n: int) -> float:
    """Momentum of multipliers after n iterations at the bound: less while scores and loadings move far."""
    return min(MOMENTUM_CAP, 0.3 + n / 50)


@dataclass(frozen=True)
class Step:
    """Extrapolate and move the scores; `bounded` minds the bound on reconstructed answers."""

    loadings: Loadings
    terms: Terms
    momentum: float
    bounded: bool

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, Sums]:
        W, known = state.current, state.multipliers
        if known is None:
            known = Multipliers.none(block.X.shape[1], W.dtype)
        previous = W if state.previous is None else state.previous
        y = extrapolated(W, previous, self.momentum, self.terms.bounds.score, still=known.rows)
        moved, multipliers, sums = block_step(
            block, y, known if self.bounded else None, self.loadings, self.terms
        )
        if multipliers is None:
            multipliers = known
        return replace(state, scores=moved, previous=W, multipliers=multipliers, exact=None), sums


@dataclass(frozen=True)
class MoveMultipliers:
    """Move the multipliers of those at the bound to new loadings Q (K, m)."""

    Q: Array
    terms: Terms
    momentum: float

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, None]:
        if state.multipliers is None or len(state.multipliers.rows) == 0:
            return state, None
        multipliers = updated_multipliers(
            block, state.current, state.multipliers, self.Q, self.terms, self.momentum
        )
        return replace(state, multipliers=multipliers), None


class FastIteration:
    """The state of the fast solver; `advance` runs one iteration.

    An iteration extrapolates scores and loadings along their last move (Nesterov's sequence,
    restarted when the loadings' move turns back), lets each block of participants move its scores, then
    moves the loadings by coordinate sweeps on the sums. Two exact moves that leave every
    reconstructed answer as it is end slow crawls: the scale of each factor goes to where the
    penalty is least, and what all levels of a confound share goes to the intercept.
    """

    def __init__(
        self,
        problem: Problem,
        loadings: Array,
        rows: Rows,
        *,
        bounds_checked: bool = False,
        steady: bool = False,
    ) -> None:
        self.problem = problem
        self.rows = rows
        self.k = len(loadings) - problem.c
        self.Q = loadings.astype(problem.dtype)
        self.Q_previous = self.Q.copy()
        self.trace = Trace()
        self._terms = problem.terms
        self._waiting: tuple[Pass, ...] = ()  # what blocks do before their next step
        self._bounds_checked = bounds_checked  # on reconstructed answers; once begun, to the end
        self._n_checked = 0  # iterations that checked the bounds
        self._t = 1.0
        self._momentum = 0.0
        self._moved = math.inf
        self._cap = MOMENTUM_CAP
        self._objective = math.inf
        self._rounding = ROUNDING if steady else 0.0

    def factors(self) -> Factors:
        """The current scores (k, n) and loadings (K, m), with the multipliers of active bounds."""
        if self._waiting:
            self.rows.apply(InTurn(self._waiting))
        self._waiting = ()
        return self.rows.factors(self.Q)

    def advance(self) -> Move:
        """One iteration."""
        problem = self.problem
        y = ahead(self.Q, self.Q_previous, self._momentum, problem.bounds.loading)
        bounded = problem.bounds.reconstruction is not None
        self._bounds_checked = bounded and (self._bounds_checked or self._moved < CHECK_BOUNDS_BELOW)
        step_of_scores = Step(Loadings(y, self.k), self._terms, self._momentum, self._bounds_checked)
        sums = self.rows.apply(InTurn((*self._waiting, step_of_scores)))
        self._waiting = ()
        objective = problem.total(sums.misfit, sums.penalty, y)

        Q = self._loading_step(y, sums)
        score_unit, loading_unit = problem.units(sums.peak, Q)
        step = self._moved = float((np.abs(Q - y) / loading_unit).max())
        score_step = float((sums.step / score_unit).max())
        self._set_momentum(y, Q, sums.curvature, objective)
        self.Q_previous, self.Q = self.Q, Q
        exact_moves = len(self.trace.step) % EXACT_MOVES_EVERY == 0
        if exact_moves:
            share_with_intercept(problem, self.Q, self.k)
        if self._bounds_checked:
            self._waiting = (MoveMultipliers(self.Q.copy(), self._terms, momentum_at_bound(self._n_checked)),)
            self._n_checked += 1
        if problem.bounds.score is None or exact_moves:
            self._balance(sums)
        self.trace.add(objective=objective, excess=sums.excess, step=step)
        return Move(step, score_step, sums.excess)

    def _loading_step(self, y: Array, sums: Sums) -> Array:
        if sums.moved is not None:
            return sums.moved.astype(y.dtype)
        problem = self.problem
        penalty, top, gamma = problem.penalty_of_loadings, problem.bounds.loading, problem.gamma
        S = sums.S.astype(y.dtype)
        P = (sums.P + sums.cross @ y).astype(y.dtype)
        Q = y.copy()
        if sums.active is None:
            penalty.sweep(Q, S, P, top, scale=gamma, sweeps=LOADING_SWEEPS, xp=np)
        else:
            gram = S[:, :, None] + unpack(sums.active, len(y)).astype(y.dtype)
            penalty.sweep_each(Q, S @ y - P, gram, top, scale=gamma, sweeps=LOADING_SWEEPS, xp=np)
        return Q

    def _set_momentum(self, y: Array, Q: Array, curvature: Array, objective: float) -> None:
        rose = objective > self._objective * (1 + self._rounding)
        turned = bool(turns_back(curvature, y, Q, self.Q))
        self._objective = objective
        self._momentum, self._t, self._cap = _next_momentum(rose, turned, self._t, self._cap)

    def _balance(self, sums: Sums) -> None:
        s = balance(self.problem, sums.mass, sums.peak, self.Q[: self.k])
        if s is None:
            return
        s = s.astype(self.Q.dtype)
        self._waiting += (Rescale(s, self.problem.bounds.score),)
        self.Q[: self.k] /= s[:, None]
        self.Q_previous[: self.k] /= s[:, None]
        into_box(self.Q, self.problem.bounds.loading)
