"""The entries of a codebook file: CSV, Excel or TOML, under headings that researchers use."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from icqf.data.questionnaire import Item
from icqf.errors import Advice, InputError, InputWarning, did_you_mean, listed
from icqf.io.formats import EXCEL
from icqf.io.readers.delimited import read_delimited
from icqf.io.readers.excel import read_excel
from icqf.io.readers.redcap import COLUMNS as DICTIONARY
from icqf.io.write import unharmed
from icqf.screening.answer_words import silent_values
from icqf.screening.ranges import number

Entries = list[tuple[str, dict[str, Any]]]

COLUMNS = ("name", "wording", "min", "max", "direction", "subscale", "missing", "labels", "remark")
# What else a column may be called. A column "reverse" asks a question that 1 answers with yes, and a column
# "direction" or "keying" holds signs, of which 1 is the positive one: the heading tells which is meant.
SPELLINGS = {
    "name": ("item", "variable", "column", "item_name", "variable_name"),
    "wording": ("question", "label", "text", "description", "item_text", "question_text"),
    "min": ("minimum", "lowest"),
    "max": ("maximum", "highest"),
    "direction": ("keying", "keyed", "key", "scoring"),
    "reverse": ("reversed", "reverse_keyed", "reverse_coded", "reverse_scored", "is_reversed"),
    "subscale": ("scale", "syndrome", "subscales", "factor", "domain"),
    "instrument": ("questionnaire", "measure", "form", "form_name"),
    "missing": ("missing_codes", "missing_values", "missings"),
    "labels": ("levels", "value_labels", "answers"),
    "remark": ("remarks", "comment", "comments", "note", "notes"),
}
FORWARD = ("", "normal", "forward", "+", "1", "+1", "1.0", "positive", "false", "no", "0", "0.0")
REVERSE = ("reverse", "reversed", "r", "-", "-1", "-1.0", "negative", "true", "yes")
IS_REVERSED = ("1", "1.0", "yes", "y", "true", "t", "x", "r", "reverse", "reversed")
IS_NOT = ("", "0", "0.0", "no", "n", "false", "f", "forward", "normal")
NEAR = 0.7


def entries_of(path: Path) -> Entries:
    """Return the entries of a codebook file, each with its place; a warning names columns that mean nothing.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "items.csv")
    ...     _ = file.write_text("item,reverse\\nq1,0\\nq2,1\\n")
    ...     entries_of(file)
    [('row 2', {'name': 'q1', 'reverse': '0'}), ('row 3', {'name': 'q2', 'reverse': '1'})]
    """
    return _toml_entries(path) if path.suffix.lower() == ".toml" else _table_entries(path)


def _table_entries(path: Path) -> Entries:
    if path.suffix.lower() in EXCEL:
        table = read_excel(path, codebook=True)
    else:
        table = read_delimited(path, text=_every_heading(path), literal=True)
    names = {_heading(name): name for name in table.frame.columns}
    found = {
        key: next((names[word] for word in (key, *words) if word in names), None)
        for key, words in SPELLINGS.items()
    }
    if found["name"] is None:
        if any(_heading(word) in names for word in DICTIONARY["field"]):
            raise InputError(
                f"{path.name}: this is a REDCap data dictionary, not a codebook.",
                code="dictionary",
                remedy=Advice("Give it with {dictionary} instead of {codebook}."),
            )
        raise InputError(f"{path.name}: the codebook has no column 'name'.{did_you_mean('name', names)}")
    _warn_of_others([name for name in table.frame.columns if name not in found.values()], found, path.name)
    frame = table.frame.astype(object).where(table.frame.notna(), "")
    entries = []
    for row, cells in zip(table.rows, frame.to_dict("records"), strict=True):
        entry = {
            key: unharmed(number(cells[column]).strip())
            for key, column in found.items()
            if column is not None
        }
        if any(entry.values()):
            entries.append((f"row {row}", entry))
    return entries


def _every_heading(path: Path) -> list[str]:
    """The headings of a delimited file as they stand, all of which are read as text: 007 may be a name."""
    return [str(name) for name in read_delimited(path, literal=True).frame.columns]


def _heading(name: object) -> str:
    return re.sub(r"[\W_]+", "_", str(name).strip().lower()).strip("_")


def _warn_of_others(others: Iterable[str], found: Mapping[str, str | None], source: str) -> None:
    """Say which columns are not used, and which known one each may be meant to be."""
    open_keys = {word: key for key, words in SPELLINGS.items() for word in (key, *words) if not found[key]}
    unused = []
    for name in others:
        near = get_close_matches(_heading(name), open_keys, n=1, cutoff=NEAR)
        if near:
            warnings.warn(
                InputWarning(
                    f"{source}: the heading {name!r} is not one of a codebook's, so the column is not used. "
                    f"Did you mean {near[0]!r}?",
                    code="codebook-column",
                    column=name,
                    near=near[0],
                ),
                stacklevel=5,
            )
        else:
            unused.append(name)
    if unused:
        warnings.warn(
            InputWarning(
                f"{source}: not used, as a codebook has no such headings: {listed(unused)}. It may have "
                f"{', '.join(COLUMNS)}.",
                code="codebook-column",
                column=unused[0],
            ),
            stacklevel=5,
        )


def _toml_entries(path: Path) -> Entries:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: this is not valid TOML ({error}).") from None
    tables = content.get("item", [])
    if not isinstance(tables, list) or not all(isinstance(entry, dict) for entry in tables):
        raise InputError(f"{path.name}: items are expected as [[item]] tables.")
    entries = []
    for i, entry in enumerate(tables, start=1):
        for key in entry:
            if key not in SPELLINGS:
                raise InputError(
                    f"{path.name}: item {i} has the unknown entry {key!r}.{did_you_mean(key, SPELLINGS)}"
                )
        entries.append((f"item {i}", entry))
    return entries


def item_of(entry: Mapping[str, Any], where: str) -> Item:
    """Return the item that an entry describes; `where` is its place, for messages.

    Examples
    --------
    >>> item_of({"name": "q1", "min": "0", "max": "3", "reverse": "x"}, "items.csv: row 2").reverse
    True
    """
    name = str(entry.get("name", "")).strip()
    if not name:
        raise InputError(f"{where} has no item name.")
    labels = _labels(entry.get("labels", ""), where)
    codes = [_code(part) for part in _parts(entry.get("missing", ""), ";,|")]
    described: dict[str, Any] = {
        "name": name,
        "wording": str(entry.get("wording", "")),
        "min": _number(entry.get("min", ""), where, "min"),
        "max": _number(entry.get("max", ""), where, "max"),
        "reverse": _reversed(entry, where),
        "subscale": str(entry.get("subscale", "")),
        "missing_codes": (),
        "labels": labels,
    }
    low, high = described["min"], described["max"]
    said = silent_values(dict(labels), codes)
    codes += [code for code in said if low is None or high is None or not low <= code <= high]
    described["missing_codes"] = tuple(codes)
    try:
        return Item(**described)
    except InputError as error:
        raise error.at(where) from None


def _labels(cell: Any, where: str) -> tuple[tuple[float, str], ...]:
    labels = tuple(_pair(part, where) for part in _parts(cell, ";|"))
    values = [value for value, _ in labels]
    again = next((value for value in values if values.count(value) > 1), None)
    if again is not None:
        raise InputError(f"{where}, column 'labels' gives {number(again)} two meanings. Keep one.")
    return labels


def _reversed(entry: Mapping[str, Any], where: str) -> bool:
    said = {}
    for column, yes, no, advice in (
        ("direction", REVERSE, FORWARD, "leave it empty or write 'reverse'"),
        (
            "reverse",
            IS_REVERSED,
            IS_NOT,
            "write 1 or 'yes' for a reversed item and 0 or nothing for others; signs such as -1 belong in a "
            "column 'direction'",
        ),
    ):
        cell = str(entry.get(column, "")).strip().lower()
        if cell not in (*yes, *no):
            raise InputError(f"{where}, column {column!r} holds {cell!r}; {advice}.")
        if cell:
            said[column] = cell in yes
    if len({*said.values()}) > 1:
        raise InputError(
            f"{where}: the columns 'direction' and 'reverse' contradict each other. Delete one of them."
        )
    return any(said.values())


def _number(cell: object, where: str, column: str) -> float | None:
    text = str(cell).strip()
    if not text:
        return None
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise InputError(f"{where}, column {column!r} holds the text {text!r}, not a number.") from None


def _parts(cell: object, separators: str) -> list[str]:
    if isinstance(cell, Mapping):
        return [f"{key}={value}" for key, value in cell.items()]
    if isinstance(cell, (list, tuple)):
        return [str(part) for part in cell]
    return [part.strip() for part in re.split(f"[{separators}]", str(cell)) if part.strip()]


def _code(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _pair(text: str, where: str) -> tuple[float, str]:
    value, sign, label = text.partition("=")
    if not sign or not isinstance(_code(value.strip()), float):
        raise InputError(
            f"{where}, column 'labels' holds the label {text!r} without a value. Write '0=never; 1=often'."
        )
    return float(value), label.strip()
