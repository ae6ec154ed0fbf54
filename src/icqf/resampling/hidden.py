"""How well hidden answers are predicted: fits that do not see a fold, judged on that fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import tee
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icqf.core.problem import Bounds, Problem, relearn_weights
from icqf.core.result import Factors
from icqf.core.start import Starts, item_means
from icqf.engines.base import Engine, HiddenAnswers
from icqf.engines.choice import engine_of, run
from icqf.engines.parallel import in_parallel, pieces
from icqf.engines.threads import one_blas_thread
from icqf.errors import InputError
from icqf.resampling import tolerances
from icqf.resampling.folds import Folds, folds_of

Array = NDArray[Any]
_ROWS = 2048  # participants whose answers are predicted at once


@dataclass(frozen=True, eq=False)
class HiddenError:
    """Squared error on hidden answers, added up by item."""

    squares: Array  # (m,), Σ_i ω_i (x_ij − prediction_ij)² over the hidden answers, in the problem's units
    weights: Array  # (m,), Σ_i ω_i over the same
    count: int  # hidden answers
    by_row: Array  # (n,), the squares by participant

    @property
    def mean(self) -> float:
        """Mean squared error over all hidden answers."""
        return float(self.squares.sum() / max(float(self.weights.sum()), 1e-300))


class HeldOut:
    """A problem with some answers hidden: what a fit may see, and how it is judged on what it may not.

    `given` (n, m) are the answers in their own units where their range is not declared, as a hidden answer
    must not tell the range either. In `visible`, the bound on reconstructed answers is left to the clipping
    of predictions: the errors of all candidates move alike by it, and fits cost several times less. Where it
    is `bounded`, fits keep that bound.
    """

    def __init__(
        self, problem: Problem, mask: Array, *, given: Array | None = None, bounded: bool = False
    ) -> None:
        self.mask = mask
        self._problem = problem
        visible = problem.hide(mask)
        self._low: Array | None = None  # (m,), the lowest visible answer in the units of `problem`
        if given is not None:
            visible, low = _in_visible_range(visible, given)
            self._low = problem.scaled_loadings(np.full(problem.m, low))
        visible = relearn_weights(visible)
        self._units: Array | None = None  # (m,) of `problem` in those of `visible`: errors are in the former
        if problem.scaling is not None and visible.scaling is not None and problem.scaling.learned:
            self._units = problem.scaling.scale / visible.scaling.scale
        self.visible = visible if bounded else visible.without_reconstruction_bound()
        self.starts = Starts(self.visible)

    @cached_property
    def _cells(self) -> tuple[Array, Array, Array]:
        """Participant, item and answer of each hidden answer, in the problem's units."""
        problem = self._problem
        rows, items, answers = problem.observations.cells(self.mask)
        if problem.scaling is not None:
            answers = answers * problem.scaling.scale[items]
        return rows, items, answers.astype(problem.dtype)

    @property
    def weight(self) -> float:
        """Σ ω_i over the hidden answers."""
        each, _ = self._weights
        return float(len(self._cells[0])) if each is None else float(each.sum())

    def error(self, factors: Factors) -> HiddenError:
        """Of predictions [W, C]Q, clipped to the range."""
        A, Q = self.visible.with_confounds(factors.scores), factors.loadings
        predicted = np.empty(len(self._cells[0]), dtype=A.dtype)
        for first, part, within in self._places:
            predicted[part] = (A[:, first : first + _ROWS].T @ Q).take(within)
        return self._error(np.minimum(predicted, self._top, out=predicted), A.dtype)

    @cached_property
    def _places(self) -> list[tuple[int, slice, Array]]:
        """Of some participants at a time: the first, their hidden answers, and where those are in a table."""
        rows, items, _ = self._cells
        places = []
        for first in range(0, self.visible.n, _ROWS):
            part = slice(*np.searchsorted(rows, (first, first + _ROWS)))
            places.append((first, part, (rows[part] - first) * self.visible.m + items[part]))
        return places

    @cached_property
    def _top(self) -> Array:
        """The highest answer to the item of each hidden answer."""
        return self.visible.span.astype(self.visible.dtype)[self._cells[1]]

    @cached_property
    def _weights(self) -> tuple[Array | None, Array]:
        """ω of each hidden answer, None where all are one, and the sum of an item's (m,)."""
        rows, items, _ = self._cells
        each = None if self._problem.weights is None else self._problem.weights[rows]
        return each, np.bincount(items, weights=each, minlength=self.visible.m)

    @cached_property
    def weights_by_row(self) -> Array:
        """Σ ω_i over the hidden answers of each participant (n,)."""
        return np.bincount(self._cells[0], weights=self._weights[0], minlength=self.visible.n)

    def hidden_answers(self, row_block: Array) -> HiddenAnswers:
        """What an engine needs to compute errors itself, by block of participants (n,)."""
        problem, ones = self._problem, np.ones(self.visible.m)
        return HiddenAnswers(
            hidden=self.mask & problem.observations.observed,
            answers=problem.answers,
            scale=ones if problem.scaling is None else problem.scaling.scale,
            top=self.visible.span,
            units=ones if self._units is None else self._units,
            low=np.zeros_like(ones) if self._low is None else self._low,
            row_block=row_block,
        )

    def error_of_means(self) -> HiddenError:
        """Of each item's mean over the visible answers."""
        return self._error(item_means(self.visible)[self._cells[1]], np.float64)

    def _error(self, predicted: Array, dtype: Any) -> HiddenError:
        rows, items, answers = self._cells
        if self._units is not None:
            predicted = predicted * self._units.astype(dtype)[items]
        if self._low is not None:
            predicted = predicted + self._low.astype(dtype)[items]
        each, weights = self._weights
        squares = (answers - predicted) ** 2
        if each is not None:
            squares = squares * each
        by_item = np.bincount(items, weights=squares, minlength=self.visible.m)
        by_row = np.bincount(rows, weights=squares, minlength=self.visible.n)
        return HiddenError(by_item, weights, len(items), by_row)


