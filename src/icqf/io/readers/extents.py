"""How far the sheets of a workbook reach, found before room is made for every cell up to there."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

from icqf.errors import InputError
from icqf.io.readers.tables import largest_file

_AT_A_TIME = 2**20
_OVERLAP = 200  # what is cut off at the end of a piece is whole in the next
_TAG = re.compile(rb"<(?:\w+:)?(?:row|c)\b([^<>]*)(?<!/)>")  # a cell without content takes no room
_PLACE = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{0,3})(\d{1,7})["']""")
_ROOM = 20  # cells up to the last one, for each cell that is there
_SMALL = 10**6
_OTHERS = (".ods", ".xls", ".xlsb")
_MEMORY = 2**29  # enough for some ten million cells
_LOOK = """
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


def refuse_far_cells(path: Path) -> None:
    """Refuse a workbook with a cell far away from the others, or that unpacks to too much.

    Such a cell holds a blank most of the time, and takes the memory of all cells up to it.
    """
    if zipfile.is_zipfile(path):
        _refuse_by_tags(path)
    if path.suffix.lower() in _OTHERS:
        _refuse_by_reading(path)


def _refuse_by_tags(path: Path) -> None:
    """What a workbook of zipped text (.xlsx, .xlsm) says of its own cells; of others, only their sizes."""
    left = largest_file()
    with zipfile.ZipFile(path) as book:
        for entry in book.infolist():
            rows = columns = cells = 0
            tail = b""
            with book.open(entry) as stream:
                while piece := stream.read(_AT_A_TIME):
                    left -= len(piece)
                    if left < 0:
                        raise InputError(f"{path.name}: the workbook unpacks to more than is read here.")
                    if "/worksheets/" in f"/{entry.filename}":
                        for attributes in _TAG.findall(tail + piece):
                            cells += 1
                            for letters, digits in _PLACE.findall(attributes):
                                rows, columns = max(rows, int(digits)), max(columns, _number(letters))
                        tail = piece[-_OVERLAP:]
            _refuse(path, rows, columns, cells)


def _refuse(path: Path, rows: int, columns: int, cells: int) -> None:
    if rows * columns > max(_SMALL, _ROOM * cells):
        raise InputError(
            f"{path.name}: a sheet reaches to row {rows} and column {columns}, but only about "
            f"{cells} cells hold anything. Delete what is far from the table, and save it again."
        )


def _refuse_by_reading(path: Path) -> None:
    """What a parser finds, in a process of its own that may take only so much memory."""
    done = subprocess.run(
        [sys.executable, "-c", _LOOK, str(path), str(_MEMORY)], check=False, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    # Killed, out of memory, or beyond the parser's own limit.
    if done.returncode < 0 or "MemoryError" in done.stderr or "limit exceeded" in done.stderr:
        raise InputError(
            f"{path.name}: a sheet of the workbook reaches so far that it takes more than "
            f"{_MEMORY / 2**30:g} GB of memory to read. Delete what is far from the table, or save it as "
            ".csv."
        )
    for line in lines:  # one for each sheet; a file that cannot be read is for the reader to refuse
        rows, columns, cells = map(int, line.split())
        _refuse(path, rows, columns, cells)


def _number(letters: bytes) -> int:
    """The number of a column, from its letters.

    Examples
    --------
    >>> _number(b"A"), _number(b"XFD")
    (1, 16384)
    """
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number
