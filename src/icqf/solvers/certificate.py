"""The certificate: how far any single score or loading could still move, and what that would gain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from icqf.solvers.penalties import Penalty
from icqf.solvers.problem import Array, Problem, half_square
from icqf.solvers.result import Certificate, Fit

_ROWS_AT_A_TIME = 16384
_NO_VARIANCE = 1e-11  # of an item's sum of squares: what rounding may leave of an item that does not vary
_AT_A_TIME = 32  # coordinates whose limit is worked out together
Limit = Callable[[Array, Array], Array]


def examine(problem: Problem, W: Array, Q: Array) -> tuple[Certificate, Fit, float]:
    """One pass in double precision over all answers: certificate, fit and objective."""
    k, bounds = len(W), problem.bounds
    A = problem.with_confounds(W, np.float64)
    own, squares = Q[:k], Q[:k] ** 2
    pull, curvature, together, answered = (np.zeros_like(Q) for _ in range(4))
    sse, total, total_square, count = (np.zeros(problem.m) for _ in range(4))
    misfit, excess, score_step, gain = 0.0, 0.0, 0.0, 0.0
    top = np.inf if bounds.score is None else bounds.score
    score_unit, loading_unit = problem.units(W.max(axis=1), Q)
    for block in problem.precise_blocks():
        A_b = A[:, block.rows]
        R = A_b.T @ Q
        D = block.masked(block.X - R)
        O = block.observed()
        weights = np.ones(len(D)) if block.weights is None else block.weights
        misfit += half_square(D, block.weights)
        if bounds.reconstruction is not None:
            above = (R.max(axis=0) - bounds.reconstruction) / problem.span
            excess = max(excess, float(above.max()))

        w = A_b[:k]
        line = _Line(problem.penalty, 1.0, w, squares @ O.T, (D @ own.T).T, top, weights, score_unit[:, None])
        limit = partial(_score_limit, bounds.reconstruction, R, own, w)
        score_step = max(score_step, line.largest_step(limit, floor=score_step))
        gain = max(gain, line.largest_gain(limit, floor=gain))

        weighted = A_b * weights
        pull += weighted @ D
        curvature += (weighted * A_b) @ O
        together += weighted @ block.X
        answered += weighted.sum(axis=1, keepdims=True) if block.O is None else weighted @ O
        sse += weights @ D**2
        total += weights @ block.X
        total_square += weights @ block.X**2
        count += weights @ O

    ceiling = np.inf if bounds.loading is None else bounds.loading
    line = _Line(problem.penalty_of_loadings, problem.gamma, Q, curvature, pull, ceiling, 1.0, loading_unit)
    limit = partial(_loading_limit, bounds.reconstruction, A, Q)
    certificate = Certificate(
        score_step=score_step,
        loading_step=line.largest_step(limit),
        excess=max(excess, 0.0),
        gain=max(gain, line.largest_gain(limit, floor=gain)),
    )
    means = total / np.maximum(count, 1e-300)
    sst = total_square - total * means
    varies = sst > _NO_VARIANCE * total_square
    explained = Q * (together - answered * means)  # Σ ω (x − x̄)(a − ā) q: the mean of a drops out
    sst, explained = np.where(varies, sst, 0.0), np.where(varies, explained, 0.0)
    return certificate, Fit(sse, sst, explained), problem.objective(W, Q, misfit=misfit)


class _Line:
    """The exact step of every coordinate of x with all others held, and what it would gain.

    The steps are first taken without the bound on reconstructed answers. Only for the largest
    ones that go up is it then worth asking how far that bound lets them go (`limit`).
    """

    def __init__(
        self,
        penalty: Penalty,
        scale: float,
        x: Array,
        curvature: Array,
        pull: Array,
        top: Array | float,
        weights: Array | float,
        unit: Array,
    ) -> None:
        self.penalty, self.scale, self.x, self.weights, self.unit = penalty, scale, x, weights, unit
        self.h = curvature
        self.p = curvature * x + pull
        self.context = penalty.context(x)
        self.best = np.minimum(penalty.coordinate(self.h, self.p, self.context, scale=scale), top)
        self.limited = np.zeros(x.shape, dtype=bool)

    def largest_step(self, limit: Limit, *, floor: float = 0.0) -> float:
        """The largest step, as a share of `unit`."""
        unit = np.broadcast_to(self.unit, self.x.shape)
        return self._largest(lambda at, new: np.abs(new - self.x[at]) / unit[at], limit, floor)

    def largest_gain(self, limit: Limit, *, floor: float = 0.0) -> float:
        """The largest drop of F."""
        weights = np.broadcast_to(self.weights, self.x.shape)
        return self._largest(
            lambda at, new: (self._value(at, self.x[at]) - self._value(at, new)) * weights[at], limit, floor
        )

    def _value(self, at: Any, w: Array) -> Array:
        smooth = 0.5 * self.h[at] * w**2 - self.p[at] * w
        return smooth + self.penalty.along(w, self.context[at], scale=self.scale)

    def _largest(self, measure: Callable[[Any, Array], Array], limit: Limit, floor: float) -> float:
        size = measure(..., self.best)
        open_ended = (self.best > self.x) & ~self.limited
        reached = max(floor, float(np.max(size, where=~open_ended, initial=0.0)))
        ranked = np.flatnonzero(open_ended & (size > reached))
        ranked = ranked[np.argsort(-size.ravel()[ranked])]
        for first in range(0, len(ranked), _AT_A_TIME):
            some = ranked[first : first + _AT_A_TIME]
            if size.ravel()[some[0]] <= reached:
                break
            at = np.unravel_index(some, self.x.shape)
            self.best[at] = np.minimum(self.best[at], np.maximum(limit(*at), self.x[at]))
            self.limited[at] = True
            reached = max(reached, float(measure(at, self.best[at]).max()))
        return reached


def _score_limit(bound: Array | None, R: Array, own: Array, w: Array, factors: Array, rows: Array) -> Array:
    """How high a score can go before one of the participant's reconstructed answers leaves its range."""
    if bound is None:
        return np.full(len(rows), np.inf)
    loadings = own[factors]
    room = np.where(loadings > 0, (bound - R[rows]) / np.where(loadings > 0, loadings, 1.0), np.inf)
    return w[factors, rows] + room.min(axis=1)


def _loading_limit(bound: Array | None, A: Array, Q: Array, factors: Array, items: Array) -> Array:
    """How high a loading can go before one of the item's reconstructed answers leaves its range."""
    if bound is None:
        return np.full(len(items), np.inf)
    lowest = np.full(len(items), np.inf)
    for start in range(0, A.shape[1], _ROWS_AT_A_TIME):
        A_b = A[:, start : start + _ROWS_AT_A_TIME]
        slack = bound[items] - A_b.T @ Q[:, items]
        carried = A_b[factors].T
        room = np.divide(slack, carried, out=np.full_like(slack, np.inf), where=carried > 0)
        lowest = np.minimum(lowest, room.min(axis=0))
    return Q[factors, items] + lowest
