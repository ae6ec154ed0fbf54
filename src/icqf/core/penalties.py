"""Penalties: one class each, with all that solvers, certificate and starts need.

A penalty acts on the columns of a matrix x (r, n): a participant's scores (r = k, n participants), or an
item's loadings (r = k + c, m items). The objective holds β Σ_i ω_i ‖W_i‖ for the scores and βγ Σ_j ‖Q_j‖ for
the loadings; `scale` is what multiplies β there (1, γ, or 1/ρ inside ADMM). Sweeps follow the array API.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from icqf.core.sweeps import TINY, cd_sweeps, cd_sweeps_each

Array = NDArray[Any]
_NEWTON_STEPS = 60
_FLAT = 1e-12  # less curvature than this is none


@dataclass(frozen=True)
class Penalty(ABC):
    """β times a norm of the columns of a matrix.

    A further penalty is one more class: its value, its sweeps, its quadratic form and its coordinate minimum.
    """

    beta: float = 0.0

    name: ClassVar[str]
    description: ClassVar[str]  # in a Methods text: "an ℓ1 penalty"
    rounds: ClassVar[int] = 1  # how often `quadratic` must be repeated until a solution is exact
    favours_intercept: ClassVar[bool] = False  # whether one loading is cheaper than the same shared by two

    def value(self, x: Array, weights: Array | None = None, *, scale: float = 1.0) -> float:
        """The penalty of all columns, each counted with its weight."""
        return self.beta * scale * self.norm(x, weights)

    @abstractmethod
    def norm(self, x: Array, weights: Array | None) -> float:
        """The (weighted) sum of the columns' norms."""

    @abstractmethod
    def quadratic(self, x: Array, *, scale: float) -> tuple[Any, float]:
        """What it adds to a Gram matrix's diagonal, and what it takes from the pull, at the point x."""

    def sweep(self, x: Any, G: Any, P: Any, top: Any, *, scale: float, sweeps: int, xp: Any = None) -> Any:
        """Coordinate sweeps on ½ xᵀGx − pᵀx + penalty with one Gram matrix for all columns, in place."""
        xp = xp or array_namespace(x, G, P)
        ridge, linear = self.quadratic(x, scale=scale)
        if ridge:
            G = G + ridge * xp.eye(G.shape[-1], dtype=G.dtype)
        return cd_sweeps(x, G, P - linear if linear else P, top, sweeps=sweeps, xp=xp)

    def sweep_each(
        self, x: Any, gradient: Any, G: Any, top: Any, *, scale: float, sweeps: int, xp: Any = None
    ) -> Any:
        """The same with one Gram matrix per column, in place; `gradient` is that of the unpenalized part."""
        xp = xp or array_namespace(x, gradient, G)
        ridge, linear = self.quadratic(x, scale=scale)
        if ridge:
            gradient = gradient + ridge * x
            G = G + ridge * xp.eye(x.shape[-2], dtype=x.dtype)[..., None]
        return cd_sweeps_each(x, gradient + linear, G, top, sweeps=sweeps, xp=xp)

    def context(self, x: Array) -> Array:
        """What the best value of each coordinate depends on in addition to its curvature and pull."""
        return np.zeros_like(x)

    @abstractmethod
    def coordinate(self, h: Array, p: Array, context: Array, *, scale: float) -> Array:
        """The w ≥ 0 that minimises ½hw² − pw + penalty; infinite if it is unbounded."""

    @abstractmethod
    def along(self, w: Array, context: Array, *, scale: float) -> Array:
        """The penalty as a function of one coordinate, up to a constant."""

    def mass(self, W: Array, weighted: Array) -> Array:
        """What each factor's scores (k, n) weigh in `balance`; `weighted` are scores times weights."""
        return np.asarray(weighted.sum(axis=1))

    def balance(self, mass: Array, Q: Array, *, gamma: float) -> Array | None:
        """The scale s (k,) at which W·s and Q/s have the least penalty; None if unknown.

        `mass` is that of the scores, positive; Q (k, m) are the loadings.
        """
        return None


class L1(Penalty):
    """β ‖x‖₁: the sum of the entries, which are not negative."""

    name = "l1"
    description = "an ℓ1 penalty"
    favours_intercept = True

    def norm(self, x: Array, weights: Array | None) -> float:
        if weights is not None:
            return float(np.dot(x.sum(axis=0).astype(np.float64), weights))
        return float(x.sum(axis=1).sum(dtype=np.float64))

    def quadratic(self, x: Array, *, scale: float) -> tuple[Any, float]:
        return 0.0, self.beta * scale

    def coordinate(self, h: Array, p: Array, context: Array, *, scale: float) -> Array:
        return _half_line(h, p, self.beta * scale)

    def along(self, w: Array, context: Array, *, scale: float) -> Array:
        return self.beta * scale * w

    def balance(self, mass: Array, Q: Array, *, gamma: float) -> Array | None:
        return np.sqrt(gamma * Q.sum(axis=1) / mass)


