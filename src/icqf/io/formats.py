"""The endings of files that are read and written, and how large a file may be."""

from __future__ import annotations

import os

TEXT = (".csv", ".tsv", ".txt", ".tab", ".dat")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow")
STATISTICAL = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")
READABLE = (*TEXT, *EXCEL, *PARQUET, *ARROW, *STATISTICAL)
WRITABLE = ("csv", "parquet", "xlsx", "sav")
LARGEST = 2**30


def largest_file() -> int:
    """Bytes of the largest file that is read: 1 GB, or an eighth of the memory where that is less."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return LARGEST
    return min(LARGEST, memory // 8)
