"""A raw table, and the checks that the readers of all formats share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd

from icqf.data.about import NOT_STATED, About
from icqf.data.questionnaire import Item
from icqf.errors import Advice, InputError, did_you_mean, listed
from icqf.io.formats import READERS, largest_file
from icqf.io.study_files import ROW_NAMES
from icqf.screening.columns import FEWEST_NUMBERED, MOST_ANSWERS, Columns, LeftOut, recognise, sentences

Result = TypeVar("Result")

# From names that surely mean a participant to those that may mean a study.
ID_NAMES = (
    *("record_id", "participant_id", "subject_id", "subjectkey", "src_subject_id", "child_id", "person_id"),
    *("id", "subject", "participant", "subj", "subjectid", "participantid", "eid", "caseid", "case_id"),
    *("respid", "patient_id", "patientid", "pat_id", "pid", "mrn", "subjid", "subj_id", "ppt_id"),
    *(
        "recordid",
        "respondent_id",
        "respondentid",
        "respondent",
        "client_id",
        "person",
        "personid",
        "childid",
        "patient",
        "patient_no",
        "patient_number",
        "patient_nr",
        "patientennummer",
        "proband",
        "probanden_id",
        "probandennummer",
        "vpn",
    ),
    *("participant_no", "participant_number", "id_number", "idno", "pseudonym", "guid", "uuid", "uid"),
    *("study_id", "studyid", "responseid", "response_id", "pscid", "candid", ROW_NAMES),
)


@dataclass(frozen=True, eq=False)
class Table:
    """A file as it was read, with the file's own description of its columns.

    Parameters
    ----------
    frame : DataFrame
        The cells, including missing-answer codes.
    source : str
        Name of the file; messages start with it.
    rows : ndarray of int, shape (n,)
        Row numbers in the file, as in a spreadsheet.
    items : tuple of Item
        Columns the file describes (labels, ranges, user-missing values).
    candidates : tuple of str or None
        Columns that the file describes as questions; None if it describes none.
    id : str or None
        The column of participant ids, if known or recognised.
    structural : DataFrame of int or None
        Where a question was not asked: 1, or 2 if an earlier answer rules it out; elsewhere 0.
    metadata : tuple of str
        Columns that the survey program added, such as times; never items.
    notes : tuple of str
        What was done while reading.
    identifying : tuple of str
        Columns that a dictionary marks as identifying participants; never items, nor ids unless named.
    forms : mapping of str to str
        The questionnaire that each question belongs to, where a dictionary names it.
    first : int
        The number of the first participant if there are no ids; more than 1 in a later part of a table.
    about : About
        What the file states about its instrument.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.io import read_table
    >>> table = read_table(demo_paths().answers)
    >>> table.frame.shape, table.id
    ((600, 124), 'child_id')
    """

    frame: pd.DataFrame
    source: str
    rows: np.ndarray
    items: tuple[Item, ...] = ()
    candidates: tuple[str, ...] | None = None
    id: str | None = None
    structural: pd.DataFrame | None = None
    metadata: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    identifying: tuple[str, ...] = ()
    forms: Mapping[str, str] = field(default_factory=dict)
    first: int = 1
    about: About = NOT_STATED

    @property
    def described(self) -> dict[str, Item]:
        """The described columns by name."""
        return {item.name: item for item in self.items}

    def take(self, kept: np.ndarray) -> Table:
        """The table with the rows for which `kept` is true."""
        structural = self.structural
        return replace(
            self,
            frame=self.frame.loc[kept].reset_index(drop=True),
            rows=self.rows[kept],
            structural=None if structural is None else structural.loc[kept].reset_index(drop=True),
        )


def require_file(path: Path) -> None:
    """Refuse a path that is missing, a folder, empty, or too large for this machine's memory."""
    require_content(path)
    size, most = path.stat().st_size, largest_file()
    if size > most:
        raise InputError(
            f"{path.name}: the file has {size / 2**30:.1f} GB; at most {most / 2**30:.1f} GB can be read "
            "on this computer. Keep only the columns that are needed, or split it by participants and use "
            "`score` on each part."
        )


