"""Data dictionaries: what a file beside the table says about its columns, and which questions were asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from icqf.data.about import NOT_STATED, About
from icqf.data.questionnaire import Item
from icqf.errors import InputError, Note, counted, listed
from icqf.io.dictionary_formats import DictionaryFormat
from icqf.io.formats import EXCEL, TEXT
from icqf.io.readers.branching import Branching, Condition, NotUnderstood, in_circles, parse
from icqf.io.readers.delimited import read_delimited
from icqf.io.readers.excel import read_excel
from icqf.io.readers.statistical import label_notes
from icqf.io.readers.table import Table, require_file

NOT_ASKED, RULED_OUT = 1, 2  # in `Table.structural`: not asked, and because an earlier answer rules it out
FEWEST_MENUS = 3  # questions with the same answers that make an instrument
CONDITIONS = "branching"  # code of the note on conditions
# A missing code that stands for a question that was not asked, and whether an earlier answer ruled it out.
_SAYS_NOT_ASKED = re.compile(
    r"\bnot (asked|administered)\b(?P<logic>.*\b(branching|primary question|skip))?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Field:
    """What a dictionary says about one column."""

    item: Item
    question: bool = False  # with one answer on a scale
    asked_if: str = ""  # condition in which it is asked
    identifying: bool = False  # name, address and the like
    other_names: tuple[str, ...] = ()  # that the column may have instead
    form: str = ""  # the questionnaire it belongs to; if empty, its subscale
    place: str = ""  # in the dictionary, for messages
    menu: bool = False  # with its answers in a menu, so a question only if several have the same

    @property
    def name(self) -> str:
        """The column's name."""
        return self.item.name


@dataclass(frozen=True)
class Dictionary:
    """The fields of a dictionary, and what kind of dictionary it is."""

    fields: tuple[Field, ...]
    id: str | None = None  # the column of participant ids
    notes: tuple[str, ...] = ()
    about: About = NOT_STATED  # the instrument


def heading_of(name: object) -> str:
    """Return a heading in lower case, with words joined by underscores."""
    return re.sub(r"[\W_]+", "_", str(name).strip().lower()).strip("_")


def column_of(rows: pd.DataFrame, *headings: str) -> list[str]:
    """Return the cells below the first of these headings that is there; empty texts if none is."""
    name = next((heading for heading in headings if heading in rows.columns), None)
    return [""] * len(rows) if name is None else [str(cell).strip() for cell in rows[name]]


def rows_of(path: Path) -> pd.DataFrame:
    """Return the cells of a dictionary that is a table as text, with headings in lower case."""
    if path.suffix.lower() in EXCEL:
        frame = read_excel(path, codebook=True).frame
    else:
        headings = [str(name) for name in read_delimited(path, literal=True).frame.columns]
        frame = read_delimited(path, text=headings, literal=True).frame
    frame = frame.astype(object).where(frame.notna(), "")
    return frame.set_axis([heading_of(name) for name in frame.columns], axis=1)


def table_format(
    what: str, headings: Sequence[tuple[str, ...]], read: Callable[[pd.DataFrame, str], Dictionary]
) -> DictionaryFormat:
    """Return the format of dictionaries that are tables, recognised by one of several sets of headings.

    `read` is given the cells of a table with its headings in lower case, and the name of its file.
    """

    def apply(table: Table, path: Path) -> Table:
        require_file(path)
        rows = rows_of(path)
        if not any({*needed} <= {*rows.columns} for needed in headings):
            raise InputError(
                f"{path.name}: this is not {what}; its columns are {listed(rows.columns, most=6)}, not "
                f"{listed(headings[0])}."
            )
        twice = [name for name in rows.columns if name and list(rows.columns).count(name) > 1]
        if twice:
            raise InputError(f"{path.name}: two columns have the heading {twice[0]!r}. Delete one of them.")
        return applied(table, read(rows, path.name), path)

    return DictionaryFormat(what, lambda path, head: _has_headings(path, head, headings), apply)


