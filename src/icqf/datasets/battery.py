"""A simulated battery: instruments whose factors are made of a few meta-factors, with the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from icqf.data.battery import Battery
from icqf.data.questionnaire import Item, Questionnaire
from icqf.errors import InputError


@dataclass(frozen=True, eq=False)
class SimulatedBattery:
    """A simulated battery, and what it was made from.

    Attributes
    ----------
    battery : Battery
        Answers as they would be collected: whole numbers, and whole instruments missing.
    meta_scores : DataFrame (n, K)
        How much of each meta-factor a participant has.
    factor_loadings : DataFrame (factors, K)
        What each meta-factor adds to each instrument's factors; rows are (instrument, factor).
    item_loadings : DataFrame (items, K)
        What each meta-factor adds to each item, through the factors; rows are (instrument, item).

    Examples
    --------
    >>> from icqf.datasets import make_battery
    >>> made = make_battery(n=50, random_state=0)
    >>> made.item_loadings.shape
    (72, 3)
    """

    battery: Battery
    meta_scores: pd.DataFrame
    factor_loadings: pd.DataFrame
    item_loadings: pd.DataFrame


def make_battery(
    n: int = 400,
    *,
    n_items: Sequence[int] = (12, 12, 12, 12, 12, 12),
    n_factors: int = 3,
    n_meta: int = 3,
    absent: float = 0.4,
    own: float = 0.3,
    noise: float = 0.15,
    highest: Sequence[int] = (2, 3, 4, 1),
    random_state: int = 0,
) -> SimulatedBattery:
    """Simulate a battery with known meta-factors, in which many participants lack whole instruments.

    Every meta-factor is present in half of the participants, with scores U(0.2, 1). Every factor of an
    instrument follows one meta-factor (loading U(0.6, 0.9)) and, with a chance of one in five, a second one
    (U(0.2, 0.4)); a part of its scores is its own. Every item follows one factor of its instrument (loading
    U(0.5, 1) of its range) and, with a chance of one in five, another. The answers are rounded to whole
    numbers after normal noise.

    Parameters
    ----------
    n : int
        Participants.
    n_items : sequence of int
        Items of each instrument.
    n_factors, n_meta : int
        Factors of each instrument, and meta-factors behind all of them.
    absent : float
        Share of participants who lack an instrument, drawn for each instrument anew. Participants who would
        have none keep one.
    own : float
        Largest part of a factor's score that no meta-factor explains.
    noise : float
        Standard deviation of the noise, as a share of the item's range.
    highest : sequence of int
        Highest answers of the instruments, in turn; the lowest is 0.
    random_state : int

    Examples
    --------
    >>> from icqf.datasets import make_battery
    >>> made = make_battery(n=100, n_items=(8, 9), n_factors=2, n_meta=2, random_state=0)
    >>> [(name, each.n_items) for name, each in made.battery.instruments.items()]
    [('A', 8), ('B', 9)]
    """
    if not 0 <= absent < 1:
        raise InputError(f"absent must be a share from 0 to below 1, not {absent!r}.")
    if not 1 <= len(n_items) <= 26:
        raise InputError(f"n_items must name 1 to 26 instruments, not {len(n_items)}.")
    rng = np.random.default_rng(random_state)
    names = [chr(ord("A") + at) for at in range(len(n_items))]
    metas = [f"meta{r}" for r in range(1, n_meta + 1)]
    ids = pd.Index([f"P{i:05d}" for i in range(1, n + 1)], name="id")
    U = rng.uniform(0.2, 1.0, (n, n_meta)) * (rng.random((n, n_meta)) < 0.5)
    given = rng.random((n, len(names))) >= absent
    given[np.flatnonzero(~given.any(axis=1)), rng.integers(0, len(names), (~given.any(axis=1)).sum())] = True
    instruments, factor_tables, item_tables = {}, [], []
    for at, (name, m) in enumerate(zip(names, n_items, strict=True)):
        V = _loadings(rng, n_factors, n_meta, (0.6, 0.9), offset=at * n_factors)
        W = np.clip(U @ V.T + own * rng.random((n, n_factors)) * (rng.random((n, n_factors)) < 0.5), 0, 1)
        top = highest[at % len(highest)]
        Q = top * _loadings(rng, m, n_factors, (0.5, 1.0))
        answers = np.clip(np.rint(W @ Q.T + noise * top * rng.standard_normal((n, m))), 0, top)
        items = tuple(Item(f"{name.lower()}{j:02d}", min=0.0, max=float(top)) for j in range(1, m + 1))
        table = pd.DataFrame(answers, index=ids, columns=[item.name for item in items])[given[:, at]]
        instruments[name] = Questionnaire(table, items, source=name)
        factors = [f"factor{r}" for r in range(1, n_factors + 1)]
        factor_tables.append(pd.DataFrame(V, index=_index(name, "factor", factors), columns=metas))
        item_tables.append(
            pd.DataFrame(Q @ V, index=_index(name, "item", list(table.columns)), columns=metas)
        )
    return SimulatedBattery(
        Battery(instruments),
        pd.DataFrame(U, index=ids, columns=metas),
        pd.concat(factor_tables),
        pd.concat(item_tables),
    )


def _loadings(
    rng: np.random.Generator, rows: int, columns: int, main: tuple[float, float], *, offset: int = 0
) -> np.ndarray:
    """Loadings (rows, columns): each row on one column in turn, and one row in five on another as well."""
    found = np.zeros((rows, columns))
    own = (np.arange(rows) + offset) % columns
    found[np.arange(rows), own] = rng.uniform(*main, rows)
    crossing = np.flatnonzero(rng.random(rows) < 0.2) if columns > 1 else np.empty(0, dtype=int)
    other = (own[crossing] + rng.integers(1, max(columns, 2), len(crossing))) % columns
    found[crossing, other] = rng.uniform(0.2, 0.4, len(crossing))
    return found


def _index(instrument: str, kind: str, names: Sequence[str]) -> pd.MultiIndex:
    return pd.MultiIndex.from_product([[instrument], list(names)], names=["instrument", kind])
