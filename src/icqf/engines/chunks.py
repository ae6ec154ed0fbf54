"""Chunks of participants: many blocks that one worker of a cluster takes one after the other."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from multiprocessing import parent_process
from threading import Lock
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from icqf.core.observations import Array, Observations
from icqf.core.result import Factors
from icqf.core.rows import Held, Pass, RowsHere, total
from icqf.errors import InputError

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # options of glibc's mallopt
MOST_CHUNKS = 512  # of one study: a scheduler remembers every pass over each of them


@dataclass(frozen=True)
class Chunk:
    """Some participants of a study, the first of whom is the one at place `first`."""

    observations: Observations
    first: int

    def rows(self, held: Sequence[Held] | None = None) -> RowsHere:
        """Its participants, with what is kept of them."""
        return RowsHere(self.observations, first=self.first, held=held)


@dataclass(frozen=True)
class Worked:
    """What is kept of a chunk after a pass over it, and what that pass found."""

    held: tuple[Held, ...]
    found: Any = None


@dataclass(frozen=True)
class Elsewhere(Observations):
    """Answers that never come here, because workers have them: what is known of all.

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


def in_units(observations: Observations, scale: Array | None, first: int) -> Chunk:
    """Answers as a problem counts them."""
    return Chunk(replace(observations, scale=scale), first)


def taken(observations: Observations, rows: Array) -> Observations:
    """Those of some participants."""
    return observations.take(rows)


def joined(parts: Sequence[Observations], scale: Array | None) -> Observations:
    """The participants of several parts, one after the other."""
    weights = [part.weights for part in parts if part.weights is not None]
    return Observations(
        np.concatenate([part.answers for part in parts]),
        np.concatenate([part.design for part in parts], axis=1),
        np.concatenate(weights) if weights else None,
        scale=scale,
        dtype=parts[0].dtype,
    )


def placed(chunk: Chunk, start: Factors) -> Worked:
    """The chunk at the scores and multipliers of its participants."""
    rows = chunk.rows()
    rows.start_at(start)
    return Worked(rows.held)


def worked(chunk: Chunk, before: Worked | None, step: Pass) -> Worked:
    """A pass over a chunk; nothing that is given changes."""
    keep_memory()
    rows = chunk.rows(None if before is None else before.held)
    with one_blas_thread():
        found = rows.apply(step)
    return Worked(rows.held, found)


def found_in(worked: Worked) -> Any:
    """What the last pass found: all that leaves a chunk while a fit runs."""
    return worked.found


def factors_of(chunk: Chunk, worked: Worked, loadings: Array) -> Factors:
    """These loadings with the scores and multipliers of a chunk, counted from its first participant."""
    return chunk.rows(worked.held).factors(loadings)


def n_factors_of(worked: Worked) -> int:
    """How many factors the participants have scores for."""
    return len(worked.held[0].current)


def exact_scores_of(chunk: Chunk, worked: Worked) -> Array:
    """The scores with which a fit ended."""
    return chunk.rows(worked.held).exact_scores()


def added(found: Sequence[Any]) -> Any:
    """What was found in several chunks, added up in their order."""
    return total(found)


def size_of(thing: Chunk | Worked) -> int:
    """Bytes that have to travel when it goes to another worker."""
    return _bytes(vars(thing))


def _bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_bytes, value))
    return _bytes(vars(value)) if hasattr(value, "__dict__") else 8


@cache
def keep_memory() -> None:
    """Let the process reuse the memory of arrays that come and go with every block.

    Dask starts workers with MALLOC_TRIM_THRESHOLD_ set, with which glibc gives every such array back to the
    system and asks for it anew; that takes longer than the arithmetic. These are the values that glibc comes
    to of its own accord where nothing is set. Elsewhere there is no such function, and no need of it. A
    process that the user started, where a cluster of threads works on chunks too, is left as it is.
    """
    worker = parent_process() is not None and "MALLOC_TRIM_THRESHOLD_" in os.environ
    if not worker:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for option, size in ((_MMAP_THRESHOLD, 2**25), (_TRIM_THRESHOLD, 2**26)):
            mallopt(option, size)


class OneBlasThread:
    """BLAS on one thread for as long as any thread of the process works on a chunk.

    How many threads BLAS takes is a matter of the whole process: whoever comes first sets it, and whoever
    leaves last puts back what was there.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._limits = Lock(), 0, None

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        return ThreadpoolController()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Enter, and leave."""
        with self._lock:
            if self._inside == 0:
                self._limits = self._libraries.limit(limits=1, user_api="blas")
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0 and self._limits is not None:
                    self._limits.restore_original_limits()


one_blas_thread = OneBlasThread()
