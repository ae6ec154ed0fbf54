"""Check: what will be analysed, what was found with its remedies, the roles of columns, and the codebook."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import JSONResponse, Response

from icqf.app import process
from icqf.app.pages import Asked, command, form_field, in_words, of_run, page, shown, to
from icqf.app.process import PATIENCE, Look
from icqf.app.runs import DATA, Run
from icqf.data.check import TITLES, Finding, Findings
from icqf.errors import InputError
from icqf.io.atomic import write_bytes
from icqf.io.codebook import format_codebook, item_of
from icqf.io.study_files import FILES
from icqf.screening.missing_codes import number
from icqf.workflow.check import Remedy, StudyLook, remedies_of, reversing_all
from icqf.workflow.options import StudyOptions

ROWS = 60  # of the codebook on one page
COLUMNS = ("wording", "min", "max", "subscale", "missing", "labels")
# What can be edited, as the page calls it.
_EDITED = {
    **{"use": "used", "wording": "wording", "min": "lowest", "max": "highest", "reverse": "reversed"},
    **{"subscale": "subscale", "missing": "missing", "labels": "labels"},
}
_SAVING = threading.Lock()


@page
def check(asked: Asked) -> Response:
    """What will be analysed and what was found; while the file is read, how far that is."""
    run = asked.the_run
    look = asked.top.desk.look_at(run)
    if not look.ready(PATIENCE):
        values: dict[str, Any] = {"said": look.said, "what": look.words, "poll": of_run(run, "look")}
        return shown(asked, "waiting.html", step="check", **values)
    options = run.options
    findings = _findings(look)
    found: StudyLook | None = None if look.future.exception() else look.future.result()
    points = _points(findings, options)
    return shown(asked, "check.html", step="check", points=points, **_shared(run, options, found))


@page
def look(asked: Asked) -> Response:
    """How far the look at the files is, for the page that waits for it."""
    found = asked.top.desk.look_at(asked.the_run)
    return JSONResponse({"ready": found.ready(), "text": found.said, "what": found.words})


@page
def remedy(asked: Asked) -> Response:
    """Do what was chosen about a finding."""
    run = asked.the_run
    process.require_idle(run)
    options = run.options
    findings = _findings(asked.top.desk.look_at(run))
    offered = {each.key: each for point in _points(findings, options) for each in point["remedies"]}
    chosen = offered.get(asked.text("remedy"))
    if chosen is None:
        raise InputError("The settings were changed in another tab.", remedy="Look at the findings again.")
    changed = chosen.applied(options)
    if chosen.codebook:
        changed = replace(changed, codebook=_guessed(asked, run, options))
    run.save(changed)
    return to(of_run(run, "check"))


@page
def columns(asked: Asked) -> Response:
    """Take the roles of the columns, and values that mean no answer."""
    run = asked.the_run
    process.require_idle(run)
    plain = run.options.to_dict()
    given = {
        **{name: asked.text(name) for name in ("id", "groups", "weights")},
        "confounds": asked.texts("confounds"),
        "missing_codes": asked.listed("missing_codes"),
        "confound_ranges": asked.listed("confound_ranges"),
    }
    kept = {name: value for name, value in plain.items() if name not in given}
    ranges = [each for each in given["confound_ranges"] if each.split("=")[0] in given["confounds"]]
    run.save(StudyOptions.of(kept | {k: v for k, v in given.items() if v} | {"confound_ranges": ranges}))
    return to(of_run(run, "check"))


@page
def reset(asked: Asked) -> Response:
    """Begin again with the files alone."""
    run = asked.the_run
    process.require_idle(run)
    run.save(_files_alone(run.options))
    return to(of_run(run, "check"))


@page
def codebook(asked: Asked) -> Response:
    """Show a part of the codebook to edit."""
    run = asked.the_run
    rows = _grid(asked.top.desk.look_at(run).future.result())
    return _codebook_page(asked, run, rows, rows)


@page
def save_codebook(asked: Asked) -> Response:
    """Write the codebook as it was edited; the fit then follows it alone."""
    run = asked.the_run
    process.require_idle(run)
    with _SAVING:
        return _saved(asked, run)


def _saved(asked: Asked, run: Run) -> Response:
    """Save the rows that were sent, unless they were changed in another tab since they were shown."""
    saved = _grid(asked.top.desk.look_at(run).future.result())
    rows = [dict(row) for row in saved]
    known = {row["name"]: row for row in rows}
    names = asked.texts("name")
    changed = asked.text("version") != _version([row for name in names if (row := known.get(name))])
    for at, name in enumerate(names):
        if name in known:
            known[name].update(
                {column: asked.text(f"{column}-{at}") for column in COLUMNS},
                use=f"use-{at}" in asked.form,
                reverse=f"reverse-{at}" in asked.form,
            )
    try:
        items = [item_of(_entry(row), f"Item {row['name']!r}") for row in rows if row["use"]]
        if not items:
            raise InputError("No item is left.", remedy="Keep at least one row ticked.")
    except InputError as error:
        return _codebook_page(asked, run, rows, saved, fault=str(error))
    if changed:
        return _codebook_page(asked, run, rows, saved, others=_differences(saved, rows))
    path = run.folder / DATA / "codebook-edited.csv"
    path.parent.mkdir(exist_ok=True)
    write_bytes(path, format_codebook(items).encode())
    run.save(replace(run.options, codebook=path, items=(), subscales=(), reverse=()))
    ahead = asked.text("ahead")
    return to(of_run(run, f"codebook?from={ahead}") if ahead.isdigit() else of_run(run, "check"))


def _version(rows: list[dict[str, Any]]) -> str:
    """What tells rows of the codebook from the same rows after a change."""
    content = [[row[name] for name in ("name", *_EDITED)] for row in rows]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _differences(saved: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[str]:
    """Where the rows of the page differ from those that are saved, in words."""
    return [
        f"{mine['name']}, {_EDITED[name]}: {_shown(theirs[name])} is saved, yours is {_shown(mine[name])}"
        for theirs, mine in zip(saved, rows, strict=True)
        for name in _EDITED
        if theirs[name] != mine[name]
    ]


def _shown(value: Any) -> str:
    return {True: "yes", False: "no", "": "nothing"}.get(value) or f"“{value}”"


def _codebook_page(
    asked: Asked,
    run: Run,
    rows: list[dict[str, Any]],
    saved: list[dict[str, Any]],
    *,
    fault: str = "",
    others: list[str] | None = None,
) -> Response:
    """A part of the codebook to edit: `rows`, of which `saved` is the present state.

    `others` lists what differs where the rows were changed in another tab meanwhile.
    """
    sought = asked.request.query_params.get("find", "").strip().lower()
    chosen = [row for row in rows if sought in f"{row['name']} {row['wording']}".lower()]
    given = asked.request.query_params.get("from", "0")
    wanted = int(given) if given.isdecimal() and len(given) < 10 else 0
    first = wanted if wanted < len(chosen) else 0
    part = chosen[first : first + ROWS]
    kept = {row["name"]: row for row in saved}
    return shown(
        asked,
        "codebook.html",
        step="check",
        rows=part,
        version=_version([kept[row["name"]] for row in part]),
        others=others,
        first=first,
        ahead=first + ROWS if first + ROWS < len(chosen) else "",
        before=max(first - ROWS, 0) if first else "",
        n=len(chosen),
        find=sought,
        fault=fault,
        fixed=run.done or process.is_running(run),
        code=400 if fault else 200 if others is None else 409,
    )


def _grid(look: StudyLook) -> list[dict[str, Any]]:
    """The codebook as it is edited: a row for each item, then one for each column that is left out."""
    rows = []
    for use, items in ((True, look.items), (False, look.others)):
        for item in items:
            rows.append(
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
                    "remark": look.remarks.get(item.name, ""),
                }
            )
    return rows


def _entry(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {column: row[column] for column in COLUMNS}
    return {"name": row["name"], **kept, "direction": "reverse" if row["reverse"] else ""}


def _guessed(asked: Asked, run: Run, options: StudyOptions) -> Any:
    """Write the codebook that is suggested for the answers; return its place."""
    from icqf.workflow.codebook import guess_codebook

    guess = asked.top.desk.do(
        lambda: guess_codebook(options.answers, dictionary=options.dictionary, visit=options.visit)
    )
    path = run.folder / DATA / "codebook-suggested.csv"
    write_bytes(path, format_codebook(guess.items, remarks=guess.remarks).encode())
    return path


def _points(findings: Findings, options: StudyOptions) -> list[dict[str, Any]]:
    """The findings as the page shows them, each with its remedies."""
    together = reversing_all(findings, options)
    points = []
    for finding in findings.shown:
        remedies: tuple[Remedy, ...] = remedies_of(finding, findings, options)
        if together is not None and finding.code == "looks-reversed":
            remedies, together = (together, *remedies), None
        said = finding.message if remedies else in_words(finding)
        points.append({"severity": finding.severity, "said": said, "remedies": remedies})
    return points


def _files_alone(options: StudyOptions) -> StudyOptions:
    return StudyOptions(**{name: getattr(options, name) for name in FILES})


def _shared(run: Run, options: StudyOptions, look: StudyLook | None) -> dict[str, Any]:
    """What the page of findings shows besides them."""
    overview = None if look is None else look.findings.overview
    used = set() if look is None else {item.name for item in look.items}
    used |= set() if overview is None else {overview.id}
    return {
        "titles": TITLES,
        "overview": overview,
        "verdict": "" if look is None else look.findings.verdict,
        "blocked": look is None or look.findings.must_fix,
        "options": options,
        "changed": options != _files_alone(options),
        "others": () if look is None else [name for name in look.columns if name not in used],
        "beside": () if look is None else look.beside,
        "fields": _roles(options, () if look is None else (*look.columns, *look.beside)),
        "fixed": run.done or process.is_running(run),
        "command": command("check", "--config", run.config),
        "config": run.settings,
    }


def _roles(options: StudyOptions, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """The fields that say which columns have a role, and what values mean no answer."""
    empty = {"id": "recognised by name", "groups": "none", "weights": "none"}
    codes = [number(code) for code in options.missing_codes]
    ranges = [f"{name}={low:g}:{high:g}" for name, low, high in options.confound_ranges]
    chosen = [
        form_field(
            StudyOptions, name, getattr(options, name), about="", shape="list", choices=columns, empty=none
        )
        for name, none in empty.items()
    ]
    return [
        *chosen,
        form_field(StudyOptions, "missing_codes", codes, about="", empty="such as 99, -9"),
        form_field(StudyOptions, "confound_ranges", ranges, about="", empty="such as age=5:21"),
    ]


def _findings(look: Look) -> Findings:
    """What was found, also where the file could not be read."""
    try:
        found: Findings = look.future.result().findings
    except InputError as error:
        return Findings((Finding.of(error),))
    return found
