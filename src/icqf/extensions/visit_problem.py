"""From a table of visits to the problem of a fit: one visit per participant and bin, and what is missing."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.confounds import ConfoundEncoder
from icqf.data.disclosure import INTERCEPT, leave_out_few, left_out, refuse_few_answers
from icqf.data.parameters import parameter_error
from icqf.data.questionnaire import StoredCodebook
from icqf.data.scales import number
from icqf.data.validate import (
    check_items,
    check_ranges,
    item_ranges,
    item_weights,
    named_answers,
    numeric_table,
    observed_rows,
    warn_of_empty_rows,
    working_matrix,
)
from icqf.data.visits import (
    FEWEST_IN_BIN,
    FEWEST_ITEMS,
    WITHIN_BIN,
    AgeBins,
    VisitTable,
    age_bins,
    numbers_of,
)
from icqf.errors import Advice, InputError, InputWarning, counted, listed
from icqf.solvers.observations import VisitObservations
from icqf.solvers.penalties import L1
from icqf.solvers.problem import Bounds, Problem
from icqf.solvers.scaling import weighed
from icqf.stated import SMALL_TABLE, StatedProblem

if TYPE_CHECKING:
    from icqf.extensions.longitudinal import LongitudinalICQF

Array = NDArray[Any]
FEWEST_LINKED = 10  # participants seen in two bins or more
HEAVIEST = 4.0  # what non-response may make of a participant's weight


@dataclass(frozen=True, eq=False)
class Arranged:
    """One row of answers for each participant and bin, participants in the order in which they first come.

    Attributes
    ----------
    names : Index (n,)
        The participants.
    participant, bin : int array (V,)
    answers : array (V, items)
        In the items' own units.
    items : list of str
    first : int array (n,)
        The row of the table in which each participant first comes.
    combined : int
        Rows of the table that share their participant and bin with another one.
    """

    names: pd.Index
    participant: Array
    bin: Array
    answers: Array
    items: list[str]
    first: Array
    combined: int


def arrange(model: Any, table: VisitTable, bins: AgeBins, *, within_bin: str) -> Arranged:
    """Put the visits in order, and make one of several visits of a participant in one bin."""
    if within_bin not in WITHIN_BIN:
        raise parameter_error(
            "within_bin", f"={within_bin!r} is not known; choose one of {listed(WITHIN_BIN)}."
        )
    answers, items, _ = named_answers(model, numeric_table(table.answers))
    names, who = table.by_participant()
    _, first = np.unique(who, return_index=True)
    at = bins.place(table.age)
    if (at < 0).any():
        strange = number(table.age.iloc[int(np.flatnonzero(at < 0)[0])])
        raise InputError(
            f"The column {table.age_name!r} holds {strange}, a visit that the model does not know "
            f"({listed(bins.visits)}).",
            code="unknown-visit",
            remedy="Leave these visits out.",
        )
    order_in_time = np.zeros(len(at)) if bins.visits else numbers_of(table.age)
    order = np.lexsort((order_in_time, at, who))
    who, at, answers = who[order], at[order], answers[order]
    again = (np.diff(who) == 0) & (np.diff(at) == 0)
    same_time = again & (np.diff(order_in_time[order]) == 0)
    if same_time.any():
        row = int(np.flatnonzero(same_time)[0])
        one, other = sorted(int(each) for each in order[[row, row + 1]])
        labels = table.answers.index[[one, other]]
        rows = f"rows {one + 1} and {other + 1} of the table"
        if all(isinstance(label, str) for label in labels):
            rows = " and ".join(labels)
        raise InputError(
            f"Participant {str(names[who[row]])!r} has two visits with {table.age_name} = "
            f"{table.age.iloc[order[row]]} ({rows}"
            f"{f', and {int(same_time.sum()) - 1} more' if same_time.sum() > 1 else ''}).",
            code="duplicate-visit",
            remedy="Keep one row per participant and visit.",
            participant=str(names[who[row]]),
            rows=(one + 1, other + 1),
        )
    if again.any():
        starts = np.flatnonzero(np.concatenate([[True], ~again]))
        answers = _one_of_each(answers, starts, within_bin)
        who, at = who[starts], at[starts]
    return Arranged(names, who, at, answers, items, first, int(again.sum()))


def _one_of_each(answers: Array, starts: Array, within_bin: str) -> Array:
    """One row for each run of rows that begins at `starts`, by the mean or by the first or last of them."""
    if within_bin == "first":
        return answers[starts]
    if within_bin == "last":
        return answers[np.append(starts[1:], len(answers)) - 1]
    values = answers.astype(np.float64)
    seen = ~np.isnan(values)
    count = np.add.reduceat(seen, starts, axis=0, dtype=np.float64)
    total = np.add.reduceat(np.where(seen, values, 0.0), starts, axis=0)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def column_names(items: list[str], bins: AgeBins) -> list[str]:
    """What the columns of the factorized table are called: all items of the first bin, then the next."""
    return [f"{item} [{label}]" for label in bins.labels for item in items]


def gap_table(arranged: Arranged, bins: AgeBins) -> pd.DataFrame:
    """What is missing in each bin, and why.

    Returns
    -------
    DataFrame
        By bin: participants ``seen`` and ``not_seen`` (gaps by design), answers ``asked`` for at the visits
        that took place, ``given``, and ``unanswered`` (gaps by non-response).
    """
    given = (~np.isnan(arranged.answers.astype(np.float64))).sum(axis=1)
    seen = np.bincount(arranged.bin, minlength=len(bins))
    answered = np.bincount(arranged.bin, weights=given, minlength=len(bins)).astype(int)
    asked = seen * len(arranged.items)
    table = {
        "seen": seen,
        "not_seen": len(arranged.names) - seen,
        "asked": asked,
        "given": answered,
        "unanswered": asked - answered,
    }
    return pd.DataFrame(table, index=pd.Index(bins.labels, name="bin"))


@dataclass(frozen=True, eq=False)
class VisitStatement:
    """The problem of a longitudinal fit, with what was learned about the table on the way there.

    Attributes
    ----------
    stated : StatedProblem
        As of a fit to the (bin, item) columns; its participants are those of `names`.
    bins : AgeBins
    items : tuple of str
    names : Index (n,)
        All participants of the table.
    gaps : DataFrame
        See `gap_table`.
    codebook : StoredCodebook
    """

    stated: StatedProblem
    bins: AgeBins
    items: tuple[str, ...]
    names: pd.Index
    gaps: pd.DataFrame
    codebook: StoredCodebook

    @property
    def problem(self) -> Problem:
        return self.stated.problem


def state_visits(model: LongitudinalICQF, X: Any) -> VisitStatement:
    """The problem that a model's settings and these visits make."""
    table = VisitTable.of(X, participant=model.participant, age=model.age, confounds=model.confounds)
    again = len(set(table.participant)) < len(table.participant)
    bins = age_bins(
        table.age,
        model.bins,
        binning=model.binning,
        participant=table.participant if again else None,  # if nobody came twice, that is what to say first
        fewest=max(FEWEST_IN_BIN, int(model.smallest_category)),
    )
    arranged = arrange(model, table, bins, within_bin=model.within_bin)
    _refuse_unlinked(arranged, bins)
    items, answers = arranged.items, arranged.answers
    if len(items) < FEWEST_ITEMS:
        raise InputError(
            f"The table has {counted(len(items), 'item')} ({listed(items)}); a longitudinal model needs at "
            f"least {FEWEST_ITEMS}, as a factor is what several items share.",
            code="few-items",
        )
    declared = table.ranges if model.item_range is None else model.item_range
    ranges = item_ranges(declared, items, answers)
    check_ranges(answers, ranges, items, arranged.names[arranged.participant])
    dtype = np.dtype("float64" if answers.size <= SMALL_TABLE else "float32")
    if model.dtype != "auto":
        dtype = np.dtype(model.dtype)
    work = working_matrix(answers, ranges, dtype)
    filled = observed_rows(answers)
    answered = np.bincount(arranged.participant, weights=filled, minlength=len(arranged.names)) > 0
    if not answered.all():
        warn_of_empty_rows(list(arranged.names), answered, consequence="kept out of the fit")
    if arranged.combined:
        _warn_of_combined(arranged, model.within_bin)
    check_items(work, items)
    confounds = table.confounds_of(arranged.first)
    encoder = ConfoundEncoder(
        ranges=model.confound_ranges,
        intercept=model.intercept,
        missing=model.missing_confounds,
        smallest_category=model.smallest_category,
    ).fit(confounds, weights=answered.astype(float))
    design = encoder.transform(confounds, n_rows=len(arranged.names))
    weights = _made_up(arranged, work) if model.weigh_nonresponse else None
    work = _without_few_answers(work, arranged, bins, design, weights, encoder)
    filled = np.asarray((work >= 0).any(axis=1))
    answered = np.bincount(arranged.participant, weights=filled, minlength=len(arranged.names)) > 0
    _warn_of_empty_columns(work, arranged, bins)
    problem = visit_problem(arranged, work, design, weights, answered, filled, ranges, len(bins), dtype)
    problem = Problem(
        problem.observations,
        problem.span,
        problem.bounds,
        L1(float(model.beta)),
        partitions=encoder.partitions,
        intercept=len(encoder.names) - 1 if model.intercept else None,
    )
    item_weight = item_weights(model.item_weight, items)
    if isinstance(item_weight, np.ndarray):
        item_weight = np.tile(item_weight, len(bins))
    stated = StatedProblem(
        weighed(problem, item_weight).with_smoothness(float(model.smoothness)),
        answered,
        answered,
        list(arranged.names),
        tuple(column_names(items, bins)),
        True,
        np.tile(ranges, (len(bins), 1)),
        encoder,
        answers[filled] if declared is None else None,
    )
    codebook = StoredCodebook(table.items, table.participant_name, table.confound_items)
    return VisitStatement(stated, bins, tuple(items), arranged.names, gap_table(arranged, bins), codebook)


