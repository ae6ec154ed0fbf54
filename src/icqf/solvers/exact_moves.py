"""Moves that leave every reconstructed answer as it is and lower the penalty: they end slow crawls."""

from __future__ import annotations

import numpy as np

from icqf.solvers.problem import Array, Problem

UNMOVED = 1e-6  # a scale this close to 1 is left alone


def share_with_intercept(problem: Problem, Q: Array, k: int) -> None:
    """Move what all columns of a partition have in common to the intercept, in place.

    The columns of a partition add up to one for everybody, so R stays as it is; where the penalty favours
    it, one loading carries what two or more did.
    """
    if problem.intercept is None or not problem.penalty_of_loadings.favours_intercept:
        return
    intercept = k + problem.intercept
    for partition in problem.partitions:
        columns = [k + column for column in partition]
        common = Q[columns].min(axis=0)
        if problem.bounds.loading is not None:
            common = np.minimum(common, np.maximum(problem.bounds.loading - Q[intercept], 0))
        common = common.astype(Q.dtype)
        Q[columns] -= common
        Q[intercept] += common


def balance(problem: Problem, mass: Array, peak: Array, own: Array) -> Array | None:
    """The scales s (k,) that bring W·s and Q/s to their least penalty, as far as the boxes allow.

    None where nothing would move. `mass` and `peak` of the scores are those of `Sums`; `own` (k, m) are the
    factors' loadings.
    """
    own = own.astype(np.float64)
    used = (mass > 0) & (own.sum(axis=1) > 0)
    s = problem.penalty_of_loadings.balance(np.where(used, mass, 1.0), own, gamma=problem.gamma)
    if s is None:
        return None
    if problem.bounds.loading is not None:
        s = np.maximum(s, (own / problem.bounds.loading).max(axis=1))
    if problem.bounds.score is not None:
        s = np.minimum(s, problem.bounds.score / np.where(used, peak, 1.0))
    s = np.where(used, s, 1.0)
    return None if np.abs(s - 1).max() < UNMOVED else s
