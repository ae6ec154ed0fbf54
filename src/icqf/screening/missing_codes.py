"""Values that mean "no answer": 999 and similar codes, and a rare value just beyond a complete scale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icqf.errors import Advice, counted, listed
from icqf.screening.value_counts import ValueCounts

if TYPE_CHECKING:
    from icqf.screening.ranges import Family

Array = NDArray[np.float64]
_REPEATED = (
    int(str(digit) * times) for digit in range(1, 10) for times in (1, 2, 3, 4) if digit > 5 or times > 1
)
_FEW_ANSWERS = 11  # different answers; longer scales may have gaps of a few steps
USUAL_CODES = frozenset([-1.0, *(float(sign * code) for code in _REPEATED for sign in (1, -1))])
_LOWEST_CODE = min(code for code in USUAL_CODES if code > 0)


def codes_apart(values: np.ndarray) -> list[float]:
    """Return the usual no-answer codes (9, 44, 777, -9, ...) that are far from an item's other answers.

    Far is more than one step, or, on a long scale, a quarter of the range.
    """
    low, high = np.fmin.reduce(values, initial=np.nan), np.fmax.reduce(values, initial=np.nan)
    if not (low < 0 or high >= _LOWEST_CODE):
        return []
    present = np.unique(values[np.isfinite(values)])
    if not USUAL_CODES.intersection(present.tolist()):
        return []
    apart: list[float] = []
    for side in (1.0, -1.0):
        ordered = np.sort(side * present)[::-1]
        run = 0
        while run < len(ordered) and float(side * ordered[run]) in USUAL_CODES:
            run += 1
        while run and (run >= len(ordered) or ordered[run - 1] - ordered[run] <= _widest_step(ordered[run:])):
            run -= 1
        codes = [float(side * v) for v in ordered[:run]]
        apart += [code for code in codes if side > 0 or code < 0]
    return sorted(apart)


def _widest_step(answers: np.ndarray) -> float:
    """The widest step between answers (in descending order) that is not unusual."""
    return 1.0 if len(answers) <= _FEW_ANSWERS else max(1.0, float(answers[0] - answers[-1]) / 4)


def missing_code_remedy(value: float | str, otherwise: str = "") -> Advice:
    """Return what to do about a value that may mean "no answer"."""
    text = number(value) if is_number(value) else repr(value)
    end = f"; {otherwise}." if otherwise else "."
    return Advice("If {} marks a missing answer, add {missing_codes=}{}", text, end, missing_codes=[value])


def number(value: object) -> str:
    """Write a number without ``.0``; anything else as text."""
    if isinstance(value, (int, float, np.number)):
        whole = float(value).is_integer() and abs(float(value)) < 1e15
        return str(int(value)) if whole else f"{float(value)!r}"
    return str(value)


def code_in(text: object) -> float | str:
    """Return a code in a description: a number if it is written as one, else a text."""
    try:
        return float(str(text))
    except ValueError:
        return str(text)


def as_number(value: Any) -> float | None:
    """Return a number that may be written as text; None for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def is_number(value: object) -> bool:
    """Whether a missing code is a number rather than a text."""
    return isinstance(value, (int, float, np.number))


# A rare value just beyond an answer scale that is complete without it: 0 for "no answer" on a scale from 1.
#
# Participants who mean an extreme answer are extreme on related items, too; those who gave no answer are like
# everybody else. `benchmarks/end_codes.py` measures how often this is right.

RARE = 0.03  # largest share of a rare value among all answers of the family
RARER = 1 / 3  # and relative to the neighbouring answer
FEWEST_GIVEN = 3
FEWEST_ITEMS = 3
MOST_ITEMS = 1000  # that are compared with each other
MOST_VALUES = 12
# How much those who gave the value resemble those who give the extreme answer (0: not at all).
UNLIKE = 0.3
AN_ANSWER = 0.6  # must be more than two standard errors away
# Scales that hardly ever have a 0: there, doubt is enough.
FROM_ONE = ((1.0, 5.0), (1.0, 7.0))


