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


def room(size: int) -> int:
    """The power of two, 16 at least, that holds so many factors or items: the shapes of kernels."""
    return max(16, 1 << (size - 1).bit_length())


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
class ProblemBatch:
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

    def take(self, at: Tensor) -> ProblemBatch:
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
    """What several problems share is kept once: things by the identity of what they are made from."""

    def __init__(self) -> None:
        self.owners: list[
            tuple[Any, ...]
        ] = []  # an identity means something only as long as its object lives
        self._places: dict[Any, int] = {}

    def place(self, *owners: Any) -> int:
        """Where the thing made from these is kept."""
        key = tuple(id(owner) for owner in owners)
        if key not in self._places:
            self._places[key] = len(self.owners)
            self.owners.append(owners)
        return self._places[key]


def packed(problems: Sequence[Problem], ks: Sequence[int], device: torch.device) -> ProblemBatch:
    """Problems of one kind as a batch on a device, with room for the largest number of factors."""
    n = max(problem.n for problem in problems)
    first = problems[0]
    dtype = torch_dtype(first.dtype)
    tables, masks, designs, weights = _Shared(), _Shared(), _Shared(), _Shared()
    seen = [problem.observations for problem in problems]
    x_of = [tables.place(each.answers, each.scale) for each in seen]
    o_of = [masks.place(each.answers, each.hidden) for each in seen]
    c_of = [designs.place(each.design) for each in seen]
    w_of = [weights.place(each) for each in seen]

    def stacked(of: list[int], make: Callable[[Observations], Array], dtype: torch.dtype) -> Tensor:
        """One array (n, ...) for each place, of whichever problem has it."""
        first_with = {at: b for b, at in reversed(list(enumerate(of)))}
        made = [make(seen[first_with[at]]) for at in range(len(first_with))]
        together = torch.zeros((len(made), n, *made[0].shape[1:]), dtype=dtype, device=device)
        for at, each in enumerate(made):
            together[at, : len(each)] = _on(each, device)
        return together

    def places(of: list[int]) -> Tensor:
        return torch.tensor(of, device=device)

    def numbers(values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=device)

    def rows(values: Sequence[Array | None]) -> Tensor:
        """One row of m numbers for each problem; those of problems that share it are copied once."""
        once = _Shared()
        of = [once.place(value) for value in values]
        endless = np.full(first.m, np.inf)
        table = np.stack([endless if each is None else each for (each,) in once.owners])
        return _on(table, device).to(dtype)[places(of)]

    bounded = first.bounds.reconstruction is not None
    top = np.inf if first.bounds.score is None else 1.0
    return ProblemBatch(
        list(problems),
        list(ks),
        max(ks),
        Tables(
            stacked(x_of, _answers, dtype),
            stacked(o_of, lambda each: each.observed, torch.bool),
            stacked(c_of, lambda each: each.design.T, dtype).mT.contiguous(),
            places(x_of),
            places(o_of),
            places(c_of),
        ),
        stacked(w_of, _weights, dtype)[places(w_of)],
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


def packed_starts(batch: ProblemBatch, starts: Sequence[Factors]) -> tuple[Tensor, Tensor]:
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


def packed_multipliers(batch: ProblemBatch, starts: Sequence[Factors]) -> tuple[Tensor, ...]:
    """Who presses in each problem (B, s), padded with n, and their multipliers (B, s, m); or nothing."""
    known = [start.multipliers for start in starts]
    most = max(0 if each is None else len(each.rows) for each in known)
    if batch.range_top is None or most == 0:
        return ()
    n, device = batch.weights.shape[1], batch.weights.device
    once = _Shared()
    of = torch.tensor([once.place(each) for each in known], device=device)
    rows = np.full((len(once.owners), most), n)
    values = np.zeros((len(once.owners), most, batch.first.m), dtype=batch.first.dtype)
    for at, (each,) in enumerate(once.owners):
        if each is not None:
            rows[at, : len(each.rows)], values[at, : len(each.rows)] = each.rows, each.values
    pressing, multipliers = _on(rows, device)[of], _on(values, device)[of]
    there = torch.nn.functional.pad(batch.weights, (0, 1)).gather(1, pressing) > 0
    return torch.where(there, pressing, n), torch.where(there[..., None], multipliers, 0.0)


def factors_of(batch: ProblemBatch, b: int, W: Array, Q: Array, multipliers: Multipliers | None) -> Factors:
    """One problem's own factors (k, n), (k + c, m) from those of the batch."""
    k, n = batch.ks[b], batch.problems[b].n
    loadings = np.concatenate([Q[:k], Q[batch.k :]])
    return Factors(np.ascontiguousarray(W[:k, :n]), loadings, multipliers)
