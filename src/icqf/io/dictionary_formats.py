"""Dictionaries of the field: files that describe the columns of a table, each recognised by its content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from icqf.io.formats import DICTIONARIES

if TYPE_CHECKING:
    from icqf.io.readers.table import Table

_HEAD = 2**16  # bytes by which a file is recognised


@dataclass(frozen=True)
class DictionaryFormat:
    """A format of files that describe the columns of a table.

    `recognises` is given a path and the beginning of its text, which is empty for a folder; `apply` adds to a
    table what the file says about its columns.
    """

    what: str
    recognises: Callable[[Path, str], bool]
    apply: Callable[[Table, Path], Table]


def dictionary_at(path: Path) -> DictionaryFormat | None:
    """Return the kind of dictionary at a path; None if it is none, such as a codebook."""
    head = ""
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(_HEAD)
        wide = start[:2] in (b"\xff\xfe", b"\xfe\xff")
        head = start.decode("utf-16" if wide else "utf-8-sig", errors="replace")
    elif not path.is_dir():
        return None
    kinds = (DICTIONARIES.load(name) for name in DICTIONARIES)
    return next((kind for kind in kinds if kind.recognises(path, head)), None)
