"""Tables with little or nothing in them are fitted without a stumble."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from icqf import ICQF
from icqf.core.start import Spectrum


def fit_quietly(model, answers):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*same answer from everybody|All loadings are 0")
        return model.fit(np.asarray(answers, dtype=float))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("init", "answer"), [("nndsvd", 0), ("rotated", 0), ("rotated", 3)])
def test_answers_all_alike(init, answer, dtype):
    answers = np.full((4, 3), answer)
    model = fit_quietly(ICQF(1, item_range=(0, 4), init=init, dtype=dtype, intercept=False), answers)
    scores = model.transform(answers)
    assert scores.min() >= 0 and scores.max() <= 1
    assert np.isfinite(model.objective_) and np.isfinite(model.components_).all()


@pytest.mark.parametrize("k", [1, 2])
def test_group_norms_near_zero(k):
    answers = [[1.760768, 0.0], [3.92763291, 3.61947512], [0.0, 3.54095065]]
    model = ICQF(
        k, item_range=(0, 4), beta=10.0, penalty="l21", solver="admm", dtype="float64", intercept=False
    )
    fit_quietly(model, answers)
    assert np.isfinite(model.objective_)


def test_items_in_separate_groups():
    """LAPACK returns nothing for the largest eigenvalue of [[8, 8, 0], [8, 16, 0], [0, 0, 32]] by itself."""
    answers = np.array([[0, 0, 4], [4, 4, 0], [0, 4, 0.0]])
    model = ICQF(1, item_range=(0, 4)).fit(answers, sample_weight=[2, 0.5, 0.5])
    assert np.isfinite(model.components_).all()


def test_as_many_factors_as_items_or_people():
    answers = np.random.default_rng(0).integers(0, 5, (3, 8))
    for table in (answers, answers.T):
        model = fit_quietly(ICQF(3, item_range=(0, 4), beta=0.0, max_iter=2000), table)
        assert -model.score(table.astype(float)) < 0.5


def test_one_person_and_one_item():
    model = fit_quietly(ICQF(1, item_range=(0, 4), beta=0.0), [[3.0]])
    assert model.score([[3.0]]) == pytest.approx(0, abs=1e-6)


def test_more_factors_than_the_table_has_rank():
    row = np.array([0, 1, 2, 3, 4.0])
    answers = np.outer([0, 0.5, 1, 1, 0.5, 0.25], row)
    model = fit_quietly(ICQF(3, item_range=(0, 4), beta=0.0, intercept=False, max_iter=3000), answers)
    assert np.isfinite(model.components_).all()
    assert -model.score(answers) < 1e-3


def test_a_spectrum_is_the_same_from_either_side(monkeypatch):
    """Fewer participants than items: the participants' products give the singular vectors of the items'."""
    rng = np.random.default_rng(0)
    answers = rng.uniform(0, 100, (25, 40))
    answers[rng.random(answers.shape) < 0.1] = np.nan
    model = ICQF(3, item_range=(0, 100), dtype="float64", smallest_category=1)
    problem = model.state(answers, sample_weight=rng.random(25) + 0.5).problem
    for centred in (False, True):
        found = Spectrum(problem, centred=centred)
        with monkeypatch.context() as patch:
            patch.setattr(Spectrum, "_of_participants", Spectrum._of_items)
            items = Spectrum(problem, centred=centred)
        assert found.right.shape == (40, 25)
        np.testing.assert_allclose(found.singular[:20], items.singular[:20], rtol=1e-8)
        overlap = np.abs((found.right[:, :10] * items.right[:, :10]).sum(axis=0))
        np.testing.assert_allclose(overlap, 1, atol=1e-8)


@pytest.mark.parametrize("shape", [(20, 400), (60, 1200)])
def test_many_more_items_than_participants(shape):
    """A bound stiffer than the few participants can carry made the loadings swing and never settle."""
    rng = np.random.default_rng(0)
    signal = rng.random((shape[0], 3)) @ rng.random((3, shape[1])) * 2
    answers = np.rint(np.clip(signal + rng.normal(0, 0.4, shape), 0, 4))
    assert ICQF(3, item_range=(0, 4)).fit(answers).converged_
