"""Factor analysis (extraction, rotation, the estimator), and the reliability of scales."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import linalg, optimize, stats
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from icqf.baselines.correlation import (
    CorrelationKind,
    Floats,
    as_input_errors,
    bartlett_sphericity,
    is_positive_definite,
    item_moments,
    item_name,
    kmo,
    pairwise_sums,
)
from icqf.core import start
from icqf.engines.threads import one_blas_thread
from icqf.errors import InputError

Method = Literal["minres", "ml"]
LOWEST_UNIQUENESS = 0.005


class Extraction(NamedTuple):
    """Unrotated factors."""

    loadings: (
        Floats  # (n_items, n_factors): principal axes, the strongest first; column sums are not negative
    )
    uniquenesses: Floats  # (n_items,): each item's unexplained share of variance, at least 0.005
    n_iter: int


class FitMeasures(NamedTuple):
    """How well a factor model reproduces a correlation matrix."""

    chi2: float  # Bartlett-corrected likelihood-ratio statistic; NaN when it cannot be computed
    dof: int  # degrees of freedom; negative when the model has more parameters than there are correlations
    bic: float  # ``chi2 - dof * log(n_participants)``; lower is better


def extract(
    correlation: npt.ArrayLike,
    n_factors: int,
    *,
    method: Method = "minres",
    tol: float = 1e-8,
    max_iter: int = 200,
) -> Extraction:
    """Unrotated factors of a correlation matrix."""
    R = np.asarray(correlation, dtype=np.float64)
    if not 1 <= n_factors <= len(R):
        raise InputError(f"n_factors is {n_factors}; with {len(R)} items it must be between 1 and {len(R)}.")
    if method == "minres":
        L, psi, n_iter = _minres(R, n_factors, tol, max_iter)
    elif method == "ml":
        L, psi, n_iter = _maximum_likelihood(R, n_factors, tol, max_iter)
    else:
        raise InputError(f"method is {method!r}; choose 'minres' or 'ml'.")
    return Extraction(L * np.where(L.sum(axis=0) < 0, -1.0, 1.0), psi, n_iter)


def start_uniquenesses(R: Floats) -> Floats:
    """One minus each item's squared multiple correlation with the others; 0.5 if that does not exist."""
    if not is_positive_definite(R):
        return np.full(len(R), 0.5)
    return np.clip(1.0 / np.diag(linalg.inv(R)), LOWEST_UNIQUENESS, 1.0)


def _warn_extraction(method: str, max_iter: int, slope: float, tol: float) -> None:
    warnings.warn(
        f"The {method} extraction stopped after {max_iter} iterations with a slope of {slope:.1e} "
        f"(tol is {tol:.1e}); raise max_iter, or try fewer factors.",
        ConvergenceWarning,
        stacklevel=5,
    )


class _Residual(NamedTuple):
    """Half the sum of squared residuals of the best `k` factors at given uniquenesses."""

    value: float
    slope: Floats
    eigenvalues: Floats
    eigenvectors: Floats
    kept: npt.NDArray[np.bool_]

    @classmethod
    def at(cls, R: Floats, psi: Floats, k: int) -> _Residual:
        S = R.copy()
        S[np.diag_indices(len(S))] -= psi
        values, V = linalg.eigh(S, driver="evd", overwrite_a=True, check_finite=False)
        kept = (np.arange(len(S)) >= len(S) - k) & (values > 0)
        rest = np.where(kept, 0.0, values)
        return cls(0.5 * float(rest @ rest), -(V**2) @ rest, values, V, kept)

    def curvature(self) -> Floats:
        """The exact matrix of second derivatives in the uniquenesses."""
        inner, outer = self.eigenvectors[:, self.kept], self.eigenvectors[:, ~self.kept]
        H = (outer @ outer.T) ** 2
        low = self.eigenvalues[~self.kept]
        for high, v in zip(self.eigenvalues[self.kept], inner.T, strict=True):
            weight = low / np.minimum(low - high, -1e-12)
            H += 2 * np.outer(v, v) * ((outer * weight) @ outer.T)
        return H

    def loadings(self, k: int) -> Floats:
        top = slice(None, -k - 1, -1)
        return self.eigenvectors[:, top] * np.sqrt(np.maximum(self.eigenvalues[top], 0.0))


