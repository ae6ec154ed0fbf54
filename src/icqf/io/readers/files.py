"""Reading a file of any format into a raw table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from icqf.data.settings import parameter_error
from icqf.errors import Advice, InputError
from icqf.io.dictionary_formats import dictionary_at
from icqf.io.formats import DICTIONARIES, EXCEL, READERS, TEXT
from icqf.io.readers import delimited, excel
from icqf.io.readers.header import find_header
from icqf.io.readers.platforms import recognised_export
from icqf.io.readers.table import (
    Table,
    check_header,
    guarded,
    may_be_id,
    names_of_ids,
    numbers_participants,
    recognised_id,
    require_file,
    require_package,
)
from icqf.io.study_files import sidecar_of


def read_table(
    path: str | os.PathLike[str],
    *,
    dictionary: str | os.PathLike[str] | None = None,
    text: Iterable[str] = (),
    header_row: int | None = None,
    sheet: str | None = None,
) -> Table:
    """Read one file of answers; the format follows from the extension.

    Parameters
    ----------
    path : path
        CSV, TSV, Excel, Parquet, Arrow (Feather), SPSS, Stata or SAS file, or one with an extension that an
        installed package reads (entry point ``icqf.readers``).
    dictionary : path, optional
        Describes the columns, as in `StudyFiles`. A JSON file of the same name next to a ``.tsv`` is used
        automatically.
    text : iterable of str
        Columns to read as text, so that ``007`` stays ``007``; recognised id columns always are.
    header_row : int, optional
        The row with the names of the columns, counted from 1, of text and Excel files; recognised if None.
    sheet : str, optional
        Name or number of the sheet of a workbook. None: the first that looks like a table.

    Returns
    -------
    Table

    Examples
    --------
    >>> from icqf.datasets import demo_paths
    >>> from icqf.io import read_table
    >>> read_table(demo_paths().answers).frame.shape
    (600, 124)
    """
    path = Path(path)
    require_file(path)
    suffix = path.suffix.lower()
    _refuse_dictionary(path, suffix)
    if suffix not in READERS:
        remedy = f"Save it as one of {', '.join(READERS)}."
        if suffix in (".zip", ".gz", ".7z"):
            remedy = "Unpack it, and give the table inside."
        raise InputError(f"{path.name}: files with the extension {suffix!r} cannot be read. {remedy}")
    read = READERS.load(suffix)
    for name, given, kinds in (("header_row", header_row, (*TEXT, *EXCEL)), ("sheet", sheet, EXCEL)):
        if given is not None and suffix not in kinds:
            what = "workbooks" if name == "sheet" else "text files and workbooks"
            raise parameter_error(name, f" applies to {what}, not to {path.name}; leave it out.")
    if suffix in TEXT:
        table = read(path, text=text, header_row=header_row)
    elif suffix in EXCEL:
        table = read(path, sheet=sheet, header_row=header_row)
    elif suffix in READERS.own:
        table = read(path)
    else:
        table = _from_outside(path, read)
    return with_id(_described(recognised_export(table), path, dictionary))


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a text file or a sheet, as they are, to choose the header among them."""

    rows: tuple[tuple[str, ...], ...]
    header_row: int | None  # the recognised one, counted from 1
    sheet: str = ""
    other_sheets: tuple[str, ...] = ()


def first_rows(path: str | os.PathLike[str], *, sheet: str | None = None, n: int = 10) -> FirstRows | None:
    """Return the first rows of a text file or workbook; None for other formats."""
    path = Path(path)
    require_file(path)
    name: str = ""
    others: tuple[str, ...] = ()
    if path.suffix.lower() in TEXT:
        rows = delimited.first_rows(path)
    elif path.suffix.lower() in EXCEL:
        rows, name, others = excel.first_rows(path, sheet=sheet)
    else:
        return None
    try:
        header = find_header(rows, path.name).row + 1
    except InputError:
        header = None
    return FirstRows(tuple(map(tuple, rows[:n])), header, name, others)


def read_parquet(path: Path) -> Table:
    """Read a Parquet file."""
    return _read_columns(path, pd.read_parquet, "a Parquet file")


def read_arrow(path: Path) -> Table:
    """Read an Arrow (Feather) file."""
    return _read_columns(path, pd.read_feather, "an Arrow file")


def with_id(table: Table) -> Table:
    """Determine the column of ids by names and values; otherwise a first column that numbers participants.

    A column of few values does not hold ids, whatever its name.
    """
    by_name = [
        name
        for name in names_of_ids(table.frame.columns)
        if may_be_id(table.frame[name]) and name not in table.identifying
    ]
    if table.id is not None and may_be_id(table.frame[table.id]):
        return table
    if by_name:
        return replace(table, id=by_name[0])
    first = table.frame.iloc[:, 0] if table.frame.shape[1] else pd.Series(dtype=object)
    numbered = numbers_participants(first) and first.name not in table.identifying
    return replace(table, id=str(first.name) if numbered else None)


def _refuse_dictionary(path: Path, suffix: str) -> None:
    """Refuse a dictionary in place of the answers; workbooks and projects are not opened for this."""
    kind = dictionary_at(path) if suffix in TEXT or suffix not in READERS else None
    if kind is not None:
        raise InputError(
            f"{path.name}: this is {kind.what}, which describes columns; it holds no answers.",
            code="dictionary-as-answers",
            remedy=Advice("Name the table of answers, and give this file with {dictionary}."),
        )


def _described(table: Table, path: Path, dictionary: str | os.PathLike[str] | None) -> Table:
    description = Path(dictionary) if dictionary is not None else sidecar_of(path)
    if description is None:
        return table
    if not description.is_dir():
        require_file(description)
    kind = dictionary_at(description)
    if kind is None:
        kinds = [DICTIONARIES.load(name).what for name in DICTIONARIES]
        raise InputError(
            f"{description.name}: this is not a dictionary that can be read, which would be "
            f"{', '.join(kinds[:-1])} or {kinds[-1]}. A table with one row per item is a codebook.",
            code="not-a-dictionary",
            remedy=Advice("Give a codebook with {codebook}."),
        )
    return kind.apply(table, description)


def _read_columns(path: Path, read: Callable[[Path], pd.DataFrame], what: str) -> Table:
    require_package("pyarrow", "pyarrow", path)

    def load() -> pd.DataFrame:
        frame = read(path)
        texts: pd.Series
        for _, texts in frame.select_dtypes("string").items():
            texts.astype(object)  # finds damaged text
        return frame

    return _table(guarded(load, path, what), path)


def _from_outside(path: Path, read: Callable[[Path], Table | pd.DataFrame]) -> Table:
    """Read a file with the reader of another package."""
    content = guarded(lambda: read(path), path, f"a file with the extension {path.suffix.lower()!r}")
    if isinstance(content, Table):
        return content
    if not isinstance(content, pd.DataFrame):
        raise InputError(
            f"{path.name}: the reader of {path.suffix.lower()!r} files returned {type(content).__name__!r}, "
            "not a table; update or uninstall its package."
        )
    return _table(content, path)


def _table(frame: pd.DataFrame, path: Path) -> Table:
    if frame.index.name is not None:
        frame = frame.reset_index()
    frame = frame.reset_index(drop=True).set_axis([str(name) for name in frame.columns], axis=1)
    check_header(list(frame.columns), path.name)
    rows = np.arange(1, len(frame) + 1)
    return Table(frame, path.name, rows, id=recognised_id(frame.columns))
