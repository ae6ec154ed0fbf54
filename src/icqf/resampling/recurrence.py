"""Is a factor found again when the sample is drawn again, and the fit started afresh?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.engines.choice import run
from icqf.jobs.parallel import in_parallel, pieces
from icqf.resampling import tolerances
from icqf.resampling.dealing import drawn_counts
from icqf.resampling.matching import aligned, correlations
from icqf.solvers.problem import Problem
from icqf.solvers.start import Starts

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
    tasks = [(problem, tuple(models), part, tol, max_iter) for part in pieces(draws, n_jobs)]
    found = [each for part in in_parallel(_agreements, tasks, n_jobs=n_jobs) for each in part]
    return [np.stack([each[at] for each in found]) for at in range(len(models))]


def _agreements(
    problem: Problem,
    models: Sequence[tuple[float, Array]],
    draws: Sequence[Array],
    tol: float,
    max_iter: int,
) -> list[list[Array]]:
    """For each draw and model, the correlation (k,) of each factor with its counterpart."""
    return [_of_draw(problem, models, counts, tol, max_iter) for counts in draws]


def _of_draw(
    problem: Problem, models: Sequence[tuple[float, Array]], counts: Array, tol: float, max_iter: int
) -> list[Array]:
    candidates = [(len(loadings), beta) for beta, loadings in models]
    fits = best_fits(problem.drawn(counts), candidates, tol=tol, max_iter=max_iter)
    agreements = []
    for (_, loadings), fit in zip(models, fits, strict=True):
        found = fit[: len(loadings)]
        order, _ = aligned(loadings, found)
        agreements.append(np.diag(correlations(loadings, found[order])))
    return agreements


def best_fits(
    problem: Problem,
    candidates: Sequence[tuple[int, float]],
    *,
    tol: float = tolerances.RESAMPLE,
    max_iter: int = tolerances.MAX_ITER,
) -> list[Array]:
    """Loadings (k + c, m) of each (k, beta): from two starts, the fit with the better objective."""
    shared = Starts(problem.without_reconstruction_bound())
    problems, starts = [], []
    for k, beta in candidates:
        own = shared.with_beta(beta)
        problems += [own.problem] * len(STARTS)
        starts += [own.make(name, k) for name in STARTS]
    fits = run(problems, starts, tol=tol, max_iter=max_iter, exact=False)
    best = []
    for at in range(0, len(fits), len(STARTS)):
        mine = fits[at : at + len(STARTS)]
        best.append(min(mine, key=lambda fit: fit.trace.objective[-1]).factors.loadings.astype(float))
    return best