def visit_problem(
    arranged: Arranged,
    work: Array,
    design: Array,
    weights: Array | None,
    answered: Array,
    filled: Array,
    ranges: Array,
    n_bins: int,
    dtype: np.dtype[Any],
) -> Problem:
    """The problem of the visits with answers, of the participants who have any."""
    place = np.cumsum(answered) - 1
    observations = VisitObservations(
        work[filled],
        np.ascontiguousarray(design[answered].T),
        None if weights is None else weights[answered],
        dtype=dtype,
        participant=place[arranged.participant[filled]],
        bin=arranged.bin[filled],
        bins=n_bins,
    )
    span = np.tile(ranges[:, 1] - ranges[:, 0], n_bins)
    return Problem(observations, span, Bounds(score=1.0, loading=span, reconstruction=span))


def _refuse_unlinked(arranged: Arranged, bins: AgeBins) -> None:
    """Without participants who are seen twice, nothing ties a factor at one age to one at another."""
    several = np.bincount(arranged.participant) > 1
    if several.sum() < FEWEST_LINKED:
        everybody = f"Only {int(several.sum())} of {len(several)} participants came at more than one age"
        if not several.any():
            everybody = "Every participant has one visit"
        raise InputError(
            f"{everybody}, so that nothing ties the factors of one age to those of another "
            f"({counted(len(bins), 'bin')}: {listed(bins.labels)}).",
            code="one-visit",
            remedy="Fit each age by itself with ICQF, or ask for narrower bins if visits were put into one.",
        )


