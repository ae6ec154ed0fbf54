"""Undeclared answer ranges.

Items that share their answer values form a family with one range. Ranges are not pooled over all items, or
yes/no items among 0-3 items would become 0-3. Items belong to one family if their names have the same stem or
they are adjacent, and if those without an extreme may lack it by chance. A lone value far from its family (44
among 1-6) is not an answer and does not count for the range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.errors import InputError, Note, counted
from icqf.screening.column_names import folded, stem
from icqf.screening.missing_codes import codes_apart
from icqf.screening.value_counts import ValueCounts

Array = NDArray[np.float64]
WIDEST_RANGE = 1e6
DECLARE_RANGE = "if not, declare the item's range in a codebook"


def refuse_wide_range(item: str, low: float, high: float) -> None:
    """Refuse a range wider than any questionnaire's; ids and dates have such, and their squares overflow."""
    if high - low > WIDEST_RANGE:
        raise InputError(
            f"Item {item!r} would have the range {low:g} to {high:g}, wider than any questionnaire's.",
            code="wide-range",
            remedy="If such numbers are ids, dates or missing codes, leave them out; otherwise rescale them.",
            item=item,
            low=low,
            high=high,
        )


# Thresholds, in the order of use.
FEWEST_PARTICIPANTS = 30  # with fewer, a single digit far from the others may be a rare answer
OFTEN = (3, 0.01)  # count and share of an item's answers from which a value is on its scale
SLIPS = (1, 0.005)  # count and share of an item's answers beyond a scale; more are another scale
RARELY = 0.002  # relative to the answers at an end: rarer answers beyond it are not options
FEWEST_COMPARED = 3  # items, and values of each, to compare their ends
MOST_DOUBTFUL = 2  # answers that only one item has at an end
MISSED_BY_CHANCE = 1e-3  # smallest probability at which items may lack an extreme by chance
FEWEST_NEAR = 10  # answers near an end from which the share beyond it is estimated
PART_OF_RANGE = 0.5  # share of a range's width that a narrower range in the same family must exceed
UNDECLARED = "undeclared"  # the code of the note on ranges that no codebook declares


@dataclass(frozen=True)
class Family:
    """Items that share their answer values, with the lowest and highest."""

    items: tuple[str, ...]
    low: float
    high: float


@dataclass(frozen=True)
class Stray:
    """A value far from the answers of an item's family, which is probably not an answer."""

    item: str
    value: float
    count: int
    low: float
    high: float
    n_items: int


@dataclass(frozen=True)
class Families:
    """The families of items without a declared range."""

    families: tuple[Family, ...] = ()  # every such item is in one of them
    strays: tuple[Stray, ...] = ()  # values that no family has
    doubtful: tuple[Stray, ...] = ()  # rare values just beyond a family, which widen their item's range only

    @cached_property
    def ends(self) -> Mapping[str, tuple[float, float]]:
        """Lowest and highest answer by item."""
        return {item: (family.low, family.high) for family in self.families for item in family.items}

    @property
    def sentence(self) -> Note:
        """The note on ranges taken from the answers."""
        count = sum(len(family.items) for family in self.families)
        parts = [f"{family.low:g} to {family.high:g} for {folded(family.items)}" for family in self.families]
        return Note(
            UNDECLARED,
            f"No range is declared for {counted(count, 'item')}: the lowest and highest answers among items "
            f"that share their answer values are used, {'; '.join(parts)}.",
        )


@dataclass(eq=False)
class _Scale:
    """Items presumed to share a scale while families are formed; changed in place."""

    names: list[str]
    counts: dict[str, ValueCounts] = field(repr=False)
    low: float = np.inf
    high: float = -np.inf

    def __post_init__(self) -> None:
        for counts in self.counts.values():
            low, high = counts.ends
            self.low, self.high = min(self.low, low), max(self.high, high)

    def take(self, other: _Scale) -> None:
        self.names += other.names
        self.counts |= other.counts
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)


def families_among(answers: pd.DataFrame, names: Iterable[str]) -> Families:
    """Find the families among these items, in the order of the columns."""
    wanted = set(names)
    numeric = [
        name
        for name, kind in answers.dtypes.items()
        if name in wanted and pd.api.types.is_numeric_dtype(kind)
    ]
    if not numeric or not answers.columns.is_unique:
        return Families()
    table = answers[numeric].to_numpy(dtype=float, na_value=np.nan)
    return families_of({str(name): ValueCounts.of(table[:, j]) for j, name in enumerate(numeric)})


