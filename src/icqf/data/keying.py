"""Which items run against the others: items that look reversed, how strongly, and how sure that is.

Non-negative loadings cannot say "the less, the more", so an item of the wrong direction leaves its factor.
What is done, and how often it errs, is in ``docs/direction.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Draft, Item
from icqf.data.ranges import Families
from icqf.data.scales import codes_apart
from icqf.data.sides import Answers, Floats, Group, Indices, correlation, even_split, groups_of
from icqf.errors import listed

FEWEST_PARTICIPANTS = 30
MOST_PARTICIPANTS = 4000  # more tell nothing new, and a check must stay quick
MOST_ITEMS = 1000  # all pairs of them are compared, again and again
MOST_REDRAWN = 100_000  # answers of a resample, of 500 participants at least
RESAMPLES = 20
CERTAINLY = 3.3  # standard errors by which an item must run against the others
LEAST_CORRELATION = 0.1
LEAST_OPPOSED = {True: 0.3, False: 0.4}  # corrected for unreliability, of a single item and of several
OPPOSED_SURE = 1.645
SKEWED = 0.5
MOST_SKEWED = 0.75  # of the other items, all to the same end
_SEED = 12


@dataclass(frozen=True)
class Suspect:
    """An item that runs against the others of its group.

    Parameters
    ----------
    item, wording : str
        The item, and the question as participants read it.
    correlation : float
        With the mean of the items it runs against; negative.
    low, high : float
        A 95 % interval of the correlation.
    against : tuple of str
        The items it runs against, the most strongly opposed first.
    scale : str
        The subscale in which it was found; empty when items were compared without.
    reversed : bool
        Whether it is declared reversed already, so that it runs against the others in spite of that.
    found_again : float
        Share of resamples of the participants in which it was found again, groups and all.

    Examples
    --------
    >>> from icqf.data.keying import Suspect
    >>> Suspect("q4", "Makes friends easily", -0.6, -0.7, -0.5, ("q12", "q20")).strength
    'correlation −0.60, 95 % interval −0.70 to −0.50, found again in 100 % of resamples'
    """

    item: str
    wording: str
    correlation: float
    low: float
    high: float
    against: tuple[str, ...]
    scale: str = ""
    reversed: bool = False
    found_again: float = 1.0

    @property
    def strength(self) -> str:
        """How strongly it runs against the others, and how sure that is, in words."""
        return (
            f"correlation {signed(self.correlation)}, 95 % interval {signed(self.low)} to "
            f"{signed(self.high)}, found again in {100 * self.found_again:.0f} % of resamples"
        )


@dataclass(frozen=True)
class Ends:
    """Two sets of items that run against each other, neither of which is the exception.

    Parameters
    ----------
    one, other : tuple of str
        The items at each end.
    correlation : float
        Of the means of both; negative.

    Examples
    --------
    >>> from icqf.data.keying import Ends
    >>> print(Ends(("happy", "glad", "merry"), ("sad", "blue", "low"), -0.7).sentence)
    3 items ('happy', 'glad', 'merry') and 3 others ('sad', 'blue', 'low') form two opposite ends (correlation
    −0.70); the answers cannot tell which end is meant.
    """

    one: tuple[str, ...]
    other: tuple[str, ...]
    correlation: float

    @property
    def sentence(self) -> str:
        """What was found."""
        few, rest = ("item", "other") if len(self.one) == 1 else ("items", "others")
        rest = "other" if len(self.other) == 1 else "others"
        return (
            f"{len(self.one)} {few} ({listed(self.one)}) and {len(self.other)} {rest} ({listed(self.other)}) "
            f"form two opposite ends (correlation {signed(self.correlation)}); the answers cannot tell which "
            "end is meant."
        )


@dataclass(frozen=True)
class Keying:
    """What was found about the direction of items.

    Parameters
    ----------
    suspects : tuple of Suspect
        Items that run against the others, in the order of the questionnaire.
    ends : tuple of Ends
        Traits with two ends, such as moods.
    compared : bool
        Whether items were compared at all; more than `MOST_ITEMS` are not.

    Examples
    --------
    >>> from icqf.data.keying import find_reversed
    >>> from icqf.datasets import load_demo
    >>> find_reversed(load_demo()).looks_reversed
    ()
    """

    suspects: tuple[Suspect, ...] = ()
    ends: tuple[Ends, ...] = ()
    compared: bool = True

    @property
    def looks_reversed(self) -> tuple[str, ...]:
        """Items that look reversed and are not declared so."""
        return tuple(suspect.item for suspect in self.suspects if not suspect.reversed)

    def to_frame(self) -> pd.DataFrame:
        """Return the suspects as a table indexed by item."""
        columns = list(Suspect.__dataclass_fields__)
        rows = [[getattr(suspect, name) for name in columns] for suspect in self.suspects]
        return pd.DataFrame(rows, columns=columns).set_index("item")


def find_reversed(draft: Draft, *, resamples: int = RESAMPLES) -> Keying:
    """Find the items that run against the others.

    Items are compared as their codebook keys them, so one that is declared reversed is found only when it
    still runs against the others.

    Parameters
    ----------
    draft : Draft or Questionnaire
        Answers and items. Where items name subscales, only items of one subscale are compared with each
        other; those without one, or in a subscale of fewer than three items, form another set.
    resamples : int
        How often to draw participants again, to see whether the same items are found. Nothing is drawn when
        nothing is found.

    Returns
    -------
    Keying
        Empty where there are more than 1 000 items, which are not compared.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from icqf.data.keying import find_reversed
    >>> from icqf.data.questionnaire import Questionnaire
    >>> from icqf.datasets import load_demo
    >>> demo = load_demo()
    >>> items = tuple(replace(item, reverse=False) for item in demo.items)
    >>> find_reversed(Questionnaire(demo.answers, items)).looks_reversed
    ('q004', 'q006')
    """
    items = draft.items
    if len(items) > MOST_ITEMS:
        return Keying(compared=False)
    answers = Answers.of(_keyed(draft))
    sets = _sets(items)
    found, ends = _decided(answers, sets)
    again = _found_again(answers, sets, resamples) if found else np.zeros(len(items))
    suspects = (
        Suspect(
            items[j].name,
            items[j].wording,
            *_interval(answers, j, against),
            tuple(items[i].name for i in _most_opposed(answers, j, against)),
            scale=items[j].subscale if sets[_set_of(sets, j)][1] else "",
            reversed=items[j].reverse,
            found_again=float(again[j]),
        )
        for j, against in sorted(found.items())
    )
    names = np.array([item.name for item in items], dtype=object)
    return Keying(
        tuple(suspects),
        tuple(Ends(tuple(names[a]), tuple(names[b]), _opposed(answers, a, b)) for a, b in ends),
    )


def signed(value: float) -> str:
    """Write a correlation with two places and a minus sign.

    Examples
    --------
    >>> signed(-0.5), signed(0.25)
    ('−0.50', '0.25')
    """
    return f"{value:.2f}".replace("-", "−")


def _keyed(draft: Draft) -> Floats:
    """Answers of at most `MOST_PARTICIPANTS`, evenly spaced in the file, reversed as the codebook says."""
    n = len(draft.answers)
    rows = np.arange(n) if n <= MOST_PARTICIPANTS else np.linspace(0, n - 1, MOST_PARTICIPANTS).astype(int)
    families = Families() if draft.families is None else draft.families
    values: Floats = draft.answers.iloc[rows].to_numpy(dtype=float, na_value=np.nan).copy()
    for j, item in enumerate(draft.items):
        column = values[:, j]
        if item.min is not None and item.max is not None:
            column[(column < item.min) | (column > item.max)] = np.nan
        else:
            low, high = families.ends.get(item.name, (-np.inf, np.inf))
            column[(column < low) | (column > high) | np.isin(column, codes_apart(column))] = np.nan
        if np.isfinite(column).sum() < FEWEST_PARTICIPANTS:
            column[:] = np.nan
        if item.reverse:
            values[:, j] = -column
    return values


def _sets(items: Sequence[Item]) -> list[tuple[Indices, bool]]:
    """Positions of the items to compare with each other, and whether a subscale is what they share."""
    scales: dict[str, list[int]] = {}
    for j, item in enumerate(items):
        scales.setdefault(item.subscale, []).append(j)
    rest = scales.pop("", [])
    for name in [name for name, members in scales.items() if len(members) < 3]:
        rest += scales.pop(name)
    # A single name for everything is that of the questionnaire and tells no scales apart.
    named = [(np.array(members, dtype=np.intp), len(scales) > 1) for members in scales.values()]
    return [*named, (np.array(sorted(rest), dtype=np.intp), False)]


def _set_of(sets: list[tuple[Indices, bool]], j: int) -> int:
    return next(index for index, (members, _) in enumerate(sets) if j in members)


def _decided(
    answers: Answers, sets: list[tuple[Indices, bool]]
) -> tuple[dict[int, Indices], list[tuple[Indices, Indices]]]:
    """Return each suspect with the items it runs against, and the pairs of ends."""
    found: dict[int, Indices] = {}
    ends: list[tuple[Indices, Indices]] = []
    for members, is_scale in sets:
        for group in groups_of(answers, [members]):
            most, against = group.most, _surely(answers, group)
            if not len(against) or not _of_one_trait(answers, most, against):
                continue
            # Within a subscale its author meant one direction, so the larger side decides unless both are
            # equal. Without, two items are no majority over one, as the rest of their group may be elsewhere,
            # and several items at each end may be a trait with two ends.
            undecided = len(most) == len(against) or (
                not is_scale and (len(most) < 3 or group.two_ends or even_split(len(most), len(against)))
            )
            if undecided:
                most, against, undecided = _by_skew(answers, most, against)
            if undecided:
                ends.append((most, against))
            else:
                found |= dict.fromkeys(against.tolist(), most)
    return found, ends


def _surely(answers: Answers, group: Group) -> Indices:
    """Those against most of the group for which this is no chance and no trifle."""
    return np.array(
        [
            j
            for j in group.against.tolist()
            for r, error in [_with_mean(answers, j, group.most)]
            if r < -LEAST_CORRELATION and r < -CERTAINLY * error
        ],
        dtype=np.intp,
    )


def _of_one_trait(answers: Answers, most: Indices, against: Indices) -> bool:
    """Whether both sides are one trait rather than two that are mildly opposed."""
    related, error = answers.relation(most, against, np.ones(len(answers.R)))
    return -related - OPPOSED_SURE * error > LEAST_OPPOSED[len(against) == 1]


def _by_skew(answers: Answers, a: Indices, b: Indices) -> tuple[Indices, Indices, bool]:
    """Decide by where answers pile up: the side that piles up at the other end than most items is reversed.

    On symptom scales most answers lie at the low end, and those to reversed items at the high end.
    """
    count = np.maximum(answers.seen.sum(axis=0), 1)
    skew = (answers.Z**3).sum(axis=0) / count
    others = np.setdiff1d(np.flatnonzero(answers.usable), np.concatenate([a, b]))
    for usual in (1.0, -1.0):
        if len(others) < 3 or (usual * skew[others] > SKEWED).mean() < MOST_SKEWED:
            continue
        for one, other in ((a, b), (b, a)):
            if (usual * skew[one] > SKEWED).all() and (usual * skew[other] < -SKEWED).all():
                return one, other, False
    return a, b, True


def _with_mean(answers: Answers, j: int, others: Indices) -> tuple[float, float]:
    mean, seen = answers.mean_of(others, np.ones(len(answers.R)))
    return correlation(answers.Z[:, j], mean, answers.seen[:, j] * seen)


def _interval(answers: Answers, j: int, against: Indices) -> tuple[float, float, float]:
    r, error = _with_mean(answers, j, against)
    return r, max(r - 1.96 * error, -1.0), min(r + 1.96 * error, 1.0)


def _most_opposed(answers: Answers, j: int, against: Indices) -> Indices:
    order: Indices = against[np.argsort(answers.R[j, against], kind="stable")]
    return order


def _opposed(answers: Answers, a: Indices, b: Indices) -> float:
    ones = np.ones(len(answers.R))
    (x, seen_x), (y, seen_y) = answers.mean_of(a, ones), answers.mean_of(b, ones)
    return correlation(x, y, seen_x * seen_y)[0]


def _found_again(answers: Answers, sets: list[tuple[Indices, bool]], resamples: int) -> Floats:
    """Share of resamples of the participants in which each item is a suspect again."""
    rng = np.random.default_rng(_SEED)
    n, m = answers.Z.shape
    size = min(n, max(500, MOST_REDRAWN // max(m, 1)))
    times = np.zeros(len(answers.R))
    for _ in range(resamples):
        drawn = answers.take(rng.integers(n, size=size))
        times[list(_decided(drawn, sets)[0])] += 1
    return times / max(resamples, 1)
