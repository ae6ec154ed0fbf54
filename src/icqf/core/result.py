"""The results of a solver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.core.acceleration import has_settled
from icqf.core.block_step import Multipliers

Array = NDArray[Any]


@dataclass(frozen=True)
class Factors:
    """Scores W (k, n) and loadings Q (k + c, m), the confounds' loadings last.

    If the participants are on a cluster, their scores stay there, and W is (k, 0).

    `multipliers`, where they are known, are those of the bounds on reconstructed answers that are active.
    """

    scores: Array
    loadings: Array
    multipliers: Multipliers | None = None


@dataclass(frozen=True)
class Certificate:
    """How far the returned solution is from one that no single number could improve.

    Every step is the exact one: the best value of that score or loading with all others
    held, inside its own range and with every reconstructed answer inside its range.

    Attributes
    ----------
    score_step : float
        The farthest that any single score could still move.
    loading_step : float
        The farthest that any single loading could still move, as a share of its item's range.
        Without bounds both steps are shares of the factor's highest score and highest loading.
    excess : float
        How far the highest reconstructed answer lies above its range, as a share of the range.
    gain : float
        The most that F would drop by moving one score or one loading.
    drift : float or None
        What steps of single numbers cannot see, because they are all small in a flat valley: how far the
        loadings came to lie from here, as a share of the item's range, after all factors and confounds had
        exchanged about a twentieth of their loadings and the iterations had settled again, unless they
        settled at a worse solution. None where this was not tried.
    """

    score_step: float
    loading_step: float
    excess: float
    gain: float
    drift: float | None = None

    def holds(self, tol: float) -> bool:
        """Whether no score, loading or reconstructed answer is off by more than `tol`."""
        return max(self.score_step, self.loading_step, self.excess) <= tol


@dataclass(frozen=True)
class Move:
    """How far one iteration went.

    Scores and reconstructed answers may be ten times as restless as the loadings when the
    iterations end: the scores are solved exactly afterwards, inside every bound.
    """

    loading_step: float  # the largest, as a share of the item's range
    score_step: float
    excess: float

    def settled(self, tol: float) -> bool:
        return bool(has_settled(self.loading_step, max(self.score_step, self.excess), tol))


@dataclass
class Trace:
    """One entry an iteration.

    `objective` and `excess` are taken at the point the iteration starts from, which may lie
    a little outside the range (`excess`) until the last steps; `step` is the largest move of
    a loading in the iteration, as a share of its item's range. ADMM also records the augmented
    Lagrangian and its residuals.
    """

    objective: list[float] = field(default_factory=list)
    excess: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    lagrangian: list[float] = field(default_factory=list)
    primal_residual: list[float] = field(default_factory=list)
    dual_residual: list[float] = field(default_factory=list)
    rho: list[float] = field(default_factory=list)

    def add(self, **values: float) -> None:
        """Append one iteration."""
        for name, value in values.items():
            getattr(self, name).append(float(value))

    def followed_by(self, other: Trace) -> Trace:
        """This one, and then the other."""
        return Trace(**{name: values + getattr(other, name) for name, values in vars(self).items()})

    def columns(self) -> dict[str, Array]:
        """The recorded columns as arrays."""
        return {name: np.asarray(values) for name, values in vars(self).items() if values}


@dataclass(frozen=True)
class Fit:
    """How well the solution describes the observed answers (weighted sums over participants)."""

    sse: Array  # (m,), squared error of each item, and its sum of squares around the item's mean
    sst: Array
    # (K, m), what each factor and confound column adds to the sum of products of an item's answers and
    # their reconstruction, both around their means. Divided by `sst` these are shares, and they add up
    # to the explained share of the item's variance
    explained: Array


@dataclass(frozen=True)
class Iterated:
    """Where the iterations ended: scores may still reach a little outside the bounds."""

    factors: Factors
    trace: Trace
    converged: bool
    n_iter: int


@dataclass(frozen=True)
class StartResult:
    """The result of one start.

    `factors` (k) holds the correlation of each kept factor's loadings with those of its counterpart here.
    """

    name: str
    objective: float
    n_iter: int
    converged: bool
    factors: tuple[float, ...]


@dataclass(frozen=True)
class Factorization(Iterated):
    """A finished fit: exact scores, exact bounds, and the certificate.

    `order` (k,) holds the place that each factor had while its scores were solved for. A participant with
    few answers may have several best scores; solved in the same order, they come out the same. `starts` tells
    of all starts of which this is the best.
    """

    objective: float
    certificate: Certificate
    fit: Fit
    order: Array
    starts: tuple[StartResult, ...] = ()
