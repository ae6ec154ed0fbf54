"""The log of a site: every number that leaves it, in plain words, for whoever answers for the data."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np

from icqf.engines.sent import Quantity
from icqf.io.write import harmless

INDEX = "sent.csv"
_COLUMNS = ("time", "round", "file", "quantity", "meaning", "numbers", "participants", "numbers_are_in")


@dataclass(frozen=True)
class SentLog:
    """The folder of a site's log.

    ``sent.csv`` has one line for each quantity of each round; the numbers themselves stand in
    ``round-0001.csv`` and so on, as they were sent.

    Attributes
    ----------
    folder : Path
    rows : sequence of str
        Names of the factors and of the confounds' columns.
    items : sequence of str
    """

    folder: Path
    rows: Sequence[str]
    items: Sequence[str]

    def write(
        self,
        number: int,
        file: str,
        sent: Mapping[str, Quantity],
        arrays: Mapping[str, Any],
        *,
        participants: int,
    ) -> None:
        """Note what is about to be sent in the file of a round."""
        self.folder.mkdir(parents=True, exist_ok=True)
        beside = f"round-{number:04d}.csv"
        with (self.folder / beside).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            for name, array in arrays.items():
                self._numbers(writer, name, sent[name], np.asarray(array))
        index = self.folder / INDEX
        fresh = not index.exists()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with index.open("a", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            if fresh:
                writer.writerow(_COLUMNS)
            if not arrays:
                writer.writerow([now, number, file, "none", "only that it is done", 0, participants, ""])
            for name, array in arrays.items():
                words, count = sent[name].words, int(np.size(array))
                writer.writerow([now, number, file, name, words, count, participants, beside])

    def _numbers(self, writer: Any, name: str, quantity: Quantity, array: np.ndarray) -> None:
        table = array.reshape(1, -1) if array.ndim < 2 else array
        heads = self._names(quantity.shape[-1] if quantity.shape else "", table.shape[1])
        rows = self._names(quantity.shape[0], len(table)) if array.ndim > 1 else [""]
        writer.writerow([name, quantity.words, *map(harmless, heads)])
        for row, numbers in zip(rows, table.tolist(), strict=True):
            writer.writerow(["", harmless(row), *map(repr, numbers)])

    def _names(self, letter: str, length: int) -> list[str]:
        """What the places of an array stand for."""
        pairs = combinations_with_replacement(range(len(self.rows)), 2)
        known = {
            "m": list(self.items),
            "K": list(self.rows),
            "pairs": [f"{self.rows[a]} × {self.rows[b]}" for a, b in pairs],
            "two": ["positive part", "negative part"],
        }
        names = known.get(letter, list(self.rows))
        return names[:length] if len(names) >= length else [str(at) for at in range(1, length + 1)]


def token_of(secret: bytes) -> str:
    """What tells a site from another one of the same name, and nothing about its data."""
    return hashlib.sha256(b"site " + secret).hexdigest()[:16]
