"""Scores of the people whose reconstructed answers reach their range: small quadratic programs, in batch.

A primal-dual interior-point method (Mehrotra's predictor and corrector) that runs on all rows at
once. Rows share the constraint matrix, so that forming the Newton systems is one matrix product.
"""

from __future__ import annotations

import numpy as np

from icqf.solvers.problem import Array

_MAX_ITER = 60
_TOL = 1e-12
_EXHAUSTED = 1e-15  # the arithmetic has no more to give
_STEP_SHARE = 0.995
_SNAP = 1e-6  # scores this close to 0 or to their top are there: interior points never quite arrive


def solve_rows(H: Array, p: Array, loadings: Array, room: Array, top: float | None) -> Array:
    """min ½wᵀHw − pᵀw  over  0 ≤ w ≤ top,  loadingsᵀ w ≤ room.

    Parameters
    ----------
    H : array (s, k, k)
    p : array (s, k)
    loadings : array (k, m)
    room : array (s, m), not negative

    Returns
    -------
    w : array (s, k)
    """
    s, k = p.shape
    size = np.maximum(np.einsum("irr->i", H) / k, 1e-12)
    H, p = H / size[:, None, None], p / size[:, None]
    width = np.maximum(room.max(), 1e-12)
    sides = [loadings.T / width, -np.eye(k)]
    limits = [np.maximum(room / width, 1e-9), np.zeros((s, k))]
    if top is not None:
        sides.append(np.eye(k))
        limits.append(np.full((s, k), float(top)))
    G, h = np.concatenate(sides), np.concatenate(limits, axis=1)
    products = np.ascontiguousarray(np.einsum("jr,js->jrs", G, G).reshape(len(G), k * k))

    w = np.full((s, k), 0.5 * (1.0 if top is None else top))
    t = np.maximum(h - w @ G.T, 0.1)
    z = np.full_like(t, 0.1)
    strength = 1.0 + np.abs(p).max(axis=1)
    left = np.arange(s)
    for _ in range(_MAX_ITER):
        w_, t_, z_, H_, p_, h_ = w[left], t[left], z[left], H[left], p[left], h[left]
        dual = np.einsum("irs,is->ir", H_, w_) - p_ + z_ @ G
        primal = w_ @ G.T + t_ - h_
        mu = (t_ * z_).mean(axis=1)
        off = np.maximum(np.abs(dual).max(axis=1) / strength[left], np.abs(primal).max(axis=1))
        done = ((mu < _TOL) & (off < 1e-9)) | (mu < _EXHAUSTED)
        if done.all():
            break
        keep = ~done
        if not keep.all():
            left = left[keep]
            w_, t_, z_, H_, dual, primal, mu = (a[keep] for a in (w_, t_, z_, H_, dual, primal, mu))
        ratio = z_ / t_
        newton = H_ + (ratio @ products).reshape(-1, k, k) + 1e-13 * np.eye(k)
        inverse = np.linalg.inv(newton)

        def direction(
            complement: Array,
            inverse: Array = inverse,
            dual: Array = dual,
            primal: Array = primal,
            t_: Array = t_,
            ratio: Array = ratio,
        ) -> tuple[Array, Array, Array]:
            force = complement / t_ + ratio * primal
            dw = np.einsum("irs,is->ir", inverse, -dual - force @ G)
            dt = -primal - dw @ G.T
            return dw, dt, complement / t_ - ratio * dt

        dw, dt, dz = direction(-t_ * z_)
        reach = _reach(t_, dt, z_, dz)
        ahead = ((t_ + reach * dt) * (z_ + reach * dz)).mean(axis=1)
        centre = (ahead / mu) ** 3 * mu
        dw, dt, dz = direction(centre[:, None] - t_ * z_ - dt * dz)
        reach = _STEP_SHARE * _reach(t_, dt, z_, dz)
        w[left], t[left], z[left] = w_ + reach * dw, np.maximum(t_ + reach * dt, 1e-15), z_ + reach * dz
    w = np.where(w < _SNAP, 0.0, w)
    if top is not None:
        w = np.where(w > top - _SNAP, top, w)
    return w


def _reach(t: Array, dt: Array, z: Array, dz: Array) -> Array:
    """The longest step (at most 1) that keeps t and z positive, a row each."""
    fastest_fall = np.minimum((dt / t).min(axis=1), (dz / z).min(axis=1))
    return (1 / np.maximum(-fastest_fall, 1.0))[:, None]
