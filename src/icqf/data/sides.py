"""Groups of items that belong together, each with the side of an item: with most of its group or against it.

Arrays in, arrays out. Items are grouped by their main rotated component, whatever its sign; groups that
measure the same or its opposite are then joined. Nothing here knows which side is meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Tuned on simulated studies only; benchmarks/bench_keying.py reports on others. See docs/direction.md.
SAME_TRAIT = (
    0.4  # groups are one trait when their correlation, corrected for unreliability, surely exceeds it
)
SAME_TRAIT_SURE = 2.33  # standard errors by which it must
FEWEST_TOGETHER = 10  # participants who answered both of two items, for their correlation to count
_LEAST_RELATED = 0.02  # a mean correlation of items below this tells nothing of their trait
_REASSIGNMENTS = 10
_ROTATIONS = 50


@dataclass(frozen=True, eq=False)
class Answers:
    """Standardized answers, 0 where missing, and what follows from them.

    Parameters
    ----------
    Z : ndarray of shape (n_participants, n_items)
        Answers with mean 0 and standard deviation 1 by item; 0 where missing, and for a constant item.
    seen : ndarray of shape (n_participants, n_items)
        1 where an answer was given, else 0.
    R : ndarray of shape (n_items, n_items)
        Correlations over the participants who answered both; 0 where these are too few.
    n : float
        Participants behind a typical correlation.
    """

    Z: Floats
    seen: Floats
    R: Floats
    n: float

    @classmethod
    def of(cls, answers: Floats) -> Answers:
        """Standardize answers; NaN is a missing one."""
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
        """Return the answers of some participants, drawn once or more often."""
        return Answers.of(np.where(self.seen[rows] > 0, self.Z[rows], np.nan))

    def part(self, items: Indices) -> Answers:
        """Return the answers to some items."""
        if len(items) == len(self.R):
            return self
        return Answers(self.Z[:, items], self.seen[:, items], self.R[np.ix_(items, items)], self.n)

    def mean_of(self, items: Indices, signs: Floats) -> tuple[Floats, Floats]:
        """Return the participants' signed means over items, and 1 where there is one."""
        count = self.seen[:, items].sum(axis=1)
        total = self.Z[:, items] @ signs[items]
        return np.divide(total, count, out=np.zeros_like(total), where=count > 0), (count > 0).astype(float)

    def relation(self, a: Indices, b: Indices, signs: Floats) -> tuple[float, float]:
        """Return the correlation of two sets of items corrected for unreliability, and its standard error.

        It is the mean correlation across the sets by the geometric mean of the mean correlations within
        them; a single item borrows the latter from the other set.
        """
        S = self.R * np.outer(signs, signs)
        within = [_within(S[np.ix_(side, side)]) for side in (a, b)]
        known = [value for value in within if value is not None]
        (x, seen_x), (y, seen_y) = self.mean_of(a, signs), self.mean_of(b, signs)
        raw, error = correlation(x, y, seen_x * seen_y)
        if not known:
            return raw, error
        if min(known) <= _LEAST_RELATED or raw == 0:
            return 0.0, 1.0
        corrected = float(S[np.ix_(a, b)].mean() / np.sqrt(known[0] * known[-1]))
        return corrected, abs(error * corrected / raw)


def _within(S: Floats) -> float | None:
    """Mean correlation of different items of a set."""
    k = len(S)
    return None if k < 2 else float((S.sum() - np.trace(S)) / (k * (k - 1)))


def correlation(x: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    """Return a weighted correlation and its standard error.

    The error is that of the infinitesimal jackknife, which needs no normal distribution: the root of the
    summed squares of what each participant adds to the correlation.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(100.0) % 7
    >>> r, error = correlation(x, -x, np.ones(100))
    >>> round(r, 6), round(error, 6)
    (-1.0, 0.0)
    """
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
    """Return how many eigenvalues, highest first, exceed those of chance by the empirical Kaiser criterion.

    At least 1.

    Examples
    --------
    >>> import numpy as np
    >>> number_of_factors(np.array([2.5, 2.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]), n=500)
    2
    """
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
    """Rotate loadings towards simple structure, items weighted alike."""
    length = np.linalg.norm(loadings, axis=1, keepdims=True)
    A = np.divide(loadings, length, out=np.zeros_like(loadings), where=length > 0)
    turn, reached = np.eye(loadings.shape[1]), 0.0
    for _ in range(_ROTATIONS):
        B = A @ turn
        U, s, V = np.linalg.svd(A.T @ (B * (B * B - (B * B).mean(axis=0))))
        turn = U @ V
        if s.sum() < reached * (1 + 1e-4):  # enough to see which component is the main one
            break
        reached = s.sum()
    return loadings @ turn


def reassigned(R: Floats, group: Indices, sign: Floats) -> tuple[Indices, Floats]:
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


def joined(answers: Answers, group: Indices, sign: Floats) -> tuple[Indices, Floats]:
    """Join groups that surely measure one trait or its opposite, the most alike first."""
    group, sign = group.copy(), sign.copy()
    while True:
        members = [np.flatnonzero(group == name) for name in np.unique(group)]
        pairs = _alike(answers.R, members, sign)
        for i, j in pairs:
            related, error = answers.relation(members[i], members[j], sign)
            if abs(related) - SAME_TRAIT_SURE * error > SAME_TRAIT:
                sign[members[j]] *= np.sign(related)
                group[members[j]] = group[members[i][0]]
                break
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
    """Items of one trait: those that agree with most, those against them, and whether the trait has two ends.

    Parameters
    ----------
    most, against : ndarray of int
        Positions of the items; `against` is never the larger.
    two_ends : bool
        Whether items of a single component, before groups were joined, were split about evenly.
    """

    most: Indices
    against: Indices
    two_ends: bool


def groups_of(answers: Answers, sets: Iterable[Indices]) -> list[Group]:
    """Group the items of each set by what they measure.

    Parameters
    ----------
    answers : Answers
    sets : iterable of ndarray of int
        Items that may belong together, such as those of a subscale. Those that do not vary are left out.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> trait = rng.normal(size=(300, 1))
    >>> X = np.array([1, 1, -1, 1]) * trait + rng.normal(size=(300, 4))
    >>> (group,) = groups_of(Answers.of(X), [np.arange(4)])
    >>> group.most.tolist(), group.against.tolist()
    ([0, 1, 3], [2])
    """
    found = []
    for chosen in sets:
        items = chosen[answers.usable[chosen]]
        if len(items) < 2:
            continue
        part = answers.part(items)
        first, sign = main_component(part.R, part.n)
        first, sign = reassigned(part.R, first, sign)
        group, sign = joined(part, first, sign)
        for name in np.unique(group):
            inside = group == name
            halves = [np.flatnonzero(inside & (sign == side)) for side in (1.0, -1.0)]
            most, against = sorted(halves, key=lambda half: (-len(half), half[:1].tolist()))
            parts = [sign[inside & (first == each)] for each in np.unique(first[inside])]
            split = any(even_split((part > 0).sum(), (part < 0).sum()) for part in parts)
            found.append(Group(items[most], items[against], split))
    return found


def even_split(a: int, b: int) -> bool:
    """Whether items are split so evenly, with several on each side, that neither side is the exception.

    Examples
    --------
    >>> even_split(16, 4), even_split(3, 2), even_split(4, 3), even_split(1, 1)
    (False, False, True, False)
    """
    small, large = sorted((int(a), int(b)))
    return small >= 3 and 2 * small > large
