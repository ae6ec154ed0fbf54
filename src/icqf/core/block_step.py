"""One step of a block of participants: a pure function, and `Sums` are all that blocks share.

Where most answers are given, a missing one is filled with what the model says, and all participants share one
Gram matrix, as do all items. Where most are missing that would crawl, so each participant and each item has
the Gram matrix of the answers that are there, as long as the bound below is not checked.

The bound on a reconstructed answer is handled where it is reached. A participant whose reconstruction
reaches above the range carries a multiplier Λ ≥ 0 for each item, and is solved with the augmented
Lagrangian ½σ max(0, Λ/σ + R − b)², its curvature included; all others share one Gram matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from icqf.core.observations import Block, half_square
from icqf.core.problem import Array, Terms, half_square_of_products

_HOW = "how"


LARGEST: dict[str, Any] = {_HOW: np.maximum}  # metadata of a field whose larger value counts
SMALLEST: dict[str, Any] = {_HOW: np.minimum}
_NONE = np.zeros(0, dtype=np.intp)
SCORE_SWEEPS = 1
ROUNDS_AT_BOUND = 2
SWEEPS_AT_BOUND = 1


class Additive:
    """A dataclass whose instances add with ``+``, field by field; a field that is None adds nothing."""

    def __add__(self, other: Self) -> Self:
        together = {}
        for each in fields(self):  # type: ignore[arg-type]
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if mine is None or theirs is None:
                together[each.name] = theirs if mine is None else mine
            else:
                together[each.name] = each.metadata.get(_HOW, np.add)(mine, theirs)
        return type(self)(**together)


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


def into_box(x: Array, top: Any) -> Array:
    """Clip to [0, top], in place."""
    np.maximum(x, 0, out=x)
    if top is not None:
        np.minimum(x, np.asarray(top, dtype=x.dtype), out=x)
    return x


@dataclass(frozen=True)
class Multipliers:
    """The participants at the upper bound, in order, and their Λ (s, m).

    Like scores and loadings, Λ is extrapolated along its last move: `values` are those that the next step
    uses, `plain` those without the extrapolation.
    """

    rows: Array
    values: Array
    plain: Array

    @classmethod
    def none(cls, m: int, dtype: Any) -> Multipliers:
        empty = np.zeros((0, m), dtype=dtype)
        return cls(_NONE, empty, empty)

    @classmethod
    def joined(cls, parts: list[tuple[int, Multipliers]]) -> Multipliers:
        """Join the multipliers of consecutive blocks; each part has its block's first row."""
        return cls(
            np.concatenate([part.rows + first for first, part in parts]),
            np.concatenate([part.values for _, part in parts]),
            np.concatenate([part.plain for _, part in parts]),
        )

    def within(self, rows: slice) -> Multipliers:
        """The multipliers of a block, numbered from its first row."""
        first, last = np.searchsorted(self.rows, [rows.start, rows.stop])
        return Multipliers(
            self.rows[first:last] - rows.start, self.values[first:last], self.plain[first:last]
        )

    def drawn(self, counts: Array) -> Multipliers:
        """The multipliers of a resample with each participant drawn `counts` times (see `Problem.drawn`)."""
        kept = counts[self.rows] > 0
        rows = np.searchsorted(np.flatnonzero(counts), self.rows[kept])
        return Multipliers(rows, self.values[kept], self.plain[kept])

    def of(self, rows: Array) -> Multipliers:
        """The multipliers of participants who include these (in order); zero for those newly at the bound."""
        if len(rows) == len(self.rows):
            return self
        place = np.searchsorted(rows, self.rows)
        values, plain = np.zeros((2, len(rows), self.values.shape[1]), dtype=self.values.dtype)
        values[place], plain[place] = self.values, self.plain
        return Multipliers(rows, values, plain)


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


@dataclass(frozen=True)
class Sums(Additive):
    """Sums over participants that the loadings' step needs; blocks add with ``+``.

    With a_i = [w_i, c_i] after the step, y_i = [w_i, c_i] before it, and v_i what the step aimed at:
    """

    S: Array  # Σ ω_i a_i a_iᵀ, (K, K)
    P: Array  # Σ ω_i a_i d_iᵀ with d_i the residual at y_i (or v_i itself where `cross` lacks y_i), (K, m)
    cross: Array  # Σ ω_i a_i y_iᵀ, (K, K), so that Σ ω_i a_i v_iᵀ = P + cross Q
    active: Array | None  # σ Σ ω_i a_i a_iᵀ [bound active at (i, j)] for each item, packed (K(K+1)/2, m); of
    # blocks in which most answers are missing, Σ ω_i a_i a_iᵀ over those that are there, which S lacks
    mass: Array  # Σ ω_i w_ir, or what the penalty balances by, (k,)
    misfit: float  # ½ Σ ω_i Σ_j O_ij (X_ij − R_ij)², before the step, whether or not answers are missing
    penalty: float  # β Σ ω_i ‖y_i‖
    peak: Array = field(metadata=LARGEST)  # max_i w_ir: no scale taken from it leaves the box, (k,)
    step: Array = field(metadata=LARGEST)  # max_i |w_ir − y_ir|, (k,)
    excess: float = field(metadata=LARGEST)  # max_ij (R_ij − b_j) / b_j, at least 0
    moved: Array | None = None  # the loadings after their step, (K, m), where it was taken beside the sums

    @property
    def curvature(self) -> Array:
        """How much a loading of each row weighs in the sums (K,)."""
        diagonal = self.S.diagonal()
        if self.active is None or diagonal.any():
            return diagonal
        return np.diag(unpack(self.active.mean(axis=1), len(diagonal)))


