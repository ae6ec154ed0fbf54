"""Loadings that change little from one age bin to the next: the penalty, and the best course of a loading.

A course is a chain x (T,) of bounded numbers that are drawn together: it minimises
½ Σ h_t x_t² − Σ p_t x_t + ½ κ Σ (x_t − x_t+1)² over 0 ≤ x ≤ top. One number at a time would crawl: where κ is
large, each is held by its neighbours, although all of them could move together. So a chain is solved as a
whole. Which of its numbers lie at a bound is guessed (those that do now), the others follow from a
tridiagonal system, and the guess is mended until it is right (a primal–dual active set; the matrix is an
M-matrix, for which a few rounds do). All chains are one system.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs

from icqf.core.penalties import L1
from icqf.core.problem import Problem

Array = NDArray[Any]
_ROUNDS = 20
_NEWTON_STEPS = 60
_FLAT = 1e-10  # the least curvature of a single number (of κ), so that no chain can slide as a whole
_solve_tridiagonal = get_lapack_funcs("ptsv", dtype=np.float64)


def smoothed(problem: Problem, smoothness: float) -> Problem:
    """The same problem with loadings that cost more the more they change from one bin to the next.

    The intercept, which is the last column of the design, may change freely.
    """
    beta, bins = problem.penalty_of_loadings.beta, problem.observations.repeats
    free = 0 if problem.intercept is None else problem.c - problem.intercept
    return replace(problem, loading_penalty=Smooth(beta, smoothness, bins, free))


@dataclass(frozen=True)
class Smooth(L1):
    """β ‖x‖₁ + ½ β₂ Σ (x_jt − x_j,t+1)²: an item's loadings in neighbouring age bins are drawn together.

    The columns are (bin, item), all items of the first bin first. Sweeps move the whole course of an item's
    loading over the bins at once (`best_courses`); without `smoothness` they are those of `L1`, to the bit.
    The last `free` rows are not drawn together: the intercept, as what all participants answer at an age says
    nothing about factors.
    """

    smoothness: float = 0.0  # β₂
    bins: int = 1
    free: int = 0

    name = "smooth"
    description = "an ℓ1 penalty and a penalty on change between neighbouring bins"

    @property
    def favours_intercept(self) -> bool:  # type: ignore[override]
        return self.smoothness == 0

    def value(self, x: Array, weights: Array | None = None, *, scale: float = 1.0) -> float:
        drawn = x[: len(x) - self.free]
        bends = float((np.diff(self._courses(drawn), axis=-1) ** 2).sum(dtype=np.float64))
        return super().value(x, weights, scale=scale) + 0.5 * self.smoothness * scale * bends

    def sweep(self, x: Any, G: Any, P: Any, top: Any, *, scale: float, sweeps: int, xp: Any = None) -> Any:
        if self.smoothness == 0:
            return super().sweep(x, G, P, top, scale=scale, sweeps=sweeps, xp=xp)
        for _ in range(sweeps):
            for r, row in enumerate(x):
                kappa = self._kappa(r, len(x), scale)
                self._move(row, G[r, r], P[r] - G[r] @ x + G[r, r] * row, top, kappa, scale)
        return x

    def sweep_each(
        self, x: Any, gradient: Any, G: Any, top: Any, *, scale: float, sweeps: int, xp: Any = None
    ) -> Any:
        if self.smoothness == 0:
            return super().sweep_each(x, gradient, G, top, scale=scale, sweeps=sweeps, xp=xp)
        for _ in range(sweeps):
            for r, row in enumerate(x):
                before, kappa = row.copy(), self._kappa(r, len(x), scale)
                self._move(row, G[r, r], G[r, r] * row - gradient[r], top, kappa, scale)
                gradient = gradient + G[r] * (row - before)
        return x

    def context(self, x: Array) -> Array:
        """How many neighbours each entry has, and their sum (..., 2)."""
        courses = self._courses(x)
        count, total = np.zeros_like(courses), np.zeros_like(courses)
        for here, there in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
            count[..., here] += 1
            total[..., here] += courses[..., there]
        held = len(x) - self.free
        count[held:], total[held:] = 0, 0
        return np.stack([self._columns(count), self._columns(total)], axis=-1)

    def coordinate(self, h: Array, p: Array, context: Array, *, scale: float) -> Array:
        kappa = self.smoothness * scale
        h, p = h + kappa * context[..., 0], p + kappa * context[..., 1]
        return super().coordinate(h, p, context, scale=scale)

    def along(self, w: Array, context: Array, *, scale: float) -> Array:
        bends = 0.5 * context[..., 0] * w**2 - context[..., 1] * w
        return super().along(w, context, scale=scale) + self.smoothness * scale * bends

    def balance(self, mass: Array, Q: Array, *, gamma: float) -> Array | None:
        """The root s of mass s³ − γ‖Q_r‖₁ s − γ (β₂/β) Σ(Q_rt − Q_r,t+1)² = 0, by Newton's method."""
        even = super().balance(mass, Q, gamma=gamma)
        bends = (np.diff(self._courses(Q), axis=-1) ** 2).sum(axis=(1, 2))
        if self.smoothness == 0 or even is None:
            return even
        if self.beta == 0:  # nothing holds the scores but their bound
            return np.where(bends > 0, np.inf, even)
        q, d = gamma * Q.sum(axis=1) / mass, gamma * self.smoothness / self.beta * bends / mass
        s = even + np.cbrt(d)
        for _ in range(_NEWTON_STEPS):
            s = s - (s**3 - q * s - d) / np.maximum(3 * s**2 - q, 1e-300)
        return s

    def _kappa(self, r: int, n_rows: int, scale: float) -> float:
        return self.smoothness * scale if r < n_rows - self.free else 0.0

    def _move(self, row: Array, h: Any, p: Array, top: Any, kappa: float, scale: float) -> None:
        """Take one row of loadings (m,) to its best courses, in place."""
        p = self._courses(p) - self.beta * scale
        h = h if np.ndim(h) == 0 else self._courses(h)
        ceiling = None if top is None else self._courses(np.broadcast_to(top, row.shape))
        row[...] = self._columns(best_courses(self._courses(row), h, p, kappa, ceiling))

    def _courses(self, x: Array) -> Array:
        """(..., bins × items) as (..., items, bins)."""
        return np.swapaxes(x.reshape(*x.shape[:-1], self.bins, -1), -1, -2)

    def _columns(self, courses: Array) -> Array:
        return np.swapaxes(courses, -1, -2).reshape(*courses.shape[:-2], -1)


