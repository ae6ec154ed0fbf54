"""One pass over a block of rows: move its scores, and add up what the loadings need.

The bound on a reconstructed answer is handled where it presses. A row whose reconstruction
reaches above its range carries a multiplier Λ ≥ 0 for each of its items, and is solved with the
augmented Lagrangian ½σ max(0, Λ/σ + R − b)², its curvature included; all other rows share one
Gram matrix. With σ a tenth of the number of items, an active bound weighs about as much as the
answers that pull against it, which is what makes the multipliers settle in a few passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from icqf.solvers.problem import Array, Block, Problem, half_square
from icqf.solvers.sweeps import penalized_sweeps, penalized_sweeps_each

_NONE = np.zeros(0, dtype=np.intp)
_SCORE_SWEEPS = 1
AT_ONCE = 4096  # rows that press are solved together up to this number
_PRESSING_ROUNDS = 2
_PRESSING_SWEEPS = 1


def stiffness(problem: Problem) -> float:
    """σ of the augmented Lagrangian."""
    return max(1.0, 0.1 * problem.m)


@lru_cache(maxsize=64)
def _pairs(k: int) -> tuple[Array, Array, Array]:
    """Row and column of each packed entry of a symmetric k×k matrix, and where (r, s) is packed."""
    first, second = np.triu_indices(k)
    where = np.zeros((k, k), dtype=np.intp)
    where[first, second] = where[second, first] = np.arange(len(first))
    return first, second, where


def packed_products(Q: Array) -> Array:
    """Products of every pair of rows of Q (k, m), packed: (k(k+1)/2, m)."""
    first, second, _ = _pairs(len(Q))
    return Q[first] * Q[second]


def unpack(packed: Array, k: int) -> Array:
    """(k(k+1)/2, s) to symmetric (k, k, s)."""
    return packed[_pairs(k)[2]]


@dataclass(frozen=True)
class Pressing:
    """The rows of the table that press against the range, in order, and their multipliers (s, m)."""

    rows: Array
    multipliers: Array

    @classmethod
    def none(cls, m: int, dtype: Any) -> Pressing:
        return cls(_NONE, np.zeros((0, m), dtype=dtype))

    def within(self, rows: slice) -> Array:
        """Those of the rows that lie in a block, counted from its start."""
        first, last = np.searchsorted(self.rows, [rows.start, rows.stop])
        return self.rows[first:last] - rows.start

    def for_rows(self, rows: Array) -> Array:
        """The multipliers of some rows (in order); zero for those that did not press."""
        multipliers = np.zeros((len(rows), self.multipliers.shape[1]), dtype=self.multipliers.dtype)
        _, here, there = np.intersect1d(rows, self.rows, assume_unique=True, return_indices=True)
        multipliers[here] = self.multipliers[there]
        return multipliers


@dataclass(frozen=True)
class Loadings:
    """The loadings of one pass with what is derived from them once."""

    Q: Array  # (K, m)
    k: int

    @cached_property
    def own(self) -> Array:
        return self.Q[: self.k]

    @cached_property
    def gram(self) -> Array:
        return self.own @ self.own.T

    @cached_property
    def columns(self) -> Array:
        return np.ascontiguousarray(self.own.T)

    @cached_property
    def products(self) -> Array:
        return np.ascontiguousarray(packed_products(self.own).T)


class Sums:
    """What the blocks share: all that the loadings' step needs to know about the rows."""

    def __init__(self, k: int, K: int, m: int) -> None:
        self.S = np.zeros((K, K))
        self.P = np.zeros((K, m))
        self.cross = np.zeros((K, K))
        self.active: Array | None = None  # (K(K+1)/2, m)
        self.mass = np.zeros(k)
        self.peak = np.zeros(k)
        self.objective = 0.0  # the rows' part of it
        self.step = np.zeros(k)
        self.excess = 0.0

    def add(self, S: Array, P: Array, weighted: Array, W: Array, before: Array) -> None:
        """Add what some rows contribute: their products, and how far their scores W went."""
        self.S += S
        self.P += P
        self.mass += weighted.sum(axis=1)
        self.peak = np.maximum(self.peak, W.max(axis=1))
        self.step = np.maximum(self.step, np.abs(W - before).max(axis=1))


