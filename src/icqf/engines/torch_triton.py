"""Kernels for a GPU: the participants' two passes without a table of residuals, the loadings' step, sweeps.

The first three do what `icqf.core.fast` does without a bound on reconstructed answers, for many problems at
a time; acceleration and stopping are compiled from `icqf.core.acceleration`. A problem that has settled costs
nothing more, and the host is idle during iterations. Triton comes with PyTorch's CUDA builds; this module is
imported only if Triton is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import triton
import triton.language as tl

from icqf.core import acceleration, block_step, sweeps

SCALARS = 16  # numbers after the matrices in a program's partial sums: misfit, penalty, and padding
_TINY = tl.constexpr(sweeps.TINY)
_SCORE_SWEEPS, _LOADING_SWEEPS = (
    tl.constexpr(block_step.SCORE_SWEEPS),
    tl.constexpr(acceleration.LOADING_SWEEPS),
)


def _compiled(formula: Callable[..., Any]) -> Any:
    """A formula of `icqf.core.acceleration` compiled for a kernel: `xp` is Triton, numbers are constants."""
    names = dict(vars(acceleration), xp=tl, Any=tl.tensor)
    names |= {name: tl.constexpr(value) for name, value in names.items() if type(value) in (int, float)}
    return triton.jit(FunctionType(formula.__code__, names, formula.__name__))


_turns_back, _next_momentum = _compiled(acceleration.turns_back), _compiled(acceleration.next_momentum)
_has_settled, _with_shared = _compiled(acceleration.has_settled), _compiled(acceleration.with_shared)
_scale_in_bounds = _compiled(acceleration.scale_in_bounds)


@triton.jit
def scores_kernel(
    answers, C, weights, table_of, c_of, k_of, alive, done,
    W, V, U, scale, momentum, beta, top, Y, G, sums, peaks,
    n, k, c, rows,
    RIDGE: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr, KP: tl.constexpr, MP: tl.constexpr,
    SIZE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Move the scores of some participants of one problem, and add up their products with each other.

    `answers` (tables, n, MP), negative where there is none, and C (designs, c, n) are shared by problems; W
    (B, k, n) are scores, V those before and U those extrapolated; Y (B, KP, MP) are loadings and G their
    products. The scores' scale of the last exact move is applied here. Items are taken BM at a time, so that
    little is held.
    """
    slot, chunk = tl.program_id(0), tl.program_id(1)
    b = tl.load(alive + slot).to(tl.int64)
    if tl.load(done + b) != 0:
        return
    kk = tl.arange(0, KP)
    own, confound = kk < k, (kk >= k) & (kk < k + c)
    table = answers + tl.load(table_of + b).to(tl.int64) * n * MP
    design = C + tl.load(c_of + b).to(tl.int64) * c * n
    W_b, V_b, U_b = W + b * k * n, V + b * k * n, U + b * k * n
    k_b = tl.load(k_of + b)
    lam = tl.load(beta + b).to(tl.float32)
    highest, forward = tl.load(top + b), tl.load(momentum + b).to(tl.float32)
    s = tl.load(scale + b * KP + kk)
    gram = tl.load(G + b * KP * KP + kk[:, None] * KP + kk[None, :])

    S = tl.zeros((KP, KP), dtype=tl.float32)
    cross = tl.zeros((KP, KP), dtype=tl.float32)
    mass = tl.zeros((KP,), dtype=tl.float32)
    peak = tl.zeros((KP,), dtype=tl.float32)
    step = tl.zeros((KP,), dtype=tl.float32)
    misfit = tl.zeros((BN,), dtype=tl.float32)
    penalty = tl.zeros((BN,), dtype=tl.float32)
    for first in range(chunk * rows, tl.minimum(n, (chunk + 1) * rows), BN):
        i = first + tl.arange(0, BN)
        there = i < n
        w_at = kk[None, :] * n + i[:, None]
        w_mask = own[None, :] & there[:, None]
        now = tl.load(W_b + w_at, mask=w_mask, other=0.0) * s[None, :]
        now = tl.minimum(now, highest)
        last = tl.load(V_b + w_at, mask=w_mask, other=0.0) * s[None, :]
        y = tl.minimum(tl.maximum(now + forward * (now - last), 0.0), highest)
        fixed = tl.load(
            design + (kk[None, :] - k) * n + i[:, None], mask=confound[None, :] & there[:, None], other=0.0
        )
        weight = tl.load(weights + b * n + i, mask=there, other=0.0)
        before = tl.where(own[None, :], y, fixed)
        target = tl.dot(y, gram, input_precision=PRECISION)
        for item in range(0, MP, BM):
            mm = item + tl.arange(0, BM)
            loadings = tl.load(Y + b * KP * MP + kk[:, None] * MP + mm[None, :])
            cell = i[:, None] * MP + mm[None, :]
            answer = tl.load(table + cell, mask=there[:, None], other=-1).to(tl.float32)
            residual = answer - tl.dot(before, loadings, input_precision=PRECISION)
            residual = tl.where(answer >= 0, residual, 0.0)
            misfit += weight * tl.sum(residual * residual, axis=1)
            target += tl.dot(residual, tl.trans(loadings), input_precision=PRECISION)
        if RIDGE:
            penalty += weight * 0.5 * tl.sum(y * y, axis=1)
        else:
            target -= lam
            penalty += weight * tl.sum(y, axis=1)
        x = y
        for _ in tl.static_range(_SCORE_SWEEPS):
            for r in range(0, k_b):
                row = tl.load(G + b * KP * KP + r * KP + kk)
                bend = tl.load(G + b * KP * KP + r * KP + r)
                if RIDGE:
                    bend += lam
                bend = tl.where(bend > _TINY, bend, 1.0)
                here = kk[None, :] == r
                best = tl.sum(tl.where(here, target, -row[None, :] * x), axis=1) / bend
                best = tl.minimum(tl.maximum(best, 0.0), highest)
                x = tl.where(here, best[:, None], x)
        tl.store(W_b + w_at, x, mask=w_mask)
        tl.store(V_b + w_at, now, mask=w_mask)
        tl.store(U_b + w_at, y, mask=w_mask)

        after = tl.where(own[None, :], x, fixed)
        weighted = after * weight[:, None]
        turned = tl.trans(weighted)
        S += tl.dot(turned, after, input_precision=PRECISION)
        cross += tl.dot(turned, before, input_precision=PRECISION)
        counts = (weight > 0)[:, None] & own[None, :]
        if RIDGE:
            mass += tl.sum(tl.where(counts, weighted * x, 0.0), axis=0)
        else:
            mass += tl.sum(tl.where(counts, weighted, 0.0), axis=0)
        peak = tl.maximum(peak, tl.max(tl.where(counts, x, 0.0), axis=0))
        step = tl.maximum(step, tl.max(tl.where(counts, tl.abs(x - y), 0.0), axis=0))

    at = (slot.to(tl.int64) * tl.num_programs(1) + chunk) * SIZE + KP * MP
    tl.store(sums + at + kk[:, None] * KP + kk[None, :], S)
    at += KP * KP
    tl.store(sums + at + kk[:, None] * KP + kk[None, :], cross)
    at += KP * KP
    tl.store(sums + at + kk, mass)
    at += KP
    tl.store(sums + at, 0.5 * tl.sum(misfit, axis=0))
    tl.store(sums + at + 1, tl.sum(penalty, axis=0))
    at = (slot * tl.num_programs(1) + chunk) * 2 * KP
    tl.store(peaks + at + kk, peak)
    tl.store(peaks + at + KP + kk, step)


