"""Table 1 of the paper: which scheme finds the number of factors of synthetic questionnaires."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

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
from icqf.models.selection_rules import best_row, error_table
from icqf.resampling import tolerances
from icqf.resampling.folds import make_folds
from icqf_experiments.criteria import bic, consensus_curve

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
    return best_row(error_table(as_table(trials)))[0]


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
