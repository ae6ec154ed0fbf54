"""Penalties: each is what its formula says, and a new one is one class."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

from icqf import ICQF
from icqf.core.penalties import L1, L2, L21
from icqf.datasets import make_synthetic
from icqf.models.longitudinal_problem import Smooth
from solving import solved

PENALTIES = {each.name: each for each in (L1, L2, L21)}

NORMS = {
    "l1": lambda column: column.sum(),
    "l2": lambda column: 0.5 * (column**2).sum(),
    "l21": lambda column: np.sqrt((column**2).sum()),
}


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_value_is_the_weighted_sum_of_the_columns_norms(name, weighted):
    rng = np.random.default_rng(0)
    x, weights = rng.random((3, 7)), rng.random(7) if weighted else None
    expected = sum((1 if weights is None else weights[j]) * NORMS[name](x[:, j]) for j in range(7))
    assert PENALTIES[name](0.3).value(x, weights, scale=2.0) == pytest.approx(0.6 * expected)


@pytest.mark.parametrize("name", PENALTIES)
def test_the_penalty_along_a_coordinate_is_its_value(name):
    x, penalty = np.random.default_rng(1).random((3, 4)), PENALTIES[name](0.7)
    context, moved = penalty.context(x), x.copy()
    moved[1, 2] += 0.4
    difference = penalty.along(moved[1, 2], context[1, 2], scale=1.5) - penalty.along(
        x[1, 2], context[1, 2], scale=1.5
    )
    assert difference == pytest.approx(penalty.value(moved, scale=1.5) - penalty.value(x, scale=1.5))


@pytest.mark.parametrize("name", ["l1", "l2"])
def test_balance_is_the_scale_of_least_penalty(name):
    rng = np.random.default_rng(2)
    W, Q, weights = rng.random((2, 30)), rng.random((2, 8)), rng.random(30)
    penalty, gamma = PENALTIES[name](0.4), 3.0
    s = penalty.balance(penalty.mass(W, W * weights), Q, gamma=gamma)

    def total(log_s, r):
        factor = np.exp(log_s)
        return penalty.value(W[[r]] * factor, weights) + penalty.value(Q[[r]] / factor, scale=gamma)

    for r in range(2):
        best = scipy.optimize.minimize_scalar(lambda log_s, r=r: total(log_s, r))
        assert s[r] == pytest.approx(np.exp(best.x), rel=1e-4)
    assert L21(0.4).balance(np.ones(2), Q, gamma=gamma) is None


def test_only_the_sum_of_loadings_favours_the_intercept():
    assert L1.favours_intercept and not L2.favours_intercept and not L21.favours_intercept


def smooth_problem(smoothness, *, seed=3, bins=3, reconstruction_max=None):
    """Items × bins as columns, with loadings that cost more the more they change from bin to bin."""
    data = make_synthetic(50, 4 * bins, 2, noise=0.2, random_state=seed)
    model = ICQF(2, item_range=(0, 100), dtype="float64", reconstruction_max=reconstruction_max)
    plain = model.state(data.answers).problem
    return replace(plain, loading_penalty=Smooth(plain.penalty.beta, smoothness, bins))


def bends(Q, bins=3):
    """Σ (Q_jtr − Q_j,t+1,r)² in plain loops; columns are (bin, item)."""
    items = Q.shape[1] // bins
    return sum(
        (Q[r, t * items + j] - Q[r, (t + 1) * items + j]) ** 2
        for r in range(len(Q))
        for t in range(bins - 1)
        for j in range(items)
    )


def test_smoothness_costs_half_the_squared_steps_between_neighbouring_bins():
    Q = np.random.default_rng(0).random((2, 12))
    expected = 0.5 * 0.7 * 4.0 * bends(Q)
    assert Smooth(0.3, 0.7, 3).value(Q, scale=4.0) - L1(0.3).value(Q, scale=4.0) == pytest.approx(expected)


def test_the_smooth_penalty_along_a_coordinate_is_its_value():
    x, penalty = np.random.default_rng(1).random((3, 8)), Smooth(0.7, 2.0, 4)
    context = penalty.context(x)
    for at in ((1, 0), (2, 3), (0, 7)):
        moved = x.copy()
        moved[at] += 0.4
        along = penalty.along(moved[at], context[at], scale=1.5) - penalty.along(
            x[at], context[at], scale=1.5
        )
        assert along == pytest.approx(penalty.value(moved, scale=1.5) - penalty.value(x, scale=1.5))


def test_balance_of_a_smooth_penalty_is_the_scale_of_least_penalty():
    rng = np.random.default_rng(2)
    W, Q = rng.random((2, 30)), rng.random((2, 9))
    scores, loadings, gamma = L1(0.4), Smooth(0.4, 3.0, 3), 5.0
    s = loadings.balance(scores.mass(W, W), Q, gamma=gamma)
    for r in range(2):
        best = scipy.optimize.minimize_scalar(
            lambda log_s, r=r: (
                scores.value(W[[r]] * np.exp(log_s)) + loadings.value(Q[[r]] / np.exp(log_s), scale=gamma)
            )
        )
        assert s[r] == pytest.approx(np.exp(best.x), rel=1e-4)


@pytest.mark.parametrize("smoothness", [0.3, 30.0, 1e4])
@pytest.mark.parametrize("each", [False, True])
def test_smooth_sweeps_never_climb_and_end_at_the_minimum(smoothness, each):
    rng = np.random.default_rng(4)
    penalty, top, gamma = Smooth(0.2, smoothness, 4), 0.8, 2.0
    root = rng.random((3, 9))
    G, P = root @ root.T, 4 * rng.random((3, 12)) - 1
    x = rng.random((3, 12)) * top

    def value(x):
        return 0.5 * np.sum(x * (G @ x)) - np.sum(P * x) + penalty.value(x, scale=gamma)

    values = [value(x)]
    for _ in range(300):
        if each:
            wide = np.repeat(G[:, :, None], 12, axis=2)
            penalty.sweep_each(x, G @ x - P, wide, top, scale=gamma, sweeps=1)
        else:
            penalty.sweep(x, G, P, top, scale=gamma, sweeps=1)
        values.append(value(x))
    assert (np.diff(values) <= 1e-9 * np.abs(values[0])).all()
    # An independent solution: the penalty written out as a matrix, and bounded least squares by active sets.
    differences = np.diff(np.eye(4), axis=0)
    pull = np.kron(np.eye(3), np.kron(differences.T @ differences, np.eye(3)))
    root = np.linalg.cholesky(np.kron(G, np.eye(12)) + smoothness * gamma * pull)
    wanted = np.linalg.solve(root, (P - 0.2 * gamma).ravel())
    best = scipy.optimize.lsq_linear(root.T, wanted, bounds=(0, top), method="bvls", tol=1e-14)
    plain = best.x.reshape(3, 12)
    assert values[-1] <= value(plain) + 1e-6 * abs(value(plain))
    np.testing.assert_allclose(x, plain, atol=1e-3)
    assert x.min() >= 0 and x.max() <= top


def test_solver_trace_finish_and_certificate_follow_the_smooth_penalty():
    problem, plain = smooth_problem(2.0), smooth_problem(0.0)
    found = solved(problem, 2, tol=1e-5, max_iter=5000)
    assert found.converged
    W, Q = found.factors.scores, found.factors.loadings
    assert found.objective == pytest.approx(problem.objective(W, Q), rel=1e-12)
    assert bends(Q[:2]) < 0.8 * bends(solved(plain, 2, tol=1e-5, max_iter=5000).factors.loadings[:2])

    def value(flat):
        return problem.objective(W, flat.reshape(Q.shape))

    best = scipy.optimize.minimize(value, Q.ravel(), bounds=[(0, 100)] * Q.size, method="L-BFGS-B")
    assert value(Q.ravel()) <= best.fun * (1 + 1e-6)


def test_the_certificate_of_a_smooth_problem_finds_the_best_single_move():
    """The largest step and gain of a loading, against a search along every coordinate."""
    problem = smooth_problem(5.0)
    found = solved(problem, 2, tol=0.02, max_iter=3)
    W, Q = found.factors.scores, found.factors.loadings
    steps, gains = [], []
    for at in np.ndindex(*Q.shape):

        def value(q, at=at):
            moved = Q.copy()
            moved[at] = q
            return problem.objective(W, moved)

        best = scipy.optimize.minimize_scalar(
            value, bounds=(0, 100), method="bounded", options={"xatol": 1e-7}
        )
        steps.append(abs(best.x - Q[at]) / 100)
        gains.append(value(Q[at]) - best.fun)
    assert found.certificate.loading_step == pytest.approx(max(steps), abs=1e-5)
    assert found.certificate.gain >= max(gains) - 1e-6 * found.objective


def test_no_smoothness_is_the_plain_penalty_to_the_bit():
    problem = smooth_problem(0.0, reconstruction_max="item_range")
    plain = replace(problem, loading_penalty=None)
    ours, theirs = (solved(each, 2, tol=1e-4) for each in (problem, plain))
    np.testing.assert_array_equal(ours.factors.scores, theirs.factors.scores)
    np.testing.assert_array_equal(ours.factors.loadings, theirs.factors.loadings)
    assert ours.trace.objective == theirs.trace.objective


def test_only_without_smoothness_does_it_favour_the_intercept():
    assert Smooth(0.1, 0.0, 3).favours_intercept and not Smooth(0.1, 1.0, 3).favours_intercept
