"""A fit from several starts: the best is kept, with the agreement of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from icqf.core.block_step import into_box
from icqf.core.problem import Array, Problem
from icqf.core.result import Factorization, Factors, StartResult
from icqf.core.start import NAMES, settle
from icqf.engines.base import IterationProgress, NamedStart, Solver, Start, WarmStart
from icqf.engines.choice import engine_of, run
from icqf.resampling.matching import aligned, correlations

if TYPE_CHECKING:
    from icqf.models.icqf import ICQF

FIRST = 3  # starts of n_init="auto" that run to the end; where they find other factors, more begin
MORE, MOST = 12, 27  # random starts that go some of the way: so many at a time, and starts in all
COMPLETED = 3  # of them run to the end: the best
SOME_WAY = 1e-2  # of an item's range: the moves at which they pause
REACHED = 2  # starts that must have found the best solution
AGREEING = 0.95  # lowest correlation of loadings at which starts have found the same factors
AS_GOOD = 1e-5  # of the objective: about as far from its limit as a fit ends at the default tolerance
CLOSE = 5e-3  # of the objective: a start that is farther from the best after some of the way is left there
SAMPLE = 20_000  # participants with whom starts are compared where answers stay in a file
_SCORES_AT_A_TIME = 500_000  # of all starts that run together: 4 MB
AS_WELL = 1e-3  # of the objective: starts that differ by no more describe the answers as well
COUNTERPART = 0.8  # correlation of loadings from which two factors are the same one
FINER = 10  # times as far as its tolerance asks a fit is continued that does not come back
LARGE = 100_000  # participants beyond whom a fit is not tested: every iteration is a pass over all of them
EXCHANGED = 0.05  # of each other's loadings: what factors exchange to see whether the fit comes back
GOING_ON = 300  # iterations at most, each time
TRIES = 3
GIVEN = "given"
COLUMNS = ("start", "objective", "n_iter", "converged")
Seen = list[tuple[StartResult, Array]]  # the result of each start, and its loadings (k, m)


def solver_of(model: ICQF) -> Solver:
    """The solver of a model, with its settings."""
    return Solver(model.solver, model.inner, model.rho, stop=model.stop)


def fit_from_starts(model: ICQF, problem: Problem, k: int, init: Any) -> Factorization:
    """The best of the fits from all of the model's starts, `init` first, with what became of each.

    A later start replaces an earlier one only where it is better by more than the tolerance of a fit leaves
    open: otherwise a start more or less would change the last digits of everything.
    """
    rng = np.random.default_rng(check_random_state(model.random_state).randint(2**31 - 1))
    (exchange,) = rng.spawn(1)  # the same whatever the starts draw
    automatic = model.n_init == "auto" and isinstance(init, str)
    if automatic and not problem.observations.here:
        return _from_a_sample(model, problem, k, rng)
    number = FIRST if automatic else 1 if model.n_init == "auto" else int(model.n_init)
    best, seen = _best(model, problem, k, _order(init, number), rng)
    if automatic and model.solver == "fast" and _times_reached(best, seen, k) < number:
        best = _raced(model, problem, k, best, seen, rng)
    best = _tested(model, problem, best, exchange)
    results = ((each, _agreement(best.factors.loadings[:k], loadings)) for each, loadings in seen)
    return replace(best, starts=tuple(replace(each, factors=tuple(r.tolist())) for each, r in results))


def _raced(
    model: ICQF, problem: Problem, k: int, best: Factorization, seen: Seen, rng: np.random.Generator
) -> Factorization:
    """The best after more random starts, of which only the most promising run to the end.

    More begin until the best solution was reached at least twice. `seen` is added to, in place.
    """
    engine = engine_of(model.engine)
    loose = problem.without_reconstruction_bound() if engine.batches else problem
    waiting: list[tuple[int, Array]] = []  # the place of a start among `seen`, and its loadings (K, m)
    while len(seen) < MOST:
        more = [NamedStart("random", k, rng)] * min(MORE, MOST - len(seen))
        for begun in run(loose, more, tol=SOME_WAY, max_iter=model.max_iter, exact=False, engine=engine):
            Q = begun.factors.loadings
            waiting.append((len(seen), Q))
            seen.append((StartResult("random", begun.trace.objective[-1], begun.n_iter, False, ()), Q[:k]))
        waiting.sort(key=lambda start: seen[start[0]][0].objective)
        for at, Q in waiting[:COMPLETED]:
            begun_at = seen[at][0]
            there = _agreement(best.factors.loadings[:k], Q[:k]).min() >= AGREEING
            if begun_at.objective > best.objective * (1 + CLOSE):
                break
            if there and begun_at.objective > best.objective * (1 - AS_GOOD):
                continue
            waiting = [start for start in waiting if start[0] != at]
            (found,) = run(problem, WarmStart(Q), tol=model.tol, max_iter=model.max_iter, engine=model.engine)
            n_iter = begun_at.n_iter + found.n_iter
            ended = StartResult("random", found.objective, n_iter, found.converged, ())
            seen[at] = (ended, found.factors.loadings[:k])
            if found.objective < best.objective * (1 - AS_GOOD):
                best = found
        if _times_reached(best, seen, k) >= REACHED:
            break
    return best


def _times_reached(best: Factorization, seen: Seen, k: int) -> int:
    """How many starts have found the factors of the best fit."""
    ours = best.factors.loadings[:k]
    return sum(bool(_agreement(ours, loadings).min() >= AGREEING) for _, loadings in seen)


def _best(
    model: ICQF, problem: Problem, k: int, inits: list[Any], rng: np.random.Generator
) -> tuple[Factorization, Seen]:
    """The best of the fits from these starts, and the results of all (without scores)."""
    seen: Seen = []
    best: Factorization | None = None
    together = max(1, _SCORES_AT_A_TIME // (problem.n * k))
    for at in range(0, len(inits), together):
        some = inits[at : at + together]
        fits = run(
            problem,
            [_start(problem, init, k, rng) for init in some],
            tol=model.tol,
            max_iter=model.max_iter,
            solver=solver_of(model),
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


def _tested(model: ICQF, problem: Problem, best: Factorization, rng: np.random.Generator) -> Factorization:
    """The best fit, and whether it comes back where its factors are exchanged; otherwise continued.

    In a flat valley or at a saddle every single step is small. So all factors and confounds exchange some of
    their loadings, which hardly changes the reconstructed answers where scores follow, and the iterations run
    again. A fit that comes back has settled. One that ends elsewhere, or lower, is continued until its moves
    are ten times smaller, and tested again; what ends lower is kept. With n_init="auto" the fit is continued
    before it is tested: it then lies nearer to its limit.
    """
    bounded = problem.bounds.loading is not None  # without bounds, scores and loadings have no common unit
    usual = bounded and problem.observations.repeats == 1 and problem.n <= LARGE
    if not usual or not best.converged or model.solver != "fast" or model.stop != "certificate":
        return best
    found, small = best, _small_drift(problem, model.tol)
    finer, start = (FINER, best.factors.loadings) if model.n_init == "auto" else (1.0, None)
    for _ in range(1 + TRIES):
        if start is not None:
            further = _settled(model, problem, start, finer=finer, done=found.n_iter)
            if further.objective < found.objective:
                trace, n_iter = found.trace.followed_by(further.trace), found.n_iter + further.n_iter
                found = replace(further, trace=trace, n_iter=n_iter)
        loadings = found.factors.loadings
        shaken = _settled(model, problem, _exchanged(problem, loadings, rng), finer=finer)
        drift = _distance(problem, loadings, shaken.factors.loadings)
        lower = shaken.objective < found.objective * (1 - AS_GOOD)
        if finer > 1 and drift > small and shaken.objective > found.objective * (1 + AS_GOOD):
            drift = 0.0  # it ended at another minimum, and a worse one
        if not lower and (finer > 1 or drift <= small):
            break
        start, finer = shaken.factors.loadings if lower else loadings, FINER
    certificate = replace(found.certificate, drift=drift)
    return replace(found, certificate=certificate, converged=certificate.holds(model.tol) and drift <= small)


def _small_drift(problem: Problem, tol: float) -> float:
    """How far loadings may drift where a fit has settled: about half a standard error, and 0.02 at least."""
    return float(max(0.02, 20 * tol, 0.4 / np.sqrt(problem.n)))


def _settled(
    model: ICQF, problem: Problem, start: Array, *, finer: float, done: int | None = None
) -> Factorization:
    """The fit continued from these loadings; the callback hears of iterations that follow `done`."""
    tell, before = model.callback, done or 0

    def counted(progress: IterationProgress) -> None:
        if tell is not None:
            tell(replace(progress, iteration=before + progress.iteration, max_iter=model.max_iter))

    (found,) = run(
        problem,
        WarmStart(start),
        tol=model.tol,
        max_iter=max(1, min(GOING_ON, model.max_iter - before)),
        solver=Solver(steady=True, finer=finer),
        callback=None if done is None else counted,
        engine=model.engine,
    )
    return found


def _exchanged(problem: Problem, loadings: Array, rng: np.random.Generator) -> Array:
    """Loadings (K, m) after all factors and confounds have exchanged some of theirs."""
    shares = EXCHANGED * rng.normal(size=(len(loadings), len(loadings)))
    np.fill_diagonal(shares, 0.0)
    mixed = (loadings + shares @ loadings).astype(problem.dtype)
    return into_box(mixed, problem.bounds.loading)


def _distance(problem: Problem, ours: Array, theirs: Array) -> float:
    """The largest difference of loadings (K, m) of the same factors, as a share of the item's range."""
    k = len(ours) - problem.c
    order, _ = aligned(ours[:k], theirs[:k])
    matched = np.concatenate([theirs[:k][order], theirs[k:]])
    _, unit = problem.units(np.ones(k), ours)
    return float((np.abs(ours - matched) / unit).max())


def _from_a_sample(model: ICQF, problem: Problem, k: int, rng: np.random.Generator) -> Factorization:
    """The fit of answers in a file, starting from the best fit to a random sample of participants."""
    sample = fit_from_starts(model, in_memory(problem, rng), k, model.init)
    (factorization,) = run(
        problem,
        WarmStart(sample.factors.loadings),
        tol=model.tol,
        max_iter=model.max_iter,
        solver=solver_of(model),
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


def n_reached(starts: pd.DataFrame) -> int:
    """How many starts have found the factors that were kept."""
    return int((starts.iloc[:, len(COLUMNS) :] >= AGREEING).all(axis=1).sum())


def doubtful_factors(starts: pd.DataFrame) -> list[str]:
    """Factors without a counterpart in a fit from another start that describes the answers as well."""
    close = starts[starts["objective"] <= starts["objective"].min() * (1 + AS_WELL)]
    return [str(name) for name in starts.columns[len(COLUMNS) :] if (close[name] < COUNTERPART).any()]


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
