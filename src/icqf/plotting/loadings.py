"""Loadings: heatmap, top items, diagram, by group, over age, and with scores and answers."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from icqf.errors import InputError, shortened
from icqf.plotting.style import (
    BESIDE,
    BLUES,
    FACTOR,
    MARKERS,
    ORANGES,
    SERIES,
    Names,
    axes_or_new,
    colormap_for,
    factor_names,
    factor_table,
    faint,
    guides,
    hide_frame,
    ink,
    item_label,
    muted,
    palette,
    require_columns,
)

_GAP = 0.6  # between factors and confounds, in cells


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of a heatmap: loadings, as shares of the range if known, grouped by subscale."""

    values: np.ndarray  # (m, k + c)
    k: int
    columns: list[str]
    rows: list[str]
    groups: list[tuple[str, int, int]]  # subscale, first row, last row + 1


def loading_heatmap(
    loadings: Any,
    *,
    confounds: pd.DataFrame | None = None,
    ranges: pd.DataFrame | None = None,
    items: pd.DataFrame | None = None,
    names: Names = None,
    form: Literal["tall", "wide"] = "tall",
    most: int = 44,
    bar: bool = True,
    labels: bool = True,
    highest: float | None = None,
    order: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw all loadings of factors and confounds, with items grouped by subscale.

    With `ranges`, colour is the loading as a share of the item's answer range, so that items with different
    ranges can be compared. Within a subscale, items are sorted by factor, the strongest first.

    Parameters
    ----------
    loadings : DataFrame or array (m, k)
        Such as ``model.loadings_``. Negative loadings, as in a factor analysis, have their own colour.
    confounds : DataFrame (m, c), optional
        Loadings of the confounds, such as ``model.confound_loadings_``.
    ranges : DataFrame (m, 2), optional
        Lowest and highest answer, columns ``min`` and ``max``, such as ``model.item_range_``.
    items : DataFrame, optional
        Indexed by item, with columns ``wording``, ``subscale`` and ``reverse``, such as
        ``questionnaire.item_table()``.
    names : sequence or mapping, optional
        Names of the factors.
    form : {"tall", "wide"}
        Items down the side, or along the bottom with their names instead of their wordings.
    most : int
        Longest label in characters.
    bar : bool
        Whether a colour bar is drawn.
    labels : bool
        Whether items are labelled.
    highest : float, optional
        The value of the darkest colour; the largest loading by default.
    order : sequence of str, optional
        All items by name, in the order to show them.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.plotting import loading_heatmap
    >>> demo = load_demo()
    >>> model = ICQF(4, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> ax = loading_heatmap(model.loadings_, confounds=model.confound_loadings_,
    ...                      ranges=model.item_range_, items=demo.item_table())
    >>> [label.get_text() for label in ax.get_xticklabels()][:5]
    ['Factor 1', 'Factor 2', 'Factor 3', 'Factor 4', 'Old']
    """
    if form not in ("tall", "wide"):
        raise InputError(f"form is {form!r}; choose 'tall' or 'wide'.")
    cells = _cells(factor_table(loadings), confounds, ranges, items, names, order)
    m, wide = len(cells.values), form == "wide"
    texts = [""] * m
    if labels:
        texts = _labels(cells.rows, items, most, wording=not wide)
    n_columns = len(cells.columns)
    height = 0.9 + 0.155 * m
    size = (0.1 * m + 2.2, 0.32 * n_columns + 1.7) if wide else (0.44 * n_columns + 4.6, height)
    ax = axes_or_new(ax, size=size)
    low, high = (
        min(0.0, float(cells.values.min(initial=0))),
        max(float(np.abs(cells.values).max(initial=0)), 1e-9) if highest is None else highest,
    )
    scale = Normalize(-high if low < 0 else 0.0, high)
    edges = np.arange(m + 1)
    parts = [(slice(0, cells.k), 0.0, colormap_for(low))]
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
    _annotate(ax, cells, texts, wide=wide)
    if bar and drawn is not None and ax.figure is not None:
        where: dict[str, Any] = (
            {"shrink": 0.8} if wide else {"shrink": min(1.0, 2.4 / height), "anchor": (0, 1)}
        )
        colourbar = ax.figure.colorbar(drawn, ax=ax, pad=0.02, aspect=16, **where)
        colourbar.set_label("loading" if ranges is None else "share of the answer range")
        colourbar.outline.set_visible(False)
    return ax


def _annotate(ax: Axes, cells: _Cells, labels: list[str], *, wide: bool) -> None:
    m, n = len(cells.rows), len(cells.columns)
    at_columns = np.arange(n) + 0.5 + _GAP * (np.arange(n) >= cells.k)
    across, along = (ax.yaxis, ax.xaxis) if wide else (ax.xaxis, ax.yaxis)
    across.set_ticks(at_columns, cells.columns)
    along.set_ticks(np.arange(m) + 0.5, labels)
    ax.tick_params(length=0)
    small = 6.0 if wide else 7.0
    end = n + (_GAP if n > cells.k else 0.0)
    if wide:
        ax.tick_params(axis="x", labelrotation=90, labelsize=small)
        ax.set_xlim(0, m)
        ax.set_ylim(end, 0)
    else:
        ax.xaxis.tick_top()
        ax.tick_params(axis="x", labelrotation=90, labelsize=8)
        ax.tick_params(axis="y", labelsize=small)
        ax.set_xlim(0, end)
        ax.set_ylim(m, 0)
    hide_frame(ax, keep=())
    upright = all(last - first > 0.55 * len(name) for name, first, last in cells.groups)
    for name, first, last in cells.groups:
        middle = (first + last) / 2
        if wide:
            ax.axvline(first, color=muted(), linewidth=0.5, zorder=3) if first else None
            ax.annotate(
                name, (middle, 0), (-2, 4), textcoords="offset points", ha="left", va="bottom", fontsize=7,
                color=ink(), annotation_clip=False, rotation=40, rotation_mode="anchor",
            )  # fmt: skip
        else:
            ax.axhline(first, color=muted(), linewidth=0.5, zorder=3) if first else None
            ax.annotate(
                name, (end, middle), (5, 0), textcoords="offset points", ha="left", va="center", fontsize=8,
                color=ink(), annotation_clip=False, rotation=270 if upright else 0,
            )  # fmt: skip


def _cells(
    table: pd.DataFrame,
    confounds: pd.DataFrame | None,
    ranges: pd.DataFrame | None,
    items: pd.DataFrame | None,
    names: Names,
    wanted: Sequence[str] | None,
) -> _Cells:
    values, columns, k = table.to_numpy(dtype=float), factor_names(table.columns, names), table.shape[1]
    if confounds is not None:
        values = np.column_stack([values, confounds.to_numpy(dtype=float)])
        columns += [str(name) for name in confounds.columns]
    if ranges is not None:
        values = values / _span(ranges)[:, None]
    own = [str(name) for name in table.index]
    scales = subscales_of(own, items)
    if wanted is None:
        order, groups = grouped_order(scales, values[:, :k])
    else:
        if sorted(own) != sorted(wanted):
            raise InputError("order must hold every item of the loadings once.")
        order = [own.index(name) for name in wanted]
        groups = _runs([scales[j] for j in order])
    return _Cells(values[order], k, columns, [own[j] for j in order], groups)


def _span(ranges: pd.DataFrame) -> np.ndarray:
    return (ranges["max"] - ranges["min"]).to_numpy(dtype=float)


def _require_items(items: pd.DataFrame | None) -> None:
    if items is not None:
        require_columns(items, ("wording", "reverse", "subscale"), "items", "questionnaire.item_table()")


def _labels(
    names: Iterable[Any], items: pd.DataFrame | None, most: int, *, wording: bool = True
) -> list[str]:
    """Labels of items in about `most` characters, or names; "(reversed)" is never cut off."""
    _require_items(items)
    if items is None:
        return [shortened(str(name), most) if wording else str(name) for name in names]
    known = {
        name: (row.wording if wording else "", row.reverse)
        for name, row in zip(items.index, items.itertuples(), strict=True)
    }
    cut = most if wording else None
    return [item_label(str(name), *known.get(name, ()), most=cut) for name in names]


def subscales_of(names: Iterable[Any], items: pd.DataFrame | None) -> list[str]:
    """The subscale of each item, "" where it has none."""
    _require_items(items)
    known = {} if items is None else items["subscale"].to_dict()
    return [str(known.get(name, "")) for name in names]


def grouped_order(
    subscales: Sequence[str], values: np.ndarray | None = None
) -> tuple[list[int], list[tuple[str, int, int]]]:
    """Order of the items by subscale, then by strongest factor, and where each subscale begins and ends."""
    sizes = np.zeros((len(subscales), 1)) if values is None else np.abs(values)
    strongest, strength = sizes.argmax(axis=1), sizes.max(axis=1)
    place = {scale: at for at, scale in enumerate(dict.fromkeys(subscales))}
    order = sorted(range(len(subscales)), key=lambda j: (place[subscales[j]], strongest[j], -strength[j], j))
    return order, _runs([subscales[j] for j in order])


def _runs(scales: Sequence[str]) -> list[tuple[str, int, int]]:
    """Neighbouring items of the same subscale: its name, first row, last row + 1."""
    if not any(scales):
        return []
    starts = [at for at in range(len(scales)) if at == 0 or scales[at] != scales[at - 1]]
    return [(scales[a] or "no subscale", a, b) for a, b in pairwise([*starts, len(scales)])]


def top_items(
    loadings: pd.Series,
    *,
    ranges: pd.DataFrame | None = None,
    items: pd.DataFrame | None = None,
    n: int = 10,
    intervals: tuple[Any, Any] | None = None,
    confound: bool = False,
    title: str | None = None,
    most: int = 60,
    ax: Axes | None = None,
) -> Axes:
    """Draw the items with the highest loadings on one factor or confound.

    Parameters
    ----------
    loadings : Series (m,)
        Loadings of one factor or confound by item, such as ``model.loadings_["factor1"]``.
    ranges : DataFrame (m, 2), optional
        Lowest and highest answer, columns ``min`` and ``max``, such as ``model.item_range_``: items are then
        ranked by loading as a share of the range. Without it, they are ranked by absolute loading.
    items : DataFrame, optional
        Indexed by item, with columns ``wording`` and ``reverse``, such as ``questionnaire.item_table()``.
    n : int
        How many items.
    intervals : (low, high), optional
        Ends of an interval for each item (m,), in the order of the loadings.
    confound : bool
        Whether these are the loadings of a confound (drawn in orange).
    title : str, optional
        Title; by default the name of the Series.
    most : int
        Longest wording in characters.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.plotting import top_items
    >>> demo = load_demo()
    >>> model = ICQF(4, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> ax = top_items(model.loadings_["factor1"], ranges=model.item_range_, items=demo.item_table(), n=5)
    >>> ax.get_title(loc="left")
    'Factor 1'
    """
    if not isinstance(loadings, pd.Series):
        raise InputError('Give the loadings of one factor, such as model.loadings_["factor1"].')
    values = loadings.to_numpy(dtype=float)
    if ranges is None:
        span = np.full(len(values), max(float(np.abs(values).max(initial=0)), 1e-9))
        order = [j for j in np.argsort(-np.abs(values), kind="stable")[:n] if values[j] != 0]
    else:
        span = _span(ranges)
        order = [j for j in np.argsort(-values / span, kind="stable")[:n] if values[j] > 0]
    ax = axes_or_new(ax, size=(7.2, 0.9 + 0.3 * max(len(order), 1)))
    labels = _labels(loadings.index[order], items, most)
    rows = np.arange(len(order))
    colour = ORANGES(0.62) if confound else FACTOR
    if ranges is not None and len({float(each) for each in span[order]}) > 1:
        ax.barh(rows, span[order], height=0.66, color=colour, alpha=0.13)  # how far each item's range goes
    ax.barh(rows, values[order], height=0.66, color=colour)
    if intervals is not None and len(order):
        low, high = (np.asarray(end, dtype=float)[order] for end in intervals)
        ax.hlines(rows, low, high, color=ink(), linewidth=1.2)
        ax.plot(low, rows, "|", high, rows, "|", color=ink(), markersize=5)
    ax.set_yticks(rows, labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(order) - 0.4, -0.6)
    widest = float(span[order].max()) if len(order) else 1.0
    ax.set_xlim(-widest if (values[order] < 0).any() else 0, widest)
    hide_frame(ax, keep=("bottom",))
    ax.axvline(0, color=faint(), linewidth=1)
    guides(ax, "x")
    points = "points added to the answer" + ("" if confound else " when the score is 1")
    ax.set_xlabel("loading" if ranges is None else points)
    shown = factor_names([loadings.name], None)[0] if title is None else title
    ax.set_title(shown, loc="left", fontweight="bold")
    return ax


# Factors as boxes, with lines to their items.

_WEAKEST = 0.2  # loading as a share of the item's range, from which it is drawn
_BOX, _LABELS = 0.25, 0.4  # of the width of a column: where boxes end, and where labels begin
_SHARE, _FARTHEST = 0.055, 0.82  # room for a loading, and how far right "also" may begin
_LINE = 14  # characters of a line in a box


def factor_diagram(
    loadings: Any,
    *,
    ranges: pd.DataFrame | None = None,
    items: pd.DataFrame | None = None,
    names: Names = None,
    columns: int = 1,
    rows: int | None = None,
    most: int = 44,
    ax: Axes | None = None,
) -> Axes:
    """Draw factors as boxes with lines to their items: each item at its strongest factor, others as "also".

    The wider a line, the higher the loading. Items without a loading of a fifth of their range are listed at
    the end. Nothing depends on colours, so that it can be printed in black.

    Parameters
    ----------
    loadings : DataFrame or array (m, k)
        Such as ``model.loadings_``.
    ranges : DataFrame (m, 2), optional
        Lowest and highest answer, columns ``min`` and ``max``: loadings are then shares of the range; without
        it, shares of the largest loading.
    items : DataFrame, optional
        Indexed by item, with columns ``wording`` and ``reverse``, such as ``questionnaire.item_table()``.
    names : sequence or mapping, optional
        Names of the factors.
    columns : int
        Columns of factors side by side.
    rows : int, optional
        Most rows of a column; the weakest items of the largest factors are left out, and counted, to fit.
    most : int
        Longest label in characters.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.plotting import factor_diagram
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2).fit(demo)
    >>> ax = factor_diagram(model.loadings_, ranges=model.item_range_, items=demo.item_table())
    >>> [text.get_text() for text in ax.texts][:2]
    ['1', 'Factor 1']
    """
    table = factor_table(loadings)
    values = np.abs(table.to_numpy(dtype=float))
    shares = values / (max(float(values.max(initial=0)), 1e-9) if ranges is None else _span(ranges)[:, None])
    labels = _labels(table.index, items, most)
    shown = factor_names(table.columns, names)
    blocks = _diagram_blocks(shares, shown)
    if rows is not None:
        blocks = _cut_blocks(blocks, columns, rows)
    parts = _columns_of(blocks, columns)
    tall = max(sum(block.height for block in part) for part in parts)
    ax = axes_or_new(ax, size=(4.6 * len(parts), 0.6 + 0.19 * tall))
    size = mpl.rcParams["ytick.labelsize"]
    small = float(size) if isinstance(size, (int, float)) else 8.0
    figure = ax.get_figure(root=True)
    inches = (4.6 * len(parts) if figure is None else figure.get_figwidth()) / len(parts)
    longest = max((len(labels[j]) for block in blocks for j in block.items), default=0)
    beside = _LABELS + 0.02 + longest * 0.0082 * small / inches
    for column, part in enumerate(parts):
        top = 0.0
        for block in part:
            _draw_block(ax, block, shares, labels, (column, top), small, beside)
            top += block.height
    ax.set_xlim(0, len(parts))
    ax.set_ylim(tall, 0)
    ax.set_xticks([])
    ax.set_yticks([])
    hide_frame(ax, keep=())
    return ax


@dataclass(frozen=True)
class _DiagramBlock:
    """A factor (or none) with its items, the strongest first, and how many more there are."""

    factor: int | None
    lines: tuple[str, ...]
    items: tuple[int, ...]
    more: int = 0

    @property
    def height(self) -> float:
        """In rows, with the gap below."""
        return max(len(self.items) + (self.more > 0), len(self.lines) + 1.2) + 0.9


def _diagram_blocks(shares: np.ndarray, names: Sequence[str]) -> list[_DiagramBlock]:
    strongest, strength = shares.argmax(axis=1), shares.max(axis=1)
    blocks = []
    for factor, name in enumerate(names):
        mine = [j for j in np.argsort(-strength, kind="stable") if strongest[j] == factor]
        own = tuple(int(j) for j in mine if strength[j] >= _WEAKEST)
        blocks.append(_DiagramBlock(factor, _wrapped(name), own))
    none = tuple(int(j) for j in np.flatnonzero(strength < _WEAKEST))
    return [*blocks, _DiagramBlock(None, ("on no factor",), none)] if none else blocks


def _wrapped(name: str) -> tuple[str, ...]:
    lines = textwrap.wrap(name, _LINE, max_lines=4, placeholder="…", break_long_words=False)
    return tuple(lines) or ("",)


def _cut_blocks(blocks: list[_DiagramBlock], columns: int, rows: int) -> list[_DiagramBlock]:
    """Shorten the longest blocks until all columns fit."""
    longest = max(len(block.items) for block in blocks)
    cut = blocks
    while longest > 1 and max(sum(b.height for b in part) for part in _columns_of(cut, columns)) > rows:
        longest -= 1
        cut = [replace(b, items=b.items[:longest], more=len(b.items[longest:])) for b in blocks]
    return cut


def _columns_of(blocks: list[_DiagramBlock], columns: int) -> list[list[_DiagramBlock]]:
    """Blocks in order, in columns of which the tallest is as short as possible."""
    n = min(columns, len(blocks))
    divisions = (
        [blocks[a:b] for a, b in pairwise((0, *inner, len(blocks)))]
        for inner in itertools.combinations(range(1, len(blocks)), n - 1)
    )
    return min(divisions, key=lambda parts: max(sum(block.height for block in part) for part in parts))


def _draw_block(
    ax: Axes,
    block: _DiagramBlock,
    shares: np.ndarray,
    labels: Sequence[str],
    place: tuple[int, float],
    size: float,
    beside: float,
) -> None:
    """Draw a block at `place`; other factors of its items are named `beside` them."""
    left, top = place
    inner = block.height - 0.9
    middle, first = top + inner / 2, top + (inner - len(block.items) - (block.more > 0)) / 2 + 0.5
    tall = len(block.lines) + (1.0 if block.factor is None else 1.2)
    if block.factor is not None:
        box = Rectangle(
            (left + 0.005, middle - tall / 2),
            _BOX - 0.01,
            tall,
            facecolor="white",
            edgecolor=ink(),
            linewidth=0.8,
        )
        ax.add_patch(box)
        ax.text(
            left + 0.02,
            middle - tall / 2 + 0.15,
            str(block.factor + 1),
            fontsize=size - 1,
            va="top",
            color=muted(),
        )
    text = "\n".join(block.lines)
    middle_of_text = middle + (0.0 if block.factor is None else 0.1)
    ax.text(
        left + _BOX / 2,
        middle_of_text,
        text,
        ha="center",
        va="center",
        fontsize=size * min(1.0, (_LINE + 1) / max(map(len, block.lines))),  # words are not broken
        color=ink(),
        linespacing=1.1,
    )
    for row, j in enumerate(block.items):
        at = first + row
        if block.factor is not None:
            share = float(shares[j, block.factor])
            ends = [left + _BOX - 0.005, left + _LABELS - _SHARE]
            ax.plot(ends, [middle, at], color=FACTOR, linewidth=0.3 + 2.2 * share, solid_capstyle="round")
            ax.text(
                left + _LABELS - 0.008, at, "1" if share >= 0.995 else f"{share:.2f}".lstrip("0"),
                va="center", ha="right", fontsize=size - 1, color=muted(),
            )  # fmt: skip
        ax.text(left + _LABELS, at, labels[j], va="center", fontsize=size, color=ink())
        also = [str(r + 1) for r in np.flatnonzero(shares[j] >= _WEAKEST) if r != block.factor]
        if also:
            near = beside <= _FARTHEST
            ax.text(
                left + (beside if near else 0.985), at, f"also {', '.join(also)}", va="center",
                ha="left" if near else "right", fontsize=size - 1, color=muted(),
            )  # fmt: skip
    if block.more:
        at = first + len(block.items)
        ax.text(left + _LABELS, at, f"and {block.more} more", va="center", fontsize=size, color=muted())


# Loadings of the same factor in several groups.

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
    """Draw the loadings that differ most between groups, with their intervals.

    Parameters
    ----------
    loadings : DataFrame
        Columns ``factor, item, group, loading, low, high``, such as the ``loadings`` of
        `icqf.analyses.Invariance`.
    items : DataFrame
        Indexed by item, with columns ``factor``, ``p`` and ``flagged``, such as its ``items``; flagged items
        are in bold.
    most : int
        Most items to draw.
    wordings : mapping, optional
        Wordings of the items.
    by : str
        What the groups are, such as "sex": the heading of the legend.

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
        loadings, ("factor", "item", "group", "loading", "low", "high"), "loadings", "result.loadings"
    )
    require_columns(items, ("factor", "p", "flagged"), "items", "result.items")
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
    hide_frame(ax, keep=("bottom",))
    guides(ax, "x")
    heading = by.replace("$", r"\$")  # not a formula
    ax.legend(title=heading or None, title_fontsize=8, frameon=False, fontsize=8, **BESIDE)
    return ax


# Loadings over age: the course of each item of a factor, with its interval.

SHOWN = 6  # items of a factor, as many as colours


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
    """Draw the loadings of a factor's strongest items over age, with their intervals.

    Items that change with age have thick lines; each line is labelled at its end.

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
        Label of the age axis.

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
        there = ", ".join(map(str, courses["factor"].unique()))
        raise InputError(f"The courses have no factor {factor!r}; they have {there}.")
    ax = axes_or_new(ax, size=(7.2, 4.4))
    span = 1.0 if ranges is None else (ranges["max"] - ranges["min"]).reindex(own["item"]).to_numpy()
    own = own.assign(**{name: own[name] / span for name in ("loading", "low", "high") if name in own})
    strongest = own.groupby("item", sort=False)["loading"].max().sort_values(ascending=False, kind="stable")
    shown = list(strongest.index[:n_items])
    moved = _changing_items(changes, factor)
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
    for (item, end), place in zip(ends.items(), _spread_out(list(ends.values()), 0.055 * high), strict=True):
        colour = SERIES[shown.index(item) % len(SERIES)]
        label = shortened(label_of(item, items), 40) + (" *" if item in moved else "")
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
    ax.set_title(factor_names([factor], _names_for(names, factor))[0], loc="left", color=ink())
    guides(ax)
    hide_frame(ax)
    ax.spines["bottom"].set_color(faint())
    return ax


def _names_for(names: Any, factor: str) -> Any:
    if names is None or isinstance(names, Mapping):
        return None if names is None else {key: name for key, name in names.items() if key == factor}
    number = factor.removeprefix("factor")
    return [names[int(number) - 1]] if number.isdigit() and int(number) <= len(names) else None


def _changing_items(changes: pd.DataFrame | None, factor: str) -> set[str]:
    if changes is None or factor not in changes.index.get_level_values(0):
        return set()
    own = changes.loc[factor]
    return {str(item) for item in own.index[own["changes"].to_numpy(bool)]}


def label_of(item: str, items: pd.DataFrame | None) -> str:
    """Wording of an item of a codebook, or its name."""
    if items is None or item not in items.index:
        return item
    return item_label(item, str(items.loc[item, "wording"]), bool(items.loc[item, "reverse"]))


def _spread_out(places: list[float], gap: float) -> list[float]:
    """The places moved as little as needed to be at least `gap` apart, in their order."""
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


# The matrices of the model side by side: scores, loadings and answers.


def triptych(
    scores: Any,
    loadings: Any,
    answers: Any,
    *,
    titles: Sequence[str] = ("Scores W", "Loadings Q", "Answers M"),
    axes: Sequence[Axes] | None = None,
) -> Sequence[Axes]:
    """Draw the three matrices of the model: scores, loadings and answers.

    Parameters
    ----------
    scores : array (n, k)
    loadings : array (m, k)
    answers : array (n, m)
        Missing answers stay white.
    axes : sequence of three Axes, optional
        Where to draw; a new figure's by default.

    Examples
    --------
    >>> from icqf.datasets import make_synthetic
    >>> from icqf.plotting import triptych
    >>> data = make_synthetic()
    >>> [ax.get_title() for ax in triptych(data.scores, data.loadings, data.answers)]
    ['Scores W', 'Loadings Q', 'Answers M']
    """
    tables = [np.asarray(table, dtype=float) for table in (scores, loadings, answers)]
    (n, k), (m, k_again), shape = (table.shape for table in tables)
    if k != k_again or shape != (n, m):
        raise InputError(
            f"scores {tables[0].shape}, loadings {tables[1].shape} and answers {shape} do not fit together: "
            "they must be (n, k), (m, k) and (n, m)."
        )
    if axes is None:
        figure = Figure(figsize=(9.6, 4.2), layout="constrained")
        axes = list(figure.subplots(1, 3, width_ratios=(1, 1, 2.2)))
    if len(axes) != 3:
        raise InputError(f"triptych draws into three Axes, not {len(axes)}.")
    words = (("factors", "participants"), ("factors", "items"), ("items", "participants"))
    for ax, table, title, (across, down) in zip(axes, tables, titles, words, strict=True):
        image = ax.imshow(
            table, aspect="auto", interpolation="none", cmap=BLUES, vmin=min(0.0, np.nanmin(table))
        )
        ax.set_title(title)
        ax.set_xlabel(across)
        ax.set_ylabel(down)
        if across == "factors":
            step = max(1, -(-k // 12))
            ax.set_xticks(np.arange(0, k, step), [str(r + 1) for r in range(0, k, step)])
        ax.tick_params(length=0, labelsize=8)
        hide_frame(ax, keep=())
        if ax.figure is not None:
            bar = ax.figure.colorbar(image, ax=ax, location="bottom", shrink=0.8, aspect=18, pad=0.03)
            bar.outline.set_visible(False)
            bar.ax.tick_params(labelsize=7)
    return axes
