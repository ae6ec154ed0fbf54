"""Agreement between halves: 1 when there is one answer to find, less when factors are made up."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

from icqf import ICQF
from icqf.datasets import make_synthetic
from icqf.resampling.bootstrap import stability_curve
from icqf.resampling.folds import halves_of


@pytest.fixture(scope="module")
def problem():
    """Three factors without noise: nothing is above the range, so nothing was clipped."""
    data = make_synthetic(120, 30, 3, random_state=0)
    answers = data.scores @ data.loadings.T / 2
    answers = answers[:, answers.max(axis=0) > 0]
    return ICQF(1, item_range=(0, 100), dtype="float64").state(answers).problem


@pytest.fixture(scope="module")
def noisy():
    data = make_synthetic(80, 30, 3, noise=0.2, missing=0.1, random_state=0)
    return ICQF(1, item_range=(0, 100)).state(data.answers).problem


CANDIDATES = [(2, 0.1), (3, 0.1), (4, 0.2)]


def curve(problem, candidates=CANDIDATES, seed=0, **options):
    rng = np.random.default_rng(seed)
    return stability_curve(problem, candidates, [halves_of(problem, rng=rng) for _ in range(3)], **options)


def test_the_true_number_is_found_again_in_every_half(problem):
    found = curve(problem, [(k, 0.0) for k in (2, 3, 4, 5)], tol=1e-4, max_iter=3000)
    agreement = found.set_index("n_components")["agreement"]
    assert agreement[3] == pytest.approx(1, abs=1e-3)
    assert (agreement.drop(3) < 0.97).all()
    at = found.set_index("n_components").loc[3]
    assert at["low"] > 0.999 and at["nndsvd"] > 0.999 and at["rotated"] > 0.999


def test_the_table(noisy):
    found = curve(noisy)
    assert list(zip(found["n_components"], found["beta"], strict=True)) == CANDIDATES
    columns = ["n_components", "beta", "agreement", "low", "high", "nndsvd", "rotated"]
    assert list(found.columns) == columns
    np.testing.assert_allclose(found["agreement"], (found["nndsvd"] + found["rotated"]) / 2)
    assert (found["low"] <= found["high"]).all()
    assert found[columns[2:]].to_numpy().min() >= -1 and found[columns[2:]].to_numpy().max() <= 1


def test_same_seed_same_numbers_whatever_the_jobs(noisy):
    one, again, two = curve(noisy), curve(noisy), curve(noisy, n_jobs=2)
    with parallel_config(backend="threading", n_jobs=2):
        threads = curve(noisy)
    for other in (again, two, threads):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert (curve(noisy, seed=1)["agreement"] != one["agreement"]).all()


def test_a_candidate_does_not_depend_on_the_others(noisy):
    together = curve(noisy)
    for at, candidate in enumerate(CANDIDATES):
        alone = curve(noisy, [candidate])
        pd.testing.assert_series_equal(alone.iloc[0], together.iloc[at], check_names=False, check_exact=True)


def test_the_halves_can_be_given(noisy):
    """Both halves hold the same answers: every start finds again what it found."""
    doubled = ICQF(1, item_range=(0, 100)).state(np.tile(noisy.answers, (2, 1))).problem
    found = stability_curve(doubled, CANDIDATES, [np.repeat([0, 1], noisy.n)])
    np.testing.assert_allclose(found["agreement"], 1, atol=1e-12)
