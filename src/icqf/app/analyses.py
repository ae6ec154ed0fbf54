"""The More analyses pages: forms made from each command's options, their progress, and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.responses import Response

from icqf.app import process
from icqf.app.fit import running
from icqf.app.offers import Offer
from icqf.app.pages import (
    PageRequest,
    as_in_forms,
    command,
    entered,
    form_field,
    in_words,
    job_url,
    page,
    redirect,
    render,
    run_url,
    waiting,
)
from icqf.app.process import PATIENCE
from icqf.app.runs import FurtherAnalysis, Run
from icqf.data.settings import options_in
from icqf.errors import InputError, short
from icqf.io.study_files import StudyFiles
from icqf.workflow.options import InvarianceOptions
from icqf.workflow.results_folder import PROVENANCE

_NORMS = "norms.icqf-norms"
_OF_THE_STUDY = (*options_in(StudyFiles), "confound_ranges", "missing_confounds", "smallest_category")


@page
def more(request: PageRequest) -> Response:
    """Show which analyses are possible, and those that were made."""
    run = request.usable_run
    return render(request, "more.html", step="more", made=_made(run))


@page
def form(request: PageRequest) -> Response:
    """Show the options of an analysis, filled in as in an earlier one if that is named."""
    run, tool, offer = _offered(request)
    earlier = run.analysis(request.http.query_params.get("from", ""))
    values = _given(run, tool, offer) if earlier is None else earlier.options.to_dict()
    return _form(request, run, tool, offer, values)


@page
def begin(request: PageRequest) -> Response:
    """Save the options of an analysis, and start it."""
    run, tool, offer = _offered(request)
    fields, given = _fields(request, run, offer, {}), _given(run, tool, offer)
    if fields is None:
        return redirect(run_url(run, f"more/{tool}"))
    added: list[Path] = []
    shown = {each["name"]: entered(request, offer.kind, each) for each in fields if each["shape"] != "file"}
    try:
        for each in fields:
            chosen = request.file(each["name"]) if each["shape"] == "file" else None
            if chosen is not None:
                added.append(run.add(chosen.filename or "", chosen.file, folder="new"))
                shown[each["name"]] = added[-1]
        if "answers" in shown:  # another file is read by its own description
            given = {name: value for name, value in given.items() if name in ("model", "results")}
        if shown.get("norms"):
            shown["norms"] = _norms_of(run)[shown["norms"]]
        kept = {name: value for name, value in given.items() if name not in shown}
        options = offer.kind.of(
            kept | {name: value for name, value in shown.items() if value not in ("", [])}
        )
    except (InputError, KeyError) as error:
        for path in added:
            path.unlink(missing_ok=True)
        fault = in_words(error, offer.kind) if isinstance(error, InputError) else "These norms were removed."
        return _form(request, run, tool, offer, given | shown, fault=fault)
    job = run.begin(tool, options)
    process.start(job)
    return redirect(job_url(job))


@page
def show(request: PageRequest) -> Response:
    """Show the results of an analysis, its progress, or why it failed."""
    job: Any = request.job
    offer, state = job.offer, process.status(job)
    heading = f"{offer.title}: {job.run.about['title']}"
    if state == "running":
        return running(request, job, heading, step="more")
    return render(
        request,
        "analysis.html",
        step="more",
        heading=heading,
        offer=offer,
        job=job,
        url=job_url(job),
        status=state,
        error=as_in_forms(process.error_text(job), offer.kind),
        log=process.log_text(job),
        sentences=_sentences(job) if state == "done" else [],
        pages=job.pages if state == "done" else [],
        files=job.outputs() if state == "done" else [],
        command=command(job.tool, "--config", job.config, "--out", "results"),
    )


@page
def remove(request: PageRequest) -> Response:
    """Stop an analysis, and remove it."""
    job = request.job
    process.stop(job)
    request.app.runs.remove(job)
    return redirect(run_url(job.run, "more"))


def _offered(request: PageRequest) -> tuple[Run, str, Offer]:
    """Return the run, and the analysis in the address, if it is possible now."""
    run, tool = request.usable_run, request.http.path_params["tool"]
    if tool not in run.offers:
        raise InputError(
            "This analysis is not possible here.", remedy="Choose one of those under More analyses."
        )
    return run, tool, run.offers[tool]


def _made(run: Run, tool: str = "") -> list[dict[str, Any]]:
    """Return the analyses that were made, for a list."""
    return [
        {
            **{"job": job, "url": job_url(job), "status": process.status(job), "of": _chosen(job)},
            "created": datetime.fromtimestamp(job.created, UTC).isoformat(),
        }
        for job in run.analyses
        if tool in ("", job.tool)
    ]


def _chosen(job: FurtherAnalysis) -> str:
    """Return what an analysis is of: its first setting, such as the column of groups; empty if not set."""
    try:
        value = job.options.to_dict().get(job.offer.usual[0], "")
    except InputError:  # its settings were changed by hand
        return ""
    shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return short(shown)


def _given(run: Run, tool: str, offer: Offer) -> dict[str, Any]:
    """Return the options that the run determines: its files and the roles of columns, and its model."""
    known, model = options_in(offer.kind), run.results / "model.icqf"
    if tool == "plan" and run.done:
        return {"answers": model}
    if "results" in known:
        return {"results": run.results}
    study = run.options.to_dict()
    given = {name: study[name] for name in _OF_THE_STUDY if name in study and name in known}
    if "model" in known:
        given.pop("codebook", None)  # the model remembers it
        return given | {"model": model}
    if tool == "longitudinal":
        given.pop("visit", None)
    return given


def _form(
    request: PageRequest, run: Run, tool: str, offer: Offer, values: Mapping[str, Any], *, fault: str = ""
) -> Response:
    fields = _fields(request, run, offer, values)
    if fields is None:
        return waiting(request, request.app.worker.check_of(run), step="more")
    return render(
        request,
        "further.html",
        step="more",
        offer=offer,
        tool=tool,
        usual=fields[: len(offer.usual)],
        advanced=fields[len(offer.usual) :],
        made=_made(run, tool),
        earlier="from" in request.http.query_params,
        fault=fault,
        code=400 if fault else 200,
    )


def _fields(
    request: PageRequest, run: Run, offer: Offer, values: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    """Return the fields of a form; None while the file is being read."""
    known = _columns(request, run)
    if known is None:
        return None
    columns, others = known
    names = (*offer.usual, *offer.advanced, *(() if run.done else offer.of_study))
    fields = []
    for name in names:
        value = values.get(name, getattr(offer.kind, name, ""))
        more: dict[str, Any] = {}
        if name in ("n_components", "beta", "smoothness") and not value:
            value = "auto"
        if name == "norms":
            choices = tuple(_norms_of(run))
            more = {"shape": "list", "choices": choices, "empty": "none"}
            value = next((key for key, path in _norms_of(run).items() if str(path) == str(value)), value)
        if name == "visit":
            value = [f"{column}={cell}" for column, cell in (value or {}).items()]
        several = name in ("by", "confounds", "labels") and offer.kind is not InvarianceOptions
        shown = others if several else columns  # items would be too many boxes
        fields.append(form_field(offer.kind, name, "" if value is None else value, columns=shown, **more))
    return fields


def _columns(request: PageRequest, run: Run) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the columns of a study's table, items last, and those that describe participants.

    None while the table is being read.
    """
    if run.starts_from != "study":
        return (), ()
    pending = request.app.worker.check_of(run)
    if not pending.ready(PATIENCE):
        return None
    if pending.future.exception() is None:
        study = pending.future.result()
        items, overview = {item.name for item in study.items}, study.findings.overview
        id = "" if overview is None else overview.id
        columns = tuple(sorted((each.name for each in study.columns), key=lambda name: name in items))
        return columns, tuple(name for name in columns if name not in (id, *items))
    columns = request.app.worker.do(lambda: _header(run.options.answers))
    return columns, columns


def _header(path: Path) -> tuple[str, ...]:
    """Return the columns of a table that cannot be analysed as it is."""
    from icqf.io.readers.files import read_table

    try:
        return tuple(map(str, read_table(path).frame.columns))
    except InputError:
        return ()


def _norms_of(run: Run) -> dict[str, Path]:
    """Return the norms that were learned from a run, latest first."""
    found = {}
    for job in run.analyses:
        if job.tool == "norms" and job.done and job.holds(job.results / _NORMS):
            by = ", ".join(job.options.to_dict().get("by", ())) or "everybody"
            found[f"{job.id}: {by}"] = job.results / _NORMS
    return found


def _sentences(job: FurtherAnalysis) -> list[str]:
    """Return what the results say in words, where their page does not."""
    if job.tool != "shortform":
        return []
    try:
        found = json.loads((job.results / PROVENANCE).read_text(encoding="utf-8"))["result"]["sentences"]
        return [str(each) for each in found]
    except (OSError, ValueError, KeyError, TypeError):
        return []
