"""Visits as they are kept: to the iterations they are the wide table, which is never made."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from icqf.core import observations
from icqf.core.observations import Observations
from icqf.core.penalties import L1
from icqf.core.problem import Bounds, Problem
from icqf.core.result import Factors
from icqf.core.start import Starts
from icqf.models.longitudinal_problem import VisitObservations, best_courses, smoothed
from icqf.resampling.folds import folds_of
from icqf.resampling.hidden import HeldOut
from solving import settled, solved

BINS, ITEMS = 4, 5


def visits(n=60, *, seen=0.5, seed=0, dtype=np.float64, same=None, missing=0.1):
    """Visits of n participants in some of four bins, answers 0…4."""
    rng = np.random.default_rng(seed)
    came = rng.random((n, BINS)) < seen
    if same is not None:
        came = np.argsort(rng.random((n, BINS)), axis=1) < same
    came[~came.any(axis=1), 0] = True
    who, when = np.nonzero(came)
    W = rng.random((n, 2))
    Q = 2 * rng.random((BINS, 2, ITEMS))
    answers = np.rint(
        np.clip(np.einsum("vk,vkj->vj", W[who], Q[when]) + rng.normal(0, 0.4, (len(who), ITEMS)), 0, 4)
    )
    answers[rng.random(answers.shape) < missing] = np.nan
    answers[np.isnan(answers).all(axis=1), 0] = 1
    return VisitObservations(answers, np.ones((1, len(who))), dtype=dtype, bin=when, bins=BINS)


def wide(kept):
    """The same with all columns of each visit."""
    table = np.full((kept.n, BINS, ITEMS), -1.0)
    table[np.arange(kept.n), kept.bin] = kept.answers
    return Observations(table.reshape(kept.n, -1), kept.design, kept.weights, dtype=kept.dtype)


def problem_of(kept, *, beta=0.1):
    span = np.full(kept.m, 4.0)
    return Problem(kept, span, Bounds(1.0, span, span), L1(beta), intercept=0 if len(kept.design) else None)


def same_blocks(ours, theirs):
    for a, b in zip(ours.blocks(), theirs.blocks(), strict=True):
        np.testing.assert_array_equal(a.X, b.X)
        np.testing.assert_array_equal(a.observed(), b.observed())
        np.testing.assert_array_equal(a.C, b.C)


def test_blocks_are_those_of_the_wide_table():
    kept = visits()
    same_blocks(kept, wide(kept))


def test_hidden_answers_and_some_visits_are_those_of_the_wide_table():
    kept = visits()
    rng = np.random.default_rng(1)
    rows = np.sort(rng.choice(kept.n, 25, replace=False))
    mask = rng.random(kept.answers.shape) < 0.3
    full = np.zeros((kept.n, BINS, ITEMS), dtype=bool)
    full[np.arange(kept.n), kept.bin] = mask
    same_blocks(kept.hide(mask).take(rows), wide(kept).hide(full.reshape(kept.n, -1)).take(rows))


def test_without_smoothness_a_fit_is_that_of_the_wide_table_to_the_bit():
    kept = visits()
    start = Starts(problem_of(kept)).make("nndsvd", 2)
    ours, theirs = (settled(problem_of(each), start, tol=1e-5) for each in (kept, wide(kept)))
    np.testing.assert_array_equal(ours.factors.scores, theirs.factors.scores)
    np.testing.assert_array_equal(ours.factors.loadings, theirs.factors.loadings)
    smooth = settled(smoothed(problem_of(kept), 0.0), start, tol=1e-5)
    np.testing.assert_array_equal(smooth.factors.loadings, theirs.factors.loadings)


def test_endless_smoothness_is_one_loading_at_all_ages():
    """It is the fit of the pooled visits with a penalty for each bin."""
    kept = visits(same=2, missing=0.0)
    problem = problem_of(kept)
    pooled = settled(problem.pooled().with_beta(0.0), Starts(problem.pooled()).make("nndsvd", 2), tol=1e-5)
    start = Factors(pooled.factors.scores, problem.spread(pooled.factors.loadings))
    smooth = settled(smoothed(problem.with_beta(0.0), 1e5), start, tol=1e-5, max_iter=5000)
    courses = smooth.factors.loadings.reshape(-1, BINS, ITEMS)
    assert np.ptp(courses, axis=1).max() < 1e-3
    np.testing.assert_allclose(courses.mean(axis=1), pooled.factors.loadings, atol=0.02)


def test_bounds_hold_exactly_and_the_certificate_holds_with_smoothness():
    found = solved(smoothed(problem_of(visits()), 3.0), 2, tol=1e-4, max_iter=5000)
    W, Q = found.factors.scores, found.factors.loadings
    assert found.converged and found.certificate.holds(1e-4)
    assert W.min() >= 0 and W.max() <= 1 and Q.min() >= 0 and Q.max() <= 4
    assert (np.concatenate([W, np.ones((1, W.shape[1]))]).T @ Q).max() <= 4


def test_the_whole_table_is_never_made_when_it_is_large(monkeypatch):
    monkeypatch.setattr(observations, "_CACHE_BYTES", 0)
    monkeypatch.setattr("icqf.models.longitudinal_problem._BLOCK_CELLS", 200)
    kept = visits(500, seen=0.3)
    blocks = list(kept.blocks())
    assert max(block.X.size for block in blocks) <= 400
    assert sum(len(block.X) for block in blocks) == kept.n
    whole = settled(
        smoothed(problem_of(visits(500, seen=0.3)), 1.0), Starts(problem_of(kept)).make("nndsvd", 2)
    )
    parts = settled(smoothed(problem_of(kept), 1.0), Starts(problem_of(kept)).make("nndsvd", 2))
    np.testing.assert_allclose(whole.factors.loadings, parts.factors.loadings, atol=1e-6)


def test_what_is_pooled_are_the_same_visits_with_one_column_per_item():
    kept = visits().hide(np.random.default_rng(1).random((visits().n, ITEMS)) < 0.2)
    pooled = kept.pooled()
    assert pooled.m == ITEMS and pooled.n == kept.n
    np.testing.assert_array_equal(pooled.answers, kept.answers)
    np.testing.assert_array_equal(pooled.observed, kept.observed)


def test_folds_hide_every_answer_once():
    problem = problem_of(visits())
    folds = folds_of(problem, n_splits=4, rng=np.random.default_rng(0))
    masks = np.stack([folds.mask(fold, problem) for fold in range(4)])
    assert masks.shape[1:] == problem.answers.shape and (masks.sum(axis=0) == 1).all()


def test_a_hidden_answer_reaches_no_fit():
    kept = visits()
    problem = problem_of(kept)
    mask = folds_of(problem, n_splits=4, rng=np.random.default_rng(0)).mask(1, problem)
    spoiled = replace(kept, answers=np.where(mask & (kept.answers >= 0), 4 - kept.answers, kept.answers))
    fits = []
    for each in (problem, problem_of(spoiled)):
        held = HeldOut(smoothed(each, 2.0), mask)
        fits.append(settled(held.visible, held.starts.make("nndsvd", 2)).factors)
    np.testing.assert_array_equal(fits[0].loadings, fits[1].loadings)
    np.testing.assert_array_equal(fits[0].scores, fits[1].scores)


def test_the_error_on_hidden_answers_is_that_of_the_predictions():
    kept = visits()
    problem = smoothed(problem_of(kept), 1.0)
    mask = folds_of(problem, n_splits=4, rng=np.random.default_rng(0)).mask(2, problem)
    held = HeldOut(problem, mask)
    factors = settled(held.visible, held.starts.make("nndsvd", 2)).factors
    R = np.minimum(np.concatenate([factors.scores, np.ones((1, kept.n))]).T @ factors.loadings, 4)
    R = R.reshape(kept.n, BINS, ITEMS)[np.arange(kept.n), kept.bin]
    errors = (kept.answers - R)[mask & ~np.isnan(kept.answers)] ** 2
    assert held.error(factors).mean == pytest.approx(errors.mean(), rel=1e-9)
    assert held.error(factors).count == len(errors)


def test_visits_travel_to_another_process_without_their_decoded_table():
    kept = visits()
    list(kept.blocks())
    again = pickle.loads(pickle.dumps(kept))
    assert not [name for name in vars(again) if name.startswith("_")]
    same_blocks(kept, again)


# --- chains of bounded numbers that are drawn together: the best one, whatever the strength -----------


def kkt(y, h, p, kappa, top):
    """The largest violation of optimality of any chain."""
    pull = np.zeros_like(y)
    pull[:, 1:] += y[:, 1:] - y[:, :-1]
    pull[:, :-1] += y[:, :-1] - y[:, 1:]
    gradient = h * y - p + kappa * pull
    at_low, at_high = y <= 0, y >= top
    inside = ~at_low & ~at_high
    return max(
        np.abs(gradient[inside]).max(initial=0),
        (-gradient[at_low]).max(initial=0),
        gradient[at_high].max(initial=0),
    )


@pytest.mark.parametrize("kappa", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("length", [2, 3, 20])
def test_every_chain_is_optimal_and_inside_its_bounds(kappa, length):
    rng = np.random.default_rng(length)
    shape = (200, length)
    h, p = rng.uniform(0.1, 3, shape), rng.normal(0.5, 2, shape)
    top = rng.uniform(0.2, 1.5, shape[0])[:, None] * np.ones(length)
    y = best_courses(rng.random(shape) * top, h, p, kappa, top)
    assert (y >= 0).all() and (y <= top).all()
    assert kkt(y, h, p, kappa, top) < 1e-7 * (1 + kappa)


def test_without_a_ceiling_and_with_a_factor_that_nobody_has():
    y = best_courses(np.full((1, 4), 0.3), np.zeros((1, 4)), np.full((1, 4), -0.1), 5.0, None)
    np.testing.assert_array_equal(y, np.zeros((1, 4)))


def test_a_strong_pull_together_is_one_number_for_all():
    h, p = np.array([[1.0, 3.0, 2.0]]), np.array([[0.2, 2.0, 0.5]])
    y = best_courses(np.zeros((1, 3)), h, p, 1e9, 1.0)
    np.testing.assert_allclose(y, p.sum() / h.sum(), rtol=1e-6)
