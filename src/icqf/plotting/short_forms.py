"""How much of the full form's scores a short form recovers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.ticker import MaxNLocator

from icqf.plotting.style import (
    CHOSEN,
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

_COLUMNS = ("n_items", "accuracy", "top_loading")
_GOOD = 0.9
_OTHERS = ("n_items", "minutes", "added", "dropped", "accuracy", "worst", "top_loading")


def accuracy_curve(curve: pd.DataFrame, *, names: Names = None, ax: Axes | None = None) -> Axes:
    """Draw the accuracy of short forms against their length, each factor thin and their mean bold.

    Accuracy is the correlation of the short form's scores with those of the full form, in participants who
    had no part in the choice of items. The dashed line is that of as many items with the largest loadings.

    Parameters
    ----------
    curve : DataFrame
        Such as the ``curve`` of `icqf.extensions.ShortForm`.
    names : sequence or mapping, optional
        Names of the factors.
    ax : Axes, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import accuracy_curve
    >>> curve = pd.DataFrame({"n_items": [1, 2, 3], "accuracy": [0.5, 0.7, 0.9],
    ...                       "top_loading": [0.4, 0.6, 0.85], "factor1": [0.5, 0.7, 0.9]})
    >>> accuracy_curve(curve).get_xlabel()
    'items asked'
    """
    require_columns(curve, _COLUMNS, "curve", "form.curve")
    ax = axes_or_new(ax, size=(6.4, 4.2))
    factors = [column for column in curve.columns if column not in _OTHERS]
    length = curve["n_items"]
    ax.axhline(_GOOD, color=muted(), linewidth=0.8, linestyle=":")
    colours = palette(len(factors))
    for name, shown, colour in zip(factors, factor_names(factors, names), colours, strict=True):
        ax.plot(length, curve[name], color=colour, linewidth=0.9, alpha=0.75, label=shown)
    ax.plot(length, curve["top_loading"], "--", color=CHOSEN, linewidth=1.6, label="largest loadings, mean")
    ax.plot(length, curve["accuracy"], color=ink(), linewidth=2.4, marker="o", markersize=3.5, label="mean")
    ax.set_ylim(min(0.0, float(curve[[*factors, *_COLUMNS[1:]]].min().min())), 1.0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("items asked")
    ax.set_ylabel("correlation with the full form")
    bare(ax)
    guides(ax)
    ax.legend(frameon=False, fontsize=8, ncols=2 if len(factors) > 6 else 1, loc="lower right")
    return ax
