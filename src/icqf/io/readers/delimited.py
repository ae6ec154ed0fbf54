"""Delimited text: detects the encoding and the delimiter, and names a damaged row."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.errors import InputError, shortened
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
    recognised_id,
    refuse_second_header,
    with_row_names,
    without_unnamed,
)

DELIMITERS = ",;\t|"
SAMPLE = 2**20  # bytes from which the layout is determined
_BYTES_AT_A_TIME = 2**22
_TAIL = 2**14  # bytes at the end in which a footer is looked for
ALSO_MISSING = (".", "#NULL!")
FOREIGN = {
    b"PK\x03\x04": "an Excel workbook (.xlsx)",
    b"$FL": "an SPSS file (.sav)",
    b"PAR1": "a Parquet file (.parquet)",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook or Word document (.xls, .doc)",
    b"%PDF": "a PDF document",
    b"{\\rtf": "a formatted text, such as a letter (.rtf)",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
    b"<?xml": "an XML file, such as a project of REDCap (.xml)",
}
_NO_TABLE = "Save the table of answers by itself, one row per participant, as .csv or .xlsx."
_OTHERWISE = dict.fromkeys(
    (
        *("a PDF document", "a formatted text, such as a letter (.rtf)", "a web page"),
        "a Word document (.docx)",
    ),
    _NO_TABLE,
)
_FEWEST_EVEN = 0.6  # of the lines of a table have the same number of cells
_FEWEST_LINES, _FEW_CELLS = 4, 5
_WORDY = 3  # words per line, by which a letter is told from a damaged table
BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_delimited(
    path: Path, *, text: Iterable[str] = (), literal: bool = False, header_row: int | None = None
) -> Table:
    """Read a delimited text file; columns in `text` and recognised id columns stay text.

    In a `literal` reading, the first row is the header and only empty cells are missing; otherwise also NA,
    NULL and so on. `header_row` is a header that was chosen, counted from 1.
    """
    data, encoding = as_utf8(path.read_bytes(), path.name)
    sample = data[:SAMPLE].decode("utf-8", errors="ignore")
    layout = layout_of(sample, path.name, text=text, literal=literal, header_row=header_row)
    delimiter, header = layout.delimiter, list(layout.header)
    above = 0  # lines of the file that are not in the data
    if layout.start:
        data = (delimiter * (len(header) - 1) + "\n").encode() + data[layout.start :]
        above = layout.line - 2
    data, footer = (data, ()) if literal else without_footer(data, delimiter, len(header))
    lines = None
    if not is_even(data, delimiter, len(header)):
        lines, widths = records(data, delimiter)
        _refuse_ragged(data, delimiter, lines, widths, len(header), path.name, above)
    try:
        frame = parse(data, layout.options)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path.name}: {_parser_words(str(error))}") from error
    except pd.errors.ParserWarning:
        raise InputError(
            f"{path.name}: the first row of answers has more cells than the header's {len(header)} columns; "
            "name all columns in the header, or remove the extra cells."
        ) from None
    except MemoryError:
        raise InputError(f"{path.name}: the file is too large for this machine's memory.") from None
    if frame.empty:
        raise InputError(f"{path.name}: there is a header in row 1, but there are no answers below it.")
    rows = np.arange(2 + above, len(frame) + 2 + above)
    if lines is not None and len(lines) == len(frame) + 1:
        rows = lines[1:] + above
    kept, twice = once_named(frame, header, path.name, layout.row, rows)
    frame, notes = without_unnamed(frame.iloc[:, kept], [header[at] for at in kept])
    notes = (*twice, *notes, *footer)
    refuse_second_header(frame, rows, path.name)
    if encoding not in ("utf-8", "utf-8-sig"):
        notes = (f"The text was read as {encoding.replace('cp', 'Windows-')}.", *notes)
    table = Table(frame, path.name, rows, id=layout.id, notes=(*layout.notes, *notes))
    named = [name if at in kept else "" for at, name in enumerate(header)]
    return with_wordings(table, named, layout.wordings)


def without_footer(data: bytes, delimiter: str, width: int) -> tuple[bytes, tuple[str, ...]]:
    """Return a text without lines below its answers, such as a total, and a note on them."""
    start = max(0, len(data) - _TAIL)
    lines = list(io.StringIO(data[start:].decode("utf-8", errors="ignore"), newline=""))[1:]
    rows = [
        next(csv.reader([line], delimiter=delimiter), []) if line.count('"') % 2 == 0 else ["0"]
        for line in lines
    ]
    n = rows_of_footer(rows, width)
    if not 0 < n < len(rows):
        return data, ()
    return data[: len(data) - len("".join(lines[-n:]).encode())], footer_note(rows[-n:])


def first_rows(path: Path) -> list[list[str]]:
    """Return the first rows of a text; lines without a delimiter have one cell."""
    with path.open("rb") as file:
        start = file.read(SAMPLE)
        rest = file.read(1)
    data, _ = as_utf8(start[: start.rfind(b"\n") + 1] if rest else start, path.name)
    sample = data.decode("utf-8", errors="ignore")
    try:
        return rows_of(sample, find_delimiter(sample, path.name))[0]
    except InputError:
        return [[line.strip()] for line in sample.splitlines()[:ROWS]]


@dataclass(frozen=True)
class TextLayout:
    """The layout of a delimited text, from its first rows."""

    delimiter: str
    header: tuple[str, ...]  # stripped
    id: str | None  # the column of ids, by name
    options: Mapping[str, Any]  # of `pandas.read_csv`
    start: int = 0  # where the answers begin in bytes, if more than a header in the first row precedes them
    line: int = 2  # and in which line, counted from 1
    row: int = 1  # of the names of the columns
    wordings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def layout_of(
    sample: str,
    source: str,
    *,
    text: Iterable[str] = (),
    literal: bool = False,
    header_row: int | None = None,
) -> TextLayout:
    """Return the layout of a text from its beginning; refuse one without a usable header."""
    if not sample.strip():
        raise InputError(f"{source}: the file is empty.")
    delimiter = find_delimiter(sample, source, one_column=literal)
    rows, ends = rows_of(sample, delimiter)
    if literal:
        at = next(at for at, cells in enumerate(rows) if any(cells))
        found = Header(at, at, tuple(rows[at]))
    else:
        found = find_header(rows, source, row=header_row)
    header, notes = list(found.names), list(found.notes)
    start = 0 if found.alone else ends[found.last]
    below = [cells for cells in rows[found.last + 1 :] if cells]
    if not literal and len(below) > 1 and all(len(cells) == len(header) + 1 for cells in below):
        header = ["", *header] if any(cells[-1] for cells in below) else [*header, ""]
        start = ends[found.last]
    line = 1 + next((at for at, end in enumerate(ends) if end > start), len(ends)) if start else 2
    if not literal and not header[0] and any(cells[0] for cells in below):
        header = with_row_names(header)
        notes.append(ROW_NAMES_NOTE.format(header[0]))
    identity = recognised_id(header)
    wanted = {*text, *([identity] if identity else [])}
    options: dict[str, Any] = {
        "sep": delimiter,
        "header": 0,
        "names": range(len(header)),
        "index_col": False,
        "dtype": {i: str for i, name in enumerate(header) if name in wanted},
        "na_values": [""] if literal else list(ALSO_MISSING),
        "keep_default_na": not literal,
        "decimal": "," if delimiter == ";" and _decimal_comma(sample) else ".",
    }
    return TextLayout(
        delimiter,
        tuple(header),
        identity,
        options,
        len(sample[:start].encode()),
        line,
        found.row + 1,
        found.wordings,
        tuple(notes),
    )


def rows_of(sample: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """Return the first rows of a text by line, and where in the text each ends.

    Blank lines, and further lines of a row that has several, are empty rows.
    """
    stream = io.StringIO(sample, newline="")
    reader = csv.reader(stream, delimiter=delimiter)
    rows: list[list[str]] = []
    ends: list[int] = []
    try:
        for cells in reader:
            rows += [[cell.strip() for cell in cells], *([] for _ in range(reader.line_num - len(rows) - 1))]
            ends += [stream.tell()] * (len(rows) - len(ends))
            if len(rows) >= ROWS:
                break
    except csv.Error:  # an endless cell
        pass
    if not rows:
        return [[]], [len(sample)]
    return rows, ends


def parse(data: bytes, options: Mapping[str, Any]) -> pd.DataFrame:
    """Parse in pieces, which is twice as fast, or at once if a column's pieces differ in type."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=pd.errors.DtypeWarning)
        warnings.simplefilter("error", category=pd.errors.ParserWarning)  # cells would be lost
        try:
            return pd.read_csv(io.BytesIO(data), **options)
        except pd.errors.DtypeWarning:
            return pd.read_csv(io.BytesIO(data), low_memory=False, **options)


