"""The last step of every solver: exact scores, exact bounds, and the certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from icqf.solvers.fast import share_with_intercept
from icqf.solvers.problem import Array, PenaltyKind, Problem, half_square
from icqf.solvers.result import Certificate, Factors, Fit
from icqf.solvers.scores import solve_scores

_NEWTON_STEPS = 60
_FLAT = 1e-12  # less curvature than this is none
_ROWS_AT_A_TIME = 16384
_AT_A_TIME = 32  # coordinates whose limit is worked out together


@dataclass(frozen=True)
class Finished:
    """A feasible solution with everything that is said about it."""

    factors: Factors
    objective: float
    certificate: Certificate
    fit: Fit


def finish(problem: Problem, Q: Array, *, tol: float) -> Finished:
    """Best scores for the loadings Q (K, m), brought exactly inside every bound, and measured.

    Factors come out in order of how much of the answers' variance they explain.
    """
    Q = _loadings_inside(problem, Q.astype(np.float64))
    W = solve_scores_inside(problem, Q, tol=tol)
    certificate, fit, misfit = _examine(problem, W, Q)
    k = len(W)
    order = np.argsort(-fit.removal[:k].sum(axis=1), kind="stable")
    rows = np.concatenate([order, np.arange(k, len(Q))])
    return Finished(
        Factors(W[order], Q[rows]),
        misfit + problem.penalty_of(W, Q),
        certificate,
        Fit(fit.sse, fit.sst, fit.removal[rows]),
    )


def score_tolerance(tol: float) -> float:
    """How exactly the scores are solved for given loadings."""
    return max(1e-6, min(1e-4, tol / 100))


def solve_scores_inside(problem: Problem, Q: Array, *, tol: float) -> Array:
    """Best scores W (k, n) for the loadings Q (K, m), with every reconstructed answer inside its range."""
    W = solve_scores(problem, Q, tol=tol)
    _scores_inside(problem, W, Q)
    return W


def _margin(K: int) -> float:
    """Share of the range left free, so that R ≤ b however its K products are added up."""
    return 4 * (K + 2) * np.finfo(np.float64).eps


def _loadings_inside(problem: Problem, Q: Array) -> Array:
    """Clip the loadings; shrink an item's confound loadings where they alone exceed its range."""
    k = len(Q) - problem.c
    Q = np.maximum(Q, 0)
    if problem.bounds.loading is not None:
        Q = np.minimum(Q, problem.bounds.loading)
    if problem.penalty.kind == "l1":
        share_with_intercept(problem, Q, k)
    if problem.bounds.reconstruction is not None and problem.c:
        allowed = problem.bounds.reconstruction * (1 - _margin(len(Q)))
        highest = np.zeros(problem.m)
        for block in problem.blocks():
            part = problem.design[:, block.rows].astype(np.float64).T @ Q[k:]
            highest = np.maximum(highest, part.max(axis=0))
        Q[k:] *= np.minimum(1.0, allowed / np.maximum(highest, 1e-300))
    return Q


def _scores_inside(problem: Problem, W: Array, Q: Array) -> None:
    """Shrink the scores of each row whose reconstruction is above its range, in place."""
    if problem.bounds.reconstruction is None:
        return
    k = len(W)
    allowed = problem.bounds.reconstruction * (1 - _margin(len(Q)))
    for block in problem.blocks():
        base = problem.design[:, block.rows].astype(np.float64).T @ Q[k:]
        own = W[:, block.rows].T @ Q[:k]
        rows = np.flatnonzero((base + own > allowed).any(axis=1))
        if len(rows):
            room = np.maximum(allowed - base[rows], 0)
            shrink = np.where(own[rows] > room, room / np.maximum(own[rows], 1e-300), 1.0).min(axis=1)
            W[:, block.rows.start + rows] *= shrink


def best_coordinate(kind: PenaltyKind, lam: float, h: Array, p: Array, others: Array | float) -> Array:
    """The w ≥ 0 that minimises ½hw² − pw + penalty, where `others` is the sum of squares of its group.

    Where nothing bends the function, that is 0 or infinity.
    """
    if kind == "l2":
        h, lam = h + lam, 0.0
    flat = h <= _FLAT
    safe = np.where(flat, 1.0, h)
    if kind != "l21":
        return np.where(flat, np.where(p > lam, np.inf, 0.0), np.maximum(p - lam, 0) / safe)
    best = np.where(flat, 0.0, np.maximum(p - lam, 0) / safe)
    for _ in range(_NEWTON_STEPS):
        length = np.sqrt(best**2 + others)
        unit = np.divide(best, length, out=np.zeros_like(best), where=length > 0)
        bend = np.divide(others, length**3, out=np.zeros_like(best), where=length > 0)
        step = (h * best + lam * unit - p) / np.maximum(h + lam * bend, 1e-300)
        best = np.where(others > 0, np.maximum(best - step, 0), best)
    return np.where(flat & (p >= lam), np.where(p > lam, np.inf, 0.0), best)


