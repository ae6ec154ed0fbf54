"""Agreement over resamples that are fitted afresh."""

import numpy as np
import pytest

from icqf import ICQF
from icqf.datasets import make_synthetic
from icqf.models import consensus as stability
from icqf.models.consensus import best_fits, resampled_agreement
from icqf.resampling.folds import drawn_counts


@pytest.fixture(scope="module")
def problem():
    answers = make_synthetic(n=150, m=30, k=3, noise=0.1, random_state=0).answers
    return ICQF(3, item_range=(0, 100)).state(answers).problem


@pytest.fixture(scope="module")
def models(problem):
    two, three = best_fits(problem, [(2, 0.1), (3, 0.1)])
    return [(0.1, two[:2]), (0.1, three[:3])]


def resampled(problem, models, **options):
    return resampled_agreement(problem, models, n_resamples=6, rng=np.random.default_rng(0), **options)


def test_true_factors_are_found_again_and_made_up_ones_are_not(problem, models):
    _, true = resampled(problem, models)
    assert true.shape == (6, 3) and true.min() > 0.9
    made_up = np.random.default_rng(1).uniform(0, 100, models[1][1].shape)
    (found,) = resampled(problem, [(0.1, made_up)])
    assert found.mean() < 0.5


def test_models_do_not_depend_on_each_other_and_not_on_processes(problem, models):
    both = resampled(problem, models)
    for one, model in zip(both, models, strict=True):
        np.testing.assert_array_equal(one, resampled(problem, [model])[0])
    for one, other in zip(both, resampled(problem, models, n_jobs=2), strict=True):
        np.testing.assert_array_equal(one, other)


def test_permuting_a_models_factors_permutes_its_agreement(problem, models):
    _, (beta, loadings) = models
    (straight,) = resampled(problem, [(beta, loadings)])
    (permuted,) = resampled(problem, [(beta, loadings[[2, 0, 1]])])
    np.testing.assert_array_equal(permuted, straight[:, [2, 0, 1]])


def test_resamples_are_drawn_with_replacement_and_in_whole_groups():
    counts = drawn_counts(50, None, np.random.default_rng(0))
    assert counts.sum() == 50 and counts.max() > 1 and counts.min() == 0
    groups = np.repeat(np.arange(10), 5)
    together = drawn_counts(50, groups, np.random.default_rng(0))
    assert all(len(set(together[groups == group])) == 1 for group in range(10))


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
    monkeypatch.setattr(stability, "best_fits", lambda *_, **__: [np.concatenate([other, confound])])
    assert stability.fresh_agreement(None, factor, 0.1)[0] < 0
