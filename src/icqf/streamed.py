"""The statement of a problem whose answers are read in parts and kept in a file."""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from icqf.data.confounds import ConfoundEncoder
from icqf.data.disclosure import (
    count_answers,
    few_cells,
    leave_out_few,
    left_out,
    refuse_emptied,
    refuse_few_answers,
)
from icqf.data.parts import AnswersInParts, SomeAnswers
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
    unpacked,
    warn_of_empty_rows,
    weights_of,
    working_matrix,
)
from icqf.errors import InputError
from icqf.solvers.scaling import weighed
from icqf.solvers.stored_answers import MISSING, StoredAnswers, StoredObservations
from icqf.stated import Array, StatedProblem, learned_confounds, problem_of

if TYPE_CHECKING:
    from icqf.estimator import ICQF

_SUFFIX = ".answers"
_TYPES = (np.dtype(np.int8), np.dtype(np.int16), np.dtype(np.float32))


@dataclass(frozen=True, eq=False)
class _ReadInParts:
    """What was found on the way through all parts."""

    answers: StoredAnswers
    items: list[str]
    named: bool
    ranges: Array
    answered: Array
    silent: dict[int, object]  # what to call those who answered nothing, by their places
    confounds: pd.DataFrame | None
    weights: Array | None
    codebook: StoredCodebook


def state_in_parts(
    model: ICQF, source: AnswersInParts, *, confounds: Any, sample_weight: Any
) -> StatedProblem:
    """The problem that the settings of `model` make of answers that are read in parts; see `ICQF.state`.

    The answers are checked part by part and kept in a file of the temporary folder, in the smallest type that
    holds them, until nobody needs them any longer. An array of that kind that is in a file already is used
    where it is.
    """
    read = _read(model, source, sample_weight)
    n = len(read.answered)
    if confounds is not None:
        refuse_other_rows(read.answered, confounds=confounds)
    else:
        confounds = read.confounds
    weights = read.weights
    kept = read.answered if weights is None else read.answered & (weights > 0)
    encoder = learned_confounds(model, confounds, read.answered, weights)
    design = encoder.transform(confounds, n_rows=n)
    if not read.answered.all():
        warn_of_empty_rows(read.silent, read.answered, consequence="kept out of the fit")
    if not kept.all():
        design, weights = design[kept], None if weights is None else weights[kept]
    check_items(read.answers, read.items)  # type: ignore[arg-type]
    answers = _without_few_answers(read, design, weights, encoder)
    dtype = np.dtype("float32" if model.dtype == "auto" else model.dtype)
    observations = StoredObservations(answers, np.ascontiguousarray(design.T), weights, dtype=dtype)
    return StatedProblem(
        weighed(
            problem_of(model, observations, read.ranges, encoder), item_weights(model.item_weight, read.items)
        ),
        kept,
        read.answered,
        range(n),
        tuple(read.items),
        read.named,
        read.ranges,
        encoder,
        codebook=read.codebook,
    )


def _without_few_answers(
    read: _ReadInParts, design: Array, weights: Array | None, encoder: ConfoundEncoder
) -> StoredAnswers:
    """The answers, without those that so few of a category gave that the model would tell them."""
    answers, limit = read.answers, encoder.smallest_category
    if limit < 2 or len(answers) < limit:
        return answers
    members, names = encoder.memberships(design)
    few = few_cells(count_answers(answers, members, weights), limit=limit)  # type: ignore[arg-type]
    refuse_few_answers(few, read.items, limit=limit, weighted=weights is not None)
    if not few.any():
        return answers
    step = 4096
    parts = (answers.read(slice(at, min(at + step, len(answers)))) for at in range(0, len(answers), step))
    copy = _stored(parts, answers.dtype)
    if copy is None:
        return answers
    table = np.memmap(copy.path, dtype=copy.dtype, mode="r+", shape=copy.shape)
    cells, number = leave_out_few(table, members, weights, limit=limit)
    table.flush()
    refuse_few_answers(cells, read.items, limit=limit)
    refuse_emptied(int(((table >= 0).sum(axis=1) == 0).sum()))
    warnings.warn(left_out(cells, read.items, names, number, limit=limit), stacklevel=4)
    return copy


