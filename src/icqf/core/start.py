"""Where the iterations begin: NNDSVD, rotated SVD or random, from observed answers only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from icqf.core.block_step import Additive
from icqf.core.observations import Block
from icqf.core.problem import Array, Problem
from icqf.core.result import Factors
from icqf.core.rows import BlockState, Rows, RowsHere
from icqf.core.sweeps import cd_sweeps

_VECTORS_AT_A_TIME = 8
SETTLE_SWEEPS = 8  # of the loadings (confounds included) for the scores of the start
REACH = 2.5  # a starting score this many times the factor's root mean square is put at the top


def item_means(problem: Problem, rows: Rows | None = None) -> Array:
    """Mean of the observed answers of each item (m,)."""
    found: Totals = (rows or RowsHere(problem.observations)).apply(Answered())
    return found.answers / np.maximum(found.count, 1e-300)


@dataclass(frozen=True)
class Totals(Additive):
    """Sum of the observed answers of each item, and their number, weighted (m,)."""

    answers: Array
    count: Array


@dataclass(frozen=True)
class Answered:
    """Add up the observed answers."""

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, Totals]:
        weights = np.ones(block.n, block.X.dtype) if block.weights is None else block.weights
        count = np.full(block.X.shape[1], weights.sum()) if block.O is None else weights @ block.O
        return state, Totals((weights @ block.X).astype(np.float64), count.astype(np.float64))


@dataclass(frozen=True)
class Filling:
    """Fills missing answers with the item's mean for singular vectors, centred there or not."""

    means: Array
    centred: bool

    def of(self, block: Block) -> Array:
        """The block's answers (B, m) with nothing missing."""
        means = self.means.astype(block.X.dtype)
        if self.centred:
            return block.masked(block.X - means)
        return block.X if block.O is None else block.X + (1 - block.O) * means


@dataclass(frozen=True)
class Products:
    """Add up the items' products (m, m)."""

    filling: Filling

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, Array]:
        V = self.filling.of(block)
        return state, (V.T @ (V if block.weights is None else V * block.weights[:, None])).astype(np.float64)


@dataclass(frozen=True)
class KeepLeft:
    """Compute and store some more left singular vectors; `right` (m, some) is divided by the values."""

    filling: Filling
    right: Array

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, None]:
        return replace(state, left=(*state.left, self.filling.of(block) @ self.right)), None


@dataclass(frozen=True)
class ForgetLeft:
    """Drop the singular vectors."""

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, None]:
        return replace(state, left=()), None


class Spectrum:
    """The leading singular vectors of the answers, missing ones at their item's mean.

    One spectrum serves every number of factors; each factor does not depend on the others.
    """

    def __init__(self, problem: Problem, *, centred: bool, rows: Rows | None = None) -> None:
        self.problem = problem
        self.rows = rows or RowsHere(problem.observations)
        self.filling = Filling(item_means(problem, self.rows), centred)
        wide = problem.m > problem.n and problem.observations.here
        squares, self.right = self._of_participants() if wide else self._of_items()
        self.singular = np.sqrt(np.maximum(squares, 0.0))
        self._n_left = 0

    def _of_items(self) -> tuple[Array, Array]:
        """Squared singular values and right singular vectors (m, m), from the items' m × m products."""
        # All eigenvectors, as computing only some fails if items fall into separate groups.
        eigenvalues, vectors = np.linalg.eigh(self.rows.apply(Products(self.filling)))
        return eigenvalues[::-1], vectors[:, ::-1]

    def _of_participants(self) -> tuple[Array, Array]:
        """The same from the participants' n × n products, where they are fewer: vectors (m, n)."""
        V = np.concatenate([self.filling.of(block) for block in self.problem.blocks()]).astype(np.float64)
        if self.problem.weights is not None:
            V *= np.sqrt(self.problem.weights)[:, None]
        eigenvalues, vectors = np.linalg.eigh(V @ V.T)
        right = V.T @ vectors[:, ::-1]
        lengths = np.linalg.norm(right, axis=0)
        return eigenvalues[::-1], right / np.where(lengths > 0, lengths, 1.0)

    def keep_left(self, k: int) -> None:
        """Make sure that blocks store their first k left singular vectors, computed a few at a time."""
        real = self.singular > 1e-7 * self.singular[0]
        inverse = np.divide(1.0, self.singular, out=np.zeros_like(self.singular), where=real)
        while self._n_left < min(k, len(self.singular)):
            at = slice(self._n_left, self._n_left + _VECTORS_AT_A_TIME)
            scaled = (self.right[:, at] * inverse[at]).astype(self.problem.dtype)
            self.rows.apply(KeepLeft(self.filling, scaled))
            self._n_left += scaled.shape[1]


class RawScores(Protocol):
    """Where the raw scores of a start come from."""

    def of(self, block: Block, state: BlockState) -> Array:
        """Those of a block (k, B), in double precision; only their positive part counts."""


