"""Curves over candidates: cross-validation, scree, convergence, planned sizes and short forms."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, PercentFormatter

from icqf.errors import InputError, counted
from icqf.plotting.style import (
    CHOSEN,
    MARKERS,
    SERIES,
    Names,
    PowersOfTen,
    axes_or_new,
    factor_names,
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
    colours = palette(len(factors))
    for name, shown, colour in zip(factors, factor_names(factors, names), colours, strict=True):
        ax.plot(length, curve[name], color=colour, linewidth=0.9, alpha=0.75, label=shown)
    ax.plot(length, curve["top_loading"], "--", color=CHOSEN, linewidth=1.6, label="largest loadings, mean")
    ax.plot(
        length, curve["correlation"], color=ink(), linewidth=2.4, marker="o", markersize=3.5, label="mean"
    )
    ax.set_ylim(min(0.0, float(curve[[*factors, *_COLUMNS[1:]]].min().min())), 1.0)
    return labelled(ax, "items", "correlation with the full form", whole=True, legend={})
