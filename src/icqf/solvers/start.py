"""Where the iterations begin: NNDSVD, rotated SVD or random, from observed answers only."""

from __future__ import annotations

from typing import Any

import numpy as np

from icqf.solvers.problem import Array, Problem
from icqf.solvers.result import Factors
from icqf.solvers.sweeps import cd_sweeps

_VECTORS_AT_A_TIME = 8
_SETTLE_SWEEPS = 8  # of the loadings (confounds included) for the scores of the start
_REACH = 2.5  # a starting score this many times the factor's root mean square is put at the top


def item_means(problem: Problem) -> Array:
    """Mean of the observed answers of each item (m,)."""
    total, count = np.zeros(problem.m), np.zeros(problem.m)
    for block in problem.blocks():
        weight = np.ones(block.X.shape[0]) if block.weights is None else block.weights
        total += weight @ block.X
        count += weight.sum() if block.O is None else weight @ block.O
    return total / np.maximum(count, 1e-300)


class Spectrum:
    """The leading singular vectors of the answers, missing ones at their item's mean.

    One spectrum serves every number of factors; what it gives for one does not depend on the others.
    """

    def __init__(self, problem: Problem, *, centred: bool) -> None:
        self.problem = problem
        self.centred = centred
        self.means = item_means(problem)
        squares, self.right = self._of_items() if problem.m <= problem.n else self._of_participants()
        self.singular = np.sqrt(np.maximum(squares, 0.0))
        self._left: list[Array] = []  # some vectors each

    def _of_items(self) -> tuple[Array, Array]:
        """Squared singular values and right singular vectors (m, m), from the items' m × m products."""
        gram = np.zeros((self.problem.m, self.problem.m))
        for block in self.problem.blocks():
            V = self._filled(block)
            gram += V.T @ (V if block.weights is None else V * block.weights[:, None])
        # All eigenvectors: asking for some of them fails where items fall into separate groups.
        eigenvalues, vectors = np.linalg.eigh(gram)
        return eigenvalues[::-1], vectors[:, ::-1]

    def _of_participants(self) -> tuple[Array, Array]:
        """The same from the participants' n × n products, where they are fewer: vectors (m, n)."""
        V = np.concatenate([self._filled(block) for block in self.problem.blocks()]).astype(np.float64)
        if self.problem.weights is not None:
            V *= np.sqrt(self.problem.weights)[:, None]
        eigenvalues, vectors = np.linalg.eigh(V @ V.T)
        right = V.T @ vectors[:, ::-1]
        lengths = np.linalg.norm(right, axis=0)
        return eigenvalues[::-1], right / np.where(lengths > 0, lengths, 1.0)

    def left(self, k: int) -> Array:
        """The first k left singular vectors (n, k), worked out a few at a time."""
        real = self.singular > 1e-7 * self.singular[0]
        inverse = np.divide(1.0, self.singular, out=np.zeros_like(self.singular), where=real)
        while len(self._left) * _VECTORS_AT_A_TIME < min(k, len(self.singular)):
            first = len(self._left) * _VECTORS_AT_A_TIME
            at = slice(first, first + _VECTORS_AT_A_TIME)
            scaled = (self.right[:, at] * inverse[at]).astype(self.problem.dtype)
            vectors = np.empty((self.problem.n, scaled.shape[1]), dtype=self.problem.dtype)
            for block in self.problem.blocks():
                vectors[block.rows] = self._filled(block) @ scaled
            self._left.append(vectors)
        together = self._left[0] if len(self._left) == 1 else np.concatenate(self._left, axis=1)
        return together[:, :k]

    def _filled(self, block: Any) -> Array:
        means = self.means.astype(block.X.dtype)
        if self.centred:
            return block.masked(block.X - means)
        return block.X if block.O is None else block.X + (1 - block.O) * means


NAMES = ("nndsvd", "rotated", "random")


