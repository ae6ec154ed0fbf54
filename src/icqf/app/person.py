"""The page One person: a sheet about one participant of the study, or of another file."""

from __future__ import annotations

from typing import Any

from starlette.responses import FileResponse, Response

from icqf.app.guard import REPORT_POLICY
from icqf.app.pages import PageRequest, command, form_field, in_words, page, redirect, render, run_url
from icqf.app.runs import PERSONS, Run, free_place
from icqf.errors import InputError
from icqf.workflow.options import PersonOptions

_OF_THE_STUDY = ("answers", "dictionary", "participants", "id", "missing_codes", "visit")
_HINTS = {"who": "such as P017", "id": "that of the fit", "visit_column": "recognised where ids repeat"}


@page
def person(request: PageRequest) -> Response:
    """Show the form for a person, and the sheets made before."""
    run = request.usable_run
    return _person_page(request, run) if run.done else redirect(run_url(run, "fit"))


@page
def make_page(request: PageRequest) -> Response:
    """Write the sheet about one person, from a file or from the answers of the run."""
    from icqf.workflow.person import file_names, write_people

    run, chosen = request.usable_run, request.file("answers")
    given = {name: request.text(name) for name in _HINTS}
    added = None
    try:
        values: dict[str, Any] = {"model": run.results / "model.icqf"}
        if chosen is not None:
            added = run.add(chosen.filename or "", chosen.file, folder="new", otherwise="answers")
            values["answers"] = added
        else:
            values |= {name: value for name in _OF_THE_STUDY if (value := getattr(run.options, name))}
            if given["visit_column"]:
                values.pop("visit", None)
        who = given["who"]
        if not who:
            raise InputError("No participant is named.")
        options = PersonOptions.of(
            values | {name: text for name, text in given.items() if text} | {"who": [who]}
        )
        folder = run.folder / PERSONS
        folder.mkdir(exist_ok=True, mode=0o700)
        place = free_place(folder / file_names([who])[who])
        request.app.worker.do(lambda: write_people(options, place))
    except InputError as error:
        if added is not None:
            added.unlink(missing_ok=True)
        return _person_page(request, run, fault=in_words(error), given=given)
    more = ["--visit-column", given["visit_column"]] if given["visit_column"] else []
    typed = command("person", options.model, options.answers, "--id", who, *more, "--out", place.name)
    return _person_page(request, run, made=place.name, command=typed)


@page
def show_page(request: PageRequest) -> Response:
    """Serve a sheet, which cannot access anything else."""
    run, name = request.usable_run, request.http.path_params["name"]
    if name not in run.persons():
        raise InputError("There is no such page in this run.")
    return FileResponse(
        run.folder / PERSONS / name,
        media_type="text/html; charset=utf-8",
        headers={"content-security-policy": REPORT_POLICY},
    )


def _person_page(
    request: PageRequest, run: Run, *, fault: str = "", given: dict[str, str] | None = None, **result: Any
) -> Response:
    given = given or {}
    fields = [
        form_field(PersonOptions, name, given.get(name, ""), about="", empty=hint)
        for name, hint in _HINTS.items()
    ]
    values = {"made": "", "command": "", **result, "persons": run.persons(), "fault": fault, "fields": fields}
    return render(request, "person.html", step="person", code=400 if fault else 200, **values)
