"""Table 1 of the paper: which scheme finds the number of factors of synthetic questionnaires.

Its page also shows the recovered factors, and Proposition 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from icqf.baselines import bic_factor_analysis, parallel_analysis, velicer_map
from icqf.core.problem import Problem
from icqf.datasets.simulated import HIGHEST, Synthetic, make_synthetic
from icqf.engines.base import Solver
from icqf.engines.parallel import run_all
from icqf.engines.progress import Progress
from icqf.models import L1NMF
from icqf.models.icqf import ICQF
from icqf.models.multistart import solver_of
from icqf.models.search import Plan, Task, as_table, run_task
from icqf.models.selection_rules import Evidence, best_row
from icqf.plotting import triptych
from icqf.plotting.style import guides, hide_frame, palette
from icqf.report.blocks import Grid, Picture
from icqf.resampling import tolerances
from icqf.resampling.folds import make_folds
from icqf.resampling.matching import aligned, correlations, paired
from icqf.workflow.evaluation import Design, linked, results_page
from icqf_experiments.criteria import bic, consensus_curve

Array = NDArray[Any]
NOISE = (0.1, 0.2, 0.3, 0.4, 0.5)
PAPER = {
    "ICQF (BCV)": ((0.10, 0.06), (0.11, 0.06), (0.77, 0.15)),
    "l1-NMF (BCV)": ((0.17, 0.07), (2.37, 0.33), (2.40, 0.31)),
    "ICQF (BIC1)": ((0.10, 0.06), (0.67, 0.23), (2.40, 0.48)),
    "l1-NMF (BIC1)": ((0.90, 0.23), (1.10, 0.30), (2.47, 0.54)),
    "ICQF (CCC)": ((1.33, 0.24), (1.14, 0.21), (0.96, 0.18)),
    "l1-NMF (CCC)": None,
    "ICQF (Dispersion)": ((0.23, 0.09), (0.93, 0.16), (2.60, 0.26)),
    "l1-NMF (Dispersion)": None,
    "FA-promax (PA)": ((0.17, 0.07), (0.53, 0.10), (0.87, 0.14)),
    "FA-promax (MAP)": ((0.11, 0.06), (0.13, 0.06), (1.27, 0.20)),
    "FA-promax (BIC2)": ((0.30, 0.03), (0.93, 0.11), None),
}


@dataclass(frozen=True)
class Table1Design:
    """The synthetic questionnaires and candidate numbers of factors; the defaults are the paper's.

    `rows` are the schemes to run. With `paper`, ICQF is fitted as the authors' program does (`ICQF.paper`,
    without an intercept), in the folds of cross-validation, too.
    """

    datasets: int = 30
    noise: tuple[float, ...] = NOISE
    n: int = 200
    m: int = 100
    k: int = 10
    missing: float = 0.0
    confounded: bool = False
    thorough: bool = False
    paper: bool = False
    reach: int = 6
    n_starts: int = 10
    beta: float = 0.1
    rows: tuple[str, ...] = tuple(PAPER)

    @property
    def candidates(self) -> list[int]:
        """The candidate numbers of factors: up to `reach` from the truth, and at least 2."""
        return list(range(max(2, self.k - self.reach), self.k + self.reach + 1))


def found_k(design: Table1Design, noise: float, seed: int) -> dict[str, int]:
    """Return the number of factors that each scheme finds in one data set."""
    data = make_synthetic(
        design.n,
        design.m,
        design.k,
        noise=noise,
        missing=design.missing,
        confounded=design.confounded,
        random_state=seed,
    )
    ks = design.candidates
    found: dict[str, int] = {}
    shared: dict[str, Any] = {"beta": design.beta, "item_range": (0, HIGHEST)}
    models: dict[str, ICQF] = {
        "ICQF": ICQF.paper(**shared, intercept=False) if design.paper else ICQF(**shared),
        "l1-NMF": L1NMF(**shared),
    }
    for name, model in models.items():
        confounds = data.confounds if name == "ICQF" else None
        schemes = [row for row in design.rows if row.startswith(name)]
        if not schemes:
            continue
        problem = model.state(data.answers, confounds=confounds).problem
        if f"{name} (BCV)" in schemes:
            solver = solver_of(model) if design.paper else None
            found[f"{name} (BCV)"] = _cross_validated(problem, ks, seed, design, solver)
        if f"{name} (BIC1)" in schemes:
            found[f"{name} (BIC1)"] = bic(model, data.answers, ks, confounds=confounds).n_components
        if {f"{name} (CCC)", f"{name} (Dispersion)"} & set(schemes):
            curve = consensus_curve(problem, ks, n_starts=design.n_starts, random_state=seed)
            found[f"{name} (CCC)"] = int(ks[int(curve["cophenetic"].argmax())])
            found[f"{name} (Dispersion)"] = int(ks[int(curve["dispersion"].argmax())])
    found |= _by_factor_analysis(design, data, seed)
    return {row: found[row] for row in design.rows}


def _cross_validated(
    problem: Problem, ks: Sequence[int], seed: int, design: Table1Design, solver: Solver | None
) -> int:
    rng = np.random.default_rng([seed, 0, 0])
    folds = make_folds(problem.n, problem.m, row_blocks=10, col_blocks=10, rng=rng)  # the paper's blocks
    tol = tolerances.SEARCH if solver is None else ICQF().tol
    how: dict[str, Any] = {"thorough": design.thorough, "solver": solver}
    plan = Plan(problem, (folds,), (design.beta,), "nndsvd", tol, 500, **how)
    trials = run_task(plan, Task(tuple(plan.every_fold), tuple(ks)))
    return best_row(Evidence(as_table(trials)).table())[0]


def _by_factor_analysis(design: Table1Design, data: Synthetic, seed: int) -> dict[str, int]:
    schemes: dict[str, Callable[[], Any]] = {
        "FA-promax (PA)": lambda: parallel_analysis(data.answers, n_iter=20, random_state=seed),
        "FA-promax (MAP)": lambda: velicer_map(data.answers, max_components=2 * design.k),
        "FA-promax (BIC2)": lambda: bic_factor_analysis(data.answers, max_components=2 * design.k),
    }
    return {row: int(find().n_components) for row, find in schemes.items() if row in design.rows}


def table1(
    design: Table1Design,
    *,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callable[[Progress], object] | None = None,
) -> pd.DataFrame:
    """Run the experiment, and return one row per data set and scheme: noise, seed, scheme, k."""
    jobs = {
        f"noise {noise:g}, data set {seed}": (design, noise, seed)
        for noise in design.noise
        for seed in range(design.datasets)
    }
    found = run_all(jobs, found_k, n_jobs=n_jobs, checkpoint=checkpoint, callback=callback)
    return pd.DataFrame(
        [
            {"noise": noise, "seed": seed, "scheme": scheme, "k": k}
            for name, (_, noise, seed) in jobs.items()
            for scheme, k in found[name].items()
        ]
    )


def errors(results: pd.DataFrame, design: Table1Design) -> pd.DataFrame:
    """Return mean and standard error of |found − true| by scheme and noise.

    The paper's numbers are included if the data sets are the paper's.
    """
    off = results.assign(off=(results["k"] - design.k).abs())
    grouped = off.groupby(["scheme", "noise"], sort=False)["off"]
    table = pd.DataFrame({"error": grouped.mean(), "standard_error": grouped.sem().fillna(0.0)}).reset_index()
    usual = Table1Design()
    same = all(
        getattr(design, name) == getattr(usual, name) for name in ("n", "m", "k", "missing", "confounded")
    )
    published = [_published(row.scheme, row.noise if same else None) for row in table.itertuples()]
    return table.assign(
        paper_error=[pair[0] for pair in published], paper_standard_error=[pair[1] for pair in published]
    )


def _published(scheme: Any, noise: Any) -> tuple[float, float]:
    columns = {0.1: 0, 0.2: 1, 0.3: 2}
    row = PAPER.get(str(scheme))
    at = None if noise is None else columns.get(round(float(noise), 3))
    pair = None if row is None or at is None else row[at]
    return (float("nan"), float("nan")) if pair is None else pair


def as_rows(table: pd.DataFrame) -> list[list[str]]:
    """Return one row per scheme: error (standard error), and the paper's in square brackets."""

    def cell(row: Any) -> str:
        text = f"{row.error:.2f} ({row.standard_error:.2f})"
        if np.isfinite(row.paper_error):
            text += f" [{row.paper_error:.2f} ({row.paper_standard_error:.2f})]"
        return text

    cells = table.assign(cell=[cell(row) for row in table.itertuples()])
    wide = cells.pivot(index="scheme", columns="noise", values="cell")
    return [[scheme, *wide.loc[scheme]] for scheme in PAPER if scheme in wide.index]


