"""Answers in a dask array: the problem of a fit that leaves them with the workers, and scores made there."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icqf.core.observations import Observations, is_small
from icqf.core.rows import total
from icqf.core.sums import Adding
from icqf.data.tables import as_pandas
from icqf.data.validate import check_ranges, named_answers, observed_rows, seen_items
from icqf.engines.choice import engine_of
from icqf.engines.chunks import MOST_CHUNKS, Elsewhere, keep_memory, one_blas_thread
from icqf.errors import InputError
from icqf.stated import CellCounts, Learned, Source, counted_in, observations_of, without_cells

if TYPE_CHECKING:
    from icqf.engines.dask import Dask
    from icqf.estimator import ICQF
    from icqf.fitted import FittedModel

Array = NDArray[Any]


def cluster_of(engine: Any) -> Dask | None:
    """The cluster on which a dask array is fitted; None for other engines."""
    from icqf.engines.dask import Dask

    engine = engine_of(engine)
    return engine if isinstance(engine, Dask) else None


# --- the problem of a fit -----------------------------------------------------------------------------


@dataclass(frozen=True)
class PartLook:
    """What a part of a table is like: its lowest and highest answers (m,), and who answered anything (n,)."""

    lowest: Array
    highest: Array
    answered: Array


@dataclass(frozen=True)
class PartTotals(Adding):
    """What the participants of a part who take part add up to."""

    answered: Array  # (m,), how many answered each item
    sums: Array  # (3, m), see `Observations.item_sums`
    size: float  # Σω


class OnCluster(Source):
    """A dask array, whose parts are checked and kept by the workers of a cluster.

    Confounds and weights, which are in this process, are sent to them.
    """

    def __init__(self, X: Any, cluster: Dask, confounds: Any, sample_weight: Any) -> None:
        self._cluster, self._client = cluster, cluster.client
        self._parts, self._spans, m = parts_of(X)
        self.confounds, self.sample_weight = confounds, sample_weight
        self.items = [f"item{j}" for j in range(1, m + 1)]
        self.rows = range(self._spans[-1].stop)
        self.size = len(self.rows) * m

    def look(self, model: ICQF) -> tuple[Any, Array, Any]:
        import dask

        looks = [dask.delayed(looked_at)(part) for part in self._parts]
        self._looks: list[PartLook] = self._client.gather(self._client.compute(looks))
        if model.item_range is None:  # whose answer is infinite is said before ranges are found
            self.check(np.tile(np.finfo(float).max * np.array([-1.0, 1.0]), (len(self.items), 1)))
        return model.item_range, self.found, None

    @property
    def found(self) -> Array:
        """The lowest and the highest answers to all items (2, m)."""
        return np.stack(
            [
                np.fmin.reduce([look.lowest for look in self._looks], axis=0),
                np.fmax.reduce([look.highest for look in self._looks], axis=0),
            ]
        )

    def check(self, ranges: Array) -> Array:
        for part, rows, look in zip(self._parts, self._spans, self._looks, strict=True):
            try:
                check_ranges(np.stack([look.lowest, look.highest]), ranges, self.items, rows=range(2))
            except InputError as error:
                here = self._client.compute(part)
                whose = self._client.submit(outside, here, ranges, self.items, rows.start, pure=False)
                raise whose.result() or error from None
        return np.concatenate([look.answered for look in self._looks])

    def observe(self, learned: Learned, design: Array, weights: Array | None, kept: Array) -> None:
        import dask

        small = is_small(len(kept), len(self.items), learned.dtype)
        own = None if self.confounds is None else design  # otherwise, workers know it
        made = [
            dask.delayed(observed_part)(part, learned, _of(own, rows), _of(weights, rows), small)
            for part, rows in zip(self._parts, self._spans, strict=True)
        ]
        self._made, self._learned = self._client.compute(made), learned
        self._counts = [int(kept[rows].sum()) for rows in self._spans]

    def count(self, categories: list[int]) -> CellCounts:
        return self._total(counted_in, categories=categories)

    def leave_out(self, categories: list[int], few: Array) -> None:
        self._made = self._client.map(without_cells, self._made, categories=categories, few=few, pure=False)

    def observed(self) -> Observations:
        """What is known here of the observations that the workers have."""
        found: PartTotals = self._total(totals_of)
        return Elsewhere(
            np.empty((0, len(self.items))),
            np.empty((len(self._learned.encoder.names), 0)),
            dtype=self._learned.dtype,
            parts=tuple(self._made),
            counts=tuple(self._counts),
            answered=found.answered,
            sums=found.sums,
            total_weight=found.size,
            fetch=self._cluster.fetched,
        )

    def _total(self, work: Callable[..., Any], **settings: Any) -> Any:
        """The sum of what `work` finds in the parts."""
        return total(self._client.gather(self._client.map(work, self._made, pure=False, **settings)))


def parts_of(X: Any) -> tuple[list[Any], list[slice], int]:
    """The parts of a dask array, of whole rows; the rows of each; and the number of columns."""
    if X.ndim != 2:
        raise InputError(
            f"The dask array has {X.ndim} dimension(s); give two, one row per participant and one column per "
            "item."
        )
    if np.isnan(X.shape).any():
        raise InputError(
            "The dask array does not know how many rows its parts have.",
            code="unknown-rows",
            remedy="Let it count them first: X.compute_chunk_sizes().",
        )
    most = min(MOST_CHUNKS, max(1, X.shape[0]))
    rows = X.chunks[0] if X.numblocks[0] <= most else -(-X.shape[0] // most)
    X = X.rechunk((rows, -1))
    edges = np.cumsum([0, *X.chunks[0]]).tolist()
    return list(X.to_delayed()[:, 0]), [slice(*ends) for ends in pairwise(edges)], int(X.shape[1])


def looked_at(part: Array) -> PartLook:
    """The lowest and highest answers of a part."""
    answers = _numbers(part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of an item that nobody of the part answered
        lowest, highest = (
            np.asarray(end.reduce(answers, axis=0), float) if len(answers) else np.full(part.shape[1], np.nan)
            for end in (np.fmin, np.fmax)
        )
    return PartLook(lowest, highest, observed_rows(answers))


def observed_part(
    part: Array, learned: Learned, design: Array | None, weights: Array | None, keeps_floats: bool
) -> Observations:
    """The observations of the participants of a part who take part, in the smallest type that holds them."""
    answers = _numbers(part)
    kept = observed_rows(answers)
    if weights is not None:
        kept &= weights > 0
    if design is None:
        design = learned.encoder.transform(None, n_rows=len(answers))
    found = observations_of(answers, learned, design, weights, kept)
    return replace(found, answers=compact(found.answers), keeps_floats=keeps_floats)


def compact(work: Array) -> Array:
    """Answers counted from 0 as bytes, with -1 for a missing one, where that says the same."""
    if work.dtype.itemsize == 1:
        return work
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers that are no bytes are seen below
        small = np.where(work >= 0, work, -1).astype(np.int8)
    same = small == np.where(work >= 0, work, -1)
    return small if same.all() else work


def totals_of(observations: Observations) -> PartTotals:
    """What the observations of a part add up to."""
    return PartTotals(observations.answer_counts(), observations.item_sums(), observations.size)


def _numbers(part: Any) -> Array:
    return named_answers(None, np.asarray(part))[0] if len(part) else np.asarray(part, dtype=float)


def _of(table: Any, rows: slice) -> Any:
    """Some rows of a table or an array, if there is one."""
    return None if table is None else table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def outside(part: Array, ranges: Array, items: list[str], first: int) -> InputError | None:
    """What is to be said of an answer of a part that is outside its range: the worker knows whose it is."""
    answers = _numbers(part)
    try:
        check_ranges(answers, ranges, items, range(first, first + len(answers)))
    except InputError as error:
        return error
    return None


# --- scores -------------------------------------------------------------------------------------------


def lazy_scores(model: FittedModel, X: Any, confounds: Any) -> Any:
    """Scores (n, k) of a dask array as another one, which is worked out where its parts are.

    Those who answered nothing get NaN.
    """
    import dask
    import dask.array as da

    parts, spans, m = parts_of(X)
    k, n = len(model.components_), spans[-1].stop
    confounds = as_pandas(confounds)
    seen_items(model, np.zeros((1, m)))  # what is wrong with the table is said here, rather than by a worker
    if confounds is not None or model.confound_encoder_.columns:
        model.confound_encoder_.transform(confounds, n_rows=n)
    plain = copy.copy(model)
    plain.__dict__.update(engine="local", callback=None)  # what only this process can use
    scorer, score = dask.delayed(plain), dask.delayed(scored)
    found = [
        da.from_delayed(
            score(scorer, part, _of(confounds, rows)),
            shape=(rows.stop - rows.start, k),
            dtype=np.float64,
        )
        for part, rows in zip(parts, spans, strict=True)
    ]
    return da.concatenate(found)


def scored(model: FittedModel, part: Array, confounds: Any) -> Array:
    """Scores of the participants of a part."""
    if not len(part):
        return np.empty((0, len(model.components_)))
    keep_memory()
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")  # a worker has nobody to tell
        scores: Array = np.asarray(model.transform(np.asarray(part), confounds=confounds))
    return scores
