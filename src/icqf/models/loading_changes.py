"""Do loadings or items' levels differ between visits: permutation tests among visits with the same scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from icqf.core.observations import Array
from icqf.core.problem import Problem
from icqf.errors import InputError, counted, listed, shown_p
from icqf.resampling.propensity_bands import make_bands

LEVEL = 0.05
WORTH_TESTING = 0.05  # smallest loading of a tested item, as a share of its range
FEWEST = 99  # permutations
# docs/results/calibration.md has the cases.
UNSURE = (
    "Where the levels of items differ as well, a difference in loadings is less sure: it was said in about 1 "
    "of 14 simulated studies in which only levels differed."
)
_SHOWN = 3  # items with the largest differences in level
_LEAST_DEVIATION = 0.3  # expected standard deviation of an answer, relative to the item's median
_CLASSES = 10  # of answers, at most
_RIDGE = 0.5
_NEWTON = 30  # steps, at most


@dataclass(frozen=True, eq=False)
class LoadingChanges:
    """Whether loadings, or the levels of items, differ between visits.

    The hypothesis of a factor: its items rise equally steeply with the scores at every visit. That
    participants have higher or lower scores at some visits does not count against it, nor does an item that
    is answered higher or lower at the same scores: that is a difference in the item's level.

    Attributes
    ----------
    factors : DataFrame
        By factor: ``spread`` (root mean square of its items' differences between visits, as a share of their
        ranges), ``p``, ``q`` (after false discovery control over the factors) and ``changes``.
    items : DataFrame
        The same by factor and item, for the items of each factor.
    levels : DataFrame
        By item: ``difference`` (between the visits at which participants with the same scores answer highest
        and lowest, in points), ``highest`` and ``lowest`` (these visits), ``p``, ``q`` and ``changes``.
    n_permutations : int

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.models import LoadingChanges
    >>> factors = pd.DataFrame({"spread": [0.1], "p": [0.01], "q": [0.01], "changes": [True]}, ["factor1"])
    >>> index = pd.MultiIndex.from_tuples([("factor1", "q1"), ("factor1", "q2")], names=["factor", "item"])
    >>> items = pd.DataFrame({"spread": [0.2, 0], "p": 0.1, "q": 0.1, "changes": [True, False]}, index)
    >>> levels = pd.DataFrame(
    ...     {"difference": 0.1, "highest": "12", "lowest": "0", "p": 0.2, "q": 0.2, "changes": False},
    ...     ["q1", "q2"],
    ... )
    >>> print(LoadingChanges(factors, items, levels, 999))
    factor1: its loadings differ between visits (q = 0.010), most clearly that of 'q1'.
    """

    factors: pd.DataFrame
    items: pd.DataFrame
    levels: pd.DataFrame
    n_permutations: int

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """One sentence per factor, which says what q was computed for, and one about the items' levels."""
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
        levels = self.level_sentences()
        if levels and self.factors["changes"].any():
            levels.append(UNSURE)
        return lines + levels

    def level_sentences(self) -> list[str]:
        """The items that are answered higher or lower at the same scores; nothing if there are none."""
        own = self.levels[self.levels["changes"].to_numpy(bool)]
        if own.empty:
            return []
        shown = [
            f"{str(item)!r} ({row['difference']:.2f} points higher at {row['highest']} than at "
            f"{row['lowest']})"
            for item, row in own.nlargest(_SHOWN, "difference").iterrows()
        ]
        more = f" and {len(own) - _SHOWN} more" * (len(own) > _SHOWN)
        return [
            f"{len(own)} of {counted(len(self.levels), 'item')} {'is' if len(own) == 1 else 'are'} answered "
            f"higher or lower at the same scores: {', '.join(shown)}{more}."
        ]

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
    visits: list[str],
    n_permutations: int,
    seed: int = 0,
) -> LoadingChanges:
    """Test the loadings of a model that has the same ones at every visit, and the items' levels.

    An item's answers are compared with those expected from the scores (k, V) on the item's own curve between
    its lowest and highest answer, with its own level at each visit. What is left, relative to its expected
    standard deviation, is regressed on the scores, visit by visit. If the loadings are the same at every
    visit, these slopes differ no more than between visits that are assigned at random within bands of answers
    with the same scores and level. The bands matter: where participants are worse at some visits, up to the
    end of the range, slopes differ for that reason alone. So does the curve: an item that is answered higher
    at some visits, whatever the scores, comes closer to the end of its range there. Levels are compared
    likewise, on a curve that is the same at every visit. The loadings are those of the pooled problem
    (k + c, items). Nothing is refitted.
    """
    if n_permutations < FEWEST:
        raise InputError(
            f"n_permutations={n_permutations} is too few to tell change from chance; take 999.",
            code="permutations",
        )
    bin_, k = problem.observations.bin, len(scores)  # type: ignore[attr-defined]
    pooled = problem.pooled()
    answers, seen = _answers(pooled)
    level = (answers / pooled.span).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    W = scores.T.astype(np.float64)
    bands = make_bands(np.column_stack([W, level]), bin_)
    rng = np.random.default_rng([seed, 7])
    orders = [bin_, *(bands.permuted(bin_, rng) for _ in range(n_permutations))]
    varying = pooled.design[np.ptp(pooled.design, axis=1) > 0]
    known = _standard(np.column_stack([W, W**2, varying.T]))
    residuals, relative = _residuals(
        answers, seen, np.column_stack([known, bin_[:, None] == np.arange(1, len(visits))])
    )
    slopes = _statistic(np.stack([_slopes(relative, W, order) for order in orders]))
    share = np.bincount(bin_) / len(bin_)
    apart = _slopes(residuals, W, bin_)
    apart = apart - np.einsum("t,tkj->kj", share, apart)
    spread = np.sqrt(np.einsum("t,tkj->kj", share, apart**2)) / pooled.span
    part_of = loadings[:k] / pooled.span >= WORTH_TESTING
    residuals, relative = _residuals(answers, seen, known)
    points = residuals if pooled.scaling is None else residuals / pooled.scaling.scale
    higher = _means(points, seen, bin_)
    higher = higher - np.mean([_means(points, seen, order) for order in orders[1:]], axis=0)
    levels = _statistic(np.stack([_means(relative, seen, order) for order in orders]))
    return LoadingChanges(
        _factor_tests(slopes, spread, part_of, factors),
        _item_tests(slopes, spread, part_of, factors, items),
        _level_tests(levels, higher, items, visits),
        n_permutations,
    )