def ahead(x: Array, previous: Array, momentum: float, top: Any) -> Array:
    """x + momentum (x − previous) inside the box."""
    y: Array = x - previous
    y *= momentum
    y += x
    return into_box(y, top)


def extrapolated(W: Array, previous: Array, momentum: float, top: float | None, still: Array) -> Array:
    """W + momentum (W − previous) inside the box; the participants `still` stay where they are."""
    y = ahead(W, previous, momentum, top)
    if len(still):
        y[:, still] = W[:, still]
    return y


def block_step(
    block: Block, y: Array, multipliers: Multipliers | None, loadings: Loadings, terms: Terms
) -> tuple[Array, Multipliers | None, Sums]:
    """Move the scores of a block, and add up what the loadings need; the arguments do not change."""
    if block.O is None and multipliers is None:
        return _complete_step(block, y, loadings, terms)
    k, Q = loadings.k, loadings.Q
    before = np.concatenate([y, block.C])
    after = before.copy()
    R = before.T @ Q
    updated, excess = None, 0.0
    if multipliers is not None:
        at_bound, excess = rows_above(R, _bound(terms), known=multipliers.rows)
        updated = multipliers.of(at_bound)
    D = block.masked(np.subtract(block.X, R, out=R))
    misfit, penalty = half_square(D, block.weights), terms.penalty.value(y, block.weights)
    measured: dict[str, Any] = {"misfit": misfit, "penalty": penalty, "excess": excess, "terms": terms}
    if block.sparse and updated is None:
        gram = unpack((block.observed() @ loadings.products).T, k)
        gradient = -(D @ loadings.columns).T
        terms.penalty.sweep_each(
            after[:k], gradient, gram, terms.bounds.score, scale=1.0, sweeps=SCORE_SWEEPS, xp=np
        )
        return after[:k], None, _sums_of_answers(block, after, y, loadings, **measured)
    target = loadings.gram @ y
    target += (D @ loadings.columns).T
    _sweep(after[:k], target, loadings, terms)
    active = None
    if updated is not None and len(updated.rows):
        active = _step_at_bound(block, before, after, D, updated, loadings, terms)
    weighted = _weighted(after, block.weights)
    sums = _sums(
        after[:k], y, weighted,
        S=weighted @ after.T, P=weighted @ D, cross=weighted @ before.T, active=active, **measured,
    )  # fmt: skip
    return after[:k], updated, sums


def _complete_step(block: Block, y: Array, loadings: Loadings, terms: Terms) -> tuple[Array, None, Sums]:
    """The same without missing answers and bounds, for which no residuals are computed."""
    k, Q = loadings.k, loadings.Q
    after = np.concatenate([y, block.C])
    towards = (block.X @ np.ascontiguousarray(Q.T)).T  # in this order BLAS takes a third of the time
    misfit = half_square_of_products(block, after, towards, Q)
    _sweep(after[:k], towards[:k] - loadings.own @ Q[k:].T @ block.C, loadings, terms)
    weighted = _weighted(after, block.weights)
    sums = _sums(
        after[:k], y, weighted, S=weighted @ after.T, P=weighted @ block.X, cross=np.zeros((len(Q), len(Q))),
        misfit=misfit, penalty=terms.penalty.value(y, block.weights), excess=0.0, terms=terms,
    )  # fmt: skip
    return after[:k], None, sums


def _sums_of_answers(block: Block, after: Array, y: Array, loadings: Loadings, **measured: Any) -> Sums:
    """Sums in which each item has its own Gram matrix, of the participants who answered it."""
    weighted = _weighted(after, block.weights)
    D = block.masked(block.X - after.T @ loadings.Q)
    first, second, _ = _pairs(len(after))
    none = np.zeros((len(after), len(after)))
    own = (weighted[first] * after[second]) @ block.observed()
    return _sums(after[: loadings.k], y, weighted, S=none, P=weighted @ D, cross=none, active=own, **measured)


