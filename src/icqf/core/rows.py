"""The participants' side of a fit: blocks, their states, and passes over them.

A pass is a pure function of one block and its state; it returns a new state and a result. Results add over
blocks, and nothing else leaves the participants. The engine alone determines where the blocks are (in this
process, in a file, on a cluster, in a hospital).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from icqf.core.block_step import Multipliers
from icqf.core.observations import Array, Block, Observations
from icqf.core.result import Factors

_TOGETHER = 2  # blocks that a thread takes at a time; their results are added first, whatever the threads


@dataclass(frozen=True)
class BlockState:
    """The state of one block of participants between passes."""

    first: int = 0  # position of the first participant in the study
    left: tuple[Array, ...] = ()  # left singular vectors of the answers, from which starts are made
    scores: Array | None = None  # (k, B), scores now, and before the last step
    previous: Array | None = None
    multipliers: Multipliers | None = None  # of those who are at the upper bound
    exact: Array | None = None  # (k, B), the scores with which a fit ends, in double precision

    @property
    def current(self) -> Array:
        """The current scores."""
        if self.scores is None:
            raise ValueError("These participants have no scores yet.")
        return self.scores


class Pass(Protocol):
    """A function of each block."""

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, Any]:
        """The new state of the block, and a result that adds over blocks, or None."""


class Rows(Protocol):
    """All participants of a problem, wherever they are."""

    def start_at(self, start: Factors) -> None:
        """Begin at these scores and multipliers."""

    def apply(self, step: Pass) -> Any:
        """Make a pass over all blocks and return the sum of the results."""

    def factors(self, loadings: Array) -> Factors:
        """These loadings with the current scores and multipliers of all participants.

        Scores that stay on a cluster are left out, as in `exact_scores`.
        """

    def exact_scores(self) -> Array:
        """The scores (k, n) at the end of the fit; (k, 0) if they stay on a cluster."""


@dataclass(frozen=True)
class InTurn:
    """Several passes in one, block by block, with the result of the last."""

    steps: tuple[Pass, ...]

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, Any]:
        found = None
        for step in self.steps:
            state, found = step(block, state)
        return state, found


@dataclass(frozen=True)
class Rescale:
    """Multiply each factor's scores, and those of the step before, by s (k,)."""

    s: Array
    top: float | None

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, None]:
        scores = np.maximum(state.current * self.s[:, None], 0)
        if self.top is not None:
            np.minimum(scores, self.top, out=scores, casting="same_kind")
        previous = None if state.previous is None else state.previous * self.s[:, None]
        return replace(state, scores=scores, previous=previous), None


class RowsHere:
    """All participants in this process, block after block."""

    def __init__(
        self, observations: Observations, *, first: int = 0, states: Sequence[BlockState] | None = None
    ) -> None:
        self.observations = observations
        if states is None:
            states = [BlockState(first + block.start) for block in observations.spans]
        self._states = list(states)

    @property
    def states(self) -> tuple[BlockState, ...]:
        """The state of each block."""
        return tuple(self._states)

    def start_at(self, start: Factors) -> None:
        """Begin at these scores and multipliers."""
        scores = start.scores.astype(self.observations.dtype)
        known = start.multipliers or Multipliers.none(self.observations.m, self.observations.dtype)
        self._states = [
            BlockState(
                state.first, scores=scores[:, rows], previous=scores[:, rows], multipliers=known.within(rows)
            )
            for state, rows in zip(self._states, self.observations.spans, strict=True)
        ]

    def apply(self, step: Pass) -> Any:
        return total([self._together(step, blocks) for blocks in self._groups()])

    @property
    def n_groups(self) -> int:
        """Groups of blocks, whose results are added one after the other."""
        return -(-self.observations.n_blocks // _TOGETHER)

    def _groups(self) -> list[range]:
        n = self.observations.n_blocks
        return [range(at, min(at + _TOGETHER, n)) for at in range(0, n, _TOGETHER)]

    def _together(self, step: Pass, blocks: range) -> Any:
        found = []
        for at in blocks:
            self._states[at], each = step(self.observations.block(at), self._states[at])
            found.append(each)
        return total(found)

    def scores(self) -> Array:
        """All scores (k, n)."""
        return _joined([state.current for state in self._states])

    def factors(self, loadings: Array) -> Factors:
        if not self.observations.here:
            return Factors(np.empty((len(loadings) - self.observations.c, 0)), loadings)
        parts = [
            (rows.start, state.multipliers)
            for rows, state in zip(self.observations.spans, self._states, strict=True)
            if state.multipliers is not None
        ]
        return Factors(self.scores(), loadings, Multipliers.joined(parts) if parts else None)

    def exact_scores(self) -> Array:
        if not self.observations.here:
            return np.empty((len(self._states[0].current), 0))
        return _joined([state.exact for state in self._states if state.exact is not None])


def total(found: Sequence[Any]) -> Any:
    """The sum of the results of several blocks, in their order; None if there are none."""
    return None if found[0] is None else reduce(add, found)


def _joined(parts: Sequence[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
