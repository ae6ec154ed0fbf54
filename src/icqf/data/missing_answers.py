"""Who leaves answers out, and whether that depends on age, sex or other confounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.answers import describe_confound
from icqf.data.disclosure import MANY_CATEGORIES, SMALLEST_CATEGORY
from icqf.errors import short, shown_p

Array = NDArray[Any]
FEWEST = 5  # participants who left something out, below which nothing is said
ALPHA = 0.05
N_PERMUTATIONS = 999
_AT_ONCE = 111  # permutations
_MANY = 5000  # participants from which on the χ² limit replaces permutations
_FAMILY = 4  # mean size of groups up to which they are families, not sites
_COLUMNS = ["confound", "n", "correlation", "shares", "p", "p_adjusted"]


def count_left_out(answered: Array, asked: Array | None = None) -> tuple[int, int]:
    """Answers left out, and all that were asked for, of participants who answered something.

    Items that were not shown do not count. Parameters are those of `share_left_out`.

    Examples
    --------
    >>> count_left_out(np.array([[True, True], [True, False], [False, False]]))
    (1, 4)
    """
    some = answered.any(axis=1)
    n_asked = answered.shape[1] * int(some.sum()) if asked is None else int((answered | asked)[some].sum())
    return n_asked - int(np.count_nonzero(answered)), n_asked


def share_left_out(answered: Array, asked: Array | None = None) -> Array:
    """Share of the items asked (n, m) that each participant left out; NaN for those who answered nothing.

    Examples
    --------
    >>> share_left_out(np.array([[True, True], [True, False], [False, False]])).tolist()
    [0.0, 0.5, nan]
    """
    shown = answered | asked if asked is not None else np.ones_like(answered)
    given = answered.sum(axis=1)
    return np.where(given > 0, 1 - given / np.maximum(shown.sum(axis=1), 1), np.nan)


def independent_rows(units: Array | None, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Participants who may change places, and the stratum within which each may.

    Of families (groups of up to four on average), one member each is drawn. Members of larger groups, such as
    sites, change places within their group.
    """
    if units is None:
        return np.arange(n), np.zeros(n, dtype=np.intp)
    _, unit = np.unique(units, return_inverse=True)
    if len(unit) > _FAMILY * (unit.max() + 1):
        return np.arange(n), unit
    order = rng.permutation(n)
    rows = np.sort(order[np.unique(unit[order], return_index=True)[1]])
    return rows, np.zeros(len(rows), dtype=np.intp)


