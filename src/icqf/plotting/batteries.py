"""A battery at a glance: how many factors each instrument has, and how many would be found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from icqf.errors import shortened
from icqf.plotting.style import FACTOR, axes_or_new, bare, guides, ink, muted, require_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def battery_overview(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw one bar per instrument: its factors, in full colour those that a second study should find again.

    Beside the bar stands the share of the answers' variance that the model explains.

    Parameters
    ----------
    table : DataFrame
        Columns ``name``, ``k``, ``found_again`` (missing where no resamples were drawn) and ``explained``,
        such as the summary that `icqf batch` writes.
    ax : Axes, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import battery_overview
    >>> rows = [["mood", 3, 3, 0.5], ["sleep", 2, 1, 0.4]]
    >>> table = pd.DataFrame(rows, columns=["name", "k", "found_again", "explained"])
    >>> [label.get_text() for label in battery_overview(table).get_yticklabels()]
    ['mood', 'sleep']
    """
    require_columns(table, ["name", "k", "found_again", "explained"], "table", "summary.csv of icqf batch")
    at = np.arange(len(table))
    ax = axes_or_new(ax, size=(6.6, max(1.8, 0.9 + 0.32 * len(table))))
    k = table["k"].to_numpy(dtype=float)
    found = np.asarray(pd.to_numeric(table["found_again"]), dtype=float)
    ax.barh(at, k, height=0.62, color=FACTOR, alpha=0.28, label="all factors")
    if np.isfinite(found).any():
        ax.barh(at, np.nan_to_num(found), height=0.62, color=FACTOR, label="expected to be found again")
    for y, width, share in zip(at, k, table["explained"].to_numpy(dtype=float), strict=True):
        if np.isfinite(share):
            ax.annotate(
                f"{share:.0%} explained",
                (width, y),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=muted(),
            )
    ax.set_yticks(at, [shortened(str(name), 32) for name in table["name"]], color=ink())
    ax.set_xlabel("factors")
    ax.set_xlim(0, float(np.nanmax(k, initial=1)) * 1.3 + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(len(table) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    bare(ax, keep=("bottom",))
    guides(ax, "x")
    if np.isfinite(found).any():
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return ax