# --- the page ---------------------------------------------------------------------------------------------


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


def recovery_figure() -> Figure:
    """Draw the paper's synthetic data and truth above, and the fit of ICQF below."""
    noise = 0.3
    data = make_synthetic(noise=noise)
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


def score_errors(ks: Any) -> pd.DataFrame:
    """Return ‖W* − W‖² / ‖W*‖² of the matched scores by number of factors, with Proposition 2's bound.

    Unmatched factors are compared with zero, as in the paper's proof.
    """
    data = make_synthetic(noise=0.0)
    answers, truth = data.answers[:, np.ptp(data.answers, axis=0) > 0], data.scores.T  # no empty items
    k_true = len(truth)
    rows = []
    for k in ks:
        model = ICQF(int(k), beta=Table1Design.beta, item_range=(0, HIGHEST), max_iter=2000).fit(answers)
        found = model.transform(answers).T
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


def proposition2_figure(table: pd.DataFrame) -> Figure:
    """Draw the error of the scores against the number of factors, with the bound of Proposition 2."""
    figure = Figure(figsize=(6.0, 3.8), layout="constrained")
    ax = figure.subplots()
    first, second, *_ = palette(4)
    ax.plot(table["n_components"], table["error"], "o-", color=first, label="error of the matched scores")
    ax.plot(table["n_components"], table["bound"], "--", color=second, label="lower bound (√(k/k*) − 1)²")
    ax.axvline(Table1Design.k, color="0.6", linewidth=1)
    ax.set(xlabel="number of factors k", ylabel="‖W* − W‖² / ‖W*‖²")
    ax.set_xticks(range(int(table["n_components"].min()), int(table["n_components"].max()) + 1, 2))
    ax.legend(frameon=False)
    hide_frame(ax)
    guides(ax)
    return figure