def _stored(parts: Iterable[Array | None], dtype: Any) -> StoredAnswers | None:
    """These rows in a file of the temporary folder; None where one part cannot be written."""
    _sweep()
    # Nobody else may read it.
    handle, path = tempfile.mkstemp(prefix=f"{_own_prefix()}{os.getpid()}-", suffix=_SUFFIX)
    rows, m, fits = 0, 0, True
    try:
        with os.fdopen(handle, "wb") as file:
            for codes in parts:
                fits = codes is not None
                if codes is None:
                    break
                _keep(file, codes, path)
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


def _read(model: ICQF, source: AnswersInParts, sample_weight: Any) -> _ReadInParts:
    """Read, check and keep the answers in the narrowest type that holds them."""
    ranges = _undeclared(model, source)
    for dtype in _TYPES:
        spool = _Spool(model, source, ranges, dtype, sample_weight)
        read = spool.run()
        if read is not None:
            return read
    raise InputError("The answers cannot be kept as numbers.")


def _undeclared(model: ICQF, source: AnswersInParts) -> tuple[float, float] | None:
    """The lowest and the highest answer of all, where ranges are declared neither here nor by the data."""
    if model.item_range is not None:
        return None
    low, high = np.inf, -np.inf
    for part in source.parts():
        if isinstance(part.answers, Questionnaire):
            return None
        answers, _, _ = named_answers(model, numeric_table(part.answers))
        low = min(low, float(np.fmin.reduce(answers, axis=None)))
        high = max(high, float(np.fmax.reduce(answers, axis=None)))
    return low, high


