"""Stored answers, read as blocks of floats."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_CACHE_BYTES = 64 * 2**20  # tables up to this size are decoded to floats once, larger ones block by block
_BLOCK_ROWS = 4096  # or more; large ones leave the processor's cache, small ones make many calls of NumPy
_VERY_MANY = 2**18  # participants from which on blocks are larger, so that threads wait less for Python
_FREE_THREADED = not getattr(sys, "_is_gil_enabled", lambda: True)()


def half_square(D: Array, weights: Array | None) -> float:
    """The misfit ½ Σ ω_i D_ij², with D = X − R for observed answers."""
    if weights is None:
        return 0.5 * float(np.vdot(D, D))
    return 0.5 * float(np.dot(np.einsum("ij,ij->i", D, D), weights))


def weighted_squares(D: Array, weights: Array | None) -> Array:
    """Σ_i ω_i D_ij² of each column (m,)."""
    squares: Array = np.einsum("ij,ij->j", D, D if weights is None else D * weights[:, None])
    return squares


@dataclass(frozen=True)
class Block:
    """Some participants as floats, with 0 where an answer is missing."""

    rows: slice
    X: Array  # (B, m)
    O: Array | None  # (B, m) ones and zeros; None when nothing is missing
    C: Array  # (c, B)
    weights: Array | None  # (B,)
    design: Array  # C in double precision, and the weights: the bounds hold exactly
    exact_weights: Array | None
    sparse: bool = False  # whether most answers are missing

    @property
    def n(self) -> int:
        """Participants."""
        return len(self.X)

    @cached_property
    def half_square(self) -> float:
        """½ Σ ω_i X_ij², which is the same in every pass."""
        return half_square(self.X, self.weights)

    @cached_property
    def moments(self) -> tuple[Array, Array, Array]:
        """Weighted sum, sum of squares and number of each item's answers (m,), in double precision."""
        weights = np.ones(self.n) if self.exact_weights is None else self.exact_weights
        X = self.X.astype(np.float64)
        count = np.full(X.shape[1], weights.sum()) if self.O is None else weights @ self.O.astype(np.float64)
        return weights @ X, weighted_squares(X, self.exact_weights), count

    def precise(self) -> Block:
        """The same in double precision."""
        return replace(
            self,
            X=self.X.astype(np.float64),
            O=None if self.O is None else self.O.astype(np.float64),
            C=self.design,
            weights=self.exact_weights,
        )

    def masked(self, V: Array) -> Array:
        """Set the entries of V without answers to 0, in place."""
        if self.O is not None:
            V *= self.O.astype(V.dtype, copy=False)  # two types at once would take twice as long
        return V

    def observed(self) -> Array:
        """Ones where an answer was given (B, m)."""
        return np.ones_like(self.X) if self.O is None else self.O


def is_small(n: int, m: int, dtype: Any) -> bool:
    """Whether a table (n, m) is small enough to be cached as floats."""
    return 2 * n * m * np.dtype(dtype).itemsize <= _CACHE_BYTES


