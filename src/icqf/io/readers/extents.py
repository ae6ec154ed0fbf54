"""How far the sheets of a workbook reach, found before a parser makes room for every cell up to there."""

from __future__ import annotations

import re
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


def refuse_far_cells(path: Path) -> None:
    """Refuse a workbook (.xlsx, .xlsm) with a cell far away from the others, or that unpacks to too much.

    Such a cell holds a blank most of the time, and takes the memory of all cells up to it.
    """
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
            if rows * columns > max(_SMALL, _ROOM * cells):
                raise InputError(
                    f"{path.name}: a sheet reaches to row {rows} and column {columns}, but only about "
                    f"{cells} cells hold anything. Delete what is far from the table, and save it again."
                )


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
