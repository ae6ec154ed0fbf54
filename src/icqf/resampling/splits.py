"""Divide participants into parts that resemble each other in confounds and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError, counted

Array = NDArray[Any]
HELD_OUT = 0.2
VALIDATION = 0.2
_BANDS = 4  # of a continuous confound
FULL = 1.0


@dataclass(frozen=True, eq=False)
class Split:
    """One division of the participants, as positions.

    Attributes
    ----------
    held_out : int array
        A fifth of all participants; what is reported is measured on them.
    validation : int array
        A fifth of the others (the development set), for tuning.
    training : mapping of float to int array
        For each share of the development set, the participants to fit to. Smaller ones are parts of larger
        ones; the share 1 is the whole development set, validation included.
    """

    held_out: Array
    validation: Array
    training: Mapping[float, Array]


def make_splits(
    questionnaire: Questionnaire,
    labels: pd.DataFrame | None,
    *,
    sizes: Sequence[float],
    n_splits: int,
    random_state: int,
) -> list[Split]:
    """Divide the participants `n_splits` times; people of one group (family, site) stay together.

    Each division depends on the data, on `random_state` and on its own number alone.
    """
    largest = 1 - VALIDATION
    for size in sizes:
        if not (0 < size <= largest or size == FULL):
            raise InputError(
                f"The training size {size:g} is not possible: {VALIDATION:.0%} of the development set is for "
                f"validation, so give shares up to {largest:g}, or 1 for all of it."
            )
    if n_splits < 1:
        raise InputError(f"n_splits must be at least 1, not {n_splits}.")
    counts, member = _units(questionnaire, labels)
    parts = sorted({size for size in sizes if size != FULL}, reverse=True)
    splits = []
    for number in range(n_splits):
        rng = np.random.default_rng([random_state, number])
        everyone = np.arange(len(counts))
        development, held_out = _part(counts, everyone, 1 - HELD_OUT, rng)
        pool, validation = _part(counts, development, largest, rng)
        training, before = {}, largest
        for size in parts:
            if size < before:
                pool, _ = _part(counts, pool, size / before, rng)
            training[size], before = pool, size
        if FULL in sizes:
            training[FULL] = development
        people = {size: np.flatnonzero(np.isin(member, units)) for size, units in training.items()}
        split = Split(
            np.flatnonzero(np.isin(member, held_out)), np.flatnonzero(np.isin(member, validation)), people
        )
        _refuse_unseen_categories(questionnaire, split)
        splits.append(split)
    return splits


def deal(counts: Array, shares: Sequence[float], rng: np.random.Generator) -> Array:
    """Deal units to parts so that every kind of person is spread in proportion to the parts' shares.

    Iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011): the rarest kind first, each unit to the
    part that lacks most of it.

    Parameters
    ----------
    counts : int array (units, 1 + kinds)
        How many people each unit has, and how many of each kind.
    shares : sequence of float
        Sizes of the parts; they add up to 1.
    rng : Generator

    Returns
    -------
    int array (units,)
        The part of each unit.

    Examples
    --------
    >>> import numpy as np
    >>> cases = np.array([1, 0, 0, 0, 0] * 20)
    >>> parts = deal(np.column_stack([np.ones(100), cases]), (0.8, 0.2), np.random.default_rng(0))
    >>> np.bincount(parts), np.bincount(parts[cases == 1])
    (array([80, 20]), array([16,  4]))
    """
    sizes, kinds = counts[:, 0], counts[:, 1:].astype(float)
    share = np.asarray(shares, dtype=float)
    lacking = share[:, None] * kinds.sum(axis=0)
    room = share * sizes.sum()
    part = np.full(len(counts), -1)
    order = rng.permutation(len(counts))
    left = kinds.sum(axis=0)
    while (left > 0).any():
        kind = int(np.argmin(np.where(left > 0, left, np.inf)))
        for unit in order[(part[order] < 0) & (kinds[order, kind] > 0)]:
            chosen = _neediest(lacking[:, kind], room)
            part[unit] = chosen
            lacking[chosen] -= kinds[unit]
            room[chosen] -= sizes[unit]
            left -= kinds[unit]
        left[kind] = 0
    for unit in order[part[order] < 0]:
        part[unit] = int(np.argmax(room))
        room[part[unit]] -= sizes[unit]
    return part


def _neediest(lacking: Array, room: Array) -> int:
    """The part that lacks most of a kind among those with room; of equals, the one with more room."""
    roomy = room >= min(0.5, room.max())
    return int(max(np.flatnonzero(roomy), key=lambda part: (lacking[part], room[part])))


def _part(counts: Array, units: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    parts = deal(counts[units], (share, 1 - share), rng)
    return units[parts == 0], units[parts == 1]


def _units(questionnaire: Questionnaire, labels: pd.DataFrame | None) -> tuple[Array, Array]:
    """People (or groups) with the number of people of each kind in them, and each person's unit."""
    n = questionnaire.n_participants
    columns: list[Array] = [np.ones(n)]
    if labels is not None:
        columns += [(labels[name] == 1).to_numpy(dtype=float) for name in labels]
    if questionnaire.confounds is not None:
        for name in questionnaire.confounds:
            columns += list(_levels(questionnaire.confounds[name]))
    people = np.column_stack(columns).astype(np.intp)
    member = np.arange(n)
    if questionnaire.groups is not None:
        member = pd.factorize(questionnaire.groups, use_na_sentinel=False)[0]
    counts = np.zeros((int(member.max()) + 1, people.shape[1]), dtype=np.intp)
    np.add.at(counts, member, people)
    if len(counts) < 10:
        what = "participant" if questionnaire.groups is None else "group"
        raise InputError(f"{counted(len(counts), what)} cannot be divided; at least 10 are needed.")
    return counts, member


def _levels(confound: pd.Series) -> list[Array]:
    """Indicators of a confound's categories, or of bands of about as many people."""
    if pd.api.types.is_numeric_dtype(confound) and confound.nunique() > _BANDS:
        values = confound.to_numpy(dtype=float)
        edges = np.nanquantile(values, np.linspace(0, 1, _BANDS + 1)[1:-1])
        codes = np.where(np.isnan(values), _BANDS, np.searchsorted(edges, values))
    else:
        codes = pd.factorize(confound, use_na_sentinel=False)[0]
    return [(codes == code).astype(float) for code in np.unique(codes)]


def _refuse_unseen_categories(questionnaire: Questionnaire, split: Split) -> None:
    """A category that no training participant has could not be scored in the others."""
    if questionnaire.confounds is None:
        return
    others = np.concatenate([split.held_out, split.validation])
    for name, column in questionnaire.confounds.items():
        if pd.api.types.is_numeric_dtype(column):
            continue
        for rows in split.training.values():
            unseen = set(column.iloc[others].dropna()) - set(column.iloc[rows].dropna())
            if unseen:
                category = sorted(map(str, unseen))[0]
                number = int((column.astype(str) == category).sum())
                raise InputError(
                    f"The confound {str(name)!r} has the category {category!r} "
                    f"({counted(number, 'participant')}), which nobody in one of the training sets has; "
                    "merge it with another category, leave these participants out, or leave out the confound."
                )
