"""Find and reverse items that run against the others.

Loadings cannot be negative, so an item keyed in the wrong direction is lost to its factor. The method and its
error rates are described in ``docs/direction.md``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from icqf.data.questionnaire import Draft, Item, match_names
from icqf.errors import Advice, InputError, InputWarning, Note, counted, listed
from icqf.screening.missing_codes import codes_apart
from icqf.screening.ranges import Families

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Tuned on simulated studies only; benchmarks/bench_keying.py reports on others. See docs/direction.md.
SAME_TRAIT = 0.4  # disattenuated correlation above which two groups measure one trait
SAME_TRAIT_SURE = 2.33  # standard errors by which it must exceed that
FEWEST_TOGETHER = 10  # participants who answered both items, for a correlation to count
_LEAST_RELATED = 0.02  # a mean correlation of items below this is uninformative
_REASSIGNMENTS = 10
_ROTATIONS = 50


@dataclass(frozen=True, eq=False)
class Answers:
    """Standardized answers and their correlations."""

    Z: Floats  # (n_participants, n_items): standardized by item; 0 where missing or constant
    seen: Floats  # (n_participants, n_items): 1 where an answer was given, else 0
    R: Floats  # (n_items, n_items): correlations over participants who answered both; 0 where too few did
    n: float  # participants behind a typical correlation

    @classmethod
    def of(cls, answers: Floats) -> Answers:
        """Standardize answers (NaN: missing)."""
        known = np.isfinite(answers)
        count = np.maximum(known.sum(axis=0), 1)
        Z = np.where(known, answers, 0.0)
        Z = np.where(known, Z - Z.sum(axis=0) / count, 0.0)
        spread = np.sqrt((Z * Z).sum(axis=0) / count)
        largest = np.abs(Z).max(axis=0, initial=0.0)
        Z = np.divide(Z, spread, out=np.zeros_like(Z), where=spread > 1e-9 * np.maximum(largest, 1e-300))
        seen = known.astype(float)
        if known.all():
            return cls(Z, seen, Z.T @ Z / max(len(Z), 1), float(len(Z)))
        together, squares = seen.T @ seen, (Z * Z).T @ seen
        scale = np.sqrt(squares * squares.T)
        R = np.divide(Z.T @ Z, scale, out=np.zeros_like(scale), where=(scale > 0))
        return cls(Z, seen, np.where(together < FEWEST_TOGETHER, 0.0, R), float(np.median(together)))

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Whether an item varies."""
        varies: npt.NDArray[np.bool_] = np.diag(self.R) > 0
        return varies

    def take(self, rows: Indices) -> Answers:
        """Return the answers of some participants, who may repeat."""
        return Answers.of(np.where(self.seen[rows] > 0, self.Z[rows], np.nan))

    def part(self, items: Indices) -> Answers:
        """Return the answers to some items."""
        if len(items) == len(self.R):
            return self
        return Answers(self.Z[:, items], self.seen[:, items], self.R[np.ix_(items, items)], self.n)

    def mean_of(self, items: Indices, signs: Floats) -> tuple[Floats, Floats]:
        """Return the participants' signed means over items, and 1 where a mean exists."""
        count = self.seen[:, items].sum(axis=1)
        total = self.Z[:, items] @ signs[items]
        return np.divide(total, count, out=np.zeros_like(total), where=count > 0), (count > 0).astype(float)

    def relation(self, a: Indices, b: Indices, signs: Floats) -> tuple[float, float]:
        """Return the disattenuated correlation of two sets of items, and its standard error.

        The mean correlation between the sets is divided by the geometric mean of the mean correlations within
        them; a single item borrows the latter from the other set.
        """
        within = [_within(self._signed(side, side, signs)) for side in (a, b)]
        known = [value for value in within if value is not None]
        (x, seen_x), (y, seen_y) = self.mean_of(a, signs), self.mean_of(b, signs)
        raw, error = correlation(x, y, seen_x * seen_y)
        if not known:
            return raw, error
        if min(known) <= _LEAST_RELATED or raw == 0:
            return 0.0, 1.0
        corrected = float(self._signed(a, b, signs).mean() / np.sqrt(known[0] * known[-1]))
        return corrected, abs(error * corrected / raw)

    def _signed(self, a: Indices, b: Indices, signs: Floats) -> Floats:
        """Return the correlations between two sets of items, with the items' signs."""
        signed: Floats = self.R[np.ix_(a, b)] * np.outer(signs[a], signs[b])
        return signed


