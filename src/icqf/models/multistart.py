"""A fit from several starts: the best is kept, with the agreement of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from icqf.core.problem import Array, Problem
from icqf.core.result import Factorization, Factors, StartResult
from icqf.core.start import NAMES, settle
from icqf.engines.base import NamedStart, Solver, Start, WarmStart
from icqf.engines.choice import run
from icqf.resampling.matching import aligned, correlations

if TYPE_CHECKING:
    from icqf.models.icqf import ICQF

FIRST, MOST = 4, 8  # starts of n_init="auto": so many, and more where these disagree
AGREEING = 0.95  # lowest correlation of loadings at which starts have found the same factors
AS_GOOD = 1e-5  # of the objective: about as far from its limit as a fit ends at the default tolerance
SAMPLE = 20_000  # participants with whom starts are compared where answers stay in a file
_SCORES_AT_A_TIME = 500_000  # of all starts that run together: 4 MB
AS_WELL = 1e-3  # of the objective: starts that differ by no more describe the answers as well
COUNTERPART = 0.8  # correlation of loadings from which two factors are the same one
GIVEN = "given"
COLUMNS = ("start", "objective", "n_iter", "converged")


def fit_from_starts(model: ICQF, problem: Problem, k: int, init: Any) -> Factorization:
    """The best of the fits from all of the model's starts, `init` first, with what became of each.

    A later start replaces an earlier one only where it is better by more than the tolerance of a fit leaves
    open: otherwise a start more or less would change the last digits of everything.
    """
    rng = np.random.default_rng(check_random_state(model.random_state).randint(2**31 - 1))
    if model.n_init == "auto" and isinstance(init, str) and not problem.observations.here:
        return _from_a_sample(model, problem, k, rng)
    first, most = _numbers(model.n_init, init)
    order = _order(init, most)
    best, seen = _best(model, problem, k, order[:first], rng)
    agreement = [_agreement(best.factors.loadings[:k], loadings) for _, loadings in seen]
    if most > first and np.min(agreement) < AGREEING:
        best, more = _best(model, problem, k, order[first:], rng, best)
        seen += more
        agreement = [_agreement(best.factors.loadings[:k], loadings) for _, loadings in seen]
    results = zip(seen, agreement, strict=True)
    return replace(best, starts=tuple(replace(each, factors=tuple(r.tolist())) for (each, _), r in results))


def _best(
    model: ICQF,
    problem: Problem,
    k: int,
    inits: list[Any],
    rng: np.random.Generator,
    best: Factorization | None = None,
) -> tuple[Factorization, list[tuple[StartResult, Array]]]:
    """The best of the fits from these starts and `best`, and the result of each start (not its scores)."""
    seen = []
    together = max(1, _SCORES_AT_A_TIME // (problem.n * k))
    for at in range(0, len(inits), together):
        some = inits[at : at + together]
        fits = run(
            problem,
            [_start(problem, init, k, rng) for init in some],
            tol=model.tol,
            max_iter=model.max_iter,
            solver=Solver(model.solver, model.inner, model.rho),
            callback=model.callback,
            engine=model.engine,
        )
        for init, fit in zip(some, fits, strict=True):
            name = init if isinstance(init, str) else GIVEN
            result = StartResult(name, fit.objective, fit.n_iter, fit.converged, ())
            seen.append((result, fit.factors.loadings[:k]))
            if best is None or fit.objective < best.objective * (1 - AS_GOOD):
                best = fit
        del fits, fit  # their scores, before the next ones come
    if best is None:
        raise ValueError("A fit needs a start.")
    return best, seen


def _from_a_sample(model: ICQF, problem: Problem, k: int, rng: np.random.Generator) -> Factorization:
    """The fit of answers in a file, starting from the best fit to a random sample of participants."""
    sample = fit_from_starts(model, in_memory(problem, rng), k, model.init)
    (factorization,) = run(
        problem,
        WarmStart(sample.factors.loadings),
        tol=model.tol,
        max_iter=model.max_iter,
        solver=Solver(model.solver, model.inner, model.rho),
        callback=model.callback,
        engine=model.engine,
    )
    order, _ = aligned(factorization.factors.loadings[:k], sample.factors.loadings[:k])
    starts = (replace(each, factors=tuple(np.take(each.factors, order))) for each in sample.starts)
    return replace(factorization, starts=tuple(starts))


def in_memory(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem itself, or, where its answers stay in a file, that of some participants drawn at random."""
    if problem.observations.here:
        return problem
    return problem.of_rows(np.sort(rng.choice(problem.n, min(problem.n, SAMPLE), replace=False)))


def starts_table(starts: tuple[StartResult, ...], factors: Any) -> pd.DataFrame:
    """What became of each start, one row each, with a column for each factor."""
    rows = [(each.name, each.objective, each.n_iter, each.converged, *each.factors) for each in starts]
    return pd.DataFrame(rows, columns=[*COLUMNS, *factors])


def doubtful_factors(starts: pd.DataFrame) -> list[str]:
    """Factors without a counterpart in a fit from another start that describes the answers as well."""
    close = starts[starts["objective"] <= starts["objective"].min() * (1 + AS_WELL)]
    return [str(name) for name in starts.columns[len(COLUMNS) :] if (close[name] < COUNTERPART).any()]


def _numbers(n_init: int | str, init: Any) -> tuple[int, int]:
    """How many starts are run at first, and at most."""
    if n_init == "auto":
        return (FIRST, MOST) if isinstance(init, str) else (1, 1)
    return int(n_init), int(n_init)


def _order(init: Any, number: int) -> list[Any]:
    """The starts in their order: `init`, the other one of "nndsvd" and "rotated", then random ones."""
    named = init if isinstance(init, str) else ""
    first = [init, *(name for name in NAMES if name not in (named, "random"))]
    return [*first, *["random"] * number][:number]


def _start(problem: Problem, init: Any, k: int, rng: np.random.Generator) -> Start:
    if isinstance(init, str):
        return NamedStart(init, k, rng)
    scores, loadings = (np.asarray(part, dtype=float).T for part in init)
    return settle(problem, Factors(scores, problem.scaled_loadings(loadings)), raw=False)


def _agreement(ours: Array, theirs: Array) -> Array:
    """Correlation of each factor's loadings (k,) with those of its counterpart in another fit."""
    if theirs is ours or np.array_equal(ours, theirs):
        return np.ones(len(ours))
    order, _ = aligned(ours, theirs)
    return np.clip(np.diag(correlations(ours, theirs[order])), -1.0, 1.0)
