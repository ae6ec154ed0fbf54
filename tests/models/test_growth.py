"""Starts that grow, and searches that begin there as well."""

from dataclasses import replace

import numpy as np
import pytest

from icqf import ICQF, ICQFCV, InputError
from icqf.core.start import Starts
from icqf.datasets import make_synthetic
from icqf.engines.choice import run
from icqf.models.search import Growth, Plan, Task, run_task
from icqf.resampling.folds import make_folds


@pytest.fixture(scope="module")
def problem():
    data = make_synthetic(90, 40, 5, noise=0.3, missing=0.1, confounded=True, random_state=3)
    return ICQF(1, item_range=(0, 100)).state(data.answers, confounds=data.confounds).problem


def test_a_start_does_not_depend_on_which_others_are_asked_for(problem):
    grown = Growth(problem, tol=5e-3)
    third, first = grown.start(3), grown.start(1)
    alone = Growth(problem, tol=5e-3).start(3)
    assert third.scores.tobytes() == alone.scores.tobytes()
    assert len(first.scores) == 1 and len(third.scores) == 3


def test_a_start_lies_inside_the_bounds(problem):
    start = Growth(problem, tol=5e-3).start(6)
    assert start.scores.shape == (6, 90) and start.loadings.shape == (6 + problem.c, 40)
    assert start.scores.min() >= 0 and start.scores.max() <= 1
    assert start.loadings.min() >= 0 and (start.loadings <= problem.span).all()


def test_the_added_factor_is_that_of_a_plain_singular_value_decomposition(problem):
    """The residual of one factor, written out, and the heavier half of its leading pair."""
    grown = Growth(problem, tol=5e-3)
    one = grown.start(1)
    scores, loadings = grown._strongest_pattern(one)
    seen = problem.answers >= 0
    A = np.concatenate([one.scores, problem.design])
    residual = np.where(seen, problem.answers - A.T @ one.loadings, 0.0)
    U, _, V = np.linalg.svd(residual, full_matrices=False)
    halves = [(np.maximum(s * U[:, 0], 0), np.maximum(s * V[0], 0)) for s in (1, -1)]
    u, v = max(halves, key=lambda half: np.linalg.norm(half[0]) * np.linalg.norm(half[1]))
    assert np.corrcoef(scores, u)[0, 1] > 0.98 and np.corrcoef(loadings, v)[0, 1] > 0.98


def test_of_two_fits_the_one_with_the_better_objective_is_judged(problem):
    folds = (make_folds(problem.n, problem.m, n_splits=4, rng=np.random.default_rng(0)),)
    plan = Plan(problem, folds, (0.1,), "nndsvd", 5e-3, 500)
    task = Task(((0, 1),), (4, 6))
    plain, thorough = run_task(plan, task), run_task(replace(plan, thorough=True), task)
    visible = problem.hide(folds[0].mask(1)).without_reconstruction_bound().with_beta(0.1)
    differ = 0
    for usual, better in zip(plain, thorough, strict=True):
        k = usual.n_components
        starts = [Starts(visible).make("nndsvd", k), Growth(visible, tol=5e-3).start(k)]
        fits = run(visible, starts, tol=5e-3, max_iter=500, exact=False)
        one, two = (fit.trace.objective[-1] for fit in fits)
        assert better.n_iter == fits[0 if one <= two else 1].n_iter
        differ += one > two
        assert (better.error == usual.error) == (one <= two)
    assert differ  # in at least one of them the second start is better


def test_jobs_and_a_journal_do_not_change_a_thorough_search(tmp_path):
    answers = make_synthetic(80, 30, 4, noise=0.3, random_state=1).answers

    def searched(**more):
        model = ICQF(item_range=(0, 100))
        options = {"n_components": [2, 3, 4, 5], "betas": [0.1, 0.5], "n_splits": 3, "random_state": 0}
        return ICQFCV(model, thorough=True, **options, **more).fit(answers)

    one, two = searched(), searched(n_jobs=2, checkpoint=tmp_path / "cv.journal")
    again = searched(checkpoint=tmp_path / "cv.journal")
    for other in (two, again):
        np.testing.assert_array_equal(one.errors_["error"], other.errors_["error"])


def test_what_it_cannot_be():
    with pytest.raises(InputError, match="thorough must be true or false, not 2"):
        ICQFCV(thorough=2).fit(np.eye(4))
