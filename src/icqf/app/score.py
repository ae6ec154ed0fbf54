"""The Score and Compare pages: new participants scored by a run's model, and two models compared."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

from starlette.responses import Response

from icqf.app.pages import (
    PageRequest,
    command,
    download,
    form_field,
    in_words,
    page,
    redirect,
    render,
    run_url,
)
from icqf.app.runs import SCORES, Run, free_place
from icqf.errors import InputError
from icqf.io.study_files import AND
from icqf.workflow.options import ScoreOptions
from icqf.workflow.pool import METHODS, SIMILARITIES

_PREVIEW = 8
_HINTS = {
    "id": "that of the fit",
    "missing_codes": "such as 99, -9",
    "visit": "such as wave=1",
    "doubled": "refused",
    "without_id": "refused",
    "header_row": "recognised",
    "sheet": "the first that looks like a table",
    "long": "recognised, or such as item, answer",
}
_SEVERAL = ("missing_codes", "visit", "long")


@page
def score(request: PageRequest) -> Response:
    """Show the form for new answers, and earlier tables of scores."""
    run = request.usable_run
    if not run.done:
        return redirect(run_url(run, "fit"))
    return _score_page(request, run)


@page
def score_file(request: PageRequest) -> Response:
    """Score the participants of a file with the run's model."""
    from icqf.workflow import score as scoring

    run, answers = request.usable_run, request.file("answers")
    if answers is None:
        return _score_page(request, run, fault="No file was chosen.")
    model = run.results / "model.icqf"
    added: dict[str, Any] = {}
    given = {name: request.listed(name) if name in _SEVERAL else request.text(name) for name in _HINTS}
    typed_in = {name: value for name, value in given.items() if value}
    try:
        for name in ("answers", "codebook", "dictionary"):
            chosen = request.file(name)
            if chosen is not None:
                added[name] = run.add(chosen.filename or "", chosen.file, folder="new", otherwise=name)
        options = ScoreOptions.of({**added, "model": model, **typed_in})
        done = request.app.worker.do(lambda: scoring.score_file(model, options.files))
    except InputError as error:
        for path in added.values():
            path.unlink(missing_ok=True)
        suggested = _suggested(error)
        fault = in_words(error)
        if suggested:
            fault = f"{error.message} Choose the file again; what is filled in below will then be used."
        return _score_page(request, run, fault=fault, given=given | suggested)
    place = _write(request, run, done, added["answers"])
    described = [name for name in ("codebook", "dictionary") if name in added]
    more = [word for name in described for word in (f"--{name}", added[name])]
    for name, value in typed_in.items():
        parts = value if isinstance(value, list) else value.split(AND) if name == "id" else [value]
        option = f"--{name.replace('_', '-')}"
        more += [word for each in parts for word in (option, each)] if name == "visit" else [option, *parts]
    typed = command("score", model, added["answers"], *more, "--out", place.name)
    table = done.scores.head(_PREVIEW)
    return _score_page(
        request,
        run,
        made=place.name,
        notes=done.notes,
        n=len(done.scores),
        silent=done.n_silent,
        head=[done.scores.index.name or "participant", *table.columns],
        rows=[[key, *map(_cell, row)] for key, *row in table.itertuples()],
        command=typed,
    )


@page
def table(request: PageRequest) -> Response:
    """Download a table of scores of new participants."""
    run, name = request.usable_run, request.http.path_params["name"]
    if name not in run.scored():
        raise InputError("There is no such table of scores in this run.")
    return download(run.folder / SCORES / name)


@page
def compare(request: PageRequest) -> Response:
    """Show the form for comparing two models."""
    return _compare_page(request)


@page
def compare_models(request: PageRequest) -> Response:
    """Pair the factors of two models."""
    from icqf.workflow.pool import compare_models as compare_files

    first, other = request.app.runs.get(request.text("first")), request.app.runs.get(request.text("second"))
    upload = request.file("model")
    for run in (first, other):
        if run is not None:
            run.require_whole()
    if first is None or not first.done or (upload is None and (other is None or not other.done)):
        return _compare_page(request, fault="Choose two finished runs, or one and a model file.")
    how: Any = {
        name: given if (given := request.text(name)) in known else known[0]
        for name, known in (("method", METHODS), ("similarity", SIMILARITIES))
    }
    model = first.results / "model.icqf"
    try:
        if upload is not None:
            with tempfile.TemporaryDirectory() as folder:
                second = Path(folder, "model.icqf")
                second.write_bytes(upload.file.read())
                pair = request.app.worker.do(lambda: compare_files(model, second, **how))
            typed = command("compare", model, upload.filename or "model.icqf")
        else:
            second = other.results / "model.icqf"  # type: ignore[union-attr]
            pair = request.app.worker.do(lambda: compare_files(model, second, **how))
            typed = command("compare", model, second)
    except InputError as error:
        return _compare_page(request, fault=str(error))
    return _compare_page(request, pair=pair, command=typed)


def _cell(value: float | str) -> str:
    """A cell of the preview; a missing score is empty."""
    if isinstance(value, str):
        return value
    return "" if math.isnan(value) else f"{value:.2f}"


def _suggested(error: InputError) -> dict[str, Any]:
    """Return what the form should hold if a file has several rows per participant."""
    if error.code not in ("duplicate-id", "doubled-rows"):
        return {}
    if visit := error.fields.get("visit"):
        return {"visit": [f"{column}={value}" for column, value in visit]}
    ids = error.fields.get("ids")
    return {"id": AND.join(ids)} if ids else {"doubled": "first"}


def _write(request: PageRequest, run: Run, done: Any, answers: Path) -> Path:
    from icqf.io.write import write_table
    from icqf.workflow.results_folder import DECIMALS

    folder = run.folder / SCORES
    folder.mkdir(exist_ok=True, mode=0o700)

    def write() -> Path:
        place = free_place(folder / f"{answers.stem}-scores.csv")
        write_table(done.scores, place, decimals=DECIMALS)
        return place

    return request.app.worker.do(write)


def _score_page(request: PageRequest, run: Run, *, fault: str = "", **result: Any) -> Response:
    values: dict[str, Any] = {
        **{"made": "", "notes": (), "n": 0, "silent": 0, "head": [], "rows": [], "command": "", "given": {}},
        **{"scored": run.scored(), "fault": fault, "code": 400 if fault else 200},
        **result,
    }
    values["fields"] = [
        form_field(ScoreOptions, name, values["given"].get(name, ""), about="", empty=hint)
        for name, hint in _HINTS.items()
    ]
    return render(request, "score.html", step="score", **values)


def _compare_page(request: PageRequest, *, fault: str = "", pair: Any = None, command: str = "") -> Response:
    runs = [run for run in request.app.runs if run.done and not run.damage]
    finished = [(run.id, run.about, run.provenance["model"]) for run in runs]
    chosen = [request.text("first") or request.http.query_params.get("first", ""), request.text("second")]
    return render(
        request,
        "compare.html",
        step="compare",
        finished=finished,
        chosen=chosen,
        methods=METHODS,
        similarities=SIMILARITIES,
        pair=pair,
        command=command,
        fault=fault,
        code=400 if fault else 200,
    )