def families_of(counts: Mapping[str, ValueCounts], *, fewest: int = FEWEST_PARTICIPANTS) -> Families:
    """Find the families of items, given the counts of each in the order of the columns.

    With fewer than `fewest` answers to an item, a single digit is an answer however far from the others.
    """
    place = {name: at for at, name in enumerate(counts)}
    by_stem: dict[str, list[str]] = {}
    for name in counts:
        by_stem.setdefault(stem(name), []).append(name)
    alike = [names for names in by_stem.values() if len(names) > 1]
    alike.append([names[0] for names in by_stem.values() if len(names) == 1])
    # Rule 1: usual codes, and values far from those of similar items, are not answers.
    strays = {name: _codes(each, fewest) for name, each in counts.items()}
    for names in alike:
        for name, far in _far_values(names, counts, strays, fewest).items():
            strays[name] = strays[name] | far
    answers = {name: each.without(strays[name]) for name, each in counts.items()}
    # Rule 2: a rare extreme that only one item has widens that item's range alone.
    doubtful: dict[str, float] = {}
    for names in alike:
        doubtful |= _rare_extremes(names, answers)
    sure = {name: each.without([doubtful[name]]) for name, each in answers.items() if name in doubtful}
    sure = {name: sure.get(name, each) for name, each in answers.items()}
    # Rule 3: items share a scale if those without an extreme may lack it by chance.
    scales: list[_Scale] = []
    for names in by_stem.values():
        scales += _split([name for name in names if len(sure[name].values) > 1], sure)
    _join_alike(scales, place)
    # Rule 4: an item with at most one answer has the range of the nearest scale with this answer.
    _place_constants(scales, [name for name in counts if len(sure[name].values) < 2], sure, place)
    families = [
        Family(tuple(sorted(scale.names, key=place.__getitem__)), scale.low, scale.high)
        for scale in sorted(scales, key=lambda scale: min(place[name] for name in scale.names))
    ]
    home = {name: family for family in families for name in family.items}

    def outside(values: Mapping[str, Iterable[float]]) -> tuple[Stray, ...]:
        return tuple(
            Stray(name, value, int(counts[name].count(value)), own.low, own.high, len(own.items))
            for name, suspects in values.items()
            for own in [home[name]]
            for value in sorted(suspects)
            if not own.low <= value <= own.high
        )

    unsure = outside({name: [value] for name, value in doubtful.items()})
    return Families(_widened(families, unsure), outside(strays), unsure)


def _codes(counts: ValueCounts, fewest: int) -> set[float]:
    """Usual no-answer codes far from an item's other answers."""
    return {code for code in codes_apart(counts.values) if not (0 < code < 10 and counts.n < fewest)}


def _far_values(
    names: Sequence[str], counts: Mapping[str, ValueCounts], codes: Mapping[str, set[float]], fewest: int
) -> dict[str, set[float]]:
    """Rare values far from those that several of these items have, by item."""
    plain = {name: counts[name].without(codes[name]) for name in names}
    items_with: Counter[float] = Counter()
    cells: Counter[float] = Counter()
    often: set[float] = set()
    for each in plain.values():
        for value, count in zip(each.values.tolist(), each.counts.tolist(), strict=True):
            items_with[value] += 1
            cells[value] += count
            if count >= max(OFTEN[0], OFTEN[1] * each.n):
                often.add(value)
    core = sorted(value for value, count in items_with.items() if count > 1 or value in often)
    if len(core) < 2:
        return {}
    low, high = core[0], core[-1]
    width, step, total = high - low, float(np.diff(core).max()), sum(cells.values())
    far: dict[str, set[float]] = {}
    for name, each in plain.items():
        away = [value for value in each.values.tolist() if not low <= value <= high]
        if sum(each.count(value) for value in away) > max(SLIPS[0], SLIPS[1] * each.n):
            continue  # not a slip, but another scale
        for value in away:
            if 0 < value < 10 and each.n < fewest:
                continue
            distance = max(low - value, value - high)
            if distance > step and (distance > width or cells[value] < RARELY * total / len(core)):
                far.setdefault(name, set()).add(value)
    return far


def _rare_extremes(names: Sequence[str], counts: Mapping[str, ValueCounts]) -> dict[str, float]:
    """Rare extremes that only one item has, by item."""
    extremes: dict[str, float] = {}
    compared = [name for name in names if len(counts[name].values) >= FEWEST_COMPARED]
    for side in (1.0, -1.0) if len(compared) >= FEWEST_COMPARED else ():
        ends = {name: counts[name].ends[1 if side > 0 else 0] for name in compared}
        top = max(ends.values(), key=lambda end: side * end)
        holders = [name for name, end in ends.items() if end == top]
        if len(holders) != 1:
            continue
        next_end = max((end for end in ends.values() if end != top), key=lambda end: side * end)
        near = sum(counts[name].beyond(next_end, side, inclusive=True) for name in ends)
        own = counts[holders[0]]
        beyond = own.beyond(next_end, side, inclusive=False)
        if beyond <= MOST_DOUBTFUL and beyond < RARELY * near and own.count(top) == beyond:
            extremes.setdefault(holders[0], top)
    return extremes


