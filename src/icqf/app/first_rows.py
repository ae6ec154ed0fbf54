"""The first rows of a file, to choose the one with the names of the columns, and the sheet of a workbook."""

from __future__ import annotations

from dataclasses import replace

from starlette.responses import Response

from icqf.app import process
from icqf.app.pages import PageRequest, page, redirect, render, run_url
from icqf.data.settings import parameter_error
from icqf.io.formats import EXCEL, TEXT
from icqf.io.readers.files import first_rows
from icqf.workflow.options import StudyOptions

CELLS = 12  # of a row on the page


@page
def rows(request: PageRequest) -> Response:
    """Show the first rows of the file as they are."""
    run = request.usable_run
    options = run.options
    seen = request.app.worker.do(lambda: first_rows(options.answers, sheet=options.sheet))
    fixed = run.done or process.is_running(run)
    chosen = None if seen is None else options.header_row or seen.header_row
    return render(request, "first_rows.html", step="check", seen=seen, chosen=chosen, fixed=fixed, most=CELLS)


@page
def choose(request: PageRequest) -> Response:
    """Read the file with the chosen header, or another sheet; choices that name columns are dropped."""
    run = request.usable_run
    process.require_idle(run)
    options = run.options
    row, sheet = request.text("header_row"), request.text("sheet")
    if row and not row.isdecimal():
        raise parameter_error("header_row", " must be a whole number of at least 1.")
    given = {"sheet": sheet or options.sheet, "header_row": row}
    changed = StudyOptions.of(
        {"answers": options.answers} | {name: value for name, value in given.items() if value}
    )
    kept = ("codebook", "dictionary", "participants")
    run.save(replace(changed, **{name: getattr(options, name) for name in kept}))
    return redirect(run_url(run, "check"))


def has_rows(options: StudyOptions) -> bool:
    """Whether the file is of a kind whose header can be chosen."""
    return options.answers.suffix.lower() in (*TEXT, *EXCEL)
