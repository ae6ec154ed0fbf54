"""That a fit has reached the best solution, and that it has settled there.

The grid, the public studies and the sizes of their parts were committed before any of them was run; they are
others than those by which the numbers of starts and iterations were chosen.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Questionnaire
from icqf.engines.base import NamedStart
from icqf.engines.choice import run
from icqf.models.icqf import ICQF
from icqf.models.multistart import REACHED, n_reached
from icqf.report.blocks import Block, Grid
from icqf.resampling.matching import aligned
from icqf.workflow.evaluation import Design
from icqf_experiments.calibration.frame import SIMULATED, Statement, run_cases
from icqf_experiments.calibration.populations import FORMS, PUBLIC, Population, pairs_of_parts

SAID = 0.95  # that a solution which starts have reached twice is the best, and that a settled fit has settled
SIGNALS, TRUE, SURPLUS, SIZES = ("middle", "strong"), (4, 7), (0, 2), (300,)
PUBLIC_SIZES, PUBLIC_FACTORS = (500,), (3, 5, 7)
FURTHER = 24  # random starts that look for a better solution
BETTER = 1e-3  # of the objective: a solution that is lower by more is another one
NEAR = 0.02  # of an item's range: how far a settled loading may lie from its limit
FINE, MOST_ITERATIONS = 1e-5, 3000


def jobs_of(*, quick: bool = False) -> dict[str, tuple[Any, ...]]:
    """All studies: a name, and the arguments of `compared`; a small one to be quick."""
    jobs: dict[str, tuple[Any, ...]] = {}
    for number, (form, signal, k, surplus, n) in enumerate(product(FORMS, SIGNALS, TRUE, SURPLUS, SIZES)):
        population = Population(signal, form, k, 6 * k, 0.1, 20_000 + number)
        jobs[f"{form}, {signal}, {k} + {surplus}, {n}"] = (population, n, k + surplus)
    if quick:
        return dict(list(jobs.items())[:1])
    for name, size, k in product(PUBLIC, PUBLIC_SIZES, PUBLIC_FACTORS):
        jobs[f"{name}, {size}, {k}"] = (name, size, k)
    return jobs


def compared(study: Population | str, n: int, k: int) -> dict[str, Any]:
    """A fit, what further starts find, and where it ends when it is iterated to its limit."""
    if isinstance(study, Population):
        answers, kind, source = study.draw(n, 0), study.answers, SIMULATED
    else:
        parts = list(pairs_of_parts(study, n, 1, seed=1))
        if not parts or parts[0][0].n_items < 3 * k:
            return {"rows": []}
        answers, kind, source = parts[0][0], PUBLIC[study][1], study
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = _compared(answers, k)
    return {"rows": [{"answers": kind, "source": source, "n": n, "k": k, **row}]}


def _compared(answers: Questionnaire, k: int) -> dict[str, Any]:
    model = ICQF(k)
    stated = model.state(answers)
    found = model.solve(stated)
    model.keep(stated, found)
    rng = np.random.default_rng(7)
    others = run(
        stated.problem,
        [NamedStart("random", k, rng) for _ in range(FURTHER)],
        tol=model.tol,
        max_iter=model.max_iter,
    )
    (limit,) = run(stated.problem, found.factors, tol=FINE, max_iter=MOST_ITERATIONS)
    order, _ = aligned(found.factors.loadings[:k], limit.factors.loadings[:k])
    moved = np.abs(found.factors.loadings[:k] - limit.factors.loadings[:k][order]) / stated.problem.span
    drift = found.certificate.drift
    return {
        "starts": len(found.starts),
        "reached": n_reached(model.starts_),
        "lower": float(1 - min(each.objective for each in others) / found.objective),
        "converged": bool(found.converged),
        "drift": -1.0 if drift is None else drift,
        "moved": float(moved.max()),
    }


def best_cases(design: Design) -> pd.DataFrame:
    """Whether further starts found nothing better, where the best was reached at least twice."""
    table = run_cases(design, "starts", jobs_of(quick=design.quick), compared)
    sure = table["reached"] >= REACHED
    return table.assign(said=np.where(sure, SAID, np.nan), happened=(table["lower"] <= BETTER).astype(int))


def settled_cases(design: Design) -> pd.DataFrame:
    """Whether the limit is near, where the fit is said to have settled."""
    table = run_cases(design, "starts", jobs_of(quick=design.quick), compared)
    said = np.where(table["converged"], SAID, np.nan)
    return table.assign(said=said, happened=(table["moved"] <= NEAR).astype(int))


def _more(table: pd.DataFrame) -> Sequence[Block]:
    """By the number of starts that reached the solution."""
    groups = table.groupby(table["reached"].clip(upper=4))
    rows = [
        [f"{number}" if number < 4 else "4 or more", f"{len(part)}", f"{part['happened'].mean():.2f}",
         f"{part['starts'].mean():.1f}"]
        for number, part in groups
    ]  # fmt: skip
    return [
        Grid(
            "By the starts that reached the solution",
            ["reached from", "fits", f"nothing better from {FURTHER} further starts", "starts"],
            rows,
        )
    ]


def _far(table: pd.DataFrame) -> Sequence[Block]:
    """How far from the limit."""
    quantiles = table["moved"].quantile([0.5, 0.9, 1.0])
    unsettled = int((~table["converged"].astype(bool)).sum())
    return [
        f"Distance from the limit, as a share of the item's range: median {quantiles[0.5]:.4f}, nine in ten "
        f"at most {quantiles[0.9]:.4f}, largest {quantiles[1.0]:.4f}. {unsettled} of {len(table)} fits are "
        "said not to have settled."
    ]


STARTS = Statement(
    "starts",
    "A solution that two starts have reached is the best",
    f"""Each study is fitted as usual. Where at least two starts have reached the solution, it is said to be
    the best with a probability of {SAID}. It happened where none of {FURTHER} further random starts ends with
    an objective that is lower by more than {BETTER:.1%}.""",
    best_cases,
    _more,
)
SETTLED = Statement(
    "settled",
    "A fit has settled",
    f"""The same fits, iterated on to a hundredth of their tolerance. Where converged_ is True, every loading
    is said to lie within {NEAR:.0%} of its item's range of its limit, with a probability of {SAID}.""",
    settled_cases,
    _far,
)
