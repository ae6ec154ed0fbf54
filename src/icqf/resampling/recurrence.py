"""Is a factor found again when the sample is drawn again, and the fit started afresh?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.core.problem import Problem
from icqf.core.start import Starts
from icqf.engines.base import Engine
from icqf.engines.choice import engine_of, run
from icqf.jobs.parallel import in_parallel, pieces
from icqf.resampling import tolerances
from icqf.resampling.dealing import drawn_counts
from icqf.resampling.matching import aligned, correlations

Array = NDArray[Any]
STARTS = ("nndsvd", "rotated")


def recurrence(
    problem: Problem,
    models: Sequence[tuple[float, Array]],
    *,
    n_resamples: int = 20,
    groups: Array | None = None,
    tol: float = tolerances.RESAMPLE,
    max_iter: int = tolerances.MAX_ITER,
    n_jobs: int | None = None,
    engine: str | Engine = "local",
    rng: np.random.Generator,
) -> list[Array]:
    """Agreement of each factor of some models with its counterpart in fits to resampled participants.

    Unlike `bootstrap`, which follows one solution as the sample moves, every resample is fitted afresh, from
    two starts of its own, of which the better objective counts: what is found again here was found without
    knowing of the model. As in the search, the bound on reconstructed answers is left to clipping.

    Parameters
    ----------
    problem : Problem
        What the models were fitted to.
    models : sequence of (float, array (k, m))
        Each model's penalty and loadings.
    n_resamples : int
        How often participants are drawn; the same draws serve all models.
    groups : int array (n,), optional
        Families or sites: whole groups are drawn.

    Returns
    -------
    list of array (n_resamples, k)
        Correlation of each factor's loadings with those of its counterpart, one array per model.
    """
    draws = [drawn_counts(problem.n, groups, rng) for _ in range(n_resamples)]
    engine = engine_of(engine).for_many(problem.without_reconstruction_bound())
    n_jobs = 1 if engine.batches else n_jobs
    tasks = [(problem, tuple(models), part, tol, max_iter, engine) for part in pieces(draws, n_jobs)]
    found = [each for part in in_parallel(_agreements, tasks, n_jobs=n_jobs) for each in part]
    return [np.stack([each[at] for each in found]) for at in range(len(models))]


def _agreements(
    problem: Problem,
    models: Sequence[tuple[float, Array]],
    draws: Sequence[Array],
    tol: float,
    max_iter: int,
    engine: str | Engine,
) -> list[list[Array]]:
    """For each draw and model, the correlation (k,) of each factor with its counterpart."""
    together = engine_of(engine).batches
    candidates = [(len(loadings), beta) for beta, loadings in models]
    found: list[list[Array]] = []
    for part in [draws] if together else [[counts] for counts in draws]:
        resamples = [problem.counted(counts) if together else problem.drawn(counts) for counts in part]
        found += _best_fits(resamples, candidates, tol=tol, max_iter=max_iter, engine=engine)
    return [
        [_agreement(loadings, fit[: len(loadings)]) for (_, loadings), fit in zip(models, fits, strict=True)]
        for fits in found
    ]


def _agreement(loadings: Array, found: Array) -> Array:
    order, _ = aligned(loadings, found)
    return np.diag(correlations(loadings, found[order]))


def best_fits(
    problem: Problem,
    candidates: Sequence[tuple[int, float]],
    *,
    tol: float = tolerances.RESAMPLE,
    max_iter: int = tolerances.MAX_ITER,
    engine: str | Engine = "local",
) -> list[Array]:
    """Loadings (k + c, m) of each (k, beta): from two starts, the fit with the better objective."""
    return _best_fits([problem], candidates, tol=tol, max_iter=max_iter, engine=engine)[0]


def _best_fits(
    resamples: Sequence[Problem],
    candidates: Sequence[tuple[int, float]],
    *,
    tol: float,
    max_iter: int,
    engine: str | Engine,
) -> list[list[Array]]:
    """The same for several problems, as one batch."""
    problems, starts = [], []
    for problem in resamples:
        shared = Starts(problem.without_reconstruction_bound())
        for k, beta in candidates:
            own = shared.with_beta(beta)
            problems += [own.problem] * len(STARTS)
            starts += [own.make(name, k) for name in STARTS]
    fits = run(problems, starts, tol=tol, max_iter=max_iter, exact=False, engine=engine)
    best = []
    for at in range(0, len(fits), len(STARTS)):
        ends = [fit.factors for fit in fits[at : at + len(STARTS)]]
        reached = [problems[at].objective(end.scores, end.loadings) for end in ends]
        best.append(ends[int(np.argmin(reached))].loadings.astype(float))
    return [best[at : at + len(candidates)] for at in range(0, len(best), len(candidates))]
