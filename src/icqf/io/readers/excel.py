"""Excel workbooks: reads one sheet, counts failed formulas, and refuses what would exhaust the memory.

The extent of the sheets is determined before memory is allocated for their cells.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from icqf.data.settings import parameter_error
from icqf.errors import InputError, counted, did_you_mean, listed
from icqf.io.readers.header import MOST as FOOTER
from icqf.io.readers.header import (
    ROW_NAMES_NOTE,
    ROWS,
    Header,
    find_header,
    footer_note,
    once_named,
    rows_of_footer,
)
from icqf.io.readers.platforms import with_wordings
from icqf.io.readers.table import (
    Table,
    guarded,
    largest_file,
    recognised_id,
    refuse_second_header,
    require_package,
    with_row_names,
    without_unnamed,
)
from icqf.screening.missing_codes import number

CODEBOOK = "codebook"
Array = NDArray[Any]
_AT_A_TIME = 2**20
_LONGEST_TEXT = 2**18  # bytes; 32 767 characters, some of them escaped as &#x2014;
_MOST_TEXT = 2**26  # bytes of all cells, or
_TEXT_OF_A_CELL = 32  # bytes per filled cell, if that is more
_MOST_TEXTS = 10**7
_OVERLAP = 200  # bytes of a piece that are searched again with the next
_TAG = re.compile(rb"<(?:\w+:)?(?:row|c)\b([^<>]*)(?<!/)>")  # cells without content take no memory
_PLACE = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{0,3})(\d{1,7})["']""")
_MARKUP = re.compile(rb"<[^<>]*>?")
_END_OF_TEXT = re.compile(rb"</(?:\w+:)?si\s*>")
_IS_SHARED = re.compile(rb"""\bt\s*=\s*["']s["']""")
_REFERENCE = re.compile(rb"<(?:\w+:)?c\b([^<>]*)>\s*<(?:\w+:)?v[^<>]*>\s*(\d{1,9})\s*<")
_SMALL_PARTS = re.compile(r"(styles|workbook|\[Content_Types\])\.xml$|\.rels$", re.IGNORECASE)
_ROOM = 20  # cells of the sheet per filled cell
_SMALL = 10**6
_OTHERS = (".ods", ".xls", ".xlsb")
_MEMORY = 2**29  # enough for some ten million cells
_PROBE = """
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
except (ImportError, ValueError, OSError):
    pass
from python_calamine import CalamineWorkbook
book = CalamineWorkbook.from_path(sys.argv[1])
for name in book.sheet_names:
    sheet = book.get_sheet_by_name(name)
    cells = sum(cell != "" for row in sheet.iter_rows() for cell in row) if sheet.height else 0
    print(sheet.total_height, sheet.total_width, cells, flush=True)
"""


def read_excel(
    path: Path, *, codebook: bool = False, sheet: str | None = None, header_row: int | None = None
) -> Table:
    """Read a sheet, by default the first that looks like a table, or else the first that is not empty.

    A sheet called "codebook" comes last, or first for a `codebook`, whose header is its first row and in
    which only empty cells are missing, as a name may be "NA". `header_row` is a header that was chosen,
    counted from 1.
    """
    raw, name, others = _sheet(path, sheet, codebook)
    if raw.empty:
        raise InputError(f"{path.name}: the workbook is empty.")
    if codebook:
        found = Header(0, 0, tuple(_texts(raw.iloc[:1])[0]))
    else:
        found = find_header(_texts(raw.iloc[:ROWS]), path.name, row=header_row)
    texts = _texts(raw.iloc[max(found.last + 1, len(raw) - FOOTER) :])
    below = 0 if codebook else rows_of_footer(texts, raw.shape[1])
    below = below if below < len(texts) else 0
    body = raw.iloc[found.last + 1 : len(raw) - below].reset_index(drop=True)
    body = body.apply(lambda column: column.infer_objects())
    header, notes = list(found.names), list(found.notes)
    header += [""] * (body.shape[1] - len(header))
    if not codebook and not header[0] and body.iloc[:, 0].notna().any():
        header = with_row_names(header)
        notes.append(ROW_NAMES_NOTE.format(header[0]))
    rows = np.arange(found.last + 2, len(body) + found.last + 2)
    kept, twice = once_named(body, header, path.name, found.row + 1, rows)
    frame, unnamed = without_unnamed(body.iloc[:, kept], [header[at] for at in kept])
    notes += [*twice, *unnamed, *(footer_note(texts[-below:]) if below else ())]
    if commas := [] if codebook else [name for name in frame.columns if _has_commas(frame[name])]:
        decimals = {name: frame[name].str.strip().str.replace(",", ".").astype(float) for name in commas}
        frame = frame.assign(**decimals)
        notes.append(f"Decimal commas were read as decimal points in {listed(commas)}.")
    if others:
        notes.append(f"Sheet {name!r} was read; the workbook also has {listed(others)}.")
    errors = guarded(lambda: _error_cells(path), path, "an Excel workbook")
    if errors:
        notes.append(
            f"{counted(errors, 'cell')} of the workbook with a formula error, such as #DIV/0!, "
            f"{'was' if errors == 1 else 'were'} read as missing."
        )
    refuse_second_header(frame, rows, path.name)
    table = Table(frame, path.name, rows, id=recognised_id(frame.columns), notes=tuple(notes))
    named = [name if at in kept else "" for at, name in enumerate(header)]
    return with_wordings(table, named, found.wordings)


