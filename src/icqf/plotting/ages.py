"""Loadings over age: the course of each item of a factor, with its interval."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icqf.errors import InputError, shortened
from icqf.plotting.style import (
    SERIES,
    axes_or_new,
    bare,
    factor_names,
    faint,
    guides,
    ink,
    item_label,
    muted,
    require_columns,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 6  # items of a factor: more lines than colours cannot be told apart


def loading_courses(
    courses: pd.DataFrame,
    factor: str,
    *,
    ranges: pd.DataFrame | None = None,
    items: pd.DataFrame | None = None,
    changes: pd.DataFrame | None = None,
    names: Any = None,
    n_items: int = SHOWN,
    age: str = "age",
    ax: Axes | None = None,
) -> Axes:
    """Draw how the loadings of a factor's strongest items run over age, with their intervals.

    Items that change with age are drawn strong, the others thin; each is named at the end of its line.

    Parameters
    ----------
    courses : DataFrame
        Columns ``item``, ``factor``, ``bin``, ``age``, ``loading`` and, for intervals, ``low`` and ``high``,
        such as ``model.courses(visits)``.
    factor : str
        Such as "factor1".
    ranges : DataFrame (m, 2), optional
        Lowest and highest answer of each item; with it, loadings are drawn as shares of the range.
    items : DataFrame, optional
        Indexed by item, with columns ``wording`` and ``reverse``.
    changes : DataFrame, optional
        Indexed by factor and item with a column ``changes``, such as ``model.changes(visits).items``.
    names : sequence or mapping, optional
        Names of the factors.
    n_items : int
        How many items are drawn: those with the highest loading at any age.
    age : str
        What the axis of age is called.
    ax : Axes, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import loading_courses
    >>> courses = pd.DataFrame({"item": ["q1", "q1"], "factor": "factor1", "bin": ["5-8", "8-11"],
    ...                         "age": [6.5, 9.5], "loading": [1.0, 1.5]})
    >>> loading_courses(courses, "factor1").get_title(loc="left")
    'Factor 1'
    """
    require_columns(courses, ("item", "factor", "bin", "age", "loading"), "courses", "model.courses(visits)")
    own = courses[courses["factor"] == factor]
    if own.empty:
        raise InputError(f"The courses have no factor {factor!r}; they have {', '.join(_factors(courses))}.")
    ax = axes_or_new(ax, size=(7.2, 4.4))
    span = 1.0 if ranges is None else (ranges["max"] - ranges["min"]).reindex(own["item"]).to_numpy()
    own = own.assign(**{name: own[name] / span for name in ("loading", "low", "high") if name in own})
    strongest = own.groupby("item", sort=False)["loading"].max().sort_values(ascending=False, kind="stable")
    shown = list(strongest.index[:n_items])
    moved = _moved(changes, factor)
    ends: dict[str, float] = {}
    for at, item in enumerate(shown):
        course = own[own["item"] == item]
        colour, changing = SERIES[at % len(SERIES)], item in moved
        if "low" in course:
            ax.fill_between(
                course["age"], course["low"], course["high"], color=colour, alpha=0.13, linewidth=0
            )
        width = 2.2 if changing or changes is None else 1.1
        ax.plot(course["age"], course["loading"], color=colour, marker="o", markersize=4, linewidth=width)
        ends[item] = float(course["loading"].iloc[-1])
    low, high = 0.0, max(float(own.loc[own["item"].isin(shown), "loading"].max()), 1e-9)
    if "high" in own:
        high = max(high, float(own.loc[own["item"].isin(shown), "high"].max()))
    ax.set_ylim(low, 1.04 * high)
    last = own["age"].max()
    for (item, end), place in zip(ends.items(), _apart(list(ends.values()), 0.055 * high), strict=True):
        colour = SERIES[shown.index(item) % len(SERIES)]
        label = shortened(_label(item, items), 40) + (" *" if item in moved else "")
        ax.annotate(
            label, (last, end), (1.02, place / (1.04 * high)), xycoords="data", textcoords="axes fraction",
            fontsize=8.5, va="center", color=ink(), annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 1.0, "shrinkA": 2, "shrinkB": 2,
                        "relpos": (0, 0.5)},
        )  # fmt: skip
    ticks = own.drop_duplicates("bin")
    ax.set_xticks(ticks["age"], ticks["bin"], rotation=0 if len(ticks) <= 8 else 45)
    ax.set_xlabel(age, color=muted())
    ax.set_ylabel("loading" if ranges is None else "loading (share of the answer range)", color=muted())
    ax.set_title(factor_names([factor], _named(names, factor))[0], loc="left", color=ink())
    guides(ax)
    bare(ax)
    ax.spines["bottom"].set_color(faint())
    return ax


def _factors(courses: pd.DataFrame) -> list[str]:
    return [str(name) for name in courses["factor"].unique()]


def _named(names: Any, factor: str) -> Any:
    if names is None or isinstance(names, Mapping):
        return None if names is None else {key: name for key, name in names.items() if key == factor}
    number = factor.removeprefix("factor")
    return [names[int(number) - 1]] if number.isdigit() and int(number) <= len(names) else None


def _moved(changes: pd.DataFrame | None, factor: str) -> set[str]:
    if changes is None or factor not in changes.index.get_level_values(0):
        return set()
    own = changes.loc[factor]
    return {str(item) for item in own.index[own["changes"].to_numpy(bool)]}


def _label(item: str, items: pd.DataFrame | None) -> str:
    if items is None or item not in items.index:
        return item
    return item_label(item, str(items.loc[item, "wording"]), bool(items.loc[item, "reverse"]))


def _apart(places: list[float], gap: float) -> list[float]:
    """The places moved up and down as little as needed to stand at least `gap` apart, in their order."""
    order = np.argsort(places, kind="stable")
    moved = np.array(places, dtype=float)
    for _ in range(200):
        close = False
        for lower, upper in itertools.pairwise(order):
            lack = gap - (moved[upper] - moved[lower])
            if lack > 1e-9:
                moved[lower] -= lack / 2
                moved[upper] += lack / 2
                close = True
        if not close:
            break
    return [float(place) for place in moved]
