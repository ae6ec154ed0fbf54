"""Iterations of a batch on a CUDA device by fused kernels, without asking the host in between."""

from __future__ import annotations

from typing import Any

import torch

from icqf.core.acceleration import EXACT_MOVES_EVERY, MOMENTUM_CAP
from icqf.core.penalties import L2
from icqf.core.result import Factors, Iterated, Trace
from icqf.engines import torch_triton as kernels
from icqf.engines.torch_batch import ProblemBatch, Tensor, room

_PRECISION = "tf32x3"  # single-precision products on tensor cores, with each number in two parts
_ROWS, _WARPS = 64, 4  # participants per tile of a program, and its warps; tuned on an H200
_ITEMS, _ITEMS_OF_PRODUCTS = 32, 64  # items per tile; tuned on an H200
_CHECK_EVERY = 4  # iterations, after which converged problems are dropped
_CHUNKS = 16  # most parts of the participants of one problem


def swept(x: Tensor, gradient: Tensor, gram: Tensor, top: float | None, *, sweeps: int) -> Tensor:
    """Coordinate sweeps over the columns of x (k, n), each with its own Gram matrix (k, k, n).

    The kernel reads and writes rows one after the other, so a transposed x is copied; any other is changed.
    """
    (k, n), x = x.shape, x.contiguous()
    highest = torch.inf if top is None else top
    kernels.sweeps_kernel[(-(-n // _ROWS),)](
        x, gradient.contiguous(), gram, highest, n, k, sweeps, *gram.stride(), KP=room(k), BN=_ROWS
    )
    return x


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