def _has_headings(path: Path, head: str, headings: Sequence[tuple[str, ...]]) -> bool:
    if path.suffix.lower() in EXCEL:
        status = path.stat()
        known = _first_cells(path, status.st_size, status.st_mtime_ns)
    elif path.suffix.lower() in TEXT:
        line = next((line for line in head.splitlines() if line.strip()), "")
        known = frozenset(map(heading_of, re.split(r"[,;\t|]", line)))
    else:
        return False
    return any({*needed} <= known for needed in headings)


@lru_cache(maxsize=8)
def _first_cells(path: Path, size: int, changed: int) -> frozenset[str]:
    """The headings of a workbook, which is read once while its size and time stay the same."""
    try:
        require_file(path)
        return frozenset(map(heading_of, read_excel(path, codebook=True).frame.columns))
    except InputError:  # reading it as a codebook says what is wrong
        return frozenset()


def applied(table: Table, dictionary: Dictionary, path: Path) -> Table:
    """Return the table with what the dictionary says about its columns."""
    source, columns = path.name, [str(name) for name in table.frame.columns]
    menus = Counter(field.item.labels for field in dictionary.fields if field.question and field.menu)
    fields = (
        replace(field, question=False) if field.menu and menus[field.item.labels] < FEWEST_MENUS else field
        for field in dictionary.fields
    )
    dictionary = replace(dictionary, fields=tuple(fields))
    known = _known_fields(table, dictionary, source)
    _refuse_another_project(table, dictionary, known, source)
    found = {field.place for field in known.values()}
    parts = {field.item.subscale for field in known.values()}  # a dictionary may describe many tables
    absent = [
        field
        for field in dictionary.fields
        if field.question and field.place not in found and field.item.subscale in parts
    ]
    identity = table.id if dictionary.id not in columns else dictionary.id
    identifying = tuple(name for name, field in known.items() if field.identifying)
    structural, notes = _not_asked(table.frame, known)
    if identity in identifying and identity != dictionary.id:
        notes.append(f"{identity!r} is marked as identifying, so it is the id only if you name it.")
        identity = None
    items = tuple(field.item for field in known.values())
    questions = [name for name, field in known.items() if field.question and not field.identifying]
    if absent:
        lacking = f"{source} describes {counted(len(absent), 'item')} that {table.source} lacks"
        notes.insert(0, f"{lacking}: {listed([field.name for field in absent])}.")
    said = f"Columns are described by {source}."
    return replace(
        table,
        items=items,
        candidates=tuple(questions) or None,
        id=identity,
        structural=structural,
        identifying=identifying,
        about=table.about.updated(dictionary.about),
        forms={name: field.form or field.item.subscale for name, field in known.items() if name in questions},
        notes=(*table.notes, said, *dictionary.notes, *notes, *label_notes(items)),
    )


def _known_fields(table: Table, dictionary: Dictionary, source: str) -> dict[str, Field]:
    """The fields that are columns of the table, by column; a name described in two ways is refused."""
    columns = {str(name) for name in table.frame.columns}
    folded = {name.casefold(): name for name in columns}
    known: dict[str, Field] = {}
    for field in sorted(dictionary.fields, key=lambda field: field.name.casefold() not in folded):
        names = (field.name, *field.other_names)
        name = next((name for name in names if name in columns), None)
        name = name or next((folded[name.casefold()] for name in names if name.casefold() in folded), None)
        if name is None:
            continue
        own = field.name.casefold() == name.casefold()
        field = replace(field, item=replace(field.item, name=name), other_names=names)
        before = known.setdefault(name, field)
        again = own and (field.question or before.question)
        if again and replace(before, place="") != replace(field, place=""):
            places = f" ({before.place} and {field.place})" if field.place else ""
            raise InputError(
                f"{source}: the field {name!r} appears twice{places}, with different descriptions. Delete "
                "one of the two."
            )
    return known


