"""The Data page: the answers as a spreadsheet, some rows and columns at a time."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pandas as pd
from starlette.responses import Response

from icqf.app import process
from icqf.app.check import USES
from icqf.app.pages import PageRequest, page, redirect, render, run_url
from icqf.io.readers.table import Table
from icqf.io.study_files import AND
from icqf.screening.missing_codes import number
from icqf.workflow.check import ColumnSummary, StudyInspection
from icqf.workflow.options import StudyOptions

ROWS, COLUMNS = 50, 24  # on one page
_LONGEST = 60  # characters of a cell


@page
def data(request: PageRequest) -> Response:
    """Show some rows and columns of the table of answers."""
    run = request.usable_run
    pending = request.app.worker.check_of(run)
    if not pending.ready(process.PATIENCE) or pending.future.exception() is not None:
        return redirect(run_url(run, "check"))
    study: StudyInspection = pending.future.result()
    table, options = request.app.worker.table_of(run), run.options
    query = request.http.query_params
    find, who = query.get("find", "").strip(), query.get("who", "").strip()
    identity = [column.name for column in study.columns if column.role == "id"]
    shown = [
        column
        for column in study.columns
        if column.role != "id"
        and column.name in table.frame.columns
        and find.lower() in f"{column.name} {column.wording}".lower()
    ]
    missed = ""
    row = _start(query.get("row", ""), len(table.frame))
    if who:
        found = _row_of(table, identity, who)
        row, missed = (row, who) if found is None else (found - found % ROWS, "")
    first = _start(query.get("column", ""), len(shown))
    part = shown[first : first + COLUMNS]
    return render(
        request,
        "data.html",
        step="check",
        columns=part,
        uses=USES,
        identity=AND.join(identity),
        rows=_rows(table, identity, part, row, who, study, options),
        find=find,
        who=who,
        missed=missed,
        at={"row": row, "n_rows": len(table.frame), "column": first, "n_columns": len(shown)},
        steps_of_grid=_links(row, len(table.frame), first, len(shown), find),
        code=404 if missed else 200,
    )


def _start(text: str, n: int) -> int:
    wanted = int(text) if text.isdecimal() and len(text) < 10 else 0
    return wanted if wanted < n else 0


def _row_of(table: Table, identity: list[str], who: str) -> int | None:
    """Return the place of a participant, or of a row of the file where nobody has this id."""
    ids = _ids(table.frame, identity)
    if who in ids:
        return ids.index(who)
    rows = table.rows.tolist()
    return rows.index(int(who)) if who.isdecimal() and len(who) < 10 and int(who) in rows else None


def _rows(
    table: Table,
    identity: list[str],
    columns: list[ColumnSummary],
    start: int,
    who: str,
    study: StudyInspection,
    options: StudyOptions,
) -> list[dict[str, Any]]:
    """Return the rows with their cells, each with what is remarkable about it."""
    ends = {item.name: (item.min, item.max) for item in study.items}
    codes = {_text(code) for code in options.missing_codes}
    own = {item.name: codes | {_text(code) for code in item.missing_codes} for item in study.items}
    part = table.frame.iloc[start : start + ROWS]
    cells = {
        name: [_cell(value, ends.get(name), own.get(name, codes)) for value in part[name]]
        for name in (column.name for column in columns)
    }
    ids = _ids(part, identity)
    return [
        {
            "number": int(table.rows[start + at]),
            "id": ids[at],
            "here": bool(who) and who in (ids[at], str(table.rows[start + at])),
            "cells": [cells[column.name][at] for column in columns],
        }
        for at in range(len(part))
    ]


def _ids(frame: pd.DataFrame, identity: list[str]) -> list[str]:
    """Return the ids of the participants; empty texts where they have none."""
    columns = [map(_text, frame[name].tolist()) for name in identity if name in frame.columns]
    return [AND.join(parts) for parts in zip(*columns, strict=True)] if columns else [""] * len(frame)


def _cell(value: Any, ends: tuple[Any, Any] | None, codes: set[str]) -> tuple[str, str]:
    """Return a cell's text, and "empty", "code", "outside" or an empty text."""
    text = _text(value)
    if not text:
        return "", "empty"
    if text in codes:
        return text, "code"
    if ends is not None and isinstance(value, int | float) and None not in ends:
        return text, "" if ends[0] <= value <= ends[1] else "outside"
    return (text if len(text) <= _LONGEST else text[:_LONGEST] + "…"), ""


def _text(value: Any) -> str:
    if value is None or value is pd.NA or value != value:
        return ""
    return number(value).strip() if isinstance(value, int | float) else str(value).strip()


def _links(row: int, n_rows: int, column: int, n_columns: int, find: str) -> dict[str, str]:
    """Return the addresses of the neighbouring parts of the table; empty where there is none."""

    def place(r: int, c: int, *, there: bool) -> str:
        return "?" + urlencode({"row": r, "column": c, "find": find}) if there else ""

    last = (n_rows - 1) // ROWS * ROWS
    return {
        "first": place(0, column, there=row > 0),
        "up": place(max(row - ROWS, 0), column, there=row > 0),
        "down": place(row + ROWS, column, there=row + ROWS < n_rows),
        "last": place(last, column, there=row < last),
        "left": place(row, max(column - COLUMNS, 0), there=column > 0),
        "right": place(row, column + COLUMNS, there=column + COLUMNS < n_columns),
    }
