"""What every page shares: templates, forms, and an error that is said on the page where it happened."""

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
from icqf.app.process import Desk, status
from icqf.app.runs import Run, Runs
from icqf.data.settings import PARAMETERS, Flag, OneOf, Settings, options_in
from icqf.errors import InputError, Setting, sentence
from icqf.report.renderers.html import environment
from icqf.workflow.options import StudyOptions

STEPS = {"check": "Check", "fit": "Fit", "results": "Results", "score": "Score", "compare": "Compare"}
STATUS = {
    "ready": "not fitted yet",
    "running": "being fitted",
    "done": "done",
    "stopped": "stopped",
    "failed": "refused",
    "damaged": "damaged",
}
_MOST_FIELDS = 20_000
_MOST_FILES = 8
SEE_OTHER = 303


@dataclass
class Desktop:
    """What the pages of one app share."""

    runs: Runs
    limit: int
    settled: bool = False  # whether the folder of runs stays as it is
    desk: Desk = field(default_factory=Desk)
    ahead: Callable[[], object] | None = None  # what to do once the first page is shown


@dataclass(frozen=True)
class Asked:
    """A request, as the pages see it."""

    top: Desktop
    request: Request
    form: FormData
    run: Run | None

    @property
    def the_run(self) -> Run:
        """The run of the address; an error where there is none, or none that can be used."""
        run = self.any_run
        run.require_whole()
        return run

    @property
    def any_run(self) -> Run:
        """The run of the address, also a damaged one; an error where there is none."""
        if self.run is None:
            raise NoRun
        return self.run

    def text(self, name: str, default: str = "") -> str:
        """Return a field of the form as text without blanks around it."""
        value = self.form.get(name, default)
        return value.strip() if isinstance(value, str) else default

    def listed(self, name: str) -> list[str]:
        """Return the parts of a field between commas."""
        return [part.strip() for part in self.text(name).split(",") if part.strip()]

    def texts(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for value in self.form.getlist(name) if isinstance(value, str)]

    def file(self, name: str) -> UploadFile | None:
        """Return a file of the form; None where none was chosen."""
        value = self.form.get(name)
        return value if isinstance(value, UploadFile) and value.filename else None


class NoRun(Exception):
    """An address of a run that is not there."""


Handler = Callable[[Asked], Response]


def page(handler: Handler) -> Callable[[Request], Any]:
    """Make an endpoint of a handler, which runs in a thread and may raise `InputError`."""

    @wraps(handler)
    async def endpoint(request: Request) -> Response:
        top: Desktop = request.app.state.top
        form = FormData()
        if request.method == "POST":
            try:
                form = await request.form(max_fields=_MOST_FIELDS, max_files=_MOST_FILES)
            except (FormParserError, ValueError):
                raise HTTPException(400, "This is not a form that the app understands.") from None
        asked = Asked(top, request, form, top.runs.get(request.path_params.get("run", "")))
        try:
            return await run_in_threadpool(_answered, handler, asked)
        finally:
            await form.close()

    return endpoint


def _answered(handler: Handler, asked: Asked) -> Response:
    try:
        return handler(asked)
    except NoRun:
        said = "There is no such run in this folder. It may have been removed."
        return shown(asked, "fault.html", title="No such run", said=said, back="/history", code=404)
    except InputError as error:
        return _refused(asked, in_words(error))
    except OSError as error:  # of a folder that was changed, or cannot be written to
        name = "" if error.filename is None else f"{Path(os.fsdecode(error.filename)).name}: "
        return _refused(asked, f"{name}{error.strerror or error}.")


def in_words(said: Any) -> str:
    """Return what an error, a warning or a finding says, with settings named as in the forms."""
    return sentence(said, _labelled)


def _labelled(setting: Setting) -> str:
    declared = options_in(StudyOptions).get(setting.name)
    if declared is None or not declared.label:
        return str(setting)
    values = setting.value if isinstance(setting.value, list | tuple) else [setting.value]
    written = ", ".join(f"{each:g}" if isinstance(each, float) else str(each) for each in values)
    return f"{written} under “{declared.label}”" if setting.assigned else f"“{declared.label}”"


def form_field(kind: type[Settings], name: str, value: Any, **more: Any) -> dict[str, Any]:
    """An option as a form shows it: its kind decides between a tick, a list and a line."""
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


def _refused(asked: Asked, said: str) -> Response:
    """The page of what cannot be done, with the way back to the page of the app that it came from."""
    try:
        came = urlsplit(asked.request.headers.get("referer", ""))
        own = came.netloc == asked.request.headers.get("host") and not came.path.startswith("//")
    except ValueError:
        own = False
    back = came.path or "/" if own else "/"
    return shown(asked, "fault.html", title="This cannot be done", said=said, back=back, code=400)


def shown(asked: Asked, template: str, *, code: int = 200, **values: Any) -> HTMLResponse:
    """Render a page."""
    run, top = asked.run, asked.top
    state = None if run is None else status(run)
    found = TEMPLATES.get_template(template).render(
        {
            "run": run,
            "state": state,
            "steps": STEPS.items(),
            "step": "",
            "limit": top.limit,
            "limit_sentence": limit_sentence(top.limit),
            "folder": top.runs.folder,
            **values,
        }
    )
    return HTMLResponse(found.encode("utf-8", "replace"), code)  # a file may hold what is not text


def to(address: str) -> RedirectResponse:
    """Send the browser to another page after something was done."""
    return RedirectResponse(address, SEE_OTHER)


def of_run(run: Run, step: str) -> str:
    """Return the address of a step of a run."""
    return f"/runs/{run.id}/{step}"


def command(*words: str | Path) -> str:
    """Return a command as it is typed."""
    return shlex.join(["icqf", *map(str, words)])


def _size(n: int) -> str:
    return f"{n / 2**20:.1f} MB" if n >= 2**20 else f"{max(n / 2**10, 0.1):.1f} kB"


def _when(text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%d %b %Y, %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""


def _templates() -> Environment:
    found = environment("icqf.app")
    more: Mapping[str, Any] = {"size": _size, "when": _when, "status_words": STATUS.get}
    found.filters.update(more)
    return found


TEMPLATES = _templates()