@dataclass(frozen=True)
class EndCode:
    """A value that looks like "no answer"."""

    value: float
    count: int  # how often it was given
    low: float  # the scale without it
    high: float
    items: tuple[str, ...]  # items to which it was given
    family: tuple[str, ...]  # all items on that scale

    @property
    def sentence(self) -> str:
        """The finding in words."""
        n, side = len(self.items), "below" if self.value < self.low else "above"
        who = f"All {n} items hold" if n == len(self.family) else f"{n} of {len(self.family)} items hold"
        who = f"Item {self.items[0]!r} holds" if n == 1 else who
        which = f": {listed(self.items)}" if n > 1 else ""
        return (
            f"{who} {number(self.value)} ({counted(self.count, 'time')}), {side} a scale from "
            f"{number(self.low)} to {number(self.high)} that is complete without it{which}. Those who gave "
            f"it answer other items like everybody else, so {number(self.value)} seems to mean no answer."
        )


def end_codes(values: Array, names: Sequence[str], families: Iterable[Family]) -> Iterator[EndCode]:
    """Find the lowest or highest values of families of items that look like "no answer"."""
    place = {name: j for j, name in enumerate(names)}
    for family in families:
        columns = [place[name] for name in family.items if name in place]
        if not FEWEST_ITEMS <= len(columns) <= MOST_ITEMS:
            continue
        present, counts = _value_counts(values, columns)
        for side in (-1.0, 1.0):
            rare_end = _rare_end(present, counts, side)
            if rare_end is None:
                continue
            end, low, high = rare_end
            answers = values[:, columns]
            like, error = _likeness(answers, end)
            unlike = like < UNLIKE and like + 2 * error < AN_ANSWER
            if unlike or (end == 0 and (low, high) in FROM_ONE and like - 2 * error < UNLIKE):
                hits = (answers == end).sum(axis=0)
                items = tuple(names[columns[j]] for j in np.flatnonzero(hits))
                yield EndCode(end, int(hits.sum()), low, high, items, tuple(names[j] for j in columns))


def _value_counts(values: Array, columns: Sequence[int]) -> tuple[Array, NDArray[Any]]:
    """The different answers in some columns, in order, and their frequencies."""
    counts = [ValueCounts.of(values[:, j]) for j in columns]
    present, place = np.unique(np.concatenate([each.values for each in counts]), return_inverse=True)
    return present, np.bincount(place, weights=np.concatenate([each.counts for each in counts]))


def _rare_end(present: Array, counts: NDArray[Any], side: float) -> tuple[float, float, float] | None:
    """The lowest (side -1) or highest value, if it is rare and the others are gapless, and their ends."""
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
    """How much those who gave a value resemble those who give the extreme answer (0 to 1), and its error.

    Each answer is predicted from the participant's other answers, with correlations from the other half of
    the participants.
    """
    seen = np.isfinite(answers) & (answers != end)
    n = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, answers, 0).sum(axis=0) / n
    z = np.where(seen, answers - mean, 0.0)
    sd = np.sqrt((z**2).sum(axis=0) / n)
    sd[sd == 0] = 1
    z /= sd
    predicted = np.empty_like(z)
    half = np.arange(len(z)) % 2 == 0
    for one in (half, ~half):
        r = z[one].T @ z[one] / max(int(one.sum()), 1)
        np.fill_diagonal(r, 0)
        r[np.abs(r) < 2 / np.sqrt(one.sum())] = 0  # drops noise
        predicted[~one] = z[~one] @ r
    spread = np.sqrt((predicted**2 * seen).sum(axis=0) / n)
    predicted /= np.where(spread > 0, spread, 1)
    slope = (predicted * z).sum(axis=0) / n
    expected = np.maximum(slope, 0) * (end - mean) / sd
    given = answers == end
    by_person = (given * expected * predicted).sum(axis=1), (given * expected**2).sum(axis=1)
    total = float(by_person[1].sum())
    if total == 0:
        return 0.0, np.inf
    likeness = float(by_person[0].sum() / total)
    error = float(np.sqrt(((by_person[0] - likeness * by_person[1]) ** 2).sum()) / total)
    return likeness, max(error, 1 / np.sqrt(total))
