"""A whole search on the device: starts, fits and errors of all folds together.

Only errors and iteration counts come back. The starts are those of `icqf.core.start` (NNDSVD), computed for
all folds and numbers of factors at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from array_api_compat import torch as xp

from icqf.core.penalties import L1
from icqf.core.problem import Problem
from icqf.core.start import REACH, SETTLE_SWEEPS
from icqf.core.sweeps import cd_sweeps
from icqf.engines.base import FoldError, HiddenAnswers
from icqf.engines.torch_batch import (
    Array,
    ProblemBatch,
    Tensor,
    in_batches,
    kind,
    memory,
    obstacle,
    packed,
    room,
)
from icqf.engines.torch_kernels import KernelCourse

_TABLES_AT_A_TIME = 2**31  # bytes of predicted answers that are evaluated together
_KEPT = 6  # (k, n) arrays that a fit needs on the device
_CHUNK = 2048  # participants whose products are summed in single precision


def searchable(problems: Sequence[Problem], ks: Sequence[int]) -> bool:
    """Whether `search` can fit these: tables of one kind, with no fewer participants than items."""
    tall = all(problem.m <= problem.n for problem in problems)
    alike = len({kind(problem) for problem in problems}) == 1
    return tall and alike and all(obstacle(problem, max(ks)) is None for problem in problems)


def search(
    problems: Sequence[Problem],
    hidden: Sequence[HiddenAnswers],
    ks: Sequence[int],
    betas: Sequence[float],
    *,
    device: torch.device,
    tol: float,
    max_iter: int,
) -> list[FoldError]:
    """Fit every fold with every number of factors and penalty, each penalty from the end of the last."""
    errors: list[FoldError] = []
    starts = _Starts(problems, max(ks), device)
    evaluation = _Evaluation(hidden, device)
    groups: dict[int, list[int]] = {}
    for k in sorted(ks, reverse=True):
        groups.setdefault(room(k + problems[0].c), []).append(k)

    def fit(part: Sequence[tuple[int, int]]) -> None:
        errors.extend(_fits(part, starts, evaluation, betas, tol=tol, max_iter=max_iter))

    for some in groups.values():
        pairs = [(fold, k) for k in some for fold in range(len(problems))]
        in_batches(pairs, _searches_at_once(problems[0], max(some)), fit)
    return errors


def _searches_at_once(problem: Problem, k: int) -> int:
    return max(1, memory() // (4 * problem.n * _KEPT * (k + problem.c)))


def _fits(
    pairs: Sequence[tuple[int, int]],
    starts: _Starts,
    evaluation: _Evaluation,
    betas: Sequence[float],
    *,
    tol: float,
    max_iter: int,
) -> Iterator[FoldError]:
    folds, ks = [fold for fold, _ in pairs], [k for _, k in pairs]
    batch = starts.batch.take(folds, ks)
    course = KernelCourse(batch, *starts.make(folds, batch), max_iter=max_iter)
    results: list[tuple[Tensor, Tensor]] = []
    for beta in betas:
        course.batch = batch = replace(batch, beta=torch.full_like(batch.beta, beta))
        if results:
            course.begin()
        course.run(tol)
        results.append((evaluation.sums(folds, batch, course.W, course.loadings()), course.n_iter.clone()))
    # Results are copied from the device only after everything was started.
    for beta, (sums, n_iter) in zip(betas, results, strict=True):
        for fold, k, blocks, done in zip(folds, ks, sums.cpu().numpy(), n_iter.tolist(), strict=True):
            squares, weights = blocks.sum(axis=1)
            yield FoldError(fold, k, beta, float(squares / max(weights, 1e-300)), done, blocks)


class _Starts:
    """NNDSVD starts of all folds, for every number of factors up to k.

    Each factor does not depend on that number; only the first sweeps of the loadings do.
    """

    def __init__(self, problems: Sequence[Problem], k: int, device: torch.device) -> None:
        self.batch = batch = packed(problems, [k] * len(problems), device)
        weights, X = batch.weights, batch.answers[batch.answers_of][..., : problems[0].m].float()
        O = X >= 0
        count = (O * weights.double()[..., None]).sum(dim=1)
        total = (torch.where(O, X, 0.0) * weights.double()[..., None]).sum(dim=1)
        means = (total / count.clamp(min=1e-300)).to(X.dtype)
        filled = torch.where(O, X, means[:, None]).mT  # (F, m, n)
        filled = torch.where(weights[:, None] > 0, filled, 0.0)
        squares, right = torch.linalg.eigh(_summed_products(filled * weights[:, None], filled).cpu())
        singular = squares.flip(1).clamp(min=0).sqrt().to(X.device)[:, :k]
        right = right.flip(2).to(X.device)[..., :k]
        inverse = torch.where(singular > 1e-7 * singular[:, :1], 1 / singular, 0.0)
        left = ((right * inverse[:, None]).to(X.dtype).mT @ filled).double()  # (F, k, n)
        W, Q = _heavier_halves(left, right.mT, weights)
        self.k, self.n_factors = k, singular.shape[1]
        self.W, self.Q = _scaled(batch, W * singular[..., None], Q)
        A = torch.cat([self.W, batch.design()], dim=1)
        weighted = A * weights[:, None]
        self.S, self.P = _summed_products(weighted, A), _summed_products(weighted, filled)

    def make(self, folds: Sequence[int], batch: ProblemBatch) -> tuple[Tensor, Tensor]:
        """Scores (B, k, n) and loadings (B, K, m) of the folds that a batch has."""
        k, c, at = batch.k, batch.first.c, torch.tensor(folds, device=self.W.device)
        used = torch.arange(k, device=at.device) < torch.tensor(batch.ks, device=at.device)[:, None]
        rows = torch.cat([torch.arange(k), torch.arange(self.k, self.k + c)]).to(at.device)
        there = torch.cat([used, torch.ones((len(at), c), dtype=torch.bool, device=at.device)], dim=1)
        W = torch.where(used[..., None], self.W[at][:, :k], 0.0)
        Q = torch.zeros((len(at), k + c, batch.first.m), dtype=W.dtype, device=W.device)
        Q[:, :k] = torch.where(used[..., None], self.Q[at][:, :k], 0.0)
        S = torch.where(there[:, None] & there[..., None], self.S[at][:, rows][:, :, rows], 0.0).to(W.dtype)
        linear = isinstance(batch.first.penalty, L1)
        P = self.P[at][:, rows] - (batch.beta * batch.gamma * linear)[:, None, None]
        P = torch.where(there[..., None], P, 0.0).to(W.dtype)
        cd_sweeps(Q, S, P, batch.loading_top, sweeps=SETTLE_SWEEPS, xp=xp)
        return W, Q


def _summed_products(a: Tensor, b: Tensor) -> Tensor:
    """a bᵀ over participants, a (B, r, n) and b (B, s, n), in double precision."""
    parts = zip(a.split(_CHUNK, dim=-1), b.split(_CHUNK, dim=-1), strict=True)
    return torch.stack([(x @ y.mT).double() for x, y in parts]).sum(dim=0)


def _heavier_halves(left: Tensor, right: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Of each singular pair (F, k, n) and (F, k, m), the heavier of its two signed halves."""
    halves = [((sign * left).clamp(min=0), (sign * right).clamp(min=0)) for sign in (1.0, -1.0)]
    first, second = (
        ((u * u * weights[:, None].double()).sum(dim=2).sqrt() * v.norm(dim=2))[..., None] for u, v in halves
    )
    there = torch.maximum(first, second) > 0
    u, v = (torch.where(there, torch.where(second > first, b, a), 0.0) for a, b in zip(*halves, strict=True))
    return u, v


