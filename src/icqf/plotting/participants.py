"""The participants' scores, and which answers are missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from icqf.errors import InputError
from icqf.plotting.loadings import grouped_order, subscales_of
from icqf.plotting.style import (
    BESIDE,
    FACTOR,
    MARKERS,
    SERIES,
    Names,
    axes_or_new,
    correlation_cells,
    factor_names,
    factor_table,
    faint,
    guides,
    hide_frame,
    ink,
    muted,
    require_columns,
)

_BARS = 40  # of a distribution of scores


def score_distributions(scores: Any, *, names: Names = None, ax: Axes | None = None) -> Axes:
    """Draw the distribution of each factor's scores above 0, with the share at 0 on the right.

    Parameters
    ----------
    scores : DataFrame or array (n, k)
    names : sequence or mapping, optional
        Names of the factors.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.plotting import score_distributions
    >>> ax = score_distributions(np.random.default_rng(0).random((100, 3)))
    >>> [text.get_text() for text in ax.texts][::2]
    ['Factor 1', 'Factor 2', 'Factor 3']
    """
    table = factor_table(scores).dropna()
    edges = np.linspace(0, float(table.to_numpy().max(initial=1.0)), _BARS + 1)
    counts = {name: np.histogram(column[column > 0], edges)[0] for name, column in table.items()}
    statistics = pd.DataFrame({"median": table.median(), "none": (table <= 0).mean()})
    return score_histograms(pd.DataFrame(counts), statistics, names=names, top=float(edges[-1]), ax=ax)


def score_histograms(
    counts: pd.DataFrame,
    factors: pd.DataFrame,
    *,
    names: Names = None,
    top: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw histograms of the scores above 0, one row per factor, from counts alone.

    Parameters
    ----------
    counts : DataFrame (bars, k)
        Participants with a score within each bar, one column per factor.
    factors : DataFrame (k, 2)
        The ``median`` score of each factor, and the share of participants with ``none`` of it.
    names : sequence or mapping, optional
        Names of the factors.
    top : float
        Where the last bar ends.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import score_histograms
    >>> statistics = pd.DataFrame({"median": [0.3], "none": [0.2]}, index=["factor1"])
    >>> score_histograms(pd.DataFrame({"factor1": [5, 9, 2]}), statistics).get_xlabel()
    'score (the line marks the median participant)'
    """
    k = counts.shape[1]
    ax = axes_or_new(ax, size=(6.4, 0.9 + 0.52 * k))
    edges, shown = np.linspace(0, top, len(counts) + 1), factor_names(counts.columns, names)
    for row, column in enumerate(counts.columns):
        heights = counts[column].to_numpy(dtype=float)
        heights = heights * 0.6 / max(heights.max(initial=0.0), 1e-12)
        base = row + 0.42
        outline = base - np.repeat(heights, 2)
        ax.fill_between(np.repeat(edges, 2)[1:-1], base, outline, color=FACTOR, alpha=0.75, linewidth=0)
        ax.axhline(base, color=faint(), linewidth=0.8, zorder=0)
        median, none = (float(factors[name][column]) for name in ("median", "none"))
        if heights.any():
            ax.plot([median, median], [base, base - 0.6], color=ink(), linewidth=1.4)
        above: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "bottom"}
        ax.annotate(shown[row], (0, base - 0.66), fontsize=mpl.rcParams["axes.labelsize"], **above)
        ax.annotate(f"{none:.0%} at 0", (1, base - 0.66), fontsize=7, color=muted(), ha="right", **above)
    ax.set_yticks([])
    ax.set_ylim(k - 0.45, -0.6)
    ax.set_xlim(0, edges[-1])
    ax.set_xlabel("score (the line marks the median participant)")
    hide_frame(ax, keep=("bottom",))
    return ax


def score_correlations(correlations: pd.DataFrame, *, names: Names = None, ax: Axes | None = None) -> Axes:
    """Draw the correlations between the participants' scores.

    They describe the scores in this sample; they are not the factor correlations of a factor analysis.

    Parameters
    ----------
    correlations : DataFrame (k, k)
        Such as ``scores.corr()``.
    names : sequence or mapping, optional
        Names of the factors.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from icqf.plotting import score_correlations
    >>> scores = pd.DataFrame(np.random.default_rng(0).random((100, 3)))
    >>> score_correlations(scores.corr()).get_title(loc="left")
    'Correlations between scores'
    """
    k = len(correlations)
    if correlations.shape != (k, k):
        raise InputError(
            f"correlations has {correlations.shape[0]} rows and {correlations.shape[1]} columns; give the "
            "correlations between scores, as in scores.corr()."
        )
    ax = axes_or_new(ax, size=(1.9 + 0.5 * k, 1.5 + 0.46 * k))
    labels = factor_names(correlations.columns, names)
    below = np.where(np.tri(k, dtype=bool), correlations.to_numpy(dtype=float), np.nan)
    correlation_cells(ax, below, labels, labels)
    ax.set_title("Correlations between scores", loc="left")
    return ax


