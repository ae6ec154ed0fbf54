"""The choice of the number of factors, and whether the fit settled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from icqf.errors import InputError
from icqf.plotting.style import (
    CHOSEN,
    MARKERS,
    SERIES,
    axes_or_new,
    bare,
    guides,
    ink,
    muted,
    palette,
)
from icqf.selection.count import FactorCount
from icqf.selection.rules import best_by_k

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def cv_curve(search: Any, *, chosen: tuple[int, float] | None = None, ax: Axes | None = None) -> Axes:
    """Draw the cross-validated error over the number of factors, a line for each penalty.

    Bars are standard errors; the choice is ringed.

    Parameters
    ----------
    search : fitted ICQFCV, or DataFrame
        A table needs the columns n_components, beta, error and standard_error.
    chosen : (int, float), optional
        The choice (n_components, beta), when a table is given.
    ax : Axes, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.plotting import cv_curve
    >>> errors = pd.DataFrame({"n_components": [1, 2, 3], "beta": 0.1, "error": [0.9, 0.4, 0.5],
    ...                        "standard_error": 0.05})
    >>> cv_curve(errors, chosen=(2, 0.1)).get_xlabel()
    'number of factors'
    """
    table: pd.DataFrame = getattr(search, "errors_", search)
    if hasattr(search, "n_components_"):
        chosen = (int(search.n_components_), float(search.beta_))
    ax = axes_or_new(ax)
    betas = sorted(table["beta"].unique())
    shift = 0.24 / max(len(betas) - 1, 1)
    for at, (beta, colour) in enumerate(zip(betas, palette(len(betas)), strict=True)):
        rows = table[table["beta"] == beta].sort_values("n_components")
        x = rows["n_components"].to_numpy(dtype=float) + (shift * at - 0.12 if len(betas) > 1 else 0.0)
        ax.errorbar(
            x, rows["error"], yerr=rows["standard_error"], color=colour, marker=MARKERS[at % len(MARKERS)],
            markersize=4, linewidth=1.4, elinewidth=0.9, capsize=2, label=f"β = {beta:g}",
        )  # fmt: skip
        if chosen is not None and beta == chosen[1]:
            here = rows["n_components"].to_numpy() == chosen[0]
            ax.plot(
                x[here], rows["error"].to_numpy()[here], "o", markersize=13, fillstyle="none",
                color=ink(), markeredgewidth=1.4, label=f"chosen: {chosen[0]} factors",
            )  # fmt: skip
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("number of factors")
    ax.set_ylabel("squared error of hidden answers")
    bare(ax)
    guides(ax)
    ax.legend(frameon=False, fontsize=8)
    return ax


def error_and_stability(search: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the error of each number of factors at its best penalty, and the stability of its factors.

    The error (left axis, bars are standard errors) says how well hidden answers are predicted; the
    agreement between halves of the sample (right axis, the band holds eight in ten) says whether a second
    study would find the same factors. The choice is ringed.

    Parameters
    ----------
    search : ICQFCV
        Fitted with ``stability=True`` or ``rule="stable"``.
    ax : Axes, optional

    Examples
    --------
    >>> from icqf import ICQFCV
    >>> from icqf.datasets import make_synthetic
    >>> from icqf.plotting import error_and_stability
    >>> answers = make_synthetic(n=80, m=30, k=3, noise=0.1, random_state=0).answers
    >>> search = ICQFCV([2, 3, 4], betas=[0.1], n_splits=4, stability=True, n_halves=2,
    ...                 item_range=(0, 100), random_state=0).fit(answers)
    >>> error_and_stability(search).get_ylabel()
    'squared error of hidden answers'
    """
    if search.stability_ is None:
        raise InputError("This search has no stability; fit it with stability=True.")
    errors, stability = best_by_k(search.errors_), search.stability_
    ax = axes_or_new(ax)
    first, second = palette(2)
    ax.errorbar(
        errors["n_components"], errors["error"], yerr=errors["standard_error"], color=first, marker="o",
        markersize=4, linewidth=1.4, elinewidth=0.9, capsize=2, label="error (left)",
    )  # fmt: skip
    chosen = errors[errors["n_components"] == search.n_components_]
    ax.plot(
        chosen["n_components"], chosen["error"], "o", markersize=13, fillstyle="none", color=ink(),
        markeredgewidth=1.4, label=f"chosen: {search.n_components_} factors",
    )  # fmt: skip
    right = ax.twinx()
    right.plot(stability["n_components"], stability["agreement"], color=second, marker="s", markersize=4,
               linewidth=1.4, label="agreement between halves (right)")  # fmt: skip
    right.fill_between(
        stability["n_components"], stability["low"], stability["high"], color=second, alpha=0.15, linewidth=0
    )
    right.set_ylim(min(0.0, float(stability["low"].min())), 1.02)
    right.set_ylabel("agreement of loadings")
    right.spines["top"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("number of factors")
    ax.set_ylabel("squared error of hidden answers")
    bare(ax)
    guides(ax)
    both = zip(ax.get_legend_handles_labels(), right.get_legend_handles_labels(), strict=True)
    handles, labels = (mine + other for mine, other in both)
    ax.legend(
        handles, labels, frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1)
    )
    return ax