def _in_visible_range(problem: Problem, given: Array) -> tuple[Problem, float]:
    """The problem with the range of its visible answers, and their lowest as `problem.answers` counts.

    Everything is computed from the answers as given: a shift by the lowest answer, perhaps a hidden one,
    would leave a trace in the last digit.
    """
    seen = problem.observations.observed
    visible = given[seen]
    low, high = (visible.min(), visible.max()) if visible.size else (0, 0)
    if not low < high:
        raise InputError(
            "The visible answers of a fold are all equal, so their range cannot be determined; declare "
            "item_range=(lowest, highest)."
        )
    if np.issubdtype(problem.answers.dtype, np.integer):
        answers = np.subtract(given, low, dtype=problem.answers.dtype)
    else:
        answers = np.subtract(given, low).astype(problem.answers.dtype)
    span = np.full(problem.m, float(high) - float(low))
    own, scaling = problem.unscaled(), problem.scaling
    bounds, visible_ones = own.bounds, own.hide(~seen).observations
    own_tops = (bounds.loading, bounds.reconstruction)
    counted_anew = replace(
        own,
        observations=replace(visible_ones, answers=answers),
        span=span,
        bounds=Bounds(bounds.score, *(None if top is None else np.minimum(top, span) for top in own_tops)),
    )
    if scaling is not None:
        counted_anew = counted_anew.scaled(scaling.scale, learned=scaling.learned)
    return counted_anew, float(problem.answers[seen].min())


@dataclass(frozen=True, eq=False)
class HiddenFit:
    """Prediction of hidden answers by the model and by the items' means of the visible answers."""

    # (n_splits, m), squared error of the model's predictions and of the mean's, over the hidden answers
    # of each fold
    sse: Array
    sst: Array

    @property
    def n_splits(self) -> int:
        """Number of folds."""
        return len(self.sse)

    @property
    def by_item(self) -> Array:
        """Share of each item's variance predicted (m,); below 0 the mean predicts better."""
        sse, sst = self.sse.sum(axis=0), self.sst.sum(axis=0)
        return 1 - np.divide(sse, sst, out=np.full_like(sse, np.nan), where=sst > 0)

    @property
    def overall(self) -> float:
        """Share of all variance predicted."""
        return float(1 - self.sse.sum() / max(float(self.sst.sum()), 1e-300))

    @property
    def std_error(self) -> float:
        """Standard error of `overall`, from how folds differ."""
        gain = (self.sst - self.sse).sum(axis=1)
        share = gain / max(float(self.sst.sum()), 1e-300) * self.n_splits
        return float(share.std(ddof=1) / np.sqrt(self.n_splits))

    @property
    def no_better_than_means(self) -> bool:
        """Whether the model predicts no better than the items' means, by more than one standard error."""
        return self.overall <= self.std_error


@one_blas_thread()
def predict_hidden(
    problem: Problem,
    k: int,
    *,
    init: str = "nndsvd",
    n_splits: int = 10,
    groups: Array | None = None,
    n_jobs: int | None = None,
    engine: str | Engine = "local",
    rng: np.random.Generator,
) -> HiddenFit:
    """Hide each fold's answers in turn, fit the rest from scratch, and predict the hidden answers."""
    folds = folds_of(problem, groups=groups, n_splits=n_splits, rng=rng)
    seeds = [int(seed) for seed in rng.integers(0, 2**31, n_splits)]
    engine = engine_of(engine).for_many(problem.without_reconstruction_bound())
    n_jobs = 1 if engine.batches else n_jobs
    tasks = [
        (problem, folds, part, [seeds[fold] for fold in part], k, init, engine)
        for part in pieces(range(n_splits), n_jobs)
    ]
    errors = [each for part in in_parallel(_predicted, tasks, n_jobs=n_jobs) for each in part]
    sse, sst = (np.array(parts) for parts in zip(*errors, strict=True))
    return HiddenFit(sse, sst)


def _predicted(
    problem: Problem,
    folds: Folds,
    part: Sequence[int],
    seeds: Sequence[int],
    k: int,
    init: str,
    engine: str | Engine,
) -> list[tuple[Array, Array]]:
    """Squared errors by item of the model and of the means, for some folds, one at a time in memory."""

    def held_out() -> Iterator[HeldOut]:
        return (HeldOut(problem, folds.mask(fold, problem)) for fold in part)

    problems, again = tee(held_out())
    fits = run(
        (each.visible for each in problems),
        (
            each.starts.make(init, k, np.random.default_rng(seed))
            for each, seed in zip(again, seeds, strict=True)
        ),
        tol=tolerances.SEARCH,
        max_iter=tolerances.MAX_ITER,
        exact=False,
        engine=engine,
    )
    return [
        (each.error(fit.factors).squares, each.error_of_means().squares)
        for each, fit in zip(held_out(), fits, strict=True)
    ]
