"""A stated problem: what a fit solves, and what it learned about the table on the way there."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icqf.data.confounds import ConfoundEncoder
from icqf.data.disclosure import count_answers, few_cells, leave_out_few, left_out, refuse_few_answers
from icqf.data.questionnaire import Questionnaire, StoredCodebook
from icqf.data.rows import refuse_other_rows
from icqf.data.validate import (
    check_items,
    check_ranges,
    item_ranges,
    item_weights,
    named_answers,
    numeric_table,
    observed_rows,
    row_names,
    seen_items,
    unpacked,
    warn_of_empty_rows,
    warn_of_repeated_ids,
    weights_of,
    working_matrix,
)
from icqf.solvers.observations import Observations
from icqf.solvers.penalties import PENALTIES
from icqf.solvers.problem import Bounds, Problem
from icqf.solvers.scaling import weighed

if TYPE_CHECKING:
    from icqf.estimator import ICQF
    from icqf.fitted import FittedModel

Array = NDArray[Any]
SMALL_TABLE = 5000  # answers; up to here double precision costs no time


@dataclass(frozen=True, eq=False)
class StatedProblem:
    """The problem of a fit, with the names, ranges and confounds of its table.

    Attributes
    ----------
    problem : Problem
        The answers of the participants who take part, counted from each item's lowest one, in the units that
        items are counted in.
    kept : bool array (n,)
        Which participants of the table take part: those who answered anything and have a weight above 0.
    answered : bool array (n,)
        Which participants answered anything.
    rows : sequence (n,)
        How the participants are called in messages.
    items : tuple of str
    named : bool
        Whether the items' names are the table's own.
    ranges : array (m, 2)
        Lowest and highest answer of each item.
    encoder : ConfoundEncoder
    given : array or None
        The answers that take part, in their own units, when their range was not declared.
    codebook : StoredCodebook
        The items of a questionnaire, and the name of its ids.
    """

    problem: Problem
    kept: Array
    answered: Array
    rows: Sequence[Any]
    items: tuple[str, ...]
    named: bool
    ranges: Array
    encoder: ConfoundEncoder
    given: Array | None = None
    codebook: StoredCodebook = field(default_factory=StoredCodebook)


def state_problem(model: ICQF, X: Any, *, confounds: Any, sample_weight: Any) -> StatedProblem:
    """The problem that the settings of `model` and these data make; see `ICQF.state`."""
    codebook = StoredCodebook()
    if isinstance(X, Questionnaire):
        codebook = StoredCodebook(X.items, str(X.answers.index.name or ""), X.confound_entries)
    else:
        warn_of_repeated_ids(X)
    X, confounds, sample_weight, known = unpacked(X, confounds, sample_weight)
    table = numeric_table(X)
    answers, items, named = named_answers(model, table)
    rows = row_names(table, len(answers))
    declared = known if model.item_range is None else model.item_range
    ranges = item_ranges(declared, items, answers, rows)
    if known is None or not np.array_equal(known, ranges):
        check_ranges(answers, ranges, items, rows)
    dtype = np.dtype("float64" if answers.size <= SMALL_TABLE else "float32")
    if model.dtype != "auto":
        dtype = np.dtype(model.dtype)
    work = working_matrix(answers, ranges, dtype)
    refuse_other_rows(X, confounds=confounds, sample_weight=sample_weight)
    weights = weights_of(sample_weight, answers)
    answered = observed_rows(answers)
    kept = answered if weights is None else answered & (weights > 0)
    encoder = learned_confounds(model, confounds, answered, weights)
    design = encoder.transform(confounds, n_rows=len(answers))
    if not answered.all():
        warn_of_empty_rows(rows, answered, consequence="kept out of the fit")
    if not kept.all():
        work, design = work[kept], design[kept]
        weights = None if weights is None else weights[kept]
    check_items(work, items)
    emptied = without_few_answers(work, items, design, weights, encoder)
    if emptied.any():
        kept = kept.copy()
        kept[np.flatnonzero(kept)[emptied]] = False
        work, design = work[~emptied], design[~emptied]
        weights = None if weights is None else weights[~emptied]
    item_weight = item_weights(model.item_weight, items)
    return StatedProblem(
        weighed(problem_of(model, observed(work, design, weights, dtype), ranges, encoder), item_weight),
        kept,
        answered,
        rows,
        tuple(items),
        named,
        ranges,
        encoder,
        answers[kept] if declared is None else None,
        codebook,
    )


def learned_confounds(model: ICQF, confounds: Any, answered: Array, weights: Array | None) -> ConfoundEncoder:
    """The encoder that the settings of `model` make of confounds, of which those who answered count."""
    return ConfoundEncoder(
        ranges=model.confound_ranges,
        intercept=model.intercept,
        missing=model.missing_confounds,
        smallest_category=model.smallest_category,
    ).fit(confounds, weights=answered if weights is None else answered * weights)


def without_few_answers(
    work: Array, items: Sequence[str], design: Array, weights: Array | None, encoder: ConfoundEncoder
) -> Array:
    """Leave out, in place, answers that so few of a category gave that the model would tell them.

    Returns which participants (n,) have none left.
    """
    limit = encoder.smallest_category
    if limit > 1 and len(work) >= limit:
        members, names = encoder.memberships(design)
        few = few_cells(count_answers(work, members, weights), limit=limit)
        refuse_few_answers(few, items, limit=limit, weighted=weights is not None)
        if few.any():
            cells, number = leave_out_few(work, members, weights, limit=limit)
            refuse_few_answers(cells, items, limit=limit)
            warnings.warn(left_out(cells, items, names, number, limit=limit), stacklevel=4)
            return ~observed_rows(work)
    return np.zeros(len(work), dtype=bool)


def state_others(model: FittedModel, X: Any, confounds: Any) -> tuple[Problem, Array]:
    """The problem of new participants for a fitted model, and which of them (n,) answered anything."""
    X, confounds, _, known = unpacked(X, confounds)
    table = numeric_table(X)
    answers = seen_items(model, table)
    rows, ranges = row_names(table, len(answers)), model.item_range_.to_numpy()
    if known is None or not np.array_equal(known, ranges):
        check_ranges(answers, ranges, list(model.item_range_.index), rows)
    work = working_matrix(answers, ranges, model.dtype_)
    refuse_other_rows(X, confounds=confounds)
    design = model.confound_encoder_.transform(confounds, n_rows=len(answers))
    answered = observed_rows(answers)
    if not answered.all():
        warn_of_empty_rows(rows, answered, consequence="their scores are NaN")
        work, design = work[answered], design[answered]
    observations = observed(work, design, None, model.dtype_)
    problem = problem_of(model, observations, ranges, model.confound_encoder_)
    scale = model.item_scale_
    return problem if (scale == 1).all() else problem.scaled(scale), answered


def observed(work: Array, design: Array, weights: Array | None, dtype: np.dtype[Any]) -> Observations:
    """These answers (counted from 0), confound columns and weights."""
    # The design is in double precision: the bounds on R hold exactly.
    return Observations(work, np.ascontiguousarray(design.T), weights, dtype=dtype)


def problem_of(
    model: FittedModel, observations: Observations, ranges: Array, encoder: ConfoundEncoder
) -> Problem:
    """The problem that the settings of `model` make of these observations."""
    span = ranges[:, 1] - ranges[:, 0]
    loading = span if model.loading_max == "item_range" else model.loading_max
    return Problem(
        observations,
        span,
        Bounds(
            score=model.score_max,
            loading=None if loading is None else np.broadcast_to(np.asarray(loading, float), span.shape),
            reconstruction=span if model.reconstruction_max == "item_range" else None,
        ),
        PENALTIES[model.penalty](float(model.beta)),
        partitions=encoder.partitions,
        intercept=len(encoder.names) - 1 if model.intercept else None,
    )
