"""New answers to a fitted model's items: from a whole table, in batches, or from a battery."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.analyses.crosswalk import Crosswalk
from icqf.data.about import About
from icqf.data.battery import Battery
from icqf.data.questionnaire import Item, Questionnaire, StoredCodebook
from icqf.data.settings import parameter_error
from icqf.errors import InputError, did_you_mean, has_note, is_note, listed
from icqf.io.codebook import codebook_and_about
from icqf.io.formats import TEXT
from icqf.io.model_file import StoredBattery, StoredModel, damage_refused, read_any_model, read_stored
from icqf.io.readers.confound_columns import as_the_model_knows
from icqf.io.readers.files import with_id
from icqf.io.readers.platforms import may_be_export
from icqf.io.readers.questionnaires import NO_IDS, NOT_IN_CODEBOOK, StudyTable, arranged, read_files
from icqf.io.readers.streams import Batch, Stream, WholeStream, hashed_ids, open_stream, repeated_id
from icqf.io.readers.table import Table, join_notes, largest_file, names_of_ids, require_column
from icqf.io.readers.visit_columns import once_each, rows_of_visit, without_visit
from icqf.io.study_files import StudyFiles, sidecar_of
from icqf.models.icqf import ICQF
from icqf.models.longitudinal import KIND as LONGITUDINAL
from icqf.models.longitudinal import LongitudinalICQF, rebuilt_visits
from icqf.models.meta import MetaICQF
from icqf.models.persistence import described, rebuild
from icqf.workflow.options import StudyOptions, as_options
from icqf.workflow.read import find_instruments, require_ids

DIRECTIONS_UNKNOWN = (
    "The model file does not say which items are reversed and which values are missing codes, so the "
    "answers are used unchanged. Give a codebook if this is wrong."
)
_OF_THE_MODEL = ("confounds", "weights", "items", "subscales", "reverse")
_MODELS = ("model.icqf", "meta.icqf", "crosswalk.icqf")  # of fits and visits, batteries, crosswalks
_CELL = 8  # bytes of a cell in memory
_LETTERS = 2  # bytes of a cell in a text file


def model_file(place: str | os.PathLike[str]) -> Path:
    """The model file, or the one in a results folder."""
    folder = Path(place)
    if not folder.is_dir():
        return folder
    found = [folder / name for name in _MODELS if (folder / name).is_file()]
    if not found:
        raise InputError(
            f"{folder}: this folder has no model (model.icqf).",
            code="no-results",
            remedy="Give a model file, or the folder that icqf fit wrote its results to.",
        )
    return found[0]


def load_model(path: str | os.PathLike[str]) -> ICQF | LongitudinalICQF | MetaICQF:
    """Read a model of any kind: its file, or the results folder that it is in."""
    path = model_file(path)
    return _rebuilt(path, read_any_model(path))


def load_model_or_crosswalk(path: str | os.PathLike[str]) -> ICQF | LongitudinalICQF | MetaICQF | Crosswalk:
    """Read a model of any kind, or a crosswalk."""
    path = model_file(path)
    stored = read_stored(path)
    if not isinstance(stored, dict):
        return _rebuilt(path, stored)
    with damage_refused(path):
        return Crosswalk.from_dict(stored)


def _rebuilt(path: Path, stored: StoredModel | StoredBattery) -> ICQF | LongitudinalICQF | MetaICQF:
    with damage_refused(path):
        if not isinstance(stored, StoredModel):
            return MetaICQF.rebuilt(*stored)
        if LONGITUDINAL in stored.header:
            return rebuilt_visits(LongitudinalICQF, stored)
        return rebuild(ICQF, stored)


@dataclass(frozen=True, eq=False)
class ModelledAnswers:
    """A model, and new answers to its items: a questionnaire or a battery; `extra` are further columns."""

    model: Any
    questionnaire: Any
    notes: tuple[str, ...]
    extra: pd.DataFrame | None
    files: tuple[Path, ...]


def read_for_model(
    model: str | os.PathLike[str],
    answers: StudyFiles | str | os.PathLike[str],
    *,
    extra: Sequence[str] = (),
    refitted: bool = False,
    **roles: Any,
) -> ModelledAnswers:
    """Read a model, and answers to its items with the ranges, directions and codes of the fit.

    A model that is to be `refitted` to these answers may have other survey weights.
    """
    model = model_file(model)
    fitted, files = load_model(model), files_for_model(answers, roles, refitted=refitted)
    if isinstance(fitted, MetaICQF):
        if files.groups is not None:
            raise parameter_error("groups", " does not apply to batteries: participants are held out singly.")
        battery, notes = battery_answers(fitted, files)
        return ModelledAnswers(fitted, battery, notes, None, (model,))
    if isinstance(fitted, LongitudinalICQF):
        ICQF.load(model)  # raises an error that names the kind of model
    reader = ModelReader(fitted, files, *given_with(files), tuple(extra))
    questionnaire, beside = reader.apart(reader.whole())
    notes = reader.notes(questionnaire.notes)
    return ModelledAnswers(fitted, questionnaire, notes, beside, (model, *files.paths))


def files_for_model(
    answers: StudyFiles | str | os.PathLike[str], roles: dict[str, Any], *, refitted: bool = False
) -> StudyFiles:
    """Return the files and roles of new answers; roles defined by the model are refused."""
    files = answers if isinstance(answers, StudyFiles) else StudyFiles(Path(answers), **roles)
    for name in _OF_THE_MODEL:
        if getattr(files, name) and not (refitted and name == "weights"):
            raise parameter_error(name, " is defined by the model; leave it out.")
    return files


def given_with(files: StudyFiles) -> tuple[tuple[Item, ...], About]:
    """Return the entries of the codebook, if there is one, and what is stated about the study."""
    entries, about = codebook_and_about(files)
    return entries or (), about


@dataclass(frozen=True, eq=False)
class ModelReader:
    """Reads a table's answers to a model's items, with the ranges, directions and codes of the fit.

    Codebook entries in `given` take precedence over the model's. Columns in `extra` are added to the
    confounds.
    """

    model: Any  # ICQF, LongitudinalICQF or Crosswalk
    files: StudyFiles
    given: tuple[Item, ...]
    stated: About
    extra: tuple[str, ...] = ()

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The model's items: ranges from the model, the rest from the given or stored codebook."""
        names = (Item(str(name)) for name in self.model.item_range_.index)
        known = StoredCodebook((*names, *self.model.codebook_.items, *self.given))
        return described(self.model, known).items

    @cached_property
    def categories(self) -> dict[str, tuple[Any, ...] | None]:
        """The model's confounds with their categories; None for a continuous one."""
        return {column.name: column.categories for column in self.model.confound_encoder_.columns}

    @property
    def texts(self) -> list[str]:
        """The columns to read as text, in addition to ids and groups of the file."""
        return [self.model.codebook_.id, *(name for name in self.extra if name not in self.categories)]

    def whole(self, table: Table | None = None) -> Questionnaire:
        """Return all answers, from the file or its table."""
        files = replace(self.files, codebook=None, confounds=tuple(self.categories))
        read = read_files(files, table=table, text=self.texts, beside=self.extra)
        return self.questionnaire(read.table)

    def apart(self, read: Questionnaire) -> tuple[Questionnaire, pd.DataFrame | None]:
        """Return answers with the model's confounds alone, and the extra columns."""
        found, own = read.confounds, list(self.categories)
        if found is None or not self.extra:
            return read, None
        return read.with_confounds(found[own] if own else None), found[list(self.extra)]

    def questionnaire(self, table: Table) -> Questionnaire:
        """Return the answers of a table, which may be a part of the file."""
        known, names = self.model.codebook_, [item.name for item in self.items]
        id = self.files.id or (known.id if known.id in table.frame.columns else table.id)
        table = once_each(table, id, self.files)
        self.require_columns(table)
        for name in self.extra:
            require_column(table, name, "a group")
            if name in names:
                raise parameter_error(
                    "by",
                    f" is {name!r}, which is an item of the model; choose a column of groups, such as sex.",
                )
        files = replace(self.files, id=id, confounds=tuple(dict.fromkeys([*self.categories, *self.extra])))
        entries = (*self.items, *(entry for entry in self.given if entry.name in self.extra))
        read = StudyTable(self.in_categories(table), files, entries).questionnaire()
        stated = read.about.updated(self.stated)
        return read.with_notes(
            [*_other_instrument(known.about, stated), *_other_directions(known.items, self.given)]
        )

    def require_columns(self, table: Table) -> None:
        """Refuse a table that lacks items or confounds of the model."""
        require_model_columns(table, [str(name) for name in self.model.item_range_.index], "item")
        require_model_columns(table, list(self.categories), "confound")

    def in_categories(self, table: Table) -> Table:
        """Return the table with the confounds in the model's categories."""
        entries = (*self.given, *table.items, *self.model.codebook_.confounds)
        return as_the_model_knows(table, self.categories, entries)

    def notes(self, notes: Iterable[str]) -> tuple[str, ...]:
        """Return the notes that matter when answers are read for a model."""
        rest = [note for note in notes if not is_note(note, NOT_IN_CODEBOOK)]
        return tuple(rest if self.given or self.model.codebook_.items else [DIRECTIONS_UNKNOWN, *rest])


