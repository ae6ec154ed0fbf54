"""Rotations of a loading matrix: varimax, promax and oblimin."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

Floats = npt.NDArray[np.float64]


class Rotation(NamedTuple):
    """Rotated loadings.

    Attributes
    ----------
    loadings : ndarray of shape (n_items, n_factors)
        The pattern matrix, ``unrotated @ transformation``.
    factor_correlations : ndarray of shape (n_factors, n_factors)
        The identity for an orthogonal rotation.
    transformation : ndarray of shape (n_factors, n_factors)

    Examples
    --------
    >>> from icqf.baselines import varimax
    >>> rotated = varimax([[0.8, 0.1], [0.7, 0.0], [0.1, 0.6], [0.0, 0.9]])
    >>> rotated.loadings.shape, rotated.factor_correlations.tolist()
    ((4, 2), [[1.0, 0.0], [0.0, 1.0]])
    """

    loadings: Floats
    factor_correlations: Floats
    transformation: Floats


def _lengths(A: Floats) -> Floats:
    """Row lengths as a column; 1 for a row of zeros, which has no direction to keep."""
    length = np.sqrt(np.sum(A**2, axis=1, keepdims=True))
    return np.where(length > 0, length, 1.0)


def varimax(
    loadings: npt.ArrayLike, *, normalize: bool = True, tol: float = 1e-5, max_iter: int = 1000
) -> Rotation:
    """Varimax: the orthogonal rotation with the largest variance of squared loadings within factors.

    Each iteration replaces the rotation by the orthogonal matrix nearest to the gradient of the criterion.
    That can go round in circles (it does for two factors without any shared item), so where it leaves a pair
    of factors that wants to turn by more than ``10 * sqrt(tol)`` radians, Kaiser's pairwise turns finish.

    Parameters
    ----------
    loadings : array-like of shape (n_items, n_factors)
    normalize : bool, default=True
        Give every item the same weight (Kaiser normalisation).
    tol : float, default=1e-5
        Stop when the size of the gradient (the sum of its singular values) grows by less than this share.
        The default is the rule of R's ``varimax``, so that published loadings come out again; it can stop
        some thousandths short of the best loadings, which ``tol=1e-12`` reaches.
    max_iter : int, default=1000

    Returns
    -------
    Rotation

    Examples
    --------
    >>> import numpy as np
    >>> simple = np.array([[0.8, 0.0], [0.7, 0.0], [0.0, 0.6], [0.0, 0.9]])
    >>> c, s = np.cos(0.3), np.sin(0.3)
    >>> turned = simple @ np.array([[c, -s], [s, c]])
    >>> bool(np.allclose(varimax(turned, tol=1e-12).loadings, simple, atol=1e-5))
    True
    """
    A = np.asarray(loadings, dtype=np.float64)
    B = A / _lengths(A) if normalize else A
    T, size = np.eye(A.shape[1]), 0.0
    for _ in range(max_iter):
        L = B @ T
        left, singular, right = linalg.svd(B.T @ (L * (L**2 - np.mean(L**2, axis=0))))
        T, before, size = left @ right, size, float(singular.sum())
        if size <= before * (1 + tol):
            break
    else:
        _warn("Varimax", max_iter, f"its gradient still grew by {size / before - 1:.1e} (tol is {tol:.1e})")
    T = _turn_pairs(B, T, angle=10 * math.sqrt(tol), max_iter=max_iter)
    return Rotation(A @ T, np.eye(A.shape[1]), T)


def _turn_pairs(B: Floats, T: Floats, *, angle: float, max_iter: int) -> Floats:
    """Turn pairs of factors of ``B T`` by their best angles until all of these are below `angle`."""
    k = B.shape[1]
    T = T.copy()
    for _ in range(max_iter):
        largest = 0.0
        for p in range(k - 1):
            for q in range(p + 1, k):
                x, y = B @ T[:, p], B @ T[:, q]
                u, v = x**2 - y**2, 2 * x * y
                u, v = u - u.mean(), v - v.mean()
                best = 0.25 * math.atan2(2 * float(u @ v), float(u @ u - v @ v))
                if abs(best) > angle:
                    c, s = math.cos(best), math.sin(best)
                    T[:, [p, q]] = T[:, [p, q]] @ np.array([[c, -s], [s, c]])
                    largest = max(largest, abs(best))
        if not largest:
            return T
    _warn("Varimax", max_iter, f"a pair of factors still turned by {largest:.1e} radians")
    return T


def promax(
    loadings: npt.ArrayLike,
    *,
    power: float = 4,
    normalize: bool = True,
    tol: float = 1e-5,
    max_iter: int = 1000,
) -> Rotation:
    """Promax: varimax, then the oblique least-squares step towards a target with the small loadings shrunk.

    The target is the varimax solution ``V`` with each loading raised to `power`, sign kept. With
    ``U = argmin ‖V U − target‖`` and its columns scaled so that the factors have variance 1, the loadings are
    ``V U`` and the factor correlations ``(UᵀU)⁻¹``.

    Parameters
    ----------
    loadings : array-like of shape (n_items, n_factors)
    power : float, default=4
        Larger gives simpler loadings and more correlated factors.
    normalize : bool, default=True
        Give every item the same weight in both steps (Kaiser normalisation).
    tol, max_iter
        As for `varimax`.

    Returns
    -------
    Rotation

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.8, 0.3], [0.7, 0.2], [0.3, 0.6], [0.4, 0.8], [0.2, 0.7]])
    >>> rotation = promax(A)
    >>> rotation.factor_correlations.round(2).tolist()
    [[1.0, 0.63], [0.63, 1.0]]
    """
    A = np.asarray(loadings, dtype=np.float64)
    length = _lengths(A) if normalize else np.ones((len(A), 1))
    V, _, T = varimax(A / length, normalize=normalize, tol=tol, max_iter=max_iter)
    U = linalg.lstsq(V, np.sign(V) * np.abs(V) ** power)[0]
    if np.linalg.matrix_rank(U) < U.shape[1]:
        warnings.warn(
            f"The loadings span fewer than {U.shape[1]} factors, so promax is not defined and the varimax "
            "rotation is returned; use fewer factors.",
            UserWarning,
            stacklevel=2,
        )
        return Rotation(A @ T, np.eye(A.shape[1]), T)
    inverse = linalg.inv(U)
    size = np.sqrt(np.sum(inverse**2, axis=1))  # the factors' standard deviations before scaling
    U = U * size
    inverse = inverse / size[:, None]
    return Rotation(A @ T @ U, inverse @ inverse.T, T @ U)


def oblimin(
    loadings: npt.ArrayLike,
    *,
    gamma: float = 0.0,
    normalize: bool = False,
    tol: float = 1e-7,
    max_iter: int = 5000,
) -> Rotation:
    """Direct oblimin: the oblique rotation whose factors share as few items as possible.

    Minimises ``¼ Σ_{p≠q} Σ_i l_ip² l_iq²`` (for ``gamma=0``, called quartimin) over oblique rotations, by
    gradient projection.

    Parameters
    ----------
    loadings : array-like of shape (n_items, n_factors)
    gamma : float, default=0
        Larger values up to 1 allow more correlated factors.
    normalize : bool, default=False
        Give every item the same weight (Kaiser normalisation).
    tol : float, default=1e-7
        Stop when the projected gradient is shorter.
    max_iter : int, default=5000

    Returns
    -------
    Rotation

    References
    ----------
    R. I. Jennrich (2002). A simple general method for oblique rotation. Psychometrika 67, 7-19.

    Examples
    --------
    >>> import numpy as np
    >>> simple = np.array([[0.8, 0.0], [0.7, 0.0], [0.0, 0.6], [0.0, 0.9]])
    >>> mixing = np.array([[1.0, 0.5], [0.0, np.sqrt(0.75)]])
    >>> rotation = oblimin(simple @ mixing.T)
    >>> bool(np.allclose(rotation.loadings, simple, atol=1e-5))
    True
    >>> rotation.factor_correlations.round(3).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    A = np.asarray(loadings, dtype=np.float64)
    k = A.shape[1]
    length = _lengths(A) if normalize else np.ones((len(A), 1))
    B, T = A / length, np.eye(k)
    # Columns of T are the factors in the old axes, each of length 1; the loadings are B T⁻ᵀ.
    L, value, slope = _quartimin(B, T, gamma)
    step = 1.0
    for _ in range(max_iter):
        direction = slope - T * np.sum(T * slope, axis=0)
        size = float(np.sqrt(np.sum(direction**2)))
        if size <= tol:
            break
        step *= 2
        for _ in range(60):
            trial = T - step * direction
            trial /= np.sqrt(np.sum(trial**2, axis=0))
            new = _quartimin(B, trial, gamma)
            if value - new[1] >= 0.5 * step * size**2:
                break
            step /= 2
        else:
            break  # rounding alone is left to gain
        T, (L, value, slope) = trial, new
    if size > max(tol, 1e-5):
        _warn("Oblimin", max_iter, f"the gradient was {size:.1e} (tol is {tol:.1e})")
    transformation = linalg.inv(T).T
    return Rotation(L * length, T.T @ T, transformation)


def _quartimin(B: Floats, T: Floats, gamma: float) -> tuple[Floats, float, Floats]:
    """Rotated loadings, the oblimin criterion there, and its gradient in T."""
    inverse = linalg.inv(T)
    L = B @ inverse.T
    L2 = L**2
    others = L2.sum(axis=1, keepdims=True) - L2
    if gamma:
        others = others - gamma * others.mean(axis=0)
    return L, float(np.sum(L2 * others)) / 4, -inverse.T @ (L * others).T @ L


def _warn(name: str, max_iter: int, state: str) -> None:
    warnings.warn(
        f"{name} did not settle in {max_iter} iterations: {state}; raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=3,
    )
