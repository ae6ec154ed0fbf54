"""The consensus of resampled fits: inside all bounds, the same each time, and a model like any other."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from icqf import ICQF, consensus
from icqf.datasets import make_synthetic
from icqf.errors import InputError, InputWarning
from icqf.resampling import bootstrap, match_factors
from icqf.resampling.bootstrap import agreement_of, best_fits
from icqf.resampling.folds import drawn_counts, halves_of
from icqf.resampling.matching import correlations


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


def test_every_bound_holds_exactly(model, data, participants):
    found = stable(model, data, participants)
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


def test_its_loadings_are_the_average_of_fits_to_drawn_participants(model, data):
    """Worked out again by hand: draws, a fit from each of two starts, matching, the mean."""
    model = ICQF(3, item_range=(0, 100), dtype="float64").fit(data.answers)
    found = consensus(model, data.answers, n_resamples=3, random_state=5)
    seed = np.random.RandomState(5).randint(2**31 - 1)
    rng, fits = np.random.default_rng(seed), []
    for _ in range(3):
        counts = rng.multinomial(80, np.full(80, 1 / 80))
        tries = [
            ICQF(
                3,
                item_range=(0, 100),
                init=init,
                n_init=1,
                reconstruction_max=None,
                dtype="float64",
                tol=1e-4,
            ).fit(data.answers, sample_weight=counts)
            for init in ("nndsvd", "rotated")
        ]
        best = min(tries, key=lambda each: each.objective_)
        pairs = match_factors(model, best, method="optimal").pairs.set_index("factor_a")["factor_b"]
        order = [list(best.loadings_).index(pairs[name]) for name in model.loadings_]
        fits.append(best.components_[order])
    np.testing.assert_allclose(
        np.sort(found.components_, axis=0), np.sort(np.mean(fits, axis=0), axis=0), atol=1.5
    )


def test_it_says_how_many_fits_it_averages_and_how_far_it_is_from_a_minimum(model, data, participants):
    found = stable(model, data, participants)
    assert found.n_averaged_ == 5 and model.n_averaged_ == 0
    assert found.converged_ == found.certificate_.holds(model.tol) and found.n_iter_ == 0
    assert found.objective_ > model.objective_


def test_same_seed_same_bytes_whatever_the_jobs(model, data, participants):
    one, again, two = (stable(model, data, participants, n_jobs=jobs) for jobs in (1, 1, 2))
    for other in (again, two):
        assert one.components_.tobytes() == other.components_.tobytes()
    other = stable(model, data, participants, random_state=1)
    assert one.components_.tobytes() != other.components_.tobytes()


def test_it_is_a_model_like_any_other_and_the_first_is_left_alone(model, data, participants, tmp_path):
    before, parameters = model.components_.tobytes(), model.get_params()
    found = stable(model, data, participants)
    assert model.components_.tobytes() == before and model.get_params() == parameters
    assert isinstance(found, ICQF) and found.get_params() == parameters
    assert match_factors(found, model).mean > 0.95
    found.save(tmp_path / "model.icqf")
    again = ICQF.load(tmp_path / "model.icqf")
    assert again.n_averaged_ == 5
    scores = found.transform(data.answers, confounds=participants)
    np.testing.assert_array_equal(again.transform(data.answers, confounds=participants), scores)


def test_clean_data_leave_nothing_to_average():
    data = make_synthetic(120, 30, 3, random_state=0)
    answers = data.scores @ data.loadings.T / 2
    answers = answers[:, answers.max(axis=0) > 0]
    model = ICQF(3, beta=0.01, item_range=(0, 100), max_iter=5000).fit(answers)
    assert match_factors(consensus(model, answers, n_resamples=4), model).min > 0.995


def test_weights_count(model, data, participants):
    """Weights of 0 are participants left out."""
    weights = np.ones(len(participants))
    weights[60:] = 0
    weighted = consensus(model, data.answers, confounds=participants, sample_weight=weights, n_resamples=3)
    assert weighted.n_participants_ == 60


def test_groups_are_drawn_whole(model, data, participants):
    """A group of one for each participant is no group at all; larger ones are drawn together."""
    alone = stable(model, data, participants).components_.tobytes()
    eights = np.arange(len(participants)) // 8
    assert stable(model, data, participants, groups=eights).components_.tobytes() != alone
    ones = [f"{number:02d}" for number in range(len(participants))]
    assert stable(model, data, participants, groups=ones).components_.tobytes() == alone


def test_a_factor_that_nobody_has_stays_empty(data):
    with pytest.warns(InputWarning, match="All loadings are 0"):
        model = ICQF(3, beta=60.0, item_range=(0, 100), max_iter=3000).fit(data.answers)
    found = consensus(model, data.answers, n_resamples=3)
    assert (found.components_ == 0).all(axis=1).any() and np.isfinite(found.components_).all()


def test_what_cannot_be(model, data, participants):
    with pytest.raises(NotFittedError):
        consensus(ICQF(3), data.answers)
    with pytest.raises(InputError, match="n_resamples must be at least 2, not 1"):
        stable(model, data, participants, n_resamples=1)
    with pytest.raises(InputError, match="one group for each of the 80 rows"):
        stable(model, data, participants, groups=[1, 2])
    with pytest.raises(InputError, match=r"fitted with the confounds \['Old', .*give the confounds it was"):
        consensus(model, data.answers)


# --- agreement over resamples that are fitted afresh --------------------------------------------------


@pytest.fixture(scope="module")
def problem():
    answers = make_synthetic(n=150, m=30, k=3, noise=0.1, random_state=0).answers
    return ICQF(3, item_range=(0, 100)).state(answers).problem


@pytest.fixture(scope="module")
def models(problem):
    two, three = best_fits(problem, [(2, 0.1), (3, 0.1)])
    return [(0.1, two[:2]), (0.1, three[:3])]


def agreements(problem, models, **options):
    """Agreement of halves (6, k), and with resamples (6, k) below it, of each model."""
    found = agreement_of(problem, models, n_halves=6, n_resamples=6, rng=np.random.default_rng(0), **options)
    return [np.concatenate(each) for each in found]


def test_true_factors_are_found_again_and_made_up_ones_are_not(problem, models):
    _, true = agreements(problem, models)
    assert true.shape == (12, 3) and true.min() > 0.9
    made_up = np.random.default_rng(1).uniform(0, 100, models[1][1].shape)
    (found,) = agreements(problem, [(0.1, made_up)])
    assert found.mean() < 0.5


def test_models_do_not_depend_on_each_other_and_not_on_processes(problem, models):
    both = agreements(problem, models)
    for one, model in zip(both, models, strict=True):
        np.testing.assert_array_equal(one, agreements(problem, [model])[0])
    for one, other in zip(both, agreements(problem, models, n_jobs=2), strict=True):
        np.testing.assert_array_equal(one, other)


def test_permuting_a_models_factors_permutes_its_agreement(problem, models):
    _, (beta, loadings) = models
    (straight,) = agreements(problem, [(beta, loadings)])
    (permuted,) = agreements(problem, [(beta, loadings[[2, 0, 1]])])
    np.testing.assert_array_equal(permuted, straight[:, [2, 0, 1]])


def test_resamples_are_drawn_with_replacement_and_in_whole_groups():
    counts = drawn_counts(50, None, np.random.default_rng(0))
    assert counts.sum() == 50 and counts.max() > 1 and counts.min() == 0
    groups = np.repeat(np.arange(10), 5)
    together = drawn_counts(50, groups, np.random.default_rng(0))
    assert all(len(set(together[groups == group])) == 1 for group in range(10))


def test_halves_share_no_participant_and_are_compared_with_each_other(problem, models):
    """As a reader would do it: fit one half, fit the other, and correlate the factors' counterparts."""
    beta, loadings = models[1]
    rng = np.random.default_rng(0)
    for _ in range(6):
        drawn_counts(problem.n, None, rng)
    half = halves_of(problem, rng=rng)
    sides = [best_fits(problem.of_rows(np.flatnonzero(half == side)), [(3, beta)])[0] for side in (0, 1)]
    best = correlations(*(side[:3] for side in sides)).max(axis=1)
    (found,) = agreement_of(
        problem, [(beta, loadings)], n_halves=6, n_resamples=6, rng=np.random.default_rng(0)
    )
    np.testing.assert_allclose(np.sort(found.halves[0]), np.sort(best), atol=1e-6)


