"""Fit: the options with their usual values, progress, and stopping."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from icqf.app import process
from icqf.app.pages import Asked, command, form_field, in_words, of_run, page, shown, to
from icqf.app.runs import Run
from icqf.data.settings import PARAMETERS, Flag, Kind, OneOf, number_in, options_in
from icqf.errors import InputError
from icqf.workflow.options import StudyOptions

# The options of the form, in its order; those of the second list are folded.
USUAL = ("n_components", "beta")
ADVANCED = (
    *("rule", "n_splits", "n_repeats", "thorough", "item_weight", "penalty", "intercept"),
    *("missing_confounds", "smallest_category", "n_init", "tol", "max_iter", "bootstrap", "consensus"),
    *("all_rules", "with_participants", "figures", "format", "jobs", "seed"),
)
OPTIONS = options_in(StudyOptions)


@page
def fit(asked: Asked) -> Response:
    """The options of a run that is not fitted yet, or how far its fit is."""
    run = asked.the_run
    state = process.status(run)
    if state == "running":
        places = {"poll": of_run(run, "progress"), "after": f"/runs/{run.id}"}
        return shown(asked, "running.html", step="fit", **(_progress(run) | places))
    return _form(asked, run, _values(run.options))


@page
def begin(asked: Asked) -> Response:
    """Take the options, and begin the fit."""
    run = asked.the_run
    process.require_idle(run)
    given = {name: _given(asked, name) for name in (*USUAL, *ADVANCED)}
    try:
        options = StudyOptions.of(run.options.to_dict() | given)
    except InputError as error:
        return _form(asked, run, given, fault=in_words(error))
    run.save(options)
    process.start(run)
    return to(of_run(run, "fit"))


@page
def resume(asked: Asked) -> Response:
    """Continue a fit that was stopped."""
    process.start(asked.the_run)
    return to(of_run(asked.the_run, "fit"))


@page
def cancel(asked: Asked) -> Response:
    """End the fit, with every process that it started."""
    process.stop(asked.the_run)
    return to(of_run(asked.the_run, "fit"))


@page
def progress(asked: Asked) -> Response:
    """How far the fit is, for the page that shows it."""
    run = asked.the_run
    return JSONResponse({"ready": process.status(run) != "running", **_progress(run)})


def _progress(run: Run) -> dict[str, Any]:
    found = process.progress(run)
    said = f"{found['what']}: {found['text']}" if found["text"] else f"{found['what']} …"
    return {"text": said, "what": found["what"], "done": found["done"], "total": found["total"]}


def _form(asked: Asked, run: Run, values: dict[str, Any], *, fault: str = "") -> Response:
    state = process.status(run)
    return shown(
        asked,
        "fit.html",
        step="fit",
        usual=[form_field(StudyOptions, name, values[name]) for name in USUAL],
        advanced=[form_field(StudyOptions, name, values[name]) for name in ADVANCED],
        fault=fault,
        refusal=process.refusal(run) if state == "failed" else "",
        said=process.said(run) if state == "stopped" else "",
        fixed=run.done,
        command=command("fit", "--config", run.config, "--out", "results"),
        config=run.settings,
        code=400 if fault else 200,
    )


def _values(options: StudyOptions) -> dict[str, Any]:
    plain = options.to_dict()
    return {name: plain[name] for name in (*USUAL, *ADVANCED)}


def _kind(name: str) -> Kind:
    return OPTIONS[name].kind or PARAMETERS[name]


def _given(asked: Asked, name: str) -> Any:
    """An option as it was filled in, in the type that the table of options asks for."""
    kind = _kind(name)
    if isinstance(kind, Flag):
        return name in asked.form
    text = asked.text(name)
    if name in USUAL:
        return [part.strip() for part in text.split(",") if part.strip()] or ["auto"]
    if isinstance(kind, OneOf):
        return text
    return number_in(text)