def require_content(path: Path) -> None:
    """Refuse a path that is missing, a folder, or empty."""
    if path.is_dir():
        inside = sorted(p.name for p in path.glob("*") if p.suffix.lower() in READERS)
        hint = f" It holds {listed(inside)}." if inside else ""
        raise InputError(f"{path.name or path}: this is a folder; name one file in it.{hint}")
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path.name}: this is a link to {str(path.readlink())!r}, which does not exist.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path.name}: this is a pipe or a device, not a file on a disk; save it as a file.")
    if not path.is_file():
        others = [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else []
        raise InputError(
            f"{path.name}: there is no such file in {str(path.parent)!r}.{did_you_mean(path.name, others)}"
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path.name}: the file is empty.")


def recognised_id(columns: Iterable[object]) -> str | None:
    """Return the column of participant ids by name, or None."""
    return next(iter(names_of_ids(columns)), None)


def names_of_ids(columns: Iterable[object]) -> list[str]:
    """Return the columns of ids by name, the surest first."""
    names = [str(column) for column in columns]
    lower = {re.sub(r"[\W_]+", "_", name.lower()).strip("_"): name for name in reversed(names)}
    return [lower[name] for name in ID_NAMES if name in lower]


def id_texts(column: pd.Series) -> list[str]:
    """Return ids as stripped text; numbers without ``.0``, empty cells as an empty text."""
    if pd.api.types.is_float_dtype(column.dtype):
        known = column.dropna()
        if bool(((known % 1 == 0) & (known.abs() < 2**53)).all()):  # larger floats are inexact
            column = column.astype("Int64")
    cells = column.tolist()
    try:
        words = " ".join(cells).split()  # fast if all are text without blanks
    except TypeError:  # numbers, or empty cells
        words = []
    if len(words) == len(cells):
        return words
    return ["" if empty else str(cell).strip() for cell, empty in zip(cells, column.isna(), strict=True)]


def may_be_id(column: pd.Series) -> bool:
    """Whether a column's values may be ids, rather than a few repeated values."""
    if column.iloc[: 2 * MOST_ANSWERS].nunique() > MOST_ANSWERS:  # without looking at all
        return True
    different = column.nunique()
    return not (0 < different <= MOST_ANSWERS and len(column) >= 10 * different)


def numbers_participants(column: pd.Series) -> bool:
    """Whether every row has its own whole number or code."""
    if len(column) < FEWEST_NUMBERED or not column.is_unique or column.isna().any():
        return False
    if pd.api.types.is_numeric_dtype(column.dtype):
        return bool((column % 1 == 0).all())
    texts = column.astype(str)
    return not bool(texts.str.contains(r"[\s/:]|^\d{4}-\d\d?-\d\d?$").any())  # nor dates


def item_columns(table: Table, roles: Mapping[str, str] | None = None) -> Columns:
    """Distinguish the items of a table from its other columns, by description, name and values.

    `roles` are columns with another use: "id", "confound", "group" or "weight".
    """
    described = table.described
    ids = {name for name in names_of_ids(table.frame.columns) if may_be_id(table.frame[name])}
    return recognise(
        table.frame,
        roles=roles,
        ids=ids if table.id is None else {*ids, table.id},
        questions=table.candidates,
        texts={name: (item.wording, *(text for _, text in item.labels)) for name, item in described.items()},
        declared={name for name, item in described.items() if item.declared},
        metadata=table.metadata,
        identifying=table.identifying,
    )


def check_header(names: list[str], source: str, row: int = 1) -> None:
    """Refuse a header with a duplicated name."""
    seen: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name and name in seen:
            raise InputError(
                f"{source}: row {row} names the column {name!r} twice (columns {seen[name]} and {position}). "
                "Rename one of them."
            )
        seen[name] = position


def with_row_names(names: list[str]) -> list[str]:
    """Names in which the first column, which has none, is called "rowname"."""
    name = ROW_NAMES
    while name in names:
        name += "_"
    return [name, *names[1:]]


def without_unnamed(frame: pd.DataFrame, names: list[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Give `frame` its names; filled columns without one are called by their number, empty ones left out."""
    unnamed = [i for i, name in enumerate(names) if not name]
    if not unnamed:
        return frame.set_axis(names, axis=1), ()
    filled = [i for i in unnamed if i < frame.shape[1] and frame.iloc[:, i].notna().any()]
    new = {i: f"column{i + 1}" for i in filled}
    new = {i: name + "_" * (name in names) for i, name in new.items()}
    kept = [i for i in range(len(names)) if names[i] or i in filled]
    frame = frame.iloc[:, kept].set_axis([names[i] or new[i] for i in kept], axis=1)
    notes = []
    if filled:
        what = "column without a name is" if len(filled) == 1 else "columns without a name are"
        notes.append(f"{len(filled)} {what} called {listed(new.values())} here.")
    if len(filled) < len(unnamed):
        notes.append("Empty columns without a name were left out.")
    return frame, tuple(notes)


def refuse_second_header(frame: pd.DataFrame, rows: np.ndarray, source: str) -> None:
    """Refuse a table in which the header is repeated further down (two files joined)."""
    texts = [column for column, dtype in frame.dtypes.items() if not pd.api.types.is_numeric_dtype(dtype)]
    if not texts:
        return
    again = np.flatnonzero(frame[texts[0]].isin([texts[0]]))
    for column in texts[1:]:
        if not len(again):
            return
        again = again[frame[column].iloc[again].isin([column]).to_numpy()]
    if len(again):
        row = rows[int(again[0])]
        raise InputError(
            f"{source}: the header is repeated in row {row}. Delete that row (were two files joined?)."
        )


def no_items(source: str, left_out: Iterable[LeftOut]) -> InputError:
    """Return the error for a table without items, with what its columns are."""
    return InputError(
        " ".join([f"{source}: no column looks like answers to a questionnaire.", *sentences(left_out)]),
        code="no-items",
        remedy=Advice("Name the items with {items}, or describe them with {codebook}."),
    )


def require_column(table: Table, name: str, role: str) -> None:
    """Refuse a column that does not exist, suggesting the nearest one."""
    if name not in table.frame.columns:
        raise InputError(
            f"{table.source}: there is no column {name!r} to use as {role}."
            f"{did_you_mean(name, table.frame.columns)} The columns are "
            f"{listed(table.frame.columns, most=8)}.",
            code="missing-column",
            column=name,
        )


def require_package(module: str, package: str, path: Path) -> None:
    """Refuse a file that needs a package which is not installed."""
    if find_spec(module) is None:
        raise InputError(
            f"{path.name}: a {path.suffix} file needs the package {package}; pip install 'icqf[io]'."
        )


def guarded(load: Callable[[], Result], path: Path, what: str) -> Result:
    """Run a third-party reader; any exception on a damaged file becomes one sentence."""
    try:
        return load()
    except MemoryError:
        raise InputError(f"{path.name}: the file is too large for this machine's memory.") from None
    except InputError:
        raise
    except Exception as error:  # parsers raise undocumented classes on damaged files
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(
            f"{path.name}: this cannot be read as {what} ({reason}). Is the file damaged or misnamed?"
        ) from error


Counts = Mapping[tuple[Any, ...], int]
CONFOUNDS, EMPTY, CELLS, CODES = range(4)  # subjects of tallies, in the order of their notes


class Tally(str):
    """A note with counts about some rows, which can be joined with the same note about others."""

    rank: tuple[int, ...]  # subject and order of the note
    counts: Counts  # sorted by key
    words: Callable[[Counts], str]  # makes the sentence; a module's function, so that notes can be pickled
    unless: tuple[int, ...] | None  # rank of another note, whose counts are left out here

    def __new__(
        cls,
        rank: tuple[int, ...],
        counts: Counts,
        words: Callable[[Counts], str],
        unless: tuple[int, ...] | None = None,
    ) -> Self:
        ordered = dict(sorted(counts.items()))
        tally = super().__new__(cls, words(ordered))
        tally.rank, tally.counts, tally.words, tally.unless = rank, ordered, words, unless
        return tally

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.rank, self.counts, self.words, self.unless

    def joined(self, other: Tally) -> Tally:
        """The note about the rows of both."""
        counts = dict(self.counts)
        for key, count in other.counts.items():
            counts[key] = counts.get(key, 0) + count
        return Tally(self.rank, counts, self.words, self.unless)

    def without(self, other: Tally) -> Tally | None:
        """The note without the other's counts; None if nothing is left."""
        counts = {key: count for key, count in self.counts.items() if key not in other.counts}
        return Tally(self.rank, counts, self.words, self.unless) if counts else None


def join_notes(parts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Join the notes of a table's parts, in the order of the notes on the whole table.

    Other notes are the same in all parts; a tally keeps its place between two of them.
    """
    plain: list[str] = []
    tallies: dict[tuple[int, ...], tuple[str, Tally]] = {}
    for notes in parts:
        before = ""
        for note in notes:
            if isinstance(note, Tally):
                place, known = tallies.get(note.rank, (before, None))
                tallies[note.rank] = (place, note if known is None else known.joined(note))
            else:
                if note not in plain:
                    plain.insert(plain.index(before) + 1 if before in plain else 0, note)
                before = note
    joined: list[str] = []
    for before in ("", *plain):
        joined += [before] if before else []
        for place, tally in (tallies[rank] for rank in sorted(tallies)):
            other = tallies.get(tally.unless) if tally.unless is not None else None
            left = tally if other is None else tally.without(other[1])
            joined += [left] if place == before and left is not None else []
    return tuple(joined)