def test_halves_of_noise_do_not_agree_though_resamples_do():
    """Resamples share the errors of their sample; that is why they alone promise too much."""
    noise = np.random.default_rng(0).integers(0, 5, (300, 20)).astype(float)
    problem = ICQF(2, item_range=(0, 4)).state(noise).problem
    (loadings,) = best_fits(problem, [(2, 0.1)])
    (found,) = agreement_of(problem, [(0.1, loadings[:2])], n_resamples=10, rng=np.random.default_rng(0))
    assert found.resampled.mean() > found.halves.mean() + 0.3 and found.halves.mean() < 0.3


def test_of_two_starts_the_better_objective_counts(problem):
    (loadings,) = best_fits(problem, [(3, 0.1)])
    free = problem.with_beta(0.1).without_reconstruction_bound()
    from icqf.core.start import Starts
    from icqf.engines.choice import run
    from icqf.resampling import tolerances

    fits = [
        run(free, Starts(free).make(name, 3), tol=tolerances.RESAMPLE, max_iter=300, exact=False)[0]
        for name in ("nndsvd", "rotated")
    ]
    best = min(fits, key=lambda fit: fit.trace.objective[-1])
    np.testing.assert_array_equal(loadings, best.factors.loadings)


def test_a_factor_is_never_matched_with_a_confound(monkeypatch):
    factor, other = np.array([[3.0, 1.0, 0.0, 2.0]]), np.array([[0.0, 3.0, 2.0, 1.0]])
    confound = factor  # the fit has lost the factor, and its intercept has taken its shape
    monkeypatch.setattr(bootstrap, "best_fits", lambda *_, **__: [np.concatenate([other, confound])])
    assert bootstrap.fresh_agreement(None, factor, 0.1)[0] < 0