def _scaled(batch: ProblemBatch, W: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
    """Raw scores and loadings (float64) brought to scale and inside their bounds."""
    weights, bounds = batch.weights.double(), batch.first.bounds
    if bounds.score is not None:
        spread = ((W * W * weights[:, None]).sum(dim=2) / weights.sum(dim=1, keepdim=True)).sqrt()
        scale = batch.score_top.double() / (REACH * torch.where(spread > 0, spread, 1.0))
        scale = torch.where(spread > 0, scale, 1.0)
    else:
        size_W, size_Q = (W * weights[:, None]).sum(dim=2), Q.sum(dim=2)
        both = (size_W > 0) & (size_Q > 0)
        scale = torch.sqrt(batch.gamma[:, None] * size_Q / torch.where(both, size_W, 1.0))
        scale = torch.where(both & (scale > 0), scale, 1.0)
    W = torch.minimum(W * scale[..., None], batch.score_top.double()[..., None])
    Q = torch.minimum(Q / scale[..., None], batch.loading_top.double()[:, None])
    return W.to(batch.weights.dtype), Q.to(batch.weights.dtype)


class _Evaluation:
    """Errors on hidden answers; each fold's are on the device once."""

    def __init__(self, folds: Sequence[HiddenAnswers], device: torch.device) -> None:
        def stacked(arrays: Sequence[Array], dtype: torch.dtype = torch.float32) -> Tensor:
            alike = all(each is arrays[0] for each in arrays)
            different = np.stack(arrays[:1] if alike else arrays)
            return torch.from_numpy(different).to(device).to(dtype)

        self.hidden = stacked([fold.hidden for fold in folds], torch.bool)
        self.answers = stacked([fold.answers for fold in folds])
        self.top, self.units, self.low, scale = (
            stacked([getattr(fold, name) for fold in folds])[:, None]
            for name in ("top", "units", "low", "scale")
        )
        self.answers = self.answers * scale
        self.row_block = stacked([fold.row_block for fold in folds], torch.int64)
        self.n_blocks = 1 + max(int(fold.row_block.max()) for fold in folds)

    def sums(self, folds: Sequence[int], batch: ProblemBatch, W: Tensor, Q: Tensor) -> Tensor:
        """Squared errors on the answers hidden from each fit, and weights, by block (B, 2, blocks)."""
        n, m = self.hidden.shape[1:]
        together = max(1, _TABLES_AT_A_TIME // (4 * n * m))
        at = torch.tensor(folds, device=W.device)
        C, weights = batch.design(), batch.weights.double()
        sums = []
        for part in torch.arange(len(folds), device=W.device).split(together):
            fold = at[part]
            predicted = torch.cat([W[part], C[part]], dim=1).mT @ Q[part]
            torch.minimum(predicted, self._own(self.top, fold), out=predicted)
            predicted *= self._own(self.units, fold)
            predicted += self._own(self.low, fold)
            predicted -= self._own(self.answers, fold)
            hidden = self.hidden[fold]
            squares = torch.where(hidden, predicted, 0.0).square_().sum(dim=2).double()
            by_row = torch.stack([squares, hidden.sum(dim=2)], dim=1) * weights[part][:, None]
            block = self._own(self.row_block, fold)[:, None].expand_as(by_row)
            empty = by_row.new_zeros((len(part), 2, self.n_blocks))
            sums.append(empty.scatter_add_(2, block, by_row))
        return torch.cat(sums)

    def _own(self, values: Tensor, fold: Tensor) -> Tensor:
        return values if len(values) == 1 else values[fold]
