"""The iterations of one batch by plain tensor operations; whoever has settled leaves it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from icqf.engines.base import Callback, IterationProgress
from icqf.engines.torch_batch import Array, ProblemBatch, Tensor, factors_of
from icqf.engines.torch_step import State, advance
from icqf.solvers.block_step import Multipliers
from icqf.solvers.fast import EXACT_MOVES_EVERY
from icqf.solvers.result import Factors, Iterated, Move, Trace

_COMPACT_BELOW = 0.75  # the rest of a batch goes on alone once so few are left


class Course:
    """Scores W (B, k, n) and loadings Q (B, K, m) of a batch, and how they came about.

    `pressed`, where it is known, tells who presses at the start and with which multipliers.
    """

    def __init__(
        self, batch: ProblemBatch, W: Tensor, Q: Tensor, *, max_iter: int, pressed: tuple[Tensor, ...] = ()
    ) -> None:
        self.batch, self.max_iter = batch, max_iter
        self.W, self.Q, self.pressed = W, Q, pressed
        self.multipliers: list[Multipliers | None] = [None] * batch.size
        self.begin()

    def begin(self) -> None:
        """Iterate from here as from a start."""
        self.n_iter = np.zeros(self.batch.size, dtype=int)
        self.converged = np.zeros(self.batch.size, dtype=bool)
        self.traces = [Trace() for _ in range(self.batch.size)]

    def run(
        self,
        tol: float,
        *,
        certified: Callable[[int, Factors], bool] | None = None,
        callback: Callback | None = None,
    ) -> None:
        """Iterate until each problem has settled to `tol` or run out of iterations.

        One that is not `certified` then goes on, to half of its tolerance.
        """
        batch, state = self.batch, State.at(self.W.clone(), self.Q.clone(), *self.pressed)
        places = np.arange(batch.size)  # of those in `batch`, which shrinks
        live = np.ones(batch.size, dtype=bool)
        threshold = np.full(batch.size, tol)
        done = 0
        while live.any():
            state, moves = advance(batch, state, exact_moves=done % EXACT_MOVES_EVERY == 0)
            done += 1
            told = torch.stack([moves.objective, moves.excess, moves.step, moves.score_step]).cpu().numpy()
            at = np.flatnonzero(live)
            self._record(places[at], told[:, at])
            if callback is not None:
                objective, excess, step, _ = told[:, at]
                callback(IterationProgress(done, self.max_iter, objective.min(), excess.max(), step.max()))
            settled = np.array(
                [Move(told[2, b], told[3, b], told[1, b]).settled(threshold[places[b]]) for b in at]
            )
            leaving = at if done >= self.max_iter else at[settled]
            if len(leaving):
                self._keep(places, state, leaving)
                self.converged[places[at]] = settled
            for b in leaving:
                place = int(places[b])
                stays = certified is not None and not certified(place, self.factors(place))
                threshold[place] /= 2
                live[b] = stays and done < self.max_iter
            if 0 < live.sum() <= _COMPACT_BELOW * len(live):
                kept = torch.from_numpy(np.flatnonzero(live)).to(self.W.device)
                batch, state, places, live = batch.take(kept), state.take(kept), places[live], live[live]

    def _record(self, places: Array, told: Array) -> None:
        self.n_iter[places] += 1
        for place, (objective, excess, step, _) in zip(places, told.T, strict=True):
            self.traces[place].add(objective=objective, excess=excess, step=step)

    def _keep(self, places: Array, state: State, leaving: Array) -> None:
        here, there = (torch.from_numpy(each).to(self.W.device) for each in (leaving, places[leaving]))
        self.W[there], self.Q[there] = state.W[here], state.Q[here]
        if self.batch.range_top is None:
            return
        pressing, values = state.pressing[here].cpu().numpy(), state.multipliers[here].cpu().numpy()
        for place, rows, theirs in zip(places[leaving], pressing, values, strict=True):
            order = np.argsort(rows)[: int((rows < self.W.shape[2]).sum())]
            self.multipliers[place] = Multipliers(rows[order], theirs[order])

    def loadings(self) -> Tensor:
        """(B, K, m)"""
        return self.Q

    def factors(self, b: int) -> Factors:
        """One problem's own factors."""
        return factors_of(
            self.batch, b, self.W[b].cpu().numpy(), self.Q[b].cpu().numpy(), self.multipliers[b]
        )

    def found(self) -> list[Iterated]:
        """Where the iterations ended."""
        W, Q = self.W.cpu().numpy(), self.Q.cpu().numpy()
        return [
            Iterated(
                factors_of(self.batch, b, W[b], Q[b], self.multipliers[b]),
                self.traces[b],
                bool(self.converged[b]),
                int(self.n_iter[b]),
            )
            for b in range(self.batch.size)
        ]
