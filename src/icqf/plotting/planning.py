"""How likely factors are found again, by the number of participants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.ticker import NullFormatter, PercentFormatter

from icqf.plotting.style import (
    Names,
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


def found_again(curve: pd.DataFrame, *, names: Names = None, ax: Axes | None = None) -> Axes:
    """Draw the chance that factors are found again against the number of participants.

    Each factor is thin and their mean bold; the dotted lines are at 80 and 90 %.

    Parameters
    ----------
    curve : DataFrame
        Columns ``n``, ``mean``, ``every`` and one per factor, such as the ``curve`` of
        `icqf.extensions.SamplePlan`.
    names : sequence or mapping, optional
        Names of the factors.
    ax : Axes, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import found_again
    >>> curve = pd.DataFrame({"n": [50, 100, 200], "mean": [0.3, 0.8, 1.0], "every": [0.1, 0.6, 1.0],
    ...                       "factor1": [0.3, 0.8, 1.0]})
    >>> found_again(curve).get_xlabel()
    'participants'
    """
    require_columns(curve, ("n", "mean", "every"), "curve", "plan.curve")
    ax = axes_or_new(ax, size=(6.4, 4.2))
    factors = [column for column in curve.columns if column not in ("n", "mean", "every")]
    for height in (0.8, 0.9):
        ax.axhline(height, color=muted(), linewidth=0.8, linestyle=":")
    for name, shown, colour in zip(factors, factor_names(factors, names), palette(len(factors)), strict=True):
        ax.plot(curve["n"], curve[name], color=colour, linewidth=0.9, alpha=0.8, label=shown)
    ax.plot(
        curve["n"], curve["mean"], color=ink(), linewidth=2.4, marker="o", markersize=3.5,
        label="share of the factors",
    )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(curve["n"].tolist(), [str(n) for n in curve["n"]])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(axis="x", which="minor", length=0)
    ax.set_ylim(-0.02, 1.03)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_xlabel("participants")
    ax.set_ylabel("simulated studies that find it again")
    bare(ax)
    guides(ax)
    ax.legend(frameon=False, fontsize=8, loc="lower right", ncols=2 if len(factors) > 6 else 1)
    return ax
