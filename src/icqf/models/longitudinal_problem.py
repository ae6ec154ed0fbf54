"""The problem of repeated visits: one row per visit, and loadings that differ little between bins."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.linalg import get_lapack_funcs

from icqf.core.observations import Array, Observations
from icqf.core.penalties import L1
from icqf.core.problem import Problem
from icqf.data.disclosure import refuse_few_answers
from icqf.data.questionnaire import StoredCodebook
from icqf.data.settings import parameter_error
from icqf.data.validate import check_ranges, named_answers, numeric_table, observed_rows, working_matrix
from icqf.data.visits import (
    FEWEST_IN_BIN,
    FEWEST_ITEMS,
    ONE_VISIT,
    WITHIN_BIN,
    AgeBins,
    VisitTable,
    age_bins,
    numbers_of,
)
from icqf.errors import Advice, InputError, InputWarning, counted, did_you_mean, listed
from icqf.models.statement import CellCounts, Learned, Source, StatedProblem, dropped_rows
from icqf.screening.missing_codes import number

if TYPE_CHECKING:
    from icqf.models.icqf import ICQF
    from icqf.models.longitudinal import LongitudinalICQF

_ROUNDS = 20
_NEWTON_STEPS = 60
_FLAT = 1e-10  # least curvature (relative to κ), so that every chain has a unique solution
_solve_tridiagonal = get_lapack_funcs("ptsv", dtype=np.float64)


def smoothed(problem: Problem, smoothness: float) -> Problem:
    """The same problem with a penalty on differences of loadings between neighbouring bins."""
    beta, bins = problem.penalty_of_loadings.beta, problem.observations.repeats
    return replace(problem, loading_penalty=Smooth(beta, smoothness, bins))


@dataclass(frozen=True)
class Smooth(L1):
    """β ‖x‖₁ + ½ β₂ Σ (x_jt − x_j,t+1)²: penalises change of loadings between neighbouring age bins.

    The columns are (bin, item), all items of the first bin first. Sweeps update an item's loading in all bins
    at once (`best_courses`).
    """

    smoothness: float = 0.0  # β₂
    bins: int = 1

    name = "smooth"
    description = "an ℓ1 penalty and a penalty on change between neighbouring bins"

    @property
    def favours_intercept(self) -> bool:  # type: ignore[override]
        return self.smoothness == 0

    def value(self, x: Array, weights: Array | None = None, *, scale: float = 1.0) -> float:
        bends = float((np.diff(self._courses(x), axis=-1) ** 2).sum(dtype=np.float64))
        return super().value(x, weights, scale=scale) + 0.5 * self.smoothness * scale * bends

    def sweep(self, x: Any, G: Any, P: Any, top: Any, *, scale: float, sweeps: int, xp: Any = None) -> Any:
        if self.smoothness == 0:
            return super().sweep(x, G, P, top, scale=scale, sweeps=sweeps, xp=xp)
        for _ in range(sweeps):
            for r, row in enumerate(x):
                self._move(row, G[r, r], P[r] - G[r] @ x + G[r, r] * row, top, scale)
        return x

    def sweep_each(
        self, x: Any, gradient: Any, G: Any, top: Any, *, scale: float, sweeps: int, xp: Any = None
    ) -> Any:
        if self.smoothness == 0:
            return super().sweep_each(x, gradient, G, top, scale=scale, sweeps=sweeps, xp=xp)
        for _ in range(sweeps):
            for r, row in enumerate(x):
                before = row.copy()
                self._move(row, G[r, r], G[r, r] * row - gradient[r], top, scale)
                gradient = gradient + G[r] * (row - before)
        return x

    def context(self, x: Array) -> Array:
        """How many neighbours each entry has, and their sum (..., 2)."""
        courses = self._courses(x)
        count, total = np.zeros_like(courses), np.zeros_like(courses)
        for here, there in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
            count[..., here] += 1
            total[..., here] += courses[..., there]
        return np.stack([self._columns(count), self._columns(total)], axis=-1)

    def coordinate(self, h: Array, p: Array, context: Array, *, scale: float) -> Array:
        kappa = self.smoothness * scale
        h, p = h + kappa * context[..., 0], p + kappa * context[..., 1]
        return super().coordinate(h, p, context, scale=scale)

    def along(self, w: Array, context: Array, *, scale: float) -> Array:
        bends = 0.5 * context[..., 0] * w**2 - context[..., 1] * w
        return super().along(w, context, scale=scale) + self.smoothness * scale * bends

    def balance(self, mass: Array, Q: Array, *, gamma: float) -> Array | None:
        """The root s of mass s³ − γ‖Q_r‖₁ s − γ (β₂/β) Σ(Q_rt − Q_r,t+1)² = 0, by Newton's method."""
        even = super().balance(mass, Q, gamma=gamma)
        bends = (np.diff(self._courses(Q), axis=-1) ** 2).sum(axis=(1, 2))
        if self.smoothness == 0 or even is None:
            return even
        if self.beta == 0:  # only their bound limits the scores
            return np.where(bends > 0, np.inf, even)
        q, d = gamma * Q.sum(axis=1) / mass, gamma * self.smoothness / self.beta * bends / mass
        s = even + np.cbrt(d)
        for _ in range(_NEWTON_STEPS):
            s = s - (s**3 - q * s - d) / np.maximum(3 * s**2 - q, 1e-300)
        return s

    def _move(self, row: Array, h: Any, p: Array, top: Any, scale: float) -> None:
        """Move one row of loadings (m,) to its best courses, in place."""
        kappa = self.smoothness * scale
        p = self._courses(p) - self.beta * scale
        h = h if np.ndim(h) == 0 else self._courses(h)
        ceiling = None if top is None else self._courses(np.broadcast_to(top, row.shape))
        row[...] = self._columns(best_courses(self._courses(row), h, p, kappa, ceiling))

    def _courses(self, x: Array) -> Array:
        """(..., bins × items) as (..., items, bins)."""
        return np.swapaxes(x.reshape(*x.shape[:-1], self.bins, -1), -1, -2)

    def _columns(self, courses: Array) -> Array:
        return np.swapaxes(courses, -1, -2).reshape(*courses.shape[:-2], -1)