def _within(S: Floats) -> float | None:
    """Mean correlation between items of a set."""
    k = len(S)
    return None if k < 2 else float((S.sum() - np.trace(S)) / (k * (k - 1)))


def correlation(x: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    """Return a weighted correlation and its standard error by the infinitesimal jackknife."""
    n = weight.sum()
    if n < FEWEST_TOGETHER:
        return 0.0, 1.0
    x, y = x - (x @ weight) / n, y - (y @ weight) / n
    spread = np.sqrt([(x * x) @ weight / n, (y * y) @ weight / n])
    if spread.min() < 1e-9:
        return 0.0, 1.0
    x, y = x / spread[0], y / spread[1]
    r = float((x * y) @ weight / n)
    influence = (x * y - r * (x * x + y * y) / 2) * weight
    return r, float(np.sqrt(influence @ influence) / n)


def number_of_factors(roots: Floats, n: float) -> int:
    """Return the number of factors by the empirical Kaiser criterion, at least 1; `roots` are descending."""
    m = len(roots)
    before = np.concatenate([[0.0], np.cumsum(roots)[:-1]])
    chance = (m - before) / (m - np.arange(m)) * (1 + np.sqrt(m / max(n, 1.0))) ** 2
    above = roots > np.maximum(chance, 1.0)
    return max(m if above.all() else int(np.argmin(above)), 1)


def main_component(R: Floats, n: float) -> tuple[Indices, Floats]:
    """Return each item's main component after varimax rotation, and the sign of its loading."""
    roots, vectors = np.linalg.eigh(R)
    roots, vectors = np.maximum(roots[::-1], 0.0), vectors[:, ::-1]
    k = number_of_factors(roots, n)
    loadings = vectors[:, :k] * np.sqrt(roots[:k])
    loadings = _varimax(loadings) if k > 1 else loadings
    main = np.abs(loadings).argmax(axis=1)
    return main, np.where(loadings[np.arange(len(R)), main] < 0, -1.0, 1.0)


def _varimax(loadings: Floats) -> Floats:
    """Rotate loadings to simple structure by varimax with Kaiser normalization."""
    length = np.linalg.norm(loadings, axis=1, keepdims=True)
    A = np.divide(loadings, length, out=np.zeros_like(loadings), where=length > 0)
    turn, reached = np.eye(loadings.shape[1]), 0.0
    for _ in range(_ROTATIONS):
        B = A @ turn
        U, s, V = np.linalg.svd(A.T @ (B * (B * B - (B * B).mean(axis=0))))
        turn = U @ V
        if s.sum() < reached * (1 + 1e-4):  # precise enough to determine the main component
            break
        reached = s.sum()
    return loadings @ turn


def reassign(R: Floats, group: Indices, sign: Floats) -> tuple[Indices, Floats]:
    """Move each item to the group whose other items it correlates with most, until none moves."""
    every = np.arange(len(R))
    for _ in range(_REASSIGNMENTS):
        names = np.unique(group)
        M = (group[:, None] == names) * sign[:, None]
        member = M != 0
        across = R @ M - M  # with the sum of a group's other items
        variance = (M * (R @ M)).sum(axis=0) - np.where(member, 2 * M * across + 1, 0.0)
        alone = member.sum(axis=0) - member == 0
        pull = np.where(alone, 0.0, across / np.sqrt(np.maximum(variance, 1e-9)))
        best = np.abs(pull).argmax(axis=1)
        moved, turned = names[best], np.where(pull[every, best] < 0, -1.0, 1.0)
        if (moved == group).all() and (turned == sign).all():
            break
        group, sign = moved, turned
    return group, sign


def join_groups(answers: Answers, group: Indices, sign: Floats) -> tuple[Indices, Floats]:
    """Join groups that surely measure one trait or its opposite, the most alike first."""
    group, sign = group.copy(), sign.copy()
    differ: set[tuple[bytes, bytes]] = set()  # pairs that were looked at and are not joined
    while True:
        members = [np.flatnonzero(group == name) for name in np.unique(group)]
        pairs = _alike(answers.R, members, sign)
        for i, j in pairs:
            pair = members[i].tobytes(), members[j].tobytes()
            if pair in differ:
                continue
            related, error = answers.relation(members[i], members[j], sign)
            if abs(related) - SAME_TRAIT_SURE * error > SAME_TRAIT:
                sign[members[j]] *= np.sign(related)
                group[members[j]] = group[members[i][0]]
                break
            differ.add(pair)
        else:
            return group, sign


def _alike(R: Floats, members: list[Indices], sign: Floats) -> list[tuple[int, int]]:
    """Pairs of groups that may measure one trait, the most alike first."""
    M = np.zeros((len(R), len(members)))
    for g, items in enumerate(members):
        M[items, g] = sign[items]
    size = np.abs(M).sum(axis=0)
    total = M.T @ R @ M
    within = np.divide(
        np.diag(total) - size, size * (size - 1), out=np.full(len(size), np.nan), where=size > 1
    )
    borrowed = np.where(np.isnan(within)[:, None], within[None, :], within[:, None])
    scale = np.sqrt(np.maximum(borrowed * borrowed.T, _LEAST_RELATED**2))
    related = np.abs(total) / np.outer(size, size) / np.where(np.isnan(scale), 1.0, scale)
    i, j = np.nonzero(np.triu(related > SAME_TRAIT, 1))
    order = np.argsort(-related[i, j], kind="stable")
    return list(zip(i[order].tolist(), j[order].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Group:
    """Items of one trait: the majority, those that run against it, and whether the trait has two ends."""

    most: Indices  # positions of the majority
    against: Indices
    two_ends: bool  # whether a component was split about evenly before groups were joined


def groups_of(answers: Answers, sets: Iterable[Indices]) -> list[Group]:
    """Group the items of each set by what they measure."""
    groups = []
    for chosen in sets:
        items = chosen[answers.usable[chosen]]
        if len(items) < 2:
            continue
        part = answers.part(items)
        first, sign = main_component(part.R, part.n)
        first, sign = reassign(part.R, first, sign)
        group, sign = join_groups(part, first, sign)
        for name in np.unique(group):
            inside = group == name
            halves = [np.flatnonzero(inside & (sign == side)) for side in (1.0, -1.0)]
            most, against = sorted(halves, key=lambda half: (-len(half), half[:1].tolist()))
            parts = [sign[inside & (first == each)] for each in np.unique(first[inside])]
            split = any(even_split((part > 0).sum(), (part < 0).sum()) for part in parts)
            groups.append(Group(items[most], items[against], split))
    return groups


def even_split(a: int, b: int) -> bool:
    """Whether items are split so evenly, with several on each side, that neither is the exception."""
    small, large = sorted((int(a), int(b)))
    return small >= 3 and 2 * small > large


# Which items look reversed, how strongly, and how certain that is.

FEWEST_PARTICIPANTS = 30
MOST_PARTICIPANTS = 4000  # more add little, and a check must be quick
MOST_ITEMS = 1000  # all pairs are compared repeatedly
MOST_REDRAWN = 100_000  # answers per resample, but at least 500 participants
RESAMPLES = 20
SUPPORTED = 0.5  # share of resamples below which one in five such items was not reversed; docs/direction.md
CERTAINLY = 3.3  # standard errors by which an item must run against the others
LEAST_CORRELATION = 0.1
LEAST_OPPOSED = {True: 0.3, False: 0.4}  # disattenuated correlation, of a single item (True) or several
OPPOSED_SURE = 1.645
SKEWED = 0.5
MOST_SKEWED = 0.75  # share of the other items that must be skewed to the same end
_SEED = 12


@dataclass(frozen=True)
class Suspect:
    """An item that runs against the others of its group."""

    item: str
    wording: str  # the question as participants read it
    correlation: float  # with the mean of the items it runs against; negative
    low: float  # 95 % interval of the correlation
    high: float
    against: tuple[str, ...]  # the items it runs against, the most strongly opposed first
    scale: str = ""  # the subscale it was compared within, if any
    reversed: bool = False  # declared reversed, and runs against the others all the same
    found_again: float = 1.0  # share of resamples in which it was found again

    @property
    def supported(self) -> bool:
        """Whether most resamples find it again, so that it is very likely reversed."""
        return self.found_again >= SUPPORTED

    @property
    def strength(self) -> str:
        """How strongly it runs against the others, and how certain that is, in words."""
        return (
            f"correlation {signed(self.correlation)}, 95 % interval {signed(self.low)} to "
            f"{signed(self.high)}, found again in {100 * self.found_again:.0f} % of resamples"
        )


@dataclass(frozen=True)
class Ends:
    """Two sets of items that run against each other, neither of which is the exception."""

    one: tuple[str, ...]
    other: tuple[str, ...]
    correlation: float  # between the means of both; negative

    @property
    def sentence(self) -> str:
        """The finding in words."""
        one, other = counted(len(self.one), "item"), counted(len(self.other), "other")
        return (
            f"{one} ({listed(self.one)}) and {other} ({listed(self.other)}) form two opposite ends "
            f"(correlation {signed(self.correlation)}); the answers cannot show which end is reversed."
        )


@dataclass(frozen=True)
class Keying:
    """Which items run against the others, and which traits have two ends."""

    suspects: tuple[Suspect, ...] = ()  # in the order of the questionnaire
    ends: tuple[Ends, ...] = ()
    compared: bool = True  # False for more than `MOST_ITEMS` items

    @property
    def looks_reversed(self) -> tuple[str, ...]:
        """Items that look reversed and are not declared so."""
        return tuple(suspect.item for suspect in self.suspects if not suspect.reversed)


def find_reversed(draft: Draft, *, resamples: int = RESAMPLES) -> Keying:
    """Find the items that run against the others.

    Items are compared as the codebook keys them: one declared reversed is reported only if it still runs
    against the others.
    """
    items = draft.items
    if len(items) > MOST_ITEMS:
        return Keying(compared=False)
    answers = Answers.of(_keyed(draft))
    sets = _sets(items)
    opposed, ends = _decide(answers, sets)
    again = _found_again(answers, sets, resamples) if opposed else np.zeros(len(items))
    suspects = (
        Suspect(
            items[j].name,
            items[j].wording,
            *_interval(answers, j, against),
            tuple(items[i].name for i in against[np.argsort(answers.R[j, against], kind="stable")]),
            scale=items[j].subscale if next(scaled for members, scaled in sets if j in members) else "",
            reversed=items[j].reverse,
            found_again=float(again[j]),
        )
        for j, against in sorted(opposed.items())
    )
    names = np.array([item.name for item in items], dtype=object)
    return Keying(
        tuple(suspects),
        tuple(Ends(tuple(names[a]), tuple(names[b]), _between(answers, a, b)) for a, b in ends),
    )


def signed(value: float) -> str:
    """A correlation with two decimals and a proper minus sign."""
    return f"{value:.2f}".replace("-", "−")


def _keyed(draft: Draft) -> Floats:
    """Answers of at most `MOST_PARTICIPANTS`, evenly spaced in the file, keyed by the codebook."""
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
    """Sets of items to compare with each other, and whether each is a subscale."""
    scales: dict[str, list[int]] = {}
    for j, item in enumerate(items):
        scales.setdefault(item.subscale, []).append(j)
    rest = scales.pop("", [])
    for name in [name for name, members in scales.items() if len(members) < 3]:
        rest += scales.pop(name)
    # A single subscale for all items is the questionnaire itself.
    named = [(np.array(members, dtype=np.intp), len(scales) > 1) for members in scales.values()]
    return [*named, (np.array(sorted(rest), dtype=np.intp), False)]


def _decide(
    answers: Answers, sets: list[tuple[Indices, bool]]
) -> tuple[dict[int, Indices], list[tuple[Indices, Indices]]]:
    """Return each suspect with the items it runs against, and the pairs of ends."""
    suspects: dict[int, Indices] = {}
    ends: list[tuple[Indices, Indices]] = []
    for members, is_scale in sets:
        for group in groups_of(answers, [members]):
            most, against = group.most, _surely(answers, group)
            if not len(against) or not _of_one_trait(answers, most, against):
                continue
            # The author of a subscale meant one direction, so there the larger side decides. Without one, two
            # items do not outvote a third, as others of their group may be elsewhere, and several items at
            # each end may be a trait with two ends.
            undecided = len(most) == len(against) or (
                not is_scale and (len(most) < 3 or group.two_ends or even_split(len(most), len(against)))
            )
            if undecided:
                most, against, undecided = _by_skew(answers, most, against)
            if undecided:
                ends.append((most, against))
            else:
                suspects |= dict.fromkeys(against.tolist(), most)
    return suspects, ends


def _surely(answers: Answers, group: Group) -> Indices:
    """Items that run against the majority neither by chance nor negligibly."""
    surely = []
    for j in group.against.tolist():
        r, error = _with_mean(answers, j, group.most)
        if r < -max(LEAST_CORRELATION, CERTAINLY * error):
            surely.append(j)
    return np.array(surely, dtype=np.intp)


def _of_one_trait(answers: Answers, most: Indices, against: Indices) -> bool:
    """Whether both sides are one trait rather than two mildly opposed ones."""
    related, error = answers.relation(most, against, np.ones(len(answers.R)))
    return -related - OPPOSED_SURE * error > LEAST_OPPOSED[len(against) == 1]


def _by_skew(answers: Answers, a: Indices, b: Indices) -> tuple[Indices, Indices, bool]:
    """Decide by skewness: the side skewed opposite to most other items is reversed.

    On symptom scales most answers are low, and those to reversed items high.
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


def _between(answers: Answers, a: Indices, b: Indices) -> float:
    """The correlation between the means of two sets."""
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
        times[list(_decide(drawn, sets)[0])] += 1
    return times / max(resamples, 1)


# Reversing items that the user names or that run against the others.

AUTO = "auto"
MOST_NAMED = 50
REVERSED = "reversed"  # the code of notes on reversed items


@dataclass(frozen=True)
class Directions:
    """Which items of a study are reversed and why, and which look reversed but are not."""

    declared: tuple[str, ...] = ()  # reversed by the codebook or the user
    found: tuple[str, ...] = ()  # reversed because they run against the others
    unattended: tuple[str, ...] = ()  # run against the others and are not reversed

    @classmethod
    def of(cls, draft: Draft, keying: Keying | None = None) -> Directions:
        """Return the directions of a questionnaire's items; pass `keying` if known."""
        keying = find_reversed(draft, resamples=0) if keying is None else keying
        found = tuple(item.name for item in draft.items if item.name in set(draft.found_reversed))
        declared = tuple(item.name for item in draft.items if item.reverse and item.name not in set(found))
        return cls(declared, found, keying.looks_reversed)

    @property
    def warning(self) -> InputWarning | None:
        """The warning at the head of a report; None if there is nothing to warn about."""
        if self.unattended:
            one = len(self.unattended) == 1
            state = "looks reversed but is used as it is" if one else "look reversed but are used as they are"
            advice = (
                f"Add {{reverse=}} to reverse {'it' if one else 'them'}, name {'it' if one else 'those'} "
                f"with {{reverse}}, or declare {_whose(self.unattended)} direction in a codebook."
            )
            lost = "it is lost to its factor" if one else "they are lost to their factors"
            typed = f"{advice} icqf check shows how sure this is; icqf codebook --suggest writes a codebook."
            return InputWarning(
                f"{counted(len(self.unattended), 'item')} {state}: "
                f"{listed(self.unattended, most=MOST_NAMED)}. Loadings cannot be negative, so {lost}.",
                code="look-reversed",
                remedy=Advice(advice, reverse=AUTO, typed=Advice(typed, reverse=AUTO)),
                items=self.unattended,
            )
        if self.found:
            were, runs = ("was", "it runs") if len(self.found) == 1 else ("were", "they run")
            return InputWarning(
                f"{counted(len(self.found), 'item')} {were} reversed because {runs} against the others: "
                f"{listed(self.found, most=MOST_NAMED)}. Confirm this by the wording.",
                code="found-reversed",
                items=self.found,
            )
        return None

    @property
    def sentence(self) -> str:
        """The warning as worded in a report; empty if there is none."""
        if self.warning is None:
            return ""
        them = "it" if len(self.unattended) == 1 else "them"
        remedy = (
            f"To reverse {them}, fit again with --reverse auto or with a codebook that declares "
            f"{_whose(self.unattended)} direction."
        )
        return f"{self.warning.message} {remedy}" if self.unattended else self.warning.message

    def to_dict(self) -> dict[str, Any]:
        """Return the directions as plain values."""
        return {
            "reversed_as_declared": list(self.declared),
            "reversed_because_they_run_against_the_others": list(self.found),
            "look_reversed_but_are_not": list(self.unattended),
        }


def with_reversed(draft: Draft, wanted: Sequence[str]) -> Draft:
    """Reverse the items named by name or glob, and with ``"auto"`` those that then run against the others."""
    named = [name for name in wanted if name != AUTO]
    if named:
        names = match_names(named, [item.name for item in draft.items], draft.source)
        note = Note(REVERSED, f"Reversed at your request: {listed(names, most=MOST_NAMED)}.")
        draft = _reversing(draft, names, note)
        draft = replace(draft, asked_reversed=tuple(names))
    if AUTO in wanted:
        if len(draft.items) > MOST_ITEMS:
            raise InputError(
                f"{draft.source}: directions can be compared for up to {MOST_ITEMS} items; there are "
                f"{len(draft.items)}.",
                code="too-many-items",
                remedy=Advice("Name the items to reverse with {reverse}, or declare them with {codebook}."),
            )
        found = find_reversed(draft, resamples=0).looks_reversed
        note = Note("none-reversed", "No item clearly runs against the others; none was reversed.")
        if found:
            text = f"Reversed because they run against the others: {listed(found, most=MOST_NAMED)}."
            note = Note(REVERSED, text)
        draft = replace(_reversing(draft, found, note), found_reversed=found)
    return draft


def remark_on(suspect: Suspect) -> str:
    """Return the codebook's remark on an item that runs against the others."""
    return f"Please confirm: runs against {listed(suspect.against, most=3)} ({suspect.strength})."


def remarks_on_ends(ends: Ends) -> dict[str, str]:
    """Return the codebook's remarks on the items of two opposite ends, by item."""
    return {
        name: f"One of two opposite ends, against {listed(other, most=3)}; reverse one end if both belong to "
        "one scale."
        for own, other in ((ends.one, ends.other), (ends.other, ends.one))
        for name in own
    }


def _whose(names: Sequence[str]) -> str:
    return "its" if len(names) == 1 else "their"


def _reversing(draft: Draft, names: Sequence[str], note: str) -> Draft:
    items = tuple(replace(item, reverse=True) if item.name in set(names) else item for item in draft.items)
    return replace(draft, items=items, notes=(*draft.notes, note))