@triton.jit
def products_kernel(
    answers, C, weights, table_of, c_of, alive, done, W, U, Y, sums,
    n, k, c, rows,
    BN: tl.constexpr, BM: tl.constexpr, KP: tl.constexpr, MP: tl.constexpr, SIZE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Add up the products of some participants' moved scores with their residuals at some items.

    Working the residuals out a second time costs less than keeping them while the scores move.
    """
    slot, chunk, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    b = tl.load(alive + slot).to(tl.int64)
    if tl.load(done + b) != 0:
        return
    kk, mm = tl.arange(0, KP), part * BM + tl.arange(0, BM)
    own, confound = kk < k, (kk >= k) & (kk < k + c)
    table = answers + tl.load(table_of + b).to(tl.int64) * n * MP
    design = C + tl.load(c_of + b).to(tl.int64) * c * n
    loadings = tl.load(Y + b * KP * MP + kk[:, None] * MP + mm[None, :])
    W_b, U_b = W + b * k * n, U + b * k * n
    P = tl.zeros((KP, BM), dtype=tl.float32)
    for first in range(chunk * rows, tl.minimum(n, (chunk + 1) * rows), BN):
        i = first + tl.arange(0, BN)
        there = i < n
        w_at = kk[None, :] * n + i[:, None]
        w_mask = own[None, :] & there[:, None]
        fixed = tl.load(
            design + (kk[None, :] - k) * n + i[:, None], mask=confound[None, :] & there[:, None], other=0.0
        )
        before = fixed + tl.load(U_b + w_at, mask=w_mask, other=0.0)
        weight = tl.load(weights + b * n + i, mask=there, other=0.0)
        weighted = (fixed + tl.load(W_b + w_at, mask=w_mask, other=0.0)) * weight[:, None]
        cell = i[:, None] * MP + mm[None, :]
        answer = tl.load(table + cell, mask=there[:, None], other=-1).to(tl.float32)
        residual = answer - tl.dot(before, loadings, input_precision=PRECISION)
        residual = tl.where(answer >= 0, residual, 0.0)
        P += tl.dot(tl.trans(weighted), residual, input_precision=PRECISION)
    at = (slot.to(tl.int64) * tl.num_programs(1) + chunk) * SIZE
    tl.store(sums + at + kk[:, None] * MP + mm[None, :], P)


@triton.jit
def loadings_kernel(
    sums, peaks, alive, done, Q, Q_previous, Y, G, scale, momentum, t_of, cap_of, objective_of, beta, gamma,
    top, loading_top, span, parts, converged, n_iter, trace_objective, trace_step,
    m, k, K, intercept, max_iter, tol,
    RIDGE: tl.constexpr, EXACT: tl.constexpr, PARTS: tl.constexpr, SCORES_BOUNDED: tl.constexpr,
    LOADINGS_BOUNDED: tl.constexpr, KP: tl.constexpr, MP: tl.constexpr, SIZE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Move the loadings of one problem, update its momentum and scaling, and test whether it has settled."""
    slot = tl.program_id(0)
    b = tl.load(alive + slot).to(tl.int64)
    if tl.load(done + b) != 0:
        return
    kk, mm = tl.arange(0, KP), tl.arange(0, MP)
    own, item = kk < k, mm < m
    tile = kk[:, None] * MP + mm[None, :]
    at = sums + slot.to(tl.int64) * SIZE
    S, cross, mass_at = at + KP * MP, at + KP * MP + KP * KP, at + KP * MP + 2 * KP * KP
    y = tl.load(Y + b * KP * MP + tile)
    old = tl.load(Q + b * KP * MP + tile)
    highest = tl.load(loading_top + b * m + mm, mask=item, other=1.0)
    lam, weight = tl.load(beta + b), tl.load(gamma + b)
    strength = (lam * weight).to(tl.float32)

    exact_pull = tl.load(at + tile)
    for r in range(0, K):
        column = tl.load(cross + kk * KP + r)
        row = tl.load(Y + b * KP * MP + r * MP + mm).to(tl.float64)
        exact_pull += column[:, None] * row[None, :]
    pull = exact_pull.to(tl.float32)
    if not RIDGE:
        pull -= strength
    x = y
    for _ in tl.static_range(_LOADING_SWEEPS):
        for r in range(0, K):
            row = tl.load(S + r * KP + kk).to(tl.float32)
            bend = tl.load(S + r * KP + r).to(tl.float32)
            if RIDGE:
                bend += strength
            bend = tl.where(bend > _TINY, bend, 1.0)
            here = kk[:, None] == r
            best = tl.sum(tl.where(here, pull, -row[:, None] * x), axis=0) / bend
            best = tl.minimum(tl.maximum(best, 0.0), highest)
            x = tl.where(here & item[None, :], best[None, :], x)

    misfit, score_norm = tl.load(mass_at + KP), tl.load(mass_at + KP + 1)
    fine = y.to(tl.float64)
    norm = tl.sum(0.5 * fine * fine) if RIDGE else tl.sum(fine)
    objective = misfit + lam * score_norm + lam * weight * norm
    peak = tl.load(peaks + slot * 2 * KP + kk)
    score_step = tl.load(peaks + slot * 2 * KP + KP + kk)
    if not SCORES_BOUNDED:
        score_step = score_step / tl.maximum(peak, 1e-12)
    if LOADINGS_BOUNDED:
        unit = tl.load(span + b * m + mm, mask=item, other=1.0)[None, :] + tl.zeros((KP, MP), tl.float32)
    else:
        unit = tl.maximum(tl.max(x, axis=1), 1e-12)[:, None] + tl.zeros((KP, MP), tl.float32)
    moved = tl.max(tl.max(tl.abs(x - y) / unit, axis=1), axis=0)
    score_moved = tl.max(score_step, axis=0)

    rose = objective > tl.load(objective_of + b)
    turned = _turns_back(tl.load(S + kk * KP + kk), y, x, old)
    forward, t, cap = _next_momentum(rose, turned, tl.load(t_of + b), tl.load(cap_of + b))
    tl.store(objective_of + b, objective)
    tl.store(cap_of + b, cap)
    tl.store(t_of + b, t)
    tl.store(momentum + b, forward)

    if EXACT:
        for p in tl.static_range(PARTS):
            among = tl.load(parts + p * KP + kk)
            x = _with_shared(x, among > 0, kk == intercept, highest)
            x = tl.where(item[None, :], x, 0.0)
    s = tl.full((KP,), 1.0, tl.float64)
    if EXACT or not SCORES_BOUNDED:
        fine = x.to(tl.float64)
        mass = tl.load(mass_at + kk)
        used = own & (mass > 0) & (tl.sum(fine, axis=1) > 0)
        mass = tl.where(used, mass, 1.0)
        if RIDGE:
            s = tl.sqrt(tl.sqrt(weight * tl.sum(fine * fine, axis=1) / mass))
        else:
            s = tl.sqrt(weight * tl.sum(fine, axis=1) / mass)
        tops = highest[None, :].to(tl.float64), tl.load(top + b).to(tl.float64)
        s = _scale_in_bounds(s, used, fine, peak.to(tl.float64), tops[0], tops[1])
        x = tl.minimum(x / s.to(tl.float32)[:, None], highest[None, :])
        old = old / s.to(tl.float32)[:, None]
    tl.store(scale + b * KP + kk, s.to(tl.float32))
    tl.store(Q + b * KP * MP + tile, x)
    tl.store(Q_previous + b * KP * MP + tile, old)
    ahead = tl.minimum(tl.maximum(x + forward.to(tl.float32) * (x - old), 0.0), highest[None, :])
    tl.store(Y + b * KP * MP + tile, ahead)
    ahead = tl.where(own[:, None], ahead, 0.0)
    gram = tl.dot(ahead, tl.trans(ahead), input_precision=PRECISION)
    tl.store(G + b * KP * KP + kk[:, None] * KP + kk[None, :], gram)

    count = tl.load(n_iter + b)
    tl.store(trace_objective + b * max_iter + count, objective)
    tl.store(trace_step + b * max_iter + count, moved.to(tl.float64))
    count += 1
    settled = _has_settled(moved, score_moved, tol)
    tl.store(n_iter + b, count)
    tl.store(converged + b, settled)
    tl.store(done + b, settled | (count >= max_iter))


@triton.jit
def sweeps_kernel(
    x,
    gradient,
    gram,
    top,
    n,
    k,
    sweeps,
    by_row,
    by_column,
    by_participant,
    KP: tl.constexpr,
    BN: tl.constexpr,
):
    """Coordinate sweeps over some columns of x (k, n), each with its own Gram matrix, in place.

    `gram` (k, k, n) has these strides, which are 0 along what is shared.
    """
    i, kk = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, KP)
    tile, there = kk[:, None] * n + i[None, :], (kk < k)[:, None] & (i < n)[None, :]
    now, slope = tl.load(x + tile, mask=there, other=0.0), tl.load(gradient + tile, mask=there, other=0.0)
    for _ in range(0, sweeps):
        for r in range(0, k):
            here = kk[:, None] == r
            at = gram + r * by_row + kk[:, None] * by_column + i[None, :] * by_participant
            row = tl.load(at, mask=there, other=0.0)
            bend = tl.maximum(tl.sum(tl.where(here, row, 0.0), axis=0), _TINY)
            old = tl.sum(tl.where(here, now, 0.0), axis=0)
            best = tl.maximum(old - tl.sum(tl.where(here, slope, 0.0), axis=0) / bend, 0.0)
            best = tl.minimum(best, top)
            slope += row * (best - old)[None, :]
            now = tl.where(here, best[None, :], now)
    tl.store(x + tile, now, mask=there)
