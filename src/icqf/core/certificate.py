"""The last step of every solver: exact scores, exact bounds, and the certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from icqf.core.acceleration import share_with_intercept
from icqf.core.block_step import LARGEST, SMALLEST, Additive
from icqf.core.observations import Block, half_square, weighted_squares
from icqf.core.penalties import Penalty
from icqf.core.problem import Array, Problem, Terms
from icqf.core.result import Certificate, Factorization, Factors, Fit, Trace
from icqf.core.rows import BlockState, Rows, RowsHere
from icqf.core.scores import scores_of_block

_NO_VARIANCE = 1e-11  # of an item's sum of squares: what rounding may leave of an item that does not vary
_AT_A_TIME = 32  # coordinates whose limit is computed together at first,
_AND_THEN = 4  # and then this many times as many, as each pass over a cluster takes time
Limit = Callable[[Array, Array], Array]


def examine(problem: Problem, rows: Rows, Q: Array, peaks: Array) -> tuple[Certificate, Fit, float]:
    """One pass over all answers in double precision, but for curvatures and shares: certificate, fit, F.

    The participants keep their exact scores, whose highest are `peaks` (k,).
    """
    bounds = problem.bounds
    score_unit, loading_unit = problem.units(peaks, Q)
    found: Examined = rows.apply(Examine(Q, problem.terms, problem.span, score_unit))
    ceiling = np.inf if bounds.loading is None else bounds.loading
    line = _Line(
        problem.penalty_of_loadings, problem.gamma, Q, found.curvature, found.pull, ceiling, 1.0, loading_unit
    )

    def limit(factors: Array, items: Array) -> Array:
        if bounds.reconstruction is None:
            return np.full(len(items), np.inf)
        room: Room = rows.apply(LoadingRoom(Q, bounds.reconstruction, factors, items))
        return Q[factors, items] + room.room

    certificate = Certificate(
        score_step=float(found.score_step),
        loading_step=line.largest_step(limit),
        excess=float(max(found.excess, 0.0)),
        gain=max(float(found.gain), line.largest_gain(limit, floor=float(found.gain))),
    )
    means = found.total / np.maximum(found.count, 1e-300)
    sst = found.total_square - found.total * means
    varies = sst > _NO_VARIANCE * found.total_square
    explained = Q * (found.together - found.answered * means)  # Σ ω (x − x̄)(a − ā) q: the mean of a drops out
    sst, explained = np.where(varies, sst, 0.0), np.where(varies, explained, 0.0)
    objective = problem.total(found.misfit, found.penalty, Q)
    return certificate, Fit(found.sse, sst, explained), objective


@dataclass(frozen=True)
class Examined(Additive):
    """What the certificate needs to know about the participants."""

    misfit: float
    penalty: float
    pull: Array  # Σ ω a dᵀ (K, m)
    curvature: Array  # Σ ω a² o (K, m)
    together: Array  # Σ ω a xᵀ (K, m)
    answered: Array  # Σ ω a oᵀ (K, m)
    sse: Array  # squared errors of each item, and so on (m,)
    total: Array
    total_square: Array
    count: Array
    excess: float = field(metadata=LARGEST)
    score_step: float = field(metadata=LARGEST)
    gain: float = field(metadata=LARGEST)


@dataclass(frozen=True)
class Examine:
    """Measure how far any single score could still move, and add up the statistics of the fit."""

    Q: Array
    terms: Terms
    span: Array
    score_unit: Array

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, Examined]:
        if state.exact is None:
            raise ValueError("These participants have no exact scores yet.")
        w, bounds = state.exact, self.terms.bounds
        k, Q = len(w), self.Q
        A = np.concatenate([w, block.design])
        R = A.T @ Q
        excess = -np.inf
        if bounds.reconstruction is not None:
            excess = float(((R.max(axis=0) - bounds.reconstruction) / self.span).max())
        D = block.masked(block.X - R)
        weights = np.ones(len(D)) if block.exact_weights is None else block.exact_weights
        weighted = A * weights
        together, answered, curvature, own = _over_answers(block, weighted, A, Q[:k] ** 2)
        top = np.inf if bounds.score is None else bounds.score
        pull = (D @ Q[:k].T).T
        line = _Line(self.terms.penalty, 1.0, w, own, pull, top, weights, self.score_unit[:, None])
        limit = partial(_score_limit, bounds.reconstruction, R, Q[:k], w)
        total, total_square, count = block.moments
        return state, Examined(
            misfit=half_square(D, block.exact_weights),
            penalty=self.terms.penalty.value(w, block.exact_weights),
            pull=weighted @ D,
            curvature=curvature,
            together=together,
            answered=answered,
            sse=weighted_squares(D, block.exact_weights),
            total=total,
            total_square=total_square,
            count=count,
            excess=excess,
            score_step=line.largest_step(limit),
            gain=line.largest_gain(limit),
        )


def _over_answers(block: Block, weighted: Array, A: Array, squares: Array) -> tuple[Array, ...]:
    """Σ ω a xᵀ, Σ ω a oᵀ and Σ ω a² oᵀ over participants (K, m), and over items, of `squares` (k, m), (k, B).

    Curvatures and shares need no more digits than the table has, unlike the pulls, which nearly cancel.
    """
    dtype = block.X.dtype
    sums = np.concatenate([weighted, weighted * A])
    if block.O is None:
        of_items = np.repeat(sums.sum(axis=1, keepdims=True), squares.shape[1], axis=1)
        of_participants = np.repeat(squares.sum(axis=1, keepdims=True), block.n, axis=1)
    else:
        of_items, of_participants = sums.astype(dtype) @ block.O, (block.O @ squares.T.astype(dtype)).T
    parts = weighted.astype(dtype) @ block.X, of_items[: len(A)], of_items[len(A) :], of_participants
    return tuple(part.astype(np.float64) for part in parts)


@dataclass(frozen=True)
class Room(Additive):
    """How much higher some loadings can go before a reconstructed answer leaves its range."""

    room: Array = field(metadata=SMALLEST)


@dataclass(frozen=True)
class LoadingRoom:
    """Find how much higher the loadings of these factors on these items can go."""

    Q: Array
    bound: Array
    factors: Array
    items: Array

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, Room]:
        if state.exact is None:
            raise ValueError("These participants have no exact scores yet.")
        A = np.concatenate([state.exact, block.design])
        items, place = np.unique(self.items, return_inverse=True)
        slack = self.bound[items, None] - self.Q[:, items].T @ A
        np.maximum(slack, 1e-300, out=slack)
        with np.errstate(divide="ignore", over="ignore"):
            return state, Room(1 / (A[self.factors] / slack[place]).max(axis=1))


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
        size = size.ravel()
        left = np.flatnonzero(open_ended.ravel() & (size > reached))
        at_once = _AT_A_TIME
        while len(left):
            order = np.argpartition(-size[left], min(at_once, len(left)) - 1)
            at = np.unravel_index(left[order[:at_once]], self.x.shape)
            self.best[at] = np.minimum(self.best[at], np.maximum(limit(*at), self.x[at]))
            self.limited[at] = True
            reached = max(reached, float(measure(at, self.best[at]).max()))
            left = left[order[at_once:]]
            left = left[size[left] > reached]
            at_once *= _AND_THEN
        return reached


def _score_limit(bound: Array | None, R: Array, own: Array, w: Array, factors: Array, rows: Array) -> Array:
    """How high a score can go before one of the participant's reconstructed answers leaves its range."""
    if bound is None:
        return np.full(len(rows), np.inf)
    loadings = own[factors]
    room = np.where(loadings > 0, (bound - R[rows]) / np.where(loadings > 0, loadings, 1.0), np.inf)
    return w[factors, rows] + room.min(axis=1)


