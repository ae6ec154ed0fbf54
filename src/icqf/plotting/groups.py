"""Loadings of the same factor in several groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from icqf.errors import shortened
from icqf.plotting.style import (
    MARKERS,
    axes_or_new,
    bare,
    factor_names,
    guides,
    ink,
    muted,
    palette,
    require_columns,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 44


def group_loadings(
    loadings: pd.DataFrame,
    items: pd.DataFrame,
    *,
    most: int = 14,
    wordings: Mapping[str, str] | None = None,
    by: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the loadings that differ most between groups, with their intervals, on the factor where they do.

    Parameters
    ----------
    loadings : DataFrame
        Columns ``factor, item, group, loading, low, high``, such as the ``loadings`` of
        `icqf.extensions.Invariance`.
    items : DataFrame
        Indexed by item, with columns ``factor``, ``p`` and ``flagged``, such as its ``items``; flagged items
        are written in black.
    most : int
        Most items to draw.
    wordings : mapping, optional
        What to call the items.
    by : str
        What the groups are groups of, such as "sex": the heading of their names.
    ax : Axes, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import group_loadings
    >>> loadings = pd.DataFrame({"factor": "factor1", "item": "q1", "group": ["girls", "boys"],
    ...                          "loading": [1.0, 0.4], "low": [0.8, 0.2], "high": [1.2, 0.6]})
    >>> items = pd.DataFrame({"factor": ["factor1"], "p": [0.01], "flagged": [True]}, index=["q1"])
    >>> group_loadings(loadings, items).get_xlabel()
    'loading, in answer points, with its 95% interval'
    >>> group_loadings(loadings, items, by="sex").get_legend().get_title().get_text()
    'sex'
    """
    require_columns(
        loadings, ("factor", "item", "group", "loading", "low", "high"), "loadings", "found.loadings"
    )
    require_columns(items, ("factor", "p", "flagged"), "items", "found.items")
    chosen = items.sort_values("p", kind="stable").head(most)
    groups = list(dict.fromkeys(loadings["group"]))
    ax = axes_or_new(ax, size=(7.2, 1.2 + 0.36 * len(chosen)))
    keys = loadings.set_index(["factor", "item", "group"])
    shift = 0.5 / max(len(groups), 2)
    for g, (group, colour) in enumerate(zip(groups, palette(len(groups)), strict=True)):
        rows = keys.loc[[(factor, item, group) for item, factor in chosen["factor"].items()]]
        value = rows["loading"].to_numpy()
        reach = np.abs(np.stack([value - rows["low"], rows["high"] - value]))
        at = np.arange(len(chosen)) + (g - (len(groups) - 1) / 2) * shift
        ax.errorbar(
            value, at, xerr=reach, fmt=MARKERS[g % len(MARKERS)], color=colour, markersize=5, capsize=2,
            linewidth=1.2, label=str(group),
        )  # fmt: skip
    shown = dict(zip(chosen["factor"], factor_names(chosen["factor"], None), strict=True))
    known = wordings or {}
    names = [
        f"{shortened(known.get(str(item)) or str(item), _LONGEST)}  ({shown[factor]})"
        for item, factor in chosen["factor"].items()
    ]
    ax.set_yticks(range(len(names)), names, fontsize=8)
    for label, flagged in zip(ax.get_yticklabels(), chosen["flagged"], strict=True):
        label.set_color(ink() if flagged else muted())
        label.set_fontweight("bold" if flagged else "normal")
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_xlabel("loading, in answer points, with its 95% interval")
    ax.tick_params(axis="y", length=0)
    bare(ax, keep=("bottom",))
    guides(ax, "x")
    heading = by.replace("$", r"\$")  # a column's name is no formula
    ax.legend(title=heading or None, title_fontsize=8, frameon=False, fontsize=8, loc="lower right")
    return ax
