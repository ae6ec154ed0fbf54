"""The fast solver's iteration for a batch of problems, as plain tensor operations.

The same algorithm as `icqf.solvers.fast` and `icqf.solvers.block_step`, with a leading batch dimension: each
problem has its own momentum, restarts and exact moves, and a problem's numbers do not depend on the others.
Sums over participants are added up in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from array_api_compat import torch as xp

from icqf.engines.torch_batch import ProblemBatch, Tensor
from icqf.solvers.block_step import PRESSING_ROUNDS, PRESSING_SWEEPS, SCORE_SWEEPS
from icqf.solvers.exact_moves import UNMOVED
from icqf.solvers.fast import GROW, LOADING_SWEEPS, MOMENTUM_CAP, PRESS_BELOW, SHRINK
from icqf.solvers.penalties import L2
from icqf.solvers.sweeps import cd_sweeps, cd_sweeps_each

_CHUNK = 2048  # participants whose products are added up in single precision
_PRESSED_TOGETHER = 64  # those who press are padded to a multiple of this, so that shapes rarely change


@dataclass
class State:
    """Where the iterations of a batch are."""

    W: Tensor  # (B, k, n)
    W_previous: Tensor
    Q: Tensor  # (B, K, m)
    Q_previous: Tensor
    momentum: Tensor  # (B,) float64, as all that follow
    t: Tensor
    cap: Tensor
    objective: Tensor
    moved: Tensor
    looks: Tensor  # (B,) bool: at the bounds on reconstructed answers
    pressing: Tensor  # (B, s) participants who press, in order, and n where there are fewer
    multipliers: Tensor  # (B, s, m)

    @classmethod
    def at(
        cls, W: Tensor, Q: Tensor, pressing: Tensor | None = None, multipliers: Tensor | None = None
    ) -> State:
        """The beginning."""
        B, device = len(W), W.device

        def number(value: float) -> Tensor:
            return torch.full((B,), value, dtype=torch.float64, device=device)

        if pressing is None or multipliers is None:
            pressing = torch.zeros((B, 0), dtype=torch.long, device=device)
            multipliers = torch.zeros((B, 0, Q.shape[2]), dtype=Q.dtype, device=device)
        return cls(
            W, W, Q, Q, number(0.0), number(1.0), number(MOMENTUM_CAP), number(torch.inf),
            number(torch.inf), (pressing < W.shape[2]).any(dim=1), pressing, multipliers,
        )  # fmt: skip

    def take(self, at: Tensor) -> State:
        """Those of some problems."""
        return replace(self, **{each.name: getattr(self, each.name)[at] for each in fields(self)})


@dataclass
class Moves:
    """How far an iteration went, one number for each problem (float64)."""

    objective: Tensor
    excess: Tensor
    step: Tensor
    score_step: Tensor


@dataclass
class _Sums:
    S: Tensor  # (B, K, K) float64
    P: Tensor  # (B, K, m) float64, cross Q included
    active: Tensor | None  # (B, K, K, m)
    mass: Tensor  # (B, k) float64
    peak: Tensor  # (B, k)
    step: Tensor  # (B, k)
    misfit: Tensor  # (B,) float64
    penalty: Tensor  # (B,) float64, β included
    excess: Tensor  # (B,)


def advance(batch: ProblemBatch, state: State, *, exact_moves: bool) -> tuple[State, Moves]:
    """One iteration of all problems."""
    momentum = state.momentum.to(state.Q.dtype)[:, None, None]
    y = _into_box(state.Q + momentum * (state.Q - state.Q_previous), batch.loading_top[:, None])
    bounded = batch.range_top is not None
    looks = state.looks | (state.moved < PRESS_BELOW) if bounded else state.looks
    state = replace(state, looks=looks)
    # Asked of the device once an iteration, and only where there is a bound to look at.
    look = bounded and bool(looks.any())
    W, pressing, multipliers, sums = _score_step(batch, state, y, momentum, look=look)
    objective = sums.misfit + sums.penalty + batch.beta * batch.gamma * _norm(batch, y.double().flatten(1))

    Q = _loading_step(batch, y, sums)
    score_unit, loading_unit = _units(batch, sums.peak, Q)
    step = ((Q - y).abs() / loading_unit).flatten(1).amax(dim=1).double()
    score_step = (sums.step / score_unit).amax(dim=1).double()
    timing = _momentum(state, y, Q, sums, objective)
    Q, Q_previous = Q.clone(), state.Q
    if exact_moves:
        share_with_intercept(batch, Q)
    if look:
        pressing, multipliers = _updated_multipliers(batch, W, Q, pressing, multipliers)
    W_previous = state.W
    if batch.first.bounds.score is None or exact_moves:
        s = balance(batch, sums.mass, sums.peak, Q[:, : batch.k]).to(Q.dtype)
        W, W_previous = _into_box(W * s[..., None], batch.score_top[..., None]), W_previous * s[..., None]
        Q_previous = Q_previous.clone()
        Q[:, : batch.k] /= s[..., None]
        Q_previous[:, : batch.k] /= s[..., None]
        _into_box(Q, batch.loading_top[:, None])
    after = State(W, W_previous, Q, Q_previous, *timing, objective, step, looks, pressing, multipliers)
    return after, Moves(objective, sums.excess.double(), step, score_step)


def _into_box(x: Tensor, top: Tensor) -> Tensor:
    """Clip to [0, top], in place."""
    return torch.minimum(x.clamp_(min=0), top, out=x)


def _norm(batch: ProblemBatch, x: Tensor) -> Tensor:
    """The penalty's norm, added up over the last dimension."""
    return 0.5 * (x * x).sum(dim=-1) if batch.first.penalty.name == L2.name else x.sum(dim=-1)


