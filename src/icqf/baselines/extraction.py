"""Unrotated factors of a correlation matrix: minimum residual and maximum likelihood."""

from __future__ import annotations

import math
import warnings
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg, optimize
from sklearn.exceptions import ConvergenceWarning

from icqf.baselines.correlation import Floats, is_positive_definite
from icqf.errors import InputError

Method = Literal["minres", "ml"]
LOWEST_UNIQUENESS = 0.005


class Extraction(NamedTuple):
    """Unrotated factors.

    Attributes
    ----------
    loadings : ndarray of shape (n_items, n_factors)
        Principal axes, the strongest first; columns add up to at least 0.
    uniquenesses : ndarray of shape (n_items,)
        The share of each item's variance that no factor explains, at least 0.005.
    n_iter : int
    """

    loadings: Floats
    uniquenesses: Floats
    n_iter: int


class FitMeasures(NamedTuple):
    """How well a factor model reproduces a correlation matrix.

    Attributes
    ----------
    chi2 : float
        Bartlett-corrected likelihood-ratio statistic; NaN when it cannot be computed.
    dof : int
        Degrees of freedom; negative when the model has more parameters than there are correlations.
    bic : float
        ``chi2 - dof * log(n_participants)``; lower is better.
    """

    chi2: float
    dof: int
    bic: float


def extract(
    correlation: npt.ArrayLike,
    n_factors: int,
    *,
    method: Method = "minres",
    tol: float = 1e-8,
    max_iter: int = 200,
) -> Extraction:
    """Unrotated factors of a correlation matrix.

    Parameters
    ----------
    correlation : array-like of shape (n_items, n_items)
    n_factors : int
    method : {"minres", "ml"}, default="minres"
        "minres" minimises the sum of squared differences between the correlations and those the factors
        imply, diagonal left out. "ml" maximises the normal likelihood.
    tol : float, default=1e-8
        Stop when no uniqueness has a (projected) slope above this.
    max_iter : int, default=200

    Returns
    -------
    Extraction

    Examples
    --------
    >>> import numpy as np
    >>> a = np.array([0.9, 0.8, 0.7, 0.6])
    >>> R = np.outer(a, a)
    >>> np.fill_diagonal(R, 1.0)
    >>> extract(R, 1).loadings.round(4).ravel().tolist()
    [0.9, 0.8, 0.7, 0.6]
    """
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
    """One minus each item's squared multiple correlation with the others; 0.5 where that does not exist."""
    if not is_positive_definite(R):
        return np.full(len(R), 0.5)
    return np.clip(1.0 / np.diag(linalg.inv(R)), LOWEST_UNIQUENESS, 1.0)


def _warn(method: str, max_iter: int, slope: float, tol: float) -> None:
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
            # The last term lets a full step through when rounding hides the decrease.
            if new.value <= now.value + 1e-4 * float(now.slope @ (trial - psi)) + 1e-15 * len(R):
                break
            step /= 4
        else:
            _warn("minres", iteration, slope, tol)
            break
        psi, now = trial, new
    else:
        _warn("minres", max_iter, slope, tol)
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
        rest = np.where(kept, 1.0, values)  # a factor takes what its eigenvalue has above 1
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
        _warn("ml", max_iter * 10, float(np.abs(result.jac).max()), tol)
    values, V = eigen(result.x)
    psi = np.exp(result.x)
    top = slice(None, -k - 1, -1)
    L = np.sqrt(psi)[:, None] * V[:, top] * np.sqrt(np.maximum(values[top] - 1.0, 0.0))
    return L, psi, max(1, int(result.nit))


def degrees_of_freedom(n_items: int, n_factors: int) -> int:
    """Correlations less free parameters of a factor model."""
    return ((n_items - n_factors) ** 2 - (n_items + n_factors)) // 2


def fit_statistics(correlation: Floats, model: Floats, n_factors: int, n_participants: int) -> FitMeasures:
    """Likelihood-ratio chi-square and BIC of a factor model.

    Parameters
    ----------
    correlation : ndarray of shape (n_items, n_items)
    model : ndarray of shape (n_items, n_items)
        The correlations the factors imply; the diagonal is taken as 1.
    n_factors, n_participants : int

    Returns
    -------
    FitMeasures

    Examples
    --------
    >>> import numpy as np
    >>> R = np.full((4, 4), 0.25) + 0.75 * np.eye(4)
    >>> fit_statistics(R, R, n_factors=1, n_participants=100).dof
    2
    """
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