def first_rows(path: Path, *, sheet: str | None = None) -> tuple[list[list[str]], str, tuple[str, ...]]:
    """Return the first rows of a sheet as texts, its name, and the names of the other sheets."""
    raw, name, others = _sheet(path, sheet, False)
    return _texts(raw.iloc[:ROWS]), name, tuple(others)


def _sheet(path: Path, sheet: str | None, codebook: bool) -> tuple[pd.DataFrame, str, list[str]]:
    """Return the cells of a sheet, its name, and the names of the other sheets."""
    require_package("python_calamine", "python-calamine", path)
    guarded(lambda: refuse_far_cells(path), path, "an Excel workbook")
    options: dict[str, Any] = {"keep_default_na": False, "na_values": [""]} if codebook else {}

    def load() -> tuple[pd.DataFrame, str, list[str]]:
        with pd.ExcelFile(path, engine="calamine") as book:
            names = [str(name) for name in book.sheet_names]
            wanted = names if sheet is None else [_named_sheet(names, sheet, path.name)]
            wanted = sorted(wanted, key=lambda name: (name.strip().lower() == CODEBOOK) != codebook)
            first: tuple[pd.DataFrame, str] | None = None
            for name in wanted:
                cells = pd.read_excel(book, sheet_name=name, header=None, **options)
                is_book = name.strip().lower() == CODEBOOK
                if len(cells) and (codebook or (_like_table(cells) and not (first and is_book))):
                    first = cells, name
                    break
                first = first or ((cells, name) if len(cells) else None)
            cells, name = first or (pd.DataFrame(), "")
            return cells, name, [other for other in names if other != name]

    return guarded(load, path, "an Excel workbook")


def _named_sheet(names: list[str], sheet: str, source: str) -> str:
    """The sheet with a name, whatever its case, or a number."""
    exact = [name for name in names if name == sheet] or [
        name for name in names if name.strip().lower() == sheet.strip().lower()
    ]
    if exact:
        return exact[0]
    if sheet.strip().isdecimal() and 1 <= int(sheet) <= len(names):
        return names[int(sheet) - 1]
    known = f"{source} has {listed(names, most=12)}"
    raise parameter_error("sheet", f" is {sheet!r}, but {known}.{did_you_mean(sheet, names)}", sheets=names)


def _like_table(cells: pd.DataFrame) -> bool:
    """Whether a sheet has several rows with several cells, unlike a cover page."""
    filled = cells.iloc[:ROWS].notna().sum(axis=1)
    return bool((filled > 2).sum() > 2)


def _has_commas(column: pd.Series) -> bool:
    """Whether every cell is a text with one comma between digits, which lists of choices hardly are."""
    cells = column.dropna()
    if cells.empty or pd.api.types.infer_dtype(cells) != "string":
        return False
    return bool(cells.str.fullmatch(r"\s*-?\d+,\d+\s*").all())


def _texts(cells: pd.DataFrame) -> list[list[str]]:
    return [["" if pd.isna(cell) else number(cell).strip() for cell in row] for row in cells.to_numpy()]


def _error_cells(path: Path) -> int:
    """Number of cells of a workbook (.xlsx, .xlsm) with a failed formula, which are read as empty."""
    errors = 0
    if not zipfile.is_zipfile(path):
        return errors
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"xl/worksheets/[^/]*\.xml", name):
                with archive.open(name) as stream:
                    rest = b""
                    while part := stream.read(2**20):
                        whole, _, rest = (rest + part).rpartition(b">")
                        errors += len(re.findall(rb"<c\s[^>]*\bt=[\"']e[\"']", whole + b">"))
    return errors


def refuse_far_cells(path: Path) -> None:
    """Refuse a workbook that unpacks to too much, or with a cell far from the others.

    Such a cell is usually a blank, and takes the memory of all cells up to it.
    """
    if zipfile.is_zipfile(path):
        _refuse_by_tags(path)
    if path.suffix.lower() in _OTHERS:
        _refuse_by_reading(path)