class Starts:
    """Starts of one problem by name, settled inside its bounds; what is shared between them is kept.

    Those of a problem with age bins are starts of the pooled one, alike in every bin: in a table that is
    mostly empty, singular vectors would tell the bins apart rather than the factors.

    Examples
    --------
    A start for eight factors: ``Starts(problem).make("nndsvd", 8)``.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._pooled = problem.pooled()
        self._spectra: dict[bool, Spectrum] = {}

    def with_beta(self, beta: float) -> Starts:
        """The starts of the same problem with another penalty."""
        other = Starts(self.problem.with_beta(beta))
        other._spectra = self._spectra
        return other

    def make(self, name: str, k: int, rng: np.random.Generator | None = None) -> Factors:
        """The start "nndsvd", "rotated" or "random"; only the last draws from `rng`."""
        if name == "random":
            raw = random(self._pooled, k, rng or np.random.default_rng())
        else:
            centred = name == "rotated"
            if centred not in self._spectra:
                self._spectra[centred] = Spectrum(self._pooled, centred=centred)
            spectrum = self._spectra[centred]
            raw = rotated(spectrum, k) if centred else nndsvd(spectrum, k)
        start = settle(self._pooled, raw)
        return Factors(start.scores, self.problem.spread(start.loadings))


def nndsvd(spectrum: Spectrum, k: int) -> Factors:
    """Non-negative double SVD: of each singular pair, the heavier of its two signed halves."""
    problem = spectrum.problem
    W = np.zeros((k, problem.n))
    Q = np.zeros((k, problem.m))
    weights = np.ones(problem.n) if problem.weights is None else problem.weights
    left = spectrum.left(k).astype(np.float64)
    for r in range(min(k, len(spectrum.singular))):
        u, v = left[:, r], spectrum.right[:, r]
        halves = []
        for sign in (1.0, -1.0):
            u_half, v_half = np.maximum(sign * u, 0), np.maximum(sign * v, 0)
            size_u, size_v = np.sqrt(weights @ u_half**2), np.linalg.norm(v_half)
            halves.append((size_u * size_v, u_half, v_half))
        size, u_half, v_half = max(halves, key=lambda half: half[0])
        if size > 0:
            W[r] = u_half * spectrum.singular[r]
            Q[r] = v_half
    return Factors(W, Q)


def rotated(spectrum: Spectrum, k: int) -> Factors:
    """Positive part of the varimax-rotated SVD of centred answers."""
    k_found = min(k, len(spectrum.singular))
    loadings = spectrum.right[:, :k_found] * spectrum.singular[:k_found]
    rotation = varimax(loadings)
    loadings = loadings @ rotation
    scores = spectrum.left(k_found).astype(np.float64) @ rotation
    sign = np.where((loadings**3).sum(axis=0) < 0, -1.0, 1.0)
    problem = spectrum.problem
    W, Q = np.zeros((k, problem.n)), np.zeros((k, problem.m))
    W[:k_found] = np.maximum(scores * sign, 0).T
    Q[:k_found] = np.maximum(loadings * sign, 0).T
    return Factors(W, Q)


def varimax(loadings: Array, *, tol: float = 1e-8, max_iter: int = 200) -> Array:
    """The rotation (k, k) that makes the squared loadings (m, k) vary most within each column."""
    rotation = np.eye(loadings.shape[1])
    reached = 0.0
    for _ in range(max_iter):
        turned = loadings @ rotation
        target = turned**3 - turned * (turned**2).mean(axis=0)
        u, s, vt = np.linalg.svd(loadings.T @ target)
        rotation = u @ vt
        if s.sum() <= reached * (1 + tol):
            break
        reached = float(s.sum())
    return rotation


def random(problem: Problem, k: int, rng: np.random.Generator) -> Factors:
    """Uniform scores, and loadings uniform up to twice a share of the item's mean."""
    W = rng.random((k, problem.n))
    Q = rng.random((k, problem.m)) * item_means(problem) * 4 / k
    return Factors(W, Q)


def settle(problem: Problem, start: Factors, *, raw: bool = True) -> Factors:
    """Bring a start inside the bounds and fit the confounds' loadings to its scores.

    Of a `raw` start, only the directions mean something: its factors are scaled, and their loadings are
    fitted as well.
    """
    bounds = problem.bounds
    k = len(start.scores)
    W, Q = start.scores.astype(np.float64), start.loadings[:k].astype(np.float64)
    if not raw:
        scale = np.ones(k)
    elif bounds.score is not None:
        spread = np.sqrt(np.average(W**2, axis=1, weights=problem.weights))
        scale = np.where(spread > 0, bounds.score / (_REACH * np.where(spread > 0, spread, 1.0)), 1.0)
    else:
        size_W = W.sum(axis=1) if problem.weights is None else W @ problem.weights
        size_Q = Q.sum(axis=1)
        both = (size_W > 0) & (size_Q > 0)
        scale = np.where(both, np.sqrt(problem.gamma * size_Q / np.where(both, size_W, 1.0)), 1.0)
        scale = np.where(scale > 0, scale, 1.0)
    W, Q = W * scale[:, None], Q / scale[:, None]
    W = W if bounds.score is None else np.minimum(W, bounds.score)
    Q = np.concatenate([Q, np.zeros((problem.c, problem.m))])
    Q = (Q if bounds.loading is None else np.minimum(Q, bounds.loading)).astype(problem.dtype)
    W = W.astype(problem.dtype)

    A = problem.with_confounds(W)
    means = item_means(problem).astype(problem.dtype)
    S, P = np.zeros((len(A), len(A))), np.zeros((len(A), problem.m))
    for block in problem.blocks():
        A_b = A[:, block.rows]
        weighted = A_b if block.weights is None else A_b * block.weights
        filled = block.X if block.O is None else block.X + (1 - block.O) * means
        S += weighted @ A_b.T
        P += weighted @ filled
    _, lam = problem.penalty_of_loadings.quadratic(Q, scale=problem.gamma)
    free = slice(0 if raw else k, None)
    target = P[free] - lam - (0.0 if raw else S[free, :k] @ Q[:k])
    cd_sweeps(
        Q[free],
        S[free, free].astype(problem.dtype),
        target.astype(problem.dtype),
        bounds.loading,
        sweeps=_SETTLE_SWEEPS,
    )
    return Factors(W, Q)
