"""Correlations with missing answers, KMO and Bartlett's test."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from sklearn.exceptions import ConvergenceWarning

from icqf.baselines import bartlett_sphericity, item_moments, kmo
from icqf.errors import InputError


def test_pairwise_equals_pandas(gappy):
    moments = item_moments(gappy)
    frame = pd.DataFrame(gappy)
    np.testing.assert_allclose(moments.correlation, frame.corr(), atol=1e-13)
    np.testing.assert_allclose(moments.mean, frame.mean(), atol=1e-13)
    np.testing.assert_allclose(moments.scale, frame.std(), atol=1e-13)


@pytest.mark.parametrize("kind", ["pairwise", "em"])
def test_complete_data_gives_pearson(three_factors, kind):
    moments = item_moments(three_factors, correlation=kind)
    np.testing.assert_allclose(moments.correlation, np.corrcoef(three_factors.T), atol=1e-13)
    np.testing.assert_allclose(moments.mean, three_factors.mean(axis=0), atol=1e-13)
    np.testing.assert_allclose(moments.scale, three_factors.std(axis=0, ddof=1), atol=1e-13)


def test_em_maximises_the_likelihood_of_the_observed_answers(gappy):
    X = gappy[:150, :4]
    X = X[~np.isnan(X).all(axis=1)]
    n = len(X)

    def negative_log_likelihood(theta):
        factor = np.zeros((4, 4))
        factor[np.tril_indices(4)] = theta[4:]
        cov = factor @ factor.T
        total = 0.0
        for x in X:
            o = ~np.isnan(x)
            total -= stats.multivariate_normal.logpdf(x[o], theta[:4][o], cov[np.ix_(o, o)])
        return total

    found = item_moments(X, correlation="em", tol=1e-10)
    cov = found.correlation * np.outer(found.scale, found.scale) * (n - 1) / n
    theta = np.r_[found.mean, np.linalg.cholesky(cov)[np.tril_indices(4)]]
    slope = optimize.approx_fprime(theta, negative_log_likelihood, 1e-5)
    central = [
        (negative_log_likelihood(theta + step) - negative_log_likelihood(theta - step)) / 2e-4
        for step in 1e-4 * np.eye(len(theta))
    ]
    assert np.abs(slope).max() < 0.02
    assert np.abs(central).max() < 1e-4


def test_em_agrees_with_fiml_of_psych(bfi, golden):
    found = item_moments(bfi[golden["fiml"]["items"]], correlation="em")
    np.testing.assert_allclose(found.correlation, golden["fiml"]["correlation"], atol=1e-4)


def test_em_corrects_selection_where_pairwise_cannot():
    rng = np.random.default_rng(0)
    x = rng.normal(size=20000)
    y = 0.7 * x + np.sqrt(1 - 0.49) * rng.normal(size=20000)
    y[x > 0] = np.nan
    X = np.c_[x, y]
    assert item_moments(X, correlation="em").correlation[0, 1] == pytest.approx(0.7, abs=0.02)
    assert item_moments(X).correlation[0, 1] < 0.6


@pytest.mark.parametrize("kind", ["pairwise", "em"])
def test_scale_shift_permutation_and_empty_rows_change_nothing(gappy, kind):
    plain = item_moments(gappy, correlation=kind, tol=1e-9)
    order = np.random.default_rng(1).permutation(12)
    changed = np.vstack([3.0 * gappy[:, order] - 100.0, np.full((5, 12), np.nan)])
    moments = item_moments(changed, correlation=kind, tol=1e-9)
    np.testing.assert_allclose(moments.correlation, plain.correlation[np.ix_(order, order)], atol=1e-8)
    np.testing.assert_allclose(moments.mean, 3.0 * plain.mean[order] - 100.0, atol=1e-6)
    np.testing.assert_allclose(moments.scale, 3.0 * plain.scale[order], atol=1e-6)


def test_em_in_chunks_equals_em_at_once(gappy, monkeypatch):
    whole = item_moments(gappy, correlation="em").correlation
    monkeypatch.setattr("icqf.baselines.correlation._CHUNK", 30)
    np.testing.assert_allclose(item_moments(gappy, correlation="em").correlation, whole, atol=1e-12)


def test_em_says_when_it_did_not_converge(gappy):
    with pytest.warns(ConvergenceWarning, match="after 2 iterations"):
        item_moments(gappy, correlation="em", max_iter=2)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1, np.nan], [2, np.nan], [3, 1]], "Item 'b' has 1 answer"),
        ([[1, 5], [2, 5], [3, 5]], "Item 'b' has the same answer 5"),
        (
            [[1, np.nan], [2, np.nan], [np.nan, 5], [np.nan, 6]],
            "'a' and 'b' were both answered by 0 participants",
        ),
        ([[1, 5], [2, 5], [3, np.nan], [np.nan, 6]], "'.' and '.' do not vary among the 2 participants"),
    ],
)
def test_errors_name_the_item(X, message):
    with pytest.raises(ValueError, match=message):
        item_moments(X, names=["a", "b"])


def test_other_errors(gappy):
    with pytest.raises(ValueError, match="choose 'pairwise', 'em' or 'polychoric'"):
        item_moments(gappy, correlation="listwise")
    with pytest.raises(ValueError, match="participants-by-items table"):
        item_moments([1.0, 2.0])
    with pytest.raises(ValueError, match="there are 10 participants and 12 items"):
        item_moments(gappy[:10], correlation="em")
    with pytest.raises(ValueError, match="became singular"):
        item_moments(np.c_[gappy, gappy[:, 0] + 1.0], correlation="em", tol=0.0)


def test_kmo_and_bartlett_agree_with_psych(bfi, golden):
    R = item_moments(bfi).correlation
    adequacy, sphericity = kmo(R), bartlett_sphericity(R, len(bfi))
    assert adequacy.overall == pytest.approx(golden["kmo"]["overall"], abs=1e-8)
    np.testing.assert_allclose(adequacy.per_item, golden["kmo"]["per_item"], atol=1e-8)
    assert sphericity.chi2 == pytest.approx(golden["bartlett"]["chisq"], rel=1e-8)
    assert sphericity.dof == golden["bartlett"]["df"]
    assert sphericity.p_value == pytest.approx(golden["bartlett"]["p.value"])


def test_kmo_by_regression_residuals(three_factors):
    """Partial correlations are correlations of the residuals after regressing out all other items."""
    X = three_factors[:, :6] - three_factors[:, :6].mean(axis=0)
    R = np.corrcoef(X.T)
    r2 = p2 = 0.0
    for i in range(6):
        for j in range(6):
            if i != j:
                rest = np.delete(X, [i, j], axis=1)
                left = X[:, [i, j]] - rest @ np.linalg.lstsq(rest, X[:, [i, j]], rcond=None)[0]
                r2 += R[i, j] ** 2
                p2 += np.corrcoef(left.T)[0, 1] ** 2
    assert kmo(R).overall == pytest.approx(r2 / (r2 + p2))


def test_bartlett_is_calibrated():
    rng = np.random.default_rng(3)
    p = [bartlett_sphericity(np.corrcoef(rng.normal(size=(6, 80))), 80).p_value for _ in range(400)]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_singular_correlations_give_nan():
    R = np.ones((3, 3))
    assert np.isnan(kmo(R).overall) and np.isnan(kmo(R).per_item).all()
    assert np.isnan(bartlett_sphericity(R, 10).chi2) and np.isnan(bartlett_sphericity(R, 10).p_value)


@pytest.mark.parametrize("n", [200, 6])
@pytest.mark.parametrize("measure", [kmo, lambda given: bartlett_sphericity(given, 200)])
def test_answers_are_not_taken_for_correlations(measure, n):
    """Not even where there are as many participants as items."""
    answers = np.random.default_rng(0).integers(0, 5, (n, 6)).astype(float)
    with pytest.raises(InputError, match=rf"not {n} × 6 other numbers.*call .* with item_moments\(answers\)"):
        measure(answers)