LOADING_BITS = 20  # of every loading, or six digits; more are not informative


@dataclass(frozen=True)
class Finished:
    """A feasible solution with its certificate and statistics."""

    factors: Factors
    objective: float
    certificate: Certificate
    fit: Fit
    order: Array  # (k,) the place that each factor had while its scores were solved for

    def factorization(self, trace: Trace, converged: bool, n_iter: int) -> Factorization:
        """The fit that ends here after these iterations."""
        return Factorization(
            self.factors, trace, converged, n_iter, self.objective, self.certificate, self.fit, self.order
        )


def finish(problem: Problem, Q: Array, *, tol: float, rows: Rows | None = None) -> Finished:
    """Best scores for the loadings Q (K, m), brought exactly inside every bound, and measured.

    Loadings are rounded to what the fit's `tol` leaves known of them: a model file must not hold digits that
    say nothing about the factors and something about the participants. Factors come out in order of how much
    of the answers' variance they explain.
    """
    rows = rows or RowsHere(problem.observations)
    Q = _loadings_inside(problem, Q.astype(np.float64), rows, bits=_bits(tol))
    peaks: Array = rows.apply(SolveScores(Q, problem.terms, score_tolerance(tol))).peaks
    certificate, fit, objective = examine(problem, rows, Q, peaks)
    k = len(Q) - problem.c
    order = np.argsort(-fit.explained[:k].sum(axis=1), kind="stable")
    sorted_rows = np.concatenate([order, np.arange(k, len(Q))])
    return Finished(
        Factors(rows.exact_scores()[order], Q[sorted_rows]),
        objective,
        certificate,
        Fit(fit.sse, fit.sst, fit.explained[sorted_rows]),
        order,
    )


