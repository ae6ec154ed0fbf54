"""Scores for given loadings: one small convex problem per participant, solved exactly.

`fit` ends with it and `transform` is it, so the two agree. Participants whose reconstructed answers reach
their range are quadratic programs, solved in batch: the active bounds are guessed and the guess is corrected
until it is right, which for nearly every row takes a few rounds, one linear system each. The rows that are
left are solved by a primal-dual interior-point method (Mehrotra's predictor and corrector).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from icqf.core.block_step import Loadings, Multipliers, into_box, rows_above, unpack
from icqf.core.observations import Block
from icqf.core.problem import Array, Terms

_ROUNDS = 30
_RIGHT = 1e-9  # what counts as zero when a guess is checked
_MAX_ITER = 60
_TOL = 1e-12
_EXHAUSTED = 1e-15  # limit of the arithmetic
_STEP_SHARE = 0.995
_STALLED = 0.9  # a row whose complementarity falls by less than this share in an iteration
_SNAP = 1e-6  # scores this close to 0 or their top are set there, as interior points never reach it
_quiet = np.errstate(all="ignore")  # singular systems are handled
_SWEEPS = 6
_MAX_ROUNDS = 500


def solve_rows(
    H: Array, p: Array, loadings: Array, room: Array, top: float | None, start: Array | None = None
) -> tuple[Array, Array]:
    """min ½wᵀHw − pᵀw  over  0 ≤ w ≤ top,  loadingsᵀ w ≤ room: w (k, s) and multipliers of room (s, m)."""
    k, s = p.shape
    size = np.maximum(np.einsum("rri->i", H) / k, 1e-12)
    width = np.maximum(room.max(), 1e-12)
    H, p, loadings, room = H / size, p / size, loadings / width, room / width
    w = np.zeros((k, s)) if start is None else start.astype(np.float64)
    multipliers = np.zeros_like(room)
    unsettled = correct_guess(H, p, loadings, room, np.inf if top is None else float(top), w, multipliers)
    if len(unsettled):
        some = H[:, :, unsettled], p[:, unsettled]
        w[:, unsettled], multipliers[unsettled] = interior_points(*some, loadings, room[unsettled], top)
    return w, multipliers * (size / width)[:, None]


@_quiet
def correct_guess(
    H: Array, p: Array, loadings: Array, room: Array, top: float, w: Array, multipliers: Array
) -> Array:
    """Solve by finding the active bounds, from the guess w; w and multipliers (s, m) are set in place.

    A round solves for the scores and multipliers as if the guess were right, and corrects what is most wrong
    with it: a score outside its box is put to its bound, a bound or item whose multiplier has the wrong
    sign is let go, or the item most above its room becomes active. When nothing is wrong, the optimality
    conditions hold. (Correcting everything at once takes more rounds and can go round in circles.)
    """
    k, left = len(p), np.arange(p.shape[1])
    side: Array = (w >= top).astype(np.int8) - (w <= 0)  # −1 at 0, 1 at the top, 0 between
    items: Array = np.zeros((0, len(left)), dtype=np.intp)
    on: Array = np.zeros((0, len(left)), dtype=bool)
    excess = w.T @ loadings - room
    worst = excess.argmax(axis=1)
    add = excess[left, worst] > _RIGHT
    failed = []
    for _ in range(_ROUNDS):
        items, on = _with_item(items, on, worst, add)
        N = loadings[:, items] * on
        found, force = _solve_guess(H, p, N, room, items, on, side, top)
        gradient = np.einsum("rti,ti->ri", H, found) - p + np.einsum("rai,ai->ri", N, force)
        excess = found.T @ loadings - room
        worst = excess.argmax(axis=1)
        free = side == 0
        wrong = np.concatenate(
            [
                np.where(free, np.maximum(-found, found - top), side * gradient),
                -force * on,
                excess[np.arange(len(left)), worst][None],
            ]
        )
        most = wrong.max(axis=0)
        rest = np.abs(gradient * free).max(axis=0) / (1 + np.abs(p).max(axis=0))
        again = most > _RIGHT  # neither this nor `settled` where a system was singular
        settled = (most <= _RIGHT) & (rest <= _RIGHT)
        w[:, left] = found
        done = ~again
        place, rows = np.nonzero(on & done)
        multipliers[left[rows], items[place, rows]] = np.maximum(force[place, rows], 0)
        failed.append(left[done & ~settled])
        left = left[again]
        if not len(left):
            break
        H, p, side, items, on, worst, wrong, most, found = (
            array[..., again] for array in (H, p, side, items, on, worst, wrong, most, found)
        )
        room = room[again]
        correct = wrong == most
        side = np.where(correct[:k], np.where(side == 0, np.where(found < 0, -1, 1), 0), side)
        on, add = on & ~correct[k:-1], correct[-1]
    np.clip(w, 0, top, out=w)
    return np.concatenate([*failed, left])


def _with_item(items: Array, on: Array, item: Array, add: Array) -> tuple[Array, Array]:
    """The active items (a, s) with one more in the rows that `add` it, in the first place that is free."""
    if (on.all(axis=0) & add).any():
        items = np.concatenate([items, np.zeros((1, len(add)), dtype=items.dtype)])
        on = np.concatenate([on, np.zeros((1, len(add)), dtype=bool)])
    rows = np.flatnonzero(add)
    if len(rows):
        place = on[:, rows].argmin(axis=0)
        items[place, rows], on[place, rows] = item[rows], True
    return items, on


def _solve_guess(
    H: Array, p: Array, N: Array, room: Array, items: Array, on: Array, side: Array, top: float
) -> tuple[Array, Array]:
    """Scores (k, s) at their `side`, and multipliers (a, s) with the items that are `on` at their room."""
    k, a = N.shape[:2]
    free, fixed = (side == 0).astype(np.float64), np.where(side > 0, top, 0.0)
    A, b = np.zeros((k + a, k + a, len(room))), np.empty((k + a, len(room)))
    A[:k, :k] = H * free * free[:, None]
    A[:k, k:] = N * free[:, None]
    A[k:, :k] = A[:k, k:].swapaxes(0, 1)
    A[np.arange(k), np.arange(k)] += 1 - free
    A[np.arange(k, k + a), np.arange(k, k + a)] = np.where(on, -_TOL, 1.0)  # never singular
    b[:k] = np.where(side == 0, p - np.einsum("rti,ti->ri", H, fixed), fixed)
    b[k:] = on * (room[np.arange(len(room)), items] - np.einsum("rai,ri->ai", N, fixed))
    x = _solved(A, b)
    return x[:k], x[k:]


def _solved(A: Array, b: Array) -> Array:
    """Solutions (d, s) of the systems A (d, d, s); that of a singular one is not a number."""
    try:
        return np.linalg.solve(A.transpose(2, 0, 1), b.T[:, :, None])[:, :, 0].T
    except np.linalg.LinAlgError:
        if b.shape[1] == 1:
            return np.full_like(b, np.nan)
    half = b.shape[1] // 2
    return np.concatenate([_solved(A[..., :half], b[:, :half]), _solved(A[..., half:], b[:, half:])], axis=1)


@_quiet
def interior_points(
    H: Array, p: Array, loadings: Array, room: Array, top: float | None
) -> tuple[Array, Array]:
    """The same programs by Mehrotra's method, for H and p of size about one: w (k, s), multipliers (s, m)."""
    k, s = p.shape
    sides = [loadings.T, -np.eye(k)]
    limits = [np.maximum(room, 1e-9), np.zeros((s, k))]
    if top is not None:
        sides.append(np.eye(k))
        limits.append(np.full((s, k), float(top)))
    G, h = np.concatenate(sides), np.concatenate(limits, axis=1)
    products = np.ascontiguousarray(np.einsum("jr,js->jrs", G, G).reshape(len(G), k * k))

    w = np.full((s, k), 0.5 * (1.0 if top is None else top))
    t = np.maximum(h - w @ G.T, 0.1)
    z = np.full_like(t, 0.1)
    strength = 1.0 + np.abs(p).max(axis=0)
    left, last = np.arange(s), np.full(s, np.inf)
    for _ in range(_MAX_ITER):
        w_, t_, z_, H_ = w[left], t[left], z[left], H[:, :, left]
        dual = (np.einsum("rti,it->ri", H_, w_) - p[:, left]).T + z_ @ G
        primal = w_ @ G.T + t_ - h[left]
        mu = (t_ * z_).mean(axis=1)
        off = np.maximum(np.abs(dual).max(axis=1) / strength[left], np.abs(primal).max(axis=1))
        done = ((mu < _TOL) & (off < 1e-9)) | (mu < _EXHAUSTED)
        if done.all():
            break
        if done.any():
            keep = ~done
            left, H_ = left[keep], H_[:, :, keep]
            w_, t_, z_, dual, primal, mu = (a[keep] for a in (w_, t_, z_, dual, primal, mu))
        ratio = z_ / t_
        newton = H_ + (ratio @ products).T.reshape(k, k, -1) + 1e-13 * np.eye(k)[:, :, None]

        def direction(
            complement: Array,
            newton: Array = newton,
            dual: Array = dual,
            primal: Array = primal,
            t_: Array = t_,
            ratio: Array = ratio,
        ) -> tuple[Array, Array, Array]:
            force = complement / t_ + ratio * primal
            pull = -dual - force @ G
            dw = _solved(newton, pull.T).T
            dt = -primal - dw @ G.T
            return dw, dt, complement / t_ - ratio * dt

        dw, dt, dz = direction(-t_ * z_)
        reach = _reach(t_, dt, z_, dz)
        ahead = ((t_ + reach * dt) * (z_ + reach * dz)).mean(axis=1)
        # Predictor and corrector can cycle; a row that has stalled is moved back to the centre.
        stalled = (mu > _STALLED * last[left])[:, None]
        last[left] = mu
        centre = np.where(stalled, 0.5, ((ahead / mu) ** 3)[:, None]) * mu[:, None]
        dw, dt, dz = direction(centre - t_ * z_ - np.where(stalled, 0.0, dt * dz))
        reach = _STEP_SHARE * _reach(t_, dt, z_, dz)
        sound = np.isfinite(dw).all(axis=1)  # a matrix that is singular in rounding ends its row
        left = left[sound]
        w[left], z[left] = (w_ + reach * dw)[sound], (z_ + reach * dz)[sound]
        t[left] = np.maximum(t_ + reach * dt, 1e-15)[sound]
    w = np.where(w < _SNAP, 0.0, w)
    if top is not None:
        w = np.where(w > top - _SNAP, top, w)
    return w.T, z[:, : loadings.shape[1]]


