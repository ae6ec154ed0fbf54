"""Comparisons: prediction against sample size, factors of two models, and how factors split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from icqf.errors import InputError
from icqf.evaluation.summaries import bands
from icqf.plotting.style import (
    BOTH_WAYS,
    FACTOR,
    MARKERS,
    SERIES,
    axes_or_new,
    bare,
    factor_names,
    guides,
    ink,
    muted,
    readable_on,
    shortened,
)
from icqf.resampling.halves import correlations
from icqf.resampling.matching import match_factors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Names = Sequence[str] | Mapping[str, str] | None


def auc_by_sample_size(table: pd.DataFrame, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Draw the area under the ROC curve against the share of the sample: `by_sample_size` of column ``auc``.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import auc_by_sample_size
    >>> table = pd.DataFrame({"method": ["ICQF"] * 4, "size": [0.2, 0.2, 1, 1], "auc": [.7, .72, .8, .81]})
    >>> auc_by_sample_size(table).get_ylabel()
    'mean AUC'
    """
    return by_sample_size(table, "auc", label="mean AUC", level=level, ax=ax)


def by_sample_size(
    table: pd.DataFrame, value: str, *, label: str = "", level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Draw a value against the share of the sample, a line and a band for each method.

    Parameters
    ----------
    table : DataFrame
        Columns ``method``, ``size`` and `value`, a repetition a row. With columns ``low`` and ``high`` beside
        them, one row a method and size, those are the band.
    value : str
        The column to draw.
    label : str
        What to call it; its own name by default.
    level : float
        Coverage of the band, where it is worked out from repetitions (t interval of their mean).
    ax : Axes, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import by_sample_size
    >>> table = pd.DataFrame({"method": "ICQF", "size": [0.2, 0.2, 0.8, 0.8], "r": [.7, .72, .8, .81]})
    >>> by_sample_size(table, "r").get_ylabel()
    'r'
    """
    lacking = {"method", "size", value} - set(table.columns)
    if lacking:
        raise InputError(f"The table lacks the column {sorted(lacking)[0]!r}; give method, size and {value}.")
    ax = axes_or_new(ax, size=(5.6, 4.0))
    rows = table if {"low", "high"} <= set(table.columns) else bands(table, value, level=level)
    methods = list(dict.fromkeys(rows["method"]))
    for at, method in enumerate(methods):
        mine = rows[rows["method"] == method].sort_values("size")
        colour, x = SERIES[at % len(SERIES)], mine["size"].to_numpy(dtype=float)
        ax.fill_between(x, mine["low"], mine["high"], color=colour, alpha=0.18, linewidth=0)
        ax.plot(
            x, mine[value], color=colour, marker=MARKERS[at % len(MARKERS)], markersize=4.5, linewidth=1.7,
            label=str(method),
        )  # fmt: skip
    sizes = sorted(rows["size"].unique())
    ax.set_xticks(sizes)
    if max(sizes) <= 1:
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.set_xlabel("share of the sample")
    else:
        ax.set_xlabel("participants")
    ax.set_ylabel(label or value)
    bare(ax)
    guides(ax)
    ax.legend(frameon=False, fontsize=8, loc="best")
    return ax


def by_method(table: pd.DataFrame, value: str, *, label: str = "", ax: Axes | None = None) -> Axes:
    """Draw a value of every repetition as a dot, a column for each method, with the mean as a line.

    Parameters
    ----------
    table : DataFrame
        Columns ``method`` and `value`, a repetition a row.
    value : str
        The column to draw.
    label : str
        What to call it; its own name by default.
    ax : Axes, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import by_method
    >>> ax = by_method(pd.DataFrame({"method": ["ICQF", "ICQF", "FA"], "r": [0.9, 0.8, 0.7]}), "r")
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['ICQF', 'FA']
    """
    ax = axes_or_new(ax, size=(4.8, 3.8))
    methods = list(dict.fromkeys(table["method"]))
    for at, method in enumerate(methods):
        values = table.loc[table["method"] == method, value].to_numpy(dtype=float)
        beside = 0.28 * (np.arange(len(values)) / max(len(values) - 1, 1) - 0.5)
        ax.plot(at + beside, values, "o", color=SERIES[at % len(SERIES)], markersize=4, alpha=0.7)
        ax.hlines(values.mean(), at - 0.3, at + 0.3, color=ink(), linewidth=1.5)
    ax.set_xticks(range(len(methods)), methods)
    ax.set_xlim(-0.6, len(methods) - 0.4)
    ax.set_ylabel(label or value)
    bare(ax)
    guides(ax)
    return ax


def factor_match(
    a: Any,
    b: Any,
    *,
    names_a: Names = None,
    names_b: Names = None,
    label_a: str = "first model",
    label_b: str = "second model",
    ax: Axes | None = None,
) -> Axes:
    """Draw how the factors of two models correspond: correlations of loadings, matched pairs framed.

    Parameters
    ----------
    a, b : fitted model or loadings (items × factors)
        As for `icqf.evaluation.match_factors`.
    names_a, names_b : sequence or mapping, optional
    label_a, label_b : str
        What to call the two models.
    ax : Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.plotting import factor_match
    >>> loadings = np.random.default_rng(0).random((20, 3))
    >>> factor_match(loadings, loadings[:, ::-1]).get_ylabel()
    'first model'
    """
    match = match_factors(a, b, method="optimal")
    left, right = _table(a), _table(b)
    if _named(a) and _named(b):
        shared = left.index.intersection(right.index, sort=False)
        left, right = left.loc[shared], right.loc[shared]
    rows = list(left.columns)
    partner = dict(zip(match.pairs["factor_a"], match.pairs["factor_b"], strict=True))
    columns = [partner[row] for row in rows if row in partner]
    columns += [name for name in right.columns if name not in columns]
    values = correlations(left[rows].to_numpy().T, right[columns].to_numpy().T)
    shown_a = dict(zip(left.columns, factor_names(left.columns, names_a), strict=True))
    shown_b = dict(zip(right.columns, factor_names(right.columns, names_b), strict=True))
    ax = axes_or_new(ax, size=(2.2 + 0.5 * len(columns), 1.7 + 0.46 * len(rows)))
    mesh = ax.pcolormesh(values, cmap=BOTH_WAYS, norm=Normalize(-1, 1), edgecolors="face", linewidth=0.2)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            colour = readable_on(mesh.cmap(mesh.norm(values[i, j])))
            text = f"{values[i, j]:.2f}".replace("0.", ".", 1).replace("-0", "-", 1)
            ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=8, color=colour)
            if partner.get(row) == column:
                ax.add_patch(Rectangle((j, i), 1, 1, fill=False, edgecolor=ink(), linewidth=1.8, zorder=4))
    ax.set_xticks(
        np.arange(len(columns)) + 0.5, [shown_b[name] for name in columns], rotation=45, ha="right",
        rotation_mode="anchor",
    )  # fmt: skip
    ax.set_yticks(np.arange(len(rows)) + 0.5, [shown_a[name] for name in rows])
    ax.tick_params(length=0)
    ax.set_ylim(len(rows), 0)
    ax.set_aspect("equal")
    ax.set_xlabel(label_b)
    ax.set_ylabel(label_a)
    bare(ax, keep=())
    return ax


def _named(source: Any) -> bool:
    return isinstance(getattr(source, "loadings_", source), pd.DataFrame)


def _table(source: Any) -> pd.DataFrame:
    values = getattr(source, "loadings_", source)
    return values if isinstance(values, pd.DataFrame) else pd.DataFrame(np.asarray(values, dtype=float))


def split_links(models: Sequence[Any]) -> list[tuple[int, int, int, int, float]]:
    """Correlations between the loadings of models one after another.

    Returns
    -------
    list of (level, factor, next_factor, best, correlation)
        Between model `level` and the next; `best` is 1 for the parent a factor resembles most.
    """
    links = []
    for level, (first, second) in enumerate(pairwise(models)):
        values = correlations(first.components_, second.components_)
        for r in range(values.shape[0]):
            for s in range(values.shape[1]):
                best = int(r == int(values[:, s].argmax()))
                links.append((level, r, s, best, float(values[r, s])))
    return links


def split_tree(
    models: Sequence[Any], *, names: Names = None, least: float = 0.4, ax: Axes | None = None
) -> Axes:
    """Draw how factors split as their number grows.

    Each column is a model; a line joins two factors whose loadings correlate by more than `least`, and is
    thicker the more they do. The number of each factor is its rank in its model.

    Parameters
    ----------
    models : sequence of fitted ICQF
        Fits of the same items; they are put in order of their number of factors.
    names : sequence or mapping, optional
        Names of the factors of the model with most factors, written beside them.
    least : float
        Weakest correlation drawn; the closest parent of each factor is always drawn.
    ax : Axes, optional

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_synthetic
    >>> from icqf.plotting import split_tree
    >>> answers = make_synthetic(n=100, m=30, k=4, random_state=0).answers
    >>> models = [ICQF(k, item_range=(0, 100)).fit(answers) for k in (2, 3, 4)]
    >>> split_tree(models).get_xlabel()
    'number of factors'
    """
    models = sorted(models, key=lambda model: len(model.components_))
    if len(models) < 2:
        raise InputError("A tree of factors needs at least two fitted models.")
    if len({model.components_.shape[1] for model in models}) > 1:
        raise InputError("The models are of different items; a tree needs fits of the same items.")
    ks = [len(model.components_) for model in models]
    links = split_links(models)
    height = _heights(ks, links)
    ax = axes_or_new(ax, size=(1.3 * len(ks) + 1.8, 0.46 * max(ks) + 1.1))
    ease = np.linspace(0, 1, 24)
    bend = 3 * ease**2 - 2 * ease**3
    for level, r, s, best, value in sorted(links, key=lambda link: link[4]):
        if value >= least or best:
            y0, y1 = height[level][r], height[level + 1][s]
            weak = value < least
            ax.plot(
                level + ease, y0 + (y1 - y0) * bend, color=muted() if weak or not best else FACTOR,
                linewidth=0.8 if weak else 0.6 + 4.5 * (value - least) / (1 - least),
                linestyle=":" if weak else "-", alpha=0.85 if best else 0.45, solid_capstyle="round",
                zorder=1,
            )  # fmt: skip
    for level, k in enumerate(ks):
        ax.scatter(np.full(k, level), height[level], s=210, color=FACTOR, edgecolors="white", zorder=2)
        for r in range(k):
            ax.text(level, height[level][r], str(r + 1), ha="center", va="center", color="white",
                    fontsize=8, fontweight="bold", zorder=3)  # fmt: skip
    if names is not None:
        shown = factor_names(models[-1].get_feature_names_out(), names)
        for r, text in enumerate(shown):
            ax.annotate(
                shortened(text, 40), (len(ks) - 1, height[-1][r]), (12, 0), textcoords="offset points",
                va="center", fontsize=8, annotation_clip=False,
            )  # fmt: skip
    ax.set_xticks(range(len(ks)), [str(k) for k in ks])
    ax.set_yticks([])
    ax.set_xlim(-0.3, len(ks) - 0.7)
    ax.set_ylim(max(ks) - 0.4, -0.6)
    ax.set_xlabel("number of factors")
    bare(ax, keep=())
    ax.tick_params(length=0)
    return ax


def _heights(ks: Sequence[int], links: list[tuple[int, int, int, int, float]]) -> list[np.ndarray]:
    """Where each factor stands, spread evenly and near its parent, so that few lines cross."""
    top = max(ks)
    rank = np.arange(ks[0], dtype=float)
    ranks = [rank]
    for level in range(len(ks) - 1):
        weight = np.zeros((ks[level], ks[level + 1]))
        for at, r, s, _, value in links:
            if at == level:
                weight[r, s] = max(value, 0.0) ** 4 + 1e-12
        wanted = (weight * rank[:, None]).sum(axis=0) / weight.sum(axis=0)
        rank = np.empty(ks[level + 1])
        rank[np.argsort(wanted, kind="stable")] = np.arange(ks[level + 1])
        ranks.append(rank)
    return [(rank + 0.5) * top / k - 0.5 for rank, k in zip(ranks, ks, strict=True)]
