"""Would a second study find the same factors? Agreement between fits to halves of the sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.engines.choice import run
from icqf.jobs.parallel import in_parallel
from icqf.resampling import tolerances
from icqf.resampling.matching import aligned
from icqf.solvers.problem import Problem
from icqf.solvers.start import Starts

Array = NDArray[Any]
Candidates = Sequence[tuple[int, float]]
STARTS = ("nndsvd", "rotated")


def stability_curve(
    problem: Problem,
    candidates: Candidates,
    halves: Sequence[Array],
    *,
    tol: float = tolerances.RESAMPLE,
    max_iter: int = tolerances.MAX_ITER,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """How well the factors of two halves of the participants agree, for each (k, beta).

    Each half is fitted from each of two starts (non-negative SVD, rotated SVD); the factors of the two
    halves are matched, and the mean Pearson correlation of their loadings is the agreement of that division
    and start.

    Parameters
    ----------
    problem : Problem
    candidates : sequence of (int, float)
        Numbers of factors and penalties.
    halves : sequence of int array (n,)
        The divisions: the half (0 or 1) of each participant, as `icqf.resampling.folds.halves_of` makes them.

    Returns
    -------
    DataFrame
        n_components, beta, agreement (mean), low and high (the 10th and 90th percentile), and the mean
        of each start.
    """
    tasks = [(problem, half, tuple(candidates), tol, max_iter) for half in halves]
    values = np.stack(in_parallel(_agreements, tasks, n_jobs=n_jobs))  # (divisions, candidates, starts)
    rows = []
    for at, (k, beta) in enumerate(candidates):
        mine = values[:, at]
        low, high = np.quantile(mine, [0.1, 0.9])
        by_start = {name: float(mine[:, s].mean()) for s, name in enumerate(STARTS)}
        rows.append(
            {"n_components": k, "beta": beta, "agreement": mine.mean(), "low": low, "high": high, **by_start}
        )
    return pd.DataFrame(rows)


def _agreements(problem: Problem, half_of: Array, candidates: Candidates, tol: float, max_iter: int) -> Array:
    """Agreement (candidates, starts) between the two halves: one batch of fits for all of them."""
    problems, starts = [], []
    for half in (0, 1):
        part = problem.of_rows(np.flatnonzero(half_of == half)).without_reconstruction_bound()
        shared = Starts(part)
        for k, beta in candidates:
            own = shared.with_beta(beta)
            problems += [own.problem] * len(STARTS)
            starts += [own.make(name, k) for name in STARTS]
    found = [fit.factors.loadings for fit in run(problems, starts, tol=tol, max_iter=max_iter, exact=False)]
    pairs = zip(found[: len(found) // 2], found[len(found) // 2 :], strict=True)
    ks = [k for k, _ in candidates for _ in STARTS]
    agreement = [aligned(a[:k], b[:k])[1] for (a, b), k in zip(pairs, ks, strict=True)]
    return np.reshape(agreement, (len(candidates), len(STARTS)))