@dataclass(frozen=True)
class Projected:
    """The stored left singular vectors times a matrix (k, k)."""

    mixing: Array

    def of(self, block: Block, state: BlockState) -> Array:
        left = state.left[0] if len(state.left) == 1 else np.concatenate(state.left, axis=1)
        return (left[:, : len(self.mixing)].astype(np.float64) @ self.mixing).T


@dataclass(frozen=True)
class Drawn:
    """Uniform numbers: those that one generator would draw for all n participants, factor after factor."""

    state: Any  # of a PCG64 generator
    n: int
    k: int

    def of(self, block: Block, state: BlockState) -> Array:
        drawn = np.empty((self.k, block.n))
        for r in range(self.k):
            generator = np.random.PCG64()
            generator.state = self.state
            generator.advance(r * self.n + state.first)
            drawn[r] = np.random.Generator(generator).random(block.n)
        return drawn


@dataclass(frozen=True)
class Given:
    """The scores that blocks hold already."""

    def of(self, block: Block, state: BlockState) -> Array:
        return state.current.astype(np.float64)


@dataclass(frozen=True)
class Sizes(Additive):
    """Of the positive and of the negative part of each factor's raw scores: Σ ω w² and Σ ω w, (2, k)."""

    squares: Array
    sums: Array


@dataclass(frozen=True)
class Measure:
    """Add up how large raw scores are."""

    source: RawScores

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, Sizes]:
        raw = self.source.of(block, state)
        weights = np.ones(block.n) if block.exact_weights is None else block.exact_weights
        halves = [np.maximum(raw, 0), np.maximum(-raw, 0)]
        return state, Sizes(
            np.stack([half**2 @ weights for half in halves]), np.stack([half @ weights for half in halves])
        )


@dataclass(frozen=True)
class GramSums(Additive):
    """Σ ω a aᵀ (K, K) and Σ ω a xᵀ (K, m), with a = [w, c] and missing answers at their item's mean."""

    S: Array
    P: Array


@dataclass(frozen=True)
class Place:
    """Place the participants at the positive part of raw scores times `scale` (k,), no higher than `top`."""

    source: RawScores
    scale: Array
    top: float | None
    filling: Filling

    def __call__(self, block: Block, state: BlockState) -> tuple[BlockState, GramSums]:
        W = np.maximum(self.source.of(block, state), 0) * self.scale[:, None]
        W = (W if self.top is None else np.minimum(W, self.top)).astype(block.X.dtype)
        A = np.concatenate([W, block.C])
        weighted = A if block.weights is None else A * block.weights
        S, P = weighted @ A.T, weighted @ self.filling.of(block)
        placed = replace(state, scores=W, previous=None, multipliers=None)
        return placed, GramSums(S.astype(np.float64), P.astype(np.float64))


NAMES = ("nndsvd", "rotated", "random")


class Starts:
    """Starts of one problem by name, settled inside its bounds; what they share is computed once.

    Where items come several times, they are starts of the pooled problem, alike wherever an item comes: in a
    table that is mostly empty, singular vectors would tell the repeats apart rather than the factors.
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
        centred = name == "rotated"
        if name != "random" and centred not in self._spectra:
            self._spectra[centred] = Spectrum(self._pooled, centred=centred)
        spectrum = self._spectra.get(centred)
        rows = RowsHere(self._pooled.observations) if spectrum is None else spectrum.rows
        loadings = begin(self._pooled, rows, name, k, rng, spectrum=spectrum)
        return Factors(rows.factors(loadings).scores, self.problem.spread(loadings))


def begin(
    problem: Problem,
    rows: Rows,
    name: str,
    k: int,
    rng: np.random.Generator | None = None,
    *,
    spectrum: Spectrum | None = None,
) -> Array:
    """Place all participants where a start has them, and return its loadings (K, m)."""
    if name == "random":
        rng = rng or np.random.default_rng()
        generator: Any = rng.bit_generator
        source = Drawn(generator.state, problem.n, k)
        generator.advance(k * problem.n)
        means = item_means(problem, rows)
        return _settled(problem, rows, source, rng.random((k, problem.m)) * means * 4 / k, means)
    shared = spectrum is not None
    spectrum = spectrum or Spectrum(problem, centred=name == "rotated", rows=rows)
    spectrum.keep_left(k)
    make = rotated if name == "rotated" else nndsvd
    loadings = _settled(problem, rows, *make(spectrum, k), spectrum.filling.means)
    if not shared:
        rows.apply(ForgetLeft())
    return loadings


def plain_nndsvd(problem: Problem, k: int) -> Factors:
    """The authors' start: NNDSVD of the answers, missing ones as 0, cut to the bounds; confounds at 0."""
    X = np.concatenate([block.masked(block.X) for block in problem.precise_blocks()])
    U, singular, V = np.linalg.svd(X, full_matrices=False)
    scores, loadings = np.zeros((k, problem.n)), np.zeros((k + problem.c, problem.m))
    for r in range(min(k, len(singular))):
        halves = [(np.maximum(sign * U[:, r], 0), np.maximum(sign * V[r], 0)) for sign in (1.0, -1.0)]
        norms = [(float(np.linalg.norm(u)), float(np.linalg.norm(v))) for u, v in halves]
        at = int(np.argmax([a * b for a, b in norms]))
        (u, v), (a, b) = halves[at], norms[at]
        if a * b > 0:
            size = np.sqrt(singular[r] * a * b)
            scores[r], loadings[r] = size * u / a, size * v / b
    bounds = problem.bounds
    return Factors(
        scores if bounds.score is None else np.minimum(scores, bounds.score),
        loadings if bounds.loading is None else np.minimum(loadings, bounds.loading),
    )