def best_courses(x: Array, h: Array, p: Array, kappa: float, top: Any) -> Array:
    """The best chains (..., T), from the given ones on; h, p and top are numbers or arrays like x.

    A chain whose bounds are not sorted out in a few rounds is left as it is where that is better.
    """
    x = np.asarray(x, dtype=np.float64)
    h = np.broadcast_to(np.maximum(h, _FLAT * max(kappa, 1.0)), x.shape)
    top = np.broadcast_to(np.inf if top is None else top, x.shape)
    low, high = x <= 0, x >= top
    free = h + kappa * _neighbours(x.shape[-1])
    for _ in range(_ROUNDS):
        fixed = low | high
        bound = np.where(high, top, 0.0) * fixed
        d = np.where(fixed, 1.0, free)
        right = np.where(fixed, bound, p + kappa * _sum_of_neighbours(bound))
        off = np.zeros(x.shape)
        off[..., :-1] = np.where(fixed[..., :-1] | fixed[..., 1:], 0.0, -kappa)
        *_, y, _ = _solve_tridiagonal(d.ravel(), off.ravel()[:-1], right.reshape(-1, 1))
        y = y.reshape(x.shape)
        gradient = free * y - p - kappa * _sum_of_neighbours(y)
        lower = np.where(fixed, low & (gradient > 0), y < 0)
        higher = np.where(fixed, high & (gradient < 0), y > top)
        settled = np.array_equal(lower, low) and np.array_equal(higher, high)
        if settled:
            return y
        low, high = lower, higher
    y = np.clip(y, 0.0, top)
    worse = _value(y, h, p, kappa) > _value(x, h, p, kappa)
    return np.where(worse[..., None], x, y)


def _value(x: Array, h: Array, p: Array, kappa: float) -> Array:
    bends = 0.5 * kappa * (np.diff(x, axis=-1) ** 2).sum(axis=-1)
    return np.asarray((0.5 * h * x**2 - p * x).sum(axis=-1) + bends)


def _neighbours(length: int) -> Array:
    """How many neighbours each place of a chain has."""
    return np.where(np.isin(np.arange(length), (0, length - 1)), 1.0, 2.0) if length > 1 else np.zeros(1)


def _sum_of_neighbours(x: Array) -> Array:
    total = np.zeros_like(x)
    total[..., 1:] += x[..., :-1]
    total[..., :-1] += x[..., 1:]
    return total
