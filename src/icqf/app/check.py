"""The Check page: what will be analysed, the findings and their remedies, and the columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import JSONResponse, Response

from icqf.app.codebook import write_codebook
from icqf.app.pages import (
    PageRequest,
    command,
    form_field,
    in_words,
    page,
    redirect,
    render,
    run_url,
    waiting,
)
from icqf.app.process import PATIENCE, PendingCheck
from icqf.app.runs import DATA
from icqf.data.check import TITLES, Finding, Findings
from icqf.data.settings import parameter_error
from icqf.errors import Advice, InputError, listed
from icqf.io.atomic import write_bytes
from icqf.io.codebook import format_codebook
from icqf.io.formats import EXCEL, READERS, TEXT
from icqf.io.readers.files import first_rows
from icqf.io.study_files import AND, FILES
from icqf.screening.column_names import folded
from icqf.screening.missing_codes import number
from icqf.workflow.check import Remedy, StudyInspection, remedies_of, remedies_together
from icqf.workflow.options import StudyOptions

_SHOWN = 12  # names in a sentence
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
MOST_CELLS = 12  # of a row on the page


@page
def check(request: PageRequest) -> Response:
    """Show what will be analysed and the findings, or the progress of reading the file."""
    run = request.usable_run
    pending = request.app.worker.check_of(run)
    if not pending.ready(PATIENCE):
        return waiting(request, pending, step="check")
    options, findings = run.options, _findings(pending)
    study: StudyInspection | None = None if pending.future.exception() else pending.future.result()
    if study is not None and "onward" in request.http.query_params and not findings.must_fix:
        return redirect(run_url(run, "fit"))
    if study is not None or options == _files_only(options):
        run.mark_unread(study is None)
    find = request.http.query_params.get("find", "").strip()
    return render(
        request,
        "check.html",
        step="check",
        cards=_cards(findings, options),
        titles=TITLES,
        overview=None if study is None else study.findings.overview,
        read=study is not None,
        verdict="" if study is None else study.findings.verdict,
        blocked=study is None or study.findings.must_fix,
        options=options,
        changed=options != _files_only(options),
        uses=USES,
        endings=",".join(READERS),
        fields=_column_fields(options, study),
        has_rows=options.answers.suffix.lower() in (*TEXT, *EXCEL),  # whose header can be chosen
        command=command("check", "--config", run.config),
        config=run.settings,
        **({} if study is None else _columns_shown(study, find)),
    )


@page
def check_progress(request: PageRequest) -> Response:
    """Return the progress of the check as JSON."""
    pending = request.app.worker.check_of(request.usable_run)
    return JSONResponse({"ready": pending.ready(), "text": pending.text, "what": pending.words})


@page
def remedy(request: PageRequest) -> Response:
    """Apply the remedy that was chosen for a finding; it may be the codebook that the answers suggest."""
    from icqf.workflow.check import guess_codebook

    run = request.idle_run
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
        guess = request.app.worker.do(lambda: guess_codebook(options.answers, **options.arrangement))
        path = run.folder / DATA / "codebook-suggested.csv"
        write_bytes(path, format_codebook(guess.items, remarks=guess.remarks).encode())
        changed = replace(changed, codebook=path)
    run.save(changed)
    return redirect(run_url(run, "check"))


@page
def reset(request: PageRequest) -> Response:
    """Discard all settings but the files."""
    run = request.idle_run
    run.save(_files_only(run.options))
    return redirect(run_url(run, "check"))


_ALIKE = "The same holds for {n} items: {items}."
_LIKE = {
    "looks-reversed": "{n} items run against the others, so they look reversed: {items}. Reverse those that "
    "are worded the other way round; leave a trait or mood of its own unchanged.",
    "may-be-reversed": "{n} items may be reversed: {items}. Most resamples do not find them, and one in "
    "five such items is not reversed: decide by their wordings.",
}


def _text(finding: Finding, remedies: tuple[Remedy, ...]) -> str:
    """Return what a card says: buttons stand for the advice that names settings, not for what to decide."""
    return finding.message if remedies and isinstance(finding.remedy, Advice) else in_words(finding)


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
        parts = [{"text": _text(finding, remedies), "remedies": remedies} for finding, remedies in group]
        first, together = group[0][0], remedies_together([each for each, _ in group], findings, options)
        if len(group) == 1:
            cards.append({"severity": first.severity, **parts[0], "parts": []})
            continue
        names = [str(finding.item) for finding, _ in group]
        value = first.fields.get("value")
        about = "{value} looks out of place in {n} items: {items}." if value is not None else _ALIKE
        template = _LIKE.get(first.code, about)
        shown = number(value) if isinstance(value, float | int) else value
        text = template.format(n=len(names), items=folded(names, most=_SHOWN), value=shown)
        keys = {remedy.key for remedy in together}
        parts = [
            {"text": part["text"], "remedies": tuple(one for one in remedies if one.key not in keys)}
            for part, (_, remedies) in zip(parts, group, strict=True)
        ]
        cards.append({"severity": first.severity, "text": text, "remedies": together, "parts": parts})
    return cards


def _files_only(options: StudyOptions) -> StudyOptions:
    return StudyOptions(**{name: getattr(options, name) for name in FILES})


def _findings(pending: PendingCheck) -> Findings:
    """Return the findings; an unreadable file is one."""
    try:
        findings: Findings = pending.future.result().findings
    except InputError as error:
        return Findings((Finding.of(error),))
    return findings


@page
def columns(request: PageRequest) -> Response:
    """Save what each column is used for, the visit and the missing codes; continue to the fit on request."""
    run = request.idle_run
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


def _columns_shown(study: StudyInspection, find: str) -> dict[str, Any]:
    """Return the columns on the page: those whose name or wording holds a text, and not more than `MOST`."""
    found = [each for each in study.columns if find.lower() in f"{each.name} {each.wording}".lower()]
    return {"columns": found[:MOST], "n_columns": len(found), "find": find, "many": len(study.columns) > MOST}


def _column_fields(options: StudyOptions, study: StudyInspection | None) -> list[dict[str, Any]]:
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


@page
def rows(request: PageRequest) -> Response:
    """Show the first rows of the file as they are."""
    run = request.usable_run
    options = run.options
    seen = request.app.worker.do(lambda: first_rows(options.answers, sheet=options.sheet))
    chosen = None if seen is None else options.header_row or seen.header_row
    return render(request, "first_rows.html", step="check", seen=seen, chosen=chosen, most=MOST_CELLS)


@page
def choose(request: PageRequest) -> Response:
    """Read the file with the chosen header, or another sheet; choices that name columns are dropped."""
    run = request.idle_run
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
