"""Shared by all pages: templates, forms, and errors shown on the page where they occur."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment
from python_multipart.exceptions import FormParserError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from icqf.app.guard import limit_sentence
from icqf.app.process import Worker, status
from icqf.app.runs import Run, Runs
from icqf.data.settings import PARAMETERS, Flag, OneOf, Settings, options_in
from icqf.errors import InputError, Setting, sentence
from icqf.report.renderers.html import environment
from icqf.workflow.options import StudyOptions

STEPS = {
    **{"check": "Check", "fit": "Fit", "results": "Results", "score": "Score", "person": "One person"},
    **{"compare": "Compare"},
}
STATUS = {
    "ready": "not fitted yet",
    "running": "being fitted",
    "done": "done",
    "stopped": "stopped",
    "failed": "failed",
    "damaged": "damaged",
}
_MOST_FIELDS = 20_000
_MOST_FILES = 8
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


def in_words(message: Any) -> str:
    """Return the text of an error, a warning or a finding, with settings named as in the forms."""
    return sentence(message, _labelled)


def _labelled(setting: Setting) -> str:
    declared = options_in(StudyOptions).get(setting.name)
    if declared is None or not declared.label:
        return str(setting)
    values = setting.value if isinstance(setting.value, list | tuple) else [setting.value]
    written = ", ".join(f"{each:g}" if isinstance(each, float) else str(each) for each in values)
    return f"{written} under “{declared.label}”" if setting.assigned else f"“{declared.label}”"


def form_field(kind: type[Settings], name: str, value: Any, **more: Any) -> dict[str, Any]:
    """Describe an option for a form: a checkbox, a list or a text field, by its kind."""
    declared = options_in(kind)[name]
    limits = None if declared.take is not None else declared.kind or PARAMETERS[name]
    shape = "tick" if isinstance(limits, Flag) else "list" if isinstance(limits, OneOf) else "line"
    return {
        "name": name,
        "label": declared.label,
        "about": declared.help,
        "shape": shape,
        "value": ", ".join(map(str, value)) if isinstance(value, list | tuple) else value,
        "choices": limits.choices if isinstance(limits, OneOf) else (),
        "empty": "",
        **more,
    }


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
    text = TEMPLATES.get_template(template).render(
        {
            "run": run,
            "state": state,
            "steps": STEPS.items(),
            "step": "",
            "limit": app.limit,
            "limit_sentence": limit_sentence(app.limit),
            "folder": app.runs.folder,
            **values,
        }
    )
    return HTMLResponse(text.encode("utf-8", "replace"), code)  # files may hold invalid characters


def redirect(address: str) -> RedirectResponse:
    """Send the browser to another page after a POST."""
    return RedirectResponse(address, SEE_OTHER)


def run_url(run: Run, step: str) -> str:
    """Return the address of one step of a run."""
    return f"/runs/{run.id}/{step}"


def command(*words: str | Path) -> str:
    """Return a command for the shell."""
    return shlex.join(["icqf", *map(str, words)])


def _size(n: int) -> str:
    return f"{n / 2**20:.1f} MB" if n >= 2**20 else f"{max(n / 2**10, 0.1):.1f} kB"


def _when(text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%d %b %Y, %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""


def _templates() -> Environment:
    templates = environment("icqf.app")
    filters: Mapping[str, Any] = {"size": _size, "when": _when, "status_words": STATUS.get}
    templates.filters.update(filters)
    return templates


TEMPLATES = _templates()