def confound_tests(
    share: Array, confounds: pd.DataFrame, *, units: Array | None = None, random_state: int = 0
) -> pd.DataFrame:
    """Test whether the share of answers left out depends on each confound.

    Shares (n,), NaN for participants to ignore, are ranked and compared with the ranks of a number (as in
    Spearman's correlation) or between categories (as in the Kruskal-Wallis test). p-values come from 999
    permutations of the participants; from 5 000 participants on, if there are no sites (`units`), from the χ²
    distribution. `p_adjusted` is the probability that any of the confounds would come out as clearly if
    leaving out depended on none of them; `shares` are by category, without those of fewer than 20 members.
    The table is empty where fewer than five participants left something out, or everybody as much.

    Examples
    --------
    >>> share = np.repeat([0.0, 0.1], [60, 40])
    >>> table = pd.DataFrame({"age": np.arange(100), "sex": ["f", "m"] * 50})
    >>> confound_tests(share, table)[["confound", "p_adjusted"]].round(2).values.tolist()
    [['age', 0.0], ['sex', 1.0]]
    """
    from scipy.special import chdtrc  # the tail of chi-squared

    rng = np.random.default_rng([random_state, 7])
    known = np.flatnonzero(~np.isnan(share))
    rows, stratum = independent_rows(None if units is None else units[known], len(known), rng)
    rows = known[rows]
    of = share[rows]
    tested = [name for name in confounds if _testable(confounds[name].iloc[rows])]
    if (of > 0).sum() < FEWEST or np.ptp(of) == 0 or not tested:
        return pd.DataFrame(columns=_COLUMNS)
    ranks = _within(pd.Series(of).rank().to_numpy(), stratum)
    designs = [_design(confounds[name].iloc[rows], stratum) for name in tested]
    observed = _statistics(designs, ranks[None])[0]
    freedom = np.array([design.shape[1] - (design.shape[1] > 1) for design in designs])
    least = chdtrc(freedom, observed)
    if len(rows) >= _MANY and not stratum.any():
        p, adjusted = least, _holm(least)
    else:
        drawn = np.concatenate(
            [_permuted(designs, ranks, stratum, rng) for _ in range(N_PERMUTATIONS // _AT_ONCE)]
        )
        tails = chdtrc(freedom, drawn)
        p = (1 + (tails <= least + 1e-12).sum(axis=0)) / (1 + N_PERMUTATIONS)
        adjusted = (1 + (tails.min(axis=1)[:, None] <= least + 1e-12).sum(axis=0)) / (1 + N_PERMUTATIONS)
    table = []
    for name, design, own, joint in zip(tested, designs, p, adjusted, strict=True):
        values = confounds[name].iloc[rows]
        single = design.shape[1] == 1
        length = np.sqrt((design**2).sum() * (ranks**2).sum())
        correlation = float(design[:, 0] @ ranks / length) if single else np.nan
        shares = () if single else _shares(of, values)
        row = (str(name), int(values.notna().sum()), correlation, shares, float(own), float(joint))
        table.append(row)
    return pd.DataFrame(table, columns=_COLUMNS)


def _testable(values: pd.Series) -> bool:
    return values.nunique() > 1 and (_is_number(values) or values.nunique() <= MANY_CATEGORIES)


def _is_number(values: pd.Series) -> bool:
    return describe_confound(values).name != "n"


def _within(ranks: Array, stratum: Array) -> Array:
    """Ranks as differences from the mean of their stratum."""
    return ranks - (np.bincount(stratum, ranks) / np.bincount(stratum))[stratum]


def _design(values: pd.Series, stratum: Array) -> Array:
    """Centred ranks (n, 1), or one scaled column per category; 0 where the confound is missing."""
    known = values.notna().to_numpy()
    if _is_number(values):
        column = np.zeros(len(values))
        column[known] = values[known].astype(float).rank().to_numpy()
        column[known] = _within(column[known], np.unique(stratum[known], return_inverse=True)[1])
        return column[:, None]
    codes, _ = pd.factorize(values.map(str, na_action="ignore"), sort=True)
    columns = (codes[:, None] == np.arange(codes.max() + 1)).astype(float)
    return columns / np.sqrt(columns.sum(axis=0))


def _statistics(designs: list[Array], ranks: Array) -> Array:
    """By permutation (b, n) and design, a statistic that is about χ² where ranks do not depend on it."""
    sums = [((ranks @ design) ** 2 / (design**2).sum(axis=0)).sum(axis=1) for design in designs]
    return np.stack(sums, axis=1) * (ranks.shape[1] - 1) / (ranks[0] @ ranks[0])


def _permuted(designs: list[Array], ranks: Array, stratum: Array, rng: np.random.Generator) -> Array:
    """Statistics of some permutations of the ranks within strata."""
    drawn = np.empty((_AT_ONCE, len(ranks)))
    source = np.argsort(stratum + rng.random(drawn.shape), axis=1)
    drawn[:, np.argsort(stratum, kind="stable")] = ranks[source]
    return _statistics(designs, drawn)


def _holm(p: Array) -> Array:
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1)
    return adjusted


def _shares(share: Array, values: pd.Series) -> tuple[tuple[str, float], ...]:
    known = values.notna().to_numpy()
    grouped = pd.Series(share[known]).groupby(values[known].astype(str).to_numpy())
    table = grouped.agg(["mean", "size"])
    large = table[table["size"] >= SMALLEST_CATEGORY]
    return tuple((str(name), float(mean)) for name, mean in large["mean"].items())


def confound_sentence(tests: pd.DataFrame, *, grouped: bool = False, weighted: bool = False) -> str:
    """Say whether leaving out depends on the confounds tested, and by which test.

    Survey weights play no part: the test is about these participants.

    Examples
    --------
    >>> share = np.repeat([0.0, 0.1], [60, 40])
    >>> confound_sentence(confound_tests(share, pd.DataFrame({"age": np.arange(100)}))).split(": ")[0]
    'Leaving answers out depends on age'
    """
    adjusted = f", adjusted for {len(tests)} confounds" if len(tests) > 1 else ""
    unit = ", with one member of each family, or within sites" if grouped else ""
    without = ", without survey weights" if weighted else ""
    how = f"Tested by permutation of the ranks of each participant's share{adjusted}{unit}{without}."
    clear = tests[tests["p_adjusted"] <= ALPHA]
    if not len(clear):
        names = " or ".join(map(short, tests["confound"]))
        p = shown_p(tests["p_adjusted"].min(), equals="= ")
        return f"No sign that leaving answers out depends on {names} (p {p}). {how}"
    names = " and ".join(map(short, clear["confound"]))
    return f"Leaving answers out depends on {names}: {_details(clear)}. {how}"


def _details(clear: pd.DataFrame) -> str:
    details = []
    for row in clear.to_dict("records"):
        name, shares, correlation = row["confound"], row["shares"], row["correlation"]
        p = f"p {shown_p(row['p_adjusted'], equals='= ')}"
        if shares:
            parts = ", ".join(f"{100 * share:.1f} % of {label}" for label, share in shares)
            details.append(f"answers left out by {name}: {parts} ({p})")
        elif np.isnan(correlation):
            details.append(f"shares differ between categories of {name} ({p})")
        else:
            more, sign = ("more", "") if correlation > 0 else ("fewer", "−")
            size = f"{sign}{abs(correlation):.2f}"
            details.append(f"participants with higher {name} left out {more} (rank correlation {size}, {p})")
    return "; ".join(details)
