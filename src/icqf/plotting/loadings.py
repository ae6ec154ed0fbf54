"""Loadings: the heatmap of the whole questionnaire, and the top items of one factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from icqf.data.confounds import INTERCEPT
from icqf.data.questionnaire import Item
from icqf.errors import InputError, did_you_mean
from icqf.plotting.style import (
    FACTOR,
    ORANGES,
    axes_or_new,
    bare,
    factor_names,
    faint,
    guides,
    ink,
    item_label,
    map_for,
    muted,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Names = Sequence[str] | Mapping[str, str] | None
_GAP = 0.6  # between factors and confounds, in cells


@dataclass(frozen=True, eq=False)
class _Cells:
    """What a heatmap shows: loadings as shares of each item's range, grouped by subscale."""

    values: np.ndarray  # (m, k + c)
    k: int
    columns: list[str]
    rows: list[str]
    groups: list[tuple[str, int, int]]  # subscale, first row, last row + 1


def loading_heatmap(
    model: Any,
    *,
    items: Sequence[Item] | None = None,
    names: Names = None,
    form: Literal["tall", "wide"] = "tall",
    confounds: bool = True,
    wording: bool = True,
    most: int = 44,
    bar: bool = True,
    order: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw all loadings, items grouped by subscale, the confounds' beside the factors'.

    Colour is the loading as a share of the item's answer range, so that items with different ranges can be
    compared. Within a subscale, items of the same factor stand together, the strongest first.

    Parameters
    ----------
    model : fitted ICQF, or DataFrame (m, k)
        A model with `loadings_`, or loadings alone, such as those of a factor analysis; these are shown as
        they are, in two colours when some are negative.
    items : sequence of Item, optional
        For wording and subscales, such as ``questionnaire.items``.
    names : sequence or mapping, optional
        Names of the factors.
    form : {"tall", "wide"}
        Items down the side, or along the bottom.
    confounds : bool
        Whether to show the confounds' loadings.
    wording : bool
        Whether items are labelled with their wording; the wide form always shows names.
    most : int
        Longest label in characters.
    bar : bool
        Whether a colour bar is drawn.
    order : sequence of str, optional
        All items by name, in the order to show them, for plots that are to be compared.
    ax : Axes, optional

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.plotting import loading_heatmap
    >>> demo = load_demo()
    >>> model = ICQF(4, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> ax = loading_heatmap(model, items=demo.items)
    >>> [label.get_text() for label in ax.get_xticklabels()][:5]
    ['Factor 1', 'Factor 2', 'Factor 3', 'Factor 4', 'Old']
    """
    if form not in ("tall", "wide"):
        raise InputError(f"form is {form!r}; choose 'tall' or 'wide'.")
    cells = _cells(model, items, names, confounds, wording and form == "tall", most, order)
    m, wide = len(cells.values), form == "wide"
    n_columns = len(cells.columns)
    height = 0.9 + 0.155 * m
    size = (0.1 * m + 2.2, 0.32 * n_columns + 1.7) if wide else (0.44 * n_columns + 4.6, height)
    ax = axes_or_new(ax, size=size)
    low, high = (
        min(0.0, float(cells.values.min(initial=0))),
        max(float(np.abs(cells.values).max(initial=0)), 1e-9),
    )
    scale = Normalize(-high if low < 0 else 0.0, high)
    edges = np.arange(m + 1)
    parts = [(slice(0, cells.k), 0.0, map_for(low))]
    if n_columns > cells.k:
        parts.append((slice(cells.k, n_columns), cells.k + _GAP, ORANGES))
    drawn = None
    for columns, first, colours in parts:
        values = cells.values[:, columns]
        across = first + np.arange(values.shape[1] + 1)
        grid = (edges, across, values.T) if wide else (across, edges, values)
        mesh = ax.pcolormesh(*grid, cmap=colours, norm=scale, rasterized=m * n_columns > 20_000)
        drawn = drawn or mesh
        frame = (0, first, m, values.shape[1]) if wide else (first, 0, values.shape[1], m)
        ax.add_patch(
            Rectangle(frame[:2], *frame[2:], fill=False, edgecolor=muted(), linewidth=0.6, clip_on=False)
        )
    _label(ax, cells, wide=wide)
    if bar and drawn is not None and ax.figure is not None:
        where: dict[str, Any] = (
            {"shrink": 0.8} if wide else {"shrink": min(1.0, 2.4 / height), "anchor": (0, 1)}
        )
        own = hasattr(model, "item_range_")
        colourbar = ax.figure.colorbar(drawn, ax=ax, pad=0.02, aspect=16, **where)
        colourbar.set_label("share of the answer range" if own else "loading")
        colourbar.outline.set_visible(False)
    return ax


def _label(ax: Axes, cells: _Cells, *, wide: bool) -> None:
    m, n = len(cells.rows), len(cells.columns)
    at_columns = np.arange(n) + 0.5 + _GAP * (np.arange(n) >= cells.k)
    across, along = (ax.yaxis, ax.xaxis) if wide else (ax.xaxis, ax.yaxis)
    across.set_ticks(at_columns, cells.columns)
    along.set_ticks(np.arange(m) + 0.5, cells.rows)
    ax.tick_params(length=0)
    small = 6.0 if wide else 7.0
    end = n + (_GAP if n > cells.k else 0.0)
    if wide:
        ax.tick_params(axis="x", labelrotation=90, labelsize=small)
        ax.set_xlim(0, m)
        ax.set_ylim(end, 0)
    else:
        ax.xaxis.tick_top()
        ax.tick_params(axis="x", labelrotation=45, labelsize=8)
        for label in ax.get_xticklabels():
            label.set_horizontalalignment("left")
            label.set_verticalalignment("bottom")
            label.set_rotation_mode("anchor")
        ax.tick_params(axis="y", labelsize=small)
        ax.set_xlim(0, end)
        ax.set_ylim(m, 0)
    bare(ax, keep=())
    for name, first, last in cells.groups:
        middle = (first + last) / 2
        if wide:
            ax.axvline(first, color=muted(), linewidth=0.5, zorder=3) if first else None
            text = shortened(name, max(4, int((last - first) * 1.15)))
            ax.annotate(
                text, (middle, 0), (0, 4), textcoords="offset points", ha="center", va="bottom", fontsize=7,
                color=ink(), annotation_clip=False,
            )  # fmt: skip
        else:
            ax.axhline(first, color=muted(), linewidth=0.5, zorder=3) if first else None
            ax.annotate(
                name, (end, middle), (5, 0), textcoords="offset points", ha="left", va="center", fontsize=8,
                color=ink(), annotation_clip=False, rotation=90 if last - first >= 6 else 0,
            )  # fmt: skip


def _cells(
    model: Any,
    items: Sequence[Item] | None,
    names: Names,
    confounds: bool,
    wording: bool,
    most: int,
    wanted: Sequence[str] | None,
) -> _Cells:
    table = getattr(model, "loadings_", model)
    if not isinstance(table, pd.DataFrame):
        array = np.asarray(table, dtype=float)
        table = pd.DataFrame(
            array,
            index=[f"item{j + 1}" for j in range(len(array))],
            columns=[f"factor{r + 1}" for r in range(array.shape[1])],
        )
    values, columns, k = table.to_numpy(dtype=float), factor_names(table.columns, names), table.shape[1]
    if confounds and len(getattr(model, "confound_names_", [])):
        beside = model.confound_loadings_
        values = np.column_stack([values, beside.to_numpy()])
        columns += [str(name) for name in beside.columns]
    if hasattr(model, "item_range_"):
        span = (model.item_range_["max"] - model.item_range_["min"]).to_numpy()
        values = values / span[:, None]
    own = [str(name) for name in table.index]
    if wanted is None:
        order, groups = grouped_order(own, items, values[:, :k])
    else:
        order = _given_order(own, wanted)
        groups = _runs([own[j] for j in order], items)
    known = {item.name: item for item in items or ()}
    rows = []
    for j in order:
        name = str(table.index[j])
        rows.append(shortened(item_label(name, known.get(name)), most) if wording else name)
    return _Cells(values[order], k, columns, rows, groups)


def grouped_order(
    names: Sequence[str], items: Sequence[Item] | None, values: np.ndarray
) -> tuple[list[int], list[tuple[str, int, int]]]:
    """Order of the items by subscale, then by strongest factor; and where each subscale begins and ends.

    Subscales come in the order in which they first appear; without any, there are no groups.
    """
    known = {item.name: item.subscale for item in items or ()}
    scales = [known.get(name, "") for name in names]
    place = {scale: at for at, scale in enumerate(dict.fromkeys(scales))}
    strongest, strength = np.abs(values).argmax(axis=1), np.abs(values).max(axis=1)
    order = sorted(range(len(names)), key=lambda j: (place[scales[j]], strongest[j], -strength[j], j))
    groups: list[tuple[str, int, int]] = []
    if any(scales):
        for scale in place:
            rows = [at for at, j in enumerate(order) if scales[j] == scale]
            groups.append((scale or "no subscale", rows[0], rows[-1] + 1))
    return order, groups


def _given_order(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    place = {name: at for at, name in enumerate(names)}
    if sorted(place) != sorted(wanted):
        raise InputError("order must hold every item of the loadings once.")
    return [place[name] for name in wanted]


def _runs(names: Sequence[str], items: Sequence[Item] | None) -> list[tuple[str, int, int]]:
    """Neighbouring items of the same subscale: its name, first row, last row + 1."""
    known = {item.name: item.subscale for item in items or ()}
    runs: list[tuple[str, int, int]] = []
    for at, name in enumerate(names):
        scale = known.get(name, "")
        if runs and runs[-1][0] == scale:
            runs[-1] = (scale, runs[-1][1], at + 1)
        else:
            runs.append((scale, at, at + 1))
    return (
        [(scale or "no subscale", first, last) for scale, first, last in runs] if any(known.values()) else []
    )


def top_items(
    model: Any,
    factor: int | str = 1,
    *,
    items: Sequence[Item] | None = None,
    n: int = 10,
    intervals: tuple[Any, Any] | None = None,
    name: str | None = None,
    most: int = 60,
    ax: Axes | None = None,
) -> Axes:
    """Draw the items that one factor, or one confound, moves most, with their wording.

    Parameters
    ----------
    model : fitted ICQF, or DataFrame (m, k)
        A model, or loadings alone, such as those of a factor analysis; of these the largest are drawn, the
        negative ones included.
    factor : int or str
        Number of the factor, counted from 1, or the name of a factor or confound column.
    items : sequence of Item, optional
        For the wording.
    n : int
        How many items.
    intervals : (low, high), optional
        Ends of an interval for each item (m,), in the order of the model's items.
    name : str, optional
        What to call the factor in the title.
    most : int
        Longest wording in characters.
    ax : Axes, optional

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.plotting import top_items
    >>> demo = load_demo()
    >>> model = ICQF(4, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> top_items(model, 1, items=demo.items, n=5).get_title(loc="left")
    'Factor 1'
    """
    alone = isinstance(model, pd.DataFrame)
    factors = model if alone else model.loadings_
    table = factors if alone else factors.join(model.confound_loadings_)
    if isinstance(factor, int):
        if not 1 <= factor <= factors.shape[1]:
            raise InputError(f"factor is {factor}; the model has factors 1 to {factors.shape[1]}.")
        factor = str(factors.columns[factor - 1])
    if factor not in table.columns:
        raise InputError(
            f"There is no factor or confound {factor!r}.{did_you_mean(str(factor), table.columns)}"
        )
    values = table[factor].to_numpy()
    if alone:
        span = np.full(len(values), max(float(np.abs(values).max(initial=0)), 1e-9))
        order = [j for j in np.argsort(-np.abs(values), kind="stable")[:n] if values[j] != 0]
    else:
        span = (model.item_range_["max"] - model.item_range_["min"]).to_numpy()
        order = [j for j in np.argsort(-values / span, kind="stable")[:n] if values[j] > 0]
    ax = axes_or_new(ax, size=(7.2, 0.9 + 0.3 * max(len(order), 1)))
    known = {item.name: item for item in items or ()}
    labels = [shortened(item_label(str(table.index[j]), known.get(str(table.index[j]))), most) for j in order]
    rows = np.arange(len(order))
    confound = factor not in factors.columns
    ax.barh(rows, values[order], height=0.66, color=ORANGES(0.62) if confound else FACTOR)
    if intervals is not None and len(order):
        low, high = (np.asarray(end, dtype=float)[order] for end in intervals)
        ax.hlines(rows, low, high, color=ink(), linewidth=1.2)
        ax.plot(low, rows, "|", high, rows, "|", color=ink(), markersize=5)
    ax.set_yticks(rows, labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(order) - 0.4, -0.6)
    widest = float(span[order].max()) if len(order) else 1.0
    ax.set_xlim(-widest if (values[order] < 0).any() else 0, widest)
    bare(ax, keep=("bottom",))
    ax.axvline(0, color=faint(), linewidth=1)
    guides(ax, "x")
    ax.set_xlabel(
        "loading"
        if alone
        else "answer added, in points above the lowest answer"
        if factor == INTERCEPT
        else "answer added when the score is 1, in points"
        if not confound
        else "answer added, in points"
    )
    shown = name or (factor_names([factor], None)[0] if not confound else str(factor))
    ax.set_title(shown, loc="left", fontweight="bold")
    return ax
