"""Notes with numbers in them, which add up when a table is read in several parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

Counts = Mapping[tuple[Any, ...], int]
CONFOUNDS, EMPTY, CELLS, CODES = range(4)  # what tallies are about, in the order of their notes


class Tally(str):
    """A note about some rows that can be joined to the same note about others."""

    rank: tuple[int, ...]  # what the note is about, and where it stands among other notes
    counts: Counts  # what was counted; the keys say in which order it is named
    words: Callable[[Counts], str]  # makes the sentence; a function of a module, so that notes can be pickled
    unless: tuple[int, ...] | None  # another note's rank: what is counted there is not counted here

    def __new__(
        cls,
        rank: tuple[int, ...],
        counts: Counts,
        words: Callable[[Counts], str],
        unless: tuple[int, ...] | None = None,
    ) -> Self:
        ordered = dict(sorted(counts.items()))
        tally = super().__new__(cls, words(ordered))
        tally.rank, tally.counts, tally.words, tally.unless = rank, ordered, words, unless
        return tally

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.rank, self.counts, self.words, self.unless

    def joined(self, other: Tally) -> Tally:
        """The note about the rows of both."""
        counts = dict(self.counts)
        for key, count in other.counts.items():
            counts[key] = counts.get(key, 0) + count
        return Tally(self.rank, counts, self.words, self.unless)

    def without(self, other: Tally) -> Tally | None:
        """The note without what the other counts; None if nothing is left."""
        counts = {key: count for key, count in self.counts.items() if key not in other.counts}
        return Tally(self.rank, counts, self.words, self.unless) if counts else None


def join_notes(parts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return the notes of a whole table from those of its parts, in the order they would have had.

    Notes without numbers are the same in all parts; tallies stand between the same two of them.
    """
    plain: list[str] = []
    tallies: dict[tuple[int, ...], tuple[str, Tally]] = {}
    for notes in parts:
        before = ""
        for note in notes:
            if isinstance(note, Tally):
                place, known = tallies.get(note.rank, (before, None))
                tallies[note.rank] = (place, note if known is None else known.joined(note))
            else:
                if note not in plain:
                    plain.insert(plain.index(before) + 1 if before in plain else 0, note)
                before = note
    joined: list[str] = []
    for before in ("", *plain):
        joined += [before] if before else []
        for place, tally in (tallies[rank] for rank in sorted(tallies)):
            other = tallies.get(tally.unless) if tally.unless is not None else None
            left = tally if other is None else tally.without(other[1])
            joined += [left] if place == before and left is not None else []
    return tuple(joined)
