"""The endings of files that are read and written, who reads them, and how large a file may be."""

from __future__ import annotations

import os

from icqf.registry import Registry

TEXT = (".csv", ".tsv", ".txt", ".tab", ".dat")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow")
STATISTICAL = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")
# By ending: functions from a path to a `Table`, or from outside to a DataFrame with a row per participant.
READERS = Registry(
    "icqf.readers",
    {
        **dict.fromkeys(TEXT, "icqf.io.readers.delimited:read_delimited"),
        **dict.fromkeys(EXCEL, "icqf.io.readers.excel:read_excel"),
        **dict.fromkeys(PARQUET, "icqf.io.readers.files:read_parquet"),
        **dict.fromkeys(ARROW, "icqf.io.readers.files:read_arrow"),
        **dict.fromkeys(STATISTICAL, "icqf.io.readers.statistical:read_statistical"),
    },
    "a function",
    "collections.abc:Callable",
)
WRITABLE = ("csv", "parquet", "xlsx", "sav")
LARGEST = 2**30


def largest_file() -> int:
    """Bytes of the largest file that is read: 1 GB, or an eighth of the memory where that is less."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return LARGEST
    return min(LARGEST, memory // 8)
