"""The codebook, one row per item: read under usual headings, written, guessed; and what studies state."""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

from icqf.data.about import About
from icqf.data.questionnaire import Item
from icqf.errors import Advice, InputError, InputWarning, counted, did_you_mean, listed
from icqf.io.atomic import write_bytes
from icqf.io.dictionary_formats import dictionary_at
from icqf.io.formats import EXCEL
from icqf.io.readers.cells import TextFamily, text_families
from icqf.io.readers.delimited import read_delimited
from icqf.io.readers.descriptions import read_toml
from icqf.io.readers.dictionaries import heading_of
from icqf.io.readers.excel import read_excel
from icqf.io.readers.table import Table, item_columns, no_items, require_file
from icqf.io.study_files import StudyFiles
from icqf.io.write import harmless, unharmed
from icqf.screening.answer_words import means_no_answer, no_answer_values, plain
from icqf.screening.missing_codes import USUAL_CODES, EndCode, code_in, end_codes, is_number, number
from icqf.screening.ranges import Families, families_of
from icqf.screening.value_counts import ValueCounts

Entries = list[tuple[str, dict[str, Any]]]

COLUMNS = ("name", "wording", "min", "max", "direction", "subscale", "missing", "labels", "remark")
# Other names of the columns. In a column "reverse", 1 means yes; in a column "direction" or "keying", 1 is a
# sign and means not reversed.
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
ITEM_TEXTS = ("item", "item_text", "option_text", "resp")  # of the Item Response Warehouse
FORWARD = ("", "normal", "forward", "+", "1", "+1", "1.0", "positive", "false", "no", "0", "0.0")
REVERSE = ("reverse", "reversed", "r", "-", "-1", "-1.0", "negative", "true", "yes")
IS_REVERSED = ("1", "1.0", "yes", "y", "true", "t", "x", "r", "reverse", "reversed")
IS_NOT = ("", "0", "0.0", "no", "n", "false", "f", "forward", "normal")
NEAR = 0.7


def read_codebook(path: str | os.PathLike[str]) -> tuple[Item, ...]:
    """Read a codebook.

    A CSV file or an Excel workbook (its sheet "codebook", or else the first) has the columns ``name, wording,
    min, max, direction, subscale, missing, labels, remark``; only ``name`` is required. ``direction`` is
    empty or ``reverse`` (in this column ``+`` and ``1`` mean forward, ``-`` and ``-1`` reversed; in a column
    called ``reverse``, ``1``, ``yes`` and ``x`` mean reversed, ``0``, ``no`` and empty cells not);
    ``missing`` is a list such as ``9; 99``; ``labels`` a list such as ``0=never; 1=often``. A ``remark`` is
    for readers only; a column ``instrument`` names the item's questionnaire in a battery
    (`read_instruments`). A TOML file has the same entries in ``[[item]]`` tables. A warning names other
    columns, which are not used.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.io import read_codebook
    >>> item = read_codebook(demo_paths().codebook)[0]
    >>> item.name, item.min, item.max, item.missing_codes
    ('q001', 0.0, 2.0, (9.0,))
    """
    return items_and_instruments(path)[0]


def items_and_instruments(path: str | os.PathLike[str]) -> tuple[tuple[Item, ...], dict[str, str]]:
    """Read a codebook, and the instrument of each item, where given."""
    path = Path(path)
    require_file(path)
    items: dict[str, Item] = {}
    instruments: dict[str, str] = {}
    for place, entry in entries_of(path):
        item = item_of(entry, f"{path.name}: {place}")
        if item.name in items:
            raise InputError(
                f"{path.name}: {place} describes the item {item.name!r} a second time. Delete one of the two."
            )
        items[item.name] = item
        if instrument := str(entry.get("instrument", "")).strip():
            instruments[item.name] = instrument
    if not items:
        raise InputError(f"{path.name}: the codebook describes no item. Add one row per item.")
    return tuple(items.values()), instruments


def read_about(path: str | os.PathLike[str]) -> About:
    """Read what is stated about a study: a TOML file with the fields of `icqf.data.About`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf.io import read_about
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "study.toml")
    ...     _ = path.write_text('instrument = "SDQ"\\nlanguage = "en"\\nlicence = "cc-by-4.0"')
    ...     read_about(path).licence
    'CC-BY-4.0'
    """
    path = Path(path)
    content = read_toml(path)
    stated = content.get("about", content)
    if not isinstance(stated, dict):
        raise InputError(f"{path.name}: about must be a table, [about].")
    about = About.of(stated, where=path.name)
    for note in about.notes:
        warnings.warn(InputWarning(f"{path.name}: {note}", code="licence"), stacklevel=2)
    return about


