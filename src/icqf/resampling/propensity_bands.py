"""Bands of participants who are about equally likely to be in each group, and permutations within them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

Array = NDArray[Any]
N_BANDS = 8
LEFT = 0.1  # share of the exchanges in one band of everybody that the bands must allow
FEWEST_EXCHANGED = 10  # members of a group who change places in a permutation, on average


ROUNDS = 30  # of exchanges in a permutation


@dataclass(frozen=True, eq=False)
class Bands:
    """Who may change places with whom, and how readily.

    Groups are permuted between the units (families, or single participants) of a band. Where members of a
    unit belong to different groups, units of the same size exchange all their labels, each in the order of
    the members' propensity. A permutation is as likely as the propensities make it (the conditional
    permutation test of Berrett et al. 2020): within a band, too, those who are more likely to be in a group
    are in it more often.
    """

    band: Array  # (n,), that of the participant's unit
    unit: Array  # (n,)
    order: Array  # (n,), participants by unit and, within a unit, by propensity
    log_chance: Array  # (n, groups) of the participant to be in each group, but for a constant

    @property
    def n_bands(self) -> int:
        """The number of bands."""
        return int(self.band.max()) + 1

    def permuted(self, codes: Array, rng: np.random.Generator) -> Array:
        """The groups (n,) after one permutation within bands."""
        labels, band = codes[self.order], self.band[self.order]
        _, first, sizes = np.unique(self.unit[self.order], return_index=True, return_counts=True)
        alike = np.minimum.reduceat(labels, first) == np.maximum.reduceat(labels, first)
        whole = bool(alike.all())
        stratum = band[first] if whole else band[first] * (sizes.max() + 1) + sizes
        held, chance, source = self._patterns(labels, first, sizes, whole)
        units = np.lexsort((rng.random(len(first)), stratum))  # by stratum, at random within it
        _, begins, number = np.unique(stratum[units], return_index=True, return_counts=True)
        begins, number = np.repeat(begins, number), np.repeat(number, number)
        place = np.arange(len(units))
        for turn in rng.random(ROUNDS):  # each unit meets another one of its stratum, or nobody
            partner = begins + ((turn * number).astype(np.intp) - (place - begins)) % number
            one, two = (units[side[place < partner]] for side in (place, partner))
            mine, yours = held[one], held[two]
            gain = chance[one, yours] + chance[two, mine] - chance[one, mine] - chance[two, yours]
            swap = rng.random(len(one)) < 1 / (1 + np.exp(-gain))
            held[one[swap]], held[two[swap]] = yours[swap], mine[swap]
        permuted = np.empty_like(codes)
        if whole:
            permuted[self.order] = np.repeat(held, sizes)
        else:
            permuted[self.order] = labels[np.repeat(source[held] - first, sizes) + np.arange(len(codes))]
        return permuted

    def _patterns(self, labels: Array, first: Array, sizes: Array, whole: bool) -> tuple[Array, Array, Array]:
        """The pattern of labels that each unit has, its log-chance (units, patterns), and where each begins.

        The pattern of a unit whose members are all in one group is that group.
        """
        own = self.log_chance[self.order]
        if whole:
            return labels[first], np.add.reduceat(own, first), first
        held = np.empty(len(first), dtype=np.intp)
        chance: list[Array] = []
        source: list[int] = []
        for size in np.unique(sizes):
            units = np.flatnonzero(sizes == size)
            members = first[units, None] + np.arange(size)
            patterns, at, which = np.unique(labels[members], axis=0, return_index=True, return_inverse=True)
            held[units] = len(source) + which.ravel()
            for pattern, unit in zip(patterns, units[at], strict=True):
                chance.append(np.zeros(len(first)))
                chance[-1][units] = own[members, pattern].sum(axis=1)
                source.append(int(first[unit]))
        return held, np.stack(chance, axis=1), np.array(source)


def make_bands(
    profile: Array,
    codes: Array,
    *,
    n_bands: int = N_BANDS,
    weights: Array | None = None,
    units: Array | None = None,
) -> Bands:
    """Divide participants by their propensity to be in each group, given what `profile` (n, p) tells.

    The propensity is that of a logistic model, multinomial for more than two groups, with a weak ridge
    penalty. Bands hold about equally many units. With more than two groups, participants are divided along
    the direction in which their log-odds vary most, and each part again.
    """
    place = log_odds(profile, codes, weights)
    unit = np.arange(len(codes)) if units is None else np.unique(units, return_inverse=True)[1]
    count = np.bincount(unit)
    mean = np.stack([np.bincount(unit, column) / count for column in place.T], axis=1)
    log_chance = place if place.shape[1] > 1 else np.column_stack([np.zeros(len(place)), place])
    return Bands(cut(mean, n_bands)[unit], unit, np.lexsort((place[:, 0], unit)), log_chance)


def log_odds(profile: Array, codes: Array, weights: Array | None = None) -> Array:
    """Log-odds of the groups for each participant: (n, 1) for two groups, (n, groups) for more."""
    standard = standardized(profile, weights)
    relative = None if weights is None else weights / weights.mean()
    fitted = LogisticRegression(max_iter=1000).fit(standard, codes, sample_weight=relative)
    return standard @ fitted.coef_.T


def standardized(columns: Array, weights: Array | None = None) -> Array:
    """Columns (n, p) with mean 0 and standard deviation 1; those that do not vary are 0."""
    centred = columns - np.average(columns, axis=0, weights=weights)
    spread = np.sqrt(np.average(centred**2, axis=0, weights=weights))
    return centred / np.where(spread > 1e-9, spread, np.inf)


def cut(place: Array, n_bands: int) -> Array:
    """The band (n,) of each place (n, d): halves along the main direction, and each half again."""
    band = np.zeros(len(place), dtype=np.intp)
    if n_bands == 1:
        return band
    along = place[:, 0]
    if place.shape[1] > 1:
        centred = place - place.mean(axis=0)
        direction = np.linalg.eigh(centred.T @ centred)[1][:, -1]
        along = centred @ (direction * np.sign(direction[np.abs(direction).argmax()]))
    lower = n_bands // 2
    above = along > np.quantile(along, lower / n_bands, method="inverted_cdf")  # equal places stay together
    for side, number, begins in ((~above, lower, 0), (above, n_bands - lower, lower)):
        if side.any():
            band[side] = begins + cut(place[side], number)
    return band


def exchanged(codes: Array, permutations: Sequence[Array]) -> tuple[Array, float]:
    """Members of each group who change places, on average, and their share of those in one band."""
    sizes = np.bincount(codes)
    changed = np.array([np.bincount(codes[new != codes], minlength=len(sizes)) for new in permutations])
    at_most = sizes * (1 - sizes / len(codes))
    return changed.mean(axis=0), float(changed.sum(axis=1).mean() / at_most.sum())
