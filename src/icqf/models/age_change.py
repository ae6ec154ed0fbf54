"""How loadings run over age: their intervals, and whether they change at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from icqf.core.problem import Problem
from icqf.core.result import Factors
from icqf.engines.choice import run
from icqf.engines.parallel import Progress, run_all
from icqf.errors import InputError, counted, shown_p
from icqf.models.visits import VisitObservations
from icqf.resampling import tolerances
from icqf.resampling.bootstrap import bootstrap
from icqf.resampling.matching import aligned

if TYPE_CHECKING:
    from icqf.models.longitudinal import LongitudinalICQF
    from icqf.models.visits import VisitStatement

Array = NDArray[Any]
LEVEL = 0.05
WORTH_TESTING = 0.05  # of the range: items whose loading, whenever answered, is less are not part of a factor
_AT_A_TIME = 10  # shuffles in one job


def course_table(model: LongitudinalICQF) -> pd.DataFrame:
    """One row per item, factor and bin: the loading, and where the bin lies."""
    cube = model.loadings_by_age_
    items, factors, bins = model.items_, list(model.get_feature_names_out()), model.bins_
    index = pd.MultiIndex.from_product([items, factors, bins.labels], names=["item", "factor", "bin"])
    table = index.to_frame(index=False)
    table["age"] = np.tile(bins.places, len(items) * len(factors))
    return table.assign(loading=cube.ravel())


def interval_table(
    model: LongitudinalICQF,
    statement: VisitStatement,
    *,
    n_resamples: int,
    n_jobs: int | None,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """`course_table` with 95 % intervals, from resampled participants."""
    if n_resamples < 2:
        raise InputError(f"n_resamples={n_resamples} is too few for an interval; draw 100.", code="resamples")
    inner, problem = model.model_, model.problem_of(statement)
    loadings = np.concatenate([inner.components_, inner.confound_components_])
    drawn = bootstrap(
        problem,
        inner.solve_scores(problem),
        loadings,
        n_resamples=n_resamples,
        n_jobs=n_jobs,
        engine=inner.engine,
        rng=rng,
    )
    top = np.ptp(inner.item_range_.to_numpy(), axis=1)
    low, high = drawn.interval(loadings, top)
    k = len(inner.components_)

    def column(values: Array) -> Array:
        return values[:k].reshape(k, len(model.bins_), -1).transpose(2, 0, 1).ravel()

    return course_table(model).assign(low=column(low), high=column(high))


@dataclass(frozen=True, eq=False)
class AgeChanges:
    """Whether loadings change with age.

    Attributes
    ----------
    factors : DataFrame
        By factor: ``spread`` (root mean square of its items' changes, as a share of their ranges), ``p``,
        ``q`` (after false discovery control over the factors) and ``changes``.
    items : DataFrame
        By factor and item, for the items that belong to a factor: the same, with false discovery control over
        all of them.
    n_permutations : int

    Examples
    --------
    >>> import pandas as pd
    >>> from icqf.models import AgeChanges
    >>> factors = pd.DataFrame({"spread": [0.1], "p": [0.01], "q": [0.01], "changes": [True]}, ["factor1"])
    >>> index = pd.MultiIndex.from_tuples([("factor1", "q1"), ("factor1", "q2")], names=["factor", "item"])
    >>> items = pd.DataFrame({"spread": [0.2, 0], "p": 0.1, "q": 0.1, "changes": [True, False]}, index)
    >>> print(AgeChanges(factors, items, 99))
    factor1: changes with age (q = 0.010); 1 of its 2 items changes by itself: q1.
    """

    factors: pd.DataFrame
    items: pd.DataFrame
    n_permutations: int

    def __str__(self) -> str:
        lines = []
        for factor, row in self.factors.iterrows():
            own = self.items.loc[[factor]] if factor in self.items.index.get_level_values(0) else None
            if own is None:
                lines.append(f"{factor}: no item has a loading large enough to test.")
                continue
            moved = [str(item) for _, item in own.index[own["changes"].to_numpy(bool)]]
            whole = "changes with age" if row["changes"] else "no overall change with age"
            some = "none" if not moved else str(len(moved))
            verb = "change by themselves" if len(moved) > 1 else "changes by itself"
            named = f": {', '.join(moved)}" if moved else ""
            n_items = counted(len(own), "item")
            judged = f"q {shown_p(row['q'], LEVEL, equals='= ')}"
            lines.append(f"{factor}: {whole} ({judged}); {some} of its {n_items} {verb}{named}.")
        least = 1 / (self.n_permutations + 1)
        if len(self.factors) * least > LEVEL and not self.factors["changes"].all():
            lines.append(
                f"With {self.n_permutations} shuffles no p can be below {least:.3f}, which is too coarse to "
                f"test {counted(len(self.factors), 'factor')}; 199 are enough for up to ten."
            )
        return "\n".join(lines)


def age_changes(
    model: LongitudinalICQF,
    statement: VisitStatement,
    *,
    n_permutations: int,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> AgeChanges:
    """Test each factor and item by shuffling each participant's visits over the bins the participant was seen
    in.

    If loadings do not change, it does not matter which visit was at which age, and a shuffled table is as
    good as the one at hand. All of them, the one at hand included, are fitted from the same start: the
    solution of the pooled answers, which no shuffling changes. What is compared is how far each loading is
    spread over the bins. Factors have their own distribution of that spread; items are first brought to a
    common scale (by mean and standard deviation over the shuffles) and then share one distribution, so that
    199 shuffles are enough for hundreds of items.
    """
    if n_permutations < 9:
        raise InputError(
            f"n_permutations={n_permutations} is too few to tell change from chance; shuffle 199 times.",
            code="permutations",
        )
    problem = model.problem_of(statement).without_reconstruction_bound()
    start = _without_age(model, problem)
    seeds = list(range(-1, n_permutations))  # −1 is the table as it is
    jobs = {
        f"shuffles {part[0]}-{part[-1]}": (problem, start, part)
        for part in (seeds[at : at + _AT_A_TIME] for at in range(0, len(seeds), _AT_A_TIME))
    }
    found = run_all(
        jobs,
        _spreads,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        callback=callback,
        what="Change with age",
    )
    spreads = np.array([each for part in found.values() for each in part["spreads"]])  # (1 + B, k, items)
    k, p = spreads.shape[1:]
    span = problem.span[:p]
    part_of = start.loadings[:k, :p] / span >= WORTH_TESTING
    names = list(model.get_feature_names_out())
    return AgeChanges(
        _factor_tests(spreads, part_of, names),
        _item_tests(spreads, part_of, names, model.items_),
        n_permutations,
    )


def _without_age(model: LongitudinalICQF, problem: Problem) -> Factors:
    """The solution of the pooled answers nearest to the model, alike in every bin, in the model's order."""
    inner, pooled = model.model_, problem.pooled()
    own = problem.scaled_loadings(np.concatenate([inner.components_, inner.confound_components_]))
    mean = own.reshape(len(own), len(model.bins_), -1).mean(axis=1)
    scores = inner.solve_scores(problem)
    (found,) = run(
        pooled, Factors(scores, mean), tol=tolerances.SETTLE, max_iter=tolerances.MAX_ITER, exact=False
    )
    W, Q, k = found.factors.scores, found.factors.loadings, len(scores)
    order, _ = aligned(mean[:k], Q[:k])
    Q = np.concatenate([Q[:k][order], Q[k:]])
    return Factors(W[order], problem.spread(Q).astype(np.float64))


def _spreads(problem: Problem, start: Factors, seeds: Sequence[int]) -> dict[str, Any]:
    """How far each loading is spread over the bins (k, items), as a share of the range, for each shuffle."""
    visits = problem.observations
    if not isinstance(visits, VisitObservations):
        raise TypeError("Only visits can be shuffled.")
    k, bins = len(start.scores), visits.bins
    seen = np.bincount(visits.bin, minlength=bins) / len(visits.bin)
    spreads = []
    for seed in seeds:
        shuffled = visits if seed < 0 else visits.shuffled(np.random.default_rng([seed, 7]))
        (found,) = run(
            replace(problem, observations=shuffled),
            start,
            tol=tolerances.RESAMPLE,
            max_iter=tolerances.MAX_ITER,
            exact=False,
        )
        Q = found.factors.loadings[:k].astype(np.float64)
        order, _ = aligned(start.loadings[:k], Q)
        courses = (Q[order] / problem.span).reshape(k, bins, -1)
        middle = np.einsum("t,ktj->kj", seen, courses)
        spreads.append(np.sqrt(np.einsum("t,ktj->kj", seen, (courses - middle[:, None]) ** 2)).tolist())
    return {"spreads": spreads}


def _factor_tests(spreads: Array, part_of: Array, names: list[str]) -> pd.DataFrame:
    counts = np.maximum(part_of.sum(axis=1), 1)
    together = np.sqrt((spreads**2 * part_of).sum(axis=2) / counts)  # (1 + B, k)
    p = (together >= together[0]).mean(axis=0)
    return _tested(together[0], p, pd.Index(names, name="factor"))


def _item_tests(spreads: Array, part_of: Array, names: list[str], items: list[str]) -> pd.DataFrame:
    own = spreads[:, part_of]  # (1 + B, pairs)
    middle, width = own[1:].mean(axis=0), own[1:].std(axis=0, ddof=1)
    z = (own - middle) / np.where(width > 0, width, np.inf)
    null = np.sort(z[1:].ravel())
    p = (1 + len(null) - np.searchsorted(null, z[0], side="left")) / (1 + len(null))
    at = [(names[r], items[j]) for r, j in np.argwhere(part_of)]
    return _tested(own[0], p, pd.MultiIndex.from_tuples(at, names=["factor", "item"]))


def _tested(spread: Array, p: Array, index: pd.Index) -> pd.DataFrame:
    q = false_discovery_control(p) if len(p) else p
    return pd.DataFrame({"spread": spread, "p": p, "q": q, "changes": q <= LEVEL}, index=index)
