"""What is minimised: the answers, the bounds, the penalty and the objective F."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
PenaltyKind = Literal["l1", "l2", "l21"]

_CACHE_BYTES = 64 * 2**20  # tables up to this size are decoded to floats once, larger ones block by block
_BLOCK_ROWS = 2048  # a block of answers and its residuals stay in the processor's cache


@dataclass(frozen=True)
class Bounds:
    """Upper bounds; None means unbounded. The lower bound is 0 everywhere."""

    score: float | None = None
    loading: Array | None = None  # (m,)
    reconstruction: Array | None = None  # (m,)


@dataclass(frozen=True)
class Penalty:
    """β ‖W‖ + βγ ‖Q‖; `l2` is ½‖·‖² and `l21` sums the Euclidean norms of the rows."""

    kind: PenaltyKind = "l1"
    beta: float = 0.0
    gamma: float = 1.0

    def of_scores(self, W: Array, weights: Array | None) -> float:
        """Penalty of the scores W (k, n), each person counted with its weight."""
        return self.beta * _norm(self.kind, W, weights)

    def of_loadings(self, Q: Array) -> float:
        """Penalty of the loadings Q (K, m)."""
        return self.beta * self.gamma * _norm(self.kind, Q, None)


def _norm(kind: PenaltyKind, x: Array, weights: Array | None) -> float:
    if kind == "l1":
        per_column = x.sum(axis=0) if weights is not None else x.sum(axis=1)
    else:
        per_column = np.einsum("ij,ij->j", x, x)
        per_column = 0.5 * per_column if kind == "l2" else np.sqrt(per_column)
    if weights is not None:
        return float(np.dot(per_column.astype(np.float64), weights))
    return float(per_column.sum(dtype=np.float64))


@dataclass(frozen=True)
class Block:
    """Some rows of the table as floats, with 0 where an answer is missing."""

    rows: slice
    X: Array  # (B, m)
    O: Array | None  # (B, m) ones and zeros; None when nothing is missing
    weights: Array | None  # (B,)

    def masked(self, V: Array) -> Array:
        """Zero the entries of V that nobody answered, in place."""
        if self.O is not None:
            V *= self.O
        return V


@dataclass(frozen=True)
class Problem:
    """A factorization problem, in units where 0 is each item's lowest answer.

    Parameters
    ----------
    answers : array (n, m)
        As stored, integer or float. A negative number or NaN is a missing answer.
    design : array (c, n)
        The confound columns, each in [0, 1].
    span : array (m,)
        Highest minus lowest answer of each item.
    partitions : tuple of tuples
        Confound columns that add up to one for everybody (Old and Young, Female and Male).
    intercept : int or None
        The position of the column of ones in the design.
    weights : array (n,) or None
    hidden : bool array (n, m) or None
        Answers to be treated as missing (held out).
    """

    answers: Array
    design: Array
    span: Array
    bounds: Bounds
    penalty: Penalty
    partitions: tuple[tuple[int, ...], ...] = ()
    intercept: int | None = None
    weights: Array | None = None
    hidden: Array | None = None
    dtype: Any = np.float32

    @property
    def n(self) -> int:
        return int(self.answers.shape[0])

    @property
    def m(self) -> int:
        return int(self.answers.shape[1])

    @property
    def c(self) -> int:
        return int(self.design.shape[0])

    def hide(self, mask: Array) -> Problem:
        """The same problem with more answers held out."""
        return replace(self, hidden=mask if self.hidden is None else self.hidden | mask)

    def of_rows(self, rows: Array) -> Problem:
        """The problem of some of the people; γ follows their number (or weight)."""
        weights, share = None, len(rows) / self.n
        if self.weights is not None:
            weights = self.weights[rows]
            share = float(weights.sum() / self.weights.sum())
        return replace(
            self,
            answers=self.answers[rows],
            design=np.ascontiguousarray(self.design[:, rows]),
            weights=weights,
            hidden=None if self.hidden is None else self.hidden[rows],
            penalty=replace(self.penalty, gamma=self.penalty.gamma * share),
        )

    def drawn(self, counts: Array) -> Problem:
        """The problem of a resample: each participant counts as often as drawn, those never drawn are out."""
        rows = np.flatnonzero(counts)
        weights = counts[rows].astype(float)
        total = float(self.n)
        if self.weights is not None:
            weights, total = weights * self.weights[rows], float(self.weights.sum())
        gamma = self.penalty.gamma * float(weights.sum()) / total
        return replace(self.of_rows(rows), weights=weights, penalty=replace(self.penalty, gamma=gamma))

    def with_beta(self, beta: float) -> Problem:
        """The same problem, its decoded answers included, with another penalty."""
        changed = replace(self, penalty=replace(self.penalty, beta=beta))
        if self._cached is not None:
            changed.__dict__["_cached"] = self._cached
        return changed

    def without_reconstruction_bound(self) -> Problem:
        """The same problem with the bound on reconstructed answers left to the clipping of predictions."""
        return replace(self, bounds=replace(self.bounds, reconstruction=None))

    def blocks(self) -> Iterator[Block]:
        """The table as floats, a block of rows at a time."""
        yield from self._cached if self._cached is not None else self._decode(self.dtype)

    def precise_blocks(self) -> Iterator[Block]:
        """The same in double precision."""
        for block in self.blocks():
            yield Block(
                block.rows,
                block.X.astype(np.float64),
                None if block.O is None else block.O.astype(np.float64),
                None if self.weights is None else self.weights[block.rows],
            )

    @cached_property
    def _cached(self) -> tuple[Block, ...] | None:
        floats = 2 * self.n * self.m * np.dtype(self.dtype).itemsize
        return tuple(self._decode(self.dtype)) if floats <= _CACHE_BYTES else None

    def _decode(self, dtype: Any) -> Iterator[Block]:
        n_blocks = max(1, round(self.n / _BLOCK_ROWS))
        edges = np.linspace(0, self.n, n_blocks + 1).astype(int)
        for start, stop in pairwise(edges):
            rows = slice(int(start), int(stop))
            raw = self.answers[rows]
            observed = raw >= 0  # NaN compares as False
            if self.hidden is not None:
                observed &= ~self.hidden[rows]
            weights = None if self.weights is None else self.weights[rows].astype(dtype)
            if observed.all():
                yield Block(rows, raw.astype(dtype), None, weights)
            else:
                yield Block(rows, np.where(observed, raw, 0).astype(dtype), observed.astype(dtype), weights)

    def with_confounds(self, W: Array, dtype: Any = None) -> Array:
        """[W, C] as (k + c, n)."""
        return np.concatenate([W, self.design]).astype(dtype or self.dtype)

    def objective(self, W: Array, Q: Array) -> float:
        """F(W, Q): half the squared error on observed answers plus the penalty.

        Parameters
        ----------
        W : array (k, n)
        Q : array (k + c, m)
        """
        misfit = 0.0
        A = self.with_confounds(W, np.float64)
        for block in self.precise_blocks():
            D = block.masked(block.X - A[:, block.rows].T @ Q)
            misfit += half_square(D, block.weights)
        return misfit + self.penalty_of(W, Q)

    def units(self, peaks: Array, Q: Array) -> tuple[Array, Array]:
        """What a step of a score (k,) and of a loading (K, m) is measured by.

        The bound of the scores and the width of the item's range; without bounds, where the scale of a
        factor is free, its highest score (`peaks`) and its highest loading.
        """
        scores = np.maximum(peaks, 1e-12) if self.bounds.score is None else np.ones(len(peaks))
        if self.bounds.loading is not None:
            return scores, np.broadcast_to(self.span, Q.shape)
        return scores, np.broadcast_to(np.maximum(Q.max(axis=1, keepdims=True), 1e-12), Q.shape)

    def penalty_of(self, W: Array, Q: Array) -> float:
        """The part of F that does not see the answers."""
        return self.penalty.of_scores(W, self.weights) + self.penalty.of_loadings(Q)


def half_square(D: Array, weights: Array | None) -> float:
    """½ Σ ω_i D_ij²."""
    if weights is None:
        return 0.5 * float(np.vdot(D, D))
    return 0.5 * float(np.dot(np.einsum("ij,ij->i", D, D), weights))
