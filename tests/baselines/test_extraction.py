"""Minres and maximum likelihood against plain optimisation of their objectives."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from icqf.baselines.correlation import item_moments
from icqf.baselines.factor_analysis import Extraction, _Residual, degrees_of_freedom, extract, fit_statistics


def off_diagonal_misfit(R, L):
    D = R - L @ L.T
    return np.sum(np.tril(D, -1) ** 2)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_minres_is_the_least_squares_optimum(three_factors, k):
    R = np.corrcoef(three_factors.T)
    found = extract(R, k)
    start = found.loadings + 0.05 * np.random.default_rng(0).normal(size=found.loadings.shape)
    plain = optimize.minimize(
        lambda l: off_diagonal_misfit(R, l.reshape(-1, k)),
        start.ravel(),
        method="BFGS",
        options={"gtol": 1e-7},
    )
    assert off_diagonal_misfit(R, found.loadings) <= plain.fun + 1e-10
    L = plain.x.reshape(-1, k)
    np.testing.assert_allclose(found.loadings @ found.loadings.T, L @ L.T, atol=1e-4)
    np.testing.assert_allclose(1 - np.sum(found.loadings**2, axis=1), found.uniquenesses, atol=1e-7)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_ml_is_the_likelihood_optimum(three_factors, k):
    R = np.corrcoef(three_factors.T)
    m = len(R)

    def discrepancy(theta):
        S = theta[m:].reshape(m, k) @ theta[m:].reshape(m, k).T + np.diag(np.exp(theta[:m]))
        return np.linalg.slogdet(S)[1] + np.trace(np.linalg.solve(S, R)) - np.linalg.slogdet(R)[1] - m

    found = extract(R, k, method="ml")
    theta = np.r_[np.log(found.uniquenesses), found.loadings.ravel()]
    plain = optimize.minimize(discrepancy, theta + 0.02, method="BFGS")
    assert discrepancy(theta) <= plain.fun + 1e-8
    assert fit_statistics(R, found.loadings @ found.loadings.T, k, 400).chi2 == pytest.approx(
        discrepancy(theta) * (400 - 1 - (2 * m + 5) / 6 - 2 * k / 3), rel=1e-4
    )


@pytest.mark.parametrize("method", ["minres", "ml"])
def test_exact_model_is_recovered(method):
    rng = np.random.default_rng(1)
    L = rng.uniform(-0.6, 0.6, size=(15, 3))
    R = L @ L.T
    np.fill_diagonal(R, 1.0)
    found = extract(R, 3, method=method)
    np.testing.assert_allclose(found.loadings @ found.loadings.T, L @ L.T, atol=1e-5)
    np.testing.assert_allclose(found.uniquenesses, 1 - np.sum(L**2, axis=1), atol=1e-5)


def test_curvature_is_the_derivative_of_the_slope(three_factors):
    R = np.corrcoef(three_factors.T)
    psi = np.random.default_rng(2).uniform(0.2, 0.9, size=12)
    now = _Residual.at(R, psi, 2)
    for j in range(12):
        step = 1e-5 * np.eye(12)[j]
        up, down = _Residual.at(R, psi + step, 2), _Residual.at(R, psi - step, 2)
        assert (up.value - down.value) / 2e-5 == pytest.approx(now.slope[j], abs=1e-7)
        np.testing.assert_allclose((up.slope - down.slope) / 2e-5, now.curvature()[j], atol=1e-6)


@pytest.mark.parametrize("method", ["minres", "ml"])
@pytest.mark.parametrize("seed", range(5))
def test_random_data_with_too_many_factors_still_converges(method, seed):
    """Uniquenesses at their lower bound: no warning, and no slope that could still be followed."""
    R = np.corrcoef(np.random.default_rng(seed).normal(size=(10, 60)))
    found = extract(R, 5, method=method)
    assert found.uniquenesses.min() >= 0.005 - 1e-12
    if method == "minres":
        slope = _Residual.at(R, found.uniquenesses, 5).slope
        inside = found.uniquenesses > 0.005
        assert np.abs(slope[inside]).max() < 1e-7
        assert np.all(slope[~inside] > -1e-7)


def test_minres_copes_with_singular_correlations():
    X = np.random.default_rng(4).normal(size=(12, 20))
    X[:, 10:] += X[:, :1]
    found = extract(np.corrcoef(X.T), 2)
    assert isinstance(found, Extraction) and np.isfinite(found.loadings).all()


def test_fit_and_uniquenesses_agree_with_psych(bfi, golden):
    R = item_moments(bfi).correlation
    for method, tolerance in (("minres", 0.02), ("ml", 1e-4)):
        for k, bic in zip(golden["bic"]["n_components"], golden["bic"][method], strict=True):
            L = extract(R, k, method=method).loadings
            assert fit_statistics(R, L @ L.T, k, len(bfi)).bic == pytest.approx(bic, abs=tolerance)
    psi = extract(R, 5, method="ml").uniquenesses
    np.testing.assert_allclose(psi, golden["ml"]["varimax"]["uniquenesses"], atol=5e-5)


def test_degrees_of_freedom():
    assert degrees_of_freedom(25, 5) == 185
    assert degrees_of_freedom(3, 1) == 0


def test_errors_and_warnings(three_factors):
    R = np.corrcoef(three_factors.T)
    with pytest.raises(ValueError, match="between 1 and 12"):
        extract(R, 13)
    with pytest.raises(ValueError, match="choose 'minres' or 'ml'"):
        extract(R, 2, method="pa")
    with pytest.raises(ValueError, match="not positive definite"):
        extract(np.ones((3, 3)), 1, method="ml")
    with pytest.warns(ConvergenceWarning, match="minres extraction stopped after 1 iterations"):
        extract(R, 3, max_iter=1)
    assert np.isnan(fit_statistics(np.ones((4, 4)), np.ones((4, 4)), 1, 50).bic)
