"""The columns of the Check page: which are items, confounds, ids, and which visit is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from icqf.app import process
from icqf.app.codebook import write_codebook
from icqf.app.pages import PageRequest, form_field, page, redirect, render, run_url
from icqf.data.settings import parameter_error
from icqf.errors import InputError, listed
from icqf.io.formats import EXCEL, TEXT
from icqf.io.readers.files import first_rows
from icqf.io.study_files import AND
from icqf.screening.missing_codes import number
from icqf.workflow.check import StudyInspection
from icqf.workflow.options import StudyOptions

# Uses of a column that is not an item, in the order of the menu.
USES = {
    "": "left out",
    "confound": "confound",
    "id": "participant id",
    "group": "family or site",
    "weight": "survey weight",
}
MOST = 500  # columns on one page
_ONE = {"group": "families or sites", "weight": "survey weights"}
_OPTIONS = {"id": "id", "group": "groups", "weight": "weights"}


@page
def columns(request: PageRequest) -> Response:
    """Save what each column is used for, the visit and the missing codes; continue to the fit on request."""
    run = request.usable_run
    process.require_idle(run)
    options = run.options
    study: StudyInspection = request.app.worker.check_of(run).future.result()
    changed = _with_uses(request, options, study)
    given: dict[str, Any] = {}
    if "missing_codes" in request.form:  # a form with all settings of columns, not only the ticks of the data
        ranges = request.listed("confound_ranges")
        given["missing_codes"] = request.listed("missing_codes")
        given["confound_ranges"] = [each for each in ranges if each.split("=")[0] in changed.confounds]
    if "visit" in request.form:
        given["visit"] = _visit(request.text("visit"), study)
    changed = StudyOptions.of(changed.to_dict() | given)
    onward = "onward" in request.form
    if changed != options:
        run.save(changed)
    elif onward:
        return redirect(run_url(run, "fit"))
    return redirect(run_url(run, "check?onward=1" if onward else "check"))


def columns_shown(study: StudyInspection, find: str) -> dict[str, Any]:
    """Return the columns on the page: those whose name or wording holds a text, and not more than `MOST`."""
    found = [each for each in study.columns if find.lower() in f"{each.name} {each.wording}".lower()]
    return {"columns": found[:MOST], "n_columns": len(found), "find": find, "many": len(study.columns) > MOST}


def column_fields(options: StudyOptions, study: StudyInspection | None) -> list[dict[str, Any]]:
    """Return the fields below the table of columns."""
    codes = [number(code) for code in options.missing_codes]
    ranges = [f"{name}={low:g}:{high:g}" for name, low, high in options.confound_ranges]
    fields = [
        form_field(StudyOptions, "missing_codes", codes, about="", empty="such as 99, -9"),
        form_field(StudyOptions, "confound_ranges", ranges, about="", empty="such as age=5:21"),
    ]
    visits = () if study is None else study.visits
    if visits:
        choices = [(_visit_key(pairs), f"{_visit_text(pairs)} ({n} rows)") for pairs, n in visits]
        fields.insert(0, {"name": "visit", "choices": choices, "value": _visit_key(options.visit)})
    return fields


def _with_uses(request: PageRequest, options: StudyOptions, study: StudyInspection) -> StudyOptions:
    """Return the options with the uses of the columns in the form; other columns stay as they are."""
    uses = {column.name: column.role for column in study.columns}
    ticked = set(request.texts("use"))
    wanted = dict(uses)
    for at, name in enumerate(request.texts("column")):
        if name in uses:
            before, use = uses[name], request.text(f"use-{at}")
            if use not in USES:
                raise InputError("The settings were changed in another tab.", remedy="Reload the page.")
            chosen_use = use != (before if before != "item" else "")
            ticked_anew = (name in ticked) != (before == "item")
            wanted[name] = use if chosen_use or name not in ticked else "item" if ticked_anew else before
    named = {role: [name for name, use in wanted.items() if use == role] for role in ("item", *_OPTIONS)}
    for role, what in _ONE.items():
        if len(named[role]) > 1:
            raise InputError(f"Two columns are marked as {what}: {listed(named[role])}. Keep one of them.")
    confounds = [name for name in options.confounds if wanted.get(name, "confound") == "confound"]
    confounds += [name for name, use in wanted.items() if use == "confound" and name not in confounds]
    changes: dict[str, Any] = {"confounds": tuple(confounds)}
    for role, option in _OPTIONS.items():
        if named[role] != [name for name, use in uses.items() if use == role]:
            changes[option] = AND.join(named[role]) or None  # several columns are one id together
    if set(named["item"]) != {name for name, use in uses.items() if use == "item"}:
        changes |= _items(request, options, study, named["item"])
    return replace(options, **changes)


def _items(
    request: PageRequest, options: StudyOptions, study: StudyInspection, names: list[str]
) -> Mapping[str, Any]:
    """Return the options that make these columns the items."""
    if not names:
        raise InputError("No item is left.", remedy="Tick the columns that hold answers.")
    known = {column.name for column in study.columns}
    reverse = tuple(name for name in options.reverse if name in names or name not in known)
    changes = {"items": tuple(names), "subscales": (), "reverse": reverse}
    if options.codebook is None or set(names) <= {item.name for item in study.items}:
        return changes
    run = request.run_or_404  # items that the codebook lacks, or that were selected by it
    return changes | {"codebook": write_codebook(run, study, names), "items": ()}


def _visit_key(pairs: Any) -> str:
    return json.dumps([list(pair) for pair in pairs]) if pairs else ""


def _visit_text(pairs: Any) -> str:
    return " and ".join(f"{column} {value or 'empty'}" for column, value in pairs)


def _visit(key: str, study: StudyInspection) -> list[str]:
    """Return the visit that was chosen in the menu, as options take it; empty for all rows."""
    chosen = next((pairs for pairs, _ in study.visits if _visit_key(pairs) == key), ())
    return [f"{column}={value}" for column, value in chosen]


# The first rows of a file, to choose the one with the names of the columns, and the sheet of a workbook.

MOST_CELLS = 12  # of a row on the page


@page
def rows(request: PageRequest) -> Response:
    """Show the first rows of the file as they are."""
    run = request.usable_run
    options = run.options
    seen = request.app.worker.do(lambda: first_rows(options.answers, sheet=options.sheet))
    fixed = run.done or process.is_running(run)
    chosen = None if seen is None else options.header_row or seen.header_row
    words: dict[str, Any] = {"seen": seen, "chosen": chosen, "fixed": fixed, "most": MOST_CELLS}
    return render(request, "first_rows.html", step="check", **words)


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
