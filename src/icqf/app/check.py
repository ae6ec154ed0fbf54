"""The Check page: what will be analysed, findings and their remedies, roles of columns, the codebook."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse, Response

from icqf.app import process
from icqf.app.columns import USES, column_fields, columns_shown
from icqf.app.pages import PageRequest, command, in_words, page, redirect, render, run_url
from icqf.app.process import PATIENCE, PendingCheck
from icqf.app.runs import DATA, Run
from icqf.data.check import TITLES, Finding, Findings
from icqf.data.questionnaire import Item
from icqf.errors import InputError
from icqf.io.atomic import write_bytes
from icqf.io.codebook import format_codebook, item_of
from icqf.io.formats import READERS
from icqf.io.study_files import FILES
from icqf.screening.column_names import folded
from icqf.screening.missing_codes import number
from icqf.workflow.check import Remedy, StudyInspection, remedies_of, remedies_together
from icqf.workflow.options import StudyOptions

ROWS = 60  # rows of the codebook on one page
_SHOWN = 12  # names in a sentence
COLUMNS = ("wording", "min", "max", "subscale", "missing", "labels")
# The fields that can be edited, with their names on the page.
_EDITED = {
    **{"use": "used", "wording": "wording", "min": "lowest", "max": "highest", "reverse": "reversed"},
    **{"subscale": "subscale", "missing": "missing", "labels": "labels"},
}
_SAVING = threading.Lock()


@page
def check(request: PageRequest) -> Response:
    """Show what will be analysed and the findings, or the progress of reading the file."""
    run = request.usable_run
    pending = request.app.worker.check_of(run)
    if not pending.ready(PATIENCE):
        values: dict[str, Any] = {"text": pending.text, "what": pending.words, "poll": run_url(run, "look")}
        return render(request, "waiting.html", step="check", **values)
    options, findings = run.options, _findings(pending)
    study: StudyInspection | None = None if pending.future.exception() else pending.future.result()
    if study is not None and "onward" in request.http.query_params and not findings.must_fix:
        return redirect(run_url(run, "fit"))
    if study is not None or options == _files_only(options):
        run.mark_unread(study is None)
    values = {"cards": _cards(findings, options), **_page_values(run, options, study)}
    find = request.http.query_params.get("find", "").strip()
    if study is not None:
        values |= columns_shown(study, find)
    return render(request, "check.html", step="check", **values)


@page
def check_progress(request: PageRequest) -> Response:
    """Return the progress of the check as JSON."""
    pending = request.app.worker.check_of(request.usable_run)
    return JSONResponse({"ready": pending.ready(), "text": pending.text, "what": pending.words})


@page
def remedy(request: PageRequest) -> Response:
    """Apply the remedy that was chosen for a finding."""
    run = request.usable_run
    process.require_idle(run)
    options = run.options
    findings = _findings(request.app.worker.check_of(run))
    cards = _cards(findings, options)
    every = [part for card in cards for part in (card, *card["parts"])]
    offered = {each.key: each for part in every for each in part["remedies"]}
    chosen = offered.get(request.text("remedy"))
    if chosen is None:
        raise InputError("The settings were changed in another tab.", remedy="Reload the findings.")
    changed = chosen.applied(options)
    if chosen.codebook:
        changed = replace(changed, codebook=_write_suggested_codebook(request, run, options))
    run.save(changed)
    return redirect(run_url(run, "check"))


@page
def reset(request: PageRequest) -> Response:
    """Discard all settings but the files."""
    run = request.usable_run
    process.require_idle(run)
    run.save(_files_only(run.options))
    return redirect(run_url(run, "check"))


@page
def codebook(request: PageRequest) -> Response:
    """Show some rows of the codebook for editing."""
    run = request.usable_run
    rows = codebook_rows(request.app.worker.check_of(run).future.result())
    return _codebook_page(request, run, rows, rows)


@page
def save_codebook(request: PageRequest) -> Response:
    """Write the edited codebook, which the fit then uses."""
    run = request.usable_run
    process.require_idle(run)
    with _SAVING:
        return _save_rows(request, run)


def _save_rows(request: PageRequest, run: Run) -> Response:
    """Save the submitted rows, unless another tab has changed them since they were shown."""
    saved = codebook_rows(request.app.worker.check_of(run).future.result())
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
        items = [item_of(codebook_entry(row), f"Item {row['name']!r}") for row in rows if row["use"]]
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
    rows = [row for row in codebook_rows(study) if row["name"] in names]
    return _written(run, [item_of(codebook_entry(row), f"Item {row['name']!r}") for row in rows])


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
        fixed=run.done or process.is_running(run),
        code=400 if fault else 200 if others is None else 409,
    )


def codebook_rows(study: StudyInspection) -> list[dict[str, Any]]:
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


def codebook_entry(row: Mapping[str, Any]) -> dict[str, Any]:
    direction = "reverse" if row["reverse"] else ""
    return {**{column: row[column] for column in ("name", *COLUMNS)}, "direction": direction}


def _write_suggested_codebook(request: PageRequest, run: Run, options: StudyOptions) -> Path:
    """Write the codebook that the answers suggest, and return its path."""
    from icqf.workflow.codebook import guess_codebook

    guess = request.app.worker.do(
        lambda: guess_codebook(options.answers, dictionary=options.dictionary, visit=options.visit)
    )
    path = run.folder / DATA / "codebook-suggested.csv"
    write_bytes(path, format_codebook(guess.items, remarks=guess.remarks).encode())
    return path


_ALIKE = "The same holds for {n} items: {items}."
_LIKE = {"looks-reversed": "{n} items run against the others, so they look reversed: {items}."}


def _cards(findings: Findings, options: StudyOptions) -> list[dict[str, Any]]:
    """Return the findings with their remedies, those that are alike as parts of one card."""
    groups: dict[object, list[tuple[Finding, tuple[Remedy, ...]]]] = {}
    for at, finding in enumerate(findings.shown):
        remedies = remedies_of(finding, findings, options)
        alike = finding.item is not None and remedies
        key = (finding.severity, finding.code, finding.fields.get("value")) if alike else at
        groups.setdefault(key, []).append((finding, remedies))
    cards = []
    for group in groups.values():
        parts = [
            {"text": finding.message if remedies else in_words(finding), "remedies": remedies}
            for finding, remedies in group
        ]
        first, together = group[0][0], remedies_together([each for each, _ in group], findings, options)
        if len(group) == 1:
            cards.append({"severity": first.severity, **parts[0], "parts": []})
            continue
        names = [str(finding.item) for finding, _ in group]
        value = first.fields.get("value")
        about = "{value} looks out of place in {n} items: {items}." if value is not None else _ALIKE
        said = _LIKE.get(first.code, about)
        shown = number(value) if isinstance(value, float | int) else value
        text = said.format(n=len(names), items=folded(names, most=_SHOWN), value=shown)
        keys = {remedy.key for remedy in together}
        parts = [
            {"text": part["text"], "remedies": tuple(one for one in remedies if one.key not in keys)}
            for part, (_, remedies) in zip(parts, group, strict=True)
        ]
        cards.append({"severity": first.severity, "text": text, "remedies": together, "parts": parts})
    return cards


def _files_only(options: StudyOptions) -> StudyOptions:
    return StudyOptions(**{name: getattr(options, name) for name in FILES})


def _page_values(run: Run, options: StudyOptions, study: StudyInspection | None) -> dict[str, Any]:
    """Return what the page shows in addition to the findings."""
    overview = None if study is None else study.findings.overview
    return {
        "titles": TITLES,
        "overview": overview,
        "verdict": "" if study is None else study.findings.verdict,
        "blocked": study is None or study.findings.must_fix,
        "options": options,
        "changed": options != _files_only(options),
        "uses": USES,
        "endings": ",".join(READERS),
        "fields": column_fields(options, study),
        "fixed": run.done or process.is_running(run),
        "command": command("check", "--config", run.config),
        "config": run.settings,
    }


def _findings(pending: PendingCheck) -> Findings:
    """Return the findings; an unreadable file is one."""
    try:
        findings: Findings = pending.future.result().findings
    except InputError as error:
        return Findings((Finding.of(error),))
    return findings