def summed_products(a: Tensor, b: Tensor) -> Tensor:
    """a bᵀ over participants, a (B, r, n) and b (B, s, n), in double precision."""
    parts = [x @ y.mT for x, y in zip(a.split(_CHUNK, dim=-1), b.split(_CHUNK, dim=-1), strict=True)]
    return sum((part.double() for part in parts[1:]), parts[0].double())


def _sweep(
    batch: ProblemBatch, x: Tensor, G: Tensor, P: Tensor, top: Tensor, strength: Tensor, sweeps: int
) -> None:
    """Coordinate sweeps with one Gram matrix per problem, in place; `strength` (B,) multiplies the norm."""
    strength = strength.to(x.dtype)[:, None, None]
    if batch.first.penalty.name == L2.name:
        G = G + strength * torch.eye(G.shape[-1], dtype=G.dtype, device=G.device)
    else:
        P = P - strength
    cd_sweeps(x, G, P, top, sweeps=sweeps, xp=xp)


def _sweep_each(
    batch: ProblemBatch, x: Tensor, gradient: Tensor, G: Tensor, top: Tensor, strength: Tensor, sweeps: int
) -> None:
    """The same with one Gram matrix for each column, G (B, k, k, columns)."""
    strength = strength.to(x.dtype)[:, None, None]
    if batch.first.penalty.name == L2.name:
        gradient = gradient + strength * x
        eye = torch.eye(x.shape[-2], dtype=x.dtype, device=x.device)
        G = G + strength[..., None] * eye[..., None]
    else:
        gradient = gradient + strength
    cd_sweeps_each(x, gradient, G, top, sweeps=sweeps, xp=xp)