class Rows:
    """Answers of rows that press, waiting to be solved together."""

    def __init__(self) -> None:
        self.X: list[Array] = []
        self.O: list[Array] = []
        self.rows: list[Array] = []
        self.count = 0

    def add(self, block: Block, rows: Array) -> None:
        """Put some rows of a block (counted from its start) to those that wait."""
        if len(rows):
            X = block.X[rows]
            self.X.append(X)
            self.O.append(np.ones_like(X) if block.O is None else block.O[rows])
            self.rows.append(rows + block.rows.start)
            self.count += len(rows)

    def together(self) -> tuple[Array, Array, Array]:
        """Row numbers, answers and what is observed of all that wait."""
        return np.concatenate(self.rows), np.concatenate(self.X), np.concatenate(self.O)


class Pass:
    """One pass over all rows, for given loadings: moves the scores and adds up what the loadings need.

    `A` (scores and confounds) and `previous` (the scores before) change in place. Rows that press against
    the range are left as they are by their block and solved together afterwards; `pressing` is None while
    that bound is not looked at.
    """

    def __init__(
        self,
        problem: Problem,
        A: Array,
        previous: Array,
        loadings: Loadings,
        pressing: Pressing | None,
        momentum: float,
    ) -> None:
        self.problem, self.A, self.previous, self.loadings = problem, A, previous, loadings
        self.pressing = pressing
        self.momentum = np.asarray(momentum, A.dtype)
        self.sums = Sums(loadings.k, len(loadings.Q), problem.m)
        self._waiting = Rows()
        self._pressed = [Pressing.none(problem.m, A.dtype)]

    def run(self) -> Pressing:
        """Go over all blocks; returns the rows that press."""
        for block in self.problem.blocks():
            self._block(block)
            if self._waiting.count >= AT_ONCE:
                self._press()
        if self._waiting.count:
            self._press()
        return Pressing(
            np.concatenate([part.rows for part in self._pressed]),
            np.concatenate([part.multipliers for part in self._pressed]),
        )

    def _block(self, block: Block) -> None:
        problem, sums, loadings = self.problem, self.sums, self.loadings
        k, Q = loadings.k, loadings.Q
        bound = problem.bounds.reconstruction if self.pressing is not None else None
        A_b = self.A[:, block.rows]
        W, W_previous = A_b[:k], self.previous[:, block.rows]
        rows = _NONE if self.pressing is None else self.pressing.within(block.rows)
        y = into_box(W + self.momentum * (W - W_previous), problem.bounds.score)
        y[:, rows] = W[:, rows]
        W_previous[...] = W
        W[...] = y

        if block.O is None and bound is None:
            self._sweep(W, (block.X @ loadings.columns).T - loadings.own @ Q[k:].T @ A_b[k:])
            weighted = _weighted(A_b, block.weights)
            S_b, P_b = weighted @ A_b.T, weighted @ block.X
            sums.objective += half_square(block.X, block.weights)
            sums.objective += float(0.5 * np.vdot(S_b, Q @ Q.T) - np.vdot(P_b, Q))
            sums.objective += problem.penalty.of_scores(W, block.weights)
        else:
            R = A_b.T @ Q
            D = block.masked(block.X - R)
            sums.objective += half_square(D, block.weights) + problem.penalty.of_scores(y, block.weights)
            if bound is not None:
                rows = rows_above(R, bound, sums, known=rows)
                self._waiting.add(block, rows)
            target = loadings.gram @ y
            target += (D @ loadings.columns).T
            self._sweep(W, target)
            W[:, rows] = y[:, rows]
            weighted = _weighted(A_b, block.weights)
            if len(rows):
                weighted = weighted.copy()
                weighted[:, rows] = 0
            S_b, P_b = weighted @ A_b.T, weighted @ D
            sums.cross[:, :k] += weighted @ y.T
            sums.cross[:, k:] += weighted @ A_b[k:].T
        sums.add(S_b, P_b, weighted[:k], W, y)

    def _sweep(self, W: Array, target: Array) -> None:
        penalty = self.problem.penalty
        penalized_sweeps(
            W,
            self.loadings.gram,
            target,
            self.problem.bounds.score,
            kind=penalty.kind,
            lam=penalty.beta,
            sweeps=_SCORE_SWEEPS,
            xp=np,
        )

    def _press(self) -> None:
        """Move the scores of the rows that wait, under the augmented Lagrangian."""
        problem, loadings, A = self.problem, self.loadings, self.A
        rows, X, O = self._waiting.together()
        self._waiting = Rows()
        known = Pressing.none(problem.m, A.dtype) if self.pressing is None else self.pressing
        multipliers = known.for_rows(rows)
        bound = np.asarray(problem.bounds.reconstruction, dtype=A.dtype)
        sigma = np.asarray(stiffness(problem), dtype=A.dtype)
        A_s = A[:, rows]
        before = A_s.copy()
        for _ in range(_PRESSING_ROUNDS):
            R = press_round(problem, X, O, A_s, loadings, multipliers, bound, sigma)
        pull = multipliers + sigma * (R - bound)
        active = (pull > 0).astype(A.dtype)
        A[:, rows] = A_s

        weights = None if problem.weights is None else problem.weights[rows].astype(A.dtype)
        weighted = _weighted(A_s, weights)
        first, second, _ = _pairs(len(A_s))
        extra = sigma * ((weighted[first] * A_s[second]) @ active)
        self.sums.active = extra if self.sums.active is None else self.sums.active + extra
        P_s = weighted @ (R + (X - R) * O - pull * active)
        k = loadings.k
        self.sums.add(weighted @ A_s.T, P_s, weighted[:k], A_s[:k], before[:k])
        self._pressed.append(Pressing(rows, multipliers))


