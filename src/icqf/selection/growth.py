"""Starts that grow: a further factor begins where the fit without it left the answers unexplained."""

from __future__ import annotations

import numpy as np

from icqf.core.problem import Array, Problem
from icqf.core.result import Factors
from icqf.core.start import Starts, settle
from icqf.engines.choice import run

_ITERATIONS = 20  # of the fit with each number of factors, before the next factor is added
_POWER_STEPS = 15  # towards the strongest pattern of what is left; a rough one will do


class Growth:
    """Starts of one problem for every number of factors, each grown from the one before.

    The first factor is that of NNDSVD. Further on, the strongest non-negative pattern of the residuals is
    added, and all factors settle for a few iterations. What is found for k factors does not depend on
    which other numbers are asked for.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_synthetic
    >>> problem = ICQF(1, item_range=(0, 100)).state(make_synthetic(random_state=0).answers).problem
    >>> Growth(problem, tol=5e-3).start(3).scores.shape
    (3, 200)
    """

    def __init__(self, problem: Problem, *, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self._grown: list[Factors] = []

    def start(self, k: int) -> Factors:
        """The start with k factors."""
        while len(self._grown) < k:
            start = self._with_one_more(self._grown[-1]) if self._grown else self._first()
            (fit,) = run(self.problem, start, tol=self.tol, max_iter=_ITERATIONS, exact=False)
            self._grown.append(fit.factors)
        return self._grown[k - 1]

    def _first(self) -> Factors:
        return Starts(self.problem).make("nndsvd", 1)

    def _with_one_more(self, factors: Factors) -> Factors:
        k = len(factors.scores)
        scores, loadings = self._strongest_pattern(factors)
        return settle(
            self.problem,
            Factors(
                np.concatenate([factors.scores, scores[None]]),
                np.concatenate([factors.loadings[:k], loadings[None]]),
            ),
        )

    def _strongest_pattern(self, factors: Factors) -> tuple[Array, Array]:
        """Of the residuals' leading singular pair, the heavier of its two signed halves: (n,) and (m,)."""
        residuals = self._residuals(factors)
        weights = np.ones(self.problem.n) if self.problem.weights is None else self.problem.weights
        v = np.zeros(self.problem.m)
        v[int(np.argmax(sum((E**2).sum(axis=0) for E in residuals)))] = 1.0
        for _ in range(_POWER_STEPS):
            u = np.concatenate([E @ v for E in residuals])
            v = _row_sums(residuals, weights * u)
            v /= max(float(np.linalg.norm(v)), 1e-300)
        u = np.concatenate([E @ v for E in residuals])
        halves = [(np.maximum(sign * u, 0), np.maximum(sign * v, 0)) for sign in (1.0, -1.0)]
        return max(halves, key=lambda half: float(weights @ half[0] ** 2) * float(half[1] @ half[1]))

    def _residuals(self, factors: Factors) -> list[Array]:
        """What the factors leave of the observed answers, block by block."""
        A, Q = self.problem.with_confounds(factors.scores), factors.loadings
        return [block.masked(block.X - A[:, block.rows].T @ Q) for block in self.problem.blocks()]


def _row_sums(residuals: list[Array], u: Array) -> Array:
    """Σ_i u_i e_i over the rows of all blocks."""
    total, first = np.zeros(residuals[0].shape[1]), 0
    for E in residuals:
        total += u[first : first + len(E)] @ E
        first += len(E)
    return total
