"""Moves that leave every reconstructed answer as it is and lower the penalty: they end slow crawls."""

from __future__ import annotations

import math

import numpy as np

from icqf.core.pace import scale_in_bounds, with_shared
from icqf.core.problem import Array, Problem


def share_with_intercept(problem: Problem, Q: Array, k: int) -> None:
    """Move what all columns of a partition have in common to the intercept, in place.

    The columns of a partition add up to one for everybody, so R stays as it is; where the penalty favours
    it, one loading carries what two or more did.
    """
    if problem.intercept is None or not problem.penalty_of_loadings.favours_intercept:
        return
    rows = np.arange(len(Q)) - k
    intercept = rows == problem.intercept
    top = math.inf if problem.bounds.loading is None else problem.bounds.loading.astype(Q.dtype)
    for partition in problem.partitions:
        among = np.zeros(len(Q), dtype=bool)
        among[[k + at for at in partition]] = True
        Q[...] = with_shared(Q, among, intercept, top)


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
    tops = (math.inf if top is None else top for top in (problem.bounds.loading, problem.bounds.score))
    s = np.asarray(scale_in_bounds(s, used, own, peak, *tops))
    return None if (s == 1).all() else s