def _refuse_by_tags(path: Path) -> None:
    """Check the size of a zipped workbook, and the cells of one in XML (.xlsx, .xlsm)."""
    left = largest_file()
    with zipfile.ZipFile(path) as book:
        shared = _shared_texts(book, path)
        for entry in book.infolist():
            sheet = "/worksheets/" in f"/{entry.filename}"
            rows = columns = cells = text = stretch = size = 0
            tail = b""
            with book.open(entry) as stream:
                while piece := stream.read(_AT_A_TIME):
                    left, size = left - len(piece), size + len(piece)
                    if left < 0 or (size > _MOST_TEXT and _SMALL_PARTS.search(entry.filename)):
                        raise _too_large(path)
                    if sheet:
                        for attributes in _TAG.findall(tail + piece):
                            cells += 1
                            for letters, digits in _PLACE.findall(attributes):
                                rows, columns = max(rows, int(digits)), max(columns, _number(letters))
                        text += _text_in(tail + piece, shared) + len(_MARKUP.sub(b"", piece))
                        stretch = _refuse_stretch(path, piece, stretch)
                        tail = piece[-_OVERLAP:]
            _refuse(path, rows, columns, cells)
            if text > max(_MOST_TEXT, _TEXT_OF_A_CELL * cells):
                raise InputError(
                    f"{path.name}: the cells of a sheet hold about {text // 10**6} million characters of "
                    "text, which is too much. Delete columns of long texts, or save the answers as .csv."
                )


def _shared_texts(book: zipfile.ZipFile, path: Path) -> Array:
    """Lengths in bytes of the texts that cells refer to by number."""
    lengths, number = [np.zeros(0, dtype=np.int64)], 0
    for entry in book.infolist():
        if not entry.filename.lower().endswith("sharedstrings.xml"):
            continue
        rest, stretch = b"", 0
        with book.open(entry) as stream:
            while piece := stream.read(_AT_A_TIME):
                stretch = _refuse_stretch(path, piece, stretch)
                *texts, rest = _END_OF_TEXT.split(rest + piece)
                lengths.append(np.array([len(_MARKUP.sub(b"", text)) for text in texts], dtype=np.int64))
                number += len(texts)
                if len(rest) > _LONGEST_TEXT or lengths[-1].max(initial=0) > _LONGEST_TEXT:
                    raise _long_text(path)
                if number > _MOST_TEXTS:
                    raise _too_large(path)
    return np.concatenate(lengths)


def _too_large(path: Path) -> InputError:
    return InputError(
        f"{path.name}: the workbook is too large when unpacked. Delete what is not needed, or save a .csv."
    )


def _text_in(piece: bytes, shared: Array) -> int:
    """Bytes of the shared texts that cells refer to; an unusual reference counts as the longest."""
    numbers = [
        int(number) for attributes, number in _REFERENCE.findall(piece) if _IS_SHARED.search(attributes)
    ]
    known = np.array([number for number in numbers if number < len(shared)], dtype=np.int64)
    others = len(_IS_SHARED.findall(piece)) - len(numbers)
    return int(shared[known].sum()) + max(0, others) * int(shared.max(initial=0))


def _refuse_stretch(path: Path, piece: bytes, before: int) -> int:
    """Refuse an endless text; `before` and the result are the bytes since the last tag began."""
    marks = np.flatnonzero(np.frombuffer(piece, dtype=np.uint8) == ord("<"))
    if not len(marks):
        longest = now = before + len(piece)
    else:
        longest = max(before + int(marks[0]), int(np.diff(marks).max(initial=0)))
        now = len(piece) - int(marks[-1])
    if max(longest, now) > _LONGEST_TEXT:
        raise _long_text(path)
    return now


def _long_text(path: Path) -> InputError:
    return InputError(
        f"{path.name}: a cell holds a longer text than spreadsheet programs allow (32 767 characters). "
        "Delete it, and save the workbook again."
    )


def _refuse(path: Path, rows: int, columns: int, cells: int) -> None:
    if rows * columns > max(_SMALL, _ROOM * cells):
        raise InputError(
            f"{path.name}: a sheet extends to row {rows} and column {columns}, but only about "
            f"{cells} cells are filled. Delete cells far from the table, and save it again."
        )


def _refuse_by_reading(path: Path) -> None:
    """Check the cells with a parser in a separate process of limited memory."""
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, str(path), str(_MEMORY)], check=False, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    # Killed, out of memory, or beyond the parser's own limit.
    if done.returncode < 0 or "MemoryError" in done.stderr or "limit exceeded" in done.stderr:
        raise InputError(
            f"{path.name}: a sheet of the workbook is so large that reading it takes more than "
            f"{_MEMORY / 2**30:g} GB of memory. Delete cells far from the table, or save it as .csv."
        )
    for line in lines:  # one per sheet; an unreadable file is refused by the reader
        rows, columns, cells = map(int, line.split())
        _refuse(path, rows, columns, cells)


def _number(letters: bytes) -> int:
    """The number of a column from its letters: 1 for A, 16384 for XFD."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number
