"""The three levels of a battery: meta-factors, the factors of its instruments, and their items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from icqf.errors import InputError, shortened
from icqf.plotting.style import (
    SERIES,
    Names,
    axes_or_new,
    factor_names,
    ink,
    muted,
    palette,
    require_columns,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

META_AT, FACTOR_AT, ITEM_AT = 0.0, 1.0, 1.72
_LEAST = 0.1  # a weaker loading is no line
_BETWEEN = 0.9  # rows between instruments
_WIDEST = 7.0  # points of a line for a loading of 1


def three_levels(
    loadings: pd.DataFrame,
    items: pd.DataFrame,
    *,
    names: Names = None,
    most: int = 48,
    ax: Axes | None = None,
) -> Axes:
    """Draw which factors a meta-factor is made of, and which items say what these factors are.

    The width of a line is the loading; lines of loadings below a tenth are left out.

    Parameters
    ----------
    loadings : DataFrame (factors, K)
        Rows are (instrument, factor), such as ``model.loadings_`` of a fitted `MetaICQF`.
    items : DataFrame
        The items to name beside each factor, columns ``instrument``, ``factor``, ``label`` and ``share`` (the
        loading as a share of the item's range), such as ``model.top_items()``.
    names : sequence or mapping, optional
        Names of the meta-factors.
    most : int
        Longest label of an item in characters.
    ax : Axes, optional

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_battery
    >>> from icqf.extensions import MetaICQF
    >>> from icqf.plotting import three_levels
    >>> battery = make_battery(n=100, n_items=(9, 9), n_factors=2, n_meta=2, random_state=0).battery
    >>> model = MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery)
    >>> ax = three_levels(model.loadings_, model.top_items(2))
    >>> [text.get_text() for text in ax.texts][:2]
    ['Meta-factor 1', 'Meta-factor 2']
    """
    if not isinstance(loadings, pd.DataFrame) or loadings.index.nlevels != 2:
        raise InputError(
            "loadings must be a table whose rows are (instrument, factor), such as model.loadings_ of a "
            "MetaICQF."
        )
    require_columns(items, ["instrument", "factor", "label", "share"], "items", "model.top_items()")
    by_factor = {
        (str(key[0]), str(key[1])): part for key, part in items.groupby(["instrument", "factor"], sort=False)
    }
    factors, labels, height = _rows(loadings, by_factor)
    values = loadings.to_numpy(dtype=float)
    metas = _meta_rows(values, factors, height)
    ax = axes_or_new(ax, size=(9.2, max(3.0, 0.8 + 0.2 * height)))
    colours = palette(values.shape[1]) if values.shape[1] > len(SERIES) else SERIES
    for r, column in enumerate(values.T):
        for at, loading in enumerate(column):
            if loading >= _LEAST:
                _line(ax, (META_AT, metas[r]), (FACTOR_AT, factors[at]), loading, colours[r], alpha=0.55)
    for at, key in enumerate(loadings.index):
        strongest = int(np.argmax(values[at]))
        tied = values[at, strongest] >= _LEAST
        colour = colours[strongest] if tied else muted()
        for y, row in zip(labels[key], by_factor.get(key, items.iloc[:0]).to_dict("records"), strict=True):
            _line(ax, (FACTOR_AT, factors[at]), (ITEM_AT, y), 0.35 * float(row["share"]), colour, alpha=0.35)
    shown = _meta_names(loadings, names)
    for r, y in enumerate(metas):
        ax.text(META_AT - 0.03, y, shown[r], ha="right", va="center", weight="bold", color=ink(), zorder=4)
        ax.plot([META_AT + 0.012], [y], "o", color=colours[r], markersize=9, zorder=3)
    box = {
        "boxstyle": "round,pad=0.25",
        "facecolor": ax.figure.get_facecolor(),
        "edgecolor": muted(),
        "lw": 0.8,
    }
    for at, (instrument, factor) in enumerate(loadings.index):
        text = f"{shortened(str(instrument), 22)} · {str(factor).removeprefix('factor')}"
        ax.text(
            FACTOR_AT,
            factors[at],
            text,
            ha="center",
            va="center",
            fontsize=9,
            color=ink(),
            bbox=box,
            zorder=4,
        )
    for key, part in by_factor.items():
        for y, label in zip(labels.get(key, ()), part["label"], strict=True):
            ax.text(
                ITEM_AT + 0.01, y, _cut(str(label), most), ha="left", va="center", fontsize=8, color=ink()
            )
    for x, text in ((META_AT, "meta-factors"), (FACTOR_AT, "factors"), (ITEM_AT, "strongest items")):
        where = {META_AT: "right", FACTOR_AT: "center", ITEM_AT: "left"}[x]
        ax.text(x, -1.6, text, ha=where, va="center", fontsize=9, color=muted())
    ax.set_xlim(-0.42, 2.62)
    ax.set_ylim(height + 0.3, -2.2)
    ax.axis("off")
    return ax


def _rows(
    loadings: pd.DataFrame, by_factor: dict[tuple[str, str], pd.DataFrame]
) -> tuple[np.ndarray, dict[tuple[str, str], list[float]], float]:
    """Where factors and items stand: instruments apart from each other, a factor beside its items."""
    factors, labels, y, before = [], {}, 0.0, None
    for key in loadings.index:
        if before is not None and key[0] != before:
            y += _BETWEEN
        before = key[0]
        number = len(by_factor[key]) if key in by_factor else 0
        labels[key] = [y + at for at in range(number)]
        factors.append(y + (max(number, 1) - 1) / 2)
        y += max(number, 1) + 0.35
    return np.array(factors), labels, y


def _meta_rows(values: np.ndarray, factors: np.ndarray, height: float) -> np.ndarray:
    """Where meta-factors stand: in the middle of their factors, no two closer than a few rows."""
    k = values.shape[1]
    weight = values.sum(axis=0)
    centre = np.where(weight > 0, factors @ values / np.where(weight > 0, weight, 1), height / 2)
    order = np.argsort(centre, kind="stable")
    least = min(3.0, height / max(k, 1))
    places = centre[order]
    for at in range(1, k):
        places[at] = max(places[at], places[at - 1] + least)
    places += min(0.0, height - 1 - places[-1])
    found = np.empty(k)
    found[order] = places
    return found


def _cut(label: str, most: int) -> str:
    """A label that is not too long, and still says that its item is reversed."""
    plain, mark, _ = label.partition(" (reversed)")
    return shortened(plain, most - len(mark)) + mark


def _line(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    loading: float,
    colour: str,
    *,
    alpha: float,
) -> None:
    middle = (start[0] + end[0]) / 2
    path = Path(
        [start, (middle, start[1]), (middle, end[1]), end],
        [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
    )
    width = max(0.6, _WIDEST * float(loading))
    ax.add_patch(
        PathPatch(path, facecolor="none", edgecolor=colour, linewidth=width, alpha=alpha, capstyle="butt")
    )


def _meta_names(loadings: pd.DataFrame, names: Names) -> list[str]:
    keys = [str(name) for name in loadings.columns]
    given = factor_names(keys, names)
    return [
        f"Meta-factor {key[4:]}" if text == key and key.startswith("meta") and key[4:].isdigit() else text
        for key, text in zip(keys, given, strict=True)
    ]
