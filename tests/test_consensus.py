"""The consensus of resampled fits: inside all bounds, the same each time, and a model like any other."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from icqf import ICQF, consensus
from icqf.datasets import make_synthetic
from icqf.errors import InputError, InputWarning
from icqf.resampling import match_factors


@pytest.fixture(scope="module")
def data():
    return make_synthetic(80, 30, 3, noise=0.2, missing=0.1, confounded=True, random_state=0)


@pytest.fixture(scope="module")
def participants(data):
    age, sex = data.confounds.T
    return pd.DataFrame({"age": age, "sex": np.where(sex > 0, "Female", "Male")})


@pytest.fixture(scope="module")
def model(data, participants):
    model = ICQF(3, item_range=(0, 100), smallest_category=10, max_iter=3000)
    return model.fit(data.answers, confounds=participants)


def stable(model, data, participants, **options):
    return consensus(model, data.answers, confounds=participants, **({"n_resamples": 5} | options))


@pytest.mark.parametrize("refit", ["scores", "all"])
def test_every_bound_holds_exactly(model, data, participants, refit):
    found = stable(model, data, participants, refit=refit)
    scores = found.transform(data.answers, confounds=participants)
    loadings = np.concatenate([found.components_, found.confound_loadings_.to_numpy().T])
    assert scores.min() >= 0 and scores.max() <= 1
    assert loadings.min() >= 0 and loadings.max() <= 100
    ages = participants["age"]
    low, high = np.floor(ages.min()), np.ceil(ages.max())  # whole years, rounded outward
    age = (ages - low) / (high - low)
    women = participants["sex"] == "Female"
    design = np.column_stack([scores, age, 1 - age, women, ~women, np.ones(len(age))]).astype(float)
    R = design @ loadings
    assert R.min() >= 0 and R.max() <= 100
    assert found.certificate_.excess == 0


@pytest.mark.parametrize("refit", ["scores", "all"])
def test_agreement_is_a_correlation_for_each_factor(model, data, participants, refit):
    found = stable(model, data, participants, refit=refit)
    assert found.agreement_.shape == (3,)
    assert found.agreement_.min() >= -1 and found.agreement_.max() <= 1
    assert found.agreement_.mean() > 0.8  # there are three factors


def test_refitting_all_ends_with_a_certificate_that_holds(model, data, participants):
    found = stable(model, data, participants, refit="all")
    assert found.converged_ and found.certificate_.holds(model.tol) and found.n_iter_ > 0
    average = stable(model, data, participants, refit="scores")
    assert average.converged_ == average.certificate_.holds(model.tol) and average.n_iter_ == 0
    assert found.objective_ < average.objective_


@pytest.mark.parametrize("refit", ["scores", "all"])
def test_same_seed_same_bytes_whatever_the_jobs(model, data, participants, refit):
    one, again, two = (stable(model, data, participants, refit=refit, n_jobs=jobs) for jobs in (1, 1, 2))
    for other in (again, two):
        assert one.components_.tobytes() == other.components_.tobytes()
        assert one.agreement_.tobytes() == other.agreement_.tobytes()
    other = stable(model, data, participants, refit=refit, random_state=1)
    assert one.components_.tobytes() != other.components_.tobytes()


def test_it_is_a_model_like_any_other_and_the_first_is_left_alone(model, data, participants, tmp_path):
    before, parameters = model.components_.tobytes(), model.get_params()
    found = stable(model, data, participants, refit="all")
    assert model.components_.tobytes() == before and model.get_params() == parameters
    assert isinstance(found, ICQF) and found.get_params() == parameters
    assert match_factors(found, model).mean > 0.95
    found.save(tmp_path / "model.icqf")
    again = ICQF.load(tmp_path / "model.icqf")
    scores = found.transform(data.answers, confounds=participants)
    np.testing.assert_array_equal(again.transform(data.answers, confounds=participants), scores)


def test_clean_data_leave_nothing_to_average():
    data = make_synthetic(120, 30, 3, random_state=0)
    answers = data.scores @ data.loadings.T / 2
    answers = answers[:, answers.max(axis=0) > 0]
    model = ICQF(3, beta=0.01, item_range=(0, 100), max_iter=5000).fit(answers)
    found = consensus(model, answers, n_resamples=4)
    assert found.agreement_.min() > 0.995
    assert match_factors(found, model).min > 0.995


def test_several_starts_do_not_drive_out_the_average(model, data, participants):
    """With n_init=5 the refit still goes on from the averaged loadings."""
    usual = stable(model, data, participants, refit="all")
    model.set_params(n_init=5)
    try:
        found = stable(model, data, participants, refit="all")
    finally:
        model.set_params(n_init=1)
    assert found.components_.tobytes() == usual.components_.tobytes()
    assert found.n_init == 5


def test_weights_count(model, data, participants):
    """Weights of 0 are participants left out."""
    weights = np.ones(len(participants))
    weights[60:] = 0
    weighted = consensus(model, data.answers, confounds=participants, sample_weight=weights, n_resamples=3)
    assert weighted.n_participants_ == 60


def test_a_factor_that_nobody_has_agrees_with_nothing(data):
    """A heavy penalty leaves empty factors; their agreement is 0, without a warning."""
    with pytest.warns(InputWarning, match="All loadings are 0"):
        model = ICQF(3, beta=60.0, item_range=(0, 100), max_iter=3000).fit(data.answers)
    empty = (model.components_ == 0).all(axis=1)
    assert empty.any()
    found = consensus(model, data.answers, n_resamples=3)
    assert (found.agreement_[(found.components_ == 0).all(axis=1)] == 0).all()
    assert np.isfinite(found.agreement_).all()


def test_what_cannot_be(model, data, participants):
    with pytest.raises(NotFittedError):
        consensus(ICQF(3), data.answers)
    with pytest.raises(InputError, match="n_resamples must be at least 2, not 1"):
        stable(model, data, participants, n_resamples=1)
    with pytest.raises(InputError, match="refit='loadings' is not known; choose 'scores' or 'all'"):
        stable(model, data, participants, refit="loadings")
    with pytest.raises(InputError, match=r"fitted with the confounds \['Old', .*give the confounds it was"):
        consensus(model, data.answers)