class _Spool:
    """One way through all parts: each is checked, and written in one type of number."""

    def __init__(
        self,
        model: ICQF,
        source: AnswersInParts,
        found: tuple[float, float] | None,
        dtype: np.dtype[Any],
        sample_weight: Any,
    ) -> None:
        self.model, self.source, self.found, self.dtype = model, source, found, dtype
        self.weights = sample_weight
        self.items: list[str] = []
        self.named = False
        self.ranges = np.empty((0, 2))
        self.codebook = StoredCodebook()
        self.n = 0
        self._silent: dict[int, object] = {}
        self._answered: list[Array] = []
        self._confounds: list[pd.DataFrame] = []
        self._sources: list[str] = []
        self._weights: list[Array] = []

    def run(self) -> _ReadInParts | None:
        """What was read; None where this type of number does not hold it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of an item that nobody of a part answered
            place = self._in_place()
            written = place if place is not None else _stored(self._parts(), self.dtype)
        if written is None:
            return None
        answered = np.concatenate(self._answered)
        return _ReadInParts(
            written,
            self.items,
            self.named,
            self.ranges,
            answered,
            self._silent,
            self._all_confounds(),
            self._all_weights(answered),
            self.codebook,
        )

    def _in_place(self) -> StoredAnswers | None:
        """The array in its own file, where it is already as it would be written."""
        array = self.source.stored
        if array is None or array.dtype != self.dtype or not array.flags.c_contiguous:
            return None
        for codes in self._parts():
            if codes is None or self.ranges[:, 0].any() or not self._answered[-1].all():
                self._begin_anew()
                return None
        if self.weights is not None and not (np.asarray(self.weights) > 0).all():
            self._begin_anew()
            return None
        return StoredAnswers(str(array.filename), array.shape, array.dtype, int(array.offset))

    def _begin_anew(self) -> None:
        self.n, self._silent, self._sources = 0, {}, []
        self._answered, self._confounds, self._weights = [], [], []

    def _parts(self) -> Iterator[Array | None]:
        """The answers of each part that take part, as they are written; None where the type is too narrow."""
        for part in self.source.parts():
            answers, known = self._answers(part)
            rows = _row_names(answers, self.n)
            plain = self._named(answers)
            if self.n == 0:
                self._learn_ranges(known, plain)
            if known is None or not np.array_equal(known, self.ranges):
                try:
                    check_ranges(plain, self.ranges, self.items, rows)
                except InputError as error:
                    raise (error.at(part.source) if part.source else error) from None
            work = working_matrix(plain, self.ranges, np.dtype(np.float64))
            answered = observed_rows(plain)
            self._answered.append(answered)
            for at in np.flatnonzero(~answered):
                name = rows[int(at)]
                self._silent[self.n + int(at)] = f"{part.source}, row {name}" if part.source else name
            kept = answered & self._positive(len(answered))
            self.n += len(answered)
            yield self._coded(work if kept.all() else work[kept])

    def _answers(self, part: SomeAnswers) -> tuple[Any, Array | None]:
        if isinstance(part.answers, Questionnaire) and self.n == 0:
            own = part.answers
            self.codebook = StoredCodebook(own.items, str(own.answers.index.name or ""), own.confound_entries)
        X, confounds, weights, known = unpacked(part.answers, part.confounds)
        if confounds is not None:
            self._confounds.append(confounds)
            self._sources.append(part.source)
        if weights is not None:
            self._weights.append(np.asarray(weights, dtype=float))
        return numeric_table(X), None if known is None else known.to_numpy()

    def _named(self, table: Any) -> Array:
        plain, items, named = named_answers(self.model, table)
        if self.n == 0:
            self.items, self.named = items, named
        elif items != self.items:
            raise InputError("The parts of the table do not have the same items, in the same order.")
        return plain

    def _learn_ranges(self, known: Array | None, plain: Array) -> None:
        if self.found is not None:
            plain = np.broadcast_to(np.array(self.found)[:, None], (2, len(self.items)))
        declared = known if self.model.item_range is None else self.model.item_range
        self.ranges = item_ranges(declared, self.items, plain)
        self._refuse_code(self.source.missing)

    def _refuse_code(self, code: int | None) -> None:
        """Refuse a range that holds the number which stands for a missing answer."""
        for item, (low, high) in zip(self.items, self.ranges, strict=True):
            if code is not None and low <= code <= high:
                raise InputError(
                    f"Item {item!r} may be answered with {code}, which stands for a missing answer in an "
                    "array of whole numbers that is mapped from a file.",
                    code="missing-in-range",
                    remedy="Count the answers from 0, or give them as floats with NaN.",
                )

    def _positive(self, rows: int) -> Array:
        """Which participants of the part that comes next have a weight above 0."""
        if self.weights is not None:
            given = np.asarray(self.weights, dtype=float)[self.n : self.n + rows] > 0
            return given if len(given) == rows else np.ones(rows, dtype=bool)  # the number is refused later
        return self._weights[-1] > 0 if self._weights else np.ones(rows, dtype=bool)

    def _all_confounds(self) -> pd.DataFrame | None:
        """The confounds of all parts, with rows called as they are in messages about answers."""
        if not self._confounds:
            return None
        if len({*self._sources}) > 1:  # rows are counted within each file
            return pd.concat(
                [
                    part.set_axis(pd.MultiIndex.from_product([[source], part.index]))
                    for source, part in zip(self._sources, self._confounds, strict=True)
                ]
            )
        return pd.concat(self._confounds)

    def _all_weights(self, answered: Array) -> Array | None:
        own = np.concatenate(self._weights) if self._weights else None
        return weights_of(own if self.weights is None else self.weights, answered[:, None])

    def _coded(self, work: Array) -> Array | None:
        if self.dtype.kind == "f":
            return work.astype(self.dtype)
        if work.dtype.kind != "f":
            return work.astype(self.dtype) if work.max(initial=0) <= np.iinfo(self.dtype).max else None
        codes = np.where(np.isnan(work), MISSING, work).astype(self.dtype)
        return codes if ((codes == work) | np.isnan(work)).all() else None


def _row_names(answers: Any, first: int) -> Any:
    """How to call the rows of a part: by their labels, or by their places in the whole table."""
    if isinstance(answers, pd.DataFrame) and not answers.index.equals(pd.RangeIndex(len(answers))):
        return list(answers.index)
    return range(first, first + len(answers))


def _keep(file: IO[bytes], codes: Array, path: str) -> None:
    """Write some answers; a disk that is full is said to be."""
    try:
        file.write(np.ascontiguousarray(codes).data)
    except OSError as error:
        folder = os.path.dirname(path)
        raise InputError(
            f"The answers could not be kept in the temporary folder {folder} "
            f"({error.strerror or error}; {shutil.disk_usage(folder).free / 1e9:.1f} GB are free).",
            code="no-room",
            remedy="Set TMPDIR to a folder with more room.",
        ) from None


def _own_prefix() -> str:
    return f"icqf-{platform.node()}-"


def _sweep() -> None:
    """Remove what processes of this machine left behind that were killed and could not tidy up."""
    for path in Path(tempfile.gettempdir()).glob(f"{glob.escape(_own_prefix())}*{_SUFFIX}"):
        pid = path.name.removeprefix(_own_prefix()).split("-")[0]
        if pid.isdigit() and not _runs(int(pid)):
            with contextlib.suppress(OSError):
                path.unlink()


def _runs(pid: int) -> bool:
    if os.name != "posix":  # where asking would end it
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
