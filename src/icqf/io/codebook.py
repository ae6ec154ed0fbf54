"""The codebook: one row per item; read, written, and guessed from a table."""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

from icqf.data.questionnaire import Item
from icqf.errors import InputError, InputWarning
from icqf.io.atomic import write_bytes
from icqf.io.entries import COLUMNS, entries_of, item_of
from icqf.io.readers.tables import Table, item_columns, require_file
from icqf.io.write import harmless
from icqf.screening.ranges import USUAL_CODES, EndCode, Families, ValueCounts, end_codes, families_of, number


def read_codebook(path: str | os.PathLike[str]) -> tuple[Item, ...]:
    """Read a codebook.

    A CSV file or an Excel workbook (its sheet "codebook", or else the first) has the columns ``name, wording,
    min, max, direction, subscale, missing, labels, remark``, of which only ``name`` must be there.
    ``direction`` is empty or ``reverse`` (in a column called so ``+`` and ``1`` mean forward, ``-`` and
    ``-1`` reversed; in a column called ``reverse``, ``1``, ``yes`` and ``x`` mean reversed, ``0``, ``no`` and
    empty cells not); ``missing`` is a list such as ``9; 99``; ``labels`` a list such as ``0=never;
    1=often``. A ``remark`` is for readers and changes nothing; a column ``instrument`` says which
    questionnaire of a battery the item belongs to (`read_instruments`). A TOML file has the same entries in
    ``[[item]]`` tables. A warning names columns that a codebook does not have.

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.io import read_codebook
    >>> item = read_codebook(demo_paths().codebook)[0]
    >>> item.name, item.min, item.max, item.missing_codes
    ('q001', 0.0, 2.0, (9.0,))
    """
    path = Path(path)
    require_file(path)
    items: dict[str, Item] = {}
    for place, entry in entries_of(path):
        item = item_of(entry, f"{path.name}: {place}")
        if item.name in items:
            raise InputError(
                f"{path.name}: {place} describes the item {item.name!r} a second time. Delete one of the two."
            )
        items[item.name] = item
    if not items:
        raise InputError(f"{path.name}: the codebook describes no item.")
    return tuple(items.values())


def read_instruments(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read which instrument of a battery each item belongs to: the codebook's column ``instrument``.

    Items without one are left out; empty where the codebook has no such column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "items.csv")
    ...     _ = file.write_text("name,instrument\\nsad,mood\\ntired,sleep\\n")
    ...     read_instruments(file)
    {'sad': 'mood', 'tired': 'sleep'}
    """
    path = Path(path)
    require_file(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # read_codebook says what there is to say
        entries = [entry for _, entry in entries_of(path)]
    found = {str(e.get("name", "")).strip(): str(e.get("instrument", "")).strip() for e in entries}
    return {item: instrument for item, instrument in found.items() if item and instrument}


def write_codebook(items: Iterable[Item], path: str | os.PathLike[str]) -> None:
    """Write a codebook as CSV, or as TOML when the name ends so.

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
    rows = [{**_entry(item), "remark": remarks.get(item.name, "")} for item in items]
    columns = [column for column in COLUMNS if remarks or column != "remark"]
    if format == "toml":
        return tomli_w.dumps({"item": [_toml_entry(row) for row in rows]})
    if format != "csv":
        raise InputError(f"A codebook is written as csv or toml, not as {format!r}.")
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([harmless(row[column]) for column in columns] for row in rows)
    return text.getvalue()


def codebook_from(table: Table) -> tuple[Item, ...]:
    """Guess a first codebook: what the file says about its columns, and otherwise what the answers look like.

    Columns that are not items (`icqf.screening.columns`) are left out. An item without declared range gets
    that of its family (`icqf.screening.ranges`), after values that look like no-answer codes are set aside.

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
    spreads: dict[str, ValueCounts] = {}
    for name in names:
        item = described.get(name, Item(name))
        if not item.declared:
            spread = ValueCounts.of(_numbers(table.frame[name]))
            spreads[name] = spread.without(code for code in item.missing_codes if not isinstance(code, str))
    families = families_of(spreads, fewest=0)  # a guess that will be looked at
    silent = _end_codes(table, list(spreads), families)
    codes: dict[str, list[float]] = {}
    for stray in families.strays:
        if stray.value in USUAL_CODES:
            codes.setdefault(stray.item, []).append(stray.value)
    items = []
    for name in names:
        item = described.get(name, Item(name))
        if name in spreads:
            low, high = families.ends[name]
            if name in silent:
                low, high = silent[name].low, silent[name].high
                codes.setdefault(name, []).append(silent[name].value)
            known = (code for code in item.missing_codes if isinstance(code, str) or not low <= code <= high)
            item = replace(item, min=low, max=high, missing_codes=(*known, *codes.get(name, ())))
        items.append(item)
    return tuple(items)


def _end_codes(table: Table, names: list[str], families: Families) -> dict[str, EndCode]:
    """Rare values beyond scales that are complete without them, by the items on these scales."""
    if not names:
        return {}
    values = np.column_stack([_numbers(table.frame[name]) for name in names])
    return {name: found for found in end_codes(values, names, families.families) for name in found.family}


def merged(item: Item, described: Item | None) -> Item:
    """Return the codebook's item, completed by what the file itself says."""
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
    """A column's numbers; text among them is left to whoever reads the answers."""
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


def _toml_entry(row: Mapping[str, str]) -> dict[str, Any]:
    numbers = {end: float(row[end]) for end in ("min", "max") if row[end]}
    whole = {end: int(value) for end, value in numbers.items() if value.is_integer()}
    return {key: text for key, text in row.items() if text} | numbers | whole
