"""The codebook: one row per item; read, written, and guessed from a table."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

from icqf.data.questionnaire import Item, number
from icqf.data.scales import codes_apart
from icqf.errors import InputError
from icqf.io.atomic import write_bytes
from icqf.io.entries import COLUMNS, entries_of, item_of
from icqf.io.readers.tables import Table, recognised_id, require_file
from icqf.io.write import harmless

MOST_ANSWERS = 20
FEWEST_NUMBERED = 9  # rows that are numbered through rather than answered


def read_codebook(path: str | os.PathLike[str]) -> tuple[Item, ...]:
    """Read a codebook.

    A CSV file or an Excel workbook (its sheet "codebook", or else the first) has the columns ``name, wording,
    min, max, direction, subscale, missing, labels, remark``, of which only ``name`` must be there.
    ``direction`` is empty or ``reverse`` (in a column called so ``+`` and ``1`` mean forward, ``-`` and
    ``-1`` reversed; in a column called ``reverse``, ``1``, ``yes`` and ``x`` mean reversed, ``0``, ``no`` and
    empty cells not); ``missing`` is a list such as ``9; 99``; ``labels`` a list such as ``0=never;
    1=often``. A ``remark`` is for readers and changes nothing. A TOML file has the same entries in
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

    An item without declared range gets the range seen among the items whose names begin alike, after values
    that look like no-answer codes are set aside as missing codes.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from icqf.io import Table, codebook_from
    >>> frame = pd.DataFrame({"q1": [0, 1, 9], "q2": [2, 0, 1]})
    >>> [(i.name, i.min, i.max, i.missing_codes) for i in codebook_from(Table(frame, "", np.arange(3)))]
    [('q1', 0.0, 2.0, (9.0,)), ('q2', 0.0, 2.0, ())]
    """
    described = table.described
    names = list(table.candidates) if table.candidates is not None else answer_columns(table)
    open_ended: dict[str, tuple[str, np.ndarray, list[float]]] = {}
    for name in names:
        if name in described and described[name].declared:
            continue
        values = table.frame[name].to_numpy(dtype=float, na_value=np.nan)
        known = (
            [float(code) for code in described[name].missing_codes if not isinstance(code, str)]
            if name in described
            else []
        )
        values = values[~np.isin(values, known) & np.isfinite(values)]
        codes = codes_apart(values)
        open_ended[name] = (_stem(name), values[~np.isin(values, codes)], codes)
    items = []
    for name in names:
        item = described.get(name, Item(name))
        if name in open_ended:
            stem, _, codes = open_ended[name]
            pooled = np.concatenate([values for other, values, _ in open_ended.values() if other == stem])
            item = _with_range(replace(item, missing_codes=(*item.missing_codes, *codes)), pooled)
        items.append(item)
    return tuple(items)


def answer_columns(table: Table, *, leave_out: Iterable[str] = ()) -> list[str]:
    """Return the columns that look like answers: whole numbers with few different values."""
    skip = {*leave_out, table.id, *table.metadata}
    return [
        str(name)
        for name in table.frame.columns
        if name not in skip and recognised_id([name]) is None and looks_like_answers(table.frame[name])
    ]


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


def looks_like_answers(column: pd.Series) -> bool:
    """Return whether a column holds whole numbers with few different values, and does not count the rows.

    Examples
    --------
    >>> looks_like_answers(pd.Series([0, 2, 1, 2])), looks_like_answers(pd.Series(range(1, 13)))
    (True, False)
    """
    if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return bool(pd.api.types.is_bool_dtype(column.dtype))
    values = column.to_numpy(dtype=float, na_value=np.nan)
    lo, hi = np.fmin.reduce(values, initial=np.nan), np.fmax.reduce(values, initial=np.nan)
    if (
        not np.isfinite(lo)
        or not np.isfinite(hi)
        or not bool(((values == np.rint(values)) | np.isnan(values)).all())
    ):
        return False
    different = len(pd.unique(values[np.isfinite(values)]))
    if different == len(values) == hi - lo + 1 and different > FEWEST_NUMBERED:
        return False
    return bool(hi - lo < MOST_ANSWERS) or different <= MOST_ANSWERS


def _with_range(item: Item, values: np.ndarray) -> Item:
    if not values.size or values.min() == values.max():
        return item
    lo, hi = float(values.min()), float(values.max())
    codes = tuple(code for code in item.missing_codes if isinstance(code, str) or not lo <= code <= hi)
    return replace(item, min=lo, max=hi, missing_codes=codes)


def _stem(name: str) -> str:
    return re.sub(r"[_.]?\d+[A-Za-z]?$", "", name)


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
