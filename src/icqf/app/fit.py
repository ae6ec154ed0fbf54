"""The Fit page: options, preview, progress, stopping and continuing."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from icqf.app import process
from icqf.app.pages import (
    PageRequest,
    command,
    entered,
    form_field,
    in_words,
    job_url,
    page,
    redirect,
    render,
    run_url,
)
from icqf.app.runs import Job, Run
from icqf.data.settings import BETAS
from icqf.errors import InputError
from icqf.workflow.options import StudyOptions

# The options of the form, in order; the second list is collapsed.
USUAL = ("n_components", "beta")
ADVANCED = (
    *("rule", "n_splits", "n_repeats", "thorough", "item_weight", "penalty", "intercept"),
    *("missing_confounds", "smallest_category", "n_init", "tol", "max_iter", "bootstrap", "consensus"),
    *("all_rules", "with_participants", "figures", "format", "jobs", "seed"),
)

SHADES = 8  # of the cells of a table of loadings
_SMALL = 0.05  # loadings below this share of an item's range are not written
_QUICK = 700_000  # answers up to which a preview is shown without asking
PENALTIES = tuple(sorted({0.0, *BETAS}))


@page
def fit(request: PageRequest) -> Response:
    """Show the options of a run, or the progress of its fit."""
    run = request.usable_run
    if process.status(run) == "running":
        return running(request, run, f"Fitting {run.about['title']}", step="fit")
    return _form(request, run, run.options.to_dict())


@page
def begin(request: PageRequest) -> Response:
    """Save the options, and start the fit."""
    run = request.idle_run
    fields = [form_field(StudyOptions, name, "") for name in (*USUAL, *ADVANCED)]
    values = {each["name"]: entered(request, StudyOptions, each) for each in fields}
    values |= {name: values[name] or ["auto"] for name in USUAL}
    try:
        options = StudyOptions.of(run.options.to_dict() | values)
    except InputError as error:
        return _form(request, run, values, fault=in_words(error))
    run.save(options)
    process.start(run)
    return redirect(run_url(run, "fit"))


@page
def resume(request: PageRequest) -> Response:
    """Continue a fit or a further analysis that was stopped."""
    process.start(request.job)
    return redirect(job_url(request.job))


@page
def cancel(request: PageRequest) -> Response:
    """Stop a fit or a further analysis, and all its processes."""
    process.stop(request.job)
    return redirect(job_url(request.job))


@page
def progress(request: PageRequest) -> Response:
    """Return the progress of a fit or a further analysis as JSON."""
    job = request.job
    return JSONResponse({"ready": process.status(job) != "running", **process.progress(job)})


def running(request: PageRequest, job: Job, heading: str, *, step: str) -> Response:
    """Show the progress of a job."""
    url, shown = job_url(job), process.progress(job)
    shown |= {"heading": heading, "poll": f"{url}/progress", "after": url, "cancel": f"{url}/cancel"}
    return render(request, "running.html", step=step, **shown)


def _form(request: PageRequest, run: Run, values: dict[str, Any], *, fault: str = "") -> Response:
    state = process.status(run)
    return render(
        request,
        "fit.html",
        step="fit",
        usual=[form_field(StudyOptions, name, values[name]) for name in USUAL],
        advanced=[form_field(StudyOptions, name, values[name]) for name in ADVANCED],
        penalties=PENALTIES,
        at_once=_small(request, run),
        fault=fault,
        error=process.error_text(run) if state == "failed" else "",
        log=process.log_text(run) if state == "stopped" else "",
        command=command("fit", "--config", run.config, "--out", "results"),
        config=run.settings,
        code=400 if fault else 200,
    )


def _small(request: PageRequest, run: Run) -> bool:
    """Whether the study has been checked, can be fitted, and is small enough to be previewed at once."""
    if run.done:
        return False
    pending = request.app.worker.check_of(run)
    if not pending.ready() or pending.future.exception() is not None:
        return False
    found = pending.future.result().findings
    overview = found.overview
    if overview is None or found.must_fix:
        return False
    return overview.n_participants * len(overview.items) <= _QUICK


@page
def preview(request: PageRequest) -> Response:
    """Show the loadings with the number of factors and the penalty in the address."""
    run, query = request.usable_run, request.http.query_params
    values: dict[str, Any] = {"fault": "", "rows": ()}
    try:
        k, beta = _numbers(query.get("k", "5")[:9], query.get("beta", "0.1")[:20])
        values |= request.app.worker.preview(run, k, beta, _preview)
    except InputError as error:
        values["fault"] = in_words(error)
    step = "results" if run.done else "fit"
    code = 400 if values["fault"] else 200
    return render(request, "preview.html", step=step, penalties=PENALTIES, code=code, **values)


def _numbers(k: str, beta: str) -> tuple[int, float]:
    try:
        return int(k), float(beta)
    except ValueError:
        raise InputError("The number of factors and the penalty must be numbers.") from None


def _preview(run: Run, stated: Any, k: int, beta: float) -> dict[str, Any]:
    """Return the loadings for the page, items below the factor on which they load most."""
    from icqf.models.icqf import ICQF
    from icqf.workflow import preview as previews

    found = previews.preview(stated, k, beta)
    names = previews.named_like(found, ICQF.load(run.results / "model.icqf")) if run.done else {}
    wordings = {
        item.name: " ".join(text for text in (item.wording, "(reversed)" if item.reverse else "") if text)
        for item in stated.codebook.items
    }
    shares = found.shares.to_numpy()
    main, order = shares.argmax(axis=1), []
    for factor in range(k):
        own = [at for at in range(len(shares)) if main[at] == factor]
        order += sorted(own, key=lambda at: -shares[at, factor])
    rows = []
    for at in order:
        values, parts = found.loadings.iloc[at], shares[at]
        cells = [
            (f"{value:.2f}" if part >= _SMALL else "", min(round(SHADES * float(part)), SHADES))
            for value, part in zip(values, parts, strict=True)
        ]
        name = str(found.loadings.index[at])
        rows.append({"name": name, "wording": wordings.get(name, ""), "cells": cells})
    return {
        "k": k,
        "beta": beta,
        "rows": rows,
        "heads": [
            f"like {names[column]}" if column in names else suggested
            for column, suggested in zip(found.loadings.columns, found.names, strict=True)
        ],
        "n": found.n_participants,
        "most": previews.most_factors(stated),
    }