def codebook_and_about(files: StudyFiles) -> tuple[tuple[Item, ...] | None, About]:
    """Return the entries of a study's codebook, and what it and the file that describes the study state.

    A codebook states the table [about] of a TOML file, and its instrument if all items have the same.
    """
    entries, about = None, About()
    if files.codebook is not None:
        entries, instruments = items_and_instruments(files.codebook)
        named = {instruments.get(item.name, "") for item in entries}
        about = About.of({"instrument": named.pop()} if len(named) == 1 else {})
        if files.codebook.suffix.lower() == ".toml" and "about" in read_toml(files.codebook):
            about = about.updated(read_about(files.codebook))
    return entries, about if files.about is None else about.updated(read_about(files.about))


def read_instruments(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read the instrument of each item from the codebook's column ``instrument``, where given."""
    path = Path(path)
    require_file(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # read_codebook gives these
        entries = [entry for _, entry in entries_of(path)]
    pairs = ((str(e.get("name", "")).strip(), str(e.get("instrument", "")).strip()) for e in entries)
    return {item: instrument for item, instrument in pairs if item and instrument}


def write_codebook(items: Iterable[Item], path: str | os.PathLike[str]) -> None:
    """Write a codebook as CSV or, by the file name, TOML.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from icqf.data import Item
    >>> from icqf.io import read_codebook, write_codebook
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "items.csv")
    ...     write_codebook([Item("q1", min=0, max=2, reverse=True)], path)
    ...     read_codebook(path)[0].reverse
    True
    """
    text = format_codebook(items, format=Path(path).suffix.lower().lstrip(".") or "csv")
    write_bytes(path, text.encode())


def format_codebook(
    items: Iterable[Item], *, format: str = "csv", remarks: Mapping[str, str] | None = None
) -> str:
    """Return a codebook as the text of a CSV or TOML file, with remarks on items by their names.

    Examples
    --------
    >>> from icqf.data.questionnaire import Item
    >>> print(format_codebook([Item("q1", min=0, max=2, missing_codes=(9,))]).strip())
    name,wording,min,max,direction,subscale,missing,labels
    q1,,0,2,,,9,
    """
    remarks = remarks or {}
    items = list(items)
    columns = [column for column in COLUMNS if remarks or column != "remark"]
    if format == "toml":
        return tomli_w.dumps({"item": [entry_of(item, remarks.get(item.name, "")) for item in items]})
    if format != "csv":
        raise InputError(f"A codebook is written as csv or toml, not as {format!r}.")
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    rows = ({**_entry(item), "remark": remarks.get(item.name, "")} for item in items)
    writer.writerows([harmless(row[column]) for column in columns] for row in rows)
    return text.getvalue()


def codebook_from(table: Table) -> tuple[Item, ...]:
    """Draft a codebook from the file's own description of its columns, and otherwise from the answers.

    Columns that are not items (`icqf.screening.columns`) are left out. An item without declared range gets
    that of its family (`icqf.screening.ranges`), without values that look like no-answer codes.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from icqf.io import Table, codebook_from
    >>> frame = pd.DataFrame({"q1": [0, 1, 9], "q2": [2, 0, 1]})
    >>> [(i.name, i.min, i.max, i.missing_codes) for i in codebook_from(Table(frame, "", np.arange(3)))]
    [('q1', 0.0, 2.0, (9.0,)), ('q2', 0.0, 2.0, ())]
    """
    described = table.described
    names = item_columns(table).items
    counts: dict[str, ValueCounts] = {}
    for name in names:
        item = described.get(name, Item(name))
        if not item.declared:
            observed = ValueCounts.of(_numbers(table.frame[name]))
            counts[name] = observed.without(code for code in item.missing_codes if not isinstance(code, str))
    families = families_of(counts, fewest=0)  # a guess that users confirm
    at_end = _end_codes(table, list(counts), families)
    codes: dict[str, list[float]] = {}
    for stray in families.strays:
        if stray.value in USUAL_CODES:
            codes.setdefault(stray.item, []).append(stray.value)
    items = []
    for name in names:
        item = described.get(name, Item(name))
        if name in counts:
            low, high = families.ends[name]
            if name in at_end:
                low, high = at_end[name].low, at_end[name].high
                codes.setdefault(name, []).append(at_end[name].value)
            known = (code for code in item.missing_codes if isinstance(code, str) or not low <= code <= high)
            item = replace(item, min=low, max=high, missing_codes=(*known, *codes.get(name, ())))
        items.append(item)
    return tuple(items)


def _end_codes(table: Table, names: list[str], families: Families) -> dict[str, EndCode]:
    """Rare values beyond scales that are complete without them, by item."""
    if not names:
        return {}
    values = np.column_stack([_numbers(table.frame[name]) for name in names])
    return {name: code for code in end_codes(values, names, families.families) for name in code.family}


def merged(item: Item, described: Item | None) -> Item:
    """Return the codebook's item, completed by the file's own description."""
    if described is None:
        return item
    declared = item if item.declared else described
    codes = [code for code in described.missing_codes if code not in item.missing_codes]
    if declared.min is not None and declared.max is not None:
        codes = [c for c in codes if isinstance(c, str) or not declared.min <= c <= declared.max]
    return Item(
        name=item.name,
        wording=item.wording or described.wording,
        min=declared.min,
        max=declared.max,
        reverse=item.reverse,
        subscale=item.subscale or described.subscale,
        missing_codes=(*item.missing_codes, *codes),
        labels=item.labels or described.labels,
    )


def _numbers(column: pd.Series) -> np.ndarray:
    """A column's numbers; NaN for text, which is reported when the answers are read."""
    if not pd.api.types.is_numeric_dtype(column.dtype):
        column = pd.to_numeric(column.astype(object).where(column.notna(), np.nan), errors="coerce")
    return column.to_numpy(dtype=float, na_value=np.nan)


def _entry(item: Item) -> dict[str, str]:
    return {
        "name": item.name,
        "wording": item.wording,
        "min": "" if item.min is None else number(item.min),
        "max": "" if item.max is None else number(item.max),
        "direction": "reverse" if item.reverse else "",
        "subscale": item.subscale,
        "missing": "; ".join(re.sub(r"\s*[;,|]\s*", " ", number(code)) for code in item.missing_codes),
        "labels": "; ".join(f"{number(value)}={re.sub(r'[;|]', ',', text)}" for value, text in item.labels),
    }


def entry_of(item: Item, remark: str = "") -> dict[str, Any]:
    """Return an item as an entry of a TOML codebook, without what it does not declare.

    Lists keep codes and labels as they are, also those with a semicolon.
    """
    row = {**_entry(item), "remark": remark}
    numbers = {end: float(row[end]) for end in ("min", "max") if row[end]}
    whole = {end: int(value) for end, value in numbers.items() if value.is_integer()}
    lists = {
        "missing": [number(code) for code in item.missing_codes],
        "labels": [f"{number(value)}={text}" for value, text in item.labels],
    }
    return {key: part for key, part in (row | numbers | whole | lists).items() if part not in ("", [])}


# --- entries: CSV, Excel or TOML ----------------------------------------------------------------------------


def entries_of(path: Path) -> Entries:
    """The entries of a codebook file, each with its place; warns about unknown columns."""
    kind = dictionary_at(path)
    if kind is not None:
        remedy = Advice("Give it with {dictionary} instead of {codebook}.")
        raise InputError(
            f"{path.name}: this is {kind.what}, not a codebook.", code="dictionary", remedy=remedy
        )
    return _toml_entries(path) if path.suffix.lower() == ".toml" else _table_entries(path)


def _table_entries(path: Path) -> Entries:
    if path.suffix.lower() in EXCEL:
        table = read_excel(path, codebook=True)
    else:
        headings = [str(name) for name in read_delimited(path, literal=True).frame.columns]
        table = read_delimited(path, text=headings, literal=True)  # all text, as 007 may be a name
    names = {heading_of(name): name for name in table.frame.columns}
    if {*ITEM_TEXTS} <= {*names}:
        return _item_texts(table, names)
    known = {
        key: next((names[word] for word in (key, *words) if word in names), None)
        for key, words in SPELLINGS.items()
    }
    if known["name"] is None:
        raise InputError(f"{path.name}: the codebook has no column 'name'.{did_you_mean('name', names)}")
    _warn_unused([name for name in table.frame.columns if name not in known.values()], known, path.name)
    frame = table.frame.astype(object).where(table.frame.notna(), "")
    entries = []
    for row, cells in zip(table.rows, frame.to_dict("records"), strict=True):
        entry = {
            key: unharmed(number(cells[column]).strip())
            for key, column in known.items()
            if column is not None
        }
        if any(entry.values()):
            entries.append((f"row {row}", entry))
    return entries


def _item_texts(table: Table, names: Mapping[str, str]) -> Entries:
    """One entry for each item of a table with a row for each answer option."""
    cells = table.frame.astype(object).where(table.frame.notna(), "")
    entries: Entries = []
    for name, options in cells.groupby(names["item"], sort=False):
        first = options.iloc[0]
        codes = pd.to_numeric(options[names["resp"]], errors="coerce")
        texts = [str(text).strip() for text in options[names["option_text"]]]
        labels = {
            number(code): text for code, text in zip(codes, texts, strict=True) if code == code and text
        }
        ends = {"min": number(codes.min()), "max": number(codes.max())} if codes.nunique() > 1 else {}
        more = {"instrument": str(first[names["instrument"]])} if "instrument" in names else {}
        entry = {"name": str(name), "wording": str(first[names["item_text"]]), "labels": labels}
        entries.append((f"row {table.rows[options.index[0]]}", {**entry, **ends, **more}))
    return entries


def _warn_unused(others: Iterable[str], known: Mapping[str, str | None], source: str) -> None:
    """Warn about columns that are not used, with the known heading each may be meant to be."""
    open_keys = {word: key for key, words in SPELLINGS.items() for word in (key, *words) if not known[key]}
    unused = []
    for name in others:
        near = get_close_matches(heading_of(name), open_keys, n=1, cutoff=NEAR)
        if near:
            warnings.warn(
                InputWarning(
                    f"{source}: {name!r} is not a heading of a codebook, so the column is not used. "
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
                f"{source}: these columns are not part of a codebook and are not used: {listed(unused)}. "
                f"Its headings are {', '.join(COLUMNS)}.",
                code="codebook-column",
                column=unused[0],
            ),
            stacklevel=5,
        )


def _toml_entries(path: Path) -> Entries:
    tables = read_toml(path).get("item", [])
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
    """Return the item that an entry describes; `where` is its place, for messages."""
    name = str(entry.get("name", "")).strip()
    if not name:
        raise InputError(f"{where} has no item name. Fill it in, or delete the row.")
    labels = _labels(entry.get("labels", ""), where)
    codes = [code_in(part) for part in _parts(entry.get("missing", ""), ";,|")]
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
    labelled = no_answer_values(dict(labels), codes)
    codes += [code for code in labelled if low is None or high is None or not low <= code <= high]
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
    marks = {}
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
            marks[column] = cell in yes
    if len({*marks.values()}) > 1:
        raise InputError(
            f"{where}: the columns 'direction' and 'reverse' contradict each other. Delete one of them."
        )
    return any(marks.values())


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


def _pair(text: str, where: str) -> tuple[float, str]:
    value, sign, label = text.partition("=")
    if not sign or not isinstance(code_in(value.strip()), float):
        raise InputError(
            f"{where}, column 'labels' holds the label {text!r} without a value. Write '0=never; 1=often'."
        )
    return float(value), label.strip()


@dataclass(frozen=True)
class SuggestedCodebook:
    """A guessed codebook, in the order of the table, with remarks by item on what to confirm, and notes."""

    items: tuple[Item, ...]
    remarks: dict[str, str]
    notes: tuple[str, ...] = ()


def suggest_codebook(table: Table) -> SuggestedCodebook:
    """Guess a codebook: `codebook_from`, and items whose answers are words, with their presumed order.

    A value or text that means no answer in one item does so in all items with the same range. The order of
    words comes from numbers inside them or from well-known answer scales; if neither applies, the labels stay
    empty and the remark lists the words. Every guess has a remark.

    Examples
    --------
    >>> import numpy as np
    >>> from icqf.io import Table, suggest_codebook
    >>> frame = pd.DataFrame({"q1": ["no", "yes", "perhaps"], "q2": ["perhaps", "N/A", "no"]})
    >>> guess = suggest_codebook(Table(frame, "answers.csv", np.arange(3)))
    >>> guess.items[1].labels, guess.items[1].missing_codes
    (((0.0, 'no'), (1.0, 'perhaps'), (2.0, 'yes')), ('N/A',))
    >>> guess.remarks["q1"].split("; ")[0]
    'Please confirm: the order of the labels is that of the usual wording of yes or no'
    """
    known = [name for name, item in table.described.items() if item.labels]
    other = [column.name for column in item_columns(table).left_out if column.reason != "text"]
    families = text_families(table, leave_out=(*known, *other))
    in_words = {name: family for family in families for name in family.items}
    frame, silent = _numbers_with_gaps(table.frame, skip=in_words)
    drafted = codebook_from(replace(table, frame=frame)) if len(frame.columns) else ()
    numeric = {item.name: item for item in drafted if item.name not in in_words}
    items, remarks = _with_shared_codes(numeric, table.described, silent)
    for name, family in in_words.items():
        items[name] = _with_labels(table.described.get(name, Item(name)), family)
        remarks[name] = _remark(family)
    if not items:
        raise no_items(table.source, item_columns(table).left_out)
    order = [str(name) for name in table.frame.columns if name in items]
    notes = tuple(_note(family) for family in families)
    return SuggestedCodebook(tuple(items[name] for name in order), remarks, notes)


def _numbers_with_gaps(frame: pd.DataFrame, skip: Iterable[str]) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """The table with columns of numbers and no-answer texts as numbers, and these texts by column."""
    numbers: dict[str, pd.Series] = {}
    silent: dict[str, list[str]] = {}
    for name in frame.columns.difference(list(skip), sort=False):
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype):
            continue
        words = pd.Series([str(word).strip() for word in column.dropna().unique()], dtype=object)
        texts = words[pd.to_numeric(words, errors="coerce").isna() & (words != "")].tolist()
        if texts and len(texts) < len(words) and all(means_no_answer(text) for text in texts):
            numbers[str(name)] = pd.to_numeric(column.astype(str).str.strip(), errors="coerce")
            silent[str(name)] = sorted(texts)
    return frame.assign(**numbers), silent


def _with_shared_codes(
    drafted: dict[str, Item], described: dict[str, Item], silent: dict[str, list[str]]
) -> tuple[dict[str, Item], dict[str, str]]:
    """The items with the missing codes of all guessed items that have the same range."""
    guessed = [
        item for item in drafted.values() if item.name not in described or not described[item.name].declared
    ]
    shared: dict[tuple[float | None, float | None], list[float | str]] = {}
    for item in guessed:
        codes = shared.setdefault((item.min, item.max), [])
        codes += [code for code in (*item.missing_codes, *silent.get(item.name, ())) if code not in codes]
    items, remarks = dict(drafted), {}
    for item in guessed:
        codes = shared[item.min, item.max]
        if codes and item.declared:
            ordered = sorted(codes, key=lambda code: (not is_number(code), code))
            items[item.name] = replace(item, missing_codes=tuple(ordered))
            remarks[item.name] = f"Please confirm: {listed(map(number, ordered))} read as no answer."
    return items, remarks


def _with_labels(item: Item, family: TextFamily) -> Item:
    if family.order is None:
        codes = [text for text in family.texts if means_no_answer(text)]
        return replace(item, missing_codes=tuple(dict.fromkeys((*item.missing_codes, *codes))))
    values = [value for value, _ in family.order.labels]
    return replace(
        item, min=min(values), max=max(values), missing_codes=family.order.missing, labels=family.order.labels
    )


def _remark(family: TextFamily) -> str:
    if family.order is None:
        texts = listed([text for text in family.texts if not means_no_answer(text)], most=len(family.texts))
        return (
            f"The order of these answers is not known: {texts}. Write them into labels from the lowest to "
            "the highest, as in 0=…; 1=…"
        )
    given = {plain(text) for text in family.texts}
    unseen = [text for _, text in family.order.labels if plain(text) not in given]
    parts = [f"Please confirm: the order of the labels is that of {family.order.reason}"]
    parts += [f"nobody answered {listed(unseen)}"] if unseen else []
    parts += [f"{listed(family.order.missing)} read as no answer"] if family.order.missing else []
    return "; ".join(parts) + "."


def _note(family: TextFamily) -> str:
    items = f"{counted(len(family.items), 'item')} ({listed(family.items)})"
    if family.order is None:
        return f"The answers to {items} are words whose order is not known: order them in the labels."
    return f"The answers to {items} are words, read in the order {family.order}: confirm the labels."
