"""The participants of one fit on a device: its start, iterations, exact scores and certificate.

Every pass (`icqf.core.rows.Pass`) has a counterpart here that does the same to all participants at once, so
that the code that controls a fit on the processor controls this one too. Only sums come back, in one copy per
pass. Participants at the upper bound are marked, not listed: no shape depends on the answers, and nothing
waits for the device, so that a GPU records the hundred small operations of an iteration and repeats them in
one go. Once a fit is iterated, those few whose exact scores touch the bound are solved on the processor.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch
from array_api_compat import torch as xp

from icqf.core.acceleration import LOADING_SWEEPS
from icqf.core.block_step import (
    ROUNDS_AT_BOUND,
    SCORE_SWEEPS,
    SWEEPS_AT_BOUND,
    Multipliers,
    Sums,
)
from icqf.core.certificate import (
    Examine,
    Examined,
    HighestConfoundPart,
    LoadingRoom,
    Peaks,
    PlaceSolved,
    Room,
    SolveScores,
)
from icqf.core.fast import MoveMultipliers, Step
from icqf.core.observations import Observations
from icqf.core.penalties import L1, L2
from icqf.core.problem import Problem
from icqf.core.result import Factors
from icqf.core.rows import BlockState, InTurn, Pass, Rescale, RowsHere
from icqf.core.start import (
    Answered,
    Drawn,
    Filling,
    ForgetLeft,
    Given,
    GramSums,
    KeepLeft,
    Measure,
    Place,
    Products,
    Projected,
    RawScores,
    Sizes,
    Totals,
)
from icqf.core.sweeps import cd_sweeps_each
from icqf.engines.torch_batch import Array, Tensor, memory

T = TypeVar("T")
Work = Callable[[Tensor], Mapping[str, Tensor | None]]
_SWEEPS, _ROUNDS = 6, 500  # of exact scores: sweeps in a round, and rounds
_NEAR = 1e-6  # of its bound: from here on a reconstructed answer is left to the processor
_FLAT = 1e-12  # less curvature than this is none
_TABLES = 24  # (n, m) tables that a fit needs on the device
WORTH = 100_000  # answers; with fewer, an iteration on a processor takes less than the 0.5 ms on an H200


def fits_on_device(problem: Problem) -> bool:
    """Whether a fit of this problem is iterated on the device: small tables take no longer elsewhere."""
    seen = problem.observations
    if type(seen) is not Observations or type(problem.penalty) not in (L1, L2):
        return False
    size = seen.answers.size
    small = np.dtype(problem.dtype).itemsize * size * _TABLES <= memory()
    return size >= WORTH and small and not seen.mostly_missing


class DeviceRows:
    """All participants on a device, in one block."""

    def __init__(self, problem: Problem, device: torch.device) -> None:
        blocks = list(problem.blocks())
        self._observations, self._device = problem.observations, device
        self._design = self._exactly(problem.design)
        self.X = self._on(np.concatenate([block.X for block in blocks]))
        complete = all(block.O is None for block in blocks)
        self.O = None if complete else self._on(np.concatenate([block.observed() for block in blocks]))
        self.C = self._on(problem.design).to(self.X.dtype)
        weights = np.ones(problem.n) if problem.weights is None else problem.weights
        self.exact_weights = self._on(np.asarray(weights, dtype=np.float64))
        self.weights = self.exact_weights.to(self.X.dtype)
        self.left: list[Tensor] = []
        self._everybody = replace(blocks[0], X=np.empty((problem.n, 0)))
        self._terms, bound = problem.terms, problem.bounds.reconstruction
        self._bound: Any = None if bound is None else self._like(bound)
        nothing, top = np.zeros((1, 1)), problem.bounds.loading
        self._ridge, self._linear = problem.penalty.quadratic(nothing, scale=1.0)
        # Loadings are moved here, too, unless items have different limits.
        self._moves_loadings = top is None or float(top.min()) == float(top.max())
        self._on_loadings = problem.penalty_of_loadings.quadratic(nothing, scale=problem.gamma)
        self._top_of_loadings = None if top is None else float(top.max())
        # What iterations read and change stays where it is: they are recorded.
        self.W, self.previous, self.exact = (torch.empty(0, device=device) for _ in range(3))
        self.at_bound = torch.zeros(problem.n, dtype=torch.bool, device=device)
        columns = 0 if bound is None else problem.m
        self.values = self.X.new_zeros((problem.n, columns))  # multipliers, and those without extrapolation
        self.plain = self.values.clone()
        self._recorded: dict[str, Recorded] = {}

    def apply(self, step: Pass) -> Any:
        """Make a pass over all participants and return its result."""
        return _PASSES[type(step)](self, step)

    def start_at(self, start: Factors) -> None:
        """Begin at these scores and multipliers."""
        self._begin_at(self._on(start.scores))
        if start.multipliers is not None:
            self._hold(start.multipliers, slice(None))

    def factors(self, loadings: Array) -> Factors:
        """These loadings with the current scores and multipliers of all participants."""
        at_bound, rows = None, np.flatnonzero(self.at_bound.cpu().numpy())
        if len(rows):
            values, plain = (each[rows].cpu().numpy() for each in (self.values, self.plain))
            at_bound = Multipliers(rows, values, plain)
        return Factors(self.W.cpu().numpy(), loadings, at_bound)

    def exact_scores(self) -> Array:
        """The scores (k, n) at the end of the fit."""
        found: Array = self.exact.cpu().numpy()
        return found

    # --- iterations ----------------------------------------------------------------------------------

    def _in_turn(self, both: InTurn) -> Any:
        found = None
        for step in both.steps:
            found = self.apply(step)
        return found

    def _rescale(self, step: Rescale) -> None:
        s = self._like(step.s)[:, None]
        self.W.mul_(s).clamp_(min=0, max=step.top)
        self.previous.mul_(s)

    def _step(self, step: Step) -> Sums:
        work = self._moved_at_bound if step.bounded else self._moved
        found = self._repeat("bounded" if step.bounded else "step", work, step.momentum, step.loadings.Q)
        return Sums(**found)

    def _repeat(
        self,
        name: str,
        work: Callable[[Tensor, Tensor], Mapping[str, Tensor | None]],
        momentum: float,
        Q: Array,
    ) -> dict[str, Any]:
        """Do some work with a momentum and loadings, as recorded if it was done before."""
        recorded = self._recorded.setdefault(name, Recorded(self._device))

        def own(given: Tensor) -> Mapping[str, Tensor | None]:
            given = given.to(self.X.dtype)
            return work(given[0], given[1:].reshape(Q.shape))

        return recorded(own, np.append(momentum, Q))

    def _moved(self, momentum: Tensor, Q: Tensor, *, bounded: bool = False) -> dict[str, Tensor | None]:
        """Move the scores; what the loadings need."""
        k, terms = len(self.W), self._terms
        own = Q[:k]
        y = (self.W + momentum * (self.W - self.previous)).clamp(min=0, max=terms.bounds.score)
        y = torch.where(self.at_bound, self.W, y)
        before = torch.cat([y, self.C])
        R = before.mT @ Q
        D = self._masked(self.X - R)
        misfit = 0.5 * (self.exact_weights @ (D * D).sum(dim=1, dtype=torch.float64))
        top = terms.bounds.score
        moved_scores = self._swept(y.clone(), -own @ D.mT, own @ own.mT, sweeps=SCORE_SWEEPS, top=top)
        after = torch.cat([moved_scores, self.C])
        excess, active = torch.zeros((), device=self._device), None
        if bounded and self._bound is not None:
            above = self._bound < R
            excess = ((R - self._bound) / self._bound).amax().clamp(min=0)
            self.at_bound.logical_or_(above.any(dim=1))
            after, D, active = self._at_bound(before, after, R, D, Q, self._bound)
        weighted = after * self.weights
        sums = _product(weighted, torch.cat([after, before, D.mT]))
        S, cross, P = sums.tensor_split([len(Q), 2 * len(Q)], dim=1)
        moved = None
        if self._moves_loadings:
            gram, P_ = S.to(Q.dtype)[..., None], (P + cross @ Q.double()).to(Q.dtype)
            if active is not None:
                gram = gram + active.to(Q.dtype)[_pairs(len(Q), self._device)[2]]
            slope = S.to(Q.dtype) @ Q - P_
            moved = self._swept(
                Q.clone(), slope, gram, self._on_loadings, sweeps=LOADING_SWEEPS, top=self._top_of_loadings
            )
            active = None
        self.previous.copy_(self.W)
        self.W.copy_(after[:k])
        if terms.penalty.name == L2.name:
            mass, norms = (weighted[:k] * self.W).sum(dim=1), 0.5 * (y * y).sum(dim=0)
        else:
            mass, norms = weighted[:k].sum(dim=1), y.sum(dim=0)
        return {
            "S": S,
            "P": P,
            "cross": cross,
            "active": active,
            "mass": mass,
            "misfit": misfit,
            "penalty": terms.penalty.beta * (self.exact_weights @ norms.double()),
            "peak": self.W.amax(dim=1),
            "step": (self.W - y).abs().amax(dim=1),
            "excess": excess,
            "moved": moved,
        }

    def _moved_at_bound(self, momentum: Tensor, Q: Tensor) -> dict[str, Tensor | None]:
        """The same, with the bound on reconstructed answers."""
        return self._moved(momentum, Q, bounded=True)

    def _at_bound(
        self,
        before: Tensor,
        after: Tensor,
        R: Tensor,
        D: Tensor,
        Q: Tensor,
        bound: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Scores (K, n), what they aim at minus the model, and curvature, where some are at the bound."""
        k, terms, sigma, model = len(after) - len(self.C), self._terms, self._terms.sigma, R
        first, second, where = _pairs(k, self._device)
        products, A = Q[first] * Q[second], before

        def aims(R: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            pull = (sigma * (R - bound) + self.values).clamp(min=0)
            return self._masked(self.X - R), pull, (pull > 0).to(R.dtype) * self.at_bound[:, None]

        observed = torch.ones_like(self.X) if self.O is None else self.O
        for _ in range(ROUNDS_AT_BOUND):
            errors, pull, active = aims(R)
            gram = (products @ (observed + sigma * active).mT)[where]
            gradient = Q[:k] @ (pull - errors).mT
            x = self._swept(A[:k].clone(), gradient, gram, sweeps=SWEEPS_AT_BOUND, top=terms.bounds.score)
            A = torch.cat([x, self.C])
            R = A.mT @ Q
        errors, pull, active = aims(R)
        after = torch.where(self.at_bound, A, after)
        D = torch.where(self.at_bound[:, None], errors - pull + R - model, D)
        first, second, _ = _pairs(len(after), self._device)
        weighted = after * self.weights
        return after, D, sigma * _product(weighted[first] * after[second], active.mT)

    def _swept(
        self,
        x: Tensor,
        gradient: Tensor,
        gram: Tensor,
        penalty: tuple[float, float] | None = None,
        *,
        sweeps: int,
        top: float | None,
    ) -> Tensor:
        """Sweeps over scores or loadings x (k, n), which may be changed, with one Gram matrix or one each.

        `gradient` is that without the penalty, of which the quadratic and the linear part are those of the
        scores if they are not given.
        """
        k, n = x.shape
        ridge, linear = penalty or (self._ridge, self._linear)
        gram = gram[..., None] if gram.ndim == 2 else gram
        if ridge:
            gram = gram + ridge * torch.eye(k, dtype=x.dtype, device=self._device)[..., None]
            gradient = gradient + ridge * x
        gram, gradient = gram.expand(k, k, n), gradient + linear
        if x.is_cuda and x.dtype == torch.float32:
            from icqf.engines.torch_kernels import swept  # where there is a GPU

            return swept(x, gradient, gram, top, sweeps=sweeps)
        return cd_sweeps_each(x, gradient, gram, top, sweeps=sweeps, xp=xp)

    def _move_multipliers(self, step: MoveMultipliers) -> None:
        self._repeat("multipliers", self._moved_multipliers, step.momentum, step.Q)

    def _moved_multipliers(self, momentum: Tensor, Q: Tensor) -> dict[str, Tensor | None]:
        R = torch.cat([self.W, self.C]).mT @ Q
        excess = R - self._bound
        plain = (self.values + self._terms.sigma * excess).clamp(min=0) * self.at_bound[:, None]
        move = plain - self.plain
        move = move * (momentum * ((excess * move > 0) & (plain > 0)))
        self.values.copy_((plain + move).clamp(min=0))
        self.plain.copy_(plain)
        self.at_bound.copy_(self.values.any(dim=1))
        return {}

    # --- exact scores and certificate ----------------------------------------------------------------

    def _solve(self, step: SolveScores | PlaceSolved) -> tuple[Tensor, Array, RowsHere | None]:
        """Scores (k, n) for loadings, and who is near the bound: these are solved on the processor."""
        k, terms = len(step.Q) - len(self.C), step.terms
        Q = self._like(step.Q)
        target = Q[:k] @ self._masked(self.X - self.C.mT @ Q[k:]).mT
        W = torch.zeros_like(target)
        gram = Q[:k] @ Q[:k].mT
        if self.O is not None:
            first, second, where = _pairs(k, self._device)
            gram = ((Q[first] * Q[second]) @ self.O.mT)[where]

        def sweep(x: Tensor, sweeps: int) -> Tensor:
            pull = gram @ x if gram.ndim == 2 else (gram * x).sum(dim=1)
            return self._swept(x.clone(), pull - target, gram, sweeps=sweeps, top=terms.bounds.score)

        close = max(step.tol / 10, 4 * torch.finfo(W.dtype).eps)
        for _ in range(_ROUNDS):
            before = sweep(W, _SWEEPS - 1)
            W = sweep(before, 1)
            if float((W - before).abs().amax()) <= close:
                break
        if terms.bounds.reconstruction is None:
            return W.double(), np.zeros(0, dtype=np.intp), None
        bound = self._exactly(terms.bounds.reconstruction) * (1 - _NEAR)
        R = torch.cat([W, self.C]).double().mT @ self._exactly(step.Q)
        near = np.flatnonzero((bound < R).any(dim=1).cpu().numpy())
        if not len(near):
            return W.double(), near, None
        here = RowsHere(self._observations.take(near))
        here.apply(step)
        return W.double(), near, here

    def _solve_scores(self, step: SolveScores) -> Peaks:
        self.exact, near, here = self._solve(step)
        if here is not None:
            self.exact[:, near] = self._exactly(here.exact_scores())
        return Peaks(self.exact.amax(dim=1).cpu().numpy())

    def _place_solved(self, step: PlaceSolved) -> None:
        W, near, here = self._solve(step)
        if here is None:
            self._begin_at(W)
            return
        found = here.factors(step.Q)
        W[:, near] = self._exactly(found.scores)
        self._begin_at(W)
        if found.multipliers is not None:
            self._hold(found.multipliers, near)

    def _examine(self, step: Examine) -> Examined:
        terms, w, Q, weights = step.terms, self.exact, self._exactly(step.Q), self.exact_weights
        bounds, penalty, k = terms.bounds, terms.penalty, len(w)
        X, O = self.X.double(), torch.ones_like(self.X).double() if self.O is None else self.O.double()
        A = torch.cat([w, self._design])
        R = A.mT @ Q
        D = O * (X - R)
        weighted, own = A * weights, Q[:k]
        h = (Q[:k] ** 2) @ O.mT + self._ridge
        p = (h - self._ridge) * w + own @ D.mT - self._linear
        flat = h <= _FLAT
        best = p.clamp(min=0) / torch.where(flat, 1.0, h)
        best = torch.where(flat, torch.where(p > 0, torch.inf, 0.0), best).clamp(min=0, max=bounds.score)
        excess = torch.full((), -torch.inf, dtype=torch.float64, device=self._device)
        if bounds.reconstruction is not None:
            bound = self._exactly(bounds.reconstruction)
            excess = ((R - bound).amax(dim=0) / self._exactly(step.span)).amax()
            for r in range(k):
                room = torch.where(own[r] > 0, (bound - R) / torch.where(own[r] > 0, own[r], 1.0), torch.inf)
                highest = torch.maximum(w[r] + room.amin(dim=1), w[r])
                best[r] = torch.where(best[r] > w[r], torch.minimum(best[r], highest), best[r])
        moved = (best - w).abs() / self._exactly(step.score_unit)[:, None]
        gains = (0.5 * h * (w**2 - best**2) - p * (w - best)) * weights
        norms = 0.5 * (w * w).sum(dim=0) if penalty.name == L2.name else w.sum(dim=0)
        found = {
            "misfit": 0.5 * (weights @ (D * D).sum(dim=1)),
            "penalty": penalty.beta * (weights @ norms),
            "pull": weighted @ D,
            "curvature": (weighted * A) @ O,
            "together": weighted @ X,
            "answered": weighted @ O,
            "sse": weights @ (D * D),
            "total": weights @ X,
            "total_square": weights @ (X * X),
            "count": weights @ O,
            "excess": excess,
            "score_step": moved.amax().clamp(min=0),
            "gain": gains.amax().clamp(min=0),
        }
        return _fetched(Examined, found)

    def _loading_room(self, step: LoadingRoom) -> Room:
        A = torch.cat([self.exact, self._design])
        items, place = np.unique(step.items, return_inverse=True)
        slack = self._exactly(step.bound[items])[:, None] - self._exactly(step.Q[:, items]).mT @ A
        share = A[step.factors] / slack.clamp(min=1e-300)[place]
        return Room((1 / share.amax(dim=1)).cpu().numpy())

    def _highest_confound_part(self, step: HighestConfoundPart) -> Peaks:
        parts = self._design.mT @ self._exactly(step.Q)
        return Peaks(parts.amax(dim=0).cpu().numpy())

    # --- starts --------------------------------------------------------------------------------------

    def _answered(self, step: Answered) -> Totals:
        O = torch.ones_like(self.X) if self.O is None else self.O
        weights = self.exact_weights
        return _fetched(Totals, {"answers": weights @ self.X.double(), "count": weights @ O.double()})

    def _filled(self, filling: Filling) -> Tensor:
        means = self._like(filling.means)
        if filling.centred:
            return self._masked(self.X - means)
        return self.X if self.O is None else self.X + (1 - self.O) * means

    def _products(self, step: Products) -> Array:
        V = self._filled(step.filling)
        found: Array = _product(V.mT, V.mT * self.weights).cpu().numpy()
        return found

    def _keep_left(self, step: KeepLeft) -> None:
        self.left.append(self._filled(step.filling) @ self._like(step.right))

    def _forget_left(self, step: ForgetLeft) -> None:
        self.left = []

    def _raw(self, source: RawScores) -> Tensor:
        """Raw scores (k, n) of a start, in double precision."""
        if isinstance(source, Given):
            return self.W.double()
        if isinstance(source, Projected):
            left = torch.cat(self.left, dim=1)[:, : len(source.mixing)].double()
            return (left @ self._exactly(source.mixing)).mT
        if isinstance(source, Drawn):
            return self._exactly(source.of(self._everybody, BlockState()))
        raise TypeError(f"No raw scores of {type(source).__name__} on a device.")

    def _measure(self, step: Measure) -> Sizes:
        raw = self._raw(step.source)
        halves = torch.stack([raw.clamp(min=0), (-raw).clamp(min=0)])
        weights = self.exact_weights
        return _fetched(Sizes, {"squares": halves**2 @ weights, "sums": halves @ weights})

    def _place(self, step: Place) -> GramSums:
        W = self._raw(step.source).clamp(min=0) * self._exactly(step.scale)[:, None]
        self._begin_at(W.clamp(min=0, max=step.top))
        A = torch.cat([self.W, self.C])
        weighted = A * self.weights
        found = {"S": _product(weighted, A), "P": _product(weighted, self._filled(step.filling).mT)}
        return _fetched(GramSums, found)

    # --- small parts ---------------------------------------------------------------------------------

    def _begin_at(self, W: Tensor) -> None:
        """Place the participants at these scores (k, n), nobody at the upper bound."""
        if self.W.shape != W.shape:
            self.W, self.previous = (self.X.new_empty(W.shape) for _ in range(2))
            self._recorded.clear()
        self.W.copy_(W)
        self.previous.copy_(self.W)
        for each in (self.at_bound, self.values, self.plain):
            each.zero_()

    def _hold(self, known: Multipliers, among: Any) -> None:
        """Mark who is at the upper bound, with the multipliers; `among` whom they are numbered."""
        if not len(known.rows):
            return
        rows = torch.arange(len(self.X), device=self._device)[among][known.rows]
        self.values[rows], self.plain[rows] = self._like(known.values), self._like(known.plain)
        self.at_bound[rows] = True

    def _masked(self, V: Tensor) -> Tensor:
        return V if self.O is None else V * self.O

    def _on(self, values: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self._device)

    def _like(self, values: Any) -> Tensor:
        """On the device, in the precision of the answers."""
        return self._on(values).to(self.X.dtype)

    def _exactly(self, values: Any) -> Tensor:
        """On the device, in double precision."""
        return self._on(np.asarray(values, dtype=np.float64))


@cache
def _pairs(k: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Rows and columns of a packed symmetric matrix (k, k), and where each entry is packed."""
    first, second = torch.triu_indices(k, k, device=device)
    where = torch.zeros((k, k), dtype=torch.int64, device=device)
    where[first, second] = where[second, first] = torch.arange(len(first), device=device)
    return first, second, where


def _product(a: Tensor, b: Tensor) -> Tensor:
    """a bᵀ over participants, a (r, n) and b (s, n), in double precision."""
    return a.double() @ b.double().mT


def _fetched(kind: Callable[..., T], found: Mapping[str, Tensor | None]) -> T:
    """A result with these fields, copied from the device all at once."""
    return kind(**_split(found, _together(found).cpu().numpy()))


def _together(found: Mapping[str, Tensor | None]) -> Tensor:
    """All numbers of some tensors, one after the other."""
    there = [each.double().reshape(-1) for each in found.values() if each is not None]
    return torch.cat(there) if there else torch.empty(0)


def _split(found: Mapping[str, Tensor | None], numbers: Array) -> dict[str, Any]:
    """These numbers in the shapes of the tensors; single ones as numbers."""
    values: dict[str, Any] = dict.fromkeys(found)
    at = 0
    for name, each in found.items():
        if each is not None:
            part, at = numbers[at : at + each.numel()].reshape(each.shape), at + each.numel()
            values[name] = part if each.ndim else float(part)
    return values


class Recorded:
    """Work on a device, which a GPU records at the second time and repeats from then on.

    The work is handed in at each call, always the same, so that this does not keep its owner alive. It takes
    the given numbers on the device and returns tensors. Whatever else it reads or changes must stay in its
    place, and it must not wait for the device.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._given: Tensor | None = None
        self._found: Mapping[str, Tensor | None] = {}
        self._numbers = torch.empty(0)
        self._graph: Any = None

    def __call__(self, work: Work, numbers: Array) -> dict[str, Any]:
        """Do it with these numbers; what was found, copied from the device."""
        given = torch.from_numpy(np.asarray(numbers, dtype=np.float64))
        if self._given is None or self._device.type != "cuda":
            self._given = given.to(self._device)
            self._do(work, self._given)
        else:
            self._given.copy_(given)
            if self._graph is None:
                self._record(work, self._given)
            self._graph.replay()
        return _split(self._found, self._numbers.cpu().numpy()) if len(self._numbers) else {}

    def _do(self, work: Work, given: Tensor) -> None:
        self._found = work(given)
        self._numbers = _together(self._found)

    def _record(self, work: Work, given: Tensor) -> None:
        self._graph, beside = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside), _nothing_collected():
            self._graph.capture_begin(capture_error_mode="thread_local")
            self._do(work, given)
            self._graph.capture_end()
        torch.cuda.current_stream().wait_stream(beside)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Without garbage collection: to free an earlier recording would break off the one being made."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


_PASSES: dict[type, Callable[[DeviceRows, Any], Any]] = {
    InTurn: DeviceRows._in_turn,
    Rescale: DeviceRows._rescale,
    Step: DeviceRows._step,
    MoveMultipliers: DeviceRows._move_multipliers,
    SolveScores: DeviceRows._solve_scores,
    PlaceSolved: DeviceRows._place_solved,
    Examine: DeviceRows._examine,
    LoadingRoom: DeviceRows._loading_room,
    HighestConfoundPart: DeviceRows._highest_confound_part,
    Answered: DeviceRows._answered,
    Products: DeviceRows._products,
    KeepLeft: DeviceRows._keep_left,
    ForgetLeft: DeviceRows._forget_left,
    Measure: DeviceRows._measure,
    Place: DeviceRows._place,
}
