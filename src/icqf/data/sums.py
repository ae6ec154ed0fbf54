"""Total and subscale scores: columns that are sums or means of other columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from icqf.data.names import stem
from icqf.data.spreads import Spread

Array = NDArray[np.float64]
MOST_ROWS = 2000  # that are looked at
SPARE_ROWS = 10  # beyond twice the number of columns that may be added
FEWEST_VALUES = 4  # of a sum; fewer are matched by chance
ROUNDED = 0.006  # how far a mean may be off that was written with two decimals


def sums_among(
    columns: Mapping[str, Array], items: Sequence[str], spreads: Mapping[str, Spread] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the columns that are sums, differences or means of at least two items, and these items.

    Reversed items may be among them: their weights are then negative and a constant is added. Only rows
    without gaps are looked at, as programs differ in what they make of gaps. A column is looked at only if it
    is wider than each of the items it may be a sum of, or holds fractions, as a mean does.

    Parameters
    ----------
    columns : mapping of str to array (n,)
        Numbers with NaN for gaps.
    items : sequence of str
        Those of the columns that may be added.
    spreads : mapping of str to Spread, optional
        The different numbers in each column, where they are counted already.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b, c = rng.integers(0, 4, (3, 40)).astype(float)
    >>> sums_among({"a": a, "b": b, "c": c, "total": a + b + 3 - c, "other": a * b}, ["a", "b", "c"])
    {'total': ('a', 'b', 'c')}
    """
    known = {name: (spreads or {}).get(name) or Spread.of(values) for name, values in columns.items()}
    widths = {name: float(np.ptp(spread.values)) for name, spread in known.items()}
    fractions = {
        name: bool((spread.values != np.rint(spread.values)).any()) for name, spread in known.items()
    }
    left = [name for name in items if not fractions[name]]
    found: dict[str, tuple[str, ...]] = {}
    # Narrow ones first: a subscale's sum is then no longer among the items when the total is looked at.
    suspects = sorted(columns, key=lambda name: widths[name])
    for block in _blocks(left, widths):
        asked = [
            name
            for name in suspects
            if name not in found
            and name not in block
            and (fractions[name] or widths[name] > max(widths[item] for item in block))
        ]
        found |= _sums(columns, [item for item in block if item not in found], asked, fractions)
    return found


def _blocks(items: Sequence[str], widths: Mapping[str, float]) -> Iterator[list[str]]:
    """Items that may be added: with names that begin alike, then of equal width, then up to each width."""
    seen: set[tuple[str, ...]] = set()
    by_stem: dict[str, list[str]] = {}
    by_width: dict[float, list[str]] = {}
    for name in items:
        by_stem.setdefault(stem(name), []).append(name)
        by_width.setdefault(widths[name], []).append(name)
    wider = [[name for name in items if widths[name] <= width] for width in sorted(by_width)]
    for block in (*by_stem.values(), *(by_width[width] for width in sorted(by_width)), *wider):
        if len(block) > 1 and tuple(block) not in seen:
            seen.add(tuple(block))
            yield block


def _sums(
    columns: Mapping[str, Array], block: Sequence[str], asked: Sequence[str], fractions: Mapping[str, bool]
) -> dict[str, tuple[str, ...]]:
    if len(block) < 2 or not asked:
        return {}
    parts, full = _without_gaps([columns[name] for name in block])
    found: dict[str, tuple[str, ...]] = {}
    for name in asked:
        rows = full[np.isfinite(columns[name][full])][:MOST_ROWS]
        y = columns[name][rows]
        if len(rows) < 2 * len(block) + SPARE_ROWS or len(np.unique(y)) < FEWEST_VALUES:
            continue
        X = np.column_stack([parts[rows], np.ones(len(rows))])
        few = slice(0, len(block) + SPARE_ROWS)
        if not _explained(X[few], y[few], fractions[name]):
            continue
        if not _explained(X, y, fractions[name]):
            continue
        weights = np.linalg.lstsq(X, y)[0][:-1]
        sizes = np.abs(weights)
        if not sizes.max() > 0:
            continue
        used = sizes > 0.2 * sizes.max()
        equal = np.ptp(sizes[used]) < 0.05 * sizes.max() and (sizes[~used] < 0.02 * sizes.max()).all()
        if used.sum() > 1 and equal:
            found[name] = tuple(item for item, is_used in zip(block, used, strict=True) if is_used)
    return found


def _without_gaps(columns: Sequence[Array]) -> tuple[Array, NDArray[np.intp]]:
    """The columns side by side, and the rows without gaps; of a long table, only as many as are needed."""
    n = len(columns[0])
    for many in (4 * MOST_ROWS, n):
        parts = np.column_stack([values[:many] for values in columns])
        full = np.flatnonzero(np.isfinite(parts).all(axis=1))
        if many >= n or len(full) >= MOST_ROWS // 4 + 4 * len(columns):
            break
    return parts, full


def _explained(X: Array, y: Array, fractions: bool) -> bool:
    """Whether weights of the columns give all of y."""
    rest = y - X @ np.linalg.lstsq(X, y)[0]
    return bool(np.abs(rest).max() < (ROUNDED if fractions else 1e-6 * max(1.0, float(np.abs(y).max()))))
