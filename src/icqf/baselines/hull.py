"""How many factors, from the elbow of fit against parameters: the Hull method."""

from __future__ import annotations

import math
import warnings

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from icqf.baselines.correlation import CorrelationKind, Floats, is_positive_definite, kmo
from icqf.baselines.count import FactorCount
from icqf.baselines.extraction import degrees_of_freedom, extract
from icqf.baselines.retention import RandomState, largest_count, parallel_analysis, read_answers
from icqf.errors import InputError, counted

FEWEST = 3  # the last number of factors has no elbow, and a choice between one and one is none


def hull_method(
    X: npt.ArrayLike,
    *,
    max_components: int | None = None,
    n_iter: int = 100,
    correlation: CorrelationKind = "pairwise",
    random_state: RandomState = None,
) -> FactorCount:
    """Hull method: the number of factors after which more of them hardly add to the fit.

    Factors are extracted by minimum residual, and fit is the common part accounted for (CAF): 1 less the
    Kaiser-Meyer-Olkin measure of what the factors leave between the items. Of the numbers of factors on the
    upper convex hull of fit against parameters, the one with the sharpest elbow is chosen.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer.
    max_components : int, optional
        The largest number of factors looked at, which cannot be chosen itself. Default: one more than
        parallel analysis of components keeps, at least 3.
    n_iter : int, default=100
        Random data sets of that parallel analysis.
    correlation : {"pairwise", "em", "polychoric"}, default="pairwise"
        See `icqf.baselines.item_moments`.
    random_state : int, Generator or None
        For the parallel analysis.

    Returns
    -------
    FactorCount
        The curve starts at 0 factors and has the columns `caf`, `parameters`, and `elbow` (how much steeper
        the fit rises before than after; NaN off the hull and at its ends).

    References
    ----------
    U. Lorenzo-Seva, M. E. Timmerman, H. A. L. Kiers (2011). The Hull method for selecting the number of
    common factors. Multivariate Behavioral Research 46, 340-364.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(3), np.full((1, 5), 0.7))
    >>> X = rng.normal(size=(400, 3)) @ loadings + 0.7 * rng.normal(size=(400, 15))
    >>> hull_method(X, random_state=0).n_components
    3
    """
    answers, moments = read_answers(X, correlation)
    R, m = moments.correlation, answers.shape[1]
    identified = max((k for k in range(1, m) if degrees_of_freedom(m, k) >= 0), default=0)
    if identified < 2:
        raise InputError(f"{m} items are too few for the Hull method; at least 5 are needed.")
    if not is_positive_definite(R):
        raise InputError(
            f"The correlation matrix of {m} items from {len(answers)} participants is not positive definite, "
            "so the Hull method cannot measure fit; use correlation='em', more participants, or fewer items."
        )
    if max_components is None:
        kept = parallel_analysis(
            answers, n_iter=n_iter, kind="pc", correlation=correlation, random_state=random_state
        )
        most = min(max(kept.n_components + 1, FEWEST), identified)
    else:
        most = largest_count(max_components, identified, identified)
    fit = np.array([_common_part(R, k) for k in range(most + 1)])
    k = np.arange(most + 1)
    parameters = m * k - k * (k - 1) // 2
    on_hull = upper_hull(parameters, fit)
    elbow = np.full(most + 1, math.nan)
    for before, here, after in zip(on_hull, on_hull[1:], on_hull[2:], strict=False):
        elbow[here] = _slope(parameters, fit, before, here) / _slope(parameters, fit, here, after)
    curve = pd.DataFrame({"n_components": k, "caf": fit, "parameters": parameters, "elbow": elbow})
    if np.isnan(elbow).all():
        best = on_hull[-1]
        reason = (
            f"There is no elbow between 0 and {counted(most, 'factor')}; {best} accounted for the largest "
            f"common part ({fit[best]:.2f})."
        )
    else:
        best = int(np.nanargmax(elbow))
        reason = (
            f"Up to {counted(best, 'factor')} the fit rises {elbow[best]:.1f} times as fast, for each "
            f"parameter, as after (the sharpest elbow of 1 to {most - 1})."
        )
    return FactorCount("Hull method", best, curve, reason, value="caf")


def _common_part(R: Floats, k: int) -> float:
    """1 less the KMO of what `k` factors leave; NaN where that has none."""
    left = R.copy()
    if k:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of a fit that is good to five digits
            L = extract(R, k, tol=1e-6).loadings
        left -= L @ L.T
        np.fill_diagonal(left, 1.0)
    return 1.0 - kmo(left).overall


def upper_hull(x: npt.ArrayLike, y: npt.ArrayLike) -> list[int]:
    """Places of the points, x ascending, that are above all earlier ones and on the upper convex hull.

    Examples
    --------
    >>> upper_hull([0, 1, 2, 3, 4], [0.0, 0.5, 0.4, 0.7, 0.75])
    [0, 1, 3, 4]
    """
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    found: list[int] = []
    for i in np.flatnonzero(~np.isnan(up)).tolist():
        if found and up[i] <= up[found[-1]]:
            continue
        while len(found) > 1 and _slope(across, up, found[-2], found[-1]) <= _slope(across, up, found[-1], i):
            found.pop()
        found.append(i)
    return found


def _slope(x: npt.NDArray[np.floating], y: npt.NDArray[np.floating], i: int, j: int) -> float:
    return float((y[j] - y[i]) / (x[j] - x[i]))