def _reach(t: Array, dt: Array, z: Array, dz: Array) -> Array:
    """The longest step (at most 1) that keeps t and z positive, a row each."""
    fastest_fall = np.minimum((dt / t).min(axis=1), (dz / z).min(axis=1))
    return (1 / np.maximum(-fastest_fall, 1.0))[:, None]


def scores_of_block(block: Block, Q: Array, terms: Terms, *, tol: float) -> tuple[Array, Multipliers]:
    """Best scores W (k, B) of a block, in double precision, for the loadings Q (K, m).

    With them come the multipliers of the participants whose reconstruction would else be above the range, or
    so close to its end that the arithmetic cannot tell.
    """
    k = len(Q) - len(block.C)
    loadings = Loadings(Q.astype(block.X.dtype), k)
    offset = block.C.T @ loadings.Q[k:]
    target = (block.masked(block.X - offset) @ loadings.columns).T
    W = _settle(terms, loadings, block.O, target, tol)
    exact, at_bound = W.astype(np.float64), Multipliers.none(block.X.shape[1], block.X.dtype)
    if terms.bounds.reconstruction is not None:
        offset += W.T @ loadings.own
        rounding = 4 * (len(Q) + 2) * float(np.finfo(offset.dtype).eps)
        rows, _ = rows_above(offset, terms.bounds.reconstruction * (1 - rounding))
        if len(rows):
            precise = Loadings(Q.astype(np.float64), k)
            exact[:, rows], found = _settle_at_bound(terms, precise, block, rows, W[:, rows])
            found = found.astype(block.X.dtype)
            at_bound = Multipliers(rows, found, found)
    return into_box(exact, terms.bounds.score), at_bound