def _other_instrument(fitted: About, stated: About) -> list[str]:
    """Return a note if the new data state another instrument, version or language than the model."""
    found = fitted.differences(stated)
    if not found:
        return []
    return [
        f"The model is of another form: {'; '.join(found)}. Whether its scores mean the same there is not "
        "known. Compare wordings and answers before you use them."
    ]


def _other_directions(known: Iterable[Item], given: Iterable[Item]) -> list[str]:
    """Return a note if the codebook reverses other items than the fit did."""
    fitted = {item.name: item.reverse for item in known}
    other = [item.name for item in given if fitted.get(item.name, item.reverse) != item.reverse]
    if not other:
        return []
    return [
        f"The codebook and the model disagree about the direction of {listed(other)}. The codebook is used; "
        "if that is wrong, correct its column 'direction', or omit the codebook."
    ]


def require_model_columns(table: Table, names: Sequence[str], kind: str) -> None:
    """Refuse a table that lacks columns of a model."""
    absent = [name for name in names if name not in table.frame.columns]
    if absent:
        more = f", nor are {len(absent) - 1} more" if len(absent) > 1 else ""
        others = [name for name in table.frame.columns if name not in names]
        raise InputError(
            f"{table.source}: the model's {kind} {absent[0]!r} is not a column of the table{more}."
            f"{did_you_mean(absent[0], others)}"
        )


