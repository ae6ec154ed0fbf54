"""The Codebook page: all items as a table to edit, some rows at a time."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.responses import Response

from icqf.app.pages import PageRequest, page, redirect, render, run_url
from icqf.app.runs import DATA, Run
from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.io.atomic import write_bytes
from icqf.io.codebook import format_codebook, item_of
from icqf.screening.missing_codes import number
from icqf.workflow.check import StudyInspection

ROWS = 60  # rows of the codebook on one page
COLUMNS = ("wording", "min", "max", "subscale", "missing", "labels")
# The fields that can be edited, with their names on the page.
_EDITED = {
    **{"use": "used", "wording": "wording", "min": "lowest", "max": "highest", "reverse": "reversed"},
    **{"subscale": "subscale", "missing": "missing", "labels": "labels"},
}
_SAVING = threading.Lock()


@page
def codebook(request: PageRequest) -> Response:
    """Show some rows of the codebook for editing."""
    run = request.usable_run
    rows = _rows_of(request.app.worker.check_of(run).future.result())
    return _codebook_page(request, run, rows, rows)


@page
def save_codebook(request: PageRequest) -> Response:
    """Write the edited codebook, which the fit then uses."""
    run = request.idle_run
    with _SAVING:
        return _save_rows(request, run)


def _save_rows(request: PageRequest, run: Run) -> Response:
    """Save the submitted rows, unless another tab has changed them since they were shown."""
    saved = _rows_of(request.app.worker.check_of(run).future.result())
    rows = [dict(row) for row in saved]
    known = {row["name"]: row for row in rows}
    names = request.texts("name")
    changed = request.text("version") != _version([row for name in names if (row := known.get(name))])
    for at, name in enumerate(names):
        if name in known:
            known[name].update(
                {column: request.text(f"{column}-{at}") for column in COLUMNS},
                use=f"use-{at}" in request.form,
                reverse=f"reverse-{at}" in request.form,
            )
    try:
        items = [item_of(_entry(row), f"Item {row['name']!r}") for row in rows if row["use"]]
        if not items:
            raise InputError("No item is left.", remedy="Keep at least one row ticked.")
    except InputError as error:
        return _codebook_page(request, run, rows, saved, fault=str(error))
    if changed:
        return _codebook_page(request, run, rows, saved, others=_differences(saved, rows))
    path = _written(run, items)
    run.save(replace(run.options, codebook=path, items=(), subscales=(), reverse=()))
    next_row = request.text("next_row")
    return redirect(
        run_url(run, f"codebook?from={next_row}") if next_row.isdigit() else run_url(run, "check")
    )


def write_codebook(run: Run, study: StudyInspection, names: Collection[str]) -> Path:
    """Write a codebook of the columns `names`, and return its path."""
    rows = [row for row in _rows_of(study) if row["name"] in names]
    return _written(run, [item_of(_entry(row), f"Item {row['name']!r}") for row in rows])


def _written(run: Run, items: Sequence[Item]) -> Path:
    path = run.folder / DATA / "codebook-edited.csv"
    path.parent.mkdir(exist_ok=True)
    write_bytes(path, format_codebook(items).encode())
    return path


def _version(rows: list[dict[str, Any]]) -> str:
    """Return a hash of rows of the codebook."""
    content = [[row[name] for name in ("name", *_EDITED)] for row in rows]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _differences(saved: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[str]:
    """Say where the rows of the page differ from those that are saved."""
    return [
        f"{mine['name']}, {_EDITED[name]}: saved {_in_quotes(theirs[name])}, yours {_in_quotes(mine[name])}"
        for theirs, mine in zip(saved, rows, strict=True)
        for name in _EDITED
        if theirs[name] != mine[name]
    ]


def _in_quotes(value: Any) -> str:
    return {True: "yes", False: "no", "": "nothing"}.get(value) or f"“{value}”"


def _codebook_page(
    request: PageRequest,
    run: Run,
    rows: list[dict[str, Any]],
    saved: list[dict[str, Any]],
    *,
    fault: str = "",
    others: list[str] | None = None,
) -> Response:
    """Show some of `rows` for editing; `saved` is their stored state.

    `others` lists the differences if another tab has changed the rows meanwhile.
    """
    find = request.http.query_params.get("find", "").strip().lower()
    matching = [row for row in rows if find in f"{row['name']} {row['wording']}".lower()]
    start = request.http.query_params.get("from", "0")
    wanted = int(start) if start.isdecimal() and len(start) < 10 else 0
    first = wanted if wanted < len(matching) else 0
    part = matching[first : first + ROWS]
    stored = {row["name"]: row for row in saved}
    return render(
        request,
        "codebook.html",
        step="check",
        rows=part,
        version=_version([stored[row["name"]] for row in part]),
        others=others,
        first=first,
        next_row=first + ROWS if first + ROWS < len(matching) else "",
        before=max(first - ROWS, 0) if first else "",
        n=len(matching),
        find=find,
        fault=fault,
        code=400 if fault else 200 if others is None else 409,
    )


def _rows_of(study: StudyInspection) -> list[dict[str, Any]]:
    """Return the rows of the codebook table: the items, then the excluded columns."""
    return [
        {
            "name": item.name,
            "use": use,
            "wording": item.wording,
            "min": "" if item.min is None else number(item.min),
            "max": "" if item.max is None else number(item.max),
            "reverse": item.reverse,
            "subscale": item.subscale,
            "missing": "; ".join(map(number, item.missing_codes)),
            "labels": "; ".join(f"{number(value)}={text}" for value, text in item.labels),
            "remark": study.remarks.get(item.name, ""),
        }
        for use, items in ((True, study.items), (False, study.others))
        for item in items
    ]


def _entry(row: Mapping[str, Any]) -> dict[str, Any]:
    direction = "reverse" if row["reverse"] else ""
    return {**{column: row[column] for column in ("name", *COLUMNS)}, "direction": direction}
