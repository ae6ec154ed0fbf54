"""Penalties: each is what its formula says, and a new one is one class."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.optimize

from icqf import ICQF
from icqf.datasets import make_synthetic
from icqf.solvers.penalties import L1, L2, L21, PENALTIES
from icqf.solvers.sweeps import cd_sweeps
from solving import solved

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


@dataclass(frozen=True)
class Smooth(L1):
    """ℓ1 plus ½ smooth Σ (Q_j − Q_j+1)² between neighbouring columns: the whole of a new penalty."""

    smooth: float = 0.0
    favours_intercept = False

    def value(self, x, weights=None, *, scale=1.0):
        bends = 0.5 * self.smooth * scale * (np.diff(x, axis=1) ** 2).sum()
        return super().value(x, weights, scale=scale) + float(bends)

    def _neighbours(self, x):
        """How many neighbours each column has, and their sum."""
        count = np.full(x.shape[1], 2.0, dtype=x.dtype)
        count[[0, -1]] = 1.0
        total = np.zeros_like(x)
        total[:, 1:] += x[:, :-1]
        total[:, :-1] += x[:, 1:]
        return count, total

    def sweep(self, x, G, P, top, *, scale, sweeps, xp=None):
        lam = self.smooth * scale
        for _ in range(sweeps):
            for parity in (0, 1):  # neighbours never move at once
                count, total = self._neighbours(x)
                for j in range(parity, x.shape[1], 2):
                    G_j = G + lam * count[j] * np.eye(len(G), dtype=G.dtype)
                    P_j = (P[:, j] + lam * total[:, j] - self.beta * scale)[:, None]
                    x[:, [j]] = cd_sweeps(x[:, [j]], G_j, P_j, None if top is None else top[j], sweeps=1)
        return x

    def context(self, x):
        count, total = self._neighbours(x)
        return np.stack([np.broadcast_to(count, x.shape), total], axis=-1)

    def coordinate(self, h, p, context, *, scale):
        lam = self.smooth * scale
        return super().coordinate(h + lam * context[..., 0], p + lam * context[..., 1], context, scale=scale)

    def along(self, w, context, *, scale):
        lam = self.smooth * scale
        bends = 0.5 * context[..., 0] * w**2 - context[..., 1] * w
        return super().along(w, context, scale=scale) + lam * bends


def test_a_new_penalty_is_one_class():
    """Smoothness between neighbouring items: solver, trace, finish and certificate follow it."""
    data = make_synthetic(50, 12, 2, noise=0.2, random_state=3)
    model = ICQF(2, item_range=(0, 100), dtype="float64", intercept=False, reconstruction_max=None)
    plain = model.state(data.answers).problem
    smooth = replace(plain, loading_penalty=Smooth(plain.penalty.beta, smooth=2.0))
    found = solved(smooth, 2, tol=1e-5, max_iter=5000)
    assert found.converged
    W, Q = found.factors.scores, found.factors.loadings
    assert found.objective == pytest.approx(smooth.objective(W, Q), rel=1e-12)
    rough = solved(plain, 2, tol=1e-5, max_iter=5000).factors.loadings
    assert (np.diff(Q, axis=1) ** 2).sum() < 0.8 * (np.diff(rough, axis=1) ** 2).sum()

    def value(flat):
        return smooth.objective(W, flat.reshape(Q.shape))

    bounds = [(0, 100)] * Q.size
    best = scipy.optimize.minimize(value, Q.ravel(), bounds=bounds, method="L-BFGS-B")
    assert value(Q.ravel()) <= best.fun * (1 + 1e-6)
