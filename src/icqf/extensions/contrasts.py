"""How far the fits of groups differ, and how far those of shuffled groups do: resumable, in small jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.core.problem import Problem
from icqf.core.result import Factors
from icqf.jobs.parallel import Progress, run_all
from icqf.models.stability import best_fits
from icqf.resampling.bootstrap import bootstrap, refits, settled
from icqf.resampling.matching import aligned, correlations

Array = NDArray[Any]
_AT_ONCE = 10  # permutations or resamples of one job
_DIGITS = 12


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Fits of groups beside fits of shuffled groups.

    Attributes
    ----------
    sizes : int array (G,)
    loadings : array (G, K, m)
        Of each group, matched with the common factors, in the items' own units; confounds last.
    levels : array (G, m)
        What the common model leaves of the answers of each group on average.
    errors : array (G, k, m)
        Standard errors of the loadings, by resampling each group.
    fresh : array (G, k)
        Correlation of each common factor with its counterpart where a group is fitted afresh.
    apart : tuple of array (k,), (m,), (m,)
        How far factors, items and levels of the groups are apart: sums of squares between groups.
    shuffled : tuple of array (P, k), (P, m), (P, m)
        The same of shuffled groups.
    n_resamples : int
    """

    sizes: Array
    loadings: Array
    levels: Array
    errors: Array
    fresh: Array
    apart: tuple[Array, ...]
    shuffled: tuple[Array, ...]
    n_resamples: int

    def p_factors(self) -> Array:
        """p (k,) of each factor, allowing for the number of factors (Westfall and Young's largest statistic).

        Observed and shuffled groups enter alike, so that among groups of one population the smallest p is at
        most 0.05 in 5 of 100 studies, whatever the distribution of the answers is.
        """
        every = np.concatenate([self.apart[0][None], self.shuffled[0]])
        relative = every / np.maximum(every.mean(axis=0), 1e-300)
        largest = relative[1:].max(axis=1)
        return (1 + (largest[:, None] >= relative[0]).sum(axis=0)) / len(every)

    def p_items(self) -> Array:
        """p (m,) of each item's loadings."""
        return _pooled(self.apart[1], self.shuffled[1])

    def p_levels(self) -> Array:
        """p (m,) of each item's level."""
        return _pooled(self.apart[2], self.shuffled[2])


def _pooled(observed: Array, shuffled: Array) -> Array:
    """p (m,) against all items' shuffled statistics, each relative to its own mean.

    One item's 199 shuffled values could not give the small p that a test among many needs.
    """
    every = np.concatenate([observed[None], shuffled])
    relative = every / np.maximum(every.mean(axis=0), 1e-300)
    pool = np.sort(relative[1:].ravel())
    above = len(pool) - np.searchsorted(pool, relative[0], side="left")
    return (1 + above) / (1 + len(pool))


def contrasts(
    problem: Problem,
    common: Factors,
    left: Array,
    codes: Array,
    *,
    n_permutations: int,
    n_resamples: int,
    seed: int,
    n_jobs: int | None = None,
    checkpoint: Any = None,
    callback: Callable[[Progress], object] | None = None,
) -> Contrasts:
    """Fit groups, resamples of them and shuffled groups, all from the common fit on.

    Parameters
    ----------
    problem : Problem
        Everybody.
    common : Factors
        The fit to everybody, in the problem's units.
    left : array (n, m)
        What it leaves of the answers, in the items' own units; NaN where there is none.
    codes : int array (n,)
        The group of each participant.
    n_permutations, n_resamples : int
    seed : int
    n_jobs, checkpoint, callback
        As in `icqf.jobs.parallel.run_all`.
    """
    start, number = settled(problem, common), int(codes.max()) + 1
    k = len(common.scores)
    jobs: dict[str, tuple[Any, ...]] = {}
    for first in range(0, n_permutations, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, n_permutations))
        jobs[f"shuffled {first}"] = (
            _shuffled,
            problem,
            start,
            left,
            codes,
            [(seed, 0, at) for at in numbers],
        )
    for group in range(number):
        part = problem.of_rows(np.flatnonzero(codes == group))
        jobs[f"afresh {group}"] = (_afresh, part, common.loadings[:k])
        for first in range(0, n_resamples, _AT_ONCE):
            size = min(_AT_ONCE, n_resamples - first)
            own = Factors(common.scores[:, codes == group], common.loadings)
            jobs[f"resampled {group} {first}"] = (_resampled, part, own, size, (seed, 1 + group, first))
    done = run_all(
        jobs,
        _work,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        callback=callback,
    )
    shuffled = [
        part for name, result in done.items() if name.startswith("shuffled") for part in result["apart"]
    ]
    fitted, apart = apart_of(problem, start, left, codes)
    errors = [
        np.concatenate(
            [result["loadings"] for name, result in done.items() if name.startswith(f"resampled {group} ")]
        ).std(axis=0, ddof=1)
        for group in range(number)
    ]
    return Contrasts(
        np.bincount(codes),
        np.stack([problem.own_loadings(loadings) for loadings in fitted]),
        level_of(left, codes),
        np.stack(errors),
        np.array([done[f"afresh {group}"]["agreement"] for group in range(number)]),
        apart,
        tuple(np.array([part[at] for part in shuffled]) for at in range(3)),
        n_resamples,
    )


