"""That a fit has reached the best solution, and that it has settled there.

The grid, the public studies, the sizes of their parts and the solutions that are compared were committed
before any of them was run; they are others than those by which the numbers of starts were chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.core.problem import Problem
from icqf.data.questionnaire import Questionnaire
from icqf.engines.base import NamedStart
from icqf.engines.choice import run
from icqf.models.icqf import ICQF
from icqf.models.multistart import REACHED, n_reached
from icqf.report.blocks import Block, Grid
from icqf.resampling.bootstrap import best_fits
from icqf.resampling.folds import drawn_counts
from icqf.resampling.matching import aligned, correlations
from icqf.resampling.replication import FOUND
from icqf.workflow.evaluation import Design
from icqf_experiments.calibration.frame import SIMULATED, Statement, run_cases
from icqf_experiments.calibration.populations import FORMS, PUBLIC, Population, pairs_of_parts

Array = NDArray[Any]
# That a solution which starts have reached twice is the best, and that a settled fit has settled: by the rule
# of succession, (n + 1) / (n + 2), after an earlier grid of simulated studies (30 of 30 and 32 of 32).
SAID = 0.97
SEED = 29  # of the divisions of public studies
SIGNALS, TRUE, SURPLUS, SIZES = ("middle", "strong"), (4, 7), (0, 2), (300,)
PUBLIC_SIZES, PUBLIC_FACTORS = (450,), (3, 5, 7)
FURTHER = 24  # random starts that look for a better solution
BETTER = 1e-3  # of the objective: a solution that is lower by more is another one
# Solutions that may be kept instead of the lowest, compared where a second study is fitted in the same way.
KEPT = {
    "lowest": "the lowest",
    "first": "of the first start alone",
    "agreeing": "of those within 0.5 %, the one that resamples agree with",
    "average": "average of the resamples (`consensus`)",
}
WITHIN, N_RESAMPLES = 5e-3, 10
NEAR = 0.02  # of an item's range: how far a settled loading may lie from its limit
FINE, MOST_ITERATIONS = 1e-5, 3000


def jobs_of(*, quick: bool = False) -> dict[str, tuple[Any, ...]]:
    """All studies: a name, and the arguments of `compared`; a small one to be quick."""
    jobs: dict[str, tuple[Any, ...]] = {}
    for number, (form, signal, k, surplus, n) in enumerate(product(FORMS, SIGNALS, TRUE, SURPLUS, SIZES)):
        population = Population(signal, form, k, 6 * k, 0.1, 140_000 + number)
        jobs[f"{form}, {signal}, {k} + {surplus}, {n}"] = (population, n, k + surplus)
    if quick:
        return dict(list(jobs.items())[:1])
    for name, size, k in product(PUBLIC, PUBLIC_SIZES, PUBLIC_FACTORS):
        jobs[f"{name}, {size}, {k}"] = (name, size, k)
    return jobs


def compared(study: Population | str, n: int, k: int) -> dict[str, Any]:
    """A fit, what further starts find, and where it ends when it is iterated to its limit."""
    if isinstance(study, Population):
        pair, kind, source = (study.draw(n, 0), study.draw(n, 1)), study.answers, SIMULATED
    else:
        parts = list(pairs_of_parts(study, n, 1, seed=SEED))
        if not parts or parts[0][0].n_items < 3 * k:
            return {"rows": []}
        pair, kind, source = parts[0], PUBLIC[study][1], study
    (row, mine), (_, other) = (_compared(answers, k) for answers in pair)
    for name in KEPT:
        order, _ = aligned(mine[name], other[name])
        again = np.diag(correlations(mine[name], other[name][order]))
        row |= {name: float(again.mean()), f"{name}_found": float((again >= FOUND).mean())}
    return {"rows": [{"answers": kind, "source": source, "n": n, "k": k, **row}]}


def _compared(answers: Questionnaire, k: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """A row of one study, and the loadings of all solutions that may be kept."""
    model = ICQF(k)
    stated = model.state(answers)
    found = model.solve(stated)
    model.keep(stated, found)
    rng = np.random.default_rng(7)
    others = run(
        stated.problem,
        [NamedStart("nndsvd", k, rng), *(NamedStart("random", k, rng) for _ in range(FURTHER))],
        tol=model.tol,
        max_iter=model.max_iter,
    )
    (limit,) = run(stated.problem, found.factors, tol=FINE, max_iter=MOST_ITERATIONS)
    order, _ = aligned(found.factors.loadings[:k], limit.factors.loadings[:k])
    moved = np.abs(found.factors.loadings[:k] - limit.factors.loadings[:k][order]) / stated.problem.span
    drift = found.certificate.drift
    close = [found, *(each for each in others if each.objective <= (1 + WITHIN) * found.objective)]
    kept = _kept(stated.problem, k, float(model.beta), [each.factors.loadings[:k] for each in close], rng)
    return {
        "starts": len(found.starts),
        "reached": n_reached(model.starts_),
        "lower": float(1 - min(each.objective for each in others) / found.objective),
        "converged": bool(found.converged),
        "drift": -1.0 if drift is None else drift,
        "moved": float(moved.max()),
    }, kept | {"first": others[0].factors.loadings[:k]}


def _kept(
    problem: Problem, k: int, beta: float, close: Sequence[Array], rng: np.random.Generator
) -> dict[str, Array]:
    """Of the solutions close to the lowest, which is the first: the lowest, the agreeing, the average."""
    resamples = [
        best_fits(problem.drawn(drawn_counts(problem.n, None, rng)), [(k, beta)])[0][:k]
        for _ in range(N_RESAMPLES)
    ]
    counterparts = [[each[aligned(one, each)[0]] for each in resamples] for one in close]
    agreement = [
        np.mean([np.diag(correlations(one, each)).mean() for each in own])
        for one, own in zip(close, counterparts, strict=True)
    ]
    best = close[int(np.argmax(agreement))]
    return {"lowest": close[0], "agreeing": best, "average": np.mean(counterparts[0], axis=0)}


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
    reached = ["reached from", "fits", f"nothing better from {FURTHER} further starts", "starts"]
    kept, simulated = [], table["source"] == SIMULATED
    for name, words in KEPT.items():
        gain, found = table[name] - table["lowest"], table[f"{name}_found"] - table["lowest_found"]
        means = [
            f"{part[name].mean():.3f}, {part[f'{name}_found'].mean():.3f}"
            for part in (table[~simulated], table[simulated])
        ]
        apart = [
            f"{each.mean():+.3f} ± {1.96 * each.std() / np.sqrt(len(each)):.3f}" for each in (gain, found)
        ]
        kept.append([words, *means, ", ".join(apart) if name != "lowest" else ""])
    head = ["kept solution", "public studies", "simulated", "difference over all"]
    return [
        Grid("By the starts that reached the solution", reached, rows),
        "The lowest solution need not be the most replicable one. Each study was also compared with a second "
        "one, of which the same kind of solution was kept: mean correlation of matched loadings, and share "
        f"of the factors found again ({FOUND} or more), with {N_RESAMPLES} resamples; differences with 95 % "
        "intervals.",
        Grid("Which solution to keep", head, kept),
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
