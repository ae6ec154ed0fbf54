"""From a source of answers to a stated problem: what a fit solves, and what it learned about the table."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icqf.core.block_step import Additive
from icqf.core.observations import Observations
from icqf.core.problem import Bounds, Problem, weighed
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
from icqf.data.frames import refuse_other_rows
from icqf.data.questionnaire import Questionnaire, StoredCodebook
from icqf.data.settings import PENALTIES
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

if TYPE_CHECKING:
    from icqf.models.icqf import ICQF

Array = NDArray[Any]
SMALL_TABLE = 5000  # answers; up to here double precision costs no time


@dataclass(frozen=True, eq=False)
class StatedProblem:
    """The problem of a fit, with the names, ranges and confounds of its table."""

    problem: Problem  # of the participants kept, with answers counted from each item's lowest
    kept: Array  # (n,), participants with answers and a weight above 0
    answered: Array  # (n,), participants with answers
    items: tuple[str, ...]
    named: bool  # whether the items' names are the table's own
    ranges: Array  # (m, 2), lowest and highest answer of each item
    encoder: ConfoundEncoder
    given: Array | None = None  # the answers in their own units, if their range was not declared
    codebook: StoredCodebook = field(default_factory=StoredCodebook)
    weighted: bool = False


@dataclass(frozen=True)
class Learned:
    """What a fit learns about a table before solving, also used for scoring new participants."""

    ranges: Array  # (m, 2)
    encoder: ConfoundEncoder
    dtype: np.dtype[Any]
    scale: Array | None = None  # of the columns; None if not yet learned


@dataclass(frozen=True)
class CellCounts(Additive):
    """Numbers of answers, in total and by category."""

    by_category: Array  # (2, categories, m), see `icqf.data.disclosure.answer_counts`
    given: int
    empty: int  # participants who gave none


class Source(ABC):
    """A source of answers; `state` calls its methods in their order."""

    items: list[str]
    rows: Sequence[Any] | Mapping[int, object]  # names of participants in messages, at least of empty rows
    size: float  # answers, missing ones included
    observations: Observations  # of the participants kept, after `observe`
    named: bool = False  # whether the items' names are the table's own
    repeats: int = 1  # how often each item is a column of the problem
    confounds: Any = None
    sample_weight: Any = None
    codebook: StoredCodebook = StoredCodebook()
    given: Array | None = None  # the answers in their own units, if ranges are not declared
    learned: Learned | None = None  # by an earlier fit, for scoring

    @abstractmethod
    def inspect(self, model: ICQF) -> tuple[Any, Array, Any]:
        """Learn the items' names; returns declared ranges, answers to find ranges in, and row labels."""

    @abstractmethod
    def check(self, ranges: Array) -> Array:
        """Refuse answers outside these ranges; returns which participants (n,) have answers."""

    @abstractmethod
    def observe(self, learned: Learned, design: Array, weights: Array | None, kept: Array) -> None:
        """Make the observations of the participants kept (n,), with this design (n, c) and these weights."""

    def silent(self, answered: Array) -> Array:
        """One row (n,) of each participant without any answers."""
        return ~answered

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the problem."""
        return tuple(self.items)

    @property
    def extremes(self) -> Array:
        """Answers that include the lowest and the highest of each item."""
        return self.observations.answers

    def count(self, categories: list[int]) -> CellCounts:
        """Count answers by the categories in these columns of the design."""
        return cell_counts(self.observations, categories)

    def refuse_few(self, counts: CellCounts, few: Array, *, limit: int, weighted: bool) -> None:
        """Refuse items with too few answers; `few` (categories, m) are the cells with too few."""
        gone = few[-1] | (counts.by_category[0, -1] == 0)
        refuse_few_answers(gone[None], self.items, limit=limit, weighted=weighted)

    def leave_out(self, categories: list[int], few: Array) -> None:
        """Leave out the answers in cells with too few."""
        self.observations = without_cells(self.observations, categories, few)

    def drop_emptied(self, number: int) -> Array | None:
        """Drop the participants without answers, `number` of them; returns which ones they are."""
        refuse_emptied(number)
        return None

    def observed(self) -> Observations:
        """The present observations."""
        return self.observations


def state(model: ICQF, source: Source) -> StatedProblem:
    """The problem of these answers with the settings of `model`; see `ICQF.state`."""
    declared, answers, labels = source.inspect(model)
    known = source.learned
    ranges = item_ranges(declared, source.items, answers, labels) if known is None else known.ranges
    answered = source.check(ranges)
    weights = weights_of(source.sample_weight, answered[:, None])
    kept = answered if weights is None else answered & (weights > 0)
    learned = known or _learned(model, source, ranges, answered if weights is None else answered * weights)
    encoder = learned.encoder
    design = encoder.transform(source.confounds, n_rows=len(answered))
    if not answered.all():
        consequence = "kept out of the fit" if known is None else "their scores are NaN"
        warn_of_empty_rows(source.rows, ~source.silent(answered), consequence=consequence)
    source.observe(learned, design, weights, kept)
    ranges = np.tile(ranges, (source.repeats, 1))
    if known is None:
        check_items(source.extremes, source.items)
        emptied = _without_few_answers(source, encoder, n=int(kept.sum()), weighted=weights is not None)
        if emptied is not None:
            kept = kept.copy()
            kept[np.flatnonzero(kept)[emptied]] = False
    problem = problem_of(model, source.observed(), ranges, encoder)
    if learned.scale is None:
        item_weight = item_weights(model.item_weight, source.items)
        if isinstance(item_weight, np.ndarray):
            item_weight = np.tile(item_weight, source.repeats)
        problem = weighed(problem, item_weight)
    elif (learned.scale != 1).any():
        problem = problem.scaled(learned.scale)
    return StatedProblem(
        problem,
        kept,
        answered,
        source.columns,
        source.named,
        ranges,
        encoder,
        source.given,
        source.codebook,
        weights is not None,
    )


def _learned(model: ICQF, source: Source, ranges: Array, weights: Array) -> Learned:
    """What a fit learns from answers with these ranges and weights (n,)."""
    encoder = ConfoundEncoder(
        ranges=model.confound_ranges,
        intercept=model.intercept,
        missing=model.missing_confounds,
        smallest_category=model.smallest_category,
    ).fit(source.confounds, weights=weights)
    dtype = np.dtype("float64" if source.size <= SMALL_TABLE else "float32")
    return Learned(ranges, encoder, dtype if model.dtype == "auto" else np.dtype(model.dtype))


def _without_few_answers(source: Source, encoder: ConfoundEncoder, *, n: int, weighted: bool) -> Array | None:
    """Leave out answers in cells so small that the model would disclose them, until there are none.

    Returns which of the n participants have no answers left, or None.
    """
    limit = encoder.smallest_category
    if limit < 2 or n < limit:
        return None
    named = {at: name for at, name in encoder.categories().items() if name != INTERCEPT}
    columns, names = list(named), [*named.values(), INTERCEPT]
    cells, given = None, 0
    while True:
        counts = source.count(columns)
        few = few_cells(counts.by_category, limit=limit)
        source.refuse_few(counts, few, limit=limit, weighted=weighted)
        if not few.any():
            break
        given, cells = given or counts.given, few if cells is None else cells | few
        source.leave_out(columns, few)
    if cells is None:
        return None
    emptied = source.drop_emptied(counts.empty)
    warnings.warn(left_out(cells, source.columns, names, given - counts.given, limit=limit), stacklevel=5)
    return emptied


def cell_counts(observations: Observations, categories: list[int]) -> CellCounts:
    """Answers counted by the categories in these columns of the design."""
    by_category, given, empty = np.zeros((2, len(categories) + 1, observations.m)), 0, 0
    for block in observations.blocks():
        seen = block.observed()
        by_category += answer_counts(seen, members_of(block.design, categories), block.exact_weights)
        numbers = seen @ np.ones(seen.shape[1], dtype=seen.dtype)
        given += int(numbers.sum())
        empty += int((numbers == 0).sum())
    return CellCounts(by_category, given, empty)


def without_cells(observations: Observations, categories: list[int], few: Array) -> Observations:
    """The observations without the answers in cells with too few."""
    answers = observations.answers
    inside = in_few_cells(members_of(observations.design, categories), few)
    out = observations.laid_out(inside, np.arange(observations.m))
    missing = answers.dtype.type(np.nan if answers.dtype.kind == "f" else -1)
    return replace(observations, answers=np.where(out, missing, answers))


def members_of(design: Array, categories: list[int]) -> Array:
    """Membership of participants in each category (n, categories); the last one is everybody."""
    return np.vstack([design[categories], np.ones((1, design.shape[1]))]).T


def dropped_rows(source: Source) -> Array:
    """Drop the rows without answers of a source in memory; returns which ones they are."""
    emptied = ~np.asarray(source.observations.observed.any(axis=1))
    source.observations = source.observations.take(np.flatnonzero(~emptied))
    source.given = None if source.given is None else source.given[~emptied]
    return emptied


class Memory(Source):
    """A table, an array or a questionnaire in memory."""

    def __init__(self, X: Any, confounds: Any, sample_weight: Any) -> None:
        if isinstance(X, Questionnaire):
            self.codebook = StoredCodebook(
                X.items, str(X.answers.index.name or ""), X.confound_entries, X.about
            )
        else:
            warn_of_repeated_ids(X)
        self._X, self.confounds, self.sample_weight, self._known = unpacked(X, confounds, sample_weight)

    def inspect(self, model: ICQF) -> tuple[Any, Array, Any]:
        table = numeric_table(self._X)
        self._answers, self.items, self.named = named_answers(model, table)
        self.rows, self.size = row_names(table, len(self._answers)), self._answers.size
        declared = self._known if model.item_range is None else model.item_range
        self.given = self._answers if declared is None else None
        return declared, self._answers, self.rows

    def check(self, ranges: Array) -> Array:
        if self._known is None or not np.array_equal(self._known, ranges):
            check_ranges(self._answers, ranges, self.items, self.rows)
        refuse_other_rows(self._X, confounds=self.confounds, sample_weight=self.sample_weight)
        return observed_rows(self._answers)

    def observe(self, learned: Learned, design: Array, weights: Array | None, kept: Array) -> None:
        self.observations = observations_of(self._answers, learned, design, weights, kept)
        self.given = None if self.given is None else self.given[kept]

    def drop_emptied(self, number: int) -> Array | None:
        return dropped_rows(self) if number else None


class NewAnswers(Memory):
    """A table in memory to be scored by a fitted model, with its items, ranges and confounds."""

    def __init__(self, model: ICQF, X: Any, confounds: Any) -> None:
        self._X, self.confounds, _, self._known = unpacked(X, confounds)
        self.learned = Learned(
            model.item_range_.to_numpy(), model.confound_encoder_, model.dtype_, model.item_scale_
        )

    def inspect(self, model: ICQF) -> tuple[Any, Array, Any]:
        table = numeric_table(self._X)
        self._answers, self.items = seen_items(model, table), list(model.item_range_.index)
        self.rows, self.size = row_names(table, len(self._answers)), self._answers.size
        return None, self._answers, self.rows


def observations_of(
    answers: Array, learned: Learned, design: Array, weights: Array | None, kept: Array
) -> Observations:
    """The observations of the participants kept (n,), from answers in their own units."""
    work = working_matrix(answers, learned.ranges, learned.dtype)
    if not kept.all():
        work, design = work[kept], design[kept]
        weights = None if weights is None else weights[kept]
    # The design is in double precision, so that the bounds on R hold exactly.
    return Observations(work, np.ascontiguousarray(design.T), weights, dtype=learned.dtype)


def problem_of(model: ICQF, observations: Observations, ranges: Array, encoder: ConfoundEncoder) -> Problem:
    """The problem of these observations with the settings of `model`."""
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
        PENALTIES.load(model.penalty)(float(model.beta)),
        loading_beta=None if model.loading_beta is None else float(model.loading_beta),
        partitions=encoder.partitions,
        intercept=len(encoder.names) - 1 if model.intercept else None,
    )