def _refuse_another_project(
    table: Table, dictionary: Dictionary, known: Mapping[str, Field], source: str
) -> None:
    questions = [field.name for field in dictionary.fields if field.question]
    if known and (not questions or any(field.question for field in known.values())):
        return
    what = "fields" if not known else "questions"
    theirs = questions or [field.name for field in dictionary.fields]
    raise InputError(
        f"{source}: none of its {what} ({listed(theirs, most=3)}) is a column of {table.source} "
        f"({listed(table.frame.columns, most=3)}). Is it the dictionary of another project? Export the "
        "answers with names of variables as the header, not labels.",
        code="other-dictionary",
    )


# --- questions that were not asked --------------------------------------------------------------------------


def _not_asked(frame: pd.DataFrame, fields: Mapping[str, Field]) -> tuple[pd.DataFrame | None, list[str]]:
    """Where a question was not asked, as codes by column, and notes on conditions."""
    conditions: dict[str, Condition] = {}
    failed: dict[str, list[str]] = {}
    names = {other.casefold(): name for name, field in fields.items() for other in field.other_names}
    names |= {str(name).casefold(): str(name) for name in frame.columns}
    for name, field in fields.items():
        if field.asked_if:
            try:
                conditions[name] = parse(field.asked_if, names)
            except NotUnderstood as error:
                failed.setdefault(str(error), []).append(name)
    circles = in_circles(conditions)
    for name in sorted(circles):
        failed.setdefault("refers to itself, directly or by way of other questions", []).append(name)
        del conditions[name]
    branching = Branching(frame, {name: field.item for name, field in fields.items()}, conditions)
    codes: dict[str, np.ndarray] = {}
    kept: dict[str, int] = {}
    truths = branching.truths()
    for name in conditions:
        asked = truths[name]
        if isinstance(asked, NotUnderstood):
            failed.setdefault(str(asked), []).append(name)
            continue
        hidden, empty = ~asked.holds, ~branching.answered(name)
        codes[name] = (np.where(asked.sure, RULED_OUT, NOT_ASKED) * (hidden & empty)).astype(np.int8)
        if (answers := int((hidden & ~empty).sum())) and "___" not in name:
            kept[name] = answers
    notes = _branching_notes(fields, codes, failed, kept)
    for name, field in fields.items():
        for value, text in field.item.labels:
            if value in field.item.missing_codes and (said := _SAYS_NOT_ASKED.search(text)):
                here = pd.to_numeric(frame[name], errors="coerce").eq(value).to_numpy()
                code = RULED_OUT if said["logic"] else NOT_ASKED
                codes[name] = np.where(here, np.int8(code), codes.get(name, np.int8(0)))
    if not codes:
        return None, notes
    nowhere = pd.DataFrame(np.zeros(frame.shape, dtype=np.int8), index=frame.index, columns=frame.columns)
    return nowhere.assign(**codes), notes


def _branching_notes(
    fields: Mapping[str, Field],
    codes: Mapping[str, np.ndarray],
    failed: Mapping[str, Sequence[str]],
    kept: Mapping[str, int],
) -> list[str]:
    notes: list[str] = []
    used = [name for name in codes if fields[name].question]
    if used:
        what = f"{counted(len(used), 'question')} {'was' if len(used) == 1 else 'were'} asked"
        logic = f"only under a condition (branching logic): {listed(used)}."
        notes.append(Note(CONDITIONS, f"{what} {logic}"))
    for reason, names in failed.items():
        notes.append(
            f"The branching logic of {listed(names)} cannot be evaluated, because it {reason}; empty cells "
            f"of {'this column' if len(names) == 1 else 'these columns'} count as not answered."
        )
    if kept:
        notes.append(
            f"{counted(sum(kept.values()), 'answer')} to {listed(kept)} were given although the branching "
            "logic hides the question; they are kept."
        )
    return notes
