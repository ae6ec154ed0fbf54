"""Who and what is held out: folds of answers, halves and resamples of participants, test splits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.core.observations import Observations
from icqf.core.problem import Problem
from icqf.data.answers import copied_sheets, together
from icqf.data.frames import as_pandas
from icqf.data.questionnaire import Questionnaire
from icqf.data.settings import parameter_error
from icqf.engines.journal import fingerprint
from icqf.errors import InputError, counted

Array = NDArray[Any]
BANDS = 4  # of a continuous confound
HELD_OUT = 0.2
VALIDATION = 0.2
LEFT_OUT = 0.1  # of the participants, so that two files do not tell who is in one of them only
FULL = 1.0
FEWEST = 5  # participants in a training set
ROW_BLOCKS = 100  # blocks of participants that folds are made of


def nine_tenths(rows: Array) -> Array:
    """Which rows (n, c) are among a random nine tenths: others as soon as one participant more is there.

    The draw depends on all rows, but not on their order.
    """
    order = np.lexsort(rows.T)
    rng = np.random.default_rng(int(fingerprint(rows[order] + 0.0), 16))  # 0.0 and -0.0 are the same
    drawn = np.ones(len(rows), dtype=bool)
    drawn[order[rng.permutation(len(rows))[: round(LEFT_OUT * len(rows))]]] = False
    return drawn


def bands(values: Array) -> Array:
    """Band (0, 1, …) of each value, about equally many participants each; missing values have their own."""
    edges = np.nanquantile(values, np.linspace(0, 1, BANDS + 1)[1:-1])
    return np.where(np.isnan(values), BANDS, np.searchsorted(edges, values))


def strata_of(problem: Problem) -> Array | None:
    """Stratum of each participant (n,): categories and bands of the confounds together; None without any.

    Strata are numbered as they first appear, so that the order of the confounds does not matter.
    """
    if not problem.partitions:
        return None
    label = np.zeros(problem.n, dtype=np.intp)
    for columns in problem.partitions:
        part = problem.design[list(columns)]
        level = part.argmax(axis=0) if np.isin(part, (0.0, 1.0)).all() else bands(part[0])
        label = np.unique(label * (int(level.max()) + 1) + level, return_inverse=True)[1]
    first, stratum = np.unique(label, return_index=True, return_inverse=True)[1:]
    return first.argsort().argsort()[stratum]


def deal_evenly(n: int, blocks: int, strata: Array | None, rng: np.random.Generator) -> Array:
    """Deal n things to blocks in turn, stratum by stratum, in random order within each."""
    order = rng.permutation(n)
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
    block = np.empty(n, dtype=np.intp)
    block[order] = np.arange(n) % blocks
    return block


def deal_groups(groups: Array, blocks: int, strata: Array | None, rng: np.random.Generator) -> Array:
    """Deal whole groups, larger ones first, each to the block with fewest participants (of its strata)."""
    names, member, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    labels = np.unique(np.zeros(len(groups)) if strata is None else strata, return_inverse=True)[1]
    makeup = np.zeros((len(names), int(labels.max()) + 1))
    np.add.at(makeup, (member, labels), 1)
    load = np.zeros((blocks, makeup.shape[1]))
    chosen = np.empty(len(names), dtype=np.intp)
    shuffled = rng.permutation(len(names))
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        crowding = load @ makeup[group] + 1e-6 * load.sum(axis=1)
        chosen[group] = int(np.argmin(crowding))
        load[chosen[group]] += makeup[group]
    return chosen[member]


def deal_in_proportion(counts: Array, shares: Sequence[float], rng: np.random.Generator) -> Array:
    """Deal units to parts so that every kind of participant is spread in proportion to the parts' shares.

    Iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011): the rarest kind first, each unit to the
    part that lacks most of it.
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


def drawn_counts(n: int, groups: Array | None, rng: np.random.Generator) -> Array:
    """How often each participant is drawn; whole groups where there are any."""
    if groups is None:
        return rng.multinomial(n, np.full(n, 1 / n))
    number = int(groups.max()) + 1
    return rng.multinomial(number, np.full(number, 1 / number))[groups]


def units_of(problem: Problem, groups: Any, kept: Array) -> Array | None:
    """The number of each participant's unit (n,), which folds, halves and resamples keep whole.

    A unit is a group, such as a family, with all participants who gave exactly the same answers as one of its
    members: duplicated entries count as one participant. None if everybody is a unit.
    """
    observations, sheets = problem.observations, None
    if type(observations) is Observations and observations.here:  # visits of one participant may be alike
        sheets = copied_sheets(observations.answers, observations.observed)
    return together(group_codes(groups, kept), sheets)