def _score_step(
    batch: ProblemBatch, state: State, y: Tensor, momentum: Tensor, *, look: bool
) -> tuple[Tensor, Tensor, Tensor, _Sums]:
    """Move all scores, and add up what the loadings need."""
    k, n = batch.k, state.W.shape[2]
    before = _into_box(state.W + momentum * (state.W - state.W_previous), batch.score_top[..., None])
    known = _marked(state.pressing, n)
    if state.pressing.shape[1]:
        before = torch.where(known[:, None], state.W, before)
    C, X, O, weights = batch.tables.design(), batch.tables.answers(), batch.tables.observed(), batch.weights
    there = weights > 0
    A = torch.cat([before, C], dim=1)
    R = A.mT @ y
    D = torch.where(O, X - R, 0.0)
    misfit = 0.5 * (weights.double() * (D * D).sum(dim=2)).sum(dim=1)
    penalty = batch.beta * (weights.double() * _norm(batch, before.mT)).sum(dim=1)
    excess = torch.zeros(batch.size, dtype=y.dtype, device=y.device)
    if look and batch.range_top is not None:
        ahead = there & state.looks[:, None]
        top = batch.range_top[:, None]
        most = ((R - top) / top).amax(dim=2)
        excess = torch.where(ahead, most, 0.0).amax(dim=1).clamp(min=0)
        known = known | ((most > 0) & ahead)
    own = y[:, :k]
    W = before.clone()
    _sweep(
        batch, W, own @ own.mT, (own @ own.mT) @ before + (D @ own.mT).mT,
        batch.score_top, batch.beta, SCORE_SWEEPS,
    )  # fmt: skip
    moved = there[:, None] if not look else (there & ~known)[:, None]
    if look:
        W = torch.where(known[:, None], before, W)
    after = torch.cat([W, C], dim=1)
    weighted = after * torch.where(moved[:, 0], weights, 0.0)[:, None]
    P = summed_products(weighted, D.mT) + summed_products(weighted, A) @ y.double()
    sums = _Sums(
        summed_products(weighted, after), P, None, _mass(batch, W, weighted[:, :k]),
        torch.where(there[:, None], W, 0.0).amax(dim=2),
        torch.where(there[:, None], (W - before).abs(), 0.0).amax(dim=2),
        misfit, penalty, excess,
    )  # fmt: skip
    if not look:
        return W, state.pressing, state.multipliers, sums
    pressing = _listed(known)
    if pressing.shape[1] == 0:
        return W, pressing, state.multipliers[:, :0], sums
    multipliers = _multipliers_of(state, pressing, n)
    W, theirs = _press(batch, W, y, pressing, multipliers)
    return W, pressing, multipliers, _added(sums, theirs)


def _mass(batch: ProblemBatch, W: Tensor, weighted: Tensor) -> Tensor:
    if batch.first.penalty.name == L2.name:
        return (W.double() * weighted.double()).sum(dim=2)
    return weighted.sum(dim=2, dtype=torch.float64)


def _added(a: _Sums, b: _Sums) -> _Sums:
    return replace(
        a, S=a.S + b.S, P=a.P + b.P, active=b.active, mass=a.mass + b.mass,
        peak=torch.maximum(a.peak, b.peak), step=torch.maximum(a.step, b.step),
    )  # fmt: skip


# --- the bound on reconstructed answers ----------------------------------------------------------------


def _marked(pressing: Tensor, n: int) -> Tensor:
    """Lists of participants (B, s), with n for nobody, as marks (B, n)."""
    marks = torch.zeros((len(pressing), n + 1), dtype=torch.bool, device=pressing.device)
    return marks.scatter_(1, pressing, True)[:, :n]