def score_tolerance(tol: float) -> float:
    """How exactly the scores are solved for given loadings."""
    return max(1e-6, min(1e-4, tol / 100))


def solve_scores_inside(problem: Problem, Q: Array, *, tol: float) -> Array:
    """Best scores W (k, n) for the loadings Q (K, m), with every reconstructed answer inside its range."""
    rows = RowsHere(problem.observations)
    rows.apply(SolveScores(Q, problem.terms, tol))
    return rows.exact_scores()


@dataclass(frozen=True)
class Peaks(Additive):
    """The highest of something."""

    peaks: Array = field(metadata=LARGEST)


@dataclass(frozen=True)
class SolveScores:
    """Solve for the exact scores, and shrink those of participants above the range by rounding."""

    Q: Array
    terms: Terms
    tol: float

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, Peaks]:
        Q, bound = self.Q, self.terms.bounds.reconstruction
        W, at_bound = scores_of_block(block, Q, self.terms, tol=self.tol)
        rows = at_bound.rows
        if bound is not None and len(rows):
            base, own = block.design[:, rows].T @ Q[len(W) :], W[:, rows].T @ Q[: len(W)]
            room = np.maximum(bound * (1 - _margin(len(Q))) - base, 0)
            W[:, rows] *= np.where(own > room, room / np.maximum(own, 1e-300), 1.0).min(axis=1)
        return replace(state, exact=W), Peaks(W.max(axis=1))


@dataclass(frozen=True)
class PlaceSolved:
    """Place the participants at the best scores for the loadings Q (K, m)."""

    Q: Array
    terms: Terms
    tol: float

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, None]:
        scores, at_bound = scores_of_block(block, self.Q, self.terms, tol=self.tol)
        return replace(state, scores=scores.astype(block.X.dtype), previous=None, multipliers=at_bound), None


@dataclass(frozen=True)
class HighestConfoundPart:
    """Find the highest answer (m,) that confounds alone make, with loadings Q (c, m)."""

    Q: Array

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, Peaks]:
        return state, Peaks((block.design.T @ self.Q).max(axis=0))


def _margin(K: int) -> float:
    """Share of the range left free, so that R ≤ b however its K products are added up."""
    return 4 * (K + 2) * np.finfo(np.float64).eps


def _bits(tol: float) -> int:
    """Bits of a loading that are kept: what is rounded away is a thousandth of `tol` or less."""
    return max(LOADING_BITS, 10 + math.ceil(-math.log2(tol)))


def rounded(values: Array, bits: int = LOADING_BITS, how: np.ufunc = np.rint) -> Array:
    """Numbers with so many bits each."""
    mantissa, exponent = np.frexp(values)
    result: Array = np.ldexp(how(np.ldexp(mantissa, bits)), exponent - bits)
    return result


def inside_range(
    confounds: Array, highest: Array, span: Array, n_factors: int, bits: int = LOADING_BITS
) -> Array:
    """Confound loadings (c, m), shrunk for items of which they alone make more than the range (m,)."""
    allowed = span * (1 - _margin(n_factors + len(confounds)))
    shrunk = rounded(confounds * np.minimum(1.0, allowed / np.maximum(highest, 1e-300)), bits, np.floor)
    return np.where(highest > allowed, shrunk, confounds)


def _loadings_inside(problem: Problem, Q: Array, rows: Rows, *, bits: int) -> Array:
    """Clip and round the loadings; shrink an item's confound loadings where they alone exceed its range."""
    k = len(Q) - problem.c
    Q, highest_loading = np.maximum(Q, 0), problem.bounds.loading
    if highest_loading is not None:
        Q = np.minimum(Q, highest_loading)
    share_with_intercept(problem, Q, k)
    Q = rounded(Q, bits)
    if highest_loading is not None:
        Q = np.minimum(Q, highest_loading)
    if problem.bounds.reconstruction is not None and problem.c:
        highest = rows.apply(HighestConfoundPart(Q[k:])).peaks
        Q[k:] = inside_range(Q[k:], highest, problem.bounds.reconstruction, k, bits)
    for _ in range(2):
        # As they come back from the items' own units: scores for stored loadings are those of the fit.
        # (q / s) s may differ from q in its last digit; a second time it does not, bound or no bound.
        Q = problem.scaled_loadings(problem.own_loadings(Q))
    return Q
