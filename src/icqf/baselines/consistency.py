"""Internal consistency of a scale: Cronbach's α and McDonald's ω, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from icqf.baselines.correlation import Floats, item_moments
from icqf.baselines.factor_analysis import extract
from icqf.engines.threads import one_blas_thread
from icqf.errors import InputError

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
    low, high = _feldt(float(alpha), n, m)
    rest = C.sum(axis=1) - np.diag(C)
    spread = C.sum() - 2 * C.sum(axis=1) + np.diag(C)  # variance of the sum of the others
    omega, omega_low, omega_high = np.nan, np.nan, np.nan
    if m > 2:
        omega = _omega(moments.correlation)
        if n_resamples:
            omegas = _resampled(answers, n_resamples, np.random.default_rng(random_state))
            omega_low, omega_high = np.nanpercentile(omegas, [2.5, 97.5])
    with np.errstate(invalid="ignore", divide="ignore"):
        item_rest = rest / (moments.scale * np.sqrt(spread))
    return Reliability(
        m, float(alpha), low, high, float(omega), float(omega_low), float(omega_high), item_rest
    )


def _feldt(alpha: float, n: int, m: int) -> tuple[float, float]:
    """The 95% interval of α by the F distribution."""
    first, second = n - 1, (n - 1) * (m - 1)
    low = 1 - (1 - alpha) * stats.f.ppf(0.975, first, second)
    high = 1 - (1 - alpha) * stats.f.ppf(0.025, first, second)
    return float(low), float(high)


def _omega(R: Floats) -> float:
    """ω total of one factor: the share of the sum's variance that is not unique."""
    return float(1 - extract(R, 1).uniquenesses.sum() / R.sum())


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
            count = np.maximum((O * w[:, None]).T @ O, 1.0)
            total = (Z * w[:, None]).T @ O
            square = ((Z**2) * w[:, None]).T @ O - total**2 / count
            cross = (Z * w[:, None]).T @ Z - total * total.T / count
            with np.errstate(invalid="ignore", divide="ignore"):
                R[b] = cross / np.sqrt(square * square.T)
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