def _settle(terms: Terms, loadings: Loadings, O: Array | None, target: Array, tol: float) -> Array:
    """Scores of a block as if there were no bound on reconstructed answers."""
    if O is None:
        return _settle_shared(terms, loadings, target, tol)
    complete = O.all(axis=1)
    if not complete.any():
        return _settle_each(terms, loadings, O, target, tol)
    W = np.empty_like(target)
    W[:, complete] = _settle_shared(terms, loadings, target[:, complete], tol)
    W[:, ~complete] = _settle_each(terms, loadings, O[~complete], target[:, ~complete], tol)
    return W


def _settle_shared(terms: Terms, loadings: Loadings, target: Array, tol: float) -> Array:
    gram = loadings.gram

    def sweep(x: Array, left: Array, sweeps: int) -> Array:
        best: Array = terms.penalty.sweep(
            x, gram, target[:, left], terms.bounds.score, scale=1.0, sweeps=sweeps, xp=np
        )
        return best

    return _until_settled(sweep, np.zeros_like(target), tol)


def _settle_each(terms: Terms, loadings: Loadings, O: Array, target: Array, tol: float) -> Array:
    """Rows with missing answers: each has the Gram matrix of the items it answered."""
    gram = unpack((O @ loadings.products).T, loadings.k)

    def sweep(x: Array, left: Array, sweeps: int) -> Array:
        own = gram if len(left) == len(O) else gram[:, :, left]
        gradient = np.einsum("rti,ti->ri", own, x) - target[:, left]
        best: Array = terms.penalty.sweep_each(
            x, gradient, own, terms.bounds.score, scale=1.0, sweeps=sweeps, xp=np
        )
        return best

    return _until_settled(sweep, np.zeros_like(target), tol)


