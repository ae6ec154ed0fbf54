"""Comparisons of candidates, methods, sample sizes, lengths of forms, fits, and levels of a battery."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator, NullFormatter, PercentFormatter

from icqf.errors import InputError, counted, shortened
from icqf.plotting.style import (
    CHOSEN,
    FACTOR,
    MARKERS,
    SERIES,
    Names,
    PowersOfTen,
    axes_or_new,
    correlation_cells,
    factor_names,
    guides,
    hide_frame,
    ink,
    labelled,
    muted,
    palette,
    require_columns,
)

_MOST_TICKS = 12
_ERRORS = ("number of factors", "squared error of hidden answers")


def cv_curve(
    errors: pd.DataFrame,
    *,
    chosen: tuple[int, float] | None = None,
    every: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw the cross-validated error against the number of factors, one line per penalty.

    Bars are standard errors; the choice is ringed.

    Parameters
    ----------
    errors : DataFrame
        Columns ``n_components``, ``beta``, ``error`` and ``standard_error``, such as ``search.errors_``.
    chosen : (int, float), optional
        The choice, such as ``(search.n_components_, search.beta_)``.
    every : bool
        Whether to draw one line per penalty. Otherwise there is one line, with each number of factors at its
        best penalty.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import cv_curve
    >>> errors = pd.DataFrame({"n_components": [1, 2, 3], "beta": 0.1, "error": [0.9, 0.4, 0.5],
    ...                        "standard_error": 0.05})
    >>> cv_curve(errors, chosen=(2, 0.1)).get_xlabel()
    'number of factors'
    """
    require_columns(errors, ("n_components", "beta", "error", "standard_error"), "errors", "search.errors_")
    ax = axes_or_new(ax)
    if not every:
        return _best_curve(errors, chosen, ax)
    betas = sorted(errors["beta"].unique())
    shift = 0.24 / max(len(betas) - 1, 1)
    for at, (beta, colour) in enumerate(zip(betas, palette(len(betas)), strict=True)):
        rows = errors[errors["beta"] == beta].sort_values("n_components")
        x = rows["n_components"].to_numpy(dtype=float) + (shift * at - 0.12 if len(betas) > 1 else 0.0)
        ax.errorbar(
            x, rows["error"], yerr=rows["standard_error"], color=colour, marker=MARKERS[at % len(MARKERS)],
            markersize=4, linewidth=1.4, elinewidth=0.9, capsize=2, label=f"β = {beta:g}",
        )  # fmt: skip
        if chosen is not None and beta == chosen[1]:
            here = rows["n_components"].to_numpy() == chosen[0]
            _ring(ax, x[here], rows["error"].to_numpy()[here], int(chosen[0]))
    return labelled(ax, *_ERRORS, whole=True, legend={})


