"""Attacks on the sums over participants that a model file holds: integer programming and lattice reduction.

With few items and no confounds, a participant is one of a few patterns of answers. Whoever has the model can
compute the scores of every pattern, and with them what a participant of this pattern adds to every number
that the file says about the fit. How many participants have each pattern is then a system of linear equations
with whole numbers as its solution. The attacker is told the sums and sums of squares of every item besides.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from icqf import ICQF

LEVELS = 3
SECONDS = 5


@dataclass(frozen=True, eq=False)
class Site:
    """A small site: which patterns its participants have, and what its model file says."""

    patterns: np.ndarray  # (p, m)
    truth: np.ndarray  # (p,) participants of each pattern
    equations: np.ndarray  # (e, p) what one participant adds to each number
    low: np.ndarray  # (e,) where the number lies
    high: np.ndarray


def site(n: int, m: int, *, k: int = 2, exact: bool, seed: int = 0) -> Site:
    """A site with n participants and m items; `exact`: as if the file held every digit."""
    rng = np.random.default_rng(seed)
    level = rng.random((n, k)).repeat(-(-m // k), axis=1)[:, :m]
    answers = np.clip(np.rint(2 * level + rng.normal(0, 0.6, (n, m))), 0, LEVELS - 1)
    model = ICQF(k, beta=0.02, item_range=(0, LEVELS - 1), dtype="float64").fit(answers)
    patterns = np.array(list(itertools.product(range(LEVELS), repeat=m)), dtype=float)
    truth = np.array([(answers == pattern).all(axis=1).sum() for pattern in patterns])
    scores = model.transform(patterns)
    made = scores @ model.components_ + model.confound_components_[0]
    error = (patterns - made) ** 2
    mean = answers.mean(axis=0)
    products = [
        scores[:, f] * model.components_[f, j] * (patterns[:, j] - mean[j])
        for f in range(k)
        for j in range(m)
    ]
    known = np.array([np.ones(len(patterns)), *patterns.T, *(patterns**2).T])
    objective = 0.5 * error.sum(axis=1) + model.beta * scores.sum(axis=1)
    said = np.array([*error.T, *products, objective])
    own, stored = model.fit_statistics_, model.describe()
    penalty = model.beta * n / m * (LEVELS - 1)
    fixed = penalty * (model.components_.sum() + model.confound_components_.sum())
    if exact:
        values = np.array([*own.sse, *own.explained[:k].ravel(), model.objective_ - fixed])
        room = np.full(len(values), 1e-8)
    else:
        arrays = stored.arrays
        values = np.array([*arrays["sse"], *arrays["explained"][:k].ravel(), stored.header["objective"]])
        digits = np.array([2] * (len(values) - 1) + [5])
        room = 0.51 * 10.0 ** (np.floor(np.log10(np.maximum(np.abs(values), 1e-300))) - digits)
        values[-1] -= fixed
    told = known @ truth
    rows, ends = at_the_optimum(model, scores, patterns - made, made.max(axis=0))
    return Site(
        patterns,
        truth,
        np.concatenate([known, said, rows]),
        np.concatenate([told, values - room, ends[:, 0]]),
        np.concatenate([told, values + room, ends[:, 1]]),
    )


def at_the_optimum(
    model: ICQF, scores: np.ndarray, misfit: np.ndarray, highest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the loadings themselves say: the slope at those between their bounds is 0, as far as the fit went.

    Where reconstructed answers reach the highest one, its bound holds back as well, and one side is known.
    """
    n, m = model.n_participants_, len(highest)
    penalty, room = model.beta * n / m * (LEVELS - 1), model.certificate_.loading_step * (LEVELS - 1) * n
    rows, ends = [np.zeros(len(misfit))], [(0.0, 0.0)]
    parts = [*zip(scores.T, model.components_, strict=True)]
    parts.append((np.ones(len(misfit)), model.confound_components_[0]))
    for weight, loadings in parts:
        for j in np.flatnonzero((loadings > 0) & (loadings < LEVELS - 1)):
            rows.append(weight * misfit[:, j])
            free = highest[j] < (LEVELS - 1) * (1 - 1e-9)
            ends.append((penalty - room, penalty + room if free else np.inf))
    return np.array(rows), np.array(ends)


def by_integer_programming(attacked: Site, *, sums: bool = True) -> np.ndarray | None:
    """Participants of each pattern that agree with every number; without `sums`, with what is told alone."""
    used = slice(None) if sums else slice(0, 1 + 2 * attacked.patterns.shape[1])
    found = milp(
        np.zeros(len(attacked.patterns)),
        constraints=LinearConstraint(attacked.equations[used], attacked.low[used], attacked.high[used]),
        integrality=np.ones(len(attacked.patterns)),
        bounds=Bounds(0, attacked.truth.sum()),
        options={"time_limit": SECONDS},
    )
    return None if found.x is None else np.rint(found.x)


def by_lattice_reduction(attacked: Site) -> np.ndarray | None:
    """The same from a lattice in which the right numbers are a short vector (Kannan's embedding).

    Every equation is rounded to the precision with which it is known; a vector that the reduction finds is a
    solution where it has no negative numbers and adds up to all participants.
    """
    attacked = equations_alone(attacked)
    p, n = len(attacked.patterns), attacked.truth.sum()
    middle, room = (attacked.low + attacked.high) / 2, np.maximum((attacked.high - attacked.low) / 2, 1e-8)
    rows = np.zeros((p + 1, p + 1 + len(middle)))
    rows[:p, :p] = np.eye(p)
    rows[p, p] = 1.0
    rows[:p, p + 1 :] = (attacked.equations / room[:, None]).T
    rows[p, p + 1 :] = -middle / room
    for row in reduced(rows):
        counts = row[:p] * np.sign(row[p])
        if abs(row[p]) == 1 and (counts >= 0).all() and counts.sum() == n:
            return counts
    return None


def equations_alone(attacked: Site) -> Site:
    """Without what is known to one side only."""
    both = np.isfinite(attacked.high)
    return replace(
        attacked, equations=attacked.equations[both], low=attacked.low[both], high=attacked.high[both]
    )


def reduced(basis: np.ndarray, delta: float = 0.99) -> np.ndarray:
    """The basis reduced by Lenstra, Lenstra and Lovász; the first columns stay whole numbers."""
    basis = basis.copy()
    n, at = len(basis), 1

    def gram_schmidt(upto: int) -> tuple[np.ndarray, np.ndarray]:
        r = np.linalg.qr(basis[: upto + 1].T, mode="r")
        diagonal = np.diag(r)
        return (r / diagonal[:, None]).T, diagonal**2

    for _ in range(60 * n):
        if at >= n:
            break
        mu, norms = gram_schmidt(at)
        for other in range(at - 1, -1, -1):
            factor = np.rint(mu[at, other])
            if factor:
                basis[at] -= factor * basis[other]
                mu[at, : other + 1] -= factor * mu[other, : other + 1]
        if norms[at] >= (delta - mu[at, at - 1] ** 2) * norms[at - 1]:
            at += 1
        else:
            basis[[at, at - 1]] = basis[[at - 1, at]]
            at = max(at - 1, 1)
    return basis


def share_found(attacked: Site, counts: np.ndarray | None) -> float:
    """The share of participants whose pattern is among those found, as often as it was found."""
    if counts is None:
        return 0.0
    return float(np.minimum(attacked.truth, counts).sum() / attacked.truth.sum())


def by_chance(n: int, m: int) -> float:
    """The same share for the participants of another site of the same population: what anybody can guess."""
    return share_found(site(n, m, exact=False, seed=0), site(n, m, exact=False, seed=1).truth)
