"""Results: the report, names for its factors, other numbers of factors, and files to take along."""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from starlette.responses import FileResponse, Response

from icqf.app import process
from icqf.app.guard import REPORT_POLICY
from icqf.app.pages import Asked, command, of_run, page, shown, to
from icqf.app.runs import SCORES, Run
from icqf.errors import InputError

_REPORT = "report.html"
_LARGEST_ARCHIVE = 2**30


@page
def results(asked: Asked) -> Response:
    """The report, and what can be done with it."""
    run = asked.the_run
    if not run.done:
        return to(of_run(run, "fit"))
    factors, tried = asked.top.desk.do(lambda: _read(run))
    account = run.account
    return shown(
        asked,
        "results.html",
        step="results",
        account=account,
        factors=factors,
        tried=tried,
        others=_others(asked, run),
        files=run.outputs(),
        has_report=_REPORT in dict(run.outputs()),
        warnings=account.get("warnings", []),
        command=command("fit", "--config", run.config, "--out", "results"),
        naming=_naming(run, factors),
        config=run.settings,
    )


@page
def names(asked: Asked) -> Response:
    """Name the factors, and write the report and the tables again."""
    from icqf.workflow.naming import rewrite_results

    run = asked.the_run
    factors = asked.top.desk.do(lambda: _read(run))[0]
    suggested = "suggested" in asked.form
    given = [
        asked.text(f"name-{at}") or (suggested and factor["suggested_name"]) or factor["key"]
        for at, factor in enumerate(factors)
    ]
    asked.top.desk.do(lambda: rewrite_results(run.results, names=given))
    return to(of_run(run, "results"))


@page
def another_number(asked: Asked) -> Response:
    """Fit another number of factors, with the penalty that was best for it, as a run of its own."""
    run = asked.the_run
    wanted = asked.text("n_components")
    tried = asked.top.desk.do(lambda: _read(run))[1]
    found = [each for each in tried if str(each.n_components) == wanted]
    if not found:
        raise InputError(f"The search did not try {wanted} factors.")
    new = asked.top.runs.again(run, n_components=(found[0].n_components,), beta=(found[0].beta,), names=())
    process.start(new)
    return to(of_run(new, "fit"))


@page
def report(asked: Asked) -> Response:
    """The report as a page of its own, which reaches nothing else."""
    run = asked.the_run
    path = run.results / _REPORT
    if _REPORT not in dict(run.outputs()):
        raise InputError("This run has no report.")
    return FileResponse(
        path, media_type="text/html; charset=utf-8", headers={"content-security-policy": REPORT_POLICY}
    )


@page
def file(asked: Asked) -> Response:
    """One file of the results, or of the scores of new participants, to keep."""
    run, name = asked.the_run, asked.request.path_params["name"]
    kind = asked.request.path_params["kind"]
    known = {one for one, _ in run.outputs()} if kind == "results" and run.done else set()
    known = set(run.scored()) if kind == SCORES else known
    if name not in known:
        raise InputError("There is no such file in this run.")
    return FileResponse(
        run.folder / kind / name,
        media_type="application/octet-stream",
        filename=name.rpartition("/")[2],
    )


@page
def everything(asked: Asked) -> Response:
    """All files of the results in one archive."""
    run = asked.the_run
    if not run.done:
        raise InputError("This run has no results yet.")
    if sum(size for _, size in run.outputs()) > _LARGEST_ARCHIVE:
        raise InputError(f"The results are too large for one archive; they are in {run.results}.")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for name, _ in run.outputs():
            archive.write(run.results / name, f"{run.id}/{name}")
    headers = {"content-disposition": f"attachment; filename*=utf-8''{quote(run.id)}.zip"}
    return Response(content.getvalue(), media_type="application/zip", headers=headers)


def _read(run: Run) -> tuple[list[dict[str, Any]], tuple[Any, ...]]:
    """The factors of a run's model, and the numbers of factors that its search tried."""
    from icqf.models.icqf import ICQF
    from icqf.workflow.naming import factors_table
    from icqf.workflow.select import tried_numbers

    model = ICQF.load(run.results / "model.icqf")
    asked = {item.name: item.wording for item in model.codebook_.items if item.wording}
    rows: dict[Any, Any] = factors_table(model).fillna("").to_dict("index")
    factors = [
        {
            "key": str(key),
            **row,
            "top": [asked.get(name, name) for name in row["top_items"].split(", ")],
        }
        for key, row in rows.items()
    ]
    return factors, tried_numbers(run.results)


def _naming(run: Run, factors: list[dict[str, Any]]) -> str:
    """The command that gave the factors their names; empty where they have none."""
    names = [factor["name"] or factor["key"] for factor in factors]
    named = any(factor["name"] for factor in factors)
    return command("report", "results", "--names", *names) if named else ""


def _others(asked: Asked, run: Run) -> dict[int, Run]:
    """Runs with other numbers of factors that were made from this one."""
    found: dict[int, Run] = {}
    for other in asked.top.runs:
        if other.about["of"] == run.id and not other.damage:
            with suppress(InputError):  # its settings may have been changed by hand
                numbers = other.options.n_components
                found |= {numbers[0]: found.get(numbers[0], other)} if len(numbers) == 1 else {}
    return found
