"""Delimited text: detects the encoding and the delimiter, and names a damaged row."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icqf.errors import InputError
from icqf.io.readers.platforms import header_notes, with_wordings, without_further_headers
from icqf.io.readers.table import Table, check_header, recognised_id, refuse_second_header, without_unnamed

DELIMITERS = ",;\t|"
SAMPLE = 2**20  # bytes from which the layout is determined
_BYTES_AT_A_TIME = 2**22
ALSO_MISSING = (".", "#NULL!")
FOREIGN = {
    b"PK\x03\x04": "an Excel workbook (.xlsx)",
    b"$FL": "an SPSS file (.sav)",
    b"PAR1": "a Parquet file (.parquet)",
}
BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_delimited(path: Path, *, text: Iterable[str] = (), literal: bool = False) -> Table:
    """Read a delimited text file; columns in `text` and recognised id columns stay text.

    In a `literal` reading only empty cells are missing; otherwise also NA, NULL and so on.
    """
    data, encoding = _as_utf8(path.read_bytes(), path.name)
    sample = data[:SAMPLE].decode("utf-8", errors="ignore")
    layout = layout_of(sample, path.name, text=text, literal=literal)
    delimiter, header = layout.delimiter, list(layout.header)
    lines = None
    if not is_even(data, delimiter, len(header)):
        lines, widths = records(data, delimiter)
        _refuse_ragged(data, delimiter, lines, widths, len(header), path.name)
    data, texts, extra = (data, [], 0) if literal else without_further_headers(data, sample, delimiter)
    try:
        frame = parse(data, layout.options)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path.name}: {_parser_words(str(error))}") from error
    except pd.errors.ParserWarning:
        raise InputError(
            f"{path.name}: the first row of answers has more cells than the header's {len(header)} columns; "
            "name all columns in row 1, or remove the extra cells."
        ) from None
    except MemoryError:
        raise InputError(f"{path.name}: the file is too large for this machine's memory.") from None
    if frame.empty:
        raise InputError(f"{path.name}: there is a header in row 1, but there are no answers below it.")
    rows = np.arange(2 + extra, len(frame) + 2 + extra)
    if lines is not None and len(lines) == len(frame) + 1 + extra:
        rows = lines[1 + extra :]
    frame, notes = without_unnamed(frame, header, path.name)
    refuse_second_header(frame, rows, path.name)
    if encoding != "utf-8":
        notes = (f"The text was read as {encoding}.", *notes)
    table = Table(frame, path.name, rows, id=layout.id, notes=(*notes, *header_notes(extra)))
    return with_wordings(table, header, texts)


@dataclass(frozen=True)
class TextLayout:
    """The layout of a delimited text, from its first rows."""

    delimiter: str
    header: tuple[str, ...]  # stripped
    id: str | None  # the column of ids, by name
    options: Mapping[str, Any]  # of `pandas.read_csv`


def layout_of(sample: str, source: str, *, text: Iterable[str] = (), literal: bool = False) -> TextLayout:
    """Return the layout of a text from its beginning; refuse one without a usable header."""
    if not sample.strip():
        raise InputError(f"{source}: the file is empty.")
    delimiter = find_delimiter(sample, source)
    header = [name.strip() for name in next(csv.reader(_skip_blank(sample), delimiter=delimiter))]
    check_header(header, source)
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
    return TextLayout(delimiter, tuple(header), identity, options)


def parse(data: bytes, options: Mapping[str, Any]) -> pd.DataFrame:
    """Parse in pieces, which is twice as fast, or at once if a column's pieces differ in type."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=pd.errors.DtypeWarning)
        warnings.simplefilter("error", category=pd.errors.ParserWarning)  # cells would be lost
        try:
            return pd.read_csv(io.BytesIO(data), **options)
        except pd.errors.DtypeWarning:
            return pd.read_csv(io.BytesIO(data), low_memory=False, **options)


def find_delimiter(sample: str, source: str = "") -> str:
    """Return the delimiter that splits the first rows most evenly, and then into the most columns."""
    lines = _skip_blank(sample)[:60]
    if len(lines) > 1 and not sample.endswith("\n"):
        lines = lines[:-1]
    best, best_score = "", (0.0, 0)
    for delimiter in DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            continue
        width = widths[0] if widths else 1
        score = (sum(w == width for w in widths) / max(len(widths), 1), width)
        if width > 1 and score > best_score:
            best, best_score = delimiter, score
    if not best:
        raise InputError(
            f"{source}: row 1 has only one column, {lines[0].strip()[:40]!r}. Save the file with columns "
            "separated by commas, semicolons, tabs or vertical bars."
        )
    return best


def _as_utf8(data: bytes, source: str) -> tuple[bytes, str]:
    for start, what in FOREIGN.items():
        if data.startswith(start):
            raise InputError(f"{source}: this is {what}, not a text file. Correct its extension.")
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
    data: bytes, delimiter: str, lines: np.ndarray, widths: np.ndarray, width: int, source: str
) -> None:
    odd = np.flatnonzero(widths != width)
    if not odd.size:
        return
    row, n_cells = int(lines[odd[0]]), int(widths[odd[0]])
    if b'"' in data:
        # A stray quotation mark inside a cell misleads the quick count, so the csv module decides.
        first = _first_ragged(data.decode("utf-8"), delimiter, width)
        if first is None:
            return
        row, n_cells, last = first
        if last > row and last >= int(lines[-1]):
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


def _skip_blank(sample: str) -> list[str]:
    return [line for line in io.StringIO(sample, newline="") if line.strip()]


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
    n_cuts = n_breaks = 0
    for start in range(0, len(cells), _BYTES_AT_A_TIME):
        part = cells[start : start + _BYTES_AT_A_TIME]
        cuts, breaks = np.flatnonzero(part == ord(delimiter)), np.flatnonzero(part == ord("\n"))
        before = n_cuts + np.searchsorted(cuts, breaks)
        if not np.array_equal(before, (width - 1) * np.arange(n_breaks + 1, n_breaks + len(breaks) + 1)):
            return False
        n_cuts, n_breaks = n_cuts + len(cuts), n_breaks + len(breaks)
    return n_cuts == (width - 1) * (n_breaks + (not data.endswith(b"\n")))


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
