"""Answers of visits as they are kept, one row per visit, and read as blocks of participants."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from icqf.core.observations import Array, Observations

_BLOCK_ROWS = 2048
_BLOCK_CELLS = 2**19  # the table is wide: fewer participants make a block
_NOBODY = np.zeros(0, dtype=np.intp)


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
    def repeats(self) -> int:
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
