"""LORIS: instruments (``.linst``), and the table of the module "Data Dictionary"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from icqf.errors import InputError
from icqf.io.dictionary_formats import DictionaryFormat
from icqf.io.readers.descriptions import plain_text, read_text
from icqf.io.readers.dictionaries import Dictionary, Field, applied, column_of, table_format
from icqf.io.readers.nda import described_item
from icqf.io.readers.statistical import labelled_item
from icqf.io.readers.table import Table
from icqf.screening.answer_words import means_no_answer

_OPTION = re.compile(r"\s*'?(.*?)'?\s*=>\s*'?(.*?)'?\s*")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
# Fields that LORIS adds to every instrument.
ADDED = (
    *("Date_taken", "Candidate_Age", "gestational_age", "Window_Difference", "Examiner", "CommentID"),
    *("UserID", "Testdate", "Data_entry_completion_status", "Administration", "Validity", "DataID"),
)


def apply_instrument(table: Table, path: Path) -> Table:
    """Add the descriptions of an instrument (``.linst``)."""
    text = read_text(path)
    lines = text.replace("{-@-}", "\n").splitlines()
    if not any(line.startswith(("table{@}", "testname{@}")) for line in lines):
        raise InputError(
            f"{path.name}: this is not an instrument of LORIS; it has no line that begins with 'table{{@}}'."
        )
    instrument, fields = "", []
    for at, line in enumerate(lines, start=1):
        kind, *parts = line.strip().split("{@}")
        if kind in ("table", "testname") and parts:
            instrument = parts[0]
        elif kind and parts and parts[0]:
            fields += _fields(kind, parts, instrument, f"line {at}")
    if not fields:
        raise InputError(f"{path.name}: the instrument has no questions.")
    return applied(table, Dictionary(tuple(fields)), path)


def _fields(kind: str, parts: list[str], instrument: str, place: str) -> list[Field]:
    name, wording = parts[0], plain_text(parts[1]) if len(parts) > 1 else ""
    if kind not in ("select", "numeric", "text", "textarea", "date", "static", "selectmultiple", "radio"):
        return []
    options = [match.groups() for part in _after(parts, 2).split("{-}") if (match := _OPTION.fullmatch(part))]
    pairs = [(value, label) for value, label in options if value not in ("NULL", "")]
    item = labelled_item(
        name,
        wording,
        {float(value): label for value, label in pairs if _NUMBER.fullmatch(value)},
        [value for value, label in pairs if not _NUMBER.fullmatch(value) and means_no_answer(value)],
    )
    if kind == "numeric" and all(_NUMBER.fullmatch(_after(parts, at)) for at in (2, 3)):
        low, high = float(parts[2]), float(parts[3])
        item = replace(item, min=low, max=high) if low < high else item
    answers = [value for value, _ in pairs if not means_no_answer(value)]
    added = name in ADDED or (name.endswith("_status") and not wording)
    question = kind in ("select", "radio") and len(answers) > 1 and not added
    item = replace(item, subscale=instrument)
    return [Field(item, question, other_names=_names(name, instrument), place=place)]


def fields_of_table(rows: pd.DataFrame, source: str) -> Dictionary:
    """The fields of the module "Data Dictionary", exported as a table."""
    names, wordings = column_of(rows, "field_name"), column_of(rows, "description")
    kinds, options = (
        column_of(rows, "data_type", "type"),
        column_of(rows, "options", "data_options", "values"),
    )
    categories = column_of(rows, "category", "instrument")
    counts = column_of(rows, "data_cardinality", "cardinality")
    fields = []
    each = zip(names, wordings, kinds, options, categories, counts, strict=True)
    for at, (name, wording, kind, option, instrument, count) in enumerate(each, start=2):
        if name:
            own = name.removeprefix(f"{instrument}_") if instrument else name
            item = described_item(name, plain_text(wording), option or kind)
            texts = _texts(option or kind)
            item = replace(item, subscale=instrument)
            chosen = kind.lower().startswith("enum") or len(texts) > 1 or bool(item.labels)
            question = chosen and count.lower() != "many" and own not in ADDED and not own.endswith("_status")
            fields.append(Field(item, question, other_names=_names(own, instrument), place=f"row {at}"))
    return Dictionary(tuple(fields))


def _names(name: str, instrument: str) -> tuple[str, ...]:
    """The names that a field has in tables of several instruments."""
    return tuple(f"{instrument}{between}{name}" for between in ("_", ".", ",")) if instrument else ()


def _texts(options: str) -> list[str]:
    return [part.strip(" '\"") for part in re.split(r"[;|]", options) if part.strip(" '\"")]


def _after(parts: Iterable[str], at: int) -> str:
    return next(iter([*parts][at : at + 1]), "").strip()


LORIS = table_format("a LORIS data dictionary", (("module", "field_name", "description"),), fields_of_table)
LORIS_INSTRUMENT = DictionaryFormat(
    "an instrument of LORIS", lambda path, head: path.suffix.lower() == ".linst", apply_instrument
)
