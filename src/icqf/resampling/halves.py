"""Would a second study find the same factors? Agreement between fits to halves of the sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits

from icqf.engines.local import run
from icqf.resampling.folds import make_folds
from icqf.solvers.problem import Problem
from icqf.solvers.start import Starts

Array = NDArray[Any]
STARTS = ("nndsvd", "rotated")


@dataclass(frozen=True)
class _Split:
    """One division of the people into halves, to be fitted with every candidate."""

    problem: Problem
    half_of: Array
    candidates: tuple[tuple[int, float], ...]
    tol: float
    max_iter: int


def correlations(a: Array, b: Array) -> Array:
    """Pearson correlations between the rows of a and those of b; 0 where one is constant."""
    a, b = (x - x.mean(axis=1, keepdims=True) for x in (a, b))
    sizes = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    return np.clip(np.divide(a @ b.T, sizes, out=np.zeros_like(sizes), where=sizes > 0), -1, 1)


def aligned(reference: Array, other: Array) -> tuple[Array, float]:
    """Which row of `other` goes with each row of `reference`, and their mean correlation."""
    similarity = correlations(reference, other)
    rows, columns = linear_sum_assignment(-similarity)
    return columns, float(similarity[rows, columns].mean())


def stability_curve(
    problem: Problem,
    candidates: Sequence[tuple[int, float]],
    *,
    n_splits: int = 6,
    tol: float = 2e-3,
    max_iter: int = 300,
    n_jobs: int | None = None,
    rng: np.random.Generator,
    partition: Any = None,
) -> pd.DataFrame:
    """How well the factors of two halves of the people agree, for each (k, beta).

    The people are divided into halves `n_splits` times. Each half is fitted from each of two starts
    (non-negative SVD, rotated SVD); the factors of the two halves are matched, and the mean Pearson
    correlation of their loadings is the agreement of that division and start.

    Parameters
    ----------
    partition : callable, optional
        Called with a generator; returns the half (0 or 1) of each participant. Default: at random.

    Returns
    -------
    DataFrame
        n_components, beta, agreement (mean), low and high (the 10th and 90th percentile), and the mean
        of each start.
    """
    splits = []
    for _ in range(n_splits):
        if partition is None:
            half = make_folds(problem.n, 2, n_splits=2, row_blocks=2, col_blocks=2, rng=rng).row_block
        else:
            half = partition(rng)
        splits.append(_Split(problem, half, tuple(candidates), tol, max_iter))
    agreements = Parallel(n_jobs=n_jobs)(delayed(_agreements)(split) for split in splits)
    values = np.stack(agreements)  # (splits, candidates, starts)
    rows = []
    for at, (k, beta) in enumerate(candidates):
        mine = values[:, at]
        low, high = np.quantile(mine, [0.1, 0.9])
        by_start = {name: float(mine[:, s].mean()) for s, name in enumerate(STARTS)}
        rows.append(
            {"n_components": k, "beta": beta, "agreement": mine.mean(), "low": low, "high": high, **by_start}
        )
    return pd.DataFrame(rows)


def _agreements(split: _Split) -> Array:
    """Agreement (candidates, starts) between the two halves."""
    with threadpool_limits(limits=1):
        halves = [_half_fits(split, half) for half in (0, 1)]
    result = np.empty((len(split.candidates), len(STARTS)))
    for at, (k, _) in enumerate(split.candidates):
        for s in range(len(STARTS)):
            first, second = halves[0][at][s], halves[1][at][s]
            result[at, s] = aligned(first[:k], second[:k])[1]
    return result


def _half_fits(split: _Split, half: int) -> list[list[Array]]:
    problem = split.problem.of_rows(np.flatnonzero(split.half_of == half))
    problem = problem.without_reconstruction_bound()
    shared = Starts(problem)
    fits = []
    for k, beta in split.candidates:
        starts = shared.with_beta(beta)
        found = run(
            starts.problem,
            [starts.make(name, k) for name in STARTS],
            tol=split.tol,
            max_iter=split.max_iter,
            exact=False,
        )
        fits.append([fit.factors.loadings.astype(np.float64) for fit in found])
    return fits
