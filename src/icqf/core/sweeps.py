"""Inner solvers in Gram form: min ½ xᵀGx − pᵀx + λ ‖x‖₁ over 0 ≤ x ≤ hi, one problem per column.

All of them see only G = QᵀQ and P = VQ, never the data. Arrays follow the array API; leading
batch dimensions are allowed: x and P are (..., k, n), G is (..., k, k).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace

TINY = 1e-12
_NARROW = 1e-2  # directions flatter than this share of the steepest do not set the pace of the inner ADMM


def _limits(x: Any, hi: Any, xp: Any) -> tuple[Any, Any]:
    """0 and the upper bound as arrays; `hi` is a number, an array over columns or None (unbounded)."""
    top = xp.asarray(math.inf if hi is None else hi, dtype=x.dtype, device=x.device)
    return xp.zeros((), dtype=x.dtype, device=x.device), top


def _diagonal(G: Any, xp: Any) -> Any:
    return xp.sum(G * _eye(G, xp), axis=-1)


def _eye(G: Any, xp: Any) -> Any:
    return xp.eye(G.shape[-1], dtype=G.dtype, device=G.device)


def cd_sweeps(x: Any, G: Any, P: Any, hi: Any, *, sweeps: int, xp: Any = None) -> Any:
    """Cyclic coordinate descent, in place: each row of x in turn takes its best value.

    The penalty is already in P (ℓ1) or on the diagonal of G (ℓ2).
    """
    if isinstance(x, np.ndarray) and x.ndim == 2:
        return _cd_sweeps_here(x, G, P, hi, sweeps)
    xp = xp or array_namespace(x, G, P)
    zero, top = _limits(x, hi, xp)
    eye = _eye(G, xp)
    diagonal = _diagonal(G, xp)[..., None]
    diagonal = xp.where(diagonal > TINY, diagonal, xp.ones_like(diagonal))
    G, P = G * (1 - eye) / diagonal, P / diagonal  # x_r ← P_r − G_r x
    k = x.shape[-2]
    rows = [(G[..., r : r + 1, :], P[..., r, :]) for r in range(k)]
    for _ in range(sweeps):
        for r, (G_r, P_r) in enumerate(rows):
            x[..., r, :] = xp.minimum(xp.maximum(P_r - (G_r @ x)[..., 0, :], zero), top)
    return x


def _cd_sweeps_here(x: Any, G: Any, P: Any, hi: Any, sweeps: int) -> Any:
    """The same for one problem in NumPy: rows are short, and new arrays would take longer than arithmetic."""
    diagonal = G.diagonal()[:, None]
    diagonal = np.where(diagonal > TINY, diagonal, 1).astype(x.dtype, copy=False)
    G, P = (G / diagonal).astype(x.dtype, copy=False), np.divide(P, diagonal, order="C")
    G.flat[:: len(G) + 1] = 0
    best, zero = np.empty(x.shape[1], dtype=x.dtype), np.zeros((), dtype=x.dtype)
    top = np.asarray(math.inf if hi is None else hi, dtype=x.dtype)
    rows = list(zip(G, P, x, strict=True))
    for _ in range(sweeps):
        for G_r, P_r, x_r in rows:
            G_r.dot(x, out=best)
            np.subtract(P_r, best, out=best)
            np.maximum(best, zero, out=best)
            np.minimum(best, top, out=x_r)
    return x


def cd_sweeps_each(x: Any, gradient: Any, G: Any, hi: Any, *, sweeps: int, xp: Any = None) -> Any:
    """The same where every column has its own Gram matrix: G is (..., k, k, n).

    `gradient` is G x − p at the given x. Both x and gradient are changed in place.
    """
    if isinstance(x, np.ndarray) and x.ndim == 2:
        return _cd_sweeps_each_here(x, gradient, G, hi, sweeps)
    xp = xp or array_namespace(x, gradient, G)
    zero, top = _limits(x, hi, xp)
    k = x.shape[-2]
    floor = xp.asarray(TINY, dtype=x.dtype, device=x.device)
    rows = [(1 / xp.maximum(G[..., r, r, :], floor), G[..., r, :, :]) for r in range(k)]
    for _ in range(sweeps):
        for r, (step, G_r) in enumerate(rows):
            old = x[..., r, :]
            new = xp.minimum(xp.maximum(old - gradient[..., r, :] * step, zero), top)
            gradient += G_r * (new - old)[..., None, :]
            x[..., r, :] = new
    return x


def _cd_sweeps_each_here(x: Any, gradient: Any, G: Any, hi: Any, sweeps: int) -> Any:
    """The same for one problem in NumPy, without new arrays."""
    steps = 1 / np.maximum(np.einsum("rrn->rn", G), np.asarray(TINY, dtype=x.dtype))
    best, change = np.empty(x.shape[1], dtype=x.dtype), np.empty(x.shape, dtype=x.dtype)
    zero, top = np.zeros((), dtype=x.dtype), np.asarray(math.inf if hi is None else hi, dtype=x.dtype)
    rows = list(zip(x, gradient, steps, G, strict=True))
    for _ in range(sweeps):
        for x_r, gradient_r, step, G_r in rows:
            np.multiply(gradient_r, step, out=best)
            np.subtract(x_r, best, out=best)
            np.maximum(best, zero, out=best)
            np.minimum(best, top, out=best)
            np.subtract(best, x_r, out=x_r)
            np.multiply(G_r, x_r, out=change)
            np.add(gradient, change, out=gradient)
            x_r[:] = best
    return x


def cd(x: Any, G: Any, P: Any, hi: Any, *, l1: float = 0.0, tol: float, max_iter: int) -> Any:
    """Coordinate descent until no entry moves by more than `tol` in a sweep."""
    xp = array_namespace(x, G, P)
    P = P - l1
    x = xp.asarray(x, copy=True)
    for _ in range(max_iter):
        before = xp.asarray(x, copy=True)
        cd_sweeps(x, G, P, hi, sweeps=1)
        if float(xp.max(xp.abs(x - before))) <= tol:
            break
    return x


def _largest_eigenvalue(G: Any, xp: Any) -> Any:
    return xp.max(xp.linalg.eigvalsh(G), axis=-1)[..., None, None]


def fista(x: Any, G: Any, P: Any, hi: Any, *, l1: float = 0.0, tol: float, max_iter: int) -> Any:
    """Projected FISTA with the momentum restarted when it points uphill."""
    xp = array_namespace(x, G, P)
    L = xp.maximum(_largest_eigenvalue(G, xp), xp.asarray(TINY, dtype=x.dtype))
    zero, top = _limits(x, hi, xp)
    y, t = x, 1.0
    for _ in range(max_iter):
        new = xp.minimum(xp.maximum(y - (G @ y - P + l1) / L, zero), top)
        moved = float(xp.max(xp.abs(new - y)))
        if float(xp.sum((y - new) * (new - x))) > 0:
            y, t = new, 1.0
        else:
            t_next = (1 + math.sqrt(1 + 4 * t * t)) / 2
            y, t = new + (t - 1) / t_next * (new - x), t_next
        x = new
        if moved <= tol:
            break
    return x


def _lasso_fista(x: Any, G: Any, P: Any, *, l1: float, tol: float, max_iter: int) -> Any:
    """FISTA for ½ xᵀGx − pᵀx + λ‖x‖₁ without bounds (soft threshold as its projection), with restarts."""
    xp = array_namespace(x, G, P)
    L = _largest_eigenvalue(G, xp)
    y, t = x, 1.0
    zero = xp.zeros((), dtype=x.dtype)
    for _ in range(max_iter):
        step = y - (G @ y - P) / L
        new = xp.sign(step) * xp.maximum(xp.abs(step) - l1 / L, zero)
        moved = float(xp.max(xp.abs(new - y)))
        if float(xp.sum((y - new) * (new - x))) > 0:
            y, t = new, 1.0
        else:
            t_next = (1 + math.sqrt(1 + 4 * t * t)) / 2
            y, t = new + (t - 1) / t_next * (new - x), t_next
        x = new
        if moved <= max(tol, _rounding(x, xp)):
            break
    return x


def _rounding(x: Any, xp: Any) -> float:
    """Moves below this are rounding: waiting for smaller ones would never end in single precision."""
    return 8 * float(xp.finfo(x.dtype).eps) * float(xp.max(xp.abs(x)))


def admm(x: Any, G: Any, P: Any, hi: Any, *, l1: float = 0.0, tol: float, max_iter: int) -> Any:
    """The paper's Appendix A: FISTA on x, projection on y, a multiplier μ between them."""
    xp = array_namespace(x, G, P)
    eye = xp.eye(G.shape[-1], dtype=G.dtype)
    widest = _largest_eigenvalue(G, xp)
    narrowest = xp.min(xp.linalg.eigvalsh(G), axis=-1)[..., None, None]
    tau = xp.sqrt(widest * xp.maximum(narrowest, _NARROW * widest)) + TINY
    zero, top = _limits(x, hi, xp)
    y = xp.minimum(xp.maximum(x, zero), top)
    mu = xp.zeros_like(x)
    for _ in range(max_iter):
        x = _lasso_fista(x, G + tau * eye, P + tau * y - mu, l1=l1, tol=tol / 10, max_iter=max_iter)
        y_new = xp.minimum(xp.maximum(x + mu / tau, zero), top)
        mu = mu + tau * (x - y_new)
        moved = max(float(xp.max(xp.abs(y_new - y))), float(xp.max(xp.abs(x - y_new))))
        y = y_new
        if moved <= max(tol, _rounding(y, xp)):
            break
    return y


INNER = {"cd": cd, "fista": fista, "admm": admm}
