"""Deal participants (or whole groups of them) to parts that resemble each other.

Two rules, as there are two tasks. Blocks of one size, each participant of one stratum: `deal_evenly` and
`deal_groups`. Parts of given shares, each participant of several overlapping kinds: `deal_in_proportion`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.core.observations import Observations
from icqf.core.problem import Problem
from icqf.data.duplicates import copied_sheets, together
from icqf.data.tables import as_pandas
from icqf.errors import InputError

Array = NDArray[Any]
BANDS = 4  # of a continuous confound


def bands(values: Array) -> Array:
    """Band (0, 1, …) of each value, about equally many participants each; missing values have their own."""
    edges = np.nanquantile(values, np.linspace(0, 1, BANDS + 1)[1:-1])
    return np.where(np.isnan(values), BANDS, np.searchsorted(edges, values))


def strata_of(problem: Problem) -> Array | None:
    """Stratum of each participant (n,): categories and bands of the confounds together; None without any."""
    if not problem.partitions:
        return None
    label = np.zeros(problem.n, dtype=np.intp)
    for columns in problem.partitions:
        part = problem.design[list(columns)]
        level = part.argmax(axis=0) if np.isin(part, (0.0, 1.0)).all() else bands(part[0])
        label = label * (int(level.max()) + 1) + level
    return np.unique(label, return_inverse=True)[1]


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

    A unit is a group, such as a family, and whoever gave exactly the same answers as one of its members: an
    entry that is there several times is one participant. None where everybody is a unit.
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