def _minres(R: Floats, k: int, tol: float, max_iter: int) -> tuple[Floats, Floats, int]:
    """Projected Newton steps on the uniquenesses; the loadings follow from an eigendecomposition."""
    psi = start_uniquenesses(R)
    now = _Residual.at(R, psi, k)
    for iteration in range(1, max_iter + 1):
        stuck = (psi <= LOWEST_UNIQUENESS) & (now.slope > 0) | (psi >= 1.0) & (now.slope < 0)
        slope = float(np.abs(now.slope[~stuck]).max(initial=0.0))
        if slope <= tol:
            break
        free = np.flatnonzero(~stuck)
        direction = np.zeros_like(psi)
        direction[free] = -_newton(now.curvature()[np.ix_(free, free)], now.slope[free])
        step = 1.0
        while step > 1e-10:
            trial = np.clip(psi + step * direction, LOWEST_UNIQUENESS, 1.0)
            new = _Residual.at(R, trial, k)
            # The last term accepts a full step when rounding hides the decrease.
            if new.value <= now.value + 1e-4 * float(now.slope @ (trial - psi)) + 1e-15 * len(R):
                break
            step /= 4
        else:
            _warn_extraction("minres", iteration, slope, tol)
            break
        psi, now = trial, new
    else:
        _warn_extraction("minres", max_iter, slope, tol)
    return now.loadings(k), psi, iteration


def _newton(H: Floats, g: Floats) -> Floats:
    """Solve H x = g, with H shifted as far as needed to be positive definite."""
    shift = 0.0
    floor = 1e-6 * max(float(np.diag(H).max()), 1e-12)
    while True:
        try:
            factor = linalg.cho_factor(H + shift * np.eye(len(H)), check_finite=False)
        except linalg.LinAlgError:
            shift = max(10 * shift, floor)
            continue
        return linalg.cho_solve(factor, g, check_finite=False)


def _maximum_likelihood(R: Floats, k: int, tol: float, max_iter: int) -> tuple[Floats, Floats, int]:
    """L-BFGS on the logarithms of the uniquenesses."""
    if not is_positive_definite(R):
        raise InputError(
            "The correlation matrix is not positive definite, which maximum likelihood needs; "
            "use method='minres' or correlation='em', or drop items that repeat others."
        )

    def eigen(log_psi: Floats) -> tuple[Floats, Floats]:
        root = np.exp(0.5 * log_psi)
        values, V = linalg.eigh(R / np.outer(root, root), driver="evd", check_finite=False)
        return values, V

    def discrepancy(log_psi: Floats) -> tuple[float, Floats]:
        values, V = eigen(log_psi)
        kept = (np.arange(len(R)) >= len(R) - k) & (values > 1.0)
        rest = np.where(kept, 1.0, values)  # a factor explains the part of its eigenvalue above 1
        return float(np.sum(rest - np.log(rest) - 1.0)), (V**2) @ (1.0 - rest)

    result = optimize.minimize(
        discrepancy,
        np.log(start_uniquenesses(R)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(math.log(LOWEST_UNIQUENESS), 0.0)] * len(R),
        options={"maxiter": max_iter * 10, "ftol": 1e-15, "gtol": max(tol, 1e-7), "maxcor": 20},
    )
    if result.status == 1:
        _warn_extraction("ml", max_iter * 10, float(np.abs(result.jac).max()), tol)
    values, V = eigen(result.x)
    psi = np.exp(result.x)
    top = slice(None, -k - 1, -1)
    L = np.sqrt(psi)[:, None] * V[:, top] * np.sqrt(np.maximum(values[top] - 1.0, 0.0))
    return L, psi, max(1, int(result.nit))


def degrees_of_freedom(n_items: int, n_factors: int) -> int:
    """Number of correlations minus free parameters of a factor model."""
    return ((n_items - n_factors) ** 2 - (n_items + n_factors)) // 2


