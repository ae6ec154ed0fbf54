"""The endings of files that are read and written."""

from __future__ import annotations

TEXT = (".csv", ".tsv", ".txt", ".tab", ".dat")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow")
STATISTICAL = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")
READABLE = (*TEXT, *EXCEL, *PARQUET, *ARROW, *STATISTICAL)
WRITABLE = ("csv", "parquet", "xlsx", "sav")