class L2(Penalty):
    """β ½‖x‖², the ridge."""

    name = "l2"
    description = "a ridge penalty"

    def norm(self, x: Array, weights: Array | None) -> float:
        squares = 0.5 * np.einsum("ij,ij->j", x, x)
        return _total(squares, weights)

    def quadratic(self, x: Array, *, scale: float) -> tuple[Any, float]:
        return self.beta * scale, 0.0

    def coordinate(self, h: Array, p: Array, context: Array, *, scale: float) -> Array:
        return _half_line(h + self.beta * scale, p, 0.0)

    def along(self, w: Array, context: Array, *, scale: float) -> Array:
        return 0.5 * self.beta * scale * w**2

    def mass(self, W: Array, weighted: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", W, weighted, dtype=np.float64))

    def balance(self, mass: Array, Q: Array, *, gamma: float) -> Array | None:
        return (gamma * (Q**2).sum(axis=1) / mass) ** 0.25


class L21(Penalty):
    """β Σ ‖x_j‖₂: the Euclidean norm of each column, which empties whole columns."""

    name = "l21"
    description = "a group (ℓ2,1) penalty"
    rounds = 20  # as a reweighted ridge

    def norm(self, x: Array, weights: Array | None) -> float:
        return _total(np.sqrt(np.einsum("ij,ij->j", x, x)), weights)

    def quadratic(self, x: Array, *, scale: float) -> tuple[Any, float]:
        return self.beta * scale / np.maximum(np.linalg.norm(x, axis=0), 1e-9), 0.0

    def sweep(self, x: Any, G: Any, P: Any, top: Any, *, scale: float, sweeps: int, xp: Any = None) -> Any:
        xp = xp or array_namespace(x, G, P)
        each = xp.broadcast_to(G[..., None], (*G.shape, x.shape[-1]))
        return self.sweep_each(x, G @ x - P, each, top, scale=scale, sweeps=sweeps, xp=xp)

    def sweep_each(
        self, x: Any, gradient: Any, G: Any, top: Any, *, scale: float, sweeps: int, xp: Any = None
    ) -> Any:
        xp = xp or array_namespace(x, gradient, G)
        lam = self.beta * scale
        if lam == 0.0:
            return cd_sweeps_each(x, gradient + lam, G, top, sweeps=sweeps, xp=xp)
        eye = xp.eye(x.shape[-2], dtype=x.dtype)[..., None]
        for _ in range(sweeps):
            start = _off_the_group_kink(x, gradient, G, lam)
            gradient = gradient + xp.sum(G * (start - x)[..., None, :, :], axis=-2)
            norm = xp.sqrt(xp.sum(start * start, axis=-2))
            ridge = lam / xp.where(norm > 0, norm, xp.asarray(TINY, dtype=x.dtype))
            x[...] = start
            smooth = gradient + ridge[..., None, :] * x
            cd_sweeps_each(x, smooth, G + ridge[..., None, None, :] * eye, top, sweeps=1, xp=xp)
            gradient = smooth - ridge[..., None, :] * x
            x[...] = xp.where((norm > 0)[..., None, :], x, xp.zeros((), dtype=x.dtype))
        return x

    def context(self, x: Array) -> Array:
        """The sum of squares of the other entries of the column."""
        return np.asarray((x**2).sum(axis=0) - x**2)

    def coordinate(self, h: Array, p: Array, context: Array, *, scale: float) -> Array:
        lam, others = self.beta * scale, context
        flat = h <= _FLAT
        best = np.where(flat, 0.0, np.maximum(p - lam, 0) / np.where(flat, 1.0, h))
        for _ in range(_NEWTON_STEPS):
            length = np.sqrt(best**2 + others)
            unit = np.divide(best, length, out=np.zeros_like(best), where=length > 0)
            bend = np.divide(others, length**3, out=np.zeros_like(best), where=length > 0)
            step = (h * best + lam * unit - p) / np.maximum(h + lam * bend, 1e-300)
            best = np.where(others > 0, np.maximum(best - step, 0), best)
        return np.where(flat & (p >= lam), np.where(p > lam, np.inf, 0.0), best)

    def along(self, w: Array, context: Array, *, scale: float) -> Array:
        return self.beta * scale * np.sqrt(w**2 + context)


def _total(columns: Array, weights: Array | None) -> float:
    if weights is not None:
        return float(np.dot(columns.astype(np.float64), weights))
    return float(columns.sum(dtype=np.float64))


def _half_line(h: Array, p: Array, linear: float) -> Array:
    """The w ≥ 0 that minimises ½hw² − (p − linear)w."""
    flat = h <= _FLAT
    bent = np.maximum(p - linear, 0) / np.where(flat, 1.0, h)
    return np.where(flat, np.where(p > linear, np.inf, 0.0), bent)


def _off_the_group_kink(x: Any, gradient: Any, G: Any, lam: float) -> Any:
    """Set the columns whose best value is 0 to 0, and move those that wrongly sit at 0 away from it.

    The group norm λ‖x‖₂ has a kink at 0, where single coordinates can be stuck. A column belongs
    there exactly when the positive part of p is no longer than λ; otherwise the best point along
    that direction is a way out.
    """
    xp = array_namespace(x, gradient, G)
    pull = xp.maximum(xp.sum(G * x[..., None, :, :], axis=-2) - gradient, xp.zeros((), dtype=x.dtype))
    length = xp.sqrt(xp.sum(pull * pull, axis=-2))
    direction = pull / xp.where(length > 0, length, xp.ones_like(length))[..., None, :]
    bend = xp.sum(G * direction[..., None, :, :], axis=-2)
    curvature = xp.maximum(xp.sum(direction * bend, axis=-2), xp.asarray(TINY, dtype=x.dtype))
    way_out = direction * ((length - lam) / curvature)[..., None, :]
    at_zero = xp.sum(x, axis=-2) == 0
    x = xp.where(at_zero[..., None, :], way_out, x)
    return xp.where((length > lam)[..., None, :], x, xp.zeros((), dtype=x.dtype))
