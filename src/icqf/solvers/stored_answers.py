"""Answers in a file, one row per participant, read a block at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from icqf.solvers.observations import Array, Observations

MISSING = -1


@dataclass(frozen=True)
class StoredAnswers:
    """A table (n, m) of numbers in a file, counted from 0: whole ones with -1 missing, or floats with NaN.

    A slice of it is read from the file when it is asked for, as floats with NaN, and let go.
    """

    path: str
    shape: tuple[int, int]
    dtype: Any
    offset: int = 0  # bytes before the first answer

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, rows: slice) -> Array:
        """Some rows as they are stored."""
        n, m = rows.stop - rows.start, self.shape[1]
        at = self.offset + rows.start * m * np.dtype(self.dtype).itemsize
        return np.fromfile(self.path, dtype=self.dtype, count=n * m, offset=at).reshape(n, m)

    def __getitem__(self, rows: slice) -> Array:
        rows = slice(*rows.indices(len(self))[:2])
        stored = self.read(rows)
        return np.where(stored >= 0, stored, np.nan).astype(np.float32)

    def part(self, rows: slice) -> StoredAnswers:
        """Consecutive rows of the same file."""
        width = self.shape[1] * np.dtype(self.dtype).itemsize
        shape = rows.stop - rows.start, self.shape[1]
        return replace(self, shape=shape, offset=self.offset + rows.start * width)

    def take(self, rows: Array) -> Array:
        """Some rows, by their places in ascending order, as they are stored."""
        width = self.shape[1] * np.dtype(self.dtype).itemsize
        found = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        with open(self.path, "rb") as file:
            for at, row in enumerate(rows):
                file.seek(self.offset + int(row) * width)
                found[at] = np.frombuffer(file.read(width), dtype=self.dtype)
        return found


@dataclass(frozen=True)
class StoredObservations(Observations):
    """Answers that stay in a file, of which only the blocks that are worked on are in memory.

    Scores of a fit to them stay with the blocks, too.
    """

    answers: StoredAnswers  # type: ignore[assignment]

    @property
    def here(self) -> bool:
        return False

    def take(self, rows: Array) -> Observations:
        """Those of some participants (in order), which are read into memory."""
        return Observations(
            self.answers.take(rows),
            np.ascontiguousarray(self.design[:, rows]),
            None if self.weights is None else self.weights[rows],
            scale=self.scale,
            dtype=self.dtype,
        )

    def _part(self, rows: slice) -> Observations:
        return replace(
            self,
            answers=self.answers.part(rows),
            design=np.ascontiguousarray(self.design[:, rows]),
            weights=None if self.weights is None else self.weights[rows],
        )

    def hide(self, mask: Array) -> Observations:
        raise NotImplementedError("Answers in a file cannot be hidden; take some participants first.")

    def _table(self, rows: slice) -> tuple[Array, Array]:
        raw = self.answers.read(rows)
        return raw, raw >= 0
