"""Chains of bounded numbers that are drawn together: the best one, whatever the strength."""

import numpy as np
import pytest

from icqf.models.longitudinal_problem import best_courses


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
