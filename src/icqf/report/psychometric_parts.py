"""The parts of a report that hold reliability and item statistics: plain values, as in `schema`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScaleRow:
    """Reliability of a factor's own items (`key` says which factor) or of a subscale (no key)."""

    key: str
    name: str
    n_items: int
    alpha: float
    alpha_low: float
    alpha_high: float
    omega: float
    omega_low: float
    omega_high: float


@dataclass(frozen=True)
class ItemFigures:
    """Statistics of one item; loadings are standardised, those of factor analysis of the counterpart."""

    name: str
    skew: float
    kurtosis: float
    item_rest: float
    loading: float
    communality: float
    uniqueness: float
    fa_loading: float | None = None
    fa_communality: float | None = None


@dataclass(frozen=True)
class VarianceRow:
    """A part of the variance of all answers, and the sum up to it."""

    key: str
    name: str
    share: float
    cumulative: float


@dataclass(frozen=True)
class ResidualPair:
    """Two items whose residuals correlate: what the factors leave unexplained of them goes together."""

    item: str
    other: str
    correlation: float


@dataclass(frozen=True)
class Psychometrics:
    """Reliability, adequacy, item statistics, variance and residuals.

    `bartlett` is the statistic of Bartlett's test of sphericity.
    """

    words: tuple[str, ...]
    kmo: float
    bartlett: float
    bartlett_dof: int
    bartlett_p: float
    scales: tuple[ScaleRow, ...]
    items: tuple[ItemFigures, ...]
    variance: tuple[VarianceRow, ...]
    residuals: tuple[ResidualPair, ...]