def _step_at_bound(
    block: Block,
    before: Array,
    after: Array,
    D: Array,
    at_bound: Multipliers,
    loadings: Loadings,
    terms: Terms,
) -> Array:
    """Move the participants at the bound, under the augmented Lagrangian.

    Puts their [W, C] (K, s) in `after`, and in D what they aim at minus the model at `before`; returns the
    curvature of the active bounds.
    """
    k, rows, multipliers = loadings.k, at_bound.rows, at_bound.values
    X, O = block.X[rows], block.observed()[rows]
    A = before[:, rows]
    model = A.T @ loadings.Q
    bound, sigma = _bound(terms).astype(A.dtype), np.asarray(terms.sigma, dtype=A.dtype)
    R = model
    for _ in range(ROUNDS_AT_BOUND):
        errors, pull, active = _at_bound(X, O, R, multipliers, bound, sigma)
        gram = unpack(((O + sigma * active) @ loadings.products).T, k)
        gradient = ((pull - errors) @ loadings.columns).T
        terms.penalty.sweep_each(
            A[:k], gradient, gram, terms.bounds.score, scale=1.0, sweeps=SWEEPS_AT_BOUND, xp=np
        )
        R = A.T @ loadings.Q
    errors, pull, active = _at_bound(X, O, R, multipliers, bound, sigma)
    after[:, rows] = A
    errors -= pull
    errors += R
    errors -= model
    D[rows] = errors
    first, second, _ = _pairs(len(A))
    weighted = _weighted(A, None if block.weights is None else block.weights[rows])
    products: Array = (weighted[first] * A[second]) @ active
    products *= sigma
    return products


def _at_bound(
    X: Array, O: Array, R: Array, multipliers: Array, bound: Array, sigma: Array
) -> tuple[Array, Array, Array]:
    """Errors, the pull max(0, Λ + σ(R − b)) of the bound, and where it is active."""
    pull = R - bound
    pull *= sigma
    pull += multipliers
    np.maximum(pull, 0, out=pull)
    errors = X - R
    errors *= O
    return errors, pull, (pull > 0).astype(R.dtype)


def updated_multipliers(
    block: Block, W: Array, multipliers: Multipliers, Q: Array, terms: Terms, momentum: float
) -> Multipliers:
    """Λ ← max(0, Λ + σ(R − b)) at new loadings, extrapolated; participants off the bound are dropped.

    A multiplier that goes on in the direction of its last move is extrapolated along it, by its `momentum`.
    Without that, those of weak bounds take hundreds of iterations.
    """
    rows = multipliers.rows
    if len(rows) == 0:
        return multipliers
    A = np.concatenate([W[:, rows], block.C[:, rows]])
    excess = A.T @ Q
    excess -= _bound(terms).astype(Q.dtype)
    plain = multipliers.values + np.asarray(terms.sigma, dtype=Q.dtype) * excess
    np.maximum(plain, 0, out=plain)
    move = plain - multipliers.plain
    move *= np.float32(momentum) * (excess * move > 0) * (plain > 0)
    values = np.maximum(plain + move, 0)
    keep = values.any(axis=1)
    if keep.all():
        return Multipliers(rows, values, plain)
    return Multipliers(rows[keep], values[keep], plain[keep])


def rows_above(R: Array, bound: Array, *, known: Array = _NONE) -> tuple[Array, float]:
    """The rows of R (B, m) with an entry above its bound and the `known` ones; the largest excess."""
    bound = bound.astype(R.dtype)  # comparing with another type would convert every number
    lowest, highest = bound.min(), bound.max()
    if R.max() <= lowest:
        return known, 0.0
    # Comparing with one number is several times as fast as with one number per column.
    above = (lowest < R if lowest == highest else bound < R).ravel()
    some = np.flatnonzero(np.packbits(above) != 0)  # of eight entries each: few are above
    over = (8 * some[:, None] + np.arange(8)).ravel()
    over = over[: np.searchsorted(over, len(above))]
    over = over[above[over]]
    if len(over) == 0:
        return known, 0.0
    rows, items = np.divmod(over, R.shape[1])
    excess = R[rows, items] - bound[items]
    at_bound = np.zeros(len(R), dtype=bool)
    at_bound[rows] = at_bound[known] = True
    return np.flatnonzero(at_bound), float((excess / bound[items]).max())


def _sweep(W: Array, target: Array, loadings: Loadings, terms: Terms) -> None:
    """Sweeps over the scores, in place."""
    terms.penalty.sweep(W, loadings.gram, target, terms.bounds.score, scale=1.0, sweeps=SCORE_SWEEPS, xp=np)


def _sums(
    W: Array,
    before: Array,
    weighted: Array,
    *,
    S: Array,
    P: Array,
    cross: Array,
    misfit: float,
    penalty: float,
    excess: float,
    terms: Terms,
    active: Array | None = None,
) -> Sums:
    return Sums(
        S=S.astype(np.float64),
        P=P.astype(np.float64),
        cross=cross.astype(np.float64),
        active=active,
        mass=terms.penalty.mass(W, weighted[: len(W)]).astype(np.float64),
        peak=W.max(axis=1),
        step=np.abs(W - before).max(axis=1),
        misfit=misfit,
        penalty=penalty,
        excess=excess,
    )


def _bound(terms: Terms) -> Array:
    return np.asarray(terms.bounds.reconstruction)


def _weighted(A: Array, weights: Array | None) -> Array:
    return A if weights is None else A * weights
