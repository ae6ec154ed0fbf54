"""Answers that are not in memory: in parts of a file, or on the workers of a cluster."""

from __future__ import annotations

import contextlib
import copy
import glob
import math
import os
import platform
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icqf.core.block_step import Additive
from icqf.core.observations import Observations, is_small
from icqf.core.rows import total
from icqf.data.disclosure import in_few_cells
from icqf.data.frames import AnswersInParts, as_pandas
from icqf.data.questionnaire import Questionnaire, StoredCodebook
from icqf.data.validate import (
    check_ranges,
    named_answers,
    numeric_table,
    observed_rows,
    seen_items,
    unpacked,
    working_matrix,
)
from icqf.engines.choice import engine_of
from icqf.engines.dask import MOST_CHUNKS, Dask, RemoteTable, keep_memory
from icqf.engines.threads import one_blas_thread
from icqf.errors import InputError
from icqf.models.statement import (
    Array,
    CellCounts,
    Learned,
    Source,
    cell_counts,
    members_of,
    observations_of,
    without_cells,
)

if TYPE_CHECKING:
    from icqf.models.icqf import ICQF


_SUFFIX = ".answers"
MISSING = -1
_TYPES = (np.dtype(np.int8), np.dtype(np.int16), np.dtype(np.float32))


@dataclass(frozen=True)
class StoredAnswers:
    """A table (n, m) in a file, counted from 0: integers with -1 missing, or floats with NaN."""

    path: str
    shape: tuple[int, int]
    dtype: Any
    offset: int = 0  # bytes before the first answer

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, rows: slice) -> Array:
        """Some rows as stored."""
        n, m = rows.stop - rows.start, self.shape[1]
        at = self.offset + rows.start * m * np.dtype(self.dtype).itemsize
        return np.fromfile(self.path, dtype=self.dtype, count=n * m, offset=at).reshape(n, m)

    def __getitem__(self, rows: slice) -> Array:
        rows = slice(*rows.indices(len(self))[:2])
        stored = self.read(rows)
        return np.where(stored >= 0, stored, np.nan).astype(np.float32)

    def part(self, rows: slice) -> StoredAnswers:
        """Consecutive rows of the same file."""
        width = self.shape[1] * np.dtype(self.dtype).itemsize
        shape = rows.stop - rows.start, self.shape[1]
        return replace(self, shape=shape, offset=self.offset + rows.start * width)

    def take(self, rows: Array) -> Array:
        """Some rows, by ascending positions, as stored."""
        width = self.shape[1] * np.dtype(self.dtype).itemsize
        taken = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        with open(self.path, "rb") as file:
            for at, row in enumerate(rows):
                file.seek(self.offset + int(row) * width)
                taken[at] = np.frombuffer(file.read(width), dtype=self.dtype)
        return taken


@dataclass(frozen=True)
class StoredObservations(Observations):
    """Answers in a file, of which only the present block is in memory; scores stay with the blocks."""

    answers: StoredAnswers  # type: ignore[assignment]

    @property
    def here(self) -> bool:
        return False

    def take(self, rows: Array) -> Observations:
        """Those of some participants (in order), read into memory."""
        return Observations(
            self.answers.take(rows),
            np.ascontiguousarray(self.design[:, rows]),
            None if self.weights is None else self.weights[rows],
            scale=self.scale,
            dtype=self.dtype,
        )

    def _part(self, rows: slice) -> Observations:
        return replace(
            self,
            answers=self.answers.part(rows),
            design=np.ascontiguousarray(self.design[:, rows]),
            weights=None if self.weights is None else self.weights[rows],
        )

    def hide(self, mask: Array) -> Observations:
        raise NotImplementedError("Answers in a file cannot be hidden; take some participants first.")

    def _table(self, rows: slice) -> tuple[Array, Array]:
        raw = self.answers.read(rows)
        return raw, raw >= 0


