"""The paper's procedure: ADMM with the reconstruction split off as Z."""

from __future__ import annotations

from typing import Any

import numpy as np

from icqf.core.acceleration import SMALLEST_RHO
from icqf.core.observations import half_square
from icqf.core.penalties import Penalty
from icqf.core.problem import Array, Problem
from icqf.core.result import Factors, Move, Trace
from icqf.core.sweeps import INNER

_INNER_TOL = 1e-7
_INNER_ITER = 500
_BALANCE_UNTIL = 100
_BALANCE_EVERY = 2
_IMBALANCE = 5.0


class ADMMIteration:
    """The state of the ADMM solver; `advance` runs one iteration.

    Minimises the augmented Lagrangian

        Σ ω_i (½ O∘(X − Z)² + β‖W_i‖ + ⟨α, Z − R⟩ + ρ/2 (Z − R)²) + βγ‖Q‖

    in W, Q and Z in turn, and then moves α along ρ(Z − R). W and Q are solved for exactly, or with the inner
    solver "sweep", as in the authors' program, by one sweep over their coordinates. `rho="adaptive"` is
    residual balancing: it doubles or halves ρ to keep the primal and dual residuals alike, never below √2,
    and settles after 100 iterations.
    """

    def __init__(self, problem: Problem, start: Factors, *, rho: float | str, inner: str) -> None:
        self.problem = problem
        self.k = len(start.scores)
        self.inner = inner
        self.adaptive = rho == "adaptive"
        self.rho = 3.0 if self.adaptive else float(rho)
        self.A = problem.with_confounds(start.scores)
        self.Q = start.loadings.astype(problem.dtype)
        blocks = list(problem.blocks())
        self.X = np.concatenate([block.X for block in blocks])
        self.O = np.concatenate([block.observed() for block in blocks])
        self.weights = None if problem.weights is None else problem.weights.astype(problem.dtype)
        self.R = self.A.T @ self.Q
        self.Z = self._inside(self.R if inner == "sweep" else np.where(self.O > 0, self.X, self.R))
        self.alpha = np.zeros_like(self.Z)
        self.trace = Trace()

    def factors(self) -> Factors:
        """The current scores (k, n) and loadings (K, m)."""
        return Factors(self.A[: self.k], self.Q)

    def advance(self) -> Move:
        """One iteration."""
        problem, rho = self.problem, self.rho
        scores, loadings, R = self.A[: self.k].copy(), self.Q, self.R
        target = self.Z + self.alpha / rho
        self._score_step(target)
        self._loading_step(target)
        self.R = self.A.T @ self.Q
        self.Z = self._inside((self.O * self.X + rho * self.R - self.alpha) / (rho + self.O))
        gap = self.Z - self.R
        self.alpha += rho * gap

        scores_now = self.A[: self.k]
        score_unit, loading_unit = problem.units(scores_now.max(axis=1), self.Q)
        step = float((np.abs(self.Q - loadings) / loading_unit).max())
        score_step = float((np.abs(scores_now - scores).max(axis=1) / score_unit).max())
        excess = self._excess()
        primal, dual = float(np.linalg.norm(gap)), float(rho * np.linalg.norm(self.R - R))
        self.trace.add(
            objective=self._objective(self.R),
            excess=excess,
            step=step,
            lagrangian=self.lagrangian(),
            primal_residual=primal,
            dual_residual=dual,
            rho=rho,
        )
        if self.adaptive:
            self._balance_rho(primal, dual)
        return Move(step, score_step, excess)

    def lagrangian(self) -> float:
        """The augmented Lagrangian at the current point."""
        gap = self.Z - self.R
        coupling = (self.alpha * gap + self.rho / 2 * gap**2).sum(axis=1, dtype=np.float64)
        coupled = coupling.sum() if self.weights is None else coupling @ self.weights
        return self._objective(self.Z) + float(coupled)

    def _objective(self, Z: Array) -> float:
        """F with Z in the place of the reconstruction."""
        misfit = half_square((self.O * (self.X - Z)).astype(np.float64), self.problem.weights)
        return self.problem.objective(self.A[: self.k], self.Q, misfit=misfit)

    def _inside(self, Z: Array) -> Array:
        return np.clip(Z, 0, self.problem.bounds.reconstruction).astype(self.problem.dtype)

    def _excess(self) -> float:
        bound = self.problem.bounds.reconstruction
        return 0.0 if bound is None else max(0.0, float(((self.R - bound) / bound).max()))

    def _score_step(self, target: Array) -> None:
        k, Q = self.k, self.Q
        own = Q[:k]
        P = own @ (target - self.A[k:].T @ Q[k:]).T
        problem = self.problem
        self.A[:k] = self._solve(self.A[:k], own @ own.T, P, problem.bounds.score, problem.penalty, 1.0)

    def _loading_step(self, target: Array) -> None:
        weighted = self.A if self.weights is None else self.A * self.weights
        problem = self.problem
        G, P, penalty = weighted @ self.A.T, weighted @ target, problem.penalty_of_loadings
        self.Q = self._solve(self.Q, G, P, problem.bounds.loading, penalty, problem.gamma)

    def _solve(self, x: Array, G: Array, P: Array, top: Any, penalty: Penalty, scale: float) -> Array:
        tol, scale = _INNER_TOL * (1.0 if top is None else float(np.max(top))), scale / self.rho
        if self.inner == "sweep":
            return np.asarray(penalty.sweep(x.copy(), G, P, top, scale=scale, sweeps=1, xp=np))
        if penalty.rounds > 1:
            x = x.copy()
            for _ in range(_INNER_ITER):
                before = x.copy()
                penalty.sweep(x, G, P, top, scale=scale, sweeps=1, xp=np)
                if np.abs(x - before).max() <= tol:
                    break
            return x
        ridge, linear = penalty.quadratic(x, scale=scale)
        G = G + ridge * np.eye(len(G), dtype=G.dtype)
        return np.asarray(INNER[self.inner](x, G, P, top, l1=linear, tol=tol, max_iter=_INNER_ITER))

    def _balance_rho(self, primal: float, dual: float) -> None:
        done = len(self.trace.rho)
        if done > _BALANCE_UNTIL or done % _BALANCE_EVERY:
            return
        if primal > _IMBALANCE * dual:
            self.rho *= 2
        elif dual > _IMBALANCE * primal:
            self.rho = max(SMALLEST_RHO, self.rho / 2)