def _split(names: list[str], counts: Mapping[str, ValueCounts]) -> list[_Scale]:
    """Items with the same stem, by scale."""
    by_range: dict[tuple[float, float], list[str]] = {}
    for name in names:
        by_range.setdefault(counts[name].ends, []).append(name)
    scales = [_Scale(members, {name: counts[name] for name in members}) for members in by_range.values()]
    scales.sort(key=lambda scale: (-len(scale.names), scale.low - scale.high))
    separate: list[_Scale] = []
    for scale in scales:
        home = next((other for other in separate if _may_be_one(scale, other)), None)
        if home is None:
            separate.append(scale)
        else:
            home.take(scale)
    return separate


def _join_alike(scales: list[_Scale], place: Mapping[str, int]) -> None:
    """Join equal scales, and those that may lack their neighbours' extremes by chance, in place."""

    def unite(alike: Callable[[_Scale, _Scale], bool]) -> bool:
        for at, small in enumerate(scales):
            for other in scales:
                if other is not small and alike(small, other):
                    other.take(small)
                    del scales[at]
                    return True
        return False

    def equal(one: _Scale, other: _Scale) -> bool:
        return (one.low, one.high) == (other.low, other.high)

    def part(small: _Scale, large: _Scale) -> bool:
        inside = large.low <= small.low and small.high <= large.high
        if not inside or small.high - small.low <= PART_OF_RANGE * (large.high - large.low):
            return False
        places = {place[name] for name in large.names}
        adjacent = any(place[name] + step in places for name in small.names for step in (-1, 1))
        return adjacent and _may_be_one(small, large)

    while unite(equal) or unite(part):
        pass


def _place_constants(
    scales: list[_Scale], names: Sequence[str], counts: Mapping[str, ValueCounts], place: Mapping[str, int]
) -> None:
    """Give items with at most one answer the range of the nearest family with this answer, in place."""
    for name in names:
        low, high = counts[name].ends
        homes = [scale for scale in scales if low > high or scale.low <= low <= scale.high]
        if homes:
            alike = [scale for scale in homes if any(stem(other) == stem(name) for other in scale.names)]
            nearest = min(
                alike or homes,
                key=lambda scale: min(abs(place[other] - place[name]) for other in scale.names),
            )
            nearest.names.append(name)
        else:
            low = 0.0 if low > high else low
            scales.append(_Scale([name], {}, low, low + 1))


def _may_be_one(one: _Scale, other: _Scale) -> bool:
    """Whether two sets of items may have one scale, though one lacks an extreme."""
    if max(one.low, other.low) - min(one.high, other.high) > 1:
        return False
    probability = 1.0
    if one.high != other.high:
        lacking, having = sorted((one, other), key=lambda scale: scale.high)
        probability *= _chance_to_miss(lacking, having, lacking.high, 1.0)
    if one.low != other.low:
        having, lacking = sorted((one, other), key=lambda scale: scale.low)
        probability *= _chance_to_miss(lacking, having, lacking.low, -1.0)
    return probability > MISSED_BY_CHANCE


def _chance_to_miss(lacking: _Scale, having: _Scale, end: float, side: float) -> float:
    """Probability that nobody went beyond an end, if the share beyond it were that of the other items.

    The share is the smallest of any item, and two standard errors below their mean, as items differ in how
    extreme an answer is.
    """
    near = {name: each.beyond(end, side, inclusive=True) for name, each in having.counts.items()}
    beyond = {name: each.beyond(end, side, inclusive=False) for name, each in having.counts.items()}
    total = sum(beyond.values())
    if total == 0:
        return 1.0
    share = max(0.0, total - 2 * np.sqrt(total)) / sum(near.values())
    share = min([share, *(beyond[name] / near[name] for name in near if near[name] >= FEWEST_NEAR)])
    at_end = sum(each.count(end) for each in lacking.counts.values())
    return float((1 - share) ** at_end)


def _widened(families: Sequence[Family], doubtful: Sequence[Stray]) -> tuple[Family, ...]:
    """Give items with a doubtful answer a range of their own."""
    own = {stray.item: stray.value for stray in doubtful}
    widened = []
    for family in families:
        others = tuple(name for name in family.items if name not in own)
        if others:
            widened.append(Family(others, family.low, family.high))
        widened += [
            Family((name,), min(family.low, own[name]), max(family.high, own[name]))
            for name in family.items
            if name in own
        ]
    return tuple(widened)
