"""Answers as they are kept, one row per participant or per visit, and read as blocks of floats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.errors import InputError

Array = NDArray[Any]

_CACHE_BYTES = 64 * 2**20  # tables up to this size are decoded to floats once, larger ones block by block
_BLOCK_ROWS = 2048  # a block of answers and its residuals stay in the processor's cache
_VERY_MANY = 2**18  # participants from which on blocks are larger, so that threads wait less for each other
_BLOCK_CELLS = 2**19  # of visits, whose table is wide: fewer participants make a block
_NOBODY = np.zeros(0, dtype=np.intp)


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
        """Zero the entries of V that nobody answered, in place."""
        if self.O is not None:
            V *= self.O
        return V

    def observed(self) -> Array:
        """Ones where an answer was given (B, m)."""
        return np.ones_like(self.X) if self.O is None else self.O


def is_small(n: int, m: int, dtype: Any) -> bool:
    """Whether a table (n, m) is small enough to be kept as floats."""
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
    keeps_floats: bool | None = None  # whether the decoded table is kept; None where it is small enough

    @property
    def n(self) -> int:
        """Participants."""
        return int(self.design.shape[1])

    @property
    def m(self) -> int:
        """Columns of the table that is factorized."""
        return int(self.answers.shape[1])

    @property
    def n_bins(self) -> int:
        """How often an item comes in the columns: once, or once for each age bin."""
        return 1

    @property
    def here(self) -> bool:
        """Whether the answers are at hand as a whole, rather than with the participants' blocks alone."""
        return True

    def hide(self, mask: Array) -> Observations:
        """With more answers held out; the mask is laid out as the answers are."""
        return replace(self, hidden=mask if self.hidden is None else self.hidden | mask)

    def take(self, rows: Array) -> Observations:
        """Those of some participants."""
        return self._of_participants(rows, rows)

    def part(self, rows: slice) -> Observations:
        """Those of consecutive participants, decoded once if the whole would be."""
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
        """Which of the stored answers may be seen, laid out as they are."""
        seen: Array = self.answers >= 0  # NaN compares as False
        return seen if self.hidden is None else seen & ~self.hidden

    def laid_out(self, by_row: Array, column: Array) -> Array:
        """``by_row[i, column[j]]`` of every participant i and column j, laid out as the answers are."""
        return by_row[:, column]

    def cells(self, mask: Array) -> tuple[Array, Array, Array]:
        """Participant, column and answer of the observed answers under a mask, participants in order."""
        chosen = mask & self.observed
        rows, columns = np.nonzero(chosen)
        return rows, columns, self.answers[chosen]

    def pooled(self) -> Observations:
        """One answer of each participant to each item, whenever it was given."""
        return self

    @property
    def size(self) -> float:
        """Σω: participants, each counted with its weight."""
        return float(self.n) if self.weights is None else float(self.weights.sum())

    def item_sums(self) -> Array:
        """Of each column's answers the sum, the sum of squares and the number (3, m), weighted."""
        sums = np.zeros((3, self.m))
        for block in self.blocks():
            block = block.precise()
            weights = np.ones(block.n) if block.weights is None else block.weights
            sums += np.stack([weights @ block.X, weights @ block.X**2, weights @ block.observed()])
        return sums

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
        edges = np.linspace(0, self.n, max(1, round(self.n / self._rows_at_once)) + 1).astype(int)
        return tuple(slice(int(start), int(stop)) for start, stop in pairwise(edges))

    @property
    def n_blocks(self) -> int:
        """How many blocks the participants are cut into."""
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
            counts += len(block.X) if block.O is None else block.O.sum(axis=0)
        return counts

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def _decoded(self, rows: slice) -> Block:
        raw, observed = self._table(rows)
        design, weights = self.design[:, rows], None if self.weights is None else self.weights[rows]
        if self.scale is not None:
            raw = raw * self.scale
        complete = bool(observed.all())
        return Block(
            rows,
            X=raw.astype(self.dtype) if complete else np.where(observed, raw, 0).astype(self.dtype),
            O=None if complete else observed.astype(self.dtype),
            C=design.astype(self.dtype),
            weights=None if weights is None else weights.astype(self.dtype),
            design=np.asarray(design, dtype=np.float64),
            exact_weights=weights,
            sparse=not complete and 2 * int(np.count_nonzero(observed)) < observed.size,
        )

    @property
    def _rows_at_once(self) -> int:
        return 4 * _BLOCK_ROWS if self.n >= _VERY_MANY else _BLOCK_ROWS

    def _table(self, rows: slice) -> tuple[Array, Array]:
        """Answers (B, m) of some participants, and which of them may be seen."""
        raw = self.answers[rows]
        observed = raw >= 0
        if self.hidden is not None:
            observed &= ~self.hidden[rows]
        return raw, observed