def _warn_of_combined(arranged: Arranged, within_bin: str) -> None:
    how = {
        "mean": "their answers are averaged",
        "first": "the first of them is kept",
        "last": "the last of them is kept",
    }[within_bin]
    number = arranged.combined
    warnings.warn(
        InputWarning(
            f"{counted(number, 'visit')} {'falls' if number == 1 else 'fall'} into a bin in which the "
            f"participant was seen already: {how}.",
            code="combined-visits",
            remedy=Advice("Choose narrower {bins}, or {within_bin} first, last or mean."),
        ),
        stacklevel=5,
    )


def _without_few_answers(
    work: Array,
    arranged: Arranged,
    bins: AgeBins,
    design: Array,
    weights: Array | None,
    encoder: ConfoundEncoder,
) -> Array:
    """The answers without those that so few of a category gave in a bin that the model would tell them."""
    limit = encoder.smallest_category
    if limit < 2:
        return work
    work = work.copy() if work.dtype.kind != "u" else work.astype(np.result_type(work.dtype, np.int8))
    found, number, names = [], 0, [INTERCEPT]
    for t in range(len(bins)):
        rows = np.flatnonzero(arranged.bin == t)
        who = arranged.participant[rows]
        members, names = encoder.memberships(design[who])
        own = work[rows]
        cells, few = leave_out_few(own, members, None if weights is None else weights[who], limit=limit)
        work[rows] = own
        found.append(cells)
        number += few
    if number:
        cells, columns = np.concatenate(found, axis=1), column_names(arranged.items, bins)
        refuse_few_answers(
            np.all(~(work >= 0), axis=0, keepdims=True), arranged.items, limit=limit
        )  # in every bin
        warnings.warn(left_out(cells, columns, names, number, limit=limit), stacklevel=5)
    return work


def _warn_of_empty_columns(work: Array, arranged: Arranged, bins: AgeBins) -> None:
    given = work >= 0
    empty = [
        name
        for t in range(len(bins))
        for name, any_ in zip(arranged.items, given[arranged.bin == t].any(axis=0), strict=True)
        if not any_
    ]
    if empty:
        warnings.warn(
            InputWarning(
                f"{counted(len(empty), 'item')} of a bin have no answers there "
                f"({listed(dict.fromkeys(empty))}): such a loading is what the neighbouring bins make of it.",
                code="empty-columns",
            ),
            stacklevel=5,
        )


def _made_up(arranged: Arranged, work: Array) -> Array:
    """Weights (n,): what each participant was asked over what they answered, at the visits that took place.

    Whoever leaves questions open at a visit then counts as much as who answers them all; a visit that did not
    take place counts for nothing, as before.
    """
    n, p = len(arranged.names), work.shape[1]
    given = np.bincount(arranged.participant, weights=(work >= 0).sum(axis=1), minlength=n)
    asked = np.bincount(arranged.participant, minlength=n) * float(p)
    return np.minimum(asked / np.maximum(given, 1.0), HEAVIEST)