class InParts(Source):
    """Answers that are read and checked in parts and stored in a temporary file, in the smallest type."""

    size = math.inf
    rows: dict[int, object]
    observations: StoredObservations

    def __init__(self, parts: AnswersInParts, confounds: Any, sample_weight: Any) -> None:
        self._source, self.confounds, self.sample_weight = parts, confounds, sample_weight
        self._restart()

    def _restart(self) -> None:
        """Begin again with the first part."""
        self._n = 0
        self.rows = {}
        self._answered: list[Array] = []
        self._confounds: list[pd.DataFrame] = []
        self._sources: list[str] = []
        self._weights: list[Array] = []

    def inspect(self, model: ICQF) -> tuple[Any, Array, Any]:
        self._model = model
        first = next(self._source.parts()).answers
        if isinstance(first, Questionnaire):
            self.codebook = StoredCodebook(
                first.items, str(first.answers.index.name or ""), first.confound_entries, first.about
            )
        first, _, _, known = unpacked(first, None)
        answers, self.items, self.named = named_answers(model, numeric_table(first))
        declared = known if model.item_range is None else model.item_range
        return declared, self._extremes() if declared is None else answers, None

    def _extremes(self) -> Array:
        """The lowest and highest answer over all items, for every item (2, m)."""
        low, high = np.inf, -np.inf
        for part in self._source.parts():
            answers, _, _ = named_answers(self._model, numeric_table(part.answers))
            low = min(low, float(np.fmin.reduce(answers, axis=None)))
            high = max(high, float(np.fmax.reduce(answers, axis=None)))
        return np.broadcast_to(np.array([low, high])[:, None], (2, len(self.items)))

    def check(self, ranges: Array) -> Array:
        self._ranges = ranges
        self._refuse_code(self._source.missing)
        # an item without answers in a part
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            self._answers = self._stored()
        answered = np.concatenate(self._answered)
        if self._confounds and self.confounds is None:
            self.confounds = self._all_confounds()
        if self._weights and self.sample_weight is None:
            self.sample_weight = np.concatenate(self._weights)
        return answered

    def observe(self, learned: Learned, design: Array, weights: Array | None, kept: Array) -> None:
        weights = None if weights is None else weights[kept]
        columns = np.ascontiguousarray(design[kept].T)
        self.observations = StoredObservations(self._answers, columns, weights, dtype=learned.dtype)

    def leave_out(self, categories: list[int], few: Array) -> None:
        known, answers = self.observations, self._answers

        def parts() -> Iterator[Array]:
            for rows in known.spans:
                codes = answers.read(rows)
                codes[in_few_cells(members_of(known.design[:, rows], categories), few)] = MISSING
                yield codes

        self._answers = _write(parts(), answers.dtype) or answers
        self.observations = replace(known, answers=self._answers)

    def _stored(self) -> StoredAnswers:
        """The answers, checked, in the narrowest type that holds them."""
        for dtype in _TYPES:
            self._restart()
            stored = self._in_place(dtype)
            if stored is None:
                self._restart()
                stored = _write(self._parts(dtype), dtype)
            if stored is not None:
                return stored
        raise InputError("The answers cannot be stored as numbers.")

    def _in_place(self, dtype: np.dtype[Any]) -> StoredAnswers | None:
        """The array in its own file, if its format is that of a stored one."""
        array = self._source.stored
        if array is None or array.dtype != dtype or not array.flags.c_contiguous:
            return None
        for codes in self._parts(dtype):
            if codes is None or self._ranges[:, 0].any() or not self._answered[-1].all():
                return None
        if self.sample_weight is not None and not (np.asarray(self.sample_weight) > 0).all():
            return None
        return StoredAnswers(str(array.filename), array.shape, array.dtype, int(array.offset))

    def _parts(self, dtype: np.dtype[Any]) -> Iterator[Array | None]:
        """The answers of each part, encoded; None if the type is too narrow."""
        for part in self._source.parts():
            X, confounds, weights, known = unpacked(part.answers, part.confounds)
            if confounds is not None:
                self._confounds.append(confounds)
                self._sources.append(part.source)
            if weights is not None:
                self._weights.append(np.asarray(weights, dtype=float))
            table = numeric_table(X)
            answers, items, _ = named_answers(self._model, table)
            rows = _row_names(table, self._n)
            if items != self.items:
                raise InputError("The parts of the table do not have the same items, in the same order.")
            if known is None or not np.array_equal(known, self._ranges):
                try:
                    check_ranges(answers, self._ranges, items, rows)
                except InputError as error:
                    raise (error.at(part.source) if part.source else error) from None
            work = working_matrix(answers, self._ranges, np.dtype(np.float64))
            answered = observed_rows(answers)
            self._answered.append(answered)
            for at in np.flatnonzero(~answered):
                name = rows[int(at)]
                self.rows[self._n + int(at)] = f"{part.source}, row {name}" if part.source else name
            kept = answered & self._positive(len(answered))
            self._n += len(answered)
            yield _encoded(work if kept.all() else work[kept], dtype)

    def _all_confounds(self) -> pd.DataFrame:
        """The confounds of all parts, with the row names of messages."""
        if len({*self._sources}) > 1:  # rows are counted within each file
            return pd.concat(
                [
                    part.set_axis(pd.MultiIndex.from_product([[source], part.index]))
                    for source, part in zip(self._sources, self._confounds, strict=True)
                ]
            )
        return pd.concat(self._confounds)

    def _refuse_code(self, code: int | None) -> None:
        """Refuse a range that includes the code of a missing answer."""
        for item, (low, high) in zip(self.items, self._ranges, strict=True):
            if code is not None and low <= code <= high:
                raise InputError(
                    f"The range of item {item!r} includes {code}, which means a missing answer in a "
                    "memory-mapped array of integers.",
                    code="missing-in-range",
                    remedy="Count the answers from 0, or give them as floats with NaN.",
                )

    def _positive(self, rows: int) -> Array:
        """Which participants of the next part have a weight above 0."""
        if self.sample_weight is not None:
            given = np.asarray(self.sample_weight, dtype=float)[self._n : self._n + rows] > 0
            return given if len(given) == rows else np.ones(rows, dtype=bool)  # refused later
        return self._weights[-1] > 0 if self._weights else np.ones(rows, dtype=bool)


