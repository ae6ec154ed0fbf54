"""The last step of every solver: exact scores, exact bounds, and the certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from icqf.core.acceleration import share_with_intercept
from icqf.core.block_step import LARGEST, Adding
from icqf.core.certificate import examine
from icqf.core.observations import Block
from icqf.core.problem import Array, Problem, Terms
from icqf.core.result import Certificate, Factorization, Factors, Fit, Trace
from icqf.core.rows import BlockState, Rows, RowsHere
from icqf.core.scores import scores_of_block

LOADING_BITS = 20  # of every loading, six digits: more say nothing about the factors


@dataclass(frozen=True)
class Finished:
    """A feasible solution with everything that is said about it."""

    factors: Factors
    objective: float
    certificate: Certificate
    fit: Fit
    order: Array  # (k,) the place that each factor had while its scores were solved for

    def factorization(self, trace: Trace, converged: bool, n_iter: int) -> Factorization:
        """The fit that ends here after these iterations."""
        return Factorization(
            self.factors, trace, converged, n_iter, self.objective, self.certificate, self.fit, self.order
        )


def finish(problem: Problem, Q: Array, *, tol: float, rows: Rows | None = None) -> Finished:
    """Best scores for the loadings Q (K, m), brought exactly inside every bound, and measured.

    Loadings are rounded to what the fit's `tol` leaves known of them: a model file must not hold digits that
    say nothing about the factors and something about the participants. Factors come out in order of how much
    of the answers' variance they explain.
    """
    rows = rows or RowsHere(problem.observations)
    Q = _loadings_inside(problem, Q.astype(np.float64), rows, bits=_bits(tol))
    peaks: Array = rows.apply(SolveScores(Q, problem.terms, score_tolerance(tol))).peaks
    certificate, fit, objective = examine(problem, rows, Q, peaks)
    k = len(Q) - problem.c
    order = np.argsort(-fit.explained[:k].sum(axis=1), kind="stable")
    sorted_rows = np.concatenate([order, np.arange(k, len(Q))])
    return Finished(
        Factors(rows.exact_scores()[order], Q[sorted_rows]),
        objective,
        certificate,
        Fit(fit.sse, fit.sst, fit.explained[sorted_rows]),
        order,
    )


def score_tolerance(tol: float) -> float:
    """How exactly the scores are solved for given loadings."""
    return max(1e-6, min(1e-4, tol / 100))


def solve_scores_inside(problem: Problem, Q: Array, *, tol: float) -> Array:
    """Best scores W (k, n) for the loadings Q (K, m), with every reconstructed answer inside its range."""
    rows = RowsHere(problem.observations)
    rows.apply(SolveScores(Q, problem.terms, tol))
    return rows.exact_scores()


@dataclass(frozen=True)
class Peaks(Adding):
    """The highest of something."""

    peaks: Array = field(metadata=LARGEST)


@dataclass(frozen=True)
class SolveScores:
    """Solve for the exact scores, and shrink those of whoever is still above the range by rounding."""

    Q: Array
    terms: Terms
    tol: float

    def __call__(self, block: Block, held: BlockState) -> tuple[BlockState, Peaks]:
        Q, bound = self.Q, self.terms.bounds.reconstruction
        W = scores_of_block(block, Q, self.terms, tol=self.tol)
        if bound is not None:
            allowed = bound * (1 - _margin(len(Q)))
            base, own = block.design.T @ Q[len(W) :], W.T @ Q[: len(W)]
            rows = np.flatnonzero((base + own > allowed).any(axis=1))
            if len(rows):
                room = np.maximum(allowed - base[rows], 0)
                shrink = np.where(own[rows] > room, room / np.maximum(own[rows], 1e-300), 1.0).min(axis=1)
                W[:, rows] *= shrink
        return replace(held, exact=W), Peaks(W.max(axis=1))


@dataclass(frozen=True)
class PlaceSolved:
    """Place the participants at the best scores for the loadings Q (K, m)."""

    Q: Array
    terms: Terms
    tol: float

    def __call__(self, block: Block, held: BlockState) -> tuple[BlockState, None]:
        scores = scores_of_block(block, self.Q, self.terms, tol=self.tol).astype(block.X.dtype)
        return replace(held, scores=scores, previous=None, multipliers=None), None


@dataclass(frozen=True)
class HighestConfoundPart:
    """Find the highest answer (m,) that confounds alone make, with loadings Q (c, m)."""

    Q: Array

    def __call__(self, block: Block, held: BlockState) -> tuple[BlockState, Peaks]:
        return held, Peaks((block.design.T @ self.Q).max(axis=0))


def _margin(K: int) -> float:
    """Share of the range left free, so that R ≤ b however its K products are added up."""
    return 4 * (K + 2) * np.finfo(np.float64).eps


def _bits(tol: float) -> int:
    """Bits of a loading that are kept: what is rounded away is a thousandth of `tol` or less."""
    return max(LOADING_BITS, 10 + math.ceil(-math.log2(tol)))


def rounded(values: Array, bits: int = LOADING_BITS, how: np.ufunc = np.rint) -> Array:
    """Numbers with so many bits each."""
    mantissa, exponent = np.frexp(values)
    result: Array = np.ldexp(how(np.ldexp(mantissa, bits)), exponent - bits)
    return result


def inside_range(
    confounds: Array, highest: Array, span: Array, n_factors: int, bits: int = LOADING_BITS
) -> Array:
    """Confound loadings (c, m), shrunk for items of which they alone make more than the range (m,)."""
    allowed = span * (1 - _margin(n_factors + len(confounds)))
    shrunk = rounded(confounds * np.minimum(1.0, allowed / np.maximum(highest, 1e-300)), bits, np.floor)
    return np.where(highest > allowed, shrunk, confounds)


def _loadings_inside(problem: Problem, Q: Array, rows: Rows, *, bits: int) -> Array:
    """Clip and round the loadings; shrink an item's confound loadings where they alone exceed its range."""
    k = len(Q) - problem.c
    Q, highest_loading = np.maximum(Q, 0), problem.bounds.loading
    if highest_loading is not None:
        Q = np.minimum(Q, highest_loading)
    share_with_intercept(problem, Q, k)
    Q = rounded(Q, bits)
    if highest_loading is not None:
        Q = np.minimum(Q, highest_loading)
    if problem.bounds.reconstruction is not None and problem.c:
        highest = rows.apply(HighestConfoundPart(Q[k:])).peaks
        Q[k:] = inside_range(Q[k:], highest, problem.bounds.reconstruction, k, bits)
    for _ in range(2):
        # As they come back from the items' own units: scores for stored loadings are those of the fit.
        # (q / s) s may differ from q in its last digit; a second time it does not, bound or no bound.
        Q = problem.scaled_loadings(problem.own_loadings(Q))
    return Q