def _until_settled(sweep: Callable[[Array, Array, int], Array], W: Array, tol: float) -> Array:
    """Sweeps over scores W (k, B), in place, until one moves none by more than a tenth of `tol`."""
    left = np.arange(W.shape[1])
    close = max(tol / 10, 4 * float(np.finfo(W.dtype).eps))
    for _ in range(_MAX_ROUNDS):
        before = sweep(W[:, left], left, _SWEEPS - 1)
        x = sweep(before.copy(), left, 1)
        W[:, left] = x
        left = left[np.abs(x - before).max(axis=0) > close]
        if len(left) == 0:
            break
    return W


def _settle_at_bound(
    terms: Terms, loadings: Loadings, block: Block, rows: Array, w: Array
) -> tuple[Array, Array]:
    """Scores (k, s) of the rows whose reconstruction is above the range, and Λ (s, m), precisely."""
    k, penalty = loadings.k, terms.penalty
    X, O = block.X[rows].astype(np.float64), block.observed()[rows].astype(np.float64)
    offset = block.design[:, rows].T @ loadings.Q[k:]
    # If the confounds alone exceed the range, no score can make it fit.
    room = np.maximum(np.asarray(terms.bounds.reconstruction) - offset, 0.0)
    H = unpack((O @ loadings.products).T, k)
    p = (((X - offset) * O) @ loadings.columns).T
    w, diagonal = w.astype(np.float64), np.eye(k)[:, :, None]
    for _ in range(penalty.rounds):
        ridge, linear = penalty.quadratic(w, scale=1.0)
        w, found = solve_rows(H + ridge * diagonal, p - linear, loadings.own, room, terms.bounds.score, w)
    return w, found
