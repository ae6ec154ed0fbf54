"""The last step of every solver: exact scores, exact bounds, and the certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icqf.solvers.certificate import examine
from icqf.solvers.exact_moves import share_with_intercept
from icqf.solvers.problem import Array, Problem
from icqf.solvers.result import Certificate, Factors, Fit
from icqf.solvers.scores import solve_scores


@dataclass(frozen=True)
class Finished:
    """A feasible solution with everything that is said about it."""

    factors: Factors
    objective: float
    certificate: Certificate
    fit: Fit
    order: Array  # (k,) the place that each factor had while its scores were solved for


def finish(problem: Problem, Q: Array, *, tol: float) -> Finished:
    """Best scores for the loadings Q (K, m), brought exactly inside every bound, and measured.

    Factors come out in order of how much of the answers' variance they explain.
    """
    Q = _loadings_inside(problem, Q.astype(np.float64))
    W = solve_scores_inside(problem, Q, tol=tol)
    certificate, fit, objective = examine(problem, W, Q)
    k = len(W)
    order = np.argsort(-fit.explained[:k].sum(axis=1), kind="stable")
    rows = np.concatenate([order, np.arange(k, len(Q))])
    return Finished(
        Factors(W[order], Q[rows]),
        objective,
        certificate,
        Fit(fit.sse, fit.sst, fit.explained[rows]),
        order,
    )


def score_tolerance(tol: float) -> float:
    """How exactly the scores are solved for given loadings."""
    return max(1e-6, min(1e-4, tol / 100))


def solve_scores_inside(problem: Problem, Q: Array, *, tol: float) -> Array:
    """Best scores W (k, n) for the loadings Q (K, m), with every reconstructed answer inside its range."""
    W = solve_scores(problem, Q, tol=tol)
    _scores_inside(problem, W, Q)
    return W


def _margin(K: int) -> float:
    """Share of the range left free, so that R ≤ b however its K products are added up."""
    return 4 * (K + 2) * np.finfo(np.float64).eps


def _loadings_inside(problem: Problem, Q: Array) -> Array:
    """Clip the loadings; shrink an item's confound loadings where they alone exceed its range."""
    k = len(Q) - problem.c
    Q = np.maximum(Q, 0)
    if problem.bounds.loading is not None:
        Q = np.minimum(Q, problem.bounds.loading)
    share_with_intercept(problem, Q, k)
    if problem.bounds.reconstruction is not None and problem.c:
        allowed = problem.bounds.reconstruction * (1 - _margin(len(Q)))
        highest = np.zeros(problem.m)
        for block in problem.blocks():
            part = problem.design[:, block.rows].astype(np.float64).T @ Q[k:]
            highest = np.maximum(highest, part.max(axis=0))
        Q[k:] *= np.minimum(1.0, allowed / np.maximum(highest, 1e-300))
    for _ in range(2):
        # As they come back from the items' own units: scores for stored loadings are those of the fit.
        # (q / s) s may differ from q in its last digit; a second time it does not, bound or no bound.
        Q = problem.scaled_loadings(problem.own_loadings(Q))
    return Q


def _scores_inside(problem: Problem, W: Array, Q: Array) -> None:
    """Shrink the scores of each row whose reconstruction is above its range, in place."""
    if problem.bounds.reconstruction is None:
        return
    k = len(W)
    allowed = problem.bounds.reconstruction * (1 - _margin(len(Q)))
    for block in problem.blocks():
        base = problem.design[:, block.rows].astype(np.float64).T @ Q[k:]
        own = W[:, block.rows].T @ Q[:k]
        rows = np.flatnonzero((base + own > allowed).any(axis=1))
        if len(rows):
            room = np.maximum(allowed - base[rows], 0)
            shrink = np.where(own[rows] > room, room / np.maximum(own[rows], 1e-300), 1.0).min(axis=1)
            W[:, block.rows.start + rows] *= shrink
