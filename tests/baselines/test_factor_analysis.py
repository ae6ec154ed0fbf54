"""FactorAnalysis against psych on the bfi answers, laws, and scikit-learn's own checks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from icqf.baselines import FactorAnalysis, bic_factor_analysis, parallel_analysis, velicer_map
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
    with pytest.warns(UserWarning, match=r"1 of 4 participants answered nothing \(the first is row 2"):
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
        ({"scores": "bartlett"}, "only 'regression'"),
        ({"method": "pa"}, "method is 'pa'"),
        ({"correlation": "tetrachoric"}, "correlation is 'tetrachoric'"),
        ({"correlation": "polychoric"}, "different answers, and polychoric correlations are for items with"),
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