def rows_above(R: Array, bound: Array, sums: Sums, *, known: Array | None = None) -> Array:
    """The rows of R (B, m) with an entry above its bound, and the `known` ones, in order.

    The largest excess goes into `sums`. The known rows of R are zeroed.
    """
    rows = _NONE if known is None else known
    if len(rows):
        sums.excess = max(sums.excess, float(((R[rows] - bound) / bound).max()))
        R[rows] = 0
    lowest = bound.min()
    if R.max() <= lowest:
        return rows
    # A comparison with one number is several times quicker than with one number a column.
    over = np.flatnonzero(lowest < R if lowest == bound.max() else bound < R)
    if len(over) == 0:
        return rows
    items = over % R.shape[1]
    excess = (R.ravel()[over] - bound[items]) / bound[items]
    sums.excess = max(sums.excess, float(excess.max()))
    return np.union1d(rows, over // R.shape[1])


def into_box(x: Array, top: Any) -> Array:
    """Clip to [0, top], in place."""
    np.maximum(x, 0, out=x)
    if top is not None:
        np.minimum(x, top, out=x, casting="same_kind")
    return x


def _weighted(A: Array, weights: Array | None) -> Array:
    return A if weights is None else A * weights


def press_round(
    problem: Problem,
    X: Array,
    O: Array,
    A_s: Array,
    loadings: Loadings,
    multipliers: Array,
    bound: Array,
    sigma: Any,
) -> Array:
    """One Newton-like round on the augmented Lagrangian of some rows (A_s in place); returns their R."""
    k, penalty = loadings.k, problem.penalty
    R = A_s.T @ loadings.Q
    pull = multipliers + sigma * (R - bound)
    active = pull > 0
    gradient = -(((X - R) * O - pull * active) @ loadings.columns).T
    gram = unpack(((O + sigma * active) @ loadings.products).T, k)
    penalized_sweeps_each(
        A_s[:k],
        gradient,
        gram,
        problem.bounds.score,
        kind=penalty.kind,
        lam=penalty.beta,
        sweeps=_PRESSING_SWEEPS,
        xp=np,
    )
    return A_s.T @ loadings.Q


def update_multipliers(problem: Problem, A: Array, Q: Array, pressing: Pressing) -> Pressing:
    """Λ ← max(0, Λ + σ(R − b)); rows that no longer press are let go."""
    if len(pressing.rows) == 0:
        return pressing
    bound = np.asarray(problem.bounds.reconstruction, dtype=Q.dtype)
    sigma = np.asarray(stiffness(problem), dtype=Q.dtype)
    R = A[:, pressing.rows].T @ Q
    multipliers = np.maximum(pressing.multipliers + sigma * (R - bound), 0)
    keep = multipliers.any(axis=1)
    return Pressing(pressing.rows[keep], multipliers[keep])
