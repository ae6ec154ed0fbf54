"""Varimax, promax and oblimin against their definitions and against R."""

import numpy as np
import pytest
from scipy import linalg, optimize
from scipy.stats import ortho_group
from sklearn.exceptions import ConvergenceWarning

from icqf.baselines import oblimin, promax, varimax


@pytest.fixture
def loadings():
    rng = np.random.default_rng(5)
    A = np.kron(np.eye(4), np.full((6, 1), 0.65)) + 0.12 * rng.normal(size=(24, 4))
    return A @ ortho_group.rvs(4, random_state=6)


def same_up_to_order_and_sign(A, B):
    """Largest difference after each column of A takes its best partner in B."""
    partner = np.argmax(np.abs(A.T @ B), axis=1)
    assert sorted(partner) == list(range(A.shape[1]))
    B = B[:, partner]
    return np.abs(A - B * np.sign(np.sum(A * B, axis=0))).max()


def varimax_criterion(L):
    L = L / np.linalg.norm(L, axis=1, keepdims=True)
    return np.var(L**2, axis=0).sum()


@pytest.mark.parametrize("rotate", [varimax, promax, oblimin])
def test_reproduced_correlations_do_not_change(loadings, rotate):
    L, Phi, T = rotate(loadings)
    np.testing.assert_allclose(L @ Phi @ L.T, loadings @ loadings.T, atol=1e-10)
    np.testing.assert_allclose(loadings @ T, L, atol=1e-10)
    np.testing.assert_allclose(np.diag(Phi), 1.0, atol=1e-12)
    assert linalg.eigvalsh(Phi)[0] > 0


@pytest.mark.parametrize("rotate", [varimax, oblimin, promax])
def test_any_starting_axes_give_the_same_loadings(loadings, rotate):
    other = loadings @ ortho_group.rvs(4, random_state=9)
    tol = 1e-9 if rotate is oblimin else 1e-14
    assert same_up_to_order_and_sign(rotate(loadings, tol=tol)[0], rotate(other, tol=tol)[0]) < 1e-5


def test_varimax_is_the_best_of_many_orthogonal_rotations(loadings):
    best = varimax_criterion(varimax(loadings, tol=1e-14).loadings)
    L = varimax(loadings, tol=1e-14).loadings
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(50):
            skew = rng.normal(size=(4, 4)) * size
            assert varimax_criterion(L @ linalg.expm(skew - skew.T)) <= best + 1e-12
    assert varimax_criterion(varimax(loadings).loadings) > best - 1e-4


@pytest.mark.parametrize("angle", [0.05, 0.3, 0.5, 0.7])
def test_varimax_finds_perfect_simple_structure(angle):
    """Here the plain polar iteration goes back and forth between two rotations."""
    simple = np.array([[0.8, 0.0], [0.7, 0.0], [0.0, 0.6], [0.0, 0.9]])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert same_up_to_order_and_sign(varimax(simple @ turn).loadings, simple) < 1e-6


def test_promax_by_its_definition(loadings):
    length = np.linalg.norm(loadings, axis=1, keepdims=True)
    V = varimax(loadings / length).loadings
    target = V * np.abs(V) ** 3
    U = np.linalg.solve(V.T @ V, V.T @ target)
    # The factors F with items = V F_varimax have F = U⁻¹ F_varimax; give each variance 1.
    cov = np.linalg.inv(U) @ np.linalg.inv(U).T
    sd = np.sqrt(np.diag(cov))
    found = promax(loadings)
    np.testing.assert_allclose(found.loadings, length * (V @ U * sd), atol=1e-12)
    np.testing.assert_allclose(found.factor_correlations, cov / np.outer(sd, sd), atol=1e-12)


def test_promax_power_one_is_varimax(loadings):
    np.testing.assert_allclose(promax(loadings, power=1).loadings, varimax(loadings).loadings, atol=1e-10)


@pytest.mark.parametrize("gamma", [0.0, -1.0])
def test_oblimin_minimises_its_criterion(loadings, gamma):
    m, k = loadings.shape

    def criterion(t):
        T = t.reshape(k, k)
        T = T / np.linalg.norm(T, axis=0)
        L2 = (loadings @ np.linalg.inv(T).T) ** 2
        total = 0.0
        for p in range(k):
            for q in range(k):
                if p != q:
                    total += L2[:, p] @ L2[:, q] - gamma / m * L2[:, p].sum() * L2[:, q].sum()
        return total / 4

    found = oblimin(loadings, gamma=gamma)
    T = np.linalg.inv(found.transformation).T
    slope = optimize.approx_fprime(T.ravel(), criterion, 1e-7)
    assert np.abs(slope).max() < 1e-5
    start = T + 0.1 * np.random.default_rng(2).normal(size=T.shape)
    assert optimize.minimize(criterion, start.ravel()).fun == pytest.approx(criterion(T.ravel()), abs=1e-7)


@pytest.mark.parametrize("rotate", [varimax, promax])
def test_item_lengths_do_not_matter_when_normalised(loadings, rotate):
    scale = np.random.default_rng(3).uniform(0.2, 2.0, size=(24, 1))
    np.testing.assert_allclose(
        rotate(scale * loadings).loadings, scale * rotate(loadings).loadings, atol=1e-10
    )


@pytest.mark.parametrize("rotate", [varimax, promax, oblimin])
def test_item_without_loadings_is_left_alone(loadings, rotate):
    L = rotate(np.vstack([loadings, np.zeros(4)])).loadings
    assert np.isfinite(L).all() and np.all(L[-1] == 0)


def test_tight_solutions_of_r(golden):
    unrotated = np.array(golden["minres"]["none"]["loadings"])
    for name, found in {"varimax": varimax(unrotated, tol=1e-13), "oblimin": oblimin(unrotated)}.items():
        assert same_up_to_order_and_sign(found.loadings, np.array(golden["tight"][name])) < 1e-5


def test_unsettled_rotations_warn(loadings):
    with pytest.warns(ConvergenceWarning, match="Varimax did not settle"):
        varimax(loadings, tol=1e-14, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="Oblimin did not settle"):
        oblimin(loadings, max_iter=2)


def test_promax_of_too_few_factors_is_varimax(loadings):
    flat = np.column_stack([loadings[:, 0], np.zeros(24)])
    with pytest.warns(UserWarning, match="promax is not defined"):
        found = promax(flat)
    np.testing.assert_array_equal(found.factor_correlations, np.eye(2))
