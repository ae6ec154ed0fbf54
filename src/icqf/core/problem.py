"""The problem that is minimised: observations, bounds, penalty, units of items, F and γ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from icqf.core.observations import Array, Block, Observations, half_square
from icqf.core.penalties import L1, Penalty

_SMALLEST_DEVIATION = 0.1  # of the range: that of a 0/1 item where one answer in a hundred is 1


@dataclass(frozen=True)
class Bounds:
    """Upper bounds; None means unbounded. The lower bound is 0 everywhere."""

    score: float | None = None
    loading: Array | None = None  # (m,)
    reconstruction: Array | None = None  # (m,)


@dataclass(frozen=True)
class Scaling:
    """The units of a problem's items: their own times `scale`."""

    scale: Array  # (m,)
    span: Array  # those of the problem in the items' own units
    bounds: Bounds
    # whether the scale was learned from the answers, rather than from what is known about the items
    learned: bool


@dataclass(frozen=True)
class Problem:
    """A factorization problem, in units where 0 is each item's lowest answer.

    Answers, loadings, `span` and `bounds` are in the units that items are counted in (see `scaled`).
    Problems that share their observations and differ in penalty or bounds share the decoded table.
    """

    observations: Observations
    span: Array  # (m,), highest minus lowest answer of each item
    bounds: Bounds = field(default_factory=Bounds)
    # of the scores, and of the loadings unless `loading_penalty` is given
    penalty: Penalty = field(default_factory=L1)
    loading_penalty: Penalty | None = None
    # β of the loadings, if it is not that of the scores
    loading_beta: float | None = None
    # confound columns that add up to one for everybody (Old and Young, Female and Male)
    partitions: tuple[tuple[int, ...], ...] = ()
    intercept: int | None = None  # the position of the column of ones in the design
    # how the items' own units became those of the problem; None where they are the same
    scaling: Scaling | None = None

    @property
    def answers(self) -> Array:
        return self.observations.answers

    @property
    def design(self) -> Array:
        return self.observations.design

    @property
    def weights(self) -> Array | None:
        return self.observations.weights

    @property
    def hidden(self) -> Array | None:
        return self.observations.hidden

    @property
    def dtype(self) -> Any:
        return self.observations.dtype

    @property
    def n(self) -> int:
        return self.observations.n

    @property
    def m(self) -> int:
        return self.observations.m

    @property
    def c(self) -> int:
        return self.observations.c

    # --- problems like this one ----------------------------------------------------------------------

    def hide(self, mask: Array) -> Problem:
        """The same problem with more answers held out."""
        return replace(self, observations=self.observations.hide(mask))

    def of_rows(self, rows: Array) -> Problem:
        """The problem of some participants; γ follows their number (or weight)."""
        return replace(self, observations=self.observations.take(rows))

    def of_items(self, items: Array) -> Problem:
        """The problem of some items, in their own units."""
        own = self.unscaled()

        def of(values: Array | None) -> Array | None:
            return None if values is None else values[..., items]

        observations = own.observations
        return replace(
            own,
            observations=replace(
                observations, answers=observations.answers[:, items], hidden=of(observations.hidden)
            ),
            span=own.span[items],
            bounds=Bounds(own.bounds.score, of(own.bounds.loading), of(own.bounds.reconstruction)),
        )

    def with_confounds_in_order(self) -> Problem:
        """The same problem with its confounds sorted by their values."""
        order = sorted(range(self.c), key=lambda row: np.ascontiguousarray(self.design[row]).tobytes())
        place = {row: at for at, row in enumerate(order)}
        return replace(
            self,
            observations=replace(self.observations, design=np.ascontiguousarray(self.design[order])),
            partitions=tuple(sorted(tuple(sorted(place[row] for row in part)) for part in self.partitions)),
            intercept=None if self.intercept is None else place[self.intercept],
        )

    def drawn(self, counts: Array) -> Problem:
        """The problem of a resample: participants count as often as drawn, those never drawn are left out."""
        rows = np.flatnonzero(counts)
        weights = counts[rows].astype(float)
        if self.weights is not None:
            weights *= self.weights[rows]
        return replace(self, observations=replace(self.observations.take(rows), weights=weights))

    def counted(self, counts: Array) -> Problem:
        """The same resample among all participants, those never drawn with weight 0.

        Engines that solve batches need resamples that share their answers.
        """
        weights = counts.astype(float) if self.weights is None else counts * self.weights
        return replace(self, observations=replace(self.observations, weights=weights))

    def with_beta(self, beta: float) -> Problem:
        """The same problem with another strength of the penalty; loadings keep one of their own."""
        loadings = self.loading_penalty
        return replace(
            self,
            penalty=replace(self.penalty, beta=beta),
            loading_penalty=None if loadings is None else replace(loadings, beta=beta),
        )

    def pooled(self) -> Problem:
        """The problem in which each item comes once, with one answer of each participant."""
        if self.observations.repeats == 1:
            return self
        items = slice(0, self.m // self.observations.repeats)

        def within(bounds: Bounds) -> Bounds:
            ends = (None if end is None else end[items] for end in (bounds.loading, bounds.reconstruction))
            return Bounds(bounds.score, *ends)

        scaling = self.scaling and replace(
            self.scaling,
            scale=self.scaling.scale[items],
            span=self.scaling.span[items],
            bounds=within(self.scaling.bounds),
        )
        return replace(
            self,
            observations=self.observations.pooled(),
            span=self.span[items],
            bounds=within(self.bounds),
            loading_penalty=None,
            scaling=scaling,
        )

    def spread(self, Q: Array) -> Array:
        """Loadings (K, items) of the pooled problem as those of this one (K, m), alike in every repeat."""
        return np.tile(Q, self.observations.repeats)

    def without_reconstruction_bound(self) -> Problem:
        """The same problem without the bound on reconstructed answers; predictions are clipped instead."""
        return replace(self, bounds=replace(self.bounds, reconstruction=None))

    # --- the units of items --------------------------------------------------------------------------

    def scaled(self, scale: Array, *, learned: bool = False) -> Problem:
        """The same problem with each item's answers, range and bounds multiplied by `scale` (m,)."""
        own = self.unscaled()

        def times(bound: Array | None) -> Array | None:
            return None if bound is None else bound * scale

        return replace(
            own,
            observations=replace(own.observations, scale=scale),
            span=own.span * scale,
            bounds=Bounds(own.bounds.score, times(own.bounds.loading), times(own.bounds.reconstruction)),
            scaling=Scaling(scale, own.span, own.bounds, learned),
        )

    def unscaled(self) -> Problem:
        """The same problem in the items' own units."""
        if self.scaling is None:
            return self
        return replace(
            self,
            observations=replace(self.observations, scale=None),
            span=self.scaling.span,
            bounds=self.scaling.bounds,
            scaling=None,
        )

    def own_loadings(self, Q: Array) -> Array:
        """Loadings (K, m) of this problem in the items' own units, exactly inside their bounds."""
        if self.scaling is None:
            return Q
        own, top = Q / self.scaling.scale, self.scaling.bounds.loading
        return own if top is None else np.minimum(own, top)

    def scaled_loadings(self, own: Array) -> Array:
        """Loadings (K, m) in the items' own units converted to those of this problem."""
        return own if self.scaling is None else own * self.scaling.scale

    # --- the table -----------------------------------------------------------------------------------

    def blocks(self) -> Iterator[Block]:
        """The table as floats, one block of participants at a time."""
        return self.observations.blocks()

    def precise_blocks(self) -> Iterator[Block]:
        """The same in double precision."""
        return (block.precise() for block in self.blocks())

    def with_confounds(self, W: Array, dtype: Any = None) -> Array:
        """[W, C] as (k + c, n)."""
        return np.concatenate([W, self.design]).astype(dtype or self.dtype)

    # --- the objective -------------------------------------------------------------------------------

    @cached_property
    def gamma(self) -> float:
        """γ = (Σω / m) · max b: the cost of a loading relative to a score."""
        return self.size / self.m * float(self.span.max())

    @property
    def size(self) -> float:
        """Σω: participants, each counted with its weight."""
        return self.observations.size

    def total(self, misfit: float, score_penalty: float, Q: Array) -> float:
        """F = misfit + β Σ_i ω_i ‖W_i‖ + βγ ‖Q‖, its first two parts being added up over participants."""
        return misfit + score_penalty + self.penalty_of_loadings.value(Q, scale=self.gamma)

    def objective(self, W: Array, Q: Array, *, misfit: float | None = None) -> float:
        """F(W, Q), of scores (k, n) and loadings (k + c, m); `misfit` where it is known already."""
        if misfit is None:
            misfit = 0.0
            for block in self.precise_blocks():
                A = np.concatenate([W[:, block.rows], block.C])
                misfit += half_square(block.masked(block.X - A.T @ Q), block.weights)
        return self.total(misfit, self.penalty.value(W, self.weights), Q)

    @property
    def penalty_of_loadings(self) -> Penalty:
        penalty = self.penalty if self.loading_penalty is None else self.loading_penalty
        return penalty if self.loading_beta is None else replace(penalty, beta=self.loading_beta)

    def units(self, peaks: Array, Q: Array) -> tuple[Array, Array]:
        """What a step of a score (k,) and of a loading, (m,) or (K, 1), is measured by.

        The bound of the scores and the width of the item's range; without bounds, where the scale of a
        factor is free, its highest score (`peaks`) and its highest loading.
        """
        scores = np.maximum(peaks, 1e-12) if self.bounds.score is None else np.ones(len(peaks))
        if self.bounds.loading is not None:
            return scores, self.span
        return scores, np.maximum(Q.max(axis=1, keepdims=True), 1e-12)

    @property
    def terms(self) -> Terms:
        """What a block of participants needs of the problem."""
        participants = max(self.n, self.size)  # a weight of 2 is the same as the participant twice
        return Terms(self.bounds, self.penalty, max(1.0, 0.1 * min(participants, self.m)))


@dataclass(frozen=True)
class Terms:
    """What a block of participants needs of the problem besides the loadings.

    `sigma` is the stiffness σ of the augmented Lagrangian: a tenth of the number of items, so that an active
    bound weighs about as much as the answers that pull against it.
    """

    bounds: Bounds
    penalty: Penalty
    sigma: float


def half_square_of_products(block: Block, A: Array, QX: Array, Q: Array) -> float:
    """½ Σ ω_i (X − AᵀQ)_ij² where nothing is missing, from the products QX = Q Xᵀ (K, B)."""
    own = np.einsum("kb,kb->b", A, 0.5 * (Q @ Q.T) @ A - QX).astype(np.float64)
    weights = block.weights
    return block.half_square + float(own.sum() if weights is None else own @ weights)


def weighed(problem: Problem, item_weight: Any) -> Problem:
    """The problem (in the items' own units) with answers and loadings multiplied by s_j for item j.

    s_j = max(b) / b_j for "range"; for "variance" it is inversely proportional to the standard deviation of
    the observed answers, and for an array proportional to it, such that the widest scaled range is max(b).
    None, and anything that changes no item, gives the problem itself.
    """
    if isinstance(item_weight, str) and item_weight == "variance":
        return problem.scaled(_in_proportion(1 / _deviations(problem), problem.span), learned=True)
    scale = scale_of(item_weight, problem.span)
    return problem if scale is None else problem.scaled(scale)


def scale_of(item_weight: Any, span: Array) -> Array | None:
    """The scale (m,) that weights other than "variance" give items of these ranges; None where it is 1."""
    if item_weight is None:
        return None
    if isinstance(item_weight, str):
        scale = span.max() / span
    else:
        scale = _in_proportion(np.asarray(item_weight, dtype=float), span)
    return None if (scale == 1).all() else scale


def relearn_weights(problem: Problem) -> Problem:
    """The problem with what its weights have learned from answers learned again from those it still sees."""
    if problem.scaling is None or not problem.scaling.learned:
        return problem
    return weighed(problem.unscaled(), "variance")


def _in_proportion(weights: Array, span: Array) -> Array:
    # Of equal ranges, only that they are equal may count: an undeclared one tells a hidden answer.
    return weights / (weights * (span / span.max())).max()


def _deviations(problem: Problem) -> Array:
    """Standard deviation of each item's observed answers, and no less than a tenth of its range."""
    total, square, count = problem.observations.item_sums()
    count = np.maximum(count, 1e-300)
    variance = np.maximum(square / count - (total / count) ** 2, 0)
    return np.maximum(np.sqrt(variance), _SMALLEST_DEVIATION * problem.span)
