"""Many problems as tensors with a leading batch dimension: what they share is kept once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from icqf.solvers.block_step import Multipliers
from icqf.solvers.observations import Observations
from icqf.solvers.penalties import L1, L2
from icqf.solvers.problem import Problem
from icqf.solvers.result import Factors

Array = NDArray[Any]
Tensor = torch.Tensor
_BATCHED = (L1, L2)


class Batchable:
    """Whether a batch may hold a problem; others are solved one after the other on the processor.

    A batch holds tables of participants (not of visits) that are in memory and have at least half of their
    answers, with the penalties l1 and l2. Answers that problems share are counted once.
    """

    def __init__(self) -> None:
        self._dense: dict[tuple[int, int], bool] = {}

    def __call__(self, problem: Problem) -> bool:
        seen = problem.observations
        plain = type(seen) is Observations and problem.loading_penalty is None
        return plain and type(problem.penalty) in _BATCHED and self._is_dense(seen)

    def _is_dense(self, seen: Observations) -> bool:
        key = id(seen.answers), id(seen.hidden)
        if key not in self._dense:
            self._dense[key] = 2 * int(np.count_nonzero(seen.observed)) >= seen.answers.size
        return self._dense[key]


def kind(problem: Problem) -> tuple[Any, ...]:
    """What problems of one batch have in common."""
    bounds = problem.bounds
    return (
        problem.m,
        problem.c,
        np.dtype(problem.dtype),
        type(problem.penalty),
        bounds.score is None,
        bounds.loading is None,
        bounds.reconstruction is None,
        problem.partitions,
        problem.intercept,
    )


@dataclass
class Tables:
    """Answers, masks and designs of a batch, each kept once, and where each problem finds its own."""

    X: Tensor  # (T, n, m), 0 where an answer is missing
    O: Tensor  # (U, n, m) bool
    C: Tensor  # (D, c, n)
    x_of: Tensor  # (B,)
    o_of: Tensor  # (B,)
    c_of: Tensor  # (B,)

    def answers(self) -> Tensor:
        """(B, n, m), or (1, n, m) where all share it."""
        return self.X if len(self.X) == 1 else self.X[self.x_of]

    def observed(self) -> Tensor:
        return self.O if len(self.O) == 1 else self.O[self.o_of]

    def design(self) -> Tensor:
        return self.C.expand(len(self.c_of), -1, -1) if len(self.C) == 1 else self.C[self.c_of]

    def take(self, at: Tensor) -> Tables:
        return replace(self, x_of=self.x_of[at], o_of=self.o_of[at], c_of=self.c_of[at])


@dataclass
class Batch:
    """What is minimised by each of B problems; `k` is the number of factors of the largest."""

    problems: list[Problem]
    ks: list[int]
    k: int
    tables: Tables
    weights: Tensor  # (B, n); 0 for participants who are not there
    beta: Tensor  # (B,) float64
    gamma: Tensor  # (B,) float64
    sigma: Tensor  # (B,) float64
    score_top: Tensor  # (B, 1); infinite where there is no bound
    loading_top: Tensor  # (B, m)
    range_top: Tensor | None  # (B, m)
    span: Tensor  # (B, m)

    @property
    def first(self) -> Problem:
        """Any of the problems: they are of one kind."""
        return self.problems[0]

    @property
    def size(self) -> int:
        return len(self.problems)

    def take(self, at: Tensor) -> Batch:
        """Some of the problems."""
        chosen = at.tolist()
        changed: dict[str, Any] = {
            each.name: getattr(self, each.name)[at]
            for each in fields(self)
            if isinstance(getattr(self, each.name), Tensor)
        }
        return replace(
            self,
            problems=[self.problems[b] for b in chosen],
            ks=[self.ks[b] for b in chosen],
            tables=self.tables.take(at),
            **changed,
        )


class _Shared:
    """Arrays that several problems share become one tensor: index by identity."""

    def __init__(self) -> None:
        self.places: dict[Any, int] = {}
        self.made: list[Array] = []
        self.alive: list[Any] = []  # an identity means something only as long as its object lives

    def place(self, owners: tuple[Any, ...], make: Callable[[], Array]) -> int:
        key = tuple(id(owner) for owner in owners)
        if key not in self.places:
            self.places[key] = len(self.made)
            self.made.append(make())
            self.alive.append(owners)
        return self.places[key]


def packed(problems: Sequence[Problem], ks: Sequence[int], device: torch.device) -> Batch:
    """Problems of one kind as a batch on a device, with room for the largest number of factors."""
    n = max(problem.n for problem in problems)
    first = problems[0]
    dtype = torch_dtype(first.dtype)
    tables, masks, designs, weights = _Shared(), _Shared(), _Shared(), _Shared()
    x_of, o_of, c_of, w_of = [], [], [], []
    for problem in problems:
        seen = problem.observations
        x_of.append(tables.place((seen.answers, seen.scale), lambda seen=seen: _answers(seen)))
        o_of.append(masks.place((seen.answers, seen.hidden), lambda seen=seen: seen.observed))
        c_of.append(designs.place((seen.design,), lambda seen=seen: seen.design.T))
        w_of.append(weights.place((seen,), lambda seen=seen: _weights(seen)))

    def stacked(shared: _Shared, dtype: torch.dtype) -> Tensor:
        shape = (len(shared.made), n, *shared.made[0].shape[1:])
        together = torch.zeros(shape, dtype=dtype, device=device)
        for at, each in enumerate(shared.made):
            together[at, : len(each)] = _on(each, device)
        return together

    def places(of: list[int]) -> Tensor:
        return torch.tensor(of, device=device)

    def numbers(values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=device)

    def rows(values: Sequence[Array | None]) -> Tensor:
        """One row of m numbers for each problem; those of problems that share it are copied once."""
        once = _Shared()
        of = [once.place((value,), lambda value=value: value) for value in values]
        endless = np.full(first.m, np.inf)
        table = np.stack([endless if each is None else each for each in once.made])
        return _on(table, device).to(dtype)[places(of)]

    bounded = first.bounds.reconstruction is not None
    top = np.inf if first.bounds.score is None else 1.0
    return Batch(
        list(problems),
        list(ks),
        max(ks),
        Tables(
            stacked(tables, dtype),
            stacked(masks, torch.bool),
            stacked(designs, dtype).mT.contiguous(),
            places(x_of),
            places(o_of),
            places(c_of),
        ),
        stacked(weights, dtype)[places(w_of)],
        beta=numbers([problem.penalty.beta for problem in problems]),
        gamma=numbers([problem.gamma for problem in problems]),
        sigma=numbers([problem.terms.sigma for problem in problems]),
        score_top=numbers([problem.bounds.score or top for problem in problems]).to(dtype)[:, None],
        loading_top=rows([problem.bounds.loading for problem in problems]),
        range_top=rows([problem.bounds.reconstruction for problem in problems]) if bounded else None,
        span=rows([problem.span for problem in problems]),
    )


def _answers(seen: Observations) -> Array:
    raw = seen.answers if seen.scale is None else seen.answers * seen.scale
    return np.where(seen.answers >= 0, raw, 0).astype(seen.dtype)


def _weights(seen: Observations) -> Array:
    return np.ones(seen.n) if seen.weights is None else np.asarray(seen.weights, dtype=np.float64)


def _on(values: Array, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)


def torch_dtype(dtype: Any) -> torch.dtype:
    return torch.float64 if np.dtype(dtype) == np.float64 else torch.float32


def packed_starts(batch: Batch, starts: Sequence[Factors]) -> tuple[Tensor, Tensor]:
    """Scores (B, k, n) and loadings (B, k + c, m) of the starts; factors that a problem lacks are zero."""
    device, dtype = batch.weights.device, batch.weights.dtype
    c, n, m = batch.first.c, batch.weights.shape[1], batch.first.m
    W = torch.zeros((batch.size, batch.k, n), dtype=dtype, device=device)
    Q = torch.zeros((batch.size, batch.k + c, m), dtype=dtype, device=device)
    sent: dict[int, tuple[Tensor, Tensor]] = {}
    for b, start in enumerate(starts):
        if id(start) not in sent:
            sent[id(start)] = (_on(start.scores, device).to(dtype), _on(start.loadings, device).to(dtype))
        scores, loadings = sent[id(start)]
        k = len(scores)
        W[b, :k, : scores.shape[1]] = scores
        Q[b, :k], Q[b, batch.k :] = loadings[:k], loadings[k:]
    return W, Q


def packed_multipliers(batch: Batch, starts: Sequence[Factors]) -> tuple[Tensor, ...]:
    """Who presses in each problem (B, s), padded with n, and their multipliers (B, s, m); or nothing."""
    known = [start.multipliers for start in starts]
    most = max(0 if each is None else len(each.rows) for each in known)
    if batch.range_top is None or most == 0:
        return ()
    n, device = batch.weights.shape[1], batch.weights.device
    once = _Shared()
    of = torch.tensor([once.place((each,), lambda: np.zeros(0)) for each in known], device=device)
    rows = np.full((len(once.made), most), n)
    values = np.zeros((len(once.made), most, batch.first.m), dtype=batch.first.dtype)
    for at, (each,) in enumerate(once.alive):
        if each is not None:
            rows[at, : len(each.rows)], values[at, : len(each.rows)] = each.rows, each.values
    pressing, multipliers = _on(rows, device)[of], _on(values, device)[of]
    there = torch.nn.functional.pad(batch.weights, (0, 1)).gather(1, pressing) > 0
    return torch.where(there, pressing, n), torch.where(there[..., None], multipliers, 0.0)


def factors_of(batch: Batch, b: int, W: Array, Q: Array, multipliers: Multipliers | None) -> Factors:
    """One problem's own factors (k, n), (k + c, m) from those of the batch."""
    k, n = batch.ks[b], batch.problems[b].n
    loadings = np.concatenate([Q[:k], Q[batch.k :]])
    return Factors(np.ascontiguousarray(W[:k, :n]), loadings, multipliers)
