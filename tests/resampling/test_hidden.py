"""The error on hidden answers: its definition in plain loops, and nothing hidden reaches a fit."""

import numpy as np
import pytest

from icqf import ICQF
from icqf.core.result import Factors
from icqf.core.start import Starts
from icqf.datasets import make_synthetic
from icqf.resampling.folds import folds_of, make_folds
from icqf.resampling.hidden import HeldOut, predict_hidden
from solving import settled, with_answers


@pytest.fixture(scope="module")
def data():
    return make_synthetic(60, 24, 3, noise=0.2, missing=0.05, confounded=True, random_state=0)


@pytest.fixture(scope="module")
def problem(model, questionnaire):
    answers, confounds = questionnaire.keyed_answers(), questionnaire.confounds
    return model.state(answers, confounds=confounds).problem


@pytest.mark.filterwarnings("ignore::icqf.data.validate.RangeWarning")
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_is_that_of_clipped_predictions_of_hidden_observed_answers(data, weighted, declared):
    """With an undeclared range, the visible answers 5 to 95 are all that a fold may know of it."""
    rng = np.random.default_rng(1)
    n, m = data.answers.shape
    mask = make_folds(n, m, n_splits=4, rng=rng).mask(0)
    answers = np.where(mask, data.answers, np.clip(data.answers, 5, 95))
    weights = rng.uniform(0.1, 3, n) if weighted else None
    options = {"item_range": (0, 100)} if declared else {}
    model = ICQF(1, dtype="float64", smallest_category=1, **options)
    problem = model.state(answers, confounds=data.confounds, sample_weight=weights).problem
    W, Q = rng.random((3, n)), rng.uniform(0, 60, (3 + problem.c, m))
    held_out = HeldOut(problem, mask, given=None if declared else answers)
    found, of_means = held_out.error(Factors(W, Q)), held_out.error_of_means()

    low, width = (0.0, 100.0) if declared else (5.0, 90.0)
    R = np.minimum(np.concatenate([W, problem.design]).T @ Q, width) + low
    assert 0 < (R - low == width).sum() < R.size  # some are clipped
    squares, around, total, count = np.zeros(m), np.zeros(m), np.zeros(m), 0
    weight = np.ones(n) if weights is None else weights
    seen = ~mask & ~np.isnan(answers)
    for j in range(m):
        mean = np.average(answers[seen[:, j], j], weights=weight[seen[:, j]])
        for i in range(n):
            if mask[i, j] and not np.isnan(answers[i, j]):
                squares[j] += weight[i] * (answers[i, j] - R[i, j]) ** 2
                around[j] += weight[i] * (answers[i, j] - mean) ** 2
                total[j] += weight[i]
                count += 1
    assert found.count == of_means.count == count
    np.testing.assert_allclose(found.squares, squares, rtol=1e-12)
    np.testing.assert_allclose(of_means.squares, around, rtol=1e-9)
    np.testing.assert_allclose(found.weights, total, rtol=1e-12)
    assert found.mean == pytest.approx(squares.sum() / total.sum(), rel=1e-12)


@pytest.mark.parametrize("start", ["nndsvd", "rotated"])
def test_a_fit_to_what_is_visible_is_a_fit_to_the_masked_table(data, start):
    """For any mask: hiding answers is the same as their being missing, to the last bit."""
    model = ICQF(1, item_range=(0, 100), reconstruction_max=None, smallest_category=1)
    mask = np.random.default_rng(0).random(data.answers.shape) < 0.3
    problem = model.state(data.answers, confounds=data.confounds).problem
    masked = model.state(np.where(mask, np.nan, data.answers), confounds=data.confounds).problem
    held_out = HeldOut(problem, mask)
    one = settled(held_out.visible, held_out.starts.make(start, 3)).factors
    two = settled(masked, Starts(masked).make(start, 3)).factors
    assert one.scores.tobytes() == two.scores.tobytes()
    assert one.loadings.tobytes() == two.loadings.tobytes()


def test_permuting_participants_permutes_the_fit_and_leaves_the_error(data):
    model = ICQF(1, item_range=(0, 100), dtype="float64")
    order = np.random.default_rng(0).permutation(len(data.answers))
    mask = np.random.default_rng(1).random(data.answers.shape) < 0.2
    fits = []
    for rows in (np.arange(len(order)), order):
        problem = model.state(data.answers[rows], confounds=data.confounds[rows]).problem
        held_out = HeldOut(problem, mask[rows])
        found = settled(held_out.visible, held_out.starts.make("nndsvd", 3), tol=1e-8, max_iter=5000).factors
        fits.append((found, held_out.error(found).mean))
    (first, error), (second, permuted) = fits
    np.testing.assert_allclose(second.scores, first.scores[:, order], atol=1e-5)
    np.testing.assert_allclose(second.loadings, first.loadings, atol=1e-3)
    assert permuted == pytest.approx(error, rel=1e-5)


def test_hidden_answers_do_not_leak(problem):
    """Predictions do not move with hidden answers, so the error is a plain parabola in a shift of these."""
    mask = np.random.default_rng(3).random((problem.n, problem.m)) < 0.1
    errors = []
    for shift in (0.0, 1.0, 2.0):
        answers = np.where(mask, problem.answers + shift, problem.answers)
        held_out = HeldOut(with_answers(problem, answers), mask)
        found = settled(held_out.visible, held_out.starts.make("nndsvd", 2)).factors
        errors.append((held_out.error(found).squares, held_out.error_of_means().squares))
    hidden = (mask & (problem.answers >= 0)).sum(axis=0)
    for first, second, third in zip(*errors, strict=True):
        np.testing.assert_allclose(first - 2 * second + third, 2 * hidden, rtol=1e-4)


def test_unrelated_answers_are_not_predicted(problem):
    shuffled = with_answers(problem, np.random.default_rng(3).permuted(problem.answers, axis=0))
    assert predict_hidden(problem, 2, rng=np.random.default_rng(0)).overall > 0.1
    assert predict_hidden(shuffled, 2, rng=np.random.default_rng(0)).overall < 0.05


def test_a_batch_of_folds_equals_them_one_by_one_whatever_n_jobs(problem):
    one, two = (predict_hidden(problem, 2, n_jobs=jobs, rng=np.random.default_rng(0)) for jobs in (1, 2))
    np.testing.assert_array_equal(one.sse, two.sse)
    np.testing.assert_array_equal(one.sst, two.sst)
    folds = folds_of(problem, n_splits=10, rng=np.random.default_rng(0))
    apart = [HeldOut(problem, folds.mask(fold)) for fold in range(10)]
    fits = [settled(each.visible, each.starts.make("nndsvd", 2), tol=5e-3, max_iter=300) for each in apart]
    sse = [each.error(fit.factors).squares for each, fit in zip(apart, fits, strict=True)]
    np.testing.assert_array_equal(one.sse, sse)
