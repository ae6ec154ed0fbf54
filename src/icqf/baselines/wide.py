"""Eigenvalues of the correlations of more items than participants, without the matrix of all pairs of items.

The correlations of m items from n participants are ``Z.T @ Z`` of a table of n rows, so that their product
with a vector costs n·m steps, and no more than n − 1 of their eigenvalues are above 0.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg, optimize
from scipy.sparse.linalg import LinearOperator, eigsh

from icqf.baselines.correlation import Floats
from icqf.baselines.extraction import LOWEST_UNIQUENESS

MOST_EIGENVALUES = 100
_SMALL = 300  # items of which the whole matrix is decomposed faster than its largest eigenvalues


def unit_columns(X: Floats) -> Floats:
    """Answers (n, m) as columns of mean 0 and length 1, missing answers at their item's mean.

    Examples
    --------
    >>> Z = unit_columns(np.array([[1.0, 2.0, np.nan], [2.0, 4.0, 1.0], [3.0, 6.0, 2.0]]))
    >>> (Z.T @ Z).round(3)[0].tolist()
    [1.0, 1.0, 0.5]
    """
    Z = X - np.nanmean(X, axis=0)
    Z[np.isnan(Z)] = 0.0
    return np.asarray(Z / np.linalg.norm(Z, axis=0))


def wide_eigenvalues(Z: Floats, kind: str, communalities: str) -> Floats:
    """The largest eigenvalues of ``Z.T @ Z``, communalities in its diagonal where `kind` is "fa".

    They are n − 1, or `MOST_EIGENVALUES` where that is fewer. Squared multiple correlations do not exist for
    more items than participants; communalities are then 0.5, as in `icqf.baselines.extraction`.
    """
    n, m = Z.shape
    count = min(n - 1, m - 1, MOST_EIGENVALUES)
    if kind == "pc" or communalities == "smc":
        values = linalg.eigvalsh(Z @ Z.T, check_finite=False)[::-1][:count]
        return np.asarray(values - (0.5 if kind == "fa" else 0.0))
    return _largest(Z, 1.0 - one_factor(Z) ** 2, count)


def one_factor(Z: Floats) -> Floats:
    """Loadings (m,) of one factor by minimum residuals: the sum of squared residuals, diagonal left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 1)) + 0.5 * rng.normal(size=(40, 60))
    >>> bool((one_factor(unit_columns(X)) > 0.7).all())
    True
    """
    values, V = linalg.eigh(Z @ Z.T, subset_by_index=(len(Z) - 1,) * 2, check_finite=False)
    start = Z.T @ V[:, 0]  # the first principal component, of length sqrt(its eigenvalue)
    highest = np.sqrt(1.0 - LOWEST_UNIQUENESS)

    def residual(loadings: Floats) -> tuple[float, Floats]:
        pulled, size = Z.T @ (Z @ loadings) - loadings, float(loadings @ loadings)
        square = loadings**2
        value = (size**2 - float(square @ square)) / 2 - float(loadings @ pulled)
        return value, 2 * (size * loadings - loadings * square - pulled)

    found = optimize.minimize(
        residual,
        np.clip(start, -highest, highest),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-highest, highest)] * Z.shape[1],
        options={"maxiter": 200, "ftol": 1e-12, "gtol": 1e-6 * float(values[0])},
    )
    return np.asarray(found.x)


def _largest(Z: Floats, uniquenesses: Floats, count: int) -> Floats:
    """The `count` largest eigenvalues of ``Z.T @ Z`` less the uniquenesses in its diagonal."""
    m = Z.shape[1]
    if m <= _SMALL:
        S = Z.T @ Z - np.diag(uniquenesses)
        return np.asarray(linalg.eigvalsh(S, check_finite=False)[::-1][:count])
    S = LinearOperator(
        (m, m),
        matvec=lambda v: Z.T @ (Z @ v.ravel()) - uniquenesses * v.ravel(),
        dtype=np.float64,
    )
    # A start of its own, as the library's would be another one each time.
    found = eigsh(S, count, which="LA", v0=np.ones(m), tol=1e-6, return_eigenvectors=False)
    return np.asarray(np.sort(found)[::-1])