def _encoded(work: Array, dtype: np.dtype[Any]) -> Array | None:
    """Answers counted from 0 in this type; None if it cannot represent them."""
    if dtype.kind == "f":
        return work.astype(dtype)
    if work.dtype.kind != "f":
        return work.astype(dtype) if work.max(initial=0) <= np.iinfo(dtype).max else None
    codes = np.where(np.isnan(work), MISSING, work).astype(dtype)
    return codes if ((codes == work) | np.isnan(work)).all() else None


def _write(parts: Iterable[Array | None], dtype: Any) -> StoredAnswers | None:
    """These rows in a private temporary file; None if a part cannot be encoded."""
    _remove_leftovers()
    handle, path = tempfile.mkstemp(prefix=f"{_own_prefix()}{os.getpid()}-", suffix=_SUFFIX)
    rows, m, fits = 0, 0, True
    try:
        with os.fdopen(handle, "wb") as file:
            for codes in parts:
                fits = codes is not None
                if codes is None:
                    break
                _write_part(file, codes, path)
                rows, m = rows + len(codes), codes.shape[1]
    except BaseException:
        _remove(path)
        raise
    if not fits:
        _remove(path)
        return None
    answers = StoredAnswers(path, (rows, m), dtype)
    weakref.finalize(answers, _remove, path)
    return answers


def _row_names(answers: Any, first: int) -> Any:
    """Names of the rows of a part: their labels, or their positions in the whole table."""
    if isinstance(answers, pd.DataFrame) and not answers.index.equals(pd.RangeIndex(len(answers))):
        return list(answers.index)
    return range(first, first + len(answers))


def _write_part(file: IO[bytes], codes: Array, path: str) -> None:
    """Write some answers; a full disk is an InputError."""
    try:
        file.write(np.ascontiguousarray(codes).data)
    except OSError as error:
        folder = os.path.dirname(path)
        raise InputError(
            f"The answers could not be stored in the temporary folder {folder} "
            f"({error.strerror or error}; {shutil.disk_usage(folder).free / 1e9:.1f} GB are free).",
            code="no-room",
            remedy="Set TMPDIR to a folder with more room.",
        ) from None


def _own_prefix() -> str:
    return f"icqf-{platform.node()}-"