def missingness_map(answers: Any, *, items: pd.DataFrame | None = None, ax: Axes | None = None) -> Axes:
    """Draw which answers are missing, one row per participant, most missing first.

    Parameters
    ----------
    answers : DataFrame or array (n, m)
        NaN is missing.
    items : DataFrame, optional
        Indexed by item, with a column ``subscale``, such as ``questionnaire.item_table()``: items are then
        grouped by subscale.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.plotting import missingness_map
    >>> answers = np.ones((50, 10))
    >>> answers[:5, 2] = np.nan
    >>> missingness_map(answers).get_title(loc="left")
    '1.0% of the answers are missing'
    """
    table = pd.DataFrame(answers)
    missing = table.isna().to_numpy()
    groups: list[tuple[str, int, int]] = []
    if items is not None:
        order, groups = grouped_order(subscales_of(table.columns, items))
        missing = missing[:, order]
    by_participant = np.argsort(-missing.sum(axis=1), kind="stable")
    ax = axes_or_new(ax)
    image = missing[by_participant].astype(float)
    colours = ListedColormap(["#f0f2f5", FACTOR])
    ax.imshow(image, aspect="auto", interpolation="none", cmap=colours, vmin=0, vmax=1)
    for name, first, last in groups:
        if first:
            ax.axvline(first - 0.5, color=muted(), linewidth=0.6)
        ax.annotate(
            name, ((first + last - 1) / 2, len(image)), (4, -4), fontsize=7, textcoords="offset points",
            ha="right", va="top", rotation=40, rotation_mode="anchor", annotation_clip=False, color=ink(),
        )  # fmt: skip
    ax.set_xticks([])
    ax.set_xlabel("" if groups else "items")
    ax.set_ylabel("participants, most missing first")
    ax.set_title(f"{missing.mean():.1%} of the answers are missing", loc="left")
    hide_frame(ax, keep=())
    return ax


def score_courses(
    table: pd.DataFrame,
    *,
    places: Any = None,
    names: Names = None,
    age: str = "visit",
    ax: Axes | None = None,
) -> Axes:
    """Draw each factor's scores over the visits: the mean, and a bar.

    Parameters
    ----------
    table : DataFrame
        One row per factor and bin: ``factor``, ``bin``, ``mean``, and the ends of the bar, ``low`` and
        ``high``.
    places : sequence of float, optional
        Position of each bin on the axis; by default one after the other.
    names : sequence or mapping, optional
        Names of the factors.
    age : str
        Label of the axis.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import score_courses
    >>> table = pd.DataFrame({"factor": "factor1", "bin": ["0", "6"], "mean": [0.5, 0.3],
    ...                       "low": [0.2, 0.1], "high": [0.7, 0.4]})
    >>> score_courses(table).get_xlabel()
    'visit'
    """
    require_columns(table, ("factor", "bin", "mean", "low", "high"), "table", "mean scores by visit")
    ax = axes_or_new(ax, size=(7.2, 3.6))
    bins = list(dict.fromkeys(table["bin"]))
    x = np.arange(len(bins), dtype=float) if places is None else np.asarray(places, dtype=float)
    factors = list(dict.fromkeys(table["factor"]))
    step = 0.015 * max(float(np.ptp(x)), 1.0)  # so that bars of several factors do not hide each other
    for at, (factor, label) in enumerate(zip(factors, factor_names(factors, names), strict=True)):
        own = table[table["factor"] == factor].set_index("bin").loc[bins]
        colour, moved = SERIES[at % len(SERIES)], x + step * (at - (len(factors) - 1) / 2)
        ax.vlines(moved, own["low"], own["high"], color=colour, alpha=0.45, linewidth=2.5)
        ax.plot(
            moved, own["mean"], color=colour, marker=MARKERS[at % len(MARKERS)], markersize=5, label=label
        )
    ax.set_xticks(x, bins)
    ax.set_ylim(0, max(1.0, float(table["high"].max())))
    ax.set_xlabel(age)
    ax.set_ylabel("Score")
    ax.legend(frameon=False, **BESIDE)
    hide_frame(ax)
    return ax


def percentile_curves(
    table: pd.DataFrame, *, across: str, panels: Sequence[str] | None = None, figure: Figure | None = None
) -> Figure:
    """Draw scores at percentiles against a covariate such as age, one panel per group.

    Parameters
    ----------
    table : DataFrame
        One row per place: the column `across`, and columns p5, p25 and so on with scores.
    across : str
        Column of the covariate.
    panels : sequence of str, optional
        The group of each row; none for one panel.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import percentile_curves
    >>> table = pd.DataFrame({"age": [6, 18], "p25": [0.1, 0.2], "p75": [0.4, 0.6]})
    >>> len(percentile_curves(table, across="age").axes)
    1
    """
    columns = [name for name in table.columns if re.fullmatch(r"p\d+", str(name))]
    require_columns(table, [across], "percentile_curves", "the norms.csv of icqf norms")
    labels = [""] * len(table) if panels is None else list(panels)
    names = list(dict.fromkeys(labels))
    figure = (
        Figure(figsize=(4.0 * min(len(names), 3) + 0.6, 3.4), layout="constrained")
        if figure is None
        else figure
    )
    rows = -(-len(names) // 3)
    axes = figure.subplots(rows, min(len(names), 3), sharey=True, squeeze=False).ravel()
    for ax, name in zip(axes, names, strict=False):
        mine = table[[label == name for label in labels]]
        for at, column in enumerate(columns):
            middle = abs(2 * at - len(columns) + 1) / max(len(columns) - 1, 1)
            ax.plot(
                mine[across], mine[column], color=FACTOR, linewidth=2.2 - 1.2 * middle, alpha=1 - 0.5 * middle
            )
        ends = mine[columns].iloc[-1]
        apart = ends.diff().abs().gt(0.03 * np.ptp(table[columns].to_numpy())).cumsum()
        for _, same in ends.groupby(apart.to_numpy()):  # curves that end in one place have one label
            ax.annotate(
                ", ".join(column[1:] for column in same.index),
                (mine[across].iloc[-1], same.mean()),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=ink(),
            )
        ax.set_title(name, loc="left", fontsize=10)
        ax.set_xlabel(across)
        hide_frame(ax)
        guides(ax)
    for ax in axes[len(names) :]:
        ax.set_visible(False)
    axes[0].set_ylabel("score at percentile")
    return figure
