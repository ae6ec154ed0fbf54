"""Do loadings differ between visits: a permutation test among visits with the same scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from icqf.core.observations import Array
from icqf.core.problem import Problem
from icqf.errors import InputError, listed, shown_p
from icqf.resampling.propensity_bands import make_bands

LEVEL = 0.05
WORTH_TESTING = 0.05  # smallest loading of a tested item, as a share of its range
FEWEST = 99  # permutations


@dataclass(frozen=True, eq=False)
class LoadingChanges:
    """Whether loadings differ between visits.

    The hypothesis of a factor: participants with the same scores answer its items in the same way at every
    visit. That they have higher or lower scores at some visits does not count against it.

    Attributes
    ----------
    factors : DataFrame
        By factor: ``spread`` (root mean square of its items' differences between visits, as a share of their
        ranges), ``p``, ``q`` (after false discovery control over the factors) and ``changes``.
    items : DataFrame
        The same by factor and item, for the items of each factor.
    n_permutations : int

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.models import LoadingChanges
    >>> factors = pd.DataFrame({"spread": [0.1], "p": [0.01], "q": [0.01], "changes": [True]}, ["factor1"])
    >>> index = pd.MultiIndex.from_tuples([("factor1", "q1"), ("factor1", "q2")], names=["factor", "item"])
    >>> items = pd.DataFrame({"spread": [0.2, 0], "p": 0.1, "q": 0.1, "changes": [True, False]}, index)
    >>> print(LoadingChanges(factors, items, 999))
    factor1: its loadings differ between visits (q = 0.010), most clearly that of 'q1'.
    """

    factors: pd.DataFrame
    items: pd.DataFrame
    n_permutations: int

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """One sentence per factor; it says what q was computed for."""
        lines = []
        for factor, row in self.factors.iterrows():
            judged = f"(q {shown_p(row['q'], LEVEL, equals='= ')})"
            moved = self.moved(str(factor))
            if not row["changes"]:
                lines.append(f"{factor}: no evidence that its loadings differ between visits {judged}.")
            elif moved:
                own = "that of" if len(moved) == 1 else "those of"
                lines.append(
                    f"{factor}: its loadings differ between visits {judged}, most clearly {own} "
                    f"{listed(moved)}."
                )
            else:
                lines.append(
                    f"{factor}: its loadings differ between visits {judged}; no single item stands out."
                )
        return lines

    def moved(self, factor: str) -> list[str]:
        """The items of a factor whose own loadings differ between visits, if the factor's do."""
        if not self.factors.at[factor, "changes"]:
            return []
        own = self.items[self.items.index.get_level_values(0) == factor]
        return [str(item) for _, item in own.index[own["changes"].to_numpy(bool)]]


def loading_changes(
    problem: Problem,
    scores: Array,
    loadings: Array,
    *,
    factors: list[str],
    items: list[str],
    n_permutations: int,
    seed: int = 0,
) -> LoadingChanges:
    """Test the loadings of a model that has the same ones at every visit.

    What the model leaves of each item's answers is regressed on the scores (k, V), visit by visit. If the
    loadings are the same at every visit, these slopes differ no more than between visits that are assigned at
    random within bands of answers with the same scores and level. The bands matter: where participants are
    worse at some visits, up to the end of the range, slopes differ for that reason alone. The loadings are
    those of the pooled problem (k + c, items). Nothing is refitted.
    """
    if n_permutations < FEWEST:
        raise InputError(
            f"n_permutations={n_permutations} is too few to tell change from chance; take 999.",
            code="permutations",
        )
    bin_, k = problem.observations.bin, len(scores)  # type: ignore[attr-defined]
    pooled = problem.pooled()
    residuals, level = _residuals(pooled, scores, loadings)
    W = scores.T.astype(np.float64)
    bands = make_bands(np.column_stack([W, level]), bin_)
    centred = residuals - _bin_means(residuals, bin_)[bin_]
    rng = np.random.default_rng([seed, 7])
    slopes = [_slopes(residuals, W, bin_)]
    slopes += [_slopes(centred, W, bands.permuted(bin_, rng)) for _ in range(n_permutations)]
    every = np.stack(slopes)  # (1 + B, bins, k, items)
    middle, width = every[1:].mean(axis=0), every[1:].std(axis=0, ddof=1)
    z = (every - middle) / np.where(width > 0, width, np.inf)
    statistic = (z**2).sum(axis=1)  # (1 + B, k, items)
    share = np.bincount(bin_) / len(bin_)
    apart = every[0] - middle
    apart = apart - np.einsum("t,tkj->kj", share, apart)
    spread = np.sqrt(np.einsum("t,tkj->kj", share, apart**2)) / pooled.span
    part_of = loadings[:k] / pooled.span >= WORTH_TESTING
    return LoadingChanges(
        _factor_tests(statistic, spread, part_of, factors),
        _item_tests(statistic, spread, part_of, factors, items),
        n_permutations,
    )


def _residuals(pooled: Problem, scores: Array, loadings: Array) -> tuple[Array, Array]:
    """What the model leaves of the answers (V, items), 0 where missing, and each visit's level (V,)."""
    A = pooled.with_confounds(scores)
    parts, level = [], []
    for block in pooled.blocks():
        parts.append(block.masked(block.X - A[:, block.rows].T @ loadings).astype(np.float64))
        seen = block.observed()
        level.append((block.X / pooled.span * seen).sum(axis=1) / np.maximum(seen.sum(axis=1), 1))
    return np.concatenate(parts), np.concatenate(level)


def _bin_means(residuals: Array, bin_: Array) -> Array:
    sums = np.zeros((int(bin_.max()) + 1, residuals.shape[1]))
    np.add.at(sums, bin_, residuals)
    return sums / np.bincount(bin_)[:, None]


def _slopes(residuals: Array, W: Array, bin_: Array) -> Array:
    """Slopes (bins, k, items) of residuals on scores within each bin."""
    found = []
    for t in range(int(bin_.max()) + 1):
        own = bin_ == t
        X = W[own] - W[own].mean(axis=0)
        found.append(np.linalg.pinv(X.T @ X, hermitian=True) @ (X.T @ residuals[own]))
    return np.stack(found)


def _factor_tests(statistic: Array, spread: Array, part_of: Array, names: list[str]) -> pd.DataFrame:
    together = (statistic * part_of).sum(axis=2)  # (1 + B, k)
    p = (together >= together[0]).mean(axis=0)
    counts = np.maximum(part_of.sum(axis=1), 1)
    size = np.sqrt((spread**2 * part_of).sum(axis=1) / counts)
    return _test_table(size, p, pd.Index(names, name="factor"))


def _item_tests(
    statistic: Array, spread: Array, part_of: Array, names: list[str], items: list[str]
) -> pd.DataFrame:
    """Items share one null distribution, so that 999 permutations are enough for hundreds of items."""
    own = statistic[:, part_of]  # (1 + B, pairs)
    null = np.sort(own[1:].ravel())
    p = (1 + len(null) - np.searchsorted(null, own[0], side="left")) / (1 + len(null))
    at = [(names[r], items[j]) for r, j in np.argwhere(part_of)]
    return _test_table(spread[part_of], p, pd.MultiIndex.from_tuples(at, names=["factor", "item"]))


def _test_table(spread: Array, p: Array, index: pd.Index) -> pd.DataFrame:
    q = false_discovery_control(p) if len(p) else p
    return pd.DataFrame({"spread": spread, "p": p, "q": q, "changes": q <= LEVEL}, index=index)