def find_delimiter(sample: str, source: str = "", *, one_column: bool = False) -> str:
    """Return the delimiter that splits the first rows most evenly, and then into the most columns.

    A table of one column is refused unless `one_column`.
    """
    filled = (line for line in io.StringIO(sample, newline="") if line.strip())
    lines = list(islice(filled, 60))
    if len(lines) > 1 and not sample.endswith("\n"):
        lines = lines[:-1]
    best, best_score = "", (0.0, False, 0)
    for delimiter in DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error as error:
            if "limit" in str(error):
                raise InputError(
                    f"{source}: a cell has more than {csv.field_size_limit()} characters. Is a quotation "
                    "mark never closed?"
                ) from None
            continue
        several = Counter(width for width in widths if width > 1)
        if several:
            width, times = several.most_common(1)[0]
            score = (times / len(widths), widths[0] == width, width)
            if score > best_score:
                best, best_score = delimiter, score
    if not best and _by_spaces(lines):
        return " "
    words = sum(len(line.split()) for line in lines)
    uneven = best_score[0] < _FEWEST_EVEN and best_score[2] <= _FEW_CELLS and len(lines) >= _FEWEST_LINES
    if uneven and words > _WORDY * len(lines):
        raise InputError(
            f"{source}: this looks like running text, such as a letter, not like a table: it begins with "
            f"{shortened(lines[0].strip(), 40)!r}, and its lines do not have the same number of cells.",
            code="no-table",
            remedy=_NO_TABLE,
        )
    if not best and not one_column:
        raise InputError(
            f"{source}: row 1 has only one column, {lines[0].strip()[:40]!r}. Save the file with columns "
            "separated by commas, semicolons, tabs or vertical bars."
        )
    return best or ","


