"""The Results page: the report, names of factors, other numbers of factors, and files to download."""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from starlette.responses import FileResponse, Response

from icqf.app import process
from icqf.app.fit import PENALTIES
from icqf.app.guard import REPORT_POLICY
from icqf.app.pages import PageRequest, command, download, page, redirect, render, run_url
from icqf.app.runs import Run
from icqf.errors import InputError

_REPORT = "report.html"
_LARGEST_ARCHIVE = 2**30


@page
def results(request: PageRequest) -> Response:
    """Show the report, names, other numbers of factors, and files."""
    run = request.usable_run
    if not run.done:
        return redirect(run_url(run, "fit"))
    factors, tried = request.app.worker.do(lambda: _read(run))
    provenance = run.provenance
    return render(
        request,
        "results.html",
        step="results",
        provenance=provenance,
        factors=factors,
        tried=tried,
        others=_others(request, run),
        files=run.outputs(),
        has_report=_REPORT in dict(run.outputs()),
        warnings=provenance.get("warnings", []),
        command=command("fit", "--config", run.config, "--out", "results"),
        naming=_naming(factors),
        config=run.settings,
        penalties=PENALTIES,
        saved="saved" in request.http.query_params,
    )


@page
def full_report(request: PageRequest) -> Response:
    """Show the report alone, as wide and high as the window."""
    run = request.usable_run
    if not run.done:
        return redirect(run_url(run, "fit"))
    return render(request, "report.html", step="results")


@page
def names(request: PageRequest) -> Response:
    """Name the factors in the form (others keep their names), and rewrite the report and the tables."""
    from icqf.workflow.naming import rewrite_results

    run = request.usable_run
    factors = request.app.worker.do(lambda: _read(run))[0]
    suggested = "suggested" in request.form
    chosen = [
        request.text(f"name-{factor['key']}", factor["name"])
        or (suggested and factor["suggested_name"])
        or factor["key"]
        for factor in factors
    ]
    request.app.worker.do(lambda: rewrite_results(run.results, names=chosen))
    return redirect(f"{run_url(run, 'results')}?saved=1#naming")


@page
def another_number(request: PageRequest) -> Response:
    """Fit another number of factors with its best penalty, as a new run."""
    run = request.usable_run
    wanted = request.text("n_components")
    tried = request.app.worker.do(lambda: _read(run))[1]
    choice = next((each for each in tried if str(each.n_components) == wanted), None)
    if choice is None:
        raise InputError(f"The search did not try {wanted} factors.")
    new = request.app.runs.again(run, n_components=(choice.n_components,), beta=(choice.beta,), names=())
    process.start(new)
    return redirect(run_url(new, "fit"))


@page
def document(request: PageRequest) -> Response:
    """Serve the report, or a page of a further analysis, which cannot access anything else."""
    job, name = request.job, request.http.path_params.get("name", _REPORT)
    if not name.endswith(".html") or name not in dict(job.outputs()):
        raise InputError(f"There is no page {name} among these results.")
    policy = {"content-security-policy": REPORT_POLICY}
    return FileResponse(job.results / name, media_type="text/html; charset=utf-8", headers=policy)


@page
def file(request: PageRequest) -> Response:
    """Download one file of the results."""
    job, name = request.job, request.http.path_params["name"]
    if not job.done or name not in dict(job.outputs()):
        raise InputError("There is no such file among these results.")
    return download(job.results / name)


@page
def everything(request: PageRequest) -> Response:
    """Download all result files as a zip archive."""
    job = request.job
    if not job.done:
        raise InputError("There are no results yet.")
    files = job.outputs()
    if sum(size for _, size in files) > _LARGEST_ARCHIVE:
        raise InputError(f"The results are too large for one archive; they are in {job.results}.")
    name = job.id if job is job.run else f"{job.run.id}-{job.id}"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as out:
        for each, _ in files:
            out.write(job.results / each, f"{name}/{each}")
    headers = {"content-disposition": f"attachment; filename*=utf-8''{quote(name)}.zip"}
    return Response(content.getvalue(), media_type="application/zip", headers=headers)


def _read(run: Run) -> tuple[list[dict[str, Any]], tuple[Any, ...]]:
    """Read the factors of a run's model, and the numbers of factors that its search tried."""
    from icqf.models.icqf import ICQF
    from icqf.workflow.naming import factors_table, tried_numbers

    model = ICQF.load(run.results / "model.icqf")
    wordings = {
        item.name: (item.wording or item.name) + (" (reversed)" if item.reverse else "")
        for item in model.codebook_.items
    }
    rows: dict[Any, Any] = factors_table(model).fillna("").to_dict("index")
    factors = [
        {"key": str(key), **row, "top": [wordings.get(name, name) for name in row["top_items"].split(", ")]}
        for key, row in rows.items()
    ]
    return factors, tried_numbers(run.results)


def _naming(factors: list[dict[str, Any]]) -> str:
    """Return the command that names the factors; empty if they have no names."""
    names = [factor["name"] or factor["key"] for factor in factors]
    named = any(factor["name"] for factor in factors)
    return command("report", "results", "--names", *names) if named else ""


def _others(request: PageRequest, run: Run) -> dict[int, Run]:
    """Return the runs with other numbers of factors that were made from this one."""
    runs: dict[int, Run] = {}
    for other in request.app.runs:
        if other.about["of"] == run.id and not other.damage:
            with suppress(InputError):  # its settings may have been changed by hand
                numbers = other.options.n_components
                runs |= {numbers[0]: runs.get(numbers[0], other)} if len(numbers) == 1 else {}
    return runs