def nndsvd(spectrum: Spectrum, k: int) -> tuple[RawScores, Array]:
    """Non-negative double SVD: of each singular pair, the heavier of its two signed halves."""
    found = min(k, len(spectrum.singular))
    mixing, Q = np.zeros((found, k)), np.zeros((k, spectrum.problem.m))
    sizes: Sizes = spectrum.rows.apply(Measure(Projected(np.eye(found))))
    for r in range(found):
        halves = []
        for sign, square in ((1.0, sizes.squares[0, r]), (-1.0, sizes.squares[1, r])):
            v_half = np.maximum(sign * spectrum.right[:, r], 0)
            halves.append((np.sqrt(square) * np.linalg.norm(v_half), sign, v_half))
        size, sign, v_half = max(halves, key=lambda half: half[0])
        if size > 0:
            mixing[r, r] = sign * spectrum.singular[r]
            Q[r] = v_half
    return Projected(mixing), Q


def rotated(spectrum: Spectrum, k: int) -> tuple[RawScores, Array]:
    """Positive part of the varimax-rotated SVD of centred answers."""
    found = min(k, len(spectrum.singular))
    loadings = spectrum.right[:, :found] * spectrum.singular[:found]
    rotation = varimax(loadings)
    loadings = loadings @ rotation
    sign = np.where((loadings**3).sum(axis=0) < 0, -1.0, 1.0)
    mixing, Q = np.zeros((found, k)), np.zeros((k, spectrum.problem.m))
    mixing[:, :found] = rotation * sign
    Q[:found] = np.maximum(loadings * sign, 0).T
    return Projected(mixing), Q


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


def settle(problem: Problem, start: Factors, *, raw: bool = True) -> Factors:
    """Bring a start inside the bounds and fit the confounds' loadings to its scores.

    Of a `raw` start, only the directions mean something: its factors are scaled, and their loadings are
    fitted as well.
    """
    rows = RowsHere(problem.observations)
    rows.start_at(start)
    Q = start.loadings[: len(start.scores)].astype(np.float64)
    loadings = _settled(problem, rows, Given(), Q, item_means(problem, rows), raw=raw)
    return Factors(rows.scores(), loadings)


def _settled(
    problem: Problem, rows: Rows, source: RawScores, Q: Array, means: Array, *, raw: bool = True
) -> Array:
    """Place the participants at scores inside the bounds, and fit loadings (K, m) to them."""
    bounds, k = problem.bounds, len(Q)
    scale = _scale(problem, rows, source, Q) if raw else np.ones(k)
    Q = np.concatenate([Q / scale[:, None], np.zeros((problem.c, problem.m))])
    Q = (Q if bounds.loading is None else np.minimum(Q, bounds.loading)).astype(problem.dtype)
    sums: GramSums = rows.apply(Place(source, scale, bounds.score, Filling(means, centred=False)))
    S, P = sums.S, sums.P
    _, lam = problem.penalty_of_loadings.quadratic(Q, scale=problem.gamma)
    free = slice(0 if raw else k, None)
    target = P[free] - lam - (0.0 if raw else S[free, :k] @ Q[:k])
    cd_sweeps(
        Q[free],
        S[free, free].astype(problem.dtype),
        target.astype(problem.dtype),
        bounds.loading,
        sweeps=SETTLE_SWEEPS,
    )
    return Q


def _scale(problem: Problem, rows: Rows, source: RawScores, Q: Array) -> Array:
    """What raw scores are multiplied by (k,)."""
    sizes: Sizes = rows.apply(Measure(source))
    if problem.bounds.score is not None:
        spread = np.sqrt(sizes.squares[0] / problem.size)
        return np.where(spread > 0, problem.bounds.score / (REACH * np.where(spread > 0, spread, 1.0)), 1.0)
    size_W, size_Q = sizes.sums[0], Q.sum(axis=1)
    both = (size_W > 0) & (size_Q > 0)
    scale = np.where(both, np.sqrt(problem.gamma * size_Q / np.where(both, size_W, 1.0)), 1.0)
    return np.where(scale > 0, scale, 1.0)