def fit_statistics(correlation: Floats, model: Floats, n_factors: int, n_participants: int) -> FitMeasures:
    """Likelihood-ratio chi-square and BIC of a factor model."""
    m = len(correlation)
    dof = degrees_of_freedom(m, n_factors)
    implied = model.copy()
    np.fill_diagonal(implied, 1.0)
    if not (is_positive_definite(correlation) and is_positive_definite(implied)):
        return FitMeasures(math.nan, dof, math.nan)
    ratio = linalg.solve(implied, correlation, assume_a="pos")
    discrepancy = float(np.trace(ratio) - np.linalg.slogdet(ratio)[1] - m)
    chi2 = max(discrepancy, 0.0) * (n_participants - 1 - (2 * m + 5) / 6 - 2 * n_factors / 3)
    return FitMeasures(chi2, dof, chi2 - dof * math.log(n_participants))


class Rotation(NamedTuple):
    """Rotated loadings.

    Attributes
    ----------
    loadings : ndarray of shape (n_items, n_factors)
        The pattern matrix, ``unrotated @ transformation``.
    factor_correlations : ndarray of shape (n_factors, n_factors)
        The identity for an orthogonal rotation.
    transformation : ndarray of shape (n_factors, n_factors)
    """

    loadings: Floats
    factor_correlations: Floats
    transformation: Floats


def _lengths(A: Floats) -> Floats:
    """Row lengths as a column; 1 for a row of zeros."""
    length = np.sqrt(np.sum(A**2, axis=1, keepdims=True))
    return np.where(length > 0, length, 1.0)