def group_codes(groups: Any, kept: Array) -> Array | None:
    """The number of each kept row's group, from one label per row of answers; None without groups."""
    if groups is None:
        return None
    labels = np.asarray(as_pandas(groups))
    if labels.ndim != 1 or len(labels) != len(kept):
        raise InputError(f"groups must name one group for each of the {len(kept)} rows of answers.")
    missing = pd.isna(labels)
    if missing.any():
        raise InputError(f"groups is missing in row {int(np.flatnonzero(missing)[0])}; name a group for all.")
    return np.unique(labels[kept].astype(str), return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class Folds:
    """A cut of the table into blocks, each dealt to a fold."""

    row_block: Array  # (n,), the block of rows each participant belongs to
    col_block: Array  # (m,), the block of columns each item belongs to
    fold_of: Array  # (row_blocks, col_blocks), the fold each block is dealt to
    n_splits: int

    def mask(self, fold: int, problem: Problem | None = None) -> Array:
        """Which answers (n, m) a fold hides, laid out as the problem's are; folds partition the table."""
        chosen = (self.fold_of == fold)[self.row_block]
        if problem is None:
            return chosen[:, self.col_block]
        return problem.observations.laid_out(chosen, self.col_block)


def make_folds(
    n: int,
    m: int,
    *,
    n_splits: int = 10,
    row_blocks: int | None = None,
    col_blocks: int | None = None,
    strata: Array | None = None,
    groups: Array | None = None,
    items: Array | None = None,
    rng: np.random.Generator,
) -> Folds:
    """Cut a permuted n × m table into blocks and deal them into folds.

    By default there are 100 blocks of rows, and every item is a block of its own. Every fold hides about the
    same share of each participant's answers and of each item's, and which items are hidden together differs
    from one block of rows to the next: errors then vary less between divisions than with a few large blocks.
    Participants of one stratum spread evenly over the blocks of rows; those of one group stay in the same
    block. `items` are the positions of the items in the order in which they are dealt (m,).
    """
    units = n if groups is None else len(np.unique(groups))
    row_blocks = min(units, max(ROW_BLOCKS, n_splits) if row_blocks is None else row_blocks)
    col_blocks = min(m, m if col_blocks is None else col_blocks)
    if n_splits < 2:
        raise InputError(f"n_splits={n_splits} is too few; cross-validation needs at least 2 folds.")
    if row_blocks * col_blocks < n_splits:
        raise InputError(
            f"{row_blocks} × {col_blocks} blocks cannot be dealt into {n_splits} folds; "
            "use fewer folds (n_splits)."
        )
    if row_blocks < 2 or col_blocks < 2:
        raise InputError(
            f"{row_blocks} × {col_blocks} blocks ({units} {'sample' if groups is None else 'group'}(s), {m} "
            "feature(s)) hide all answers of an item or of a participant together, so that none could be "
            "predicted; at least 2 × 2 are needed."
        )
    if groups is None:
        row_block = deal_evenly(n, row_blocks, strata, rng)
    else:
        row_block = deal_groups(groups, row_blocks, strata, rng)
    col_block = np.empty(m, dtype=np.intp)
    col_block[np.arange(m) if items is None else items] = deal_evenly(m, col_blocks, None, rng)
    fold_of = _latin_squares(row_blocks, col_blocks, n_splits, rng).astype(np.int16)
    return Folds(row_block.astype(np.int32), col_block, fold_of, n_splits)


def _latin_squares(row_blocks: int, col_blocks: int, n_splits: int, rng: np.random.Generator) -> Array:
    """The fold of each block: of every `n_splits` columns a Latin square, its rows in an order of its own."""
    rows = np.arange(row_blocks)
    if max(row_blocks, col_blocks) < n_splits:
        return (rows[:, None] * col_blocks + np.arange(col_blocks)) % n_splits
    parts, shift = [], rows
    for first in range(0, col_blocks, n_splits):
        parts.append((shift[:, None] + np.arange(min(n_splits, col_blocks - first))) % n_splits)
        shift = rng.permutation(row_blocks)
    return np.concatenate(parts, axis=1)


def folds_of(problem: Problem, *, groups: Array | None = None, **options: Any) -> Folds:
    """Folds of a problem's answers, its confounds spread evenly; `options` as for `make_folds`."""
    return make_folds(problem.n, problem.m, strata=strata_of(problem), groups=groups, **options)


def halves_of(problem: Problem, *, groups: Array | None = None, rng: np.random.Generator) -> Array:
    """The half (0 or 1) of each participant (n,), confounds spread evenly and groups kept whole."""
    folds = make_folds(
        problem.n,
        2,
        n_splits=2,
        row_blocks=2,
        col_blocks=2,
        strata=strata_of(problem),
        groups=groups,
        rng=rng,
    )
    return folds.row_block


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
