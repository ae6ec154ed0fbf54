"""Shared by all pages: templates, forms, and errors shown on the page where they occur."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, wraps
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from python_multipart.exceptions import FormParserError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from icqf.app.guard import limit_sentence
from icqf.app.process import PendingCheck, Worker, is_running, status
from icqf.app.runs import FURTHER, Job, Run, Runs
from icqf.data.settings import PARAMETERS, Flag, Number, OneOf, Settings, number_in, options_in
from icqf.errors import InputError, Setting, sentence
from icqf.report.renderers.html import environment
from icqf.workflow.options import StudyOptions

STEPS = {
    "check": "Check",
    "fit": "Fit",
    "results": "Results",
    "score": "Score",
    "more": "More analyses",
    "compare": "Compare",
}
STATUS = {
    "ready": "not fitted yet",
    "running": "running",
    "done": "done",
    "stopped": "stopped",
    "failed": "failed",
    "damaged": "damaged",
}
_MOST_FIELDS = 20_000
_MOST_FILES = 60
SEE_OTHER = 303


@dataclass
class AppState:
    """The state that all pages of an app share."""

    runs: Runs
    limit: int
    folder_fixed: bool = False  # whether users may not choose another folder of runs
    worker: Worker = field(default_factory=Worker)
    warm_up: Callable[[], object] | None = None  # called once the first page is shown


@dataclass(frozen=True)
class PageRequest:
    """A request as the pages use it."""

    app: AppState
    http: Request
    form: FormData
    run: Run | None

    @property
    def usable_run(self) -> Run:
        """The run in the address, which must exist and be undamaged."""
        run = self.run_or_404
        run.require_whole()
        return run

    @property
    def run_or_404(self) -> Run:
        """The run in the address, even if damaged."""
        if self.run is None:
            raise NoRun
        return self.run

    @property
    def idle_run(self) -> Run:
        """The run in the address, whose settings can be changed: it is neither being fitted nor finished."""
        run = self.usable_run
        if run.done or is_running(run):
            raise InputError(
                "This run is being fitted or is finished, so its settings cannot be changed.",
                code="fixed",
                remedy="Make a new run from it to change them.",
            )
        return run

    @property
    def job(self) -> Job:
        """The further analysis in the address, or else the run."""
        run, id = self.usable_run, self.http.path_params.get("job")
        job: Job | None = run if id is None else run.analysis(id)
        if job is None:
            raise NoRun
        return job

    def text(self, name: str, default: str = "") -> str:
        """Return a field of the form, stripped."""
        value = self.form.get(name, default)
        return value.strip() if isinstance(value, str) else default

    def listed(self, name: str) -> list[str]:
        """Return the comma-separated parts of a field."""
        return [part.strip() for part in self.text(name).split(",") if part.strip()]

    def texts(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for value in self.form.getlist(name) if isinstance(value, str)]

    def file(self, name: str) -> UploadFile | None:
        """Return an uploaded file, or None."""
        value = self.form.get(name)
        return value if isinstance(value, UploadFile) and value.filename else None


class NoRun(Exception):
    """The run in the address does not exist."""


Handler = Callable[[PageRequest], Response]


def page(handler: Handler) -> Callable[[Request], Any]:
    """Turn a handler, which runs in a thread and may raise `InputError`, into an endpoint."""

    @wraps(handler)
    async def endpoint(http: Request) -> Response:
        app: AppState = http.app.state.shared
        form = FormData()
        if http.method == "POST":
            try:
                form = await http.form(max_fields=_MOST_FIELDS, max_files=_MOST_FILES)
            except (FormParserError, ValueError):
                raise HTTPException(400, "The app does not understand this form.") from None
        request = PageRequest(app, http, form, app.runs.get(http.path_params.get("run", "")))
        try:
            return await run_in_threadpool(_respond, handler, request)
        finally:
            await form.close()

    return endpoint


def _respond(handler: Handler, request: PageRequest) -> Response:
    try:
        return handler(request)
    except NoRun:
        message = "There is no such run in this folder. It may have been removed."
        return render(request, "fault.html", title="No such run", message=message, back="/history", code=404)
    except InputError as error:
        return _error_page(request, in_words(error))
    except OSError as error:  # a folder was changed or is not writable
        name = "" if error.filename is None else f"{Path(os.fsdecode(error.filename)).name}: "
        return _error_page(request, f"{name}{error.strerror or error}.")


def in_words(message: Any, kind: type[Settings] = StudyOptions) -> str:
    """Return the text of an error, a warning or a finding, with settings named as in the forms."""
    return sentence(message, partial(_labelled, kind=kind))


def as_in_forms(text: str, kind: type[Settings]) -> str:
    """Return the message of a command with options such as --by named as in the forms."""
    declared = options_in(kind)

    def label(match: re.Match[str]) -> str:
        known = declared.get(match[1].replace("-", "_"))
        return match[0] if known is None or not known.label else f"“{known.label}”"

    return re.sub(r"--([a-z][a-z-]*)", label, text)


_ON_PAGES = {"items": "the ticks under “Columns”", "codebook": "a codebook"}  # instead of a field


def _labelled(setting: Setting, kind: type[Settings]) -> str:
    declared = options_in(kind).get(setting.name)
    if declared is None or not declared.label:
        return str(setting) if setting.assigned else _ON_PAGES.get(setting.name, str(setting))
    values = setting.value if isinstance(setting.value, list | tuple) else [setting.value]
    written = ", ".join(f"{each:g}" if isinstance(each, float) else str(each) for each in values)
    return f"{written} under “{declared.label}”" if setting.assigned else f"“{declared.label}”"


def form_field(
    kind: type[Settings], name: str, value: Any, *, columns: Sequence[str] = (), **more: Any
) -> dict[str, Any]:
    """Describe an option for a form: a checkbox, several, a list, a file or a text field, by its kind.

    A column is chosen from `columns`, if these are known.
    """
    declared, default = options_in(kind)[name], getattr(kind, name, None)
    limits = None if declared.take is not None else declared.kind or PARAMETERS[name]
    choices = tuple(limits.choices) if isinstance(limits, OneOf) else ()
    choices = tuple(columns) if declared.metavar == "COLUMN" else choices
    needless = bool(choices) and default is None
    several = declared.many or isinstance(default, tuple) or isinstance(value, list | tuple)
    shape = "ticks" if choices and several else "list" if choices else "line"
    shape = (
        "tick" if isinstance(limits, Flag) else "file" if declared.file and not declared.metavar else shape
    )
    return {
        "name": name,
        "label": declared.label,
        "about": "" if declared.help.rstrip(".") == declared.label else declared.help,
        "shape": shape,
        "value": ", ".join(map(str, value)) if shape == "line" and isinstance(value, list | tuple) else value,
        "choices": choices,
        "empty": declared.usual or ("choose one" if declared.missing else "none" if needless else ""),
        **more,
    }


def entered(request: PageRequest, kind: type[Settings], field: Mapping[str, Any]) -> Any:
    """Return what was entered in a field of a form, in the type of its option; "" or [] for nothing."""
    name, shape = field["name"], field["shape"]
    declared, default = options_in(kind)[name], getattr(kind, name, None)
    if shape == "tick":
        return name in request.form
    if shape == "ticks":
        return request.texts(name)
    text = request.text(name)
    if declared.whole:
        return [text] if text else []
    if declared.many or isinstance(default, tuple):
        numbers = isinstance(declared.kind, Number)
        return [number_in(each) if numbers else each for each in request.listed(name)]
    limits = None if declared.take is not None else declared.kind or PARAMETERS[name]
    return number_in(text) if isinstance(limits, Number) else text


def _error_page(request: PageRequest, message: str) -> Response:
    """Show an error, with a link back to the page of the app that the request came from."""
    try:
        came = urlsplit(request.http.headers.get("referer", ""))
        own = came.netloc == request.http.headers.get("host") and not came.path.startswith("//")
    except ValueError:
        own = False
    back = came.path or "/" if own else "/"
    return render(request, "fault.html", title="This cannot be done", message=message, back=back, code=400)


def render(request: PageRequest, template: str, *, code: int = 200, **values: Any) -> HTMLResponse:
    """Render a page."""
    run, app = request.run, request.app
    state = None if run is None else status(run)
    bare = run is not None and bool(run.offers) and run.starts_from != "study"
    text = TEMPLATES.get_template(template).render(
        {
            "run": run,
            "state": state,
            "steps": [each for each in STEPS.items() if each[0] == "more" or not bare],
            "step": "",
            "limit": app.limit,
            "limit_sentence": limit_sentence(app.limit),
            "folder": app.runs.folder,
            "fixed": state in ("running", "done"),
            **values,
        }
    )
    return HTMLResponse(text.encode("utf-8", "replace"), code)  # files may hold invalid characters


def waiting(request: PageRequest, pending: PendingCheck, *, step: str) -> HTMLResponse:
    """Show that a file is being read."""
    run: Any = request.run
    shown: dict[str, Any] = {"heading": run.about["title"], "text": pending.text, "what": pending.words}
    shown |= {"poll": run_url(run, "look"), "after": "", "cancel": "", "share": 0}
    return render(request, "running.html", step=step, **shown)


def download(path: Path) -> FileResponse:
    """Return a file to be saved."""
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


def redirect(address: str) -> RedirectResponse:
    """Send the browser to another page after a POST."""
    return RedirectResponse(address, SEE_OTHER)


def run_url(run: Run, step: str) -> str:
    """Return the address of one step of a run."""
    return f"/runs/{run.id}/{step}"


def job_url(job: Job) -> str:
    """Return the address of a further analysis, or of the current step of a run."""
    return f"/runs/{job.id}" if job is job.run else run_url(job.run, f"{FURTHER}/{job.id}")


def command(*words: str | Path) -> str:
    """Return a command for the shell."""
    return shlex.join(["icqf", *map(str, words)])


def _when(text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%d %b %Y, %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""


TEMPLATES = environment("icqf.app")
TEMPLATES.filters |= {"when": _when, "status_words": STATUS.get}
