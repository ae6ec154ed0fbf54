"""Many problems as tensors with a leading batch dimension, and how many of them fit on the device."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from icqf.core.observations import Observations
from icqf.core.penalties import L1, L2
from icqf.core.problem import Problem
from icqf.core.result import Factors
from icqf.errors import Advice, InputError

T = TypeVar("T")
_SHARE = 0.7  # share of the free memory for a batch
_INTERPRETED = 2**28  # bytes of a batch without a GPU
Array = NDArray[Any]
Tensor = torch.Tensor
_MOST_ITEMS, _MOST_FACTORS = 256, 64  # limits of a kernel's registers; factors include confounds
_SHARED = {"problems", "ks", "k", "answers", "designs"}


def device() -> torch.device | None:
    """The first CUDA device; None if PyTorch and Triton find none.

    With TRITON_INTERPRET=1 in the environment, Triton runs kernels on the processor, very slowly, for tests.
    """
    if find_spec("triton") is None:
        return None
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("cpu") if os.environ.get("TRITON_INTERPRET") == "1" else None


def memory() -> int:
    """Bytes that a batch may take."""
    if not torch.cuda.is_available():
        return _INTERPRETED
    free, _ = torch.cuda.mem_get_info()
    unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return int(_SHARE * (free + unused))


def in_batches(things: Sequence[T], size: int, work: Callable[[Sequence[T]], object]) -> None:
    """Process things in batches of this size; if memory does not suffice, of half the size."""
    first = 0
    while first < len(things):
        if _fits(work, things[first : first + size]):
            first += size
        elif size == 1:
            raise InputError(
                "The GPU does not have enough memory for even one fit of this table.",
                code="gpu-memory",
                remedy=Advice("Free memory on it, or use {engine=}.", engine="local"),
            )
        else:
            size = max(1, min(size, len(things) - first) // 2)


def _fits(work: Callable[[Sequence[T]], object], part: Sequence[T]) -> bool:
    try:
        work(part)
    except torch.OutOfMemoryError:
        pass  # memory of the failed attempt is released after this block
    else:
        return True
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return False


def obstacle(problem: Problem, k: int = 1) -> str | None:
    """Why the kernels cannot solve such a problem with k factors, in words; None if they can."""
    seen = problem.observations
    if type(seen) is not Observations:
        return "repeated visits or answers that are read in parts"
    if type(problem.penalty) not in (L1, L2) or problem.loading_penalty is not None:
        return f"the penalty {problem.penalty_of_loadings.name}"
    if problem.loading_beta is not None:
        return "a penalty of the loadings of its own"
    if np.dtype(problem.dtype) != np.float32:
        return "double precision, in which tables of up to 5000 answers are fitted unless dtype is 'float32'"
    if problem.bounds.reconstruction is not None:
        return "the bound on reconstructed answers"
    if problem.m > _MOST_ITEMS:
        return f"more than {_MOST_ITEMS} items"
    if k + problem.c > _MOST_FACTORS:
        return f"more than {_MOST_FACTORS} factors and confound columns"
    if seen.mostly_missing:
        return "a table with more than half of its answers missing"
    return None


def room(size: int) -> int:
    """The power of two, at least 16, for this many factors or items: the shapes of kernels."""
    return max(16, 1 << (size - 1).bit_length())


def kind(problem: Problem) -> tuple[Any, ...]:
    """What problems of one batch have in common."""
    bounds = problem.bounds
    return (
        problem.m,
        problem.c,
        type(problem.penalty),
        bounds.score is None,
        bounds.loading is None,
        problem.partitions,
        problem.intercept,
    )


@dataclass
class ProblemBatch:
    """B problems as tensors; `k` is the number of factors of the largest."""

    problems: list[Problem]
    ks: list[int]
    k: int
    answers: Tensor  # (tables, n, room(m)), -1 where missing; bytes if they are whole numbers
    designs: Tensor  # (designs, c, n)
    answers_of: Tensor  # (B,) the table of each problem
    design_of: Tensor  # (B,)
    weights: Tensor  # (B, n); 0 for padding
    beta: Tensor  # (B,) float64
    gamma: Tensor  # (B,) float64
    score_top: Tensor  # (B, 1); infinite without a bound
    loading_top: Tensor  # (B, m)
    span: Tensor  # (B, m)

    @property
    def first(self) -> Problem:
        """Any of the problems: they are of one kind."""
        return self.problems[0]

    def design(self) -> Tensor:
        """(B, c, n)"""
        return self.designs[self.design_of]

    def take(self, at: Sequence[int], ks: Sequence[int]) -> ProblemBatch:
        """Select problems, each with a number of factors; tables are not copied."""
        places = torch.tensor(at, device=self.beta.device)
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        rows = {name: own[name][places] for name in own if name not in _SHARED}
        return replace(self, problems=[self.problems[b] for b in at], ks=list(ks), k=max(ks), **rows)


class _Once:
    """Positions of arrays that several problems share, by the identity of their owners."""

    def __init__(self) -> None:
        self.owners: list[Any] = []  # kept alive, as identities are reused
        self._places: dict[Any, int] = {}

    def place(self, *owners: Any) -> int:
        """The position of the array of these owners."""
        key = tuple(id(owner) for owner in owners)
        if key not in self._places:
            self._places[key] = len(self.owners)
            self.owners.append(owners)
        return self._places[key]


def packed(problems: Sequence[Problem], ks: Sequence[int], device: torch.device) -> ProblemBatch:
    """Problems of one kind as a batch on a device."""
    n, m = max(problem.n for problem in problems), problems[0].m
    seen = [problem.observations for problem in problems]
    tables, designs, weights = _Once(), _Once(), _Once()
    answers_of = [tables.place(each.answers, each.scale, each.hidden) for each in seen]
    design_of = [designs.place(each.design) for each in seen]
    weights_of = [weights.place(each.weights, each.answers) for each in seen]

    def places(of: list[int]) -> Tensor:
        return torch.tensor(of, device=device)

    def stacked(arrays: Sequence[Array]) -> Tensor:
        """Arrays (rows, columns) as one (arrays, n, columns)."""
        together = torch.zeros((len(arrays), n, arrays[0].shape[1]), device=device)
        for at, each in enumerate(arrays):
            together[at, : len(each)] = _on(each, device)
        return together

    def numbers(values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=device)

    def rows(values: Sequence[Array | None]) -> Tensor:
        """One row of m numbers for each problem; shared ones are copied once."""
        once = _Once()
        of = [once.place(value) for value in values]
        table = np.stack([np.full(m, np.inf) if each is None else each for (each,) in once.owners])
        return _on(table, device).float()[places(of)]

    firsts = [answers_of.index(at) for at in range(len(tables.owners))]
    tops = [np.inf if problem.bounds.score is None else problem.bounds.score for problem in problems]
    return ProblemBatch(
        list(problems),
        list(ks),
        max(ks),
        answers=_coded([seen[b] for b in firsts], n, device),
        designs=stacked([design.T for (design,) in designs.owners]).mT.contiguous(),
        answers_of=places(answers_of),
        design_of=places(design_of),
        weights=stacked([_weights(*own)[:, None] for own in weights.owners])[places(weights_of), :, 0],
        beta=numbers([problem.penalty.beta for problem in problems]),
        gamma=numbers([problem.gamma for problem in problems]),
        score_top=numbers(tops).float()[:, None],
        loading_top=rows([problem.bounds.loading for problem in problems]),
        span=rows([problem.span for problem in problems]),
    )


def _coded(tables: Sequence[Observations], n: int, device: torch.device) -> Tensor:
    """Answers in the units of problems (tables, n, room(m)), as bytes if they are whole numbers.

    Answers that several tables share, apart from what each hides, are sent to the device once.
    """
    shared = _Once()
    of = [shared.place(seen.answers, seen.scale) for seen in tables]
    sent = [_on(_in_units(*owners), device) for owners in shared.owners]
    small = [each.to(torch.int8) for each in sent]
    if all(bool((a == b).all()) for a, b in zip(small, sent, strict=True)):
        sent = small
    coded = torch.full((len(tables), n, room(tables[0].m)), -1, dtype=sent[0].dtype, device=device)
    for at, seen in enumerate(tables):
        coded[at, : seen.n, : seen.m] = torch.where(_on(seen.observed, device), sent[of[at]], -1)
    return coded


def _in_units(answers: Array, scale: Array | None) -> Array:
    """All answers in the units of a problem, -1 where missing."""
    scaled = answers if scale is None else answers * scale
    return np.where(answers >= 0, scaled, -1).astype(np.float32)


def _weights(weights: Array | None, answers: Array) -> Array:
    return np.ones(len(answers)) if weights is None else np.asarray(weights, dtype=np.float64)


def _on(values: Array, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)


def packed_starts(batch: ProblemBatch, starts: Sequence[Factors]) -> tuple[Tensor, Tensor]:
    """Scores (B, k, n) and loadings (B, k + c, m) of the starts; surplus factors are zero."""
    B, n = batch.weights.shape
    device, c, m = batch.weights.device, batch.first.c, batch.first.m
    W = torch.zeros((B, batch.k, n), device=device)
    Q = torch.zeros((B, batch.k + c, m), device=device)
    sent: dict[int, tuple[Tensor, Tensor]] = {}
    for b, start in enumerate(starts):
        if id(start) not in sent:
            sent[id(start)] = (_on(start.scores, device).float(), _on(start.loadings, device).float())
        scores, loadings = sent[id(start)]
        k = len(scores)
        W[b, :k, : scores.shape[1]] = scores
        Q[b, :k], Q[b, batch.k :] = loadings[:k], loadings[k:]
    return W, Q
