"""Divide participants into parts that resemble each other in confounds and labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.parameters import parameter_error
from icqf.data.questionnaire import Questionnaire
from icqf.errors import InputError, counted
from icqf.resampling.assignment import BANDS, bands, deal_in_proportion

Array = NDArray[Any]
HELD_OUT = 0.2
VALIDATION = 0.2
FULL = 1.0
FEWEST = 5  # participants in a training set


@dataclass(frozen=True, eq=False)
class Split:
    """One division of the participants, as positions."""

    held_out: Array  # a fifth of all participants; what is reported is measured on them
    validation: Array  # a fifth of the others (the development set), for tuning
    # for each share of the development set, the participants to fit to. Smaller ones are parts of
    # larger ones; the share 1 is the whole development set, validation included
    training: Mapping[float, Array]


def make_splits(
    questionnaire: Questionnaire,
    labels: pd.DataFrame | None,
    *,
    sizes: Sequence[float],
    n_splits: int,
    random_state: int,
) -> list[Split]:
    """Divide the participants `n_splits` times; participants of one group (family, site) stay together.

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
    if not questionnaire.n_participants:
        raise InputError("No participant answered anything, so there is nothing to divide.")
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
        split = Split(
            held_out=_members(member, held_out),
            validation=_members(member, validation),
            training={size: _members(member, units) for size, units in training.items()},
        )
        _refuse_few(split)
        _refuse_unseen_categories(questionnaire, split)
        splits.append(split)
    return splits


def _part(counts: Array, units: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    parts = deal_in_proportion(counts[units], (share, 1 - share), rng)
    return units[parts == 0], units[parts == 1]


def _members(member: Array, units: Array) -> Array:
    return np.flatnonzero(np.isin(member, units))


def _units(questionnaire: Questionnaire, labels: pd.DataFrame | None) -> tuple[Array, Array]:
    """Participants (or groups) with the number of each kind in them, and each participant's unit."""
    n = questionnaire.n_participants
    columns: list[Array] = [np.ones(n)]
    if labels is not None:
        columns += [(labels[name] == 1).to_numpy(dtype=float) for name in labels]
    if questionnaire.confounds is not None:
        for name in questionnaire.confounds:
            columns += list(_levels(questionnaire.confounds[name]))
    kinds = np.column_stack(columns).astype(np.intp)
    member = np.arange(n)
    if questionnaire.groups is not None:
        member = pd.factorize(questionnaire.groups, use_na_sentinel=False)[0]
    counts = np.zeros((int(member.max()) + 1, kinds.shape[1]), dtype=np.intp)
    np.add.at(counts, member, kinds)
    if len(counts) < 10:
        what = "participant" if questionnaire.groups is None else "group"
        raise InputError(f"{counted(len(counts), what)} cannot be divided; at least 10 are needed.")
    return counts, member


def _levels(confound: pd.Series) -> list[Array]:
    """Indicators of a confound's categories, or of bands of about as many participants."""
    if pd.api.types.is_numeric_dtype(confound) and confound.nunique() > BANDS:
        codes = bands(confound.to_numpy(dtype=float))
    else:
        codes = pd.factorize(confound, use_na_sentinel=False)[0]
    return [(codes == code).astype(float) for code in np.unique(codes)]


def _refuse_few(split: Split) -> None:
    whole = len(split.held_out) * (1 - HELD_OUT) / HELD_OUT
    for size, rows in split.training.items():
        if len(rows) < FEWEST:
            least = math.ceil(100 * (FEWEST + 1) / whole) / 100
            raise parameter_error(
                "sizes",
                f" holds {size:g}, which leaves {counted(len(rows), 'participant')} to fit to; give shares "
                f"of at least {least:g}.",
                value=size,
            )


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