def apart_of(
    problem: Problem, start: Factors, left: Array, codes: Array
) -> tuple[list[Array], tuple[Array, Array, Array]]:
    """Matched loadings (K, m) of each group, and how far its factors, items and levels are apart."""
    k, members = len(start.scores), [(codes == group).astype(int) for group in range(int(codes.max()) + 1)]
    fitted = []
    for loadings in refits(problem, start, members):
        order, _ = aligned(start.loadings[:k], loadings[:k])
        fitted.append(np.concatenate([as_long(loadings[:k][order], start.loadings[:k]), loadings[k:]]))
    share = np.bincount(codes) / len(codes)
    between = _between(np.stack(fitted)[:, :k], share)
    return fitted, (
        between.sum(axis=1),
        between.sum(axis=0),
        _between(level_of(left, codes), share),
    )


def as_long(loadings: Array, common: Array) -> Array:
    """Loadings (…, k, m) with each factor as long as the common one.

    How long a factor is depends on how much of it the participants have who have most of it, since that is a
    score of 1: in a sample with few complaints loadings are smaller throughout, and scores as large.
    """
    length = np.linalg.norm(loadings, axis=-1, keepdims=True)
    return loadings * (np.linalg.norm(common, axis=-1, keepdims=True) / np.maximum(length, 1e-300))


def _between(values: Array, share: Array) -> Array:
    """Sum of squares between groups, of values (G, …)."""
    mean = np.tensordot(share, values, axes=1)
    return np.tensordot(share, (values - mean) ** 2, axes=1)


def level_of(left: Array, codes: Array) -> Array:
    """Mean (G, m) of what the common model leaves of the answers (n, m) of each group; NaN is missing."""
    given = ~np.isnan(left)
    member = np.arange(int(codes.max()) + 1)[:, None] == codes  # (G, n)
    return (member @ np.where(given, left, 0.0)) / np.maximum(member @ given.astype(float), 1.0)


def _work(kind: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    return kind(*arguments)


def _shuffled(
    problem: Problem, start: Factors, left: Array, codes: Array, seeds: Sequence[Any]
) -> dict[str, Any]:
    found = []
    for seed in seeds:
        _, apart = apart_of(problem, start, left, np.random.default_rng(seed).permutation(codes))
        found.append([np.asarray(part, dtype=float).tolist() for part in apart])
    return {"apart": found}


def _afresh(part: Problem, loadings: Array) -> dict[str, Any]:
    (found,) = best_fits(part, [(len(loadings), part.penalty.beta)])
    order, _ = aligned(loadings, found)
    return {"agreement": np.diag(correlations(loadings, found[order])).tolist()}


def _resampled(part: Problem, own: Factors, size: int, seed: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    k, common = len(own.scores), part.own_loadings(own.loadings)
    drawn = bootstrap(part, own.scores, common, n_resamples=size, rng=rng)
    scaled = as_long(part.scaled_loadings(drawn.loadings[:, :k]), own.loadings[:k])
    return {"loadings": part.own_loadings(scaled).round(_DIGITS).tolist()}
