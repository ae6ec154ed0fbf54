"""Excel workbooks: one sheet is read, and failed formulas are counted."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.errors import InputError, counted, listed
from icqf.io.readers.extents import refuse_far_cells
from icqf.io.readers.platforms import further_headers, header_notes, question_texts, with_wordings
from icqf.io.readers.tables import (
    Table,
    check_header,
    guarded,
    recognised_id,
    refuse_second_header,
    require_package,
    without_unnamed,
)

CODEBOOK = "codebook"


def read_excel(path: Path, *, codebook: bool = False) -> Table:
    """Read the first sheet that holds anything.

    A sheet called "codebook" comes last, or first if it is a `codebook` that is wanted; in that only empty
    cells are missing, and a name may be "NA".
    """
    require_package("python_calamine", "python-calamine", path)
    guarded(lambda: refuse_far_cells(path), path, "an Excel workbook")

    def load() -> tuple[pd.DataFrame, list[str]]:
        with pd.ExcelFile(path, engine="calamine") as book:
            names = [str(name) for name in book.sheet_names]
            names.sort(key=lambda name: (name.strip().lower() == CODEBOOK) != codebook)
            options: dict[str, Any] = {"keep_default_na": False, "na_values": [""]} if codebook else {}
            sheets = ((name, pd.read_excel(book, sheet_name=name, header=None, **options)) for name in names)
            first = next(((name, cells) for name, cells in sheets if len(cells)), None)
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
    below = raw.iloc[1:3].fillna("").astype(str).to_numpy().tolist()
    extra = 0 if codebook else further_headers(header, below)
    body = raw.iloc[1 + extra :].reset_index(drop=True)
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
    rows = np.arange(2 + extra, len(frame) + 2 + extra)
    refuse_second_header(frame, rows, path.name)
    notes += header_notes(extra)
    table = Table(frame, path.name, rows, id=recognised_id(frame.columns), notes=notes)
    return with_wordings(table, header, question_texts(raw.iloc[1 : 1 + extra]))


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
