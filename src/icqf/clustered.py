"""Answers in a dask array: the problem of a fit that leaves them with the workers, and scores made there."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icqf.data.confounds import ConfoundEncoder
from icqf.data.disclosure import (
    INTERCEPT,
    answer_counts,
    few_cells,
    in_few_cells,
    left_out,
    refuse_emptied,
    refuse_few_answers,
)
from icqf.data.frames import as_pandas
from icqf.data.validate import (
    check_items,
    check_ranges,
    item_ranges,
    item_weights,
    named_answers,
    observed_rows,
    seen_items,
    warn_of_empty_rows,
    weights_of,
    working_matrix,
)
from icqf.engines.choice import engine_of
from icqf.engines.chunks import MOST_CHUNKS, keep_memory, one_blas_thread
from icqf.errors import InputError
from icqf.solvers.adding import Adding
from icqf.solvers.observations import Elsewhere, Observations, is_small
from icqf.solvers.rows import total
from icqf.solvers.scaling import weighed
from icqf.stated import SMALL_TABLE, StatedProblem, learned_confounds, observed, problem_of

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
class PartCounts(Adding):
    """What the participants of a part who take part add up to."""

    n: int
    answered: Array  # (m,), how many answered each item
    sums: Array  # (3, m), see `Observations.item_sums`
    size: float  # Σω
    empty: int  # who answered nothing that is left
    by_category: Array  # (2, categories, m), see `icqf.data.disclosure.answer_counts`


@dataclass(frozen=True)
class Stating:
    """What a worker needs to know to make observations of a part of the table."""

    ranges: Array
    encoder: ConfoundEncoder
    dtype: np.dtype[Any]
    keeps_floats: bool


def state_on_cluster(
    model: ICQF, X: Any, cluster: Dask, *, confounds: Any, sample_weight: Any
) -> StatedProblem:
    """The problem that the settings of `model` make of a dask array; see `ICQF.state`.

    The array's parts are checked and kept by the workers. Confounds and weights, which are in this process,
    are sent to them.
    """
    import dask

    client, (parts, spans, m) = cluster.client, parts_of(X)
    looks: list[PartLook] = client.gather(client.compute([dask.delayed(looked_at)(part) for part in parts]))
    items = [f"item{j}" for j in range(1, m + 1)]
    ranges = _checked_ranges(model, items, client, parts, spans, looks)
    answered = np.concatenate([look.answered for look in looks])
    n = len(answered)
    weights = weights_of(sample_weight, answered[:, None])
    encoder = learned_confounds(model, confounds, answered, weights)
    design = None if confounds is None else encoder.transform(confounds, n_rows=n)
    if not answered.all():
        warn_of_empty_rows(range(n), answered, consequence="kept out of the fit")
    dtype = np.dtype("float64" if n * m <= SMALL_TABLE else "float32")
    if model.dtype != "auto":
        dtype = np.dtype(model.dtype)
    stating = Stating(ranges, encoder, dtype, is_small(n, m, dtype))
    made = client.compute(
        [
            dask.delayed(observations_of)(part, stating, _of(design, rows), _of(weights, rows))
            for part, rows in zip(parts, spans, strict=True)
        ]
    )
    check_items(_extremes(looks), items)
    made, counts = _without_few_answers(client, made, items, encoder)
    found = total(counts)
    observations = Elsewhere(
        np.empty((0, m)),
        np.empty((len(encoder.names), 0)),
        dtype=dtype,
        parts=tuple(made),
        counts=tuple(each.n for each in counts),
        answered=found.answered,
        sums=found.sums,
        total_weight=found.size,
        fetch=cluster.fetched,
    )
    return StatedProblem(
        weighed(problem_of(model, observations, ranges, encoder), item_weights(model.item_weight, items)),
        answered if weights is None else answered & (weights > 0),
        answered,
        range(n),
        tuple(items),
        False,
        ranges,
        encoder,
    )


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


def observations_of(
    part: Array, stating: Stating, design: Array | None, weights: Array | None
) -> Observations:
    """The observations of the participants of a part who take part, in the smallest type that holds them."""
    answers = _numbers(part)
    kept = observed_rows(answers)
    if weights is not None:
        kept &= weights > 0
    work = working_matrix(answers, stating.ranges, stating.dtype)
    if design is None:
        design = stating.encoder.transform(None, n_rows=len(work))
    weights = None if weights is None else weights[kept]
    found = observed(compact(work[kept]), design[kept], weights, stating.dtype)
    return replace(found, keeps_floats=stating.keeps_floats)


def compact(work: Array) -> Array:
    """Answers counted from 0 as bytes, with -1 for a missing one, where that says the same."""
    if work.dtype.itemsize == 1:
        return work
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numbers that are no bytes are seen below
        small = np.where(work >= 0, work, -1).astype(np.int8)
    same = small == np.where(work >= 0, work, -1)
    return small if same.all() else work


def counted_in(observations: Observations, categories: Sequence[int]) -> PartCounts:
    """What the observations of a part add up to."""
    seen = observations.observed
    return PartCounts(
        observations.n,
        observations.answer_counts(),
        observations.item_sums(),
        observations.size,
        int((~seen.any(axis=1)).sum()),
        answer_counts(seen, _members(observations, categories), observations.weights),
    )


def without_cells(observations: Observations, categories: Sequence[int], few: Array) -> Observations:
    """The observations of a part without the answers in cells of a few."""
    out = in_few_cells(observations.observed, _members(observations, categories), few)
    return replace(
        observations, answers=np.where(out, observations.answers.dtype.type(-1), observations.answers)
    )


def _members(observations: Observations, categories: Sequence[int]) -> Array:
    """How much of each category each participant is (n, c), everybody being the last one."""
    return np.vstack([observations.design[list(categories)], np.ones((1, observations.n))]).T


def _without_few_answers(
    client: Any, made: Sequence[Any], items: list[str], encoder: ConfoundEncoder
) -> tuple[Sequence[Any], list[PartCounts]]:
    """The parts without answers that so few of a category gave that the model would tell them, counted."""
    named = {at: name for at, name in encoder.categories().items() if name != INTERCEPT}
    limit, cells, given = encoder.smallest_category, None, 0
    while True:
        counts: list[PartCounts] = client.gather(
            client.map(counted_in, made, categories=list(named), pure=False)
        )
        found = total(counts)
        if limit < 2 or found.n < limit:
            return made, counts
        few = few_cells(found.by_category, limit=limit)
        refuse_few_answers(few, items, limit=limit)
        given = given or int(found.answered.sum())
        cells = few if cells is None else cells | few
        if not few.any():
            break
        made = client.map(without_cells, made, categories=list(named), few=few, pure=False)
    if cells.any():
        refuse_emptied(found.empty)
        number = given - int(found.answered.sum())
        names = [*named.values(), INTERCEPT]
        warnings.warn(left_out(cells, items, names, number, limit=limit), stacklevel=5)
    return made, counts


def _numbers(part: Any) -> Array:
    return named_answers(None, np.asarray(part))[0] if len(part) else np.asarray(part, dtype=float)


def _of(table: Any, rows: slice) -> Any:
    """Some rows of a table or an array, if there is one."""
    return None if table is None else table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _extremes(looks: Sequence[PartLook]) -> Array:
    """The lowest and the highest answers to all items (2, m)."""
    return np.stack(
        [
            np.fmin.reduce([look.lowest for look in looks], axis=0),
            np.fmax.reduce([look.highest for look in looks], axis=0),
        ]
    )


def _checked_ranges(
    model: ICQF,
    items: list[str],
    client: Any,
    parts: Sequence[Any],
    spans: Sequence[slice],
    looks: Sequence[PartLook],
) -> Array:
    """The ranges (m, 2), after every part was found to be inside them."""
    finite = np.finfo(float).max * np.array([-1.0, 1.0])
    undeclared = model.item_range is None
    ranges = np.tile(finite, (len(items), 1))
    if not undeclared:
        ranges = item_ranges(model.item_range, items, np.empty((0, len(items))))
    for part, rows, look in zip(parts, spans, looks, strict=True):
        try:
            check_ranges(np.stack([look.lowest, look.highest]), ranges, items, rows=range(2))
        except InputError as error:
            whose = client.submit(outside, client.compute(part), ranges, items, rows.start, pure=False)
            raise whose.result() or error from None
    return item_ranges(None, items, _extremes(looks)) if undeclared else ranges


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