def scree(count: FactorCount, *, most: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw the eigenvalues beside those of unrelated answers (parallel analysis).

    Parameters
    ----------
    count : FactorCount
        What `icqf.baselines.parallel_analysis` returned.
    most : int, optional
        How many eigenvalues to draw. Default: somewhat more than are kept.
    ax : Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.baselines import parallel_analysis
    >>> from icqf.plotting import scree
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) @ np.kron(np.eye(2), np.full((1, 5), 0.8)) + rng.normal(size=(300, 10))
    >>> scree(parallel_analysis(X, n_iter=5, random_state=0)).get_ylabel()
    'eigenvalue'
    """
    if not {"eigenvalue", "random_eigenvalue"} <= set(count.curve.columns):
        raise InputError("scree draws what parallel_analysis returns; this curve has no random eigenvalues.")
    ax = axes_or_new(ax)
    kept = count.n_components
    most = most or max(10, int(1.5 * kept) + 2)
    curve = count.curve.head(most)
    x = curve["n_components"].to_numpy()
    ax.plot(x, curve["eigenvalue"], color=SERIES[0], marker="o", markersize=4, label="these answers")
    ax.plot(
        x, curve["random_eigenvalue"], color=muted(), linestyle="--", linewidth=1.2, label="unrelated answers"
    )
    if kept:
        ax.axvline(kept + 0.5, color=CHOSEN, linewidth=1.2, linestyle=":")
        unit = "factor" if kept == 1 else "factors"
        ax.annotate(
            f" {kept} {unit} stand out", (kept + 0.5, 0.72), xycoords=("data", "axes fraction"), color=ink(),
            fontsize=8,
        )  # fmt: skip
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("factor")
    ax.set_ylabel("eigenvalue")
    bare(ax)
    guides(ax)
    ax.legend(frameon=False, fontsize=8, loc="upper right")
    return ax


def convergence(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how far any loading still moved in each iteration, and the tolerance.

    Parameters
    ----------
    model : fitted ICQF
    ax : Axes, optional

    Examples
    --------
    >>> from icqf import ICQF
    >>> from icqf.datasets import make_synthetic
    >>> from icqf.plotting import convergence
    >>> answers = make_synthetic(n=60, m=20, k=2, random_state=0).answers
    >>> convergence(ICQF(2, item_range=(0, 100)).fit(answers)).get_yscale()
    'log'
    """
    ax = axes_or_new(ax)
    if "step" not in model.trace_ or not len(model.trace_):
        raise InputError("The model has no trace of iterations to draw.")
    step = np.maximum(model.trace_["step"].to_numpy(dtype=float), 1e-12)
    x = np.arange(1, len(step) + 1)
    ax.plot(x, step, color=SERIES[0], linewidth=1.6, marker="o" if len(x) <= 60 else None, markersize=3)
    ax.axhline(model.tol, color=CHOSEN, linestyle="--", linewidth=1.2)
    ax.annotate(
        f"tolerance {model.tol:g}", (1, model.tol), (0, 4), textcoords="offset points",
        xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8, color=ink(),
    )  # fmt: skip
    ax.set_yscale("log")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("iteration")
    ax.set_ylabel("largest move of a loading\n(share of the answer range)")
    bare(ax)
    guides(ax)
    return ax
