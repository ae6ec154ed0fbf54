"""Figures of a report for print, at the width of one or two journal columns."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from icqf.data.confounds import INTERCEPT
from icqf.engines.parallel import closing_quietly, start_calls
from icqf.errors import InputError, did_you_mean, shortened
from icqf.plotting import (
    convergence,
    cv_curve,
    factor_diagram,
    factor_match,
    loading_heatmap,
    score_correlations,
    score_histograms,
    scree,
    split_tree,
    top_items,
)
from icqf.plotting.loadings import grouped_order
from icqf.plotting.style import BLUES, default_settings, item_label, laid_out
from icqf.report.words import Report, Values, changed, eigenvalue_table, printable, table_of

Format = Literal["svg", "pdf", "png", "eps", "tif"]
FORMATS: tuple[str, ...] = get_args(Format)
NAMELESS = ("choice", "scree", "convergence")
WIDTHS = {1: 3.35, 2: 7.0}  # inches: 85 and 178 mm, the columns of most journals
TALLEST = 9.0  # inches for a figure on a page with its caption
_MANY_FACTORS = 8
_ROWS = 60  # labelled items that fit on a page
_SHORT = 26  # characters of labels that fit into two columns of the diagram
_CHARACTER = 0.054  # inches of a letter at 6.5 points, a generous estimate
_WIDE_CHARACTER = 0.057  # the same at 7 points
_BELOW = 0.52  # inches for the colour bar
_PRINT: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.size": 7,
    "axes.titlesize": 8,
    "axes.labelsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "text.parse_math": False,  # a dollar sign does not begin a formula
    "svg.fonttype": "none",
    "svg.hashsalt": "icqf",
    "pdf.fonttype": 42,  # editable text, as journals require
    "ps.fonttype": 42,
}


def draw_figure(
    report: Report, name: str, *, columns: int | None = None, items: int = 5, factor: str | None = None
) -> Figure:
    """Draw one figure of a report at the size of a journal column.

    Parameters
    ----------
    name : str
        One of `figure_names`.
    columns : {1, 2}, optional
        Width in columns of a journal (85 or 178 mm); the default depends on the figure.
    items : int
        Items per factor, in the figure of top items.
    factor : str, optional
        The only factor to show there, by its name, its suggested name, or as factor1.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, draw_figure, figure_names, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(2, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> report = report_of(analyse(model, demo, n_bootstrap=0, compare=False))
    >>> figure_names(report)
    ['heatmap', 'top-items', 'diagram', 'scores', 'correlations', 'convergence']
    >>> round(float(draw_figure(report, "scores", columns=1).get_figwidth()), 2)
    3.35
    """
    names = figure_names(report)
    if name not in names:
        why = "is not among these results" if name in _DRAW else "is not a figure"
        raise InputError(f"{name!r} {why}; these results have {', '.join(names)}.{did_you_mean(name, names)}")
    if columns is not None and columns not in WIDTHS:
        raise InputError(f"columns is {columns}; a figure is 1 or 2 columns wide.")
    width, draw = _DRAW[name]
    report = _printable(report)
    options: dict[str, Any] = {"items": items, "factor": factor} if name == "top-items" else {}
    if name in ("correlations", "factor-analysis") and len(report.model.factors) > _MANY_FACTORS:
        width = 2  # numbers in the cells can be read
    with default_settings(_PRINT):
        return draw(report, WIDTHS[columns or width], **options)


def figure_names(report: Report) -> list[str]:
    """The figures that can be drawn from a report.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import load_demo
    >>> from icqf.report import analyse, figure_names, report_of
    >>> demo = load_demo().select(["q00*", "q01*"])
    >>> model = ICQF(1, item_range=demo.ranges()).fit(demo.keyed_answers(), confounds=demo.confounds)
    >>> figure_names(report_of(analyse(model, demo, n_bootstrap=0, compare=False)))
    ['heatmap', 'top-items', 'diagram', 'scores', 'convergence']
    """
    count = report.count
    has = {
        "heatmap": True,
        "top-items": True,
        "diagram": True,
        "choice": len({each.n_components for each in count.candidates}) > 1,
        "scree": bool(count.eigenvalues) and count.parallel is not None,
        "scores": True,
        "correlations": len(report.model.factors) > 1,
        "factor-analysis": report.comparison is not None and bool(report.comparison.matrix),
        "splits": bool(report.splits),
        "convergence": bool(report.fit.trace),
    }
    return [name for name in _DRAW if has[name]]


def figure_bytes(figure: Figure, format: str, *, dpi: int = 300) -> bytes:
    """A figure as a file, the same bytes for the same figure."""
    if format not in FORMATS:
        raise InputError(
            f"Figures are written as {', '.join(FORMATS)}, not as {format!r}; use one of these endings."
        )
    metadata: dict[str, dict[str, Any]] = {
        "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
        "pdf": dict.fromkeys(("Creator", "Producer", "CreationDate")),
        "png": {"Software": None},
        "eps": {"Creator": "icqf"},
    }
    more: dict[str, Any] = {"metadata": metadata[format]} if format in metadata else {}
    content = io.BytesIO()
    embedded = _fonts_without_layout() if format in ("pdf", "eps") else nullcontext()
    with default_settings(_PRINT), embedded, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")  # letters that the font lacks
        if format == "png":
            more["pil_kwargs"] = {"compress_level": 3}  # a third of the time, slightly larger
        laid_out(figure).savefig(
            content, format="tiff" if format == "tif" else format, dpi=dpi, facecolor="white", **more
        )
    return content.getvalue()


@contextmanager
def _fonts_without_layout() -> Iterator[None]:
    """Embed fonts without layout tables, which take longer to subset than the figure to draw."""
    from fontTools.subset import Options

    before = Options._drop_tables_default
    Options._drop_tables_default = [*before, "GDEF", "GPOS", "GSUB", "MATH"]
    try:
        yield
    finally:
        Options._drop_tables_default = before


@contextmanager
def drawing(folder: Path, report: Report, *, n_jobs: int | None = None) -> Iterator[Callable[[], list[Path]]]:
    """Draw every figure, PNG with 300 dpi, while other work is done; what is yielded waits, and writes them.

    Existing figures without factor names are kept.
    """
    paths = {name: folder / f"{name}.png" for name in figure_names(report)}
    wanted = {name: path for name, path in paths.items() if name not in NAMELESS or not path.exists()}
    calls = ((_drawn, report, name) for name in wanted)
    with closing_quietly(start_calls(calls, n_jobs=n_jobs)) as drawn:

        def write() -> list[Path]:
            folder.mkdir(exist_ok=True)
            for path, content in zip(wanted.values(), drawn, strict=True):
                path.write_bytes(content)
            return list(wanted.values())

        yield write


def _drawn(report: Report, name: str) -> bytes:
    return figure_bytes(draw_figure(report, name), "png")


def _printable(value: Any) -> Any:
    """The report, or a part of it, with texts that can be drawn in one line."""
    if isinstance(value, Values):
        return changed(value, **{name: _printable(part) for name, part in vars(value).items()})
    if isinstance(value, tuple):
        return tuple(map(_printable, value))
    return printable(value) if isinstance(value, str) else value


def _tables(report: Report) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Loadings of factors and confounds, ranges and items, as tables for the plots."""
    index = [row.name for row in report.items]
    view = report.model
    factors, confounds = (
        pd.DataFrame({part.name: [each.value for each in part.loadings] for part in parts}, index=index)
        for parts in (view.factors, view.confounds)
    )
    ranges = pd.DataFrame([(row.low, row.high) for row in report.items], index=index, columns=["min", "max"])
    items = pd.DataFrame(
        [(row.wording, row.reverse, row.subscale) for row in report.items],
        index=index,
        columns=["wording", "reverse", "subscale"],
    )
    return factors, confounds, ranges, items


def _heatmap(report: Report, width: float) -> Figure:
    """All loadings, in two blocks or without labels if there are many (matplotlib's layout is too slow)."""
    factors, confounds, ranges, items = _tables(report)
    confounds = confounds.drop(columns=INTERCEPT, errors="ignore")
    span = (ranges["max"] - ranges["min"]).to_numpy()[:, None]
    shares = factors.to_numpy() / span
    order, groups = grouped_order(items["subscale"].tolist(), shares)
    n_columns = factors.shape[1] + confounds.shape[1]
    labels = len(order) <= _ROWS * (1 if width == WIDTHS[1] else 2)
    blocks = [order] if len(order) <= _ROWS or not labels else _halves(order, groups)
    names = [shortened(name, 30) for name in (*factors.columns, *confounds.columns)]
    above = 0.1 + _CHARACTER * max(map(len, names))
    rows = max(map(len, blocks))
    tall = min(0.135 * rows if labels else min(0.06 * rows, 5.0), TALLEST - above - _BELOW)
    height = above + tall + _BELOW
    margin = (0.2 if len(blocks) > 1 else 0.9) if groups else 0.05  # for the names of subscales
    each = width / len(blocks)
    longest = max(len(item_label(row.name, row.wording, row.reverse)) for row in report.items)
    wanted = 0.1 + _CHARACTER * min(longest, 44)
    left = min(each - margin - 0.12 * n_columns - 0.05, wanted) if labels else 0.08
    most = int((left - 0.1) / _CHARACTER)
    highest = max(float(shares.max(initial=0)), float((confounds.to_numpy() / span).max(initial=0))) or 1.0
    figure = Figure(figsize=(width, height))
    for at, block in enumerate(blocks):
        own = [str(factors.index[j]) for j in block]
        part = tall * len(block) / rows
        ax = figure.add_axes(
            (
                (at * each + left) / width,
                (_BELOW + tall - part) / height,
                (each - left - margin - 0.05) / width,
                part / height,
            )
        )
        loading_heatmap(
            factors.loc[own].set_axis(names[: factors.shape[1]], axis=1),
            confounds=confounds.loc[own] if confounds.shape[1] else None,
            ranges=ranges.loc[own], items=items, order=own, most=most, labels=labels, bar=False,
            highest=highest, ax=ax,
        )  # fmt: skip
        ax.tick_params(axis="x", labelsize=6.5)
        ax.tick_params(axis="y", labelsize=6.5)
        for text in ax.texts:
            text.set(fontsize=6.5, rotation=270 if len(blocks) > 1 else 0)
    colours = ScalarMappable(Normalize(0, highest), BLUES)
    place = figure.add_axes(((width - 2.2) / 2 / width, 0.34 / height, 2.2 / width, 0.07 / height))
    bar = figure.colorbar(colours, cax=place, orientation="horizontal")
    bar.set_label(
        f"loading as a share of the answer range{'; confounds in orange' if confounds.shape[1] else ''}"
    )
    bar.outline.set_visible(False)
    return figure


def _halves(order: list[int], groups: list[tuple[str, int, int]]) -> list[list[int]]:
    """Two blocks of items, split between subscales if these are about equal."""
    half = -(-len(order) // 2)
    ends = [last for _, _, last in groups if len(order) - _ROWS <= last <= _ROWS]
    at = min(ends, key=lambda last: abs(last - half), default=half)
    return [order[:at], order[at:]]


def _top_items(report: Report, width: float, *, items: int, factor: str | None) -> Figure:
    factors, _, ranges, about = _tables(report)
    shown = list(report.model.factors)
    if factor is not None:
        wanted = factor.casefold()
        shown = [
            each for each in shown if wanted in (each.key, each.name.casefold(), each.suggested.casefold())
        ]
        if not shown:
            names = [each.name for each in report.model.factors]
            raise InputError(f"There is no factor {factor!r}.{did_you_mean(factor, names)}")
    side = 1 if width == WIDTHS[1] or len(shown) == 1 else 2
    rows = -(-len(shown) // side)
    tall = min((TALLEST - 0.35) / rows, 0.5 + 0.155 * items)
    height, each = rows * tall + 0.35, width / side
    most = 34 if each < 4 else 60
    rank = {row.name: item_label(row.name, row.wording, row.reverse) for row in report.items}
    longest = max((len(rank[row.item]) for one in shown for row in one.top[:items]), default=0)
    left = 0.12 + _WIDE_CHARACTER * min(longest, most)
    figure = Figure(figsize=(width, height))
    for at, one in enumerate(shown):
        low, high = (
            np.array([getattr(loading, end) for loading in one.loadings], dtype=float)
            for end in ("low", "high")
        )
        row, column = divmod(at, side)
        ax = figure.add_axes(
            (
                (column * each + left) / width,
                (height - (row + 1) * tall + 0.26) / height,
                (each - left - 0.12) / width,
                (tall - 0.46) / height,
            )
        )
        top_items(
            factors[one.name], ranges=ranges, items=about, n=items, title="", most=most, ax=ax,
            intervals=None if np.isnan(low).all() else (low, high),
        )  # fmt: skip
        ax.set_xlabel("")
        title = (column * each + 0.06) / width, (height - row * tall - 0.04) / height
        figure.text(*title, one.name, fontsize=7.5, fontweight="bold", va="top")
    lines = " (lines: 95% intervals)" if report.bootstrap else ""
    figure.text(0.5, 0.08 / height, f"points added at a score of 1{lines}", ha="center", fontsize=7)
    return figure


def _diagram(report: Report, width: float) -> Figure:
    """Factors and their items, on one page: two columns side by side where there are many items."""
    factors, _, ranges, about = _tables(report)
    longest = max(len(item_label(row.name, row.wording, row.reverse)) for row in report.items)
    many = len(report.items) > _ROWS // 2 or longest <= _SHORT
    side = 2 if width == WIDTHS[2] and many and factors.shape[1] > 1 else 1
    figure = Figure(figsize=(width, TALLEST))
    ax = figure.add_axes((0.0, 0.3 / TALLEST, 1.0, (TALLEST - 0.35) / TALLEST))
    row = 0.132 if len(report.items) > _ROWS // 2 else 0.17
    most = int(0.5 * width / side / _CHARACTER)
    names = [re.sub(r"^Factor \d+ \((.+)\)$", r"\1", name) for name in factors.columns]
    factor_diagram(
        factors, ranges=ranges, items=about, names=names, columns=side, rows=int((TALLEST - 0.35) / row),
        most=most, ax=ax,
    )  # fmt: skip
    height = min(TALLEST, row * ax.get_ylim()[0] + 0.35)
    figure.set_size_inches(width, height)
    ax.set_position((0.0, 0.3 / height, 1.0, (height - 0.35) / height))
    note = "numbers: loadings as shares of the answer range, from 0.2; also: other factors of the item"
    figure.text(
        0.5, 0.08 / height, note if width == WIDTHS[2] else note.split(";")[0], ha="center", fontsize=6.5
    )
    return figure


def _plain(draw: Callable[[Report, Any], Any], height: float) -> Callable[..., Figure]:
    def drawing(report: Report, width: float) -> Figure:
        figure = Figure(figsize=(width, height * (1.0 if width == WIDTHS[1] else 1.35)), layout="constrained")
        draw(report, figure.add_subplot())
        return figure

    return drawing


def _choice(report: Report, ax: Any) -> None:
    count = report.count
    cv_curve(table_of(count.candidates), chosen=(count.n_components, count.beta), every=False, ax=ax)


def _scree(report: Report, ax: Any) -> None:
    scree(eigenvalue_table(report.count), kept=report.count.parallel, ax=ax)


def _placed(width: float, tall: float, *, left: float, right: float, below: float, above: float) -> Any:
    """Axes of a new figure, `tall` inches high, with these margins for labels."""
    height = tall + below + above
    figure = Figure(figsize=(width, height))
    return figure.add_axes((left / width, below / height, (width - left - right) / width, tall / height))


def _room(names: Sequence[str], most: float) -> float:
    """Inches for the longest of these labels, at most `most`."""
    return min(most, 0.12 + _WIDE_CHARACTER * max(map(len, names)))


def _fitting(names: Sequence[str], most: float) -> list[str]:
    """These labels, shortened to `most` inches."""
    return [shortened(name, int((most - 0.12) / _WIDE_CHARACTER)) for name in names]


def _scores(report: Report, width: float) -> Figure:
    factors = report.scores.factors
    names = _fitting([factor.name for factor in factors], 0.8 * width)
    tall = min(TALLEST - 0.5, 0.46 * len(factors))
    ax = _placed(width, tall, left=0.12, right=0.12, below=0.42, above=0.05)
    counts = pd.DataFrame({factor.name: factor.histogram for factor in factors})
    statistics = pd.DataFrame(
        [(factor.median, factor.none) for factor in factors], index=counts.columns, columns=["median", "none"]
    )
    score_histograms(counts, statistics, top=report.scores.top, names=names, ax=ax)
    ax.set_xlabel("score (line: median)")
    return ax.figure


def _matrix_axes(rows: Sequence[str], columns: Sequence[str], width: float, *, below: float) -> Any:
    """Axes for square cells with labels on the left and slanted ones below."""
    left = _room(rows, 0.55 * width)
    side = min((width - left - 0.08) / len(columns), (TALLEST - below) / len(rows))
    return _placed(
        width, side * len(rows), left=left, right=width - left - side * len(columns), below=below, above=0.06
    )


def _correlations(report: Report, width: float) -> Figure:
    names = [factor.name for factor in report.scores.factors]
    table = pd.DataFrame(report.scores.correlations, index=names, columns=names)
    numbers = [str(at + 1) for at in range(len(names))]
    numbered = [name if re.match(r"Factor \d", name) else f"{at}  {name}" for at, name in enumerate(names, 1)]
    shown = _fitting(numbered, 0.55 * width)
    ax = _matrix_axes(shown, numbers, width, below=0.22)
    score_correlations(table, names=shown, ax=ax).set_title("", loc="left")
    ax.set_xticks(ax.get_xticks(), numbers, rotation=0, ha="center")
    return ax.figure


def _factor_analysis(report: Report, width: float) -> Figure:
    comparison = report.comparison
    if comparison is None:
        raise InputError("There is no factor analysis to draw.")
    others = [f"FA {at + 1}" for at in range(len(comparison.matrix[0]))]
    names = [factor.name for factor in report.model.factors]
    pairs = pd.DataFrame(
        [(pair.factor, pair.other) for pair in comparison.pairs], columns=["factor_a", "factor_b"]
    )
    shown = _fitting(names, 0.55 * width)
    ax = _matrix_axes(shown, others, width, below=0.55)
    factor_match(
        pd.DataFrame(comparison.matrix, index=names, columns=others), pairs=pairs, names_a=shown,
        label_a="", label_b="factor analysis", ax=ax,
    )  # fmt: skip
    return ax.figure


def _splits(report: Report, width: float) -> Figure:
    links = table_of(report.splits)
    largest = max(report.models, key=lambda view: view.n_components)
    names = [factor.name for factor in largest.factors] if largest is report.model else None
    figure = Figure(figsize=(width, min(TALLEST, 0.3 * largest.n_components + 0.8)), layout="constrained")
    split_tree(links, names=names, ax=figure.add_subplot())
    return figure


def _convergence(report: Report, ax: Any) -> None:
    convergence(pd.DataFrame({"step": report.fit.trace}), tol=report.fit.tol, ax=ax)


# Default width in journal columns, and the function that draws it.
_DRAW: dict[str, tuple[int, Callable[..., Figure]]] = {
    "heatmap": (2, _heatmap),
    "top-items": (2, _top_items),
    "diagram": (2, _diagram),
    "choice": (1, _plain(_choice, 2.4)),
    "scree": (1, _plain(_scree, 2.4)),
    "scores": (1, _scores),
    "correlations": (1, _correlations),
    "factor-analysis": (1, _factor_analysis),
    "splits": (2, _splits),
    "convergence": (1, _plain(_convergence, 2.2)),
}