@dataclass(frozen=True)
class Observations:
    """Answers as stored, the confound design and the weights; read as blocks of floats.

    Tables small enough are decoded once, and everything that shares the observations shares that. The decoded
    table is left behind when the observations travel to another process.
    """

    answers: Array  # (n, m), integer or float; a negative number or NaN is missing
    design: Array  # (c, n), each entry in [0, 1]
    weights: Array | None = None  # (n,)
    hidden: Array | None = None  # as answers, True where an answer is treated as missing
    scale: Array | None = None  # (m,), what answers are multiplied by when they are read; None is 1
    dtype: Any = np.float32
    keeps_floats: bool | None = None  # whether to cache the decoded table; None: if it is small enough

    @property
    def n(self) -> int:
        """Participants."""
        return int(self.design.shape[1])

    @property
    def m(self) -> int:
        """Columns of the table that is factorized."""
        return int(self.answers.shape[1])

    @property
    def repeats(self) -> int:
        """How often the items are repeated in the columns."""
        return 1

    @property
    def here(self) -> bool:
        """Whether all answers are in this process."""
        return True

    def hide(self, mask: Array) -> Observations:
        """The same with more answers hidden; the mask has the shape of the answers."""
        return replace(self, hidden=mask if self.hidden is None else self.hidden | mask)

    def take(self, rows: Array) -> Observations:
        """The observations of some participants."""
        return self._of_participants(rows, rows)

    def part(self, rows: slice) -> Observations:
        """The observations of consecutive participants, cached if the whole would be."""
        return replace(self._part(rows), keeps_floats=self._is_small)

    def _part(self, rows: slice) -> Observations:
        return self._of_participants(rows, rows)

    def _of_participants(self, rows: Array | slice, stored: Array | slice, **others: Any) -> Observations:
        return replace(
            self,
            answers=self.answers[stored],
            design=np.ascontiguousarray(self.design[:, rows]),
            weights=None if self.weights is None else self.weights[rows],
            hidden=None if self.hidden is None else self.hidden[stored],
            **others,
        )

    @property
    def observed(self) -> Array:
        """Which of the stored answers are observed, in their layout."""
        seen: Array = self.answers >= 0  # NaN compares as False
        return seen if self.hidden is None else seen & ~self.hidden

    @cached_property
    def mostly_missing(self) -> bool:
        """Whether more than half of the answers are missing."""
        return 2 * int(np.count_nonzero(self.observed)) < self.answers.size

    def laid_out(self, by_row: Array, column: Array) -> Array:
        """``by_row[i, column[j]]`` of every participant i and column j, laid out as the answers are."""
        return by_row[:, column]

    def cells(self, mask: Array) -> tuple[Array, Array, Array]:
        """Participant, column and answer of the observed answers under a mask, participants in order."""
        chosen = mask & self.observed
        rows, columns = np.nonzero(chosen)
        return rows, columns, self.answers[chosen]

    def pooled(self) -> Observations:
        """One answer of each participant to each item, without repeats."""
        return self

    @property
    def size(self) -> float:
        """Σω: participants, each counted with its weight."""
        return float(self.n) if self.weights is None else float(self.weights.sum())

    def item_sums(self) -> Array:
        """Weighted sum, sum of squares and number of each column's answers (3, m)."""
        return np.sum([block.moments for block in self.blocks()], axis=0)

    @property
    def c(self) -> int:
        """Columns of the confound design."""
        return int(self.design.shape[0])

    @property
    def spans(self) -> tuple[slice, ...]:
        """The participants of each block."""
        return self._spans

    @cached_property
    def _spans(self) -> tuple[slice, ...]:
        edges = np.linspace(0, self.n, max(1, self.n // self._rows_at_once) + 1).astype(int)
        return tuple(slice(int(start), int(stop)) for start, stop in pairwise(edges))

    @property
    def n_blocks(self) -> int:
        """Number of blocks of participants."""
        return len(self._spans)

    def block(self, at: int) -> Block:
        """One of the blocks, as floats."""
        return self._cached[at] if self._cached is not None else self._decoded(self._spans[at])

    def blocks(self) -> Iterator[Block]:
        """The table as floats, one block of participants at a time."""
        return (self.block(at) for at in range(self.n_blocks))

    @cached_property
    def _cached(self) -> tuple[Block, ...] | None:
        return tuple(map(self._decoded, self._spans)) if self._is_small else None

    @property
    def _is_small(self) -> bool:
        return is_small(self.n, self.m, self.dtype) if self.keeps_floats is None else self.keeps_floats

    def answer_counts(self) -> Array:
        """How many participants answered each column (m,), whatever their weight."""
        counts = np.zeros(self.m)
        for block in self.blocks():
            counts += block.n if block.O is None else np.ones(block.n, block.O.dtype) @ block.O
        return counts

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def _decoded(self, rows: slice) -> Block:
        raw, observed = self._table(rows)
        design, weights = self.design[:, rows], None if self.weights is None else self.weights[rows]
        number = int(np.count_nonzero(observed))
        complete = number == observed.size
        O = None if complete else observed.astype(self.dtype)
        if O is not None and raw.dtype.kind == "f":
            # The former takes a third of the time, but a hidden answer may be infinite.
            raw = np.fmax(raw, 0) if self.hidden is None else np.where(observed, raw, 0)
        X = (raw if self.scale is None else raw * self.scale).astype(self.dtype, copy=False)
        if O is not None:
            X *= O
        return Block(
            rows,
            X=X,
            O=O,
            C=design.astype(self.dtype),
            weights=None if weights is None else weights.astype(self.dtype),
            design=np.asarray(design, dtype=np.float64),
            exact_weights=weights,
            sparse=not complete and 2 * number < observed.size,
        )

    @property
    def _rows_at_once(self) -> int:
        return 2 * _BLOCK_ROWS if self.n >= _VERY_MANY and not _FREE_THREADED else _BLOCK_ROWS

    def _table(self, rows: slice) -> tuple[Array, Array]:
        """Answers (B, m) of some participants, and which of them may be seen."""
        raw = self.answers[rows]
        observed = raw >= 0
        if self.hidden is not None:
            observed &= ~self.hidden[rows]
        return raw, observed
