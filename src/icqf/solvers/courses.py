"""The best course of a loading over neighbouring bins: chains of bounded numbers that are drawn together.

Each chain x (T,) minimises ½ Σ h_t x_t² − Σ p_t x_t + ½ κ Σ (x_t − x_t+1)² over 0 ≤ x ≤ top. One number at a
time would crawl: where κ is large, each is held by its neighbours, although all of them could move together.
So a chain is solved as a whole. Which of its numbers lie at a bound is guessed (those that do now), the
others follow from a tridiagonal system, and the guess is mended until it is right (a primal–dual active set;
the matrix is an M-matrix, for which a few rounds do). All chains are one system.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs

Array = NDArray[Any]
_ROUNDS = 20
_FLAT = 1e-10  # the least curvature of a single number (of κ), so that no chain can slide as a whole
_solve_tridiagonal = get_lapack_funcs("ptsv", dtype=np.float64)


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