def best_courses(x: Array, h: Array, p: Array, kappa: float, top: Any) -> Array:
    """The best chains (..., T), starting from x; h, p and top are numbers or arrays like x."""
    x = np.asarray(x, dtype=np.float64)
    h = np.broadcast_to(np.maximum(h, _FLAT * max(kappa, 1.0)), x.shape)
    top = np.broadcast_to(np.inf if top is None else top, x.shape)
    low, high = x <= 0, x >= top
    free = h + kappa * _neighbours(x.shape[-1])
    for _ in range(_ROUNDS):
        fixed = low | high
        bound = np.where(high, top, 0.0) * fixed
        d = np.where(fixed, 1.0, free)
        right = np.where(fixed, bound, p + kappa * _sum_of_neighbours(bound))
        off = np.zeros(x.shape)
        off[..., :-1] = np.where(fixed[..., :-1] | fixed[..., 1:], 0.0, -kappa)
        *_, y, _ = _solve_tridiagonal(d.ravel(), off.ravel()[:-1], right.reshape(-1, 1))
        y = y.reshape(x.shape)
        gradient = free * y - p - kappa * _sum_of_neighbours(y)
        lower = np.where(fixed, low & (gradient > 0), y < 0)
        higher = np.where(fixed, high & (gradient < 0), y > top)
        settled = np.array_equal(lower, low) and np.array_equal(higher, high)
        if settled:
            return y
        low, high = lower, higher
    y = np.clip(y, 0.0, top)
    worse = _value(y, h, p, kappa) > _value(x, h, p, kappa)
    return np.where(worse[..., None], x, y)


def _value(x: Array, h: Array, p: Array, kappa: float) -> Array:
    bends = 0.5 * kappa * (np.diff(x, axis=-1) ** 2).sum(axis=-1)
    return np.asarray((0.5 * h * x**2 - p * x).sum(axis=-1) + bends)


@cache
def _neighbours(length: int) -> Array:
    """How many neighbours each place of a chain has."""
    return np.where(np.isin(np.arange(length), (0, length - 1)), 1.0, 2.0) if length > 1 else np.zeros(1)


def _sum_of_neighbours(x: Array) -> Array:
    total = np.zeros_like(x)
    total[..., 1:] += x[..., :-1]
    total[..., :-1] += x[..., 1:]
    return total


