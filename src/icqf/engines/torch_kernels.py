"""Batches of problems as tensors, and their iterations on a CUDA device by three fused kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from icqf.core.acceleration import EXACT_MOVES_EVERY, MOMENTUM_CAP
from icqf.core.observations import Observations
from icqf.core.penalties import L1, L2
from icqf.core.problem import Problem
from icqf.core.result import Factors, Iterated, Trace
from icqf.engines import torch_triton as kernels
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
    if np.dtype(problem.dtype) != np.float32:
        return "double precision, in which tables of up to 5000 answers are fitted unless dtype is 'float32'"
    if problem.bounds.reconstruction is not None:
        return "the bound on reconstructed answers"
    if problem.m > _MOST_ITEMS:
        return f"more than {_MOST_ITEMS} items"
    if k + problem.c > _MOST_FACTORS:
        return f"more than {_MOST_FACTORS} factors and confound columns"
    if 2 * int(np.count_nonzero(seen.observed)) < seen.answers.size:
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


_PRECISION = "tf32x3"  # single-precision products on tensor cores, with each number in two parts
_ROWS, _WARPS = 64, 4  # participants per tile of a program, and its warps; tuned on an H200
_ITEMS, _ITEMS_OF_PRODUCTS = 32, 64  # items per tile; tuned on an H200
_CHECK_EVERY = 4  # iterations, after which converged problems are dropped
_CHUNKS = 16  # most parts of the participants of one problem


class KernelCourse:
    """The state of a batch on the device; `run` iterates until all have settled.

    Loadings are tiles (B, KP, MP) of powers of two, padded with zeros.
    """

    def __init__(self, batch: ProblemBatch, W: Tensor, Q: Tensor, *, max_iter: int) -> None:
        problem, B, device = batch.first, len(W), W.device
        self.batch, self.max_iter = batch, max_iter
        self.k, self.c, self.m, self.n = batch.k, problem.c, problem.m, W.shape[2]
        self.KP, self.MP = room(self.k + self.c), room(self.m)
        self.size = self.KP * (self.MP + 2 * self.KP + 1) + kernels.SCALARS
        self.tile_rows = _ROWS if self.MP <= 128 and self.KP <= 32 else 32
        tiles = -(-self.n // self.tile_rows)
        self.rows = self.tile_rows * -(-tiles // _CHUNKS)
        self.chunks = -(-self.n // self.rows)
        self.ks = torch.tensor(batch.ks, dtype=torch.int32, device=device)
        self.W = W.contiguous()
        self.Q = torch.zeros((B, self.KP, self.MP), device=device)
        self.Q[:, : self.k + self.c, : self.m] = Q
        self.V, self.U = torch.empty_like(self.W), torch.empty_like(self.W)
        self.Q_previous, self.Y = torch.empty_like(self.Q), torch.empty_like(self.Q)
        self.G = torch.empty((B, self.KP, self.KP), device=device)
        self.scale = torch.ones((B, self.KP), device=device)
        numbers: dict[str, Any] = {"dtype": torch.float64, "device": device}
        self.momentum, self.t, self.cap, self.objective = (torch.empty(B, **numbers) for _ in range(4))
        self.done, self.converged, self.n_iter = (
            torch.zeros(B, dtype=torch.int32, device=device) for _ in range(3)
        )
        self.objectives, self.steps = (torch.zeros((B, max_iter), **numbers) for _ in range(2))
        self.parts = torch.zeros((max(1, len(problem.partitions)), self.KP), device=device)
        for p, partition in enumerate(problem.partitions):
            self.parts[p, [self.k + column for column in partition]] = 1.0
        self.sums = torch.zeros((B, self.chunks, self.size), device=device)
        self.peaks = torch.zeros((B, self.chunks, 2 * self.KP), device=device)
        self.begin()

    def begin(self) -> None:
        """Restart the iterations from the current point."""
        self.V.copy_(self.W)
        self.Q_previous.copy_(self.Q)
        self.Y.copy_(self.Q)
        own = self.Q[:, : self.k]
        self.G.zero_()
        self.G[:, : self.k, : self.k] = own @ own.mT
        self.scale.fill_(1.0)
        self.momentum.zero_()
        self.t.fill_(1.0)
        self.cap.fill_(MOMENTUM_CAP)
        self.objective.fill_(torch.inf)
        self.done.zero_()
        self.n_iter.zero_()

    def loadings(self) -> Tensor:
        """(B, K, m)"""
        return self.Q[:, : self.k + self.c, : self.m]

    def results(self) -> list[Iterated]:
        """The end points of the iterations."""
        W, Q = self.W.cpu().numpy(), self.loadings().cpu().numpy()
        n_iter, converged = self.n_iter.tolist(), self.converged.tolist()
        most = max(n_iter)
        objective, step = self.objectives[:, :most].cpu().numpy(), self.steps[:, :most].cpu().numpy()
        return [
            Iterated(
                Factors(W[b, :k, : problem.n].copy(), Q[b][[*range(k), *range(self.k, self.k + self.c)]]),
                Trace(objective[b, :done].tolist(), [0.0] * done, step[b, :done].tolist()),
                bool(converged[b]),
                done,
            )
            for b, (problem, k, done) in enumerate(
                zip(self.batch.problems, self.batch.ks, n_iter, strict=True)
            )
        ]

    def run(self, tol: float) -> None:
        """Iterate until every problem has settled to `tol` or run out of iterations."""
        alive = torch.arange(len(self.W), dtype=torch.int32, device=self.W.device)
        for at in range(self.max_iter):
            self._iterate(alive, tol, exact_moves=at % EXACT_MOVES_EVERY == 0)
            if at % _CHECK_EVERY == _CHECK_EVERY - 1:
                alive = alive[self.done[alive] == 0]
                if len(alive) == 0:
                    break
        self.W.mul_(self.scale[:, : self.k, None])
        torch.minimum(self.W, self.batch.score_top[..., None], out=self.W)

    def _iterate(self, alive: Tensor, tol: float, *, exact_moves: bool) -> None:
        batch, problem, B = self.batch, self.batch.first, len(alive)
        shapes = {"KP": self.KP, "MP": self.MP, "SIZE": self.size, "PRECISION": _PRECISION}
        ridge = problem.penalty.name == L2.name
        shared = (batch.answers, batch.designs, batch.weights, batch.answers_of, batch.design_of)
        kernels.scores_kernel[(B, self.chunks)](
            *shared, self.ks, alive, self.done, self.W, self.V, self.U, self.scale, self.momentum, batch.beta,
            batch.score_top, self.Y, self.G, self.sums, self.peaks, self.n, self.k, self.c, self.rows,
            RIDGE=ridge, BN=self.tile_rows, BM=min(_ITEMS, self.MP), num_warps=_WARPS, **shapes,
        )  # fmt: skip
        width = min(_ITEMS_OF_PRODUCTS, self.MP)
        kernels.products_kernel[(B, self.chunks, self.MP // width)](
            *shared, alive, self.done, self.W, self.U, self.Y, self.sums, self.n, self.k, self.c, self.rows,
            BN=self.tile_rows, BM=width, num_warps=_WARPS, **shapes,
        )  # fmt: skip
        sums = self.sums[:B].sum(dim=1, dtype=torch.float64)
        peaks = self.peaks[:B].amax(dim=1)
        shares = problem.intercept is not None and problem.penalty_of_loadings.favours_intercept
        kernels.loadings_kernel[(B,)](
            sums, peaks, alive, self.done, self.Q, self.Q_previous, self.Y, self.G, self.scale, self.momentum,
            self.t, self.cap, self.objective, batch.beta, batch.gamma, batch.score_top, batch.loading_top,
            batch.span, self.parts, self.converged, self.n_iter, self.objectives, self.steps,
            self.m, self.k, self.k + self.c, self.k + (problem.intercept or 0), self.max_iter, tol,
            RIDGE=ridge, EXACT=exact_moves, PARTS=len(problem.partitions) if shares else 0,
            SCORES_BOUNDED=problem.bounds.score is not None,
            LOADINGS_BOUNDED=problem.bounds.loading is not None, num_warps=_WARPS, **shapes,
        )  # fmt: skip