def _by_spaces(lines: list[str]) -> bool:
    """Whether single spaces separate numbers, as R's write.table writes them; its header may lack a name."""
    rows = list(csv.reader(lines, delimiter=" "))
    widths = {len(row) for row in rows[1:]}
    cells = [cell for row in rows[1:] for cell in row[1:]]
    numbers = sum(bool(re.fullmatch(r"-?\d+(\.\d+)?|NA", cell)) for cell in cells)
    return (
        len(rows) > 2
        and len(widths) == 1
        and widths <= {len(rows[0]), len(rows[0]) + 1}
        and (max(widths) > 2 and 2 * numbers > len(cells))
    )


def as_utf8(data: bytes, source: str) -> tuple[bytes, str]:
    for start, what in FOREIGN.items():
        if data[:64].lstrip().lower().startswith(start.lower()):
            if b"word/document.xml" in data:
                what = "a Word document (.docx)"
            raise InputError(
                f"{source}: this is {what}, not a text file. {_OTHERWISE.get(what, 'Correct its extension.')}"
            )
    for bom, encoding in BOMS:
        if data.startswith(bom):
            try:
                return data.decode(encoding).encode("utf-8"), encoding
            except UnicodeError:
                raise InputError(
                    f"{source}: the text is marked as {encoding}, but is not valid. Save it as UTF-8."
                ) from None
    head = data[:4096]
    if b"\0" in head:
        even, odd = head[0::2].count(0), head[1::2].count(0)
        guess = "utf-16-le" if odd > 4 * even else "utf-16-be" if even > 4 * odd else ""
        try:
            return data.decode(guess).encode("utf-8"), guess
        except (LookupError, UnicodeError):
            raise InputError(f"{source}: this is not a text file. Correct its extension.") from None
    try:
        if not data.isascii():
            data.decode("utf-8")
    except UnicodeDecodeError:
        encoding = _single_byte(data, source)
        return data.decode(encoding).encode("utf-8"), encoding
    return data, "utf-8"


