"""A rare value just beyond an answer scale that is complete without it: 0 for "no answer" on a scale from 1.

Whether a rare lowest or highest value is an answer or stands for none is told by the other answers of those
who gave it. Who gives the extreme answer to an item is extreme in related items; who gave none is like
anybody else. `benchmarks/end_codes.py` measures how often this is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.data.ranges import Family
from icqf.data.scales import number
from icqf.data.spreads import Spread
from icqf.errors import counted, listed

Array = NDArray[Any]
RARE = 0.03  # of all answers of the family, the most that a rare value has
RARER = 1 / 3  # of the answers next to it, the most that a rare value has
FEWEST_GIVEN = 3
FEWEST_ITEMS = 3
MOST_ITEMS = 1000  # that are compared with each other
MOST_VALUES = 12
# How far those who gave the value are like those who give the extreme answer (0: like anybody).
UNLIKE = 0.3
AN_ANSWER = 0.6  # which twice the standard error must not reach
# Scales that are usual without a 0 and hardly ever have one: there, doubt is enough.
FROM_ONE = ((1.0, 5.0), (1.0, 7.0))


@dataclass(frozen=True)
class EndCode:
    """A value that looks like "no answer".

    Parameters
    ----------
    value : float
    count : int
        How often it was given.
    low, high : float
        The scale without it.
    items : tuple of str
        Items to which it was given.
    family : tuple of str
        All items on that scale.
    """

    value: float
    count: int
    low: float
    high: float
    items: tuple[str, ...]
    family: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What was found."""
        n, side = len(self.items), "below" if self.value < self.low else "above"
        who = f"All {n} items hold" if n == len(self.family) else f"{n} of {len(self.family)} items hold"
        who = f"Item {self.items[0]!r} holds" if n == 1 else who
        which = f": {listed(self.items)}" if n > 1 else ""
        return (
            f"{who} {number(self.value)} ({counted(self.count, 'time')}), {side} a scale from "
            f"{number(self.low)} to {number(self.high)} that is complete without it{which}. Those who "
            f"gave it answer other items like anybody else, so {number(self.value)} seems to mean no answer."
        )


def end_codes(values: Array, names: Sequence[str], families: Iterable[Family]) -> Iterator[EndCode]:
    """Find the lowest or highest values of families of items that look like "no answer".

    Parameters
    ----------
    values : array (n, m)
        Answers, NaN where there is none.
    names : sequence of str
        The items.
    families : iterable of Family
        Items without a declared range, which share their answer values.

    Examples
    --------
    >>> from icqf.data.ranges import Family
    >>> rng = np.random.default_rng(0)
    >>> trait = rng.normal(size=(400, 1))
    >>> answers = np.clip(np.rint(3 + trait + 0.8 * rng.normal(size=(400, 10))), 1, 5)
    >>> answers[rng.random(answers.shape) < 0.01] = 0
    >>> names = [f"q{j}" for j in range(10)]
    >>> (found,) = end_codes(answers, names, [Family(tuple(names), 0, 5)])
    >>> found.value, found.low, found.high
    (0.0, 1.0, 5.0)
    """
    place = {name: j for j, name in enumerate(names)}
    for family in families:
        columns = [place[name] for name in family.items if name in place]
        if not FEWEST_ITEMS <= len(columns) <= MOST_ITEMS:
            continue
        present, counts = _value_counts(values, columns)
        for side in (-1.0, 1.0):
            found = _rare_end(present, counts, side)
            if found is None:
                continue
            end, low, high = found
            answers = values[:, columns]
            like, error = _likeness(answers, end)
            unlike = like < UNLIKE and like + 2 * error < AN_ANSWER
            if unlike or (end == 0 and (low, high) in FROM_ONE and like - 2 * error < UNLIKE):
                hits = (answers == end).sum(axis=0)
                items = tuple(names[columns[j]] for j in np.flatnonzero(hits))
                yield EndCode(end, int(hits.sum()), low, high, items, tuple(names[j] for j in columns))


def _value_counts(values: Array, columns: Sequence[int]) -> tuple[Array, Array]:
    """The different answers in some columns, in order, and how often each was given."""
    spreads = [Spread.of(values[:, j]) for j in columns]
    present, place = np.unique(np.concatenate([each.values for each in spreads]), return_inverse=True)
    return present, np.bincount(place, weights=np.concatenate([each.counts for each in spreads]))


def _rare_end(present: Array, counts: Array, side: float) -> tuple[float, float, float] | None:
    """The lowest (side -1) or highest value, if it is rare and the others have no gaps; with their ends."""
    if len(present) < 3 or len(present) > MOST_VALUES:
        return None
    if side > 0:
        present, counts = present[::-1], counts[::-1]
    rest = np.sort(present[1:])
    gapless = bool((np.diff(rest) == 1).all()) and abs(present[0] - present[1]) == 1
    rare = FEWEST_GIVEN <= counts[0] <= min(RARE * counts.sum(), RARER * counts[1])
    if not gapless or not rare:
        return None
    return float(present[0]), float(rest[0]), float(rest[-1])


def _likeness(answers: Array, end: float) -> tuple[float, float]:
    """How far those who gave a value are like those who give the extreme answer: 1, or like anybody: 0.

    What each answer would be is told by the participant's other answers, with correlations from the other
    half of the participants. Returned with its standard error.
    """
    seen = np.isfinite(answers) & (answers != end)
    n = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, answers, 0).sum(axis=0) / n
    z = np.where(seen, answers - mean, 0.0)
    sd = np.sqrt((z**2).sum(axis=0) / n)
    sd[sd == 0] = 1
    z /= sd
    told = np.empty_like(z)  # of each answer by the other ones
    half = np.arange(len(z)) % 2 == 0
    for one in (half, ~half):
        r = z[one].T @ z[one] / max(int(one.sum()), 1)
        np.fill_diagonal(r, 0)
        r[np.abs(r) < 2 / np.sqrt(one.sum())] = 0  # what is chance only blurs
        told[~one] = z[~one] @ r
    spread = np.sqrt((told**2 * seen).sum(axis=0) / n)
    told /= np.where(spread > 0, spread, 1)
    slope = (told * z).sum(axis=0) / n
    expected = np.maximum(slope, 0) * (end - mean) / sd
    given = answers == end
    by_person = (given * expected * told).sum(axis=1), (given * expected**2).sum(axis=1)
    total = float(by_person[1].sum())
    if total == 0:
        return 0.0, np.inf
    found = float(by_person[0].sum() / total)
    error = float(np.sqrt(((by_person[0] - found * by_person[1]) ** 2).sum()) / total)
    return found, max(error, 1 / np.sqrt(total))
