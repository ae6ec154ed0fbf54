"""Score new participants with a run's model, and compare the models of two runs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from starlette.responses import Response

from icqf.app.pages import Asked, command, form_field, in_words, of_run, page, shown, to
from icqf.app.runs import SCORES, Run, free_place
from icqf.errors import InputError
from icqf.workflow.compare import METHODS, SIMILARITIES
from icqf.workflow.options import ScoreOptions

_PREVIEW = 8


@page
def score(asked: Asked) -> Response:
    """A form for the answers of new participants, and the scores that were made."""
    run = asked.the_run
    if not run.done:
        return to(of_run(run, "fit"))
    return _score_page(asked, run)


@page
def score_file(asked: Asked) -> Response:
    """Score the participants of a file with the run's model."""
    from icqf.workflow import score as scoring

    run, answers = asked.the_run, asked.file("answers")
    if answers is None:
        return _score_page(asked, run, fault="No file of answers was chosen.")
    model = run.results / "model.icqf"
    added: dict[str, Any] = {}
    try:
        for name in ("answers", "codebook", "dictionary"):
            chosen = asked.file(name)
            if chosen is not None:
                added[name] = run.add(chosen.filename or "", chosen.file, folder="new", otherwise=name)
        codes, visit = asked.listed("missing_codes"), asked.listed("visit")
        given = {**added, "model": model, "missing_codes": codes, "visit": visit, "id": asked.text("id")}
        options = ScoreOptions.of({name: value for name, value in given.items() if value})
        done = asked.top.desk.do(lambda: scoring.score_file(model, options.files))
    except InputError as error:
        for path in added.values():
            path.unlink(missing_ok=True)
        return _score_page(asked, run, fault=_worded(error), visit=_visit(error))
    place = _write(asked, run, done, added["answers"])
    beside = [name for name in ("codebook", "dictionary") if name in added]
    more = [word for name in beside for word in (f"--{name}", added[name])]
    more += ["--missing-codes", *codes] if codes else []
    more += [word for each in visit for word in ("--visit", each)]
    more += ["--id", asked.text("id")] if asked.text("id") else []
    typed = command("score", model, added["answers"], *more, "--out", place.name)
    table = done.scores.head(_PREVIEW)
    return _score_page(
        asked,
        run,
        made=place.name,
        notes=done.notes,
        n=len(done.scores),
        silent=done.n_silent,
        head=[done.scores.index.name or "participant", *table.columns],
        rows=[[key, *(f"{v:.2f}" if v == v else "" for v in row)] for key, *row in table.itertuples()],
        command=typed,
    )


@page
def compare(asked: Asked) -> Response:
    """Two finished runs, or a run and a model file, side by side."""
    return _compare_page(asked)


@page
def compare_models(asked: Asked) -> Response:
    """Pair the factors of two models."""
    from icqf.workflow.compare import compare_models as compare_files

    first, other = asked.top.runs.get(asked.text("first")), asked.top.runs.get(asked.text("second"))
    upload = asked.file("model")
    for run in (first, other):
        if run is not None:
            run.require_whole()
    if first is None or not first.done or (upload is None and (other is None or not other.done)):
        return _compare_page(asked, fault="Choose two finished runs, or one and a model file.")
    how: Any = {
        name: given if (given := asked.text(name)) in known else known[0]
        for name, known in (("method", METHODS), ("similarity", SIMILARITIES))
    }
    model = first.results / "model.icqf"
    try:
        if upload is not None:
            with tempfile.TemporaryDirectory() as folder:
                second = Path(folder, "model.icqf")
                second.write_bytes(upload.file.read())
                pair = asked.top.desk.do(lambda: compare_files(model, second, **how))
            typed = command("compare", model, upload.filename or "model.icqf")
        else:
            second = other.results / "model.icqf"  # type: ignore[union-attr]
            pair = asked.top.desk.do(lambda: compare_files(model, second, **how))
            typed = command("compare", model, second)
    except InputError as error:
        return _compare_page(asked, fault=str(error))
    return _compare_page(asked, pair=pair, command=typed)


def _visit(error: InputError) -> str:
    """The visit to keep, as it is written into the form, where a file has several of a participant."""
    pairs = error.fields.get("visit", ()) if error.code == "duplicate-id" else ()
    return ", ".join(f"{column}={value}" for column, value in pairs)


def _worded(error: InputError) -> str:
    """What is wrong, with what to do on the page."""
    if not _visit(error):
        return in_words(error)
    return f"{error.message} Choose the file again; the visit that is named below is then kept."


def _write(asked: Asked, run: Run, done: Any, answers: Path) -> Path:
    from icqf.io.write import write_table
    from icqf.workflow.naming import DECIMALS

    folder = run.folder / SCORES
    folder.mkdir(exist_ok=True, mode=0o700)

    def write() -> Path:
        place = free_place(folder / f"{answers.stem}-scores.csv")
        write_table(done.scores, place, decimals=DECIMALS)
        return place

    return asked.top.desk.do(write)


def _score_page(asked: Asked, run: Run, *, fault: str = "", **found: Any) -> Response:
    values: dict[str, Any] = {
        **{"made": "", "notes": (), "n": 0, "silent": 0, "head": [], "rows": [], "command": "", "visit": ""},
        **{"scored": run.scored(), "fault": fault, "code": 400 if fault else 200},
        **found,
    }
    hints = {"id": "that of the fit", "missing_codes": "such as 99, -9", "visit": "such as wave=1"}
    values["fields"] = [
        form_field(ScoreOptions, name, values["visit"] if name == "visit" else "", about="", empty=hint)
        for name, hint in hints.items()
    ]
    return shown(asked, "score.html", step="score", **values)


def _compare_page(asked: Asked, *, fault: str = "", pair: Any = None, command: str = "") -> Response:
    finished = []
    for run in asked.top.runs:
        if run.done and not run.damage:
            finished.append((run.id, run.about, run.account["model"]))
    chosen = [asked.text("first") or asked.request.query_params.get("first", ""), asked.text("second")]
    return shown(
        asked,
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
