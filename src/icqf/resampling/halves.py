"""Would a second study find the same factors? Agreement between fits to halves of the sample."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.core.problem import Problem
from icqf.core.start import Starts
from icqf.engines.base import Engine
from icqf.engines.choice import engine_of, run
from icqf.engines.parallel import in_parallel
from icqf.resampling import tolerances
from icqf.resampling.matching import aligned

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
    engine: str | Engine = "local",
) -> pd.DataFrame:
    """How well the factors of two halves of the participants agree, for each (k, beta).

    Each half is fitted from each of two starts (non-negative SVD, rotated SVD); the factors of the two
    halves are matched, and the mean Pearson correlation of their loadings is the agreement of that division
    and start.
    """
    engine = engine_of(engine).for_many(problem.without_reconstruction_bound())
    together = engine.batches
    parts = [halves] if together else [[half] for half in halves]
    tasks = [(problem, part, tuple(candidates), tol, max_iter, engine) for part in parts]
    found = in_parallel(_agreements, tasks, n_jobs=1 if together else n_jobs)
    values = np.concatenate(found)  # (divisions, candidates, starts)
    rows = []
    for at, (k, beta) in enumerate(candidates):
        mine = values[:, at]
        low, high = np.quantile(mine, [0.1, 0.9])
        by_start = {name: float(mine[:, s].mean()) for s, name in enumerate(STARTS)}
        rows.append(
            {"n_components": k, "beta": beta, "agreement": mine.mean(), "low": low, "high": high, **by_start}
        )
    return pd.DataFrame(rows)


def _agreements(
    problem: Problem,
    divisions: Sequence[Array],
    candidates: Candidates,
    tol: float,
    max_iter: int,
    engine: str | Engine,
) -> Array:
    """Agreement (divisions, candidates, starts) between the two halves: one batch of fits for all of them."""
    problems, starts = [], []
    for half, half_of in product((0, 1), divisions):
        part = problem.of_rows(np.flatnonzero(half_of == half)).without_reconstruction_bound()
        shared = Starts(part)
        for k, beta in candidates:
            own = shared.with_beta(beta)
            problems += [own.problem] * len(STARTS)
            starts += [own.make(name, k) for name in STARTS]
    fits = run(problems, starts, tol=tol, max_iter=max_iter, exact=False, engine=engine)
    found = [fit.factors.loadings for fit in fits]
    pairs = zip(found[: len(found) // 2], found[len(found) // 2 :], strict=True)
    ks = [k for _ in divisions for k, _ in candidates for _ in STARTS]
    agreement = [aligned(a[:k], b[:k])[1] for (a, b), k in zip(pairs, ks, strict=True)]
    return np.reshape(agreement, (len(divisions), len(candidates), len(STARTS)))