@dataclass(frozen=True)
class Elsewhere(Observations):
    """Answers that never come here, such as those on a cluster or at other sites: what is known of all.

    `answers` is (0, m) and `design` (c, 0). The engine that has them knows what the `parts` are.
    """

    parts: tuple[Any, ...] = ()
    counts: tuple[int, ...] = ()  # participants of each part
    answered: Array = field(default_factory=lambda: np.zeros(0))  # (m,), how many answered each item
    sums: Array = field(default_factory=lambda: np.zeros((3, 0)))  # see `item_sums`, in the items' own units
    total_weight: float = 0.0  # Σω
    fetch: Callable[[Elsewhere, Array], Observations] | None = None  # brings some participants here

    @property
    def n(self) -> int:
        return sum(self.counts)

    @property
    def here(self) -> bool:
        return False

    def answer_counts(self) -> Array:
        return self.answered

    def item_sums(self) -> Array:
        return self.sums

    @property
    def size(self) -> float:
        return self.total_weight

    def take(self, rows: Array) -> Observations:
        """Those of some participants (in order), which are brought here."""
        if self.fetch is None:
            raise self._not_here()
        return self.fetch(self, rows)

    def hide(self, mask: Array) -> Observations:
        raise self._not_here()

    def _of_participants(self, rows: Array | slice, stored: Array | slice, **others: Any) -> Observations:
        raise self._not_here()

    def _table(self, rows: slice) -> tuple[Array, Array]:
        raise self._not_here()

    @staticmethod
    def _not_here() -> InputError:
        return InputError(
            "The answers stay where they are, and this needs them here.",
            code="answers-elsewhere",
            remedy="A dask array can be fitted with the solver 'fast' from a named start, and scored; for "
            "anything else give a table.",
        )


@dataclass(frozen=True)
class VisitObservations(Observations):
    """Answers of visits: the columns are (age bin, item), and a participant has those of the bins seen.

    Participants × bins × items is mostly empty, so it is never made as a whole: what is kept is the table of
    visits, which grows with the answers given, and each block of participants is spread over its columns only
    while it is worked on. To the iterations it is a block like any other: the step of a block stays pure, its
    sums add, and nothing else needs to know of visits. (As with all observations, a table of up to 64 MB is
    kept spread, because that is quicker.)

    `answers` (and `hidden`) have one row per visit and one column per item; design and weights one row per
    participant; `scale` one entry per column, the same in every bin.
    """

    participant: Array = field(default_factory=lambda: _NOBODY)  # (V,) in order; everybody has a visit
    bin: Array = field(default_factory=lambda: _NOBODY)  # (V,)
    bins: int = 1

    @property
    def m(self) -> int:
        return self.bins * self.n_items

    @property
    def n_bins(self) -> int:
        return self.bins

    @property
    def n_items(self) -> int:
        """Items, each of which is a column in every bin."""
        return int(self.answers.shape[1])

    @cached_property
    def _first_visits(self) -> Array:
        """Where each participant's visits begin, and where the last one's end (n + 1,)."""
        return np.searchsorted(self.participant, np.arange(self.n + 1))

    def take(self, rows: Array) -> Observations:
        rows = np.asarray(rows)
        counts = np.diff(self._first_visits)[rows]
        into = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        visits = np.repeat(self._first_visits[rows], counts) + into
        return self._of_participants(
            rows, visits, participant=np.repeat(np.arange(len(rows)), counts), bin=self.bin[visits]
        )

    def _part(self, rows: slice) -> Observations:
        return self.take(np.arange(rows.start, rows.stop))

    def of_visits(self, participants: Array, visits: Array) -> VisitObservations:
        """These visits (V,) alone, all of which are of these participants (n,)."""
        place = np.cumsum(participants) - 1
        return replace(
            self,
            answers=self.answers[visits],
            hidden=None if self.hidden is None else self.hidden[visits],
            design=np.ascontiguousarray(self.design[:, participants]),
            weights=None if self.weights is None else self.weights[participants],
            participant=place[self.participant[visits]],
            bin=self.bin[visits],
        )

    def shuffled(self, rng: np.random.Generator) -> VisitObservations:
        """With each participant's visits dealt anew to the bins that the participant was seen in."""
        order = np.lexsort((rng.random(len(self.participant)), self.participant))
        hidden = None if self.hidden is None else self.hidden[order]
        return replace(self, answers=self.answers[order], hidden=hidden)

    def laid_out(self, by_row: Array, column: Array) -> Array:
        own = column.reshape(self.bins, self.n_items)[self.bin]
        return np.take_along_axis(by_row[self.participant], own, axis=1)

    def cells(self, mask: Array) -> tuple[Array, Array, Array]:
        visits, items, answers = super().cells(mask)
        return self.participant[visits], self.bin[visits] * self.n_items + items, answers

    def pooled(self) -> Observations:
        """Each participant's mean answer to each item over the visits."""
        return self._pooled

    @cached_property
    def _pooled(self) -> Observations:
        seen, first = self.observed, self._first_visits[:-1]
        count = np.add.reduceat(seen, first, axis=0, dtype=np.float64)
        total = np.add.reduceat(np.where(seen, self.answers, 0), first, axis=0, dtype=np.float64)
        means = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
        scale = None if self.scale is None else self.scale[: self.n_items]
        return Observations(means, self.design, self.weights, scale=scale, dtype=self.dtype)

    @property
    def _rows_at_once(self) -> int:
        return min(_BLOCK_ROWS, max(1, _BLOCK_CELLS // self.m))

    def _table(self, rows: slice) -> tuple[Array, Array]:
        visits = slice(*self._first_visits[[rows.start, rows.stop]])
        shape = (rows.stop - rows.start, self.bins, self.n_items)
        raw, observed = np.full(shape, -1, dtype=self.answers.dtype), np.zeros(shape, dtype=bool)
        at = self.participant[visits] - rows.start, self.bin[visits]
        raw[at] = self.answers[visits]
        observed[at] = raw[at] >= 0 if self.hidden is None else (raw[at] >= 0) & ~self.hidden[visits]
        return raw.reshape(len(raw), -1), observed.reshape(len(raw), -1)
