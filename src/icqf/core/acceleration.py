"""Control of the iterations: momentum and restarts, the exact moves, and when to stop.

NumPy calls these formulas, and the GPU's kernels are compiled from them (`icqf.engines.torch_triton`). So
they use nothing but arithmetic, numbers defined here (which stand on the right, as the interpreter of Triton
wants them), and what `xp` calls alike in NumPy and in Triton.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import numpy as xp

from icqf.core.problem import Array, Problem

LOADING_SWEEPS = 3
SMALLEST_RHO = 2.0**0.5  # of ADMM; from here on the augmented Lagrangian is known not to increase
EXACT_MOVES_EVERY = 3  # iterations
MOMENTUM_CAP = 0.9
SHRINK, GROW = 0.8, 1.01  # of the cap, when an iteration finds F higher or lower than the last
UNMOVED = 1e-6  # a scale this close to 1 is left alone
RESTLESS = (
    10.0  # how much farther than loadings the scores may still move: they are solved exactly afterwards
)


class _Numbers:
    """The `xp` of plain numbers, which is twenty times as fast as NumPy."""

    sqrt, minimum, maximum = math.sqrt, min, max

    @staticmethod
    def where(condition: Any, first: Any, second: Any) -> Any:
        return first if condition else second


def of_numbers(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A formula of this module for plain numbers."""
    return FunctionType(formula.__code__, globals() | {"xp": _Numbers}, formula.__name__)


def turns_back(curvature: Any, ahead: Any, after: Any, before: Any) -> Any:
    """Whether loadings (K, m) that were extrapolated `ahead` moved back, rows counted by their curvature."""
    return xp.sum(curvature * xp.sum((ahead - after) * (after - before), axis=1), axis=0) > 0


def next_momentum(rose: Any, turned: Any, t: Any, cap: Any) -> Any:
    """Nesterov's sequence: the next momentum, t and cap.

    It restarts when the loadings have turned back or F rose, and is held shorter when F rose.
    """
    cap = xp.where(rose, cap * SHRINK, xp.minimum(cap * GROW, MOMENTUM_CAP))
    following = (1 + xp.sqrt(1 + 4 * t * t)) / 2
    again = rose | turned
    momentum = xp.where(again, 0.0, xp.minimum(cap, (t - 1) / following))
    return momentum, xp.where(again, 1.0, following), cap


def has_settled(loading_step: Any, score_step: Any, tol: Any) -> Any:
    """Whether an iteration moved no farther than `tol`."""
    return (loading_step <= tol) & (score_step <= tol * RESTLESS)


def with_shared(Q: Any, among: Any, intercept: Any, top: Any) -> Any:
    """Loadings (K, m) with what the rows `among` have in common moved to the row `intercept`, up to `top`.

    Both are marks (K,).
    """
    common = xp.min(xp.where(among[:, None], Q, float("inf")), axis=0)
    room = top - xp.sum(xp.where(intercept[:, None], Q, 0.0), axis=0)
    common = xp.minimum(common, xp.maximum(room, 0.0))[None, :]
    return xp.where(intercept[:, None], Q + common, xp.where(among[:, None], Q - common, Q))


def scale_in_bounds(s: Any, used: Any, own: Any, peak: Any, loading_top: Any, score_top: Any) -> Any:
    """The scales s (k,) of W·s and Q/s as far as bounds allow; 1 for factors not used, and where none moves.

    `own` (k, m) are loadings and `peak` (k,) the highest scores.
    """
    s = xp.maximum(s, xp.max(own / loading_top, axis=1))
    s = xp.minimum(s, score_top / xp.where(used, peak, 1.0))
    s = xp.where(used, s, 1.0)
    return xp.where(xp.max(xp.abs(s - 1), axis=0) < UNMOVED, 1.0, s)


def share_with_intercept(problem: Problem, Q: Array, k: int) -> None:
    """Move what all columns of a partition have in common to the intercept, in place.

    The columns of a partition add up to one for everybody, so R stays as it is; where the penalty favours
    it, one loading carries what two or more did.
    """
    if problem.intercept is None or not problem.penalty_of_loadings.favours_intercept:
        return
    top = math.inf if problem.bounds.loading is None else problem.bounds.loading.astype(Q.dtype)
    for partition in problem.partitions:
        rows = [k + at for at in (*partition, problem.intercept)]
        among = np.arange(len(rows)) < len(partition)
        Q[rows] = with_shared(Q[rows], among, ~among, top)


def balance(problem: Problem, mass: Array, peak: Array, own: Array) -> Array | None:
    """The scales s (k,) that bring W·s and Q/s to their least penalty, as far as the boxes allow.

    None where nothing would move. `mass` and `peak` of the scores are those of `Sums`; `own` (k, m) are the
    factors' loadings.
    """
    own = own.astype(np.float64)
    used = (mass > 0) & (own.sum(axis=1) > 0)
    penalty, gamma = problem.penalty_of_loadings, problem.gamma
    if penalty.beta != problem.penalty.beta:
        if not penalty.beta or not problem.penalty.beta:
            return None  # the scale is up to the boxes
        gamma *= penalty.beta / problem.penalty.beta
    s = penalty.balance(np.where(used, mass, 1.0), own, gamma=gamma)
    if s is None:
        return None
    tops = (math.inf if top is None else top for top in (problem.bounds.loading, problem.bounds.score))
    s = np.asarray(scale_in_bounds(s, used, own, peak, *tops))
    return None if (s == 1).all() else s
