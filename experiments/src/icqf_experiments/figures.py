"""The page of the synthetic experiments: Table 1, the recovered factors, and Proposition 2."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.datasets.simulated import HIGHEST, make_synthetic
from icqf.models.icqf import ICQF
from icqf.report.blocks import Grid, Picture
from icqf.resampling.matching import aligned, correlations, paired
from icqf.workflow.evaluation import Design, linked, results_page
from icqf_experiments.table1 import PAPER, Table1Design, as_rows, errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[Any]


def table1_page(results: pd.DataFrame, made: Table1Design, design: Design) -> Path:
    """Write the tables, the figures and the page ``table1.md``."""
    table, clean = errors(results, made), score_errors(range(2, 21))
    results.to_csv(design.out / "table1_runs.csv", index=False)
    table.to_csv(design.out / "table1.csv", index=False)
    clean.to_csv(design.out / "proposition2.csv", index=False)
    noises = [f"noise {noise:g}" for noise in sorted(table["noise"].unique())]
    return results_page(
        design,
        "table1",
        "Table 1: which scheme finds the number of factors",
        f"""{made.datasets} synthetic questionnaires ({made.n} × {made.m}, {made.k} factors) for each noise;
        {made.candidates[0]} to {made.candidates[-1]} factors are tried, with β = {made.beta:g}.""",
        [
            Grid(
                f"Mean |found k − {made.k}| (standard error); the paper's, where given, in square brackets",
                ["scheme", *noises],
                as_rows(table),
            ),
            Picture("table1", table1_figure(table), "Error of every scheme against the noise"),
            Picture("recovered_factors", recovery_figure(), "True and recovered factors"),
            Picture(
                "proposition2",
                proposition2_figure(clean),
                "Error of the scores against the bound of Proposition 2",
            ),
            linked("All runs and tables", "table1_runs.csv", "table1.csv", "proposition2.csv"),
        ],
    )


def table1_figure(table: pd.DataFrame) -> Figure:
    """Draw the error in k of every scheme against the noise, with the paper's numbers as crosses."""
    from matplotlib.figure import Figure

    from icqf.plotting.style import guides, hide_frame, palette

    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    families = ("ICQF", "l1-NMF", "FA-promax")
    for ax, family in zip(axes, families, strict=True):
        schemes = [scheme for scheme in PAPER if scheme.startswith(family) and scheme in set(table["scheme"])]
        for colour, scheme in zip(palette(max(4, len(schemes))), schemes, strict=False):
            rows = table[table["scheme"] == scheme].sort_values("noise")
            label = scheme.split("(")[1].rstrip(")")
            ax.errorbar(
                rows["noise"], rows["error"], yerr=rows["standard_error"], marker="o", capsize=2,
                color=colour, label=label,
            )  # fmt: skip
            ax.plot(rows["noise"], rows["paper_error"], "x", color=colour, markersize=7)
        ax.set(title=family, xlabel="share of noisy answers δ")
        ax.set_xticks(sorted(table["noise"].unique()))
        if schemes:
            ax.legend(frameon=False, title="found by", loc="upper left")
        hide_frame(ax)
        guides(ax)
    axes[0].set_ylabel("mean |found k − true k|")
    figure.suptitle("Finding the number of factors; × marks the paper's numbers")
    return figure


def recovery_figure(*, noise: float = 0.3, random_state: int = 0) -> Figure:
    """Draw the paper's synthetic data and truth above, and the fit of ICQF below."""
    from matplotlib.figure import Figure

    from icqf.plotting import triptych

    data = make_synthetic(noise=noise, random_state=random_state)
    model = ICQF(data.loadings.shape[1], beta=Table1Design.beta, item_range=(0, HIGHEST)).fit(data.answers)
    scores = model.transform(data.answers)
    order, _ = aligned(data.loadings.T, model.components_)
    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    axes = figure.subplots(2, 3, width_ratios=(1, 1, 2))
    triptych(
        data.scores,
        data.loadings,
        data.answers,
        titles=("True scores W", "True loadings Q", f"Answers M (δ = {noise:g})"),
        axes=list(axes[0]),
    )
    triptych(
        scores[:, order],
        model.components_[order].T,
        model.inverse_transform(scores),
        titles=("Scores found", "Loadings found", "Answers reconstructed"),
        axes=list(axes[1]),
    )
    return figure


def score_errors(ks: Any, *, noise: float = 0.0, random_state: int = 0) -> pd.DataFrame:
    """Return ‖W* − W‖² / ‖W*‖² of the matched scores by number of factors, with Proposition 2's bound.

    Unmatched factors are compared with zero, as in the paper's proof.
    """
    data = make_synthetic(noise=noise, random_state=random_state)
    data = replace(
        data, answers=data.answers[:, np.ptp(data.answers, axis=0) > 0]
    )  # noise-free: no empty items
    truth = data.scores.T
    k_true = len(truth)
    rows = []
    for k in ks:
        model = ICQF(int(k), beta=Table1Design.beta, item_range=(0, HIGHEST), max_iter=2000).fit(data.answers)
        found = model.transform(data.answers).T
        rows.append(
            {
                "n_components": int(k),
                "error": _matched_error(truth, found),
                "bound": float((np.sqrt(k / k_true) - 1) ** 2),
            }
        )
    return pd.DataFrame(rows)


def _matched_error(truth: Array, found: Array) -> float:
    rows, columns = paired(correlations(truth, found))
    left = ((truth[rows] - found[columns]) ** 2).sum()
    alone = (np.delete(truth, rows, axis=0) ** 2).sum() + (np.delete(found, columns, axis=0) ** 2).sum()
    return float((left + alone) / (truth**2).sum())


def proposition2_figure(table: pd.DataFrame, *, k_true: int = 10) -> Figure:
    """Draw the error of the scores against the number of factors, with the bound of Proposition 2."""
    from matplotlib.figure import Figure

    from icqf.plotting.style import guides, hide_frame, palette

    figure = Figure(figsize=(6.0, 3.8), layout="constrained")
    ax = figure.subplots()
    first, second, *_ = palette(4)
    ax.plot(table["n_components"], table["error"], "o-", color=first, label="error of the matched scores")
    ax.plot(table["n_components"], table["bound"], "--", color=second, label="lower bound (√(k/k*) − 1)²")
    ax.axvline(k_true, color="0.6", linewidth=1)
    ax.set(xlabel="number of factors k", ylabel="‖W* − W‖² / ‖W*‖²")
    ax.set_xticks(range(int(table["n_components"].min()), int(table["n_components"].max()) + 1, 2))
    ax.legend(frameon=False)
    hide_frame(ax)
    guides(ax)
    return figure
