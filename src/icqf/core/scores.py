"""Scores for given loadings: one small convex problem per participant, solved exactly.

`fit` ends with it and `transform` is it, so the two agree.
"""

from __future__ import annotations

import numpy as np

from icqf.core.block_step import Loadings, into_box, rows_above, unpack
from icqf.core.observations import Block
from icqf.core.problem import Array, Terms
from icqf.core.row_problem import solve_rows

_SWEEPS = 6
_MAX_ROUNDS = 500


def scores_of_block(block: Block, Q: Array, terms: Terms, *, tol: float) -> Array:
    """Best scores W (k, B) of a block, in double precision, for the loadings Q (K, m)."""
    k = len(Q) - len(block.C)
    loadings = Loadings(Q.astype(block.X.dtype), k)
    offset = block.C.T @ loadings.Q[k:]
    target = (block.masked(block.X - offset) @ loadings.columns).T
    W = _settle(terms, loadings, block.O, target, tol)
    exact = W.astype(np.float64)
    if terms.bounds.reconstruction is not None:
        rows, _ = rows_above(W.T @ loadings.own + offset, terms.bounds.reconstruction)
        if len(rows):
            precise = Loadings(Q.astype(np.float64), k)
            exact[:, rows] = _settle_at_bound(terms, precise, block, rows, W[:, rows])
    return into_box(exact, terms.bounds.score)


def _settle(terms: Terms, loadings: Loadings, O: Array | None, target: Array, tol: float) -> Array:
    """Scores of a block as if there were no bound on reconstructed answers."""
    if O is None:
        return _settle_shared(terms, loadings, target, tol)
    complete = O.all(axis=1)
    W = np.empty_like(target)
    W[:, complete] = _settle_shared(terms, loadings, target[:, complete], tol)
    W[:, ~complete] = _settle_each(terms, loadings, O[~complete], target[:, ~complete], tol)
    return W


def _settle_shared(terms: Terms, loadings: Loadings, target: Array, tol: float) -> Array:
    W = np.zeros_like(target)
    left = np.arange(W.shape[1])
    penalty, top = terms.penalty, terms.bounds.score
    for _ in range(_MAX_ROUNDS):
        before = W[:, left]
        x = penalty.sweep(
            before.copy(), loadings.gram, target[:, left], top, scale=1.0, sweeps=_SWEEPS, xp=np
        )
        W[:, left] = x
        left = left[np.abs(x - before).max(axis=0) > tol]
        if len(left) == 0:
            break
    return W


def _settle_each(
    terms: Terms,
    loadings: Loadings,
    O: Array,
    target: Array,
    tol: float,
) -> Array:
    """Rows with missing answers: each has the Gram matrix of the items it answered."""
    W = np.zeros_like(target)
    left = np.arange(W.shape[1])
    penalty, top = terms.penalty, terms.bounds.score
    gram = unpack((O @ loadings.products).T, loadings.k)
    for _ in range(_MAX_ROUNDS):
        before = W[:, left]
        gradient = (gram * before).sum(axis=1) - target[:, left]
        x = penalty.sweep_each(before.copy(), gradient, gram, top, scale=1.0, sweeps=_SWEEPS, xp=np)
        W[:, left] = x
        still = np.abs(x - before).max(axis=0) > tol
        if not still.any():
            break
        if not still.all():
            left, gram = left[still], gram[:, :, still]
    return W


def _settle_at_bound(terms: Terms, loadings: Loadings, block: Block, rows: Array, w: Array) -> Array:
    """Scores (k, s) of the rows whose reconstruction is above the range, in double precision, from w on."""
    k, penalty = loadings.k, terms.penalty
    X, O = block.X[rows].astype(np.float64), block.observed()[rows].astype(np.float64)
    offset = block.design[:, rows].T @ loadings.Q[k:]
    # A confound part that is above the range by itself leaves no room, and no score can make it fit.
    room = np.maximum(np.asarray(terms.bounds.reconstruction) - offset, 0.0)
    H = unpack((O @ loadings.products).T, k)
    p = (((X - offset) * O) @ loadings.columns).T
    w, diagonal = w.astype(np.float64), np.eye(k)[:, :, None]
    for _ in range(penalty.rounds):
        ridge, linear = penalty.quadratic(w, scale=1.0)
        w = solve_rows(H + ridge * diagonal, p - linear, loadings.own, room, terms.bounds.score, w)
    return w
