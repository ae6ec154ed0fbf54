"""Open and history: files become a run, and earlier runs are found again or removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.datastructures import UploadFile
from starlette.responses import Response

from icqf.app import process
from icqf.app.pages import Asked, of_run, page, shown, to
from icqf.app.runs import Run, Runs
from icqf.errors import InputError
from icqf.io.formats import READERS
from icqf.io.study_files import FILES
from icqf.workflow.options import StudyOptions

_LATEST = 5


@page
def home(asked: Asked) -> Response:
    """The first page: open a file, or go on with an earlier run."""
    if asked.top.ahead is not None:
        asked.top.desk.begin(asked.top.ahead)
        asked.top.ahead = None
    runs = [_row(run) for run in asked.top.runs]
    return shown(asked, "open.html", runs=runs[:_LATEST], more=len(runs) > _LATEST, endings=",".join(READERS))


@page
def open_files(asked: Asked) -> Response:
    """Keep the files that were chosen, and begin a run with them."""
    answers = asked.file("answers")
    if answers is None:
        raise InputError("No file of answers was chosen.", remedy="Choose a file, or try the demo.")
    run = asked.top.runs.begin(_shown_name(answers))
    try:
        chosen = {name: file for name in FILES if (file := asked.file(name)) is not None}
        places = {
            name: run.add(file.filename or "", file.file, otherwise=name) for name, file in chosen.items()
        }
        if places["answers"].suffix.lower() not in READERS:
            raise InputError(
                f"{places['answers'].name}: the ending is not one of a readable file ({', '.join(READERS)})."
            )
        run.save(StudyOptions.of(places))
    except BaseException:
        asked.top.runs.remove(run)
        raise
    return to(of_run(run, "check"))


@page
def open_demo(asked: Asked) -> Response:
    """Begin a run with the embedded demo."""
    from icqf.workflow.demo import demo_values, write_demo_files

    run = asked.top.runs.begin("demo_answers.csv")
    (run.folder / "data").mkdir(mode=0o700)
    answers, codebook = write_demo_files("children", run.folder / "data", force=False)
    run.save(StudyOptions.of(demo_values("children", answers, codebook)))
    return to(of_run(run, "check"))


@page
def history(asked: Asked) -> Response:
    """All runs of the folder."""
    return shown(asked, "history.html", runs=[_row(run) for run in asked.top.runs], settled=asked.top.settled)


@page
def choose_folder(asked: Asked) -> Response:
    """Look for runs in another folder, and keep new ones there."""
    wanted = asked.text("folder")
    if asked.top.settled:
        raise InputError("The folder of runs is chosen where the app is started.")
    if not wanted:
        raise InputError("No folder was named.", remedy="Write its full path, as in ~/studies/runs.")
    if not wanted.startswith("~") and not Path(wanted).is_absolute():
        raise InputError(f"{wanted}: this is not a full path.", remedy="Begin with / or ~.")
    asked.top.runs = Runs(Path(wanted))
    return to("/history")


@page
def resume(asked: Asked) -> Response:
    """Show a run at the step where it is."""
    run = asked.the_run
    state = process.status(run)
    return to(of_run(run, {"ready": "check", "done": "results"}.get(state, "fit")))


@page
def again(asked: Asked) -> Response:
    """Begin a new run with the data and settings of another."""
    return to(of_run(asked.top.runs.again(asked.the_run), "check"))


@page
def removal(asked: Asked) -> Response:
    """Ask before a run is removed."""
    return shown(asked, "remove.html", row=_row(asked.any_run))


@page
def remove(asked: Asked) -> Response:
    """End a run's fit, and remove its data and results."""
    process.stop(asked.any_run)
    asked.top.runs.remove(asked.any_run)
    return to("/history")


def _shown_name(file: UploadFile) -> str:
    return (file.filename or "").replace("\\", "/").rpartition("/")[2].strip() or "answers"


def _row(run: Run) -> dict[str, Any]:
    """What the list of runs says of one."""
    row: dict[str, Any] = {"id": run.id, **run.about, "status": process.status(run), "found": ""}
    if row["status"] == "done":
        try:
            account = run.account
            model, rows = account["model"], account["rows"]
            row["found"] = (
                f"{model['n_components']} factors, β {model['beta']:g}; {rows['fitted']} participants, "
                f"{account['items']} items"
            )
        except InputError as error:  # changed since its status was found
            row["found"] = str(error)
    elif row["status"] == "damaged":
        row["found"] = run.damage
    return row
