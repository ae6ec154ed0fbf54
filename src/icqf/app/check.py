"""The Check page: what will be analysed, the findings and their remedies, and the columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse, Response

from icqf.app import process
from icqf.app.columns import USES, column_fields, columns_shown, has_rows
from icqf.app.pages import PageRequest, command, in_words, page, redirect, render, run_url
from icqf.app.process import PATIENCE, PendingCheck
from icqf.app.runs import DATA, Run
from icqf.data.check import TITLES, Finding, Findings
from icqf.errors import Advice, InputError
from icqf.io.atomic import write_bytes
from icqf.io.codebook import format_codebook
from icqf.io.formats import READERS
from icqf.io.study_files import FILES
from icqf.screening.column_names import folded
from icqf.screening.missing_codes import number
from icqf.workflow.check import Remedy, StudyInspection, remedies_of, remedies_together
from icqf.workflow.options import StudyOptions

_SHOWN = 12  # names in a sentence


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


def _write_suggested_codebook(request: PageRequest, run: Run, options: StudyOptions) -> Path:
    """Write the codebook that the answers suggest, and return its path."""
    from icqf.workflow.codebook import guess_codebook

    guess = request.app.worker.do(lambda: guess_codebook(options.answers, **options.arrangement))
    path = run.folder / DATA / "codebook-suggested.csv"
    write_bytes(path, format_codebook(guess.items, remarks=guess.remarks).encode())
    return path


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
        "read": study is not None,
        "verdict": "" if study is None else study.findings.verdict,
        "blocked": study is None or study.findings.must_fix,
        "options": options,
        "changed": options != _files_only(options),
        "uses": USES,
        "endings": ",".join(READERS),
        "fields": column_fields(options, study),
        "has_rows": has_rows(options),
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