# --- batch by batch ---------------------------------------------------------------------------------------


class FaultyBatch(Exception):
    """An error in a batch whose last row is `after`; the whole table may give a better message."""

    def __init__(self, fault: InputError, after: int | None = None) -> None:
        super().__init__(str(fault))
        self.fault, self.error = fault, fault
        if after is not None:
            text = f"{fault.message} Rows after {after} were not read."
            self.error = InputError(text, code=fault.code, remedy=fault.remedy, **fault.fields)


@dataclass(eq=False)
class ModelledBatches:
    """A table read in batches, each checked and mapped to the items of a model.

    `notes` are set when all batches have been read. Ids are compared across batches.
    """

    reader: ModelReader
    stream: Stream
    notes: tuple[str, ...] = field(default=(), init=False)

    def questionnaires(self) -> Iterator[Questionnaire]:
        """Yield the batches; an error in one is raised as a `FaultyBatch`."""
        self._check_names()
        visit = self.reader.files.visit
        kept, visit_note = self._visit()
        notes: tuple[str, ...] = ()
        ids: list[np.ndarray] = []
        identity: str | None = None
        flags: frozenset[str] | None = None
        at = done = 0
        for batch in self.stream.batches(self._columns()):
            table = batch.table()
            if at == 0:
                identity = with_id(table).id
            table = replace(table, id=identity, first=done + 1)
            rows = slice(at, at + len(batch))
            at += len(batch)
            if kept is not None:
                table = without_visit(table, visit, kept[rows], visit_note)
                if not len(table.frame):
                    continue
            read = self._read(table, batch)
            flags = self._same_flags(table, flags)
            notes = join_notes([notes, read.notes])
            if not has_note(read.notes, NO_IDS):
                ids.append(hashed_ids(read.answers.index))
            done += len(read.answers)
            if len(read.answers):
                yield read
        self._refuse_repeated(ids, identity)
        self.notes = self.reader.notes(notes)

    def fits_in_memory(self) -> bool:
        """Whether the file is small enough to be read whole for a better error message."""
        path, stream = self.reader.files.answers, self.stream
        if not path.is_file():
            return False
        if stream.n_rows is not None:
            size = stream.n_rows * len(stream.names) * _CELL
        else:
            size = path.stat().st_size * (_CELL // _LETTERS if path.suffix.lower() in TEXT else 1)
        return 2 * size <= largest_file()

    def _check_names(self) -> None:
        header = Table(pd.DataFrame(columns=list(self.stream.names)), self.stream.source, np.arange(0))
        for column, _ in self.reader.files.visit:
            require_column(header, column, "the visit")
        self.reader.require_columns(header)
        for name in self.reader.extra:
            require_column(header, name, "the norms")
        if self.reader.files.id is not None:
            require_column(header, self.reader.files.id, "the id")

    def _columns(self) -> list[str] | None:
        """Return the columns to read, in order; None for a text file, of which all are read."""
        names, reader = self.stream.names, self.reader
        if self.stream.n_rows is None:
            return None
        wanted = {names[0], *names_of_ids(names), reader.files.id, reader.model.codebook_.id}
        wanted |= {item.name for item in reader.items} | {*reader.categories, *reader.extra}
        wanted |= {column for column, _ in reader.files.visit}
        return [name for name in names if name in wanted]

    def _visit(self) -> tuple[np.ndarray | None, str]:
        """Return which rows belong to the visit to keep, from its columns only."""
        pairs = self.reader.files.visit
        if not pairs:
            return None, ""
        columns = list(dict.fromkeys(column for column, _ in pairs))
        parts = [batch.frame.astype(object) for batch in self.stream.batches(columns)]
        whole = pd.concat(parts, ignore_index=True)
        return rows_of_visit(Table(whole, self.stream.source, np.arange(len(whole))), pairs)

    def _read(self, table: Table, batch: Batch) -> Questionnaire:
        try:
            return self.reader.questionnaire(table)
        except InputError as fault:
            raise FaultyBatch(fault, after=batch.rows[-1] if len(batch) else 0) from fault

    def _same_flags(self, table: Table, flags: frozenset[str] | None) -> frozenset[str]:
        """Refuse items that are Boolean in some batches only."""
        kinds = dict(zip(table.frame.columns, table.frame.dtypes, strict=True))
        items = self.reader.items
        here = frozenset(item.name for item in items if pd.api.types.is_bool_dtype(kinds[item.name]))
        if flags is not None and here != flags:
            raise FaultyBatch(
                InputError(
                    f"{self.stream.source}: item {min(here ^ flags)!r} is true or false in some rows, and "
                    "something else in others.",
                    code="mixed-flags",
                    remedy="Code its answers as numbers.",
                )
            )
        return here

    def _refuse_repeated(self, ids: list[np.ndarray], identity: str | None) -> None:
        """Refuse an id that occurs in two batches."""
        known = self.reader.model.codebook_.id
        name = self.reader.files.id or (known if known in self.stream.names else identity)
        fault = repeated_id(self.stream, ids, str(name))
        if fault is not None:
            raise FaultyBatch(fault)


def in_batches(reader: ModelReader, *, batch_rows: int) -> ModelledBatches | Table | None:
    """Open a file to be read in batches; returns its table if already read whole, None if it must be.

    Files with a dictionary or sidecar, a table of participants, and exports of survey programs must be read
    whole.
    """
    files = reader.files
    whole = files.dictionary is not None or files.participants is not None or files.arranged
    if whole or sidecar_of(files.answers):
        return None
    texts = [name for name in (files.id, reader.model.codebook_.id) if name]
    stream = open_stream(files.answers, batch_rows=batch_rows, text=texts)
    if isinstance(stream, WholeStream):
        return arranged(stream.table, files, texts)
    if may_be_export(stream.names) or not {*stream.names} & {item.name for item in reader.items}:
        return None  # with one row per answer, items are no columns
    return ModelledBatches(reader, stream)


# --- a battery --------------------------------------------------------------------------------------------


def battery_answers(model: MetaICQF, files: StudyFiles) -> tuple[Battery, tuple[str, ...]]:
    """Read the answers to any instruments of a battery's model, and the notes on them."""
    notes: list[str] = []
    (given, about), table = given_with(files), None
    if files.answers.is_dir():
        own_files = _in_folder(model, files, notes)
    else:
        table = read_files(replace(files, codebook=None, participants=None)).table
        own_files = dict.fromkeys(_in_table(model, table), replace(files, visit=()))
    instruments: dict[str, Questionnaire] = {}
    for name, own in own_files.items():
        read = ModelReader(model.instruments_[name], own, given, about).whole(table)
        if len(own_files) > 1 and table is None:
            require_ids(name, read)
        instruments[name] = read
        notes += [f"{name}: {note}" for note in read.notes if not is_note(note, NOT_IN_CODEBOOK)]
    return Battery(instruments), tuple(dict.fromkeys(notes))


def _in_folder(model: MetaICQF, files: StudyFiles, notes: list[str]) -> dict[str, StudyFiles]:
    """Return the files of each of the model's instruments, with the table of participants."""
    options = as_options(files, {"confounds": ["any"]}, StudyOptions)  # includes the table of participants
    instruments = find_instruments(options)
    mine = [each for each in instruments if each.name in model.instruments_]
    if not mine:
        raise InputError(
            f"{files.answers}: no file is named after an instrument of the model "
            f"({listed(model.instruments_, most=12)}); the folder has "
            f"{listed(each.name for each in instruments)}."
        )
    others = [each.name for each in instruments if each.name not in model.instruments_]
    if others:
        notes.append(f"Not used, because the model has no such instruments: {listed(others)}.")
    return {
        each.name: replace(files, answers=each.options.answers, participants=each.options.participants)
        for each in mine
    }


def _in_table(model: MetaICQF, table: Table) -> list[str]:
    """Return the instruments of which a table has any item."""
    columns = {str(name) for name in table.frame.columns}
    present = [
        name
        for name, own in model.instruments_.items()
        if columns & {str(item) for item in own.item_range_.index}
    ]
    if not present:
        raise InputError(
            f"{table.source}: no column is an item of the model's instruments "
            f"({listed(model.instruments_, most=12)})."
        )
    return present
