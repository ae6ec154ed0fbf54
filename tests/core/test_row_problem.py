"""The batched row programs against small ones solved by trying every set of active bounds."""

from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import example, given, settings
from hypothesis import strategies as st

from icqf.core.scores import correct_guess, interior_points, solve_rows


def solve(H, p, loadings, room, top, start=None):
    """`solve_rows` with a row of programs a row: H (s, k, k), p, start and result (s, k)."""
    start = None if start is None else start.T
    return solve_rows(np.moveaxis(H, 0, -1), p.T, loadings, room, top, start)[0].T


def by_active_sets(H, p, loadings, room, top):
    """min ½wᵀHw − pᵀw over 0 ≤ w ≤ top, loadingsᵀw ≤ room, by trying every set of active constraints."""
    k = len(p)
    sides = [loadings.T, -np.eye(k)] + ([] if top is None else [np.eye(k)])
    limits = [room, np.zeros(k)] + ([] if top is None else [np.full(k, top)])
    A, b = np.concatenate(sides), np.concatenate(limits)
    best, best_value = None, np.inf
    for size in range(k + 1):
        for active in combinations(range(len(A)), size):
            A_a = A[list(active)]
            system = np.block([[H, A_a.T], [A_a, np.zeros((size, size))]])
            try:
                w = np.linalg.solve(system, np.concatenate([p, b[list(active)]]))[:k]
            except np.linalg.LinAlgError:
                continue
            value = 0.5 * w @ H @ w - p @ w
            if (A @ w <= b + 1e-9).all() and value < best_value:
                best, best_value = w, value
    return best


def programs(rng, s, k, m, *, top=1.0, tight=1.0):
    B = rng.normal(size=(s, k, k + 2))
    H = B @ np.swapaxes(B, 1, 2) + 0.1 * np.eye(k)
    p = 3 * rng.normal(size=(s, k)) + 2
    loadings = 4 * rng.random((k, m)) * (rng.random((k, m)) < 0.7)
    room = tight * 4 * rng.random((s, m))
    return H, p, loadings, room, top


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([1.0, 0.6, None]),
    st.sampled_from([0.05, 0.3, 1.0]),
)
def test_equals_trying_every_active_set(seed, k, m, top, tight):
    H, p, loadings, room, top = programs(np.random.default_rng(seed), 4, k, m, top=top, tight=tight)
    found = solve(H, p, loadings, room, top)
    for i in range(4):
        best = by_active_sets(H[i], p[i], loadings, room[i], top)
        np.testing.assert_allclose(found[i], best, atol=1e-6)
    # What is left over a bound is rounding (scaled away by the caller).
    assert (found >= 0).all() and (top is None or (found <= top).all())
    assert (found @ loadings - room).max() <= 1e-6


@pytest.mark.parametrize(
    ("seed", "k", "m", "top", "tight"), [(69981, 2, 2, 0.6, 0.3), (926, 3, 1, None, 0.3)]
)
def test_no_program_is_too_hard(seed, k, m, top, tight):
    H, p, loadings, room, top = programs(np.random.default_rng(seed), 4, k, m, top=top, tight=tight)
    found = solve(H, p, loadings, room, top)
    for i in range(4):
        np.testing.assert_allclose(found[i], by_active_sets(H[i], p[i], loadings, room[i], top), atol=2e-5)


def test_equals_scipy():
    H, p, loadings, room, top = programs(np.random.default_rng(3), 6, 5, 12, tight=0.5)
    found = solve(H, p, loadings, room, top)
    for i in range(6):
        reference = scipy.optimize.minimize(
            lambda w, i=i: 0.5 * w @ H[i] @ w - p[i] @ w,
            np.zeros(5),
            jac=lambda w, i=i: H[i] @ w - p[i],
            bounds=[(0, 1)] * 5,
            constraints={
                "type": "ineq",
                "fun": lambda w, i=i: room[i] - w @ loadings,
                "jac": lambda w: -loadings.T,
            },
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 500},
        )
        assert reference.success
        np.testing.assert_allclose(found[i], reference.x, atol=1e-5)


def test_no_room_means_no_score_on_the_items_without_it():
    H, p = np.eye(2)[None], np.array([[5.0, 5.0]])
    loadings = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = solve(H, p, loadings, np.array([[0.0, 3.0]]), 1.0)
    assert found[0] == pytest.approx([0.0, 1.0], abs=1e-6)


def test_rows_are_solved_each_by_itself():
    H, p, loadings, room, top = programs(np.random.default_rng(5), 5, 4, 6, tight=0.3)
    together = solve(H, p, loadings, room, top)
    for i in range(5):
        alone = solve(H[i : i + 1], p[i : i + 1], loadings, room[i : i + 1], top)
        np.testing.assert_allclose(together[i], alone[0], atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.sampled_from([0.05, 0.3, 1.0]))
@example(165, 2, 0.3)  # predictor and corrector once went round in circles here
def test_the_guess_and_the_interior_points_end_at_the_same_scores(seed, k, tight):
    rng = np.random.default_rng(seed)
    H, p, loadings, room, top = programs(rng, 30, k, 20, tight=tight)
    size = np.trace(H, axis1=1, axis2=2) / k
    scaled = np.moveaxis(H, 0, -1) / size, p.T / size, loadings / 4, room / 4, top
    guess = rng.choice([0.0, 0.5, 1.0], size=(k, 30))
    multipliers = np.zeros_like(room)
    unsettled = correct_guess(*scaled, guess, multipliers)
    settled = np.setdiff1d(np.arange(30), unsettled)
    assert len(settled) >= 10  # these programs being much harder than those of people
    scores, others = interior_points(*scaled)
    np.testing.assert_allclose(guess[:, settled], scores[:, settled], atol=2e-5)
    pulls = scaled[2] @ multipliers.T, scaled[2] @ others.T  # in the scores; those of items may not be unique
    np.testing.assert_allclose(pulls[0][:, settled], pulls[1][:, settled], atol=2e-3)


def test_any_start_leads_to_the_same_scores():
    rng = np.random.default_rng(7)
    H, p, loadings, room, top = programs(rng, 40, 6, 15, tight=0.3)
    cold = solve(H, p, loadings, room, top)
    for start in (np.zeros_like(p), np.ones_like(p), rng.random(p.shape), cold):
        np.testing.assert_allclose(solve(H, p, loadings, room, top, start), cold, atol=1e-6)


def test_programs_without_curvature_are_solved_too():
    """Somebody who answered no item of a factor: any score of it is as good, within the bounds."""
    H, p = np.diag([1.0, 0.0])[None], np.array([[0.4, 0.0]])
    found = solve(H, p, np.array([[1.0], [1.0]]), np.array([[0.9]]), 1.0)
    assert found[0, 0] == pytest.approx(0.4, abs=1e-5)
    assert found.min() >= 0 and found[0].sum() <= 0.9 + 1e-6