def _answers(pooled: Problem) -> tuple[Array, Array]:
    """The answers (V, items), 0 where missing, and where they were given."""
    blocks = list(pooled.precise_blocks())
    seen = np.concatenate([block.observed() > 0 for block in blocks])
    return np.where(seen, np.concatenate([block.X for block in blocks]), 0.0), seen


def _standard(columns: Array) -> Array:
    spread = columns.std(axis=0)
    return (columns - columns.mean(axis=0)) / np.where(spread > 1e-9, spread, np.inf)


def _residuals(answers: Array, seen: Array, known: Array) -> tuple[Array, Array]:
    """Answers (V, items) less those expected given `known` (V, q): in points, and in standard deviations."""
    residuals, relative = np.zeros_like(answers), np.zeros_like(answers)
    for j, own in enumerate(seen.T):
        if not own.any():
            continue
        mean, deviation = expected_answers(answers[own, j], known[own])
        residuals[own, j] = answers[own, j] - mean
        floor = max(float(np.median(deviation)) * _LEAST_DEVIATION, 1e-9)
        relative[own, j] = residuals[own, j] / np.maximum(deviation, floor)
    return residuals, relative / np.maximum(relative.std(axis=0), 1e-9)


def expected_answers(answers: Array, known: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (n,) of an item's answers given `known` (n, q).

    By a proportional-odds model: the log-odds of an answer above each step of the item are a constant of the
    step plus a linear function of `known`. It is fitted by Newton's method to all steps, as if they were
    independent, with a weak ridge penalty. Items with many different answers are cut into classes first.
    """
    cuts = np.unique(answers)[:-1]
    if len(cuts) >= _CLASSES:
        cuts = np.unique(np.quantile(answers, np.arange(1, _CLASSES) / _CLASSES, method="inverted_cdf"))
        cuts = cuts[cuts < answers.max()]
    above = (answers[:, None] > cuts).astype(np.float64)
    steps, q = len(cuts), known.shape[1]
    classes = above.sum(axis=1).astype(np.intp)
    points = np.bincount(classes, answers) / np.bincount(classes)
    share = above.mean(axis=0)
    at = np.concatenate([np.log(share / (1 - share)), np.zeros(q)])
    hessian = np.zeros((steps + q, steps + q))
    for _ in range(_NEWTON):
        odds = np.clip(at[:steps] + (known @ at[steps:])[:, None], -30, 30)
        chance = 1 / (1 + np.exp(-odds))
        weight, left = chance * (1 - chance), above - chance
        hessian[:steps, :steps] = np.diag(weight.sum(axis=0) + 1e-6)
        hessian[:steps, steps:] = weight.T @ known
        hessian[steps:, :steps] = hessian[:steps, steps:].T
        hessian[steps:, steps:] = known.T @ (known * weight.sum(axis=1)[:, None]) + _RIDGE * np.eye(q)
        gradient = np.concatenate([left.sum(axis=0), known.T @ left.sum(axis=1) - _RIDGE * at[steps:]])
        step = np.linalg.solve(hessian, gradient)
        largest = float(np.abs(step).max(initial=0.0))
        at += step / max(1.0, largest / 2)
        if largest < 1e-4:
            break
    chance = 1 / (1 + np.exp(-np.clip(at[:steps] + (known @ at[steps:])[:, None], -30, 30)))
    mean = points[0] + chance @ np.diff(points)
    square = points[0] ** 2 + chance @ np.diff(points**2)
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _slopes(residuals: Array, W: Array, bin_: Array) -> Array:
    """Slopes (bins, k, items) of residuals on scores within each bin."""
    found = []
    for t in range(int(bin_.max()) + 1):
        own = bin_ == t
        X = W[own] - W[own].mean(axis=0)
        found.append(np.linalg.pinv(X.T @ X, hermitian=True) @ (X.T @ residuals[own]))
    return np.stack(found)


def _means(residuals: Array, seen: Array, bin_: Array) -> Array:
    """Means (bins, items) of the residuals of the answers given."""
    member = (np.arange(int(bin_.max()) + 1)[:, None] == bin_).astype(np.float64)
    return (member @ residuals) / np.maximum(member @ seen, 1.0)


def _statistic(every: Array) -> Array:
    """Sum over bins of the squares of (1 + B, bins, …), relative to their spread over the permutations."""
    width = every[1:].std(axis=0, ddof=1)
    z = (every - every[1:].mean(axis=0)) / np.where(width > 0, width, np.inf)
    return (z**2).sum(axis=1)


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
    p = _pooled(statistic[:, part_of])
    at = [(names[r], items[j]) for r, j in np.argwhere(part_of)]
    return _test_table(spread[part_of], p, pd.MultiIndex.from_tuples(at, names=["factor", "item"]))


def _level_tests(statistic: Array, higher: Array, items: list[str], visits: list[str]) -> pd.DataFrame:
    """`higher` (bins, items): how many points higher each visit's answers are than those of all visits."""
    table = _test_table(np.ptp(higher, axis=0), _pooled(statistic), pd.Index(items, name="item"))
    table = table.rename(columns={"spread": "difference"})
    table.insert(1, "highest", [visits[t] for t in higher.argmax(axis=0)])
    table.insert(2, "lowest", [visits[t] for t in higher.argmin(axis=0)])
    return table


def _pooled(statistic: Array) -> Array:
    """p of statistics (1 + B, number), the first of which are observed, against all permuted ones."""
    null = np.sort(statistic[1:].ravel())
    return (1 + len(null) - np.searchsorted(null, statistic[0], side="left")) / (1 + len(null))


def _test_table(spread: Array, p: Array, index: pd.Index) -> pd.DataFrame:
    q = false_discovery_control(p) if len(p) else p
    return pd.DataFrame({"spread": spread, "p": p, "q": q, "changes": q <= LEVEL}, index=index)