def _remove_leftovers() -> None:
    """Remove files of processes on this machine that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{glob.escape(_own_prefix())}*{_SUFFIX}"):
        pid = path.name.removeprefix(_own_prefix()).split("-")[0]
        if pid.isdigit() and not _is_running(int(pid)):
            with contextlib.suppress(OSError):
                path.unlink()


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # elsewhere, os.kill would end it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def cluster_of(engine: Any) -> Dask | None:
    """The cluster of a Dask engine; None for other engines."""
    engine = engine_of(engine)
    return engine if isinstance(engine, Dask) else None


# --- the problem of a fit -----------------------------------------------------------------------------


@dataclass(frozen=True)
class PartSummary:
    """Lowest and highest answers of a part (m,), and which participants have answers (n,)."""

    lowest: Array
    highest: Array
    answered: Array


@dataclass(frozen=True)
class PartTotals(Additive):
    """Sums over the participants of a part."""

    answered: Array  # (m,), how many answered each item
    sums: Array  # (3, m), see `Observations.item_sums`
    size: float  # Σω


class OnCluster(Source):
    """A dask array, whose parts are checked and held by the workers of a cluster."""

    def __init__(self, X: Any, cluster: Dask, confounds: Any, sample_weight: Any) -> None:
        self._cluster, self._client = cluster, cluster.client
        self._parts, self._spans, m = parts_of(X)
        self.confounds, self.sample_weight = confounds, sample_weight
        self.items = [f"item{j}" for j in range(1, m + 1)]
        self.rows = range(self._spans[-1].stop)
        self.size = len(self.rows) * m

    def inspect(self, model: ICQF) -> tuple[Any, Array, Any]:
        import dask

        summaries = [dask.delayed(part_summary)(part) for part in self._parts]
        self._summaries: list[PartSummary] = self._client.gather(self._client.compute(summaries))
        if model.item_range is None:  # refuse infinite answers before ranges are found
            self.check(np.tile(np.finfo(float).max * np.array([-1.0, 1.0]), (len(self.items), 1)))
        return model.item_range, self.extremes, None

    @property
    def extremes(self) -> Array:
        """The lowest and the highest answers to all items (2, m)."""
        return np.stack(
            [
                np.fmin.reduce([inspect.lowest for inspect in self._summaries], axis=0),
                np.fmax.reduce([inspect.highest for inspect in self._summaries], axis=0),
            ]
        )

    def check(self, ranges: Array) -> Array:
        for part, rows, inspect in zip(self._parts, self._spans, self._summaries, strict=True):
            try:
                check_ranges(np.stack([inspect.lowest, inspect.highest]), ranges, self.items, rows=range(2))
            except InputError as error:
                here = self._client.compute(part)
                whose = self._client.submit(range_error, here, ranges, self.items, rows.start, pure=False)
                raise whose.result() or error from None
        return np.concatenate([inspect.answered for inspect in self._summaries])

    def observe(self, learned: Learned, design: Array, weights: Array | None, kept: Array) -> None:
        import dask

        small = is_small(len(kept), len(self.items), learned.dtype)
        own = None if self.confounds is None else design  # workers make an intercept themselves
        parts = [
            dask.delayed(observed_part)(part, learned, _rows_of(own, rows), _rows_of(weights, rows), small)
            for part, rows in zip(self._parts, self._spans, strict=True)
        ]
        self._observed, self._learned = self._client.compute(parts), learned
        self._counts = [int(kept[rows].sum()) for rows in self._spans]

    def count(self, categories: list[int]) -> CellCounts:
        return self._total(cell_counts, categories=categories)

    def leave_out(self, categories: list[int], few: Array) -> None:
        self._observed = self._client.map(
            without_cells, self._observed, categories=categories, few=few, pure=False
        )

    def observed(self) -> Observations:
        """The observations held by the workers."""
        totals: PartTotals = self._total(totals_of)
        return RemoteTable(
            np.empty((0, len(self.items))),
            np.empty((len(self._learned.encoder.names), 0)),
            dtype=self._learned.dtype,
            parts=tuple(self._observed),
            counts=tuple(self._counts),
            answered=totals.answered,
            sums=totals.sums,
            total_weight=totals.size,
            fetch=self._cluster.fetch,
        )

    def _total(self, work: Callable[..., Any], **settings: Any) -> Any:
        """The sum of the results of `work` over the parts."""
        return total(self._client.gather(self._client.map(work, self._observed, pure=False, **settings)))


def parts_of(X: Any) -> tuple[list[Any], list[slice], int]:
    """The parts of a dask array, of whole rows; the rows of each; and the number of columns."""
    if X.ndim != 2:
        raise InputError(
            f"The dask array has {X.ndim} dimension(s); give two, one row per participant and one column per "
            "item."
        )
    if np.isnan(X.shape).any():
        raise InputError(
            "The dask array has parts with unknown numbers of rows.",
            code="unknown-rows",
            remedy="Count them first: X.compute_chunk_sizes().",
        )
    most = min(MOST_CHUNKS, max(1, X.shape[0]))
    rows = X.chunks[0] if X.numblocks[0] <= most else -(-X.shape[0] // most)
    X = X.rechunk((rows, -1))
    edges = np.cumsum([0, *X.chunks[0]]).tolist()
    return list(X.to_delayed()[:, 0]), [slice(*ends) for ends in pairwise(edges)], int(X.shape[1])


def part_summary(part: Array) -> PartSummary:
    """The lowest and highest answers of a part."""
    answers = _numbers(part)
    # an item without answers in the part
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        lowest, highest = (
            np.asarray(end.reduce(answers, axis=0), float) if len(answers) else np.full(part.shape[1], np.nan)
            for end in (np.fmin, np.fmax)
        )
    return PartSummary(lowest, highest, observed_rows(answers))


def observed_part(
    part: Array, learned: Learned, design: Array | None, weights: Array | None, keeps_floats: bool
) -> Observations:
    """The observations of a part, in the smallest type."""
    answers = _numbers(part)
    kept = observed_rows(answers)
    if weights is not None:
        kept &= weights > 0
    if design is None:
        design = learned.encoder.transform(None, n_rows=len(answers))
    observations = observations_of(answers, learned, design, weights, kept)
    return replace(observations, answers=compact(observations.answers), keeps_floats=keeps_floats)


def compact(work: Array) -> Array:
    """Answers counted from 0 as bytes, with -1 for missing, if that is exact."""
    if work.dtype.itemsize == 1:
        return work
    # numbers that do not fit are checked below
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        small = np.where(work >= 0, work, -1).astype(np.int8)
    same = small == np.where(work >= 0, work, -1)
    return small if same.all() else work


def totals_of(observations: Observations) -> PartTotals:
    """Sums over the observations of a part."""
    return PartTotals(observations.answer_counts(), observations.item_sums(), observations.size)


def _numbers(part: Any) -> Array:
    return named_answers(None, np.asarray(part))[0] if len(part) else np.asarray(part, dtype=float)


def _rows_of(table: Any, rows: slice) -> Any:
    """Some rows of a table or an array, if there is one."""
    return None if table is None else table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def range_error(part: Array, ranges: Array, items: list[str], first: int) -> InputError | None:
    """The error of an answer outside its range, with its row, which the worker knows."""
    answers = _numbers(part)
    try:
        check_ranges(answers, ranges, items, range(first, first + len(answers)))
    except InputError as error:
        return error
    return None


# --- scores -------------------------------------------------------------------------------------------


def lazy_scores(model: ICQF, X: Any, confounds: Any) -> Any:
    """Scores (n, k) of a dask array as another one, computed where its parts are; NaN without answers."""
    import dask
    import dask.array as da

    parts, spans, m = parts_of(X)
    k, n = len(model.components_), spans[-1].stop
    confounds = as_pandas(confounds)
    seen_items(model, np.zeros((1, m)))  # report errors here rather than on a worker
    if confounds is not None or model.confound_encoder_.columns:
        model.confound_encoder_.transform(confounds, n_rows=n)
    plain = copy.copy(model)
    plain.__dict__.update(engine="local", callback=None)  # not usable on a worker
    scorer, score = dask.delayed(plain), dask.delayed(part_scores)
    blocks = [
        da.from_delayed(
            score(scorer, part, _rows_of(confounds, rows)),
            shape=(rows.stop - rows.start, k),
            dtype=np.float64,
        )
        for part, rows in zip(parts, spans, strict=True)
    ]
    return da.concatenate(blocks)


def part_scores(model: ICQF, part: Array, confounds: Any) -> Array:
    """Scores of the participants of a part."""
    if not len(part):
        return np.empty((0, len(model.components_)))
    keep_memory()
    with warnings.catch_warnings(action="ignore"), one_blas_thread():  # nobody sees warnings of a worker
        scores: Array = np.asarray(model.transform(np.asarray(part), confounds=confounds))
    return scores
