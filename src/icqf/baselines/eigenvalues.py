"""How many factors, from the eigenvalues of the correlations: the empirical Kaiser criterion and NEST."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from icqf.baselines.correlation import CorrelationKind, Floats, item_moments
from icqf.baselines.count import FactorCount
from icqf.baselines.extraction import Method, degrees_of_freedom, extract
from icqf.baselines.retention import RandomState, largest_count, read_answers, refuse_wide
from icqf.errors import InputError, counted


def eigenvalues(R: Floats) -> Floats:
    """Eigenvalues of a correlation matrix, largest first."""
    return np.asarray(linalg.eigvalsh(R, check_finite=False)[::-1], dtype=np.float64)


def empirical_kaiser(X: npt.ArrayLike, *, correlation: CorrelationKind = "pairwise") -> FactorCount:
    """Empirical Kaiser criterion: eigenvalues above what chance and the factors before them leave.

    Kaiser's "eigenvalue above 1" is right for infinitely many participants. Here the bar is the largest
    eigenvalue to expect of unrelated items in a sample of this size, ``(1 + sqrt(m / n))**2``, times the mean
    variance that the stronger factors leave over, and never below 1. Factors are counted up to the first that
    is not above its bar. Nothing is simulated.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer.
    correlation : {"pairwise", "em", "polychoric"}, default="pairwise"
        See `icqf.baselines.item_moments`.

    Returns
    -------
    FactorCount
        The curve has the columns `eigenvalue` and `reference`.

    References
    ----------
    J. Braeken, M. A. L. M. van Assen (2017). An empirical Kaiser criterion. Psychological Methods 22,
    450-466.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(3), np.full((1, 5), 0.7))
    >>> X = rng.normal(size=(400, 3)) @ loadings + 0.7 * rng.normal(size=(400, 15))
    >>> empirical_kaiser(X).n_components
    3
    """
    answers, moments = read_answers(X, correlation)
    n, m = answers.shape
    observed = eigenvalues(moments.correlation)
    left = (m - np.concatenate([[0.0], np.cumsum(observed)[:-1]])) / (m - np.arange(m))
    bar = np.maximum(left * (1 + np.sqrt(m / n)) ** 2, 1.0)
    # The eigenvalues have mean 1, so the last one cannot be above 1.
    n_components = int(np.flatnonzero(~(observed > bar))[0])
    curve = pd.DataFrame(
        {"n_components": np.arange(1, m + 1), "eigenvalue": observed, "reference": bar},
    )
    first = counted(n_components, "factor")
    against = f"(eigenvalue {observed[n_components]:.2f} against {bar[n_components]:.2f})"
    reason = (
        f"The first {first} exceed what {counted(n, 'participant')} and the stronger factors leave to "
        f"chance; factor {n_components + 1} does not {against}."
        if n_components
        else f"Not even the first factor exceeds what chance gives in {counted(n, 'participant')} {against}."
    )
    return FactorCount(
        "Empirical Kaiser criterion", n_components, curve, reason, value="eigenvalue", reference="reference"
    )


def nest(
    X: npt.ArrayLike,
    *,
    n_iter: int = 1000,
    quantile: float = 0.95,
    max_components: int | None = None,
    method: Method = "minres",
    correlation: CorrelationKind = "pairwise",
    random_state: RandomState = None,
) -> FactorCount:
    """Next eigenvalue sufficiency test: add factors until the next eigenvalue is no surprise.

    A model with no factor, one factor, two, ... is fitted, and samples of as many
    participants with the same missing answers are drawn from it. The model is sufficient when the next
    eigenvalue of the answers is not above the given quantile of the next eigenvalue of these samples. The
    first step is parallel analysis; later ones, unlike parallel analysis, take the factors already found into
    account.

    Answers are taken to be normal. Correlations of rare or yes/no answers vary more, so that factor follows
    factor; and after about a third of the items no model suffices, whatever the answers are: sampling makes
    the later eigenvalues smaller than the model's own, with which the answers' agree. A run that comes
    to where samples fail the test of the model they were drawn from is refused.

    Parameters
    ----------
    X : array-like of shape (n_participants, n_items)
        Answers; NaN is a missing answer.
    n_iter : int, default=1000
        Samples drawn from each model.
    quantile : float, default=0.95
        The quantile of the samples' eigenvalues to beat.
    max_components : int, optional
        Default: as many factors as the items can identify.
    method : {"minres", "ml"}, default="minres"
        How the factors are extracted.
    correlation : {"pairwise", "em", "polychoric"}, default="pairwise"
        See `icqf.baselines.item_moments`.
    random_state : int, Generator or None
        An integer makes the result repeatable.

    Returns
    -------
    FactorCount
        The curve has one row for each eigenvalue tested, and the columns `eigenvalue`, `random_eigenvalue`
        (the quantile) and `p_value` (the share of samples whose eigenvalue is at least as large).

    References
    ----------
    A. Achim (2017). Testing the number of required dimensions in exploratory factor analysis. The
    Quantitative Methods for Psychology 13, 64-74.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> loadings = np.kron(np.eye(3), np.full((1, 5), 0.7))
    >>> X = rng.normal(size=(400, 3)) @ loadings + 0.7 * rng.normal(size=(400, 15))
    >>> nest(X, n_iter=100, random_state=0).n_components
    3
    """
    if n_iter < 1:
        raise InputError(f"n_iter is {n_iter}; at least one sample of each model is needed.")
    if not 0 < quantile < 1:
        raise InputError(f"quantile is {quantile}; choose a number between 0 and 1, such as 0.95.")
    answers, moments = read_answers(X, correlation)
    R, m = moments.correlation, answers.shape[1]
    if m < 3:
        raise InputError(f"{m} items are too few for NEST; at least 3 are needed.")
    refuse_wide(answers, "NEST")
    identified = max(k for k in range(1, m) if degrees_of_freedom(m, k) >= 0)
    most = largest_count(max_components, identified, identified)
    rng = np.random.default_rng(random_state)
    observed, missing = eigenvalues(R), np.isnan(answers)
    rows = []
    for k in range(most + 1):
        covariance = _model(R, k, method)
        drawn = np.array([_next(_sample(covariance, missing, correlation, rng), k) for _ in range(n_iter)])
        bar = float(np.quantile(drawn, quantile))
        rows.append((k + 1, observed[k], bar, float(np.mean(drawn >= observed[k]))))
        if not observed[k] > bar:
            break
        if k and bar < _next(_as_correlation(covariance), k):
            raise InputError(
                f"NEST finds no number of factors for these answers: {counted(k, 'factor')} did not suffice, "
                "and from here on samples of a model fail the test of that very model. NEST takes answers to "
                "be normal, and rare or yes/no answers vary more than that.",
                remedy="Use comparison data, which keeps each item's own answers, or cross-validation.",
            )
    curve = pd.DataFrame(rows, columns=["n_components", "eigenvalue", "random_eigenvalue", "p_value"])
    sufficient = not observed[k] > bar
    against = f"(eigenvalue {observed[k]:.2f} against {bar:.2f} in {quantile:.0%} of {n_iter} samples)"
    if k == 0 and sufficient:
        reason = f"The first factor is no stronger than in samples of unrelated items {against}."
    elif sufficient:
        reason = (
            f"In samples from a model with {counted(k, 'factor')} the next one is as strong as in these "
            f"answers {against}; fewer factors did not suffice."
        )
    else:
        reason = (
            f"Even {counted(k, 'factor')} did not suffice {against}, and models with more were not looked at."
        )
    return FactorCount("NEST", k, curve, reason, value="eigenvalue", reference="random_eigenvalue")


def _model(R: Floats, k: int, method: Method) -> Floats:
    """Covariances of the `k`-factor model of a correlation matrix."""
    if k == 0:
        return np.eye(len(R))
    with warnings.catch_warnings():
        # A fit that stops a little early changes the model less than the sampling does.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = extract(R, k, method=method, tol=1e-6)
    return fitted.loadings @ fitted.loadings.T + np.diag(fitted.uniquenesses)


def _as_correlation(covariance: Floats) -> Floats:
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def _sample(
    covariance: Floats,
    missing: npt.NDArray[np.bool_],
    correlation: CorrelationKind,
    rng: np.random.Generator,
) -> Floats:
    """Correlations of a normal sample with these covariances and missing answers."""
    n, m = missing.shape
    root = linalg.cholesky(covariance, lower=True, check_finite=False)
    if missing.any():
        drawn = rng.standard_normal((n, m)) @ root.T
        drawn[missing] = np.nan
        return item_moments(drawn, correlation=correlation).correlation
    # Without missing answers the sums of squares and products alone can be drawn (Bartlett's decomposition
    # of the Wishart distribution), which does not depend on the number of participants.
    A = np.tril(rng.standard_normal((m, m)), -1)
    A[np.diag_indices(m)] = np.sqrt(rng.chisquare(n - 1 - np.arange(m)))
    half = root @ A
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    return half @ half.T


def _next(R: Floats, k: int) -> float:
    at = len(R) - 1 - k
    return float(linalg.eigvalsh(R, subset_by_index=(at, at), check_finite=False)[0])
