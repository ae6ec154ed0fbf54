"""The Open and Runs pages: new runs from files, and earlier runs to continue or remove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.datastructures import UploadFile
from starlette.responses import Response

from icqf.app import process
from icqf.app.pages import PageRequest, page, redirect, render, run_url
from icqf.app.runs import Run, Runs
from icqf.errors import InputError
from icqf.io.formats import READERS
from icqf.io.study_files import FILES
from icqf.workflow.options import StudyOptions

_LATEST = 5


@page
def home(request: PageRequest) -> Response:
    """Show the first page: open a file, or continue an earlier run."""
    if request.app.warm_up is not None:
        request.app.worker.begin(request.app.warm_up)
        request.app.warm_up = None
    runs, unread = _lists(request)
    more = len(runs) > _LATEST or bool(unread)
    return render(request, "open.html", runs=runs[:_LATEST], more=more, endings=",".join(READERS))


@page
def open_files(request: PageRequest) -> Response:
    """Store the chosen files, and start a run with them."""
    answers = request.file("answers")
    if answers is None:
        raise InputError("No file was chosen.", remedy="Choose a file, or try the demo.")
    run = request.app.runs.begin(_shown_name(answers))
    try:
        chosen = {name: file for name in FILES if (file := request.file(name)) is not None}
        places = {
            name: run.add(file.filename or "", file.file, otherwise=name) for name, file in chosen.items()
        }
        if places["answers"].suffix.lower() not in READERS:
            raise InputError(
                f"{places['answers'].name}: this format cannot be read; use one of {', '.join(READERS)}."
            )
        run.save(StudyOptions.of(places))
    except BaseException:
        request.app.runs.remove(run)
        raise
    before = request.app.runs.get(request.text("instead_of"))
    if before is not None and before.unread:
        request.app.runs.remove(before)
    return redirect(run_url(run, "check"))


@page
def open_several(request: PageRequest) -> Response:
    """Store the files of several questionnaires, or a table of all with its codebook, and start a run."""
    files = [each for each in request.form.getlist("files") if isinstance(each, UploadFile) and each.filename]
    if not files:
        raise InputError("No file was chosen.", remedy="Choose the files of all questionnaires.")
    title = _shown_name(files[0]) if len(files) == 1 else f"{_shown_name(files[0])} and {len(files) - 1} more"
    run, codebook = request.app.runs.begin(title), request.file("several-codebook")
    try:
        places = [run.add(each.filename or "", each.file) for each in files]
        single = len(places) == 1 and (codebook is not None or places[0].suffix == ".icqf")
        given = {"answers": places[0] if single else places[0].parent}
        if codebook is not None:
            name = codebook.filename if single else "codebook.csv"
            place = run.add(name or "", codebook.file, otherwise="codebook")
            given |= {"codebook": place} if single else {}
        run.save(StudyOptions.of(given))
    except BaseException:
        request.app.runs.remove(run)
        raise
    return redirect(run_url(run, "more"))


@page
def open_demo(request: PageRequest) -> Response:
    """Start a run with the embedded demo."""
    from icqf.workflow.demo import demo_values, write_demo_files

    run = request.app.runs.begin("demo_answers.csv")
    (run.folder / "data").mkdir(mode=0o700)
    answers, codebook = write_demo_files("children", run.folder / "data", force=False)
    run.save(StudyOptions.of(demo_values("children", answers, codebook)))
    return redirect(run_url(run, "check"))


@page
def history(request: PageRequest) -> Response:
    """List all runs, and the uploads that could not be read."""
    runs, unread = _lists(request)
    return render(request, "history.html", runs=runs, unread=unread, folder_fixed=request.app.folder_fixed)


@page
def remove_unread(request: PageRequest) -> Response:
    """Remove all uploads that could not be read."""
    for run in list(request.app.runs):
        if run.unread:
            request.app.runs.remove(run)
    return redirect("/history")


@page
def choose_folder(request: PageRequest) -> Response:
    """Use another folder for runs."""
    wanted = request.text("folder")
    if request.app.folder_fixed:
        raise InputError("The folder of runs can only be chosen where the app is started.")
    if not wanted:
        raise InputError("No folder was given.", remedy="Enter its full path, such as ~/studies/runs.")
    if not wanted.startswith("~") and not Path(wanted).is_absolute():
        raise InputError(f"{wanted}: this is not a full path.", remedy="Start it with / or ~.")
    request.app.runs = Runs(Path(wanted))
    return redirect("/history")


@page
def resume(request: PageRequest) -> Response:
    """Show a run at its current step."""
    run = request.usable_run
    if run.starts_from != "study":
        return redirect(run_url(run, "more"))
    state = process.status(run)
    return redirect(run_url(run, {"ready": "check", "done": "results"}.get(state, "fit")))


@page
def again(request: PageRequest) -> Response:
    """Start a new run with the data and settings of another."""
    return redirect(run_url(request.app.runs.again(request.usable_run), "check"))


@page
def removal(request: PageRequest) -> Response:
    """Ask before a run is removed."""
    return render(request, "remove.html", row=_row(request.run_or_404))


@page
def remove(request: PageRequest) -> Response:
    """Stop all that a run does, and remove its data and results."""
    run = request.run_or_404
    after = "/" if run.unread else "/history"
    for job in (run, *run.analyses):
        process.stop(job)
    request.app.runs.remove(run)
    return redirect(after)


def _shown_name(file: UploadFile) -> str:
    return (file.filename or "").replace("\\", "/").rpartition("/")[2].strip() or "answers"


def _lists(request: PageRequest) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the runs, and the uploads that could not be read."""
    every = list(request.app.runs)
    unread = [{"id": run.id, **run.about} for run in every if run.unread]
    return [_row(run) for run in every if not run.unread], unread


def _row(run: Run) -> dict[str, Any]:
    """Return a row of the list of runs."""
    row: dict[str, Any] = {"id": run.id, **run.about, "status": process.status(run), "result": ""}
    if row["status"] == "done":
        try:
            provenance = run.provenance
            model, rows = provenance["model"], provenance["rows"]
            row["result"] = (
                f"{model['n_components']} factors, β {model['beta']:g}; {rows['fitted']} participants, "
                f"{provenance['items']} items"
            )
        except InputError as error:  # changed since its status was read
            row["result"] = str(error)
    elif row["status"] == "damaged":
        row["result"] = run.damage
        return row
    further = len(run.analyses)
    if further:
        also = f"{further} further {'analysis' if further == 1 else 'analyses'}"
        row["result"] = f"{row['result']}; {also}" if row["result"] else also
    return row