def _examine(problem: Problem, W: Array, Q: Array) -> tuple[Certificate, Fit, float]:
    """One pass in double precision over all answers: certificate, fit and misfit."""
    k, penalty, bounds = len(W), problem.penalty, problem.bounds
    A = problem.with_confounds(W, np.float64)
    own, squares = Q[:k], Q[:k] ** 2
    pull, curvature = np.zeros_like(Q), np.zeros_like(Q)
    sse, total, total_square, count = (np.zeros(problem.m) for _ in range(4))
    misfit, excess, score_step, gain = 0.0, 0.0, 0.0, 0.0
    top = np.inf if bounds.score is None else bounds.score
    score_unit, loading_unit = problem.units(W.max(axis=1), Q)
    for block in problem.precise_blocks():
        A_b = A[:, block.rows]
        R = A_b.T @ Q
        D = block.masked(block.X - R)
        O = np.ones_like(D) if block.O is None else block.O
        weights = np.ones(len(D)) if block.weights is None else block.weights
        misfit += half_square(D, block.weights)
        if bounds.reconstruction is not None:
            above = (R.max(axis=0) - bounds.reconstruction) / problem.span
            excess = max(excess, float(above.max()))

        w = A_b[:k]
        line = _Line(
            penalty.kind, penalty.beta, w, squares @ O.T, (D @ own.T).T, top, weights, score_unit[:, None]
        )
        limit = partial(_score_limit, bounds.reconstruction, R, own, w)
        score_step = max(score_step, line.largest_step(limit, floor=score_step))
        gain = max(gain, line.largest_gain(limit, floor=gain))

        weighted = A_b * weights
        pull += weighted @ D
        curvature += (weighted * A_b) @ O
        sse += weights @ D**2
        total += weights @ block.X
        total_square += weights @ block.X**2
        count += weights @ O

    ceiling = np.inf if bounds.loading is None else bounds.loading
    line = _Line(penalty.kind, penalty.beta * penalty.gamma, Q, curvature, pull, ceiling, 1.0, loading_unit)
    limit = partial(_loading_limit, bounds.reconstruction, A, Q)
    certificate = Certificate(
        score_step=score_step,
        loading_step=line.largest_step(limit),
        excess=max(excess, 0.0),
        gain=max(gain, line.largest_gain(limit, floor=gain)),
    )
    removal = 2 * Q * pull + Q**2 * curvature
    sst = total_square - total**2 / np.maximum(count, 1e-300)
    return certificate, Fit(sse, sst, removal), misfit


Limit = Callable[[Array, Array], Array]


class _Line:
    """The exact step of every coordinate of x with all others held, and what it would gain.

    The steps are first taken without the bound on reconstructed answers. Only for the largest
    ones that go up is it then worth asking how far that bound lets them go (`limit`).
    """

    def __init__(
        self,
        kind: PenaltyKind,
        lam: float,
        x: Array,
        curvature: Array,
        pull: Array,
        top: Array | float,
        weights: Array | float,
        unit: Array,
    ) -> None:
        self.kind, self.lam, self.x, self.weights, self.unit = kind, lam, x, weights, unit
        self.h = curvature
        self.p = curvature * x + pull
        self.others = (x**2).sum(axis=0) - x**2 if kind == "l21" else np.zeros_like(x)
        best = best_coordinate(kind, lam, self.h, self.p, self.others)
        self.best = np.minimum(best, top)
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
        if self.kind == "l1":
            return smooth + self.lam * w
        if self.kind == "l2":
            return smooth + 0.5 * self.lam * w**2
        return smooth + self.lam * np.sqrt(w**2 + self.others[at])

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


def _score_limit(bound: Array | None, R: Array, own: Array, w: Array, factors: Array, people: Array) -> Array:
    """How high a score can go before one of the person's reconstructed answers leaves its range."""
    if bound is None:
        return np.full(len(people), np.inf)
    loadings = own[factors]
    room = np.where(loadings > 0, (bound - R[people]) / np.where(loadings > 0, loadings, 1.0), np.inf)
    return w[factors, people] + room.min(axis=1)


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