def _listed(marks: Tensor) -> Tensor:
    """Marks (B, n) as lists, each in order, padded with n."""
    n = marks.shape[1]
    longest = int(marks.sum(dim=1).max())
    width = min(n, -(-longest // _PRESSED_TOGETHER) * _PRESSED_TOGETHER)
    places = torch.where(marks, torch.arange(n, device=marks.device), n)
    return places.sort(dim=1).values[:, :width] if width else places[:, :0]


def _multipliers_of(state: State, pressing: Tensor, n: int) -> Tensor:
    """Λ (B, s, m) of those who press now; zero for those who did not before."""
    B, old = state.pressing.shape
    if old == 0:
        return torch.zeros((*pressing.shape, state.Q.shape[2]), dtype=state.Q.dtype, device=state.Q.device)
    place = torch.full((B, n + 1), old, dtype=torch.long, device=pressing.device)
    place.scatter_(1, state.pressing, torch.arange(old, device=pressing.device).expand(B, -1))
    place[:, n] = old
    found = place.gather(1, pressing)
    values = torch.cat([state.multipliers, torch.zeros_like(state.multipliers[:, :1])], dim=1)
    return values.gather(1, found[..., None].expand(-1, -1, values.shape[2]))


def _of_rows(values: Tensor, pressing: Tensor, B: int) -> Tensor:
    """The rows (B, s, m) of a table (1 or B, n, m) for those who press."""
    rows = pressing.clamp(max=values.shape[1] - 1)
    if len(values) == 1:
        return values[0][rows]
    return values.gather(1, rows[..., None].expand(-1, -1, values.shape[2]))


def _press(
    batch: ProblemBatch, W: Tensor, y: Tensor, pressing: Tensor, multipliers: Tensor
) -> tuple[Tensor, _Sums]:
    """Move those who press, under the augmented Lagrangian; all scores, and the sums of those who press."""
    k, n = batch.k, W.shape[2]
    if batch.range_top is None:
        return W, _no_sums(batch, y)
    there = pressing < n
    X = _of_rows(batch.tables.answers(), pressing, batch.size)
    O = _of_rows(batch.tables.observed(), pressing, batch.size).to(W.dtype)
    top, sigma = batch.range_top[:, None], batch.sigma.to(W.dtype)[:, None, None]
    A = _pressed(torch.cat([W, batch.tables.design()], dim=1), pressing)
    before, own = A[:, :k].clone(), y[:, :k]
    first, second = torch.triu_indices(k, k, device=W.device)
    products = (own[:, first] * own[:, second]).mT  # (B, m, pairs)
    for _ in range(PRESSING_ROUNDS):
        R = A.mT @ y
        pull = multipliers + sigma * (R - top)
        active = (pull > 0).to(W.dtype)
        gradient = -(((X - R) * O - pull * active) @ own.mT).mT
        gram = _unpacked(((O + sigma * active) @ products).mT, k)
        _sweep_each(batch, A[:, :k], gradient, gram, batch.score_top, batch.beta, PRESSING_SWEEPS)
    R = A.mT @ y
    pull = multipliers + sigma * (R - top)
    held = (pull > 0).to(W.dtype)
    weights = torch.where(there, batch.weights.gather(1, pressing.clamp(max=n - 1)), 0.0)
    weighted = A * weights[:, None]
    first, second = torch.triu_indices(A.shape[1], A.shape[1], device=W.device)
    active_sums = batch.sigma[:, None, None] * summed_products(weighted[:, first] * A[:, second], held.mT)
    here = there[:, None]
    sums = replace(
        _no_sums(batch, y),
        S=summed_products(weighted, A),
        P=summed_products(weighted, (R + (X - R) * O - pull * held).mT),
        active=_unpacked(active_sums, A.shape[1]),
        mass=_mass(batch, A[:, :k], weighted[:, :k]),
        peak=torch.where(here, A[:, :k], 0.0).amax(dim=2),
        step=torch.where(here, (A[:, :k] - before).abs(), 0.0).amax(dim=2),
    )
    padded = torch.cat([W, torch.zeros_like(W[..., :1])], dim=2)
    padded.scatter_(2, pressing[:, None].expand(-1, k, -1), A[:, :k])
    return padded[..., :n].contiguous(), sums


def _no_sums(batch: ProblemBatch, y: Tensor) -> _Sums:
    B, K, m = y.shape
    none: dict[str, Any] = {"dtype": torch.float64, "device": y.device}
    by_factor = torch.zeros((B, batch.k), dtype=y.dtype, device=y.device)
    nothing = torch.zeros(B, **none)
    return _Sums(
        torch.zeros((B, K, K), **none), torch.zeros((B, K, m), **none), None, by_factor.double(), by_factor,
        by_factor, nothing, nothing, nothing,
    )  # fmt: skip


def _pressed(A: Tensor, pressing: Tensor) -> Tensor:
    """Columns (B, K, s) of A (B, K, n) for those who press; zero for nobody."""
    padded = torch.cat([A, torch.zeros_like(A[..., :1])], dim=2)
    return padded.gather(2, pressing[:, None].expand(-1, A.shape[1], -1))


def _unpacked(packed: Tensor, k: int) -> Tensor:
    """(B, k(k+1)/2, s) to symmetric (B, k, k, s)."""
    first, second = torch.triu_indices(k, k, device=packed.device)
    where = torch.zeros((k, k), dtype=torch.long, device=packed.device)
    where[first, second] = where[second, first] = torch.arange(len(first), device=packed.device)
    return packed[:, where]


def _updated_multipliers(
    batch: ProblemBatch, W: Tensor, Q: Tensor, pressing: Tensor, multipliers: Tensor
) -> tuple[Tensor, Tensor]:
    """Λ ← max(0, Λ + σ(R − b)) at new loadings; participants who no longer press are let go."""
    if batch.range_top is None or pressing.shape[1] == 0:
        return pressing, multipliers
    n = W.shape[2]
    A = _pressed(torch.cat([W, batch.tables.design()], dim=1), pressing)
    excess = A.mT @ Q - batch.range_top[:, None]
    values = (multipliers + batch.sigma.to(Q.dtype)[:, None, None] * excess).clamp(min=0)
    keep = (values > 0).any(dim=2) & (pressing < n)
    return torch.where(keep, pressing, n), torch.where(keep[..., None], values, 0.0)


# --- the loadings --------------------------------------------------------------------------------------


def _loading_step(batch: ProblemBatch, y: Tensor, sums: _Sums) -> Tensor:
    S, P, strength = sums.S.to(y.dtype), sums.P.to(y.dtype), batch.beta * batch.gamma
    Q = y.clone()
    if sums.active is None:
        _sweep(batch, Q, S, P, batch.loading_top, strength, LOADING_SWEEPS)
    else:
        gram = S[..., None] + sums.active.to(y.dtype)
        gradient = (sums.S @ y.double() - sums.P).to(y.dtype)
        _sweep_each(batch, Q, gradient, gram, batch.loading_top, strength, LOADING_SWEEPS)
    return Q


def _units(batch: ProblemBatch, peak: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
    bounds = batch.first.bounds
    scores = peak.clamp(min=1e-12) if bounds.score is None else torch.ones_like(peak)
    if bounds.loading is not None:
        return scores, batch.span[:, None]
    return scores, Q.amax(dim=2, keepdim=True).clamp(min=1e-12)


def _momentum(
    state: State, y: Tensor, Q: Tensor, sums: _Sums, objective: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Nesterov's sequence, restarted and held shorter as in `FastIteration`: momentum, t and cap."""
    rose = objective > state.objective
    cap = torch.where(rose, SHRINK * state.cap, (GROW * state.cap).clamp(max=MOMENTUM_CAP))
    curvature = sums.S.diagonal(dim1=1, dim2=2)
    turned = (curvature * ((y - Q) * (Q - state.Q)).sum(dim=2)).sum(dim=1) > 0
    t = (1 + torch.sqrt(1 + 4 * state.t**2)) / 2
    again = rose | turned
    momentum = torch.where(again, 0.0, torch.minimum(cap, (state.t - 1) / t))
    return momentum, torch.where(again, 1.0, t), cap


def share_with_intercept(batch: ProblemBatch, Q: Tensor) -> None:
    """Move what all columns of a partition have in common to the intercept, in place."""
    problem = batch.first
    if problem.intercept is None or not problem.penalty_of_loadings.favours_intercept:
        return
    intercept = batch.k + problem.intercept
    for partition in problem.partitions:
        columns = [batch.k + column for column in partition]
        common = Q[:, columns].amin(dim=1)
        common = torch.minimum(common, (batch.loading_top - Q[:, intercept]).clamp(min=0))
        Q[:, columns] -= common[:, None]
        Q[:, intercept] += common


def balance(batch: ProblemBatch, mass: Tensor, peak: Tensor, own: Tensor) -> Tensor:
    """The scales s (B, k) that bring W·s and Q/s to their least penalty; 1 where nothing would move."""
    own, gamma = own.double(), batch.gamma[:, None]
    used = (mass > 0) & (own.sum(dim=2) > 0)
    mass = torch.where(used, mass, 1.0)
    if batch.first.penalty.name == L2.name:
        s = (gamma * (own**2).sum(dim=2) / mass) ** 0.25
    else:
        s = torch.sqrt(gamma * own.sum(dim=2) / mass)
    s = torch.maximum(s, (own / batch.loading_top.double()[:, None]).amax(dim=2))
    s = torch.minimum(s, batch.score_top.double() / torch.where(used, peak.double(), 1.0))
    s = torch.where(used, s, 1.0)
    still = (s - 1).abs().amax(dim=1, keepdim=True) < UNMOVED
    return torch.where(still, 1.0, s)