def _best_curve(errors: pd.DataFrame, chosen: tuple[int, float] | None, ax: Axes) -> Axes:
    best = errors.loc[errors.groupby("n_components")["error"].idxmin()].sort_values("n_components")
    if chosen is not None:  # a rule may choose a penalty other than the best
        here = errors[(errors["n_components"] == chosen[0]) & (errors["beta"] == chosen[1])]
        best = pd.concat([best[best["n_components"] != chosen[0]], here]).sort_values("n_components")
    x, y = best["n_components"].to_numpy(dtype=float), best["error"].to_numpy(dtype=float)
    ax.errorbar(
        x, y, yerr=best["standard_error"], color=SERIES[0], marker="o", markersize=4, linewidth=1.4,
        elinewidth=0.9, capsize=2,
    )  # fmt: skip
    if chosen is not None:
        here = x == chosen[0]
        _ring(ax, x[here], y[here], int(chosen[0]))
        for k, error in zip(x[here], y[here], strict=True):
            ax.annotate(
                f"{counted(int(k), 'factor')} chosen", (k, error), (0, -9), textcoords="offset points",
                ha="center", va="top", fontsize=8, color=ink(),
            )  # fmt: skip
    ax.margins(y=0.2)
    across = f"{_ERRORS[0]} (below: its best penalty β)"
    labelled(ax, across, _ERRORS[1])
    every = -(-len(x) // _MOST_TICKS)  # labels of all numbers would touch
    ax.set_xticks(
        x[::every], [f"{k:g}\n{beta:g}" for k, beta in zip(x[::every], best["beta"][::every], strict=True)]
    )
    return ax


def _ring(ax: Axes, x: Any, y: Any, k: int) -> None:
    ax.plot(
        x, y, "o", markersize=13, fillstyle="none", color=ink(), markeredgewidth=1.4,
        label=f"chosen: {counted(k, 'factor')}",
    )  # fmt: skip


def error_and_stability(
    errors: pd.DataFrame, stability: pd.DataFrame, *, chosen: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the error of each number of factors at its best penalty, and the stability of its factors.

    Left axis: error of hidden answers, with standard errors. Right axis: agreement between halves of the
    sample, with a band that holds 80%. The choice is ringed.

    Parameters
    ----------
    errors : DataFrame
        Columns ``n_components``, ``beta``, ``error`` and ``standard_error``, such as ``search.errors_``.
    stability : DataFrame
        Columns ``n_components``, ``beta``, ``agreement``, ``low`` and ``high``, one row per number of
        factors, such as ``search.stability_``. The errors of these candidates are drawn.
    chosen : int, optional
        The number of factors chosen.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import error_and_stability
    >>> errors = pd.DataFrame({"n_components": [1, 2, 3], "beta": 0.1, "error": [0.9, 0.4, 0.5],
    ...                        "standard_error": 0.05})
    >>> halves = errors[["n_components", "beta"]].assign(agreement=[0.9, 0.95, 0.7], low=0.6, high=1.0)
    >>> error_and_stability(errors, halves, chosen=2).get_ylabel()
    'squared error of hidden answers'
    """
    if stability is None:
        raise InputError("There is no stability to draw; fit the search with stability=True.")
    errors = errors.merge(stability[["n_components", "beta"]]).sort_values("n_components")
    ax = axes_or_new(ax)
    first, second = palette(2)
    ax.errorbar(
        errors["n_components"], errors["error"], yerr=errors["standard_error"], color=first, marker="o",
        markersize=4, linewidth=1.4, elinewidth=0.9, capsize=2, label="error (left)",
    )  # fmt: skip
    if chosen is not None:
        here = errors[errors["n_components"] == chosen]
        _ring(ax, here["n_components"], here["error"], chosen)
    right = ax.twinx()
    right.plot(stability["n_components"], stability["agreement"], color=second, marker="s", markersize=4,
               linewidth=1.4, label="agreement between halves (right)")  # fmt: skip
    right.fill_between(
        stability["n_components"], stability["low"], stability["high"], color=second, alpha=0.15, linewidth=0
    )
    right.set_ylim(min(0.0, float(stability["low"].min())), 1.02)
    right.set_ylabel("agreement of loadings")
    right.spines["top"].set_visible(False)
    both = zip(ax.get_legend_handles_labels(), right.get_legend_handles_labels(), strict=True)
    handles, labels = (mine + other for mine, other in both)
    above = {"ncols": 3, "loc": "lower center", "bbox_to_anchor": (0.5, 1)}
    return labelled(ax, *_ERRORS, whole=True, legend={"handles": handles, "labels": labels, **above})


def scree(curve: pd.DataFrame, *, kept: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw the eigenvalues and those of unrelated answers (parallel analysis).

    Parameters
    ----------
    curve : DataFrame
        Columns ``n_components``, ``eigenvalue`` and ``random_eigenvalue``, such as the `curve` of
        `icqf.baselines.parallel_analysis`.
    kept : int, optional
        How many factors are kept; somewhat more eigenvalues are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.baselines import parallel_analysis
    >>> from icqf.plotting import scree
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) @ np.kron(np.eye(2), np.full((1, 5), 0.8)) + rng.normal(size=(300, 10))
    >>> count = parallel_analysis(X, n_iter=5, random_state=0)
    >>> scree(count.curve, kept=count.n_components).get_ylabel()
    'eigenvalue'
    """
    if not {"eigenvalue", "random_eigenvalue"} <= set(curve.columns):
        raise InputError("scree draws the curve of parallel_analysis; this one has no random eigenvalues.")
    ax = axes_or_new(ax)
    curve = curve.head(max(10, int(1.5 * (kept or 0)) + 2))
    x = curve["n_components"].to_numpy()
    own, random = curve["eigenvalue"].to_numpy(), curve["random_eigenvalue"].to_numpy()
    ax.plot(x, own, color=SERIES[0], marker="o", markersize=4)
    ax.plot(x, random, color=muted(), linestyle="--", linewidth=1.2)
    beside: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "color": ink()}
    ax.annotate("these answers", (x[0], own[0]), (8, 0), va="center", **beside)
    ax.annotate("unrelated answers", (x[-1], random[-1]), (0, 5), ha="right", **beside)
    if kept:
        ax.axvline(kept + 0.5, color=CHOSEN, linewidth=1.2, linestyle=":")
        right = kept + 0.5 > (x[0] + x[-1]) / 2
        ax.annotate(
            f"{counted(kept, 'factor')} kept", (kept + 0.5, 0.72), (-5 if right else 5, 0),
            xycoords=("data", "axes fraction"), ha="right" if right else "left", **beside,
        )  # fmt: skip
    ax.margins(y=0.12)
    labelled(ax, "factor", "eigenvalue")
    ax.set_xticks(x[:: -(-len(x) // _MOST_TICKS)])
    return ax


def count_curve(
    curve: pd.DataFrame,
    *,
    chosen: int | None = None,
    value: str | None = None,
    reference: str | None = None,
    spread: str | None = None,
    better: Literal["lower", "higher"] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the criterion of a rule for the number of factors, and its choice.

    Parameters
    ----------
    curve : DataFrame
        The `curve` of a `FactorCount`: column ``n_components`` and one or more columns of values.
    chosen : int, optional
        The number of factors chosen.
    value, reference, spread : str, optional
        Columns of the values (the first one by default), their reference and their uncertainty.
    better : {"lower", "higher"}, optional
        Which values are better.
    title : str
        Such as the name of the rule.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import count_curve
    >>> curve = pd.DataFrame({"n_components": [1, 2, 3], "error": [0.9, 0.4, 0.5]})
    >>> count_curve(curve, chosen=2, better="lower", title="Cross-validation").get_title(loc="left")
    'Cross-validation: 2 factors'
    """
    require_columns(curve, ("n_components",), "curve", "search.count_.curve")
    ax = axes_or_new(ax)
    value = value or str(next(name for name in curve.columns if name not in ("n_components", "beta")))
    label = value.replace("_", " ")
    k, y = curve["n_components"], curve[value]
    bars = None if spread is None else curve[spread]
    ax.errorbar(k, y, yerr=bars, color=SERIES[0], marker="o", markersize=4, capsize=2, label=label)
    if reference is not None:
        ax.plot(k, curve[reference], linestyle="--", color=muted(), label=reference.replace("_", " "))
    if (k == chosen).any():
        _ring(ax, k[k == chosen], y[k == chosen], int(chosen or 0))
    if title:
        choice = "" if chosen is None else f": {counted(chosen, 'factor')}"
        ax.set_title(title + choice, loc="left")
    up = label if better is None else f"{label} ({better} is better)"
    return labelled(ax, "number of factors", up, whole=True, legend={})


def convergence(trace: pd.DataFrame, *, tol: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw the largest move of a loading in each iteration, and the tolerance.

    Parameters
    ----------
    trace : DataFrame
        Column ``step``, one row per iteration, such as ``model.trace_``.
    tol : float, optional
        The tolerance, such as ``model.tol``.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_synthetic
    >>> from icqf.plotting import convergence
    >>> answers = make_synthetic(n=60, m=20, k=2, random_state=0).answers
    >>> model = ICQF(2, item_range=(0, 100)).fit(answers)
    >>> convergence(model.trace_, tol=model.tol).get_yscale()
    'log'
    """
    if "step" not in trace or not len(trace):
        raise InputError("There is no trace of iterations to draw.")
    ax = axes_or_new(ax)
    step = np.maximum(trace["step"].to_numpy(dtype=float), 1e-12)
    x = np.arange(1, len(step) + 1)
    ax.plot(x, step, color=SERIES[0], linewidth=1.6, marker="o" if len(x) <= 60 else None, markersize=3)
    if tol is not None:
        ax.axhline(tol, color=CHOSEN, linestyle="--", linewidth=1.2)
        free = step[-1] < tol  # the line ends below, so that there is room above
        ax.annotate(
            f"tolerance {tol:g}", (1, tol), (-4, 3 if free else -3), textcoords="offset points",
            xycoords=("axes fraction", "data"), ha="right", va="bottom" if free else "top", fontsize=7,
            color=ink(),
        )  # fmt: skip
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(PowersOfTen())
    ax.yaxis.set_minor_formatter(PowersOfTen())
    return labelled(ax, "iteration", "largest move of a loading\n(share of the answer range)", whole=True)


def found_again(curve: pd.DataFrame, *, names: Names = None, ax: Axes | None = None) -> Axes:
    """Draw the probability that factors replicate against the number of participants.

    Factors are thin lines and their mean a bold one; dotted lines are at 80 and 90 %.

    Parameters
    ----------
    curve : DataFrame
        Columns ``n``, ``mean``, ``every``, perhaps ``source``, and one per factor, such as the ``curve`` of
        `icqf.analyses.SamplePlan`.
    names : sequence or mapping, optional
        Names of the factors.

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
    factors = [column for column in curve.columns if column not in ("n", "source", "mean", "every")]
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
    return labelled(ax, "participants", "second studies that find it again", legend={})


# How much of the full form's scores a short form recovers.

_COLUMNS = ("n_items", "correlation", "top_loading")
_GOOD = 0.9
_OTHERS = ("n_items", "minutes", "added", "dropped", "correlation", "worst", "top_loading")


def short_form_curve(curve: pd.DataFrame, *, names: Names = None, ax: Axes | None = None) -> Axes:
    """Draw how short forms of each length correlate with the full form, each factor thin and the mean bold.

    Correlations are those of the scores, in participants not used to choose the items. The dashed line is for
    the same number of items with the largest loadings.

    Parameters
    ----------
    curve : DataFrame
        Such as the ``curve`` of `icqf.analyses.ShortForm`.
    names : sequence or mapping, optional
        Names of the factors.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import short_form_curve
    >>> curve = pd.DataFrame({"n_items": [1, 2, 3], "correlation": [0.5, 0.7, 0.9],
    ...                       "top_loading": [0.4, 0.6, 0.85], "factor1": [0.5, 0.7, 0.9]})
    >>> short_form_curve(curve).get_xlabel()
    'items'
    """
    require_columns(curve, _COLUMNS, "curve", "form.curve")
    ax = axes_or_new(ax, size=(6.4, 4.2))
    factors = [column for column in curve.columns if column not in _OTHERS]
    length = curve["n_items"]
    ax.axhline(_GOOD, color=muted(), linewidth=0.8, linestyle=":")
    for name, shown, colour in zip(factors, factor_names(factors, names), palette(len(factors)), strict=True):
        ax.plot(length, curve[name], color=colour, linewidth=0.9, alpha=0.75, label=shown)
    ax.plot(length, curve["top_loading"], "--", color=CHOSEN, linewidth=1.6, label="largest loadings, mean")
    ax.plot(
        length, curve["correlation"], color=ink(), linewidth=2.4, marker="o", markersize=3.5, label="mean"
    )
    ax.set_ylim(min(0.0, float(curve[[*factors, *_COLUMNS[1:]]].min().min())), 1.0)
    return labelled(ax, "items", "correlation with the full form", whole=True, legend={})


def by_sample_size(table: pd.DataFrame, value: str, *, label: str = "", ax: Axes | None = None) -> Axes:
    """Draw a value against the share of the sample, with one line and one band per method.

    Parameters
    ----------
    table : DataFrame
        Columns ``method``, ``size``, `value`, ``low`` and ``high``, such as `icqf.analyses.bands` returns.
    value : str
        The column to draw.
    label : str
        What to call it; its own name by default.

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.analyses import bands
    >>> from icqf.plotting import by_sample_size
    >>> table = pd.DataFrame({"method": "ICQF", "size": [0.2, 0.2, 0.8, 0.8], "r": [.7, .72, .8, .81]})
    >>> by_sample_size(bands(table, "r"), "r").get_ylabel()
    'r'
    """
    lacking = {"method", "size", value, "low", "high"} - set(table.columns)
    if lacking:
        raise InputError(
            f"The table has no column {sorted(lacking)[0]!r}; give method, size, {value}, low and high."
        )
    ax = axes_or_new(ax, size=(5.6, 4.0))
    highest = 1.0 if table[value].max() <= 1 else np.inf  # nothing exceeds a correlation or AUC of 1
    for at, method in enumerate(dict.fromkeys(table["method"])):
        mine = table[table["method"] == method].sort_values("size")
        colour, x = SERIES[at % len(SERIES)], mine["size"].to_numpy(dtype=float)
        upper = mine["high"].clip(upper=highest)
        ax.fill_between(x, mine["low"], upper, color=colour, alpha=0.15, linewidth=0)
        ax.plot(
            x, mine[value], color=colour, marker=MARKERS[at % len(MARKERS)], markersize=4.5, linewidth=1.7,
            label=str(method),
        )  # fmt: skip
    sizes = sorted(table["size"].unique())
    ax.set_xticks(sizes)
    if max(sizes) <= 1:
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    across = "share of the sample" if max(sizes) <= 1 else "participants"
    legend = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3, "borderaxespad": 0.2}
    return labelled(ax, across, label or value, legend=legend)


def by_method(table: pd.DataFrame, value: str, *, label: str = "", ax: Axes | None = None) -> Axes:
    """Draw the value of every repetition as a dot, in one column per method, with the mean as a line.

    Parameters
    ----------
    table : DataFrame
        Columns ``method`` and `value`, one row per repetition.
    value : str
        The column to draw.
    label : str
        What to call it; its own name by default.

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
        shift = 0.28 * (np.arange(len(values)) / max(len(values) - 1, 1) - 0.5)
        ax.plot(at + shift, values, "o", color=SERIES[at % len(SERIES)], markersize=4, alpha=0.7)
        ax.hlines(values.mean(), at - 0.3, at + 0.3, color=ink(), linewidth=1.5)
    ax.set_xticks(range(len(methods)), methods)
    ax.set_xlim(-0.6, len(methods) - 0.4)
    return labelled(ax, "", label or value)


def factor_match(
    similarities: pd.DataFrame,
    *,
    pairs: pd.DataFrame | None = None,
    names_a: Names = None,
    names_b: Names = None,
    label_a: str = "first fit",
    label_b: str = "second fit",
    ax: Axes | None = None,
) -> Axes:
    """Draw the similarity of the factors of two fits, with matched pairs framed and on the diagonal.

    Parameters
    ----------
    similarities : DataFrame (k_a, k_b)
        Correlations of loadings, such as ``match_factors(a, b).similarities``.
    pairs : DataFrame, optional
        Columns ``factor_a`` and ``factor_b``, such as ``match_factors(a, b).pairs``.
    names_a, names_b : sequence or mapping, optional
        Names of the factors.
    label_a, label_b : str
        Labels of the two fits.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.resampling import match_factors
    >>> from icqf.plotting import factor_match
    >>> loadings = np.random.default_rng(0).random((20, 3))
    >>> match = match_factors(loadings, loadings[:, ::-1])
    >>> factor_match(match.similarities, pairs=match.pairs).get_ylabel()
    'first fit'
    """
    shown_a = factor_names(similarities.index, names_a)
    shown_b = dict(zip(similarities.columns, factor_names(similarities.columns, names_b), strict=True))
    partner = {} if pairs is None else dict(zip(pairs["factor_a"], pairs["factor_b"], strict=True))
    columns = [partner[row] for row in similarities.index if row in partner]
    columns += [name for name in similarities.columns if name not in columns]
    ax = axes_or_new(ax, size=(2.2 + 0.5 * len(columns), 1.7 + 0.46 * len(shown_a)))
    values = similarities[columns].to_numpy(dtype=float)
    correlation_cells(ax, values, shown_a, [shown_b[name] for name in columns], weak=0.2)
    for i, row in enumerate(similarities.index):
        if row in partner:
            corner = (columns.index(partner[row]), i)
            ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=ink(), linewidth=1.8, zorder=4))
    ax.set_xlabel(label_b)
    ax.set_ylabel(label_a)
    return ax


_SIMILAR = 0.4  # correlation of loadings; weaker ones are drawn dotted


def split_tree(links: pd.DataFrame, *, names: Names = None, ax: Axes | None = None) -> Axes:
    """Draw how factors split as their number grows.

    Each column is a fit; a line joins two factors with similar loadings, the more similar the thicker
    (dotted below a correlation of 0.4). Factors are numbered by their rank in their fit.

    Parameters
    ----------
    links : DataFrame
        From `icqf.analyses.factor_lineage`: columns ``k``, ``factor``, ``next_k``, ``next_factor`` and
        ``correlation``, with at least the closest predecessor of every factor.
    names : sequence or mapping, optional
        Names of the factors of the largest fit.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_synthetic
    >>> from icqf.analyses import factor_lineage
    >>> from icqf.plotting import split_tree
    >>> answers = make_synthetic(n=100, m=30, k=4, random_state=0).answers
    >>> fits = [ICQF(k, item_range=(0, 100)).fit(answers).loadings_ for k in (2, 3, 4)]
    >>> split_tree(factor_lineage(fits)).get_xlabel()
    'number of factors'
    """
    if links.empty:
        raise InputError("There are no links to draw; give factor_lineage at least two fits.")
    ks = sorted({*links["k"].astype(int), *links["next_k"].astype(int)})
    closest = set(links.groupby(["next_k", "next_factor"])["correlation"].idxmax())
    height = _heights(ks, links)
    ax = axes_or_new(ax, size=(1.3 * len(ks) + 1.8, 0.46 * max(ks) + 1.1))
    ease = np.linspace(0, 1, 24)
    bend = 3 * ease**2 - 2 * ease**3
    for at, link in links.sort_values("correlation", kind="stable").iterrows():
        level, value = ks.index(link["k"]), link["correlation"]
        y0, y1 = height[level][int(link["factor"]) - 1], height[level + 1][int(link["next_factor"]) - 1]
        weak, best = value < _SIMILAR, at in closest
        ax.plot(
            level + ease, y0 + (y1 - y0) * bend, color=muted() if weak or not best else FACTOR,
            linewidth=0.8 if weak else 0.6 + 4.5 * (value - _SIMILAR) / (1 - _SIMILAR),
            linestyle=":" if weak else "-", alpha=0.85 if best else 0.45, solid_capstyle="round", zorder=1,
        )  # fmt: skip
    for level, k in enumerate(ks):
        ax.scatter(np.full(k, level), height[level], s=210, color=FACTOR, edgecolors="white", zorder=2)
        for r in range(k):
            ax.text(level, height[level][r], str(r + 1), ha="center", va="center", color="white",
                    fontsize=8, fontweight="bold", zorder=3)  # fmt: skip
    if names is not None:
        shown = factor_names([f"factor{r + 1}" for r in range(ks[-1])], names)
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
    hide_frame(ax, keep=())
    ax.tick_params(length=0)
    return ax


def _heights(ks: list[int], links: pd.DataFrame) -> list[np.ndarray]:
    """Vertical positions of the factors, evenly spaced and near their predecessors."""
    rank = np.arange(ks[0], dtype=float)
    ranks = [rank]
    for k, next_k in pairwise(ks):
        weight = np.zeros((k, next_k))
        here = links[links["k"] == k]
        weight[here["factor"] - 1, here["next_factor"] - 1] = here["correlation"].clip(lower=0) ** 4 + 1e-12
        wanted = (weight * rank[:, None]).sum(axis=0) / weight.sum(axis=0)
        rank = np.empty(next_k)
        rank[np.argsort(wanted, kind="stable")] = np.arange(next_k)
        ranks.append(rank)
    return [(rank + 0.5) * ks[-1] / k - 0.5 for rank, k in zip(ranks, ks, strict=True)]


# The three levels of a battery: meta-factors, the factors of its instruments, and their items.

META_AT, FACTOR_AT, ITEM_AT = 0.0, 1.0, 1.72
_LEAST = 0.1  # the weakest loading that is drawn
_BETWEEN = 0.9  # rows between instruments
_WIDEST = 7.0  # points of a line for a loading of 1
_LONGEST = 48  # characters of a label of an item


def three_levels(
    loadings: pd.DataFrame,
    items: pd.DataFrame,
    *,
    names: Names = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the factors of each meta-factor and their strongest items.

    The width of a line is the loading; loadings below a tenth are left out.

    Parameters
    ----------
    loadings : DataFrame (factors, K)
        Rows are (instrument, factor), such as ``model.loadings_`` of a fitted `MetaICQF`.
    items : DataFrame
        The items of each factor, columns ``instrument``, ``factor``, ``label`` and ``share`` (the loading as
        a share of the item's range), such as ``model.top_items()``.
    names : sequence or mapping, optional
        Names of the meta-factors.

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_battery
    >>> from icqf.models import MetaICQF
    >>> from icqf.plotting import three_levels
    >>> battery = make_battery(n=100, n_items=(9, 9), n_factors=2, n_meta=2, random_state=0).battery
    >>> model = MetaICQF(ICQF(2), meta_estimator=ICQF(2)).fit(battery)
    >>> ax = three_levels(model.loadings_, model.top_items(2))
    >>> [text.get_text() for text in ax.texts][:2]
    ['Meta-factor 1', 'Meta-factor 2']
    """
    if not isinstance(loadings, pd.DataFrame) or loadings.index.nlevels != 2:
        raise InputError(
            "loadings must be a table whose rows are (instrument, factor), such as model.loadings_ of a "
            "MetaICQF."
        )
    require_columns(items, ["instrument", "factor", "label", "share"], "items", "model.top_items()")
    by_factor = {
        (str(key[0]), str(key[1])): part for key, part in items.groupby(["instrument", "factor"], sort=False)
    }
    factors, labels, height = _rows(loadings, by_factor)
    values = loadings.to_numpy(dtype=float)
    metas = _meta_rows(values, factors, height)
    ax = axes_or_new(ax, size=(9.2, max(3.0, 0.8 + 0.2 * height)))
    colours = palette(values.shape[1]) if values.shape[1] > len(SERIES) else SERIES
    for r, column in enumerate(values.T):
        for at, loading in enumerate(column):
            if loading >= _LEAST:
                _line(ax, (META_AT, metas[r]), (FACTOR_AT, factors[at]), loading, colours[r], alpha=0.55)
    for at, key in enumerate(loadings.index):
        strongest = int(np.argmax(values[at]))
        tied = values[at, strongest] >= _LEAST
        colour = colours[strongest] if tied else muted()
        for y, row in zip(labels[key], by_factor.get(key, items.iloc[:0]).to_dict("records"), strict=True):
            _line(ax, (FACTOR_AT, factors[at]), (ITEM_AT, y), 0.35 * float(row["share"]), colour, alpha=0.35)
    shown = _meta_names(loadings, names)
    for r, y in enumerate(metas):
        ax.text(META_AT - 0.03, y, shown[r], ha="right", va="center", weight="bold", color=ink(), zorder=4)
        ax.plot([META_AT + 0.012], [y], "o", color=colours[r], markersize=9, zorder=3)
    box = {"boxstyle": "round,pad=0.25", "edgecolor": muted(), "lw": 0.8}
    box["facecolor"] = ax.figure.get_facecolor()
    boxed: Any = {"ha": "center", "va": "center", "fontsize": 9, "color": ink(), "bbox": box, "zorder": 4}
    for at, (instrument, factor) in enumerate(loadings.index):
        text = f"{shortened(str(instrument), 22)} · {str(factor).removeprefix('factor')}"
        ax.text(FACTOR_AT, factors[at], text, **boxed)
    for key, part in by_factor.items():
        for y, label in zip(labels.get(key, ()), part["label"], strict=True):
            ax.text(ITEM_AT + 0.01, y, _cut(str(label)), ha="left", va="center", fontsize=8, color=ink())
    for x, text in ((META_AT, "meta-factors"), (FACTOR_AT, "factors"), (ITEM_AT, "strongest items")):
        where = {META_AT: "right", FACTOR_AT: "center", ITEM_AT: "left"}[x]
        ax.text(x, -1.6, text, ha=where, va="center", fontsize=9, color=muted())
    ax.set_xlim(-0.42, 2.62)
    ax.set_ylim(height + 0.3, -2.2)
    ax.axis("off")
    return ax


def _rows(
    loadings: pd.DataFrame, by_factor: dict[tuple[str, str], pd.DataFrame]
) -> tuple[np.ndarray, dict[tuple[str, str], list[float]], float]:
    """Vertical positions of factors and items, with gaps between instruments, and the total height."""
    factors, labels, y, before = [], {}, 0.0, None
    for key in loadings.index:
        if before is not None and key[0] != before:
            y += _BETWEEN
        before = key[0]
        number = len(by_factor[key]) if key in by_factor else 0
        labels[key] = [y + at for at in range(number)]
        factors.append(y + (max(number, 1) - 1) / 2)
        y += max(number, 1) + 0.35
    return np.array(factors), labels, y


def _meta_rows(values: np.ndarray, factors: np.ndarray, height: float) -> np.ndarray:
    """Vertical positions of meta-factors: near their factors, and a few rows apart."""
    k = values.shape[1]
    weight = values.sum(axis=0)
    centre = np.where(weight > 0, factors @ values / np.where(weight > 0, weight, 1), height / 2)
    order = np.argsort(centre, kind="stable")
    least = min(3.0, height / max(k, 1))
    places = centre[order]
    for at in range(1, k):
        places[at] = max(places[at], places[at - 1] + least)
    places += min(0.0, height - 1 - places[-1])
    rows = np.empty(k)
    rows[order] = places
    return rows


def _cut(label: str) -> str:
    """A shortened label that keeps "(reversed)"."""
    plain, mark, _ = label.partition(" (reversed)")
    return shortened(plain, _LONGEST - len(mark)) + mark


def _line(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    loading: float,
    colour: str,
    *,
    alpha: float,
) -> None:
    middle = (start[0] + end[0]) / 2
    path = Path(
        [start, (middle, start[1]), (middle, end[1]), end],
        [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
    )
    width = max(0.6, _WIDEST * float(loading))
    ax.add_patch(
        PathPatch(path, facecolor="none", edgecolor=colour, linewidth=width, alpha=alpha, capstyle="butt")
    )


def _meta_names(loadings: pd.DataFrame, names: Names) -> list[str]:
    keys = [str(name) for name in loadings.columns]
    given = factor_names(keys, names)
    return [
        f"Meta-factor {key[4:]}" if text == key and key.startswith("meta") and key[4:].isdigit() else text
        for key, text in zip(keys, given, strict=True)
    ]


def battery_overview(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw one bar per instrument: its factors, those expected to replicate in full colour.

    Each bar is labelled with the share of variance that the model explains.

    Parameters
    ----------
    table : DataFrame
        Columns ``name``, ``k``, ``found_again`` (missing where no resamples were drawn) and ``explained``,
        such as the summary that `icqf batch` writes.

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
    replicated = np.asarray(pd.to_numeric(table["found_again"]), dtype=float)
    ax.barh(at, k, height=0.62, color=FACTOR, alpha=0.28, label="all factors")
    if np.isfinite(replicated).any():
        ax.barh(at, np.nan_to_num(replicated), height=0.62, color=FACTOR, label="expected to replicate")
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
    hide_frame(ax, keep=("bottom",))
    guides(ax, "x")
    if np.isfinite(replicated).any():
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return ax