def varimax(
    loadings: npt.ArrayLike, *, normalize: bool = True, tol: float = 1e-5, max_iter: int = 1000
) -> Rotation:
    """Varimax: the orthogonal rotation with the largest variance of squared loadings within factors.

    Each iteration replaces the rotation by the orthogonal matrix nearest to the gradient of the criterion.
    That can cycle (for two factors without any shared item it does), so if a pair of factors could still turn
    by more than ``10 * sqrt(tol)`` radians, Kaiser's pairwise rotations finish.

    Parameters
    ----------
    loadings : array-like of shape (n_items, n_factors)
    normalize : bool, default=True
        Give every item the same weight (Kaiser normalisation).
    tol : float, default=1e-5
        Stop when the size of the gradient (the sum of its singular values) grows by less than this share.
        The default is that of R's ``varimax``, so that published loadings are reproduced; it can stop some
        thousandths short of the best loadings, which ``tol=1e-12`` reaches.

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
    T = start.varimax(B, tol=tol, max_iter=max_iter)
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
    _warn_rotation("Varimax", max_iter, f"a pair of factors still turned by {largest:.1e} radians")
    return T


def promax(
    loadings: npt.ArrayLike,
    *,
    power: float = 4,
    tol: float = 1e-5,
) -> Rotation:
    """Promax: varimax, then an oblique least-squares step towards a target with small loadings shrunk.

    The target is the varimax solution ``V`` with each loading raised to `power`, keeping its sign. With
    ``U = argmin ‖V U − target‖`` and its columns scaled so that the factors have variance 1, the loadings are
    ``V U`` and the factor correlations ``(UᵀU)⁻¹``. Items have the same weight in both steps.

    Parameters
    ----------
    loadings : array-like of shape (n_items, n_factors)
    power : float, default=4
        Larger gives simpler loadings and more correlated factors.
    tol
        As for `varimax`.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.8, 0.3], [0.7, 0.2], [0.3, 0.6], [0.4, 0.8], [0.2, 0.7]])
    >>> rotation = promax(A)
    >>> rotation.factor_correlations.round(2).tolist()
    [[1.0, 0.63], [0.63, 1.0]]
    """
    A = np.asarray(loadings, dtype=np.float64)
    V, _, T = varimax(A / _lengths(A), tol=tol)
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
    tol : float, default=1e-7
        Stop when the projected gradient is shorter.

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
    T = np.eye(A.shape[1])
    # Columns of T are the factors in the old axes, each of length 1; the loadings are A T⁻ᵀ.
    L, value, slope = _quartimin(A, T, gamma)
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
            new = _quartimin(A, trial, gamma)
            if value - new[1] >= 0.5 * step * size**2:
                break
            step /= 2
        else:
            break  # only rounding errors are left
        T, (L, value, slope) = trial, new
    if size > max(tol, 1e-5):
        _warn_rotation("Oblimin", max_iter, f"the gradient was {size:.1e} (tol is {tol:.1e})")
    return Rotation(L, T.T @ T, linalg.inv(T).T)


def _quartimin(B: Floats, T: Floats, gamma: float) -> tuple[Floats, float, Floats]:
    """Rotated loadings, the oblimin criterion there, and its gradient in T."""
    inverse = linalg.inv(T)
    L = B @ inverse.T
    L2 = L**2
    others = L2.sum(axis=1, keepdims=True) - L2
    if gamma:
        others = others - gamma * others.mean(axis=0)
    return L, float(np.sum(L2 * others)) / 4, -inverse.T @ (L * others).T @ L


def _warn_rotation(name: str, max_iter: int, state: str) -> None:
    warnings.warn(
        f"{name} did not settle in {max_iter} iterations: {state}; raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=3,
    )


class SchmidLeiman(NamedTuple):
    """A general factor and group factors, none of them correlated; see `schmid_leiman`."""

    general: Floats  # (n_items,): loadings on the general factor
    groups: Floats  # (n_items, n_factors): loadings on what is left of each factor
    second_order: Floats  # (n_factors,): correlations of the factors with the general factor
    omega_hierarchical: float  # share of the sum score's variance that is due to the general factor
    omega_total: float  # share that is due to all factors
    common: float  # the general factor's share of the variance that the factors explain


NEARLY_SINGULAR = 0.01  # smallest eigenvalue of the factors' correlations


@one_blas_thread()
def schmid_leiman(
    loadings: npt.ArrayLike, factor_correlations: npt.ArrayLike, correlation: npt.ArrayLike
) -> SchmidLeiman:
    """Divide correlated factors into a general factor and group factors.

    The factors' correlations are explained by one second-order factor (minimum residuals), on which each item
    loads through its own factors; what that leaves of each factor is its group factor. Items count in the
    direction in which they are given.

    Parameters
    ----------
    loadings : array-like of shape (n_items, n_factors)
        Of three or more oblique factors, as of `oblimin`.
    factor_correlations : array-like of shape (n_factors, n_factors)
    correlation : array-like of shape (n_items, n_items)
        Correlations of the items, the sum of which is the variance of their sum score.

    References
    ----------
    J. Schmid and J. M. Leiman (1957). The development of hierarchical factor solutions. Psychometrika 22.
    R. E. Zinbarg, W. Revelle, I. Yovel and W. Li (2005). Cronbach's α, Revelle's β, and McDonald's ω_H.
    Psychometrika 70.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.baselines import schmid_leiman
    >>> loadings = np.kron(np.eye(3), [[0.8]] * 3)
    >>> factors = np.full((3, 3), 0.49) + 0.51 * np.eye(3)
    >>> items = loadings @ factors @ loadings.T + 0.36 * np.eye(9)
    >>> found = schmid_leiman(loadings, factors, items)
    >>> found.second_order.round(3).tolist(), round(float(found.common), 3)
    ([0.7, 0.7, 0.7], 0.49)
    """
    L, Phi, R = (np.asarray(each, dtype=np.float64) for each in (loadings, factor_correlations, correlation))
    k = L.shape[1]
    if k < 3:
        there = "there is 1" if k == 1 else f"there are {k}"
        raise InputError(f"A Schmid-Leiman solution needs three factors or more, and {there}.")
    if linalg.eigvalsh(Phi)[0] < NEARLY_SINGULAR:
        raise InputError(
            "The factors' correlations are nearly singular, so that a Schmid-Leiman solution is not defined; "
            "take fewer factors."
        )
    # a Heywood case is refused below
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        second, unique, _ = extract(Phi, 1)
    if (unique <= LOWEST_UNIQUENESS).any():
        raise InputError(
            "The second-order factor explains one factor completely (a Heywood case), so that a "
            "Schmid-Leiman solution is not defined; take another number of factors."
        )
    gamma = second[:, 0]
    general, groups = L @ gamma, L * np.sqrt(1 - gamma**2)
    explained = np.sum(L * (L @ Phi), axis=1)
    total = float(R.sum())
    if total <= 0:
        raise InputError("The items' correlations add up to nothing, so that their sum has no variance.")
    shares = float(general @ general), float(np.sum(groups**2))
    return SchmidLeiman(
        general,
        groups,
        gamma,
        float(general.sum() ** 2) / total,
        1 - float(np.sum(1 - explained)) / total,
        shares[0] / (shares[0] + shares[1]),
    )


_CELLS = 2_000_000  # of matrices that are solved together
_ROTATIONS: dict[str, Callable[..., Rotation]] = {"varimax": varimax, "promax": promax, "oblimin": oblimin}


class FactorAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Exploratory factor analysis: minimum residual extraction, promax rotation, regression scores.

    The items' correlation matrix is modelled as ``R ≈ Λ Φ Λᵀ + Ψ`` with loadings ``Λ``, factor correlations
    ``Φ`` and a diagonal of uniquenesses ``Ψ``. Results follow the conventions of R's ``psych::fa``: every
    factor points in the direction in which its loadings add up to a positive number, and the factor that
    explains most variance comes first.

    Parameters
    ----------
    n_components : int, default=1
        Number of factors; see `parallel_analysis`, `velicer_map` and `bic_factor_analysis` for choosing it.
    rotation : {"promax", "varimax", "oblimin"} or None, default="promax"
        "promax" and "oblimin" (quartimin) allow correlated factors, "varimax" does not. Varimax and promax
        weight all items equally (Kaiser normalisation), oblimin does not.
    method : {"minres", "ml"}, default="minres"
        Minimum residual or maximum likelihood.
    correlation : {"pairwise", "em", "polychoric"}, default="pairwise"
        How missing answers are treated when items are correlated: each pair of items over the participants
        who answered both, or maximum likelihood from all answers under a multivariate normal. "polychoric"
        treats graded answers as cut normal variables (`icqf.baselines.polychoric_correlation`).
    rotation_tol : float, optional
        Stopping tolerance of the rotation. By default varimax and promax stop as early as they do in R, some
        thousandths short of the best loadings, so that published results are reproduced; use 1e-12 for more.
    tol : float, default=1e-8
        The extraction stops when no uniqueness has a slope above this.
    max_iter : int, default=200
        Most iterations of the extraction.

    Attributes
    ----------
    loadings_ : ndarray of shape (n_items, n_components)
        Pattern matrix: the weight of each factor in each standardised item.
    components_ : ndarray of shape (n_components, n_items)
        The transpose of `loadings_`.
    factor_correlations_ : ndarray of shape (n_components, n_components)
    structure_ : ndarray of shape (n_items, n_components)
        Correlations between items and factors, ``loadings_ @ factor_correlations_``.
    uniquenesses_ : ndarray of shape (n_items,)
        Share of each item's variance that no factor explains.
    communalities_ : ndarray of shape (n_items,)
        Share of each item's variance that the factors explain.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of all items' variance that each factor explains.
    score_weights_ : ndarray of shape (n_items, n_components)
        Weights of the standardised items in the scores of a participant who answered everything.
    mean_, scale_ : ndarray of shape (n_items,)
        Means and standard deviations of the items.
    correlation_ : ndarray of shape (n_items, n_items)
    kmo_ : KMO
        Kaiser-Meyer-Olkin measure of sampling adequacy.
    bartlett_ : Sphericity
        Bartlett's test that the items are uncorrelated.
    chi2_, bic_ : float
        Likelihood-ratio statistic of the model and its BIC, ``chi2_ - dof_ * log(n_participants)``.
    dof_ : int
        Degrees of freedom of the model.
    n_iter_ : int
        Iterations of the extraction.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_items,)
        Only if the answers had column names.

    Notes
    -----
    Missing answers are not imputed in `transform`: a participant's score is the regression of the factors on
    the answered items, ``z_o R_oo⁻¹ S_o`` with the standardised answers ``z_o`` and the corresponding rows of
    `correlation_` and `structure_`. Few answers therefore give scores close to the average, and none give
    NaN, with a warning.

    Pairwise correlations need not be positive definite. If they are not, there is a warning, `kmo_` and
    `bartlett_` are NaN, and the scores use the correlations implied by the factors instead of ``R``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(2), np.full((1, 4), 0.8))
    >>> X = rng.normal(size=(500, 2)) @ loadings + 0.6 * rng.normal(size=(500, 8))
    >>> X[0, :3] = np.nan
    >>> model = FactorAnalysis(n_components=2).fit(X)
    >>> sorted(np.abs(model.loadings_).argmax(axis=1).tolist())
    [0, 0, 0, 0, 1, 1, 1, 1]
    >>> model.transform(X).shape
    (500, 2)
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        rotation: Literal["promax", "varimax", "oblimin"] | None = "promax",
        method: Method = "minres",
        correlation: CorrelationKind = "pairwise",
        rotation_tol: float | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
    ) -> None:
        self.n_components = n_components
        self.rotation = rotation
        self.method = method
        self.correlation = correlation
        self.rotation_tol = rotation_tol
        self.tol = tol
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @one_blas_thread()
    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Estimate loadings, uniquenesses and factor correlations.

        Parameters
        ----------
        X : array-like of shape (n_participants, n_items)
            Answers; NaN is a missing answer.
        """
        with as_input_errors():
            answers = validate_data(
                self,
                X,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                ensure_min_samples=2,
                ensure_min_features=2,
            )
        m = answers.shape[1]
        self._check_parameters(m)
        names = getattr(self, "feature_names_in_", None)
        n_participants = int(np.sum(~np.isnan(answers).all(axis=1)))
        self.mean_, self.scale_, self.correlation_, _ = item_moments(
            answers, correlation=self.correlation, names=names
        )
        L, psi, self.n_iter_ = extract(
            self.correlation_, self.n_components, method=self.method, tol=self.tol, max_iter=self.max_iter
        )
        low = np.flatnonzero(psi <= LOWEST_UNIQUENESS)
        if len(low):
            which = ", ".join(item_name(names, int(j)) for j in low[:5]) + (", ..." if len(low) > 5 else "")
            warnings.warn(
                f"Heywood case: the factors explain all variance of item {which}, which is rarely true; "
                "try fewer factors, or drop items that nearly repeat others.",
                UserWarning,
                stacklevel=2,
            )
        self._set_loadings(_ordered(self._rotate(L)), psi)
        self._set_fit(L @ L.T, n_participants)
        return self

    def _check_parameters(self, m: int) -> None:
        k = self.n_components
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= m:
            raise InputError(f"n_components is {k!r}; with {m} items choose a whole number from 1 to {m}.")
        if self.rotation is not None and self.rotation not in _ROTATIONS:
            raise InputError(f"rotation is {self.rotation!r}; choose one of {sorted(_ROTATIONS)} or None.")
        if degrees_of_freedom(m, k) < 0:
            warnings.warn(
                f"{k} factors of {m} items have more parameters than there are correlations, so many "
                "loadings fit equally well; use fewer factors.",
                UserWarning,
                stacklevel=3,
            )

    def _rotate(self, L: Floats) -> Rotation:
        k = L.shape[1]
        if self.rotation is None or k == 1:
            return Rotation(L, np.eye(k), np.eye(k))
        options: dict[str, Any] = {} if self.rotation_tol is None else {"tol": self.rotation_tol}
        return _ROTATIONS[self.rotation](L, **options)

    def _set_loadings(self, rotation: Rotation, psi: Floats) -> None:
        L, Phi, _ = rotation
        self.loadings_, self.factor_correlations_ = L, Phi
        self.components_ = L.T
        self.structure_ = L @ Phi
        self.uniquenesses_ = psi
        self.communalities_ = np.sum(L * self.structure_, axis=1)
        self.explained_variance_ratio_ = np.sum(L * self.structure_, axis=0) / len(L)

    def _set_fit(self, model: Floats, n_participants: int) -> None:
        """Set fit statistics, and the correlations and weights behind the scores."""
        R = self.correlation_
        self.kmo_, self.bartlett_ = kmo(R), bartlett_sphericity(R, n_participants)
        self.chi2_, self.dof_, self.bic_ = fit_statistics(R, model, self.n_components, n_participants)
        self._score_correlation = R
        if not is_positive_definite(R):
            self._score_correlation = model + np.diag(self.uniquenesses_)
            warnings.warn(
                f"The correlations of {len(R)} items from {n_participants} participants are not positive "
                "definite, so KMO and Bartlett's test are NaN and scores use the correlations implied by the "
                "factors; use correlation='em', more participants, or fewer items.",
                UserWarning,
                stacklevel=3,
            )
        self.score_weights_ = linalg.solve(self._score_correlation, self.structure_, assume_a="pos")

    def transform(self, X: npt.ArrayLike) -> Floats:
        """Factor scores, each from the items the participant answered.

        Parameters
        ----------
        X : array-like of shape (n_participants, n_items)
            Answers; NaN is a missing answer (see Notes of the class).

        Returns
        -------
        ndarray of shape (n_participants, n_components)
            A DataFrame after ``set_output(transform="pandas")``.
        """
        check_is_fitted(self)
        with as_input_errors():
            answers = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        Z = (answers - self.mean_) / self.scale_
        gaps = np.isnan(Z)
        n_gaps = gaps.sum(axis=1)
        Z = np.where(gaps, 0.0, Z)
        result: Floats = Z @ self.score_weights_
        P = linalg.inv(self._score_correlation)
        for number in np.unique(n_gaps[n_gaps > 0]):
            alike = np.flatnonzero(n_gaps == number)
            if number == Z.shape[1]:
                result[alike] = np.nan
                warnings.warn(
                    f"{len(alike)} of {len(Z)} participants answered nothing (first row {alike[0]}, counted "
                    "from 0); their scores are NaN.",
                    UserWarning,
                    stacklevel=2,
                )
                continue
            for rows in np.array_split(alike, -(-len(alike) * number**2 // _CELLS)):
                M = np.nonzero(gaps[rows])[1].reshape(len(rows), number)
                # The inverse of R without these items is a Schur complement in P.
                left = np.linalg.solve(P[M[:, :, None], M[:, None, :]], self.score_weights_[M])
                result[rows] -= np.einsum("ng,ngk->nk", np.take_along_axis(Z[rows] @ P, M, axis=1), left)
        return result

    @property
    def _n_features_out(self) -> int:
        return int(self.loadings_.shape[1])


def _ordered(rotation: Rotation) -> Rotation:
    """Factors with signs that make their loadings' sums positive, the strongest first."""
    L, Phi, T = rotation
    sign = np.where(L.sum(axis=0) < 0, -1.0, 1.0)
    L, Phi, T = L * sign, Phi * np.outer(sign, sign), T * sign
    order = np.argsort(-np.sum(L * (L @ Phi), axis=0), kind="stable")
    return Rotation(L[:, order], Phi[np.ix_(order, order)], T[:, order])


_RESAMPLES = 100
_SWEEPS = 100


@dataclass(frozen=True)
class Reliability:
    """Reliability of a scale.

    Attributes
    ----------
    n_items : int
    alpha : float
        Cronbach's α of the items in answer units.
    alpha_low, alpha_high : float
        Its 95% interval (Feldt).
    omega : float
        McDonald's ω (total) of the standardised items, from one factor by minimum residuals; NaN for two
        items, to which a factor cannot be fitted.
    omega_low, omega_high : float
        Its 95% interval, from a bootstrap over participants.
    item_rest : ndarray of shape (n_items,)
        Correlation of each item with the sum of the others.
    """

    n_items: int
    alpha: float
    alpha_low: float
    alpha_high: float
    omega: float
    omega_low: float
    omega_high: float
    item_rest: Floats


@one_blas_thread()
def reliability(
    X: npt.ArrayLike, *, n_resamples: int = _RESAMPLES, random_state: int | np.random.Generator = 0
) -> Reliability:
    """Cronbach's α and McDonald's ω of the items of one scale, all keyed in one direction.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer. Covariances are pairwise.
    n_resamples : int, default=100
        Bootstrap resamples for the interval of ω; 0: no interval.

    References
    ----------
    L. S. Feldt, D. J. Woodruff, F. A. Salih (1987). Statistical inference for coefficient alpha. Applied
    Psychological Measurement 11, 93-103. R. P. McDonald (1999). Test theory: a unified treatment.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.baselines import reliability
    >>> rng = np.random.default_rng(0)
    >>> answers = rng.normal(size=(500, 1)) + rng.normal(size=(500, 4))
    >>> round(reliability(answers).alpha, 1)
    0.8
    """
    answers = np.asarray(X, dtype=np.float64)
    if answers.ndim != 2 or answers.shape[1] < 2:
        raise InputError("Reliability needs answers to at least two items, as a participants-by-items table.")
    m = answers.shape[1]
    moments = item_moments(answers)
    C = pd.DataFrame(answers).cov().to_numpy()
    alpha = m / (m - 1) * (1 - np.trace(C) / C.sum())
    n = int(np.sum(~np.isnan(answers).all(axis=1)))
    ends = 1 - (1 - alpha) * stats.f.ppf([0.975, 0.025], n - 1, (n - 1) * (m - 1))  # Feldt's interval
    low, high = map(float, ends)
    rest = C.sum(axis=1) - np.diag(C)
    spread = C.sum() - 2 * C.sum(axis=1) + np.diag(C)  # variance of the sum of the others
    omega, omega_low, omega_high = np.nan, np.nan, np.nan
    if m > 2:
        R = moments.correlation
        omega = 1 - extract(R, 1).uniquenesses.sum() / R.sum()  # of the sum's variance, what is not unique
        if n_resamples:
            omegas = _resampled(answers, n_resamples, np.random.default_rng(random_state))
            omega_low, omega_high = np.nanpercentile(omegas, [2.5, 97.5])
    with np.errstate(invalid="ignore", divide="ignore"):
        item_rest = rest / (moments.scale * np.sqrt(spread))
    return Reliability(
        m, float(alpha), low, high, float(omega), float(omega_low), float(omega_high), item_rest
    )


def _resampled(answers: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """ω of bootstrap resamples, all computed together."""
    seen = ~np.isnan(answers)
    Z = np.where(seen, answers - np.nanmean(answers, axis=0), 0.0)
    n, m = answers.shape
    weights = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(float)
    R = np.empty((n_resamples, m, m))
    O = seen.astype(float)
    complete = bool(seen.all())
    for b, w in enumerate(weights):
        if complete:
            D = Z - w @ Z / n
            cross = (D * w[:, None]).T @ D
            square = np.diag(cross)
            R[b] = cross / np.sqrt(np.outer(square, square))
        else:
            _, cross, spread = pairwise_sums(Z, O, w[:, None])
            with np.errstate(invalid="ignore", divide="ignore"):
                R[b] = cross / np.sqrt(spread)
    R = np.nan_to_num(R)
    at = np.arange(m)
    R[:, at, at] = 1.0
    loading = np.full((n_resamples, m), 0.7)
    for _ in range(_SWEEPS):  # coordinate descent on the squared off-diagonal residuals
        before = loading.copy()
        for i in range(m):
            others = np.einsum("bj,bj->b", R[:, i], loading) - loading[:, i]
            squares = (loading**2).sum(axis=1) - loading[:, i] ** 2
            loading[:, i] = np.clip(others / np.maximum(squares, 1e-12), -1.0, 1.0)
        if np.abs(loading - before).max() < 1e-6:
            break
    return 1 - (1 - loading**2).sum(axis=1) / R.sum(axis=(1, 2))


def item_shape(X: npt.ArrayLike) -> pd.DataFrame:
    """Skewness and excess kurtosis of the answers to each item (moments over the n − 1 deviation).

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer.

    Returns
    -------
    DataFrame of shape (n_items, 2)
        Columns ``skew`` and ``kurtosis``; NaN for a constant item.

    Examples
    --------
    >>> from icqf.baselines import item_shape
    >>> item_shape([[0.0], [0.0], [0.0], [4.0]]).round(2).values.tolist()
    [[0.75, -1.69]]
    """
    answers = np.asarray(X, dtype=np.float64)
    D = answers - np.nanmean(answers, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = np.nanstd(answers, axis=0, ddof=1)
        skew, kurtosis = (np.nanmean(D**power, axis=0) / deviation**power for power in (3, 4))
    return pd.DataFrame({"skew": skew, "kurtosis": kurtosis - 3})
