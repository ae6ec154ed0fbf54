"""File extensions and their readers, kinds of dictionaries, and the largest file that is read."""

from __future__ import annotations

import os

from icqf.registry import Registry

TEXT = (".csv", ".tsv", ".txt", ".tab", ".dat")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow")
STATISTICAL = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")
# By extension: functions from a path to a `Table`, or, in other packages, to a DataFrame of participants.
READERS = Registry(
    "icqf.readers",
    {
        **dict.fromkeys(TEXT, "icqf.io.readers.delimited:read_delimited"),
        **dict.fromkeys(EXCEL, "icqf.io.readers.excel:read_excel"),
        **dict.fromkeys(PARQUET, "icqf.io.readers.files:read_parquet"),
        **dict.fromkeys(ARROW, "icqf.io.readers.files:read_arrow"),
        **dict.fromkeys(STATISTICAL, "icqf.io.readers.statistical:read_statistical"),
        ".xml": "icqf.io.readers.redcap:read_project",
    },
    "a function",
    "collections.abc:Callable",
)
# By kind: a `DictionaryFormat`, whose files describe the columns of a table; tried in this order.
DICTIONARIES = Registry(
    "icqf.dictionaries",
    {
        "reproschema": "icqf.io.readers.reproschema:REPROSCHEMA",
        "bids": "icqf.io.readers.bids:BIDS",
        "openpsychometrics": "icqf.io.readers.openpsychometrics:OPENPSYCHOMETRICS",
        "redcap": "icqf.io.readers.redcap:REDCAP",
        "redcap-xml": "icqf.io.readers.redcap:REDCAP_XML",
        "nda": "icqf.io.readers.nda:NDA",
        "abcd": "icqf.io.readers.nda:ABCD",
        "loris": "icqf.io.readers.loris:LORIS",
        "loris-instrument": "icqf.io.readers.loris:LORIS_INSTRUMENT",
    },
    "a DictionaryFormat",
    "icqf.io.dictionary_formats:DictionaryFormat",
)
WRITABLE = ("csv", "parquet", "xlsx", "sav")
LARGEST = 2**30


def largest_file() -> int:
    """Bytes of the largest file that is read: 1 GB, or an eighth of the memory if that is less."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return LARGEST
    return min(LARGEST, memory // 8)