_BLOCK_ROWS = 2048
_BLOCK_CELLS = 2**19  # the table is wide, so blocks have fewer visits
_NONE = np.zeros(0, dtype=np.intp)
FEWEST_LINKED = 10  # participants seen in two bins or more
MAX_WEIGHT = 4.0  # highest weight for non-response


@dataclass(frozen=True)
class VisitObservations(Observations):
    """Answers of visits, with (age bin, item) as columns; a visit has those of its bin.

    Visits × bins × items is mostly empty, so each block of visits is expanded only while it is processed.
    `answers` and `hidden` have one column per item; `scale` has one entry per column, the same in every bin.
    """

    bin: Array = field(default_factory=lambda: _NONE)  # (V,)
    bins: int = 1

    @property
    def m(self) -> int:
        return self.bins * self.n_items

    @property
    def repeats(self) -> int:
        return self.bins

    @property
    def n_items(self) -> int:
        """Number of items, each a column in every bin."""
        return int(self.answers.shape[1])

    def _of_participants(self, rows: Array | slice, stored: Array | slice, **others: Any) -> Observations:
        return super()._of_participants(rows, stored, bin=self.bin[stored], **others)

    def laid_out(self, by_row: Array, column: Array) -> Array:
        return np.take_along_axis(by_row, column.reshape(self.bins, self.n_items)[self.bin], axis=1)

    def cells(self, mask: Array) -> tuple[Array, Array, Array]:
        visits, items, answers = super().cells(mask)
        return visits, self.bin[visits] * self.n_items + items, answers

    def pooled(self) -> Observations:
        """The same visits, with one column per item."""
        return self._pooled

    @cached_property
    def _pooled(self) -> Observations:
        scale = None if self.scale is None else self.scale[: self.n_items]
        return Observations(self.answers, self.design, self.weights, self.hidden, scale, self.dtype)

    @property
    def _rows_at_once(self) -> int:
        return min(_BLOCK_ROWS, max(1, _BLOCK_CELLS // self.m))

    def _table(self, rows: slice) -> tuple[Array, Array]:
        own, own_observed = super()._table(rows)
        shape = (len(own), self.bins, self.n_items)
        raw, observed = np.full(shape, -1, dtype=self.answers.dtype), np.zeros(shape, dtype=bool)
        at = np.arange(len(own)), self.bin[rows]
        raw[at], observed[at] = own, own_observed
        return raw.reshape(len(raw), -1), observed.reshape(len(raw), -1)


@dataclass(frozen=True, eq=False)
class VisitRows:
    """One row of answers per participant and bin, participants in order of their first row."""

    names: pd.Index  # (n,), the participants
    participant: Array  # (V,)
    bin: Array
    answers: Array  # (V, items), in the items' own units
    items: list[str]
    first: Array  # (n,), first row of each participant in the table
    combined: int  # rows of the table that were combined with others

    @property
    def n_given(self) -> Array:
        """How many items were answered at each visit (V,)."""
        return np.asarray((~np.isnan(self.answers.astype(np.float64))).sum(axis=1))

    @property
    def filled(self) -> Array:
        """Visits (V,) with answers."""
        return observed_rows(self.answers)


def arrange(model: Any, table: VisitTable, bins: AgeBins, *, within_bin: str) -> VisitRows:
    """Sort the visits, and combine several visits of a participant in one bin."""
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
            f"The column {table.age_name!r} contains {strange}, a visit that is not in the model "
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
            remedy=Advice(
                "Keep one row per participant and visit.",
                typed=Advice(
                    "Use one of them with {doubled=}; 'last' and 'leave-out' are the other choices.",
                    doubled="first",
                ),
            ),
            participant=str(names[who[row]]),
            rows=(one + 1, other + 1),
        )
    if again.any():
        starts = np.flatnonzero(np.concatenate([[True], ~again]))
        answers = _combine(answers, starts, within_bin)
        who, at = who[starts], at[starts]
    return VisitRows(names, who, at, answers, items, first, int(again.sum()))


def _combine(answers: Array, starts: Array, within_bin: str) -> Array:
    """One row for each run of rows that begins at `starts`: their mean, the first or the last."""
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
    """Names of the columns of the factorized table: all items of the first bin, then the next."""
    return [f"{item} [{label}]" for label in bins.labels for item in items]


def gap_table(arranged: VisitRows, bins: AgeBins) -> pd.DataFrame:
    """Participants seen and items answered, by bin."""
    seen = np.bincount(arranged.bin, minlength=len(bins))
    answered = np.bincount(arranged.bin, weights=arranged.n_given, minlength=len(bins)).astype(int)
    n_asked = seen * len(arranged.items)
    table = {
        "seen": seen,
        "not_seen": len(arranged.names) - seen,
        "asked": n_asked,
        "given": answered,
        "unanswered": n_asked - answered,
    }
    return pd.DataFrame(table, index=pd.Index(bins.labels, name="bin"))


@dataclass(frozen=True, eq=False)
class VisitStatement:
    """The problem of a longitudinal fit, with what was learned about the table."""

    stated: StatedProblem  # of the (bin, item) columns; its rows are those of `visits`
    bins: AgeBins
    items: tuple[str, ...]
    visits: pd.MultiIndex  # participant and bin of all visits of the table
    gaps: pd.DataFrame  # see `gap_table`
    codebook: StoredCodebook

    @property
    def problem(self) -> Problem:
        return self.stated.problem

    @property
    def participants(self) -> Array:
        """Number of the participant of each visit of the problem (V,)."""
        return np.asarray(self.visits.codes[0])[self.stated.kept]

    @property
    def pooled(self) -> StatedProblem:
        """The problem with one column per item, whose loadings are those of every bin."""
        p, stated = len(self.items), self.stated
        return replace(stated, problem=stated.problem.pooled(), items=self.items, ranges=stated.ranges[:p])


class Visits(Source):
    """A table of visits, arranged by participants and bins."""

    named = True

    def __init__(self, model: LongitudinalICQF, X: Any) -> None:
        table = VisitTable.of(X, participant=model.participant, age=model.age, confounds=model.confounds)
        self._model, self._table = model, table

    def inspect(self, model: ICQF) -> tuple[Any, Array, Any]:
        own, table = self._model, self._table
        again = len(set(table.participant)) < len(table.participant)
        bins = age_bins(
            table.age,
            own.bins,
            binning=own.binning,
            participant=table.participant if again else None,  # otherwise refused below
            fewest=max(FEWEST_IN_BIN, int(own.smallest_category)),
        )
        arranged = self._arrange(table, bins)
        _refuse_unlinked(arranged, self.bins)
        if len(self.items) < FEWEST_ITEMS:
            raise InputError(
                f"The table has {counted(len(self.items), 'item')} ({listed(self.items)}); a longitudinal "
                f"model needs at least {FEWEST_ITEMS}.",
                code="few-items",
            )
        declared = table.ranges if own.item_range is None else own.item_range
        self.given = arranged.answers if declared is None else None
        return declared, arranged.answers, None

    def _arrange(self, table: VisitTable, bins: AgeBins) -> VisitRows:
        self.bins, self.repeats = bins, len(bins)
        self.arranged = arranged = arrange(self._model, table, bins, within_bin=self._model.within_bin)
        self.items, self.size = arranged.items, arranged.answers.size
        who, labels = arranged.names[arranged.participant], np.array(bins.labels, dtype=object)
        self.rows = list(who)
        self.visits = pd.MultiIndex.from_arrays(
            [pd.Categorical(who, arranged.names), labels[arranged.bin]],
            names=[table.participant_name, table.age_name],
        )
        confounds = table.confounds_of(arranged.first)
        self.confounds = None if confounds is None else confounds.iloc[arranged.participant]
        return arranged

    def check(self, ranges: Array) -> Array:
        arranged = self.arranged
        check_ranges(arranged.answers, ranges, self.items, arranged.names[arranged.participant])
        if arranged.combined and self.learned is None:
            _warn_of_combined(arranged, self._model.within_bin)
        return arranged.filled

    def observe(self, learned: Learned, design: Array, weights: Array | None, kept: Array) -> None:
        arranged = self.arranged
        if self._model.weigh_nonresponse and self.learned is None:
            weights = _nonresponse_weights(arranged)
        self.given = None if self.given is None else self.given[kept]
        self.observations = VisitObservations(
            working_matrix(arranged.answers, learned.ranges, learned.dtype)[kept],
            np.ascontiguousarray(design[kept].T),
            None if weights is None else weights[kept],
            dtype=learned.dtype,
            bin=arranged.bin[kept],
            bins=len(self.bins),
        )

    def silent(self, answered: Array) -> Array:
        who, n = self.arranged.participant, len(self.arranged.names)
        nothing = np.bincount(who, weights=answered, minlength=n) == 0
        first = np.diff(who, prepend=-1) > 0
        return first & nothing[who]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column_names(self.items, self.bins))

    def refuse_few(self, counts: CellCounts, few: Array, *, limit: int, weighted: bool) -> None:
        gone = (counts.by_category[0, -1] == 0).reshape(len(self.bins), -1).all(axis=0)  # in every bin
        refuse_few_answers(gone[None], self.items, limit=limit)

    def drop_emptied(self, number: int) -> Array | None:
        return dropped_rows(self) if number else None

    def statement(self, stated: StatedProblem) -> VisitStatement:
        """The statement of a longitudinal fit, with a warning about items that nobody answered in a bin."""
        counts = self.observations.answer_counts().reshape(len(self.bins), -1)
        empty = [self.items[j] for j in np.nonzero(counts == 0)[1]]
        if empty:
            warnings.warn(
                InputWarning(
                    f"{counted(len(empty), 'item')} without answers in a bin "
                    f"({listed(dict.fromkeys(empty))}): their loadings there follow from the other bins.",
                    code="empty-columns",
                ),
                stacklevel=4,
            )
        table, arranged = self._table, self.arranged
        codebook = StoredCodebook(table.items, table.participant_name, table.confound_items)
        gaps = gap_table(arranged, self.bins)
        return VisitStatement(stated, self.bins, tuple(self.items), self.visits, gaps, codebook)


