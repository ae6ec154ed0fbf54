"""LORIS: instruments (``.linst``), and the table of the module "Data Dictionary"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from icqf.errors import InputError, listed
from icqf.io.dictionary_formats import DictionaryFormat
from icqf.io.readers.descriptions import plain_text, read_text
from icqf.io.readers.dictionaries import (
    FEWEST_MENUS,
    Dictionary,
    Field,
    applied,
    column_of,
    table_format,
)
from icqf.io.readers.nda import described_item
from icqf.io.readers.statistical import labelled_item
from icqf.io.readers.table import Table
from icqf.screening.answer_words import means_no_answer, order_of, plain
from icqf.screening.missing_codes import number

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
    instrument = ""
    fields: list[tuple[Field, tuple[str, ...]]] = []
    for at, line in enumerate(lines, start=1):
        kind, *parts = line.strip().split("{@}")
        if kind in ("table", "testname") and parts:
            instrument = parts[0]
        elif kind and parts and parts[0]:
            fields += _fields(kind, parts, instrument, f"line {at}")
    if not fields:
        raise InputError(f"{path.name}: the instrument has no questions.")
    return applied(table, _with_numbers(fields), path)


def _fields(kind: str, parts: list[str], instrument: str, place: str) -> list[tuple[Field, tuple[str, ...]]]:
    """The field of a line, with its answers if they are words."""
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
    answers = {value: label for value, label in pairs if not means_no_answer(value)}
    # Codes are made from the labels, whose spelling is nicer; one that is not stands for itself.
    words = (label if plain(label) == plain(value) else value for value, label in answers.items())
    added = name in ADDED or (name.endswith("_status") and not wording)
    question = kind in ("select", "radio") and len(answers) > 1 and not added
    field = Field(
        replace(item, subscale=instrument), question, "", False, _names(name, instrument), "", place
    )
    return [(field, () if item.labels else tuple(words))]


def fields_of_table(rows: pd.DataFrame, source: str) -> Dictionary:
    """The fields of the module "Data Dictionary", exported as a table."""
    names, wordings = column_of(rows, "field_name"), column_of(rows, "description")
    kinds, options = (
        column_of(rows, "data_type", "type"),
        column_of(rows, "options", "data_options", "values"),
    )
    categories = column_of(rows, "category", "instrument")
    counts = column_of(rows, "data_cardinality", "cardinality")
    fields: list[tuple[Field, tuple[str, ...]]] = []
    each = zip(names, wordings, kinds, options, categories, counts, strict=True)
    for at, (name, wording, kind, option, instrument, count) in enumerate(each, start=2):
        if name:
            own = name.removeprefix(f"{instrument}_") if instrument else name
            item = described_item(name, plain_text(wording), option or kind)
            texts = _texts(option or kind)
            item = replace(item, subscale=instrument)
            chosen = kind.lower().startswith("enum") or len(texts) > 1 or bool(item.labels)
            question = chosen and count.lower() != "many" and own not in ADDED and not own.endswith("_status")
            field = Field(item, question, other_names=_names(own, instrument), place=f"row {at}")
            words = tuple(text for text in texts if not means_no_answer(text))
            fields.append((field, () if item.declared or len(words) < 2 else words))
    return _with_numbers(fields)


def _with_numbers(described: Sequence[tuple[Field, tuple[str, ...]]]) -> Dictionary:
    """The fields, with numbers for answers in words.

    These are in their usual order, or else in that of the instrument if several questions share them.
    """
    shared = Counter(words for field, words in described if field.question)
    fields: list[Field] = []
    numbered: dict[tuple[tuple[float, str], ...], list[str]] = {}
    for field, words in described:
        usual = order_of(words) if field.question else None
        labels = () if usual is None else usual.labels
        if field.question and not labels and shared[words] >= FEWEST_MENUS:
            labels = tuple((float(at), text) for at, text in enumerate(words))
        if labels:
            item = labelled_item(field.name, field.item.wording, dict(labels), field.item.missing_codes)
            field = replace(field, item=replace(item, subscale=field.item.subscale))
            numbered.setdefault(labels, []).append(field.name)
        fields.append(field)
    notes = (
        f"The answers to {listed(names)} are words, read as these numbers: "
        f"{'; '.join(f'{number(value)}={text}' for value, text in labels)}. If that is not their order, "
        "correct the labels in a codebook."
        for labels, names in numbered.items()
    )
    return Dictionary(tuple(fields), notes=tuple(notes))


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
