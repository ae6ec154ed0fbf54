"""The answers of a file as a fitted model knows its items, batch by batch: a file may be of any size."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from icqf.data.parameters import Visit, visit_pairs
from icqf.data.questionnaire import Item, Questionnaire
from icqf.errors import InputError
from icqf.io.formats import TEXT
from icqf.io.parts import hashed_ids, repeated_id
from icqf.io.readers.files import sidecar_of, with_id
from icqf.io.readers.platforms import may_be_export
from icqf.io.readers.questionnaires import NO_IDS
from icqf.io.readers.streams import Batch, Stream, WholeStream, open_stream
from icqf.io.readers.tables import Table, largest_file, names_of_ids, require_column
from icqf.io.readers.tallies import join_notes
from icqf.io.readers.visits import rows_of_visit, without_visit
from icqf.models.icqf import ICQF
from icqf.workflow.modelled import answers_for, known_items, model_notes, require_model_columns

_CELL = 8  # bytes of a cell in memory
_LETTERS = 2  # bytes of a cell in a file of text


class FaultyBatch(Exception):
    """What is wrong with a batch; what is wrong with the whole table may have to be said otherwise."""

    def __init__(self, fault: InputError) -> None:
        super().__init__(str(fault))
        self.fault = fault


@dataclass(eq=False)
class ModelledBatches:
    """A table that is read batch by batch, each being checked and mapped to the items of a model.

    Everything that is said of a table whole is said of its batches together: `notes` when all have been given
    out. Ids are compared over all batches.

    Parameters
    ----------
    model : ICQF
    stream : Stream
    given : tuple of Item
        Entries of a codebook that come before those of the model.
    id, missing_codes, visit
        As in `icqf.io.read_questionnaire`.
    """

    model: ICQF
    stream: Stream
    given: tuple[Item, ...] = ()
    id: str | None = None
    missing_codes: tuple[float | str, ...] = ()
    visit: Visit = None
    notes: tuple[str, ...] = ()
    doubtful: list[pd.DataFrame] = field(default_factory=list)

    def questionnaires(self) -> Iterator[Questionnaire]:
        """Give out the batches, from the beginning; a fault in one is raised as a `FaultyBatch`."""
        self._check_names()
        kept, visit_note = self._visit()
        notes: tuple[str, ...] = ()
        ids: list[np.ndarray] = []
        identity: str | None = None
        flags: frozenset[str] | None = None
        at = done = 0
        self.doubtful = []
        for batch in self.stream.batches(self._columns()):
            table = batch.table()
            if at == 0:
                identity = with_id(table).id
            table = replace(table, id=identity, first=done + 1)
            rows = slice(at, at + len(batch))
            at += len(batch)
            if kept is not None:
                table = without_visit(table, visit_pairs(self.visit), kept[rows], visit_note)
                if not len(table.frame):
                    continue
            read = self._read(table, batch)
            flags = self._same_flags(table, flags)
            notes = join_notes([notes, read.notes])
            if NO_IDS not in read.notes:
                ids.append(hashed_ids(read.answers.index))
            done += len(read.answers)
            if len(read.answers):
                yield read
        self._refuse_repeated(ids, identity)
        self.notes = model_notes(self.model, notes, self.given)

    @cached_property
    def _items(self) -> tuple[Item, ...]:
        return known_items(self.model, self.given)

    def warn(self) -> None:
        """Warn of all that is to be said about the confounds, once for all participants."""
        if self.doubtful:
            self.model.confound_encoder_.transform(pd.concat(self.doubtful))

    def _check_names(self) -> None:
        header = Table(pd.DataFrame(columns=list(self.stream.names)), self.stream.source, np.arange(0))
        confounds = [column.name for column in self.model.confound_encoder_.columns]
        for column, _ in visit_pairs(self.visit):
            require_column(header, column, "the visit")
        require_model_columns(header, [str(name) for name in self.model.item_range_.index], "item")
        require_model_columns(header, confounds, "confound")
        if self.id is not None:
            require_column(header, self.id, "the id")

    def _columns(self) -> list[str] | None:
        """The columns to read, in their order; all of a text, whose other columns cost nearly nothing."""
        names = self.stream.names
        if self.stream.n_rows is None:
            return None
        wanted = {names[0], *names_of_ids(names), self.id, self.model.codebook_.id}
        wanted |= {str(name) for name in self.model.item_range_.index}
        wanted |= {column.name for column in self.model.confound_encoder_.columns}
        wanted |= {column for column, _ in visit_pairs(self.visit)}
        return [name for name in names if name in wanted]

    def _visit(self) -> tuple[np.ndarray | None, str]:
        """Which rows are of the visit to keep, from its columns alone."""
        pairs = visit_pairs(self.visit)
        if not pairs:
            return None, ""
        columns = list(dict.fromkeys(column for column, _ in pairs))
        parts = [batch.frame.astype(object) for batch in self.stream.batches(columns)]
        whole = pd.concat(parts, ignore_index=True)
        return rows_of_visit(Table(whole, self.stream.source, np.arange(len(whole))), pairs)

    def _read(self, table: Table, batch: Batch) -> Questionnaire:
        """One batch as the model knows it; what is doubtful about its confounds is kept for `warn`."""
        try:
            read = answers_for(
                self.model,
                table,
                given=self.given,
                id=self.id,
                missing_codes=self.missing_codes,
                items=self._items,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.model.confound_encoder_.transform(read.confounds, n_rows=len(read.answers))
        except InputError as fault:
            after = batch.rows[-1] if len(batch) else 0
            raise FaultyBatch(
                InputError(
                    f"{fault.message} Rows after {after} were not read.",
                    code=fault.code,
                    remedy=fault.remedy,
                    **fault.fields,
                )
            ) from fault
        if read.confounds is not None:
            outside = self.model.confound_encoder_.outside(read.confounds)
            self.doubtful += [read.confounds[outside]] if outside.any() else []
        return read

    def _same_flags(self, table: Table, flags: frozenset[str] | None) -> frozenset[str]:
        """Refuse items that are true or false in some batches and something else in others."""
        kinds = dict(zip(table.frame.columns, table.frame.dtypes, strict=True))
        here = frozenset(item.name for item in self._items if pd.api.types.is_bool_dtype(kinds[item.name]))
        if flags is not None and here != flags:
            raise FaultyBatch(
                InputError(
                    f"{self.stream.source}: item {min(here ^ flags)!r} holds true and false in some rows, "
                    "and something else in others.",
                    code="mixed-flags",
                    remedy="Code its answers as numbers.",
                )
            )
        return here

    def _refuse_repeated(self, ids: list[np.ndarray], identity: str | None) -> None:
        """Refuse an id that stands in two batches."""
        known = self.model.codebook_.id
        fault = repeated_id(
            self.stream, ids, str(self.id or (known if known in self.stream.names else identity))
        )
        if fault is not None:
            raise FaultyBatch(fault)


def in_batches(
    model: ICQF,
    answers: str | os.PathLike[str],
    *,
    batch_rows: int,
    given: tuple[Item, ...] = (),
    dictionary: str | os.PathLike[str] | None = None,
    id: str | None = None,
    missing_codes: Iterable[float | str] = (),
    visit: Visit = None,
) -> ModelledBatches | Table | None:
    """Open a file to be read batch by batch; the table where it had to be read whole, None where it must be.

    Described columns (a dictionary or sidecar) and exports of survey programs are understood from the whole.
    """
    path = Path(answers)
    if dictionary is not None or sidecar_of(path) is not None:
        return None
    texts = [name for name in (id, model.codebook_.id) if name]
    stream = open_stream(path, batch_rows=batch_rows, text=texts)
    if isinstance(stream, WholeStream):
        return stream.table
    if may_be_export(stream.names):
        return None
    return ModelledBatches(model, stream, given, id, tuple(missing_codes), visit)


def fits_in_memory(path: str | os.PathLike[str], stream: Stream) -> bool:
    """Whether a file may be read whole to see what is wrong with it: one file, half as large as any read."""
    path = Path(path)
    if not path.is_file():
        return False
    if stream.n_rows is not None:
        size = stream.n_rows * len(stream.names) * _CELL
    else:
        size = path.stat().st_size * (_CELL // _LETTERS if path.suffix.lower() in TEXT else 1)
    return 2 * size <= largest_file()
