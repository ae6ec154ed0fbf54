"""Reading a study's file, whatever its format, into one raw table."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from icqf.errors import InputError, counted, listed
from icqf.io.formats import EXCEL, PARQUET, READABLE, STATISTICAL, TEXT
from icqf.io.readers.bids import apply_sidecar
from icqf.io.readers.delimited import read_delimited
from icqf.io.readers.extents import refuse_far_cells
from icqf.io.readers.redcap import apply_dictionary
from icqf.io.readers.statistical import read_statistical
from icqf.io.readers.tables import (
    Table,
    check_header,
    guarded,
    recognised_id,
    refuse_second_header,
    require_file,
    require_package,
    without_unnamed,
)


def read_table(
    path: str | os.PathLike[str],
    *,
    dictionary: str | os.PathLike[str] | None = None,
    text: Iterable[str] = (),
) -> Table:
    """Read one file of answers; the format follows from the name's ending.

    Parameters
    ----------
    path : path
        CSV, TSV, Excel, Parquet, SPSS, Stata or SAS file.
    dictionary : path, optional
        A REDCap data dictionary (CSV) or a BIDS sidecar (JSON). A JSON file of the same name beside a
        ``.tsv`` is used by itself.
    text : iterable of str
        Columns to read as text, so that ``007`` stays ``007``; recognised id columns always are.

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
    if suffix in TEXT:
        table = read_delimited(path, text=text)
    elif suffix in STATISTICAL:
        table = read_statistical(path)
    elif suffix in EXCEL:
        table = _read_excel(path)
    elif suffix in PARQUET:
        table = _read_parquet(path)
    else:
        raise InputError(
            f"{path.name}: the ending {suffix!r} is not one of a readable file ({', '.join(READABLE)})."
        )
    return _described(table, path, dictionary)


def _described(table: Table, path: Path, dictionary: str | os.PathLike[str] | None) -> Table:
    sidecar = Path(dictionary) if dictionary is not None else path.with_suffix(".json")
    if dictionary is None and not (path.suffix.lower() == ".tsv" and sidecar.is_file()):
        return table
    if sidecar.suffix.lower() == ".json":
        return apply_sidecar(table, sidecar)
    return apply_dictionary(table, sidecar)


def _read_excel(path: Path) -> Table:
    require_package("python_calamine", "python-calamine", path)
    if zipfile.is_zipfile(path):
        guarded(lambda: refuse_far_cells(path), path, "an Excel workbook")

    def load() -> tuple[pd.DataFrame, list[str]]:
        with pd.ExcelFile(path, engine="calamine") as book:
            names = [str(name) for name in book.sheet_names]
            sheets = ((name, pd.read_excel(book, sheet_name=name, header=None)) for name in names)
            first = next(((name, sheet) for name, sheet in sheets if len(sheet)), None)
            return (
                (pd.DataFrame(), names)
                if first is None
                else (first[1], [first[0], *(n for n in names if n != first[0])])
            )

    raw, names = guarded(load, path, "an Excel workbook")
    if raw.empty:
        raise InputError(f"{path.name}: the workbook is empty.")
    header = ["" if pd.isna(cell) else str(cell).strip() for cell in raw.iloc[0]]
    check_header(header, path.name)
    body = raw.iloc[1:].reset_index(drop=True)
    body = body.apply(lambda column: column.infer_objects())
    frame, notes = without_unnamed(body, header, path.name)
    if len(names) > 1:
        notes += (f"Sheet {names[0]!r} was read; the workbook also has {listed(names[1:])}.",)
    errors = guarded(lambda: _error_cells(path), path, "an Excel workbook")
    if errors:
        notes += (
            f"{counted(errors, 'cell')} of the workbook {'shows' if errors == 1 else 'show'} an error of a "
            "formula, such as #DIV/0!: read as missing.",
        )
    rows = np.arange(2, len(frame) + 2)
    refuse_second_header(frame, rows, path.name)
    return Table(frame, path.name, rows, id=recognised_id(frame.columns), notes=notes)


def _error_cells(path: Path) -> int:
    """Cells of a workbook (.xlsx, .xlsm) whose formula failed; the reader gives them as empty cells."""
    found = 0
    if not zipfile.is_zipfile(path):
        return found
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"xl/worksheets/[^/]*\.xml", name):
                with archive.open(name) as stream:
                    rest = b""
                    while part := stream.read(2**20):
                        whole, _, rest = (rest + part).rpartition(b">")
                        found += len(re.findall(rb"<c\s[^>]*\bt=[\"']e[\"']", whole + b">"))
    return found


def _read_parquet(path: Path) -> Table:
    require_package("pyarrow", "pyarrow", path)

    def load() -> pd.DataFrame:
        frame = pd.read_parquet(path, engine="pyarrow")
        texts: pd.Series
        for _, texts in frame.select_dtypes("string").items():
            texts.astype(object)  # damaged text is only found when it is unpacked
        return frame

    frame = guarded(load, path, "a Parquet file")
    if frame.index.name is not None:
        frame = frame.reset_index()
    frame = frame.reset_index(drop=True).set_axis([str(name) for name in frame.columns], axis=1)
    check_header(list(frame.columns), path.name)
    rows = np.arange(1, len(frame) + 1)
    return Table(frame, path.name, rows, id=recognised_id(frame.columns))