def _single_byte(data: bytes, source: str) -> str:
    """Return the one-byte encoding of text that is not UTF-8; refuse mixed encodings."""
    utf8_row = other_row = 0
    for row, line in enumerate(data.splitlines(), start=1):
        if line.isascii():
            continue
        try:
            line.decode("utf-8")
            utf8_row = utf8_row or row
        except UnicodeDecodeError:
            other_row = other_row or row
        if utf8_row and other_row:
            raise InputError(
                f"{source}: the encodings are mixed: row {utf8_row} is UTF-8, row {other_row} is not. "
                "Save the whole file as UTF-8."
            )
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def _refuse_ragged(
    data: bytes,
    delimiter: str,
    lines: np.ndarray,
    widths: np.ndarray,
    width: int,
    source: str,
    above: int = 0,
) -> None:
    """Refuse rows with more or fewer cells than the header; `above` are lines of the file before the data."""
    odd = np.flatnonzero(widths != width)
    if not odd.size:
        return
    row, n_cells = int(lines[odd[0]]) + above, int(widths[odd[0]])
    if b'"' in data:
        # A stray quotation mark inside a cell misleads the quick count, so the csv module decides.
        first = _first_ragged(data.decode("utf-8"), delimiter, width)
        if first is None:
            return
        row, n_cells, last = first[0] + above, first[1], first[2] + above
        if last > row and last >= int(lines[-1]) + above:
            raise InputError(f"{source}: a quotation mark in row {row} is never closed.")
    raise InputError(
        f"{source}: row {row} has {n_cells} cells, but the header has {width} columns. Correct the row; a "
        f"cell that contains {delimiter!r} must be in quotation marks."
    )


def _first_ragged(text: str, delimiter: str, width: int) -> tuple[int, int, int] | None:
    """Return the first line, number of cells and last line of the first record without `width` cells."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    line = 0
    for cells in reader:
        if cells and len(cells) != width:
            return line + 1, len(cells), reader.line_num
        line = reader.line_num
    return None


def _decimal_comma(sample: str) -> bool:
    return bool(re.search(r"(^|;)-?\d+,\d+(;|$)", sample, flags=re.M)) and not re.search(
        r"(^|;)-?\d+\.\d+(;|$)", sample, flags=re.M
    )


def _parser_words(message: str) -> str:
    ragged = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if ragged:
        return (
            f"row {ragged[2]} has {ragged[3]} cells, but the header has {ragged[1]} columns. Correct the row."
        )
    if "EOF inside string" in message:
        row = re.search(r"starting at row (\d+)", message)
        place = f" in row {int(row[1]) + 1}" if row else ""
        return f"a quotation mark{place} is never closed."
    return f"the text cannot be read as a table ({message.strip().rstrip('.')})."


def is_even(data: bytes, delimiter: str, width: int) -> bool:
    """Whether every line has `width` unquoted cells, as in most files; a quick test."""
    if width < 2 or b'"' in data or b"\n" not in data or lone_returns(data):
        return False
    cells = np.frombuffer(data, dtype=np.uint8)
    seen = 0
    for start in range(0, len(cells), _BYTES_AT_A_TIME):
        part = cells[start : start + _BYTES_AT_A_TIME]
        breaks = part == ord("\n")
        ends = breaks[np.flatnonzero((part == ord(delimiter)) | breaks)]  # of cells: whether of lines, too
        last = ends[(-seen - 1) % width :: width]
        if not last.all() or np.count_nonzero(ends) != len(last):
            return False
        seen += len(ends)
    return (seen + (not data.endswith(b"\n"))) % width == 0


def lone_returns(data: bytes) -> bool:
    """Whether there is a carriage return without a line feed, as old programs end lines."""
    return b"\r" in data and data.count(b"\r") != data.count(b"\r\n")


def records(data: bytes, delimiter: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the first line and the number of cells of each record; blank lines are not records."""
    cells = np.frombuffer(data, dtype=np.uint8)
    if b"\n" not in data:
        cells = np.where(cells == 13, np.uint8(10), cells)
    breaks, cuts = cells == 10, cells == ord(delimiter)
    all_breaks = np.flatnonzero(breaks)
    if b'"' in data:
        outside = np.bitwise_xor.accumulate((cells == 34).view(np.uint8)) == 0
        breaks, cuts = breaks & outside, cuts & outside
    ends = np.flatnonzero(breaks)
    ends = np.append(ends, len(cells)) if not len(ends) or ends[-1] != len(cells) - 1 else ends
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts
    lengths -= (cells[np.maximum(ends - 1, 0)] == 13) & (lengths > 0)
    widths = np.add.reduceat(cuts, starts, dtype=np.int64) + 1
    lines = np.searchsorted(all_breaks, starts) + 1
    filled = lengths > 0
    for i in np.flatnonzero((widths == 1) & filled & (lengths < 200)):
        filled[i] = bool(data[starts[i] : ends[i]].strip())
    return lines[filled], widths[filled]


def end_of_records(data: bytes) -> int:
    """Where the last complete record of a text ends; 0 if there is none."""
    end = data.rfind(b"\n") + 1
    while end and data.count(b'"', 0, end) % 2:
        end = data.rfind(b"\n", 0, data.rfind(b'"', 0, end)) + 1
    return end