class NewVisits(Visits):
    """Visits to be scored by a fitted model, with the model's bins, items, ranges and confounds."""

    def __init__(self, model: LongitudinalICQF, X: Any) -> None:
        super().__init__(model, X)
        inner = model.model_
        self.learned = Learned(
            model.item_range_.to_numpy(), inner.confound_encoder_, inner.dtype_, inner.item_scale_
        )

    def inspect(self, model: ICQF) -> tuple[Any, Array, Any]:
        items, columns = self._model.items_, self._table.answers.columns
        absent = [item for item in items if item not in columns]
        if absent:
            raise InputError(
                f"The table has no column for {counted(len(absent), 'item')} of the model ({listed(absent)})."
                f"{did_you_mean(absent[0], map(str, columns))}",
                code="missing-items",
                remedy="Give every item a column; leave it empty where it was not asked.",
            )
        table = replace(self._table, answers=self._table.answers[items])
        return None, self._arrange(table, self._model.bins_).answers, None


def _refuse_unlinked(arranged: VisitRows, bins: AgeBins) -> None:
    """Refuse visits with too few participants who are seen at more than one age."""
    several = np.bincount(arranged.participant) > 1
    if several.sum() < FEWEST_LINKED:
        everybody = f"Only {int(several.sum())} of {len(several)} participants came at more than one age"
        if not several.any():
            everybody = "Every participant has one visit"
        raise InputError(
            f"{everybody}, so that nothing links the factors of one age to those of another "
            f"({counted(len(bins), 'bin')}: {listed(bins.labels)}).",
            code="one-visit",
            remedy=Advice(
                "Fit each age separately with ICQF, or use narrower bins if visits were combined.",
                typed=ONE_VISIT,
            ),
        )


def _warn_of_combined(arranged: VisitRows, within_bin: str) -> None:
    how = {
        "mean": "their answers are averaged",
        "first": "the first of them is kept",
        "last": "the last of them is kept",
    }[within_bin]
    number = arranged.combined
    warnings.warn(
        InputWarning(
            f"{counted(number, 'visit')} {'falls' if number == 1 else 'fall'} into a bin that already has a "
            f"visit of the participant: {how}.",
            code="combined-visits",
            remedy=Advice("Choose narrower {bins}, or {within_bin} first, last or mean."),
        ),
        stacklevel=6,
    )


def _nonresponse_weights(arranged: VisitRows) -> Array:
    """Weight of each visit (V,): items asked over items answered."""
    return np.minimum(len(arranged.items) / np.maximum(arranged.n_given, 1.0), MAX_WEIGHT)
