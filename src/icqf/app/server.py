"""The app's server: by default reachable from this computer only, with a secret token."""

from __future__ import annotations

import importlib
import ipaddress
import os
import secrets
import socket
import stat
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from icqf.app.guard import START, Guard, TimedProtocol, TooLarge, message_page, too_large
from icqf.app.pages import AppState
from icqf.app.runs import Runs
from icqf.errors import Advice, InputError
from icqf.io.formats import largest_file
from icqf.report.renderers.html import environment, file_of

HOST = "127.0.0.1"
PORT = 8765
_SECRET = ".icqf-app"
_STATIC = {"app.js": "text/javascript", "app.css": "text/css"}


# Every page: method, path, and the module and function that handle it. A module is imported when one of its
# pages is first requested, so that the app starts at once.
PAGES = (
    ("GET", "", "home", "home"),
    ("POST", "open", "home", "open_files"),
    ("POST", "several", "home", "open_several"),
    ("POST", "demo", "home", "open_demo"),
    ("GET", "history", "home", "history"),
    ("POST", "folder", "home", "choose_folder"),
    ("POST", "unread", "home", "remove_unread"),
    ("GET", "runs/{run}", "home", "resume"),
    ("POST", "runs/{run}/again", "home", "again"),
    ("GET", "runs/{run}/remove", "home", "removal"),
    ("POST", "runs/{run}/remove", "home", "remove"),
    ("GET", "runs/{run}/check", "check", "check"),
    ("GET", "runs/{run}/look", "check", "check_progress"),
    ("POST", "runs/{run}/remedy", "check", "remedy"),
    ("POST", "runs/{run}/columns", "check", "columns"),
    ("POST", "runs/{run}/reset", "check", "reset"),
    ("GET", "runs/{run}/rows", "check", "rows"),
    ("POST", "runs/{run}/rows", "check", "choose"),
    ("GET", "runs/{run}/data", "data", "data"),
    ("GET", "runs/{run}/codebook", "codebook", "codebook"),
    ("POST", "runs/{run}/codebook", "codebook", "save_codebook"),
    ("GET", "runs/{run}/fit", "fit", "fit"),
    ("POST", "runs/{run}/fit", "fit", "begin"),
    ("GET", "runs/{run}/preview", "fit", "preview"),
    ("POST", "runs/{run}/continue", "fit", "resume"),
    ("POST", "runs/{run}/cancel", "fit", "cancel"),
    ("GET", "runs/{run}/progress", "fit", "progress"),
    ("GET", "runs/{run}/results", "results", "results"),
    ("POST", "runs/{run}/names", "results", "names"),
    ("POST", "runs/{run}/number", "results", "another_number"),
    ("GET", "runs/{run}/report", "results", "document"),
    ("GET", "runs/{run}/read", "results", "full_report"),
    ("GET", "runs/{run}/all.zip", "results", "everything"),
    ("GET", "runs/{run}/files/results/{name:path}", "results", "file"),
    ("GET", "runs/{run}/files/scores/{name}", "score", "table"),
    ("GET", "runs/{run}/score", "score", "score"),
    ("POST", "runs/{run}/score", "score", "score_file"),
    ("GET", "runs/{run}/more", "analyses", "more"),
    ("GET", "runs/{run}/more/{tool}", "analyses", "form"),
    ("POST", "runs/{run}/more/{tool}", "analyses", "begin"),
    ("GET", "runs/{run}/analyses/{job}", "analyses", "show"),
    ("GET", "runs/{run}/analyses/{job}/progress", "fit", "progress"),
    ("POST", "runs/{run}/analyses/{job}/continue", "fit", "resume"),
    ("POST", "runs/{run}/analyses/{job}/cancel", "fit", "cancel"),
    ("POST", "runs/{run}/analyses/{job}/remove", "analyses", "remove"),
    ("GET", "runs/{run}/analyses/{job}/page/{name:path}", "results", "document"),
    ("GET", "runs/{run}/analyses/{job}/files/{name:path}", "results", "file"),
    ("GET", "runs/{run}/analyses/{job}/all.zip", "results", "everything"),
    ("GET", "runs/{run}/compare", "score", "compare"),
    ("POST", "runs/{run}/compare", "score", "compare_models"),
    ("GET", "compare", "score", "compare"),
    ("POST", "compare", "score", "compare_models"),
)


@dataclass(frozen=True)
class Address:
    """Where the app listens, and the addresses that open it."""

    host: str
    port: int
    token: str
    once: str = ""

    @property
    def url(self) -> str:
        """The address to open, with its token."""
        return self._with(self.token)

    @property
    def url_once(self) -> str:
        """The address passed to the browser, valid once."""
        return self._with(self.once)

    def _with(self, token: str) -> str:
        host = {"0.0.0.0": HOST, "::": "::1"}.get(self.host, self.host)  # wildcards cannot be opened
        literal = f"[{host}]" if ":" in host else host
        return f"http://{literal}:{self.port}{START}?token={token}"


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this computer only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def make_app(
    runs: Runs,
    *,
    hosts: tuple[str, ...],
    token: str,
    cookie: str,
    limit: int | None = None,
    folder_fixed: bool = False,
    once: str = "",
) -> Any:
    """Return the app behind its guard."""
    most = largest_file() if limit is None else limit
    inner = Starlette(
        routes=[
            *(Route(f"/{path}", _later(*where), methods=[method]) for method, path, *where in PAGES),
            Route("/static/{name}", _static),
        ],
        exception_handlers={Exception: _broken, TooLarge: lambda *_: too_large(most)},
    )
    inner.state.shared = AppState(runs, most, folder_fixed, warm_up=_import_pages)
    session = _session(runs.folder)
    return Guard(inner, hosts=hosts, token=token, session=session, cookie=cookie, limit=most, once=once)


def serve(
    folder: Path,
    *,
    host: str = HOST,
    port: int | None = None,
    other_machines: bool = False,
    limit: int | None = None,
    begin: Callable[[Address], object] | None = None,
) -> None:
    """Run the app until interrupted; `begin` is called with the address once the app is ready.

    Without `port`, the default port or any free one is used; `limit` is in bytes.
    """
    if not is_loopback(host) and not other_machines:
        raise InputError(
            f"{host}: other computers could reach the app, and participants' answers with it.",
            code="other-machines",
            remedy=Advice(
                "Leave {host} out, or add {other_machines=} if that is what you want.", other_machines=True
            ),
        )
    os.umask(0o077)  # new files are readable by their owner only
    runs = Runs(folder)
    place = _bound(host, port)
    tokens = (secrets.token_urlsafe(32) for _ in range(2))
    address = Address(host, place.getsockname()[1], *tokens)
    app = make_app(
        runs,
        hosts=_hosts(address),
        token=address.token,
        cookie=f"icqf-{address.port}",
        limit=limit,
        folder_fixed=other_machines,
        once=address.once,
    )
    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        log_level="warning",
        ws="none",
        lifespan="off",
        server_header=False,
        access_log=False,
    )
    server = uvicorn.Server(config)
    if begin is not None:
        threading.Thread(target=_when_ready, args=(server, begin, address), daemon=True).start()
    server.run(sockets=[place])


def _when_ready(server: uvicorn.Server, begin: Callable[[Address], object], address: Address) -> None:
    waited = threading.Event()
    while not server.started and not server.should_exit:
        waited.wait(0.01)
    begin(address)


def _hosts(address: Address) -> tuple[str, ...]:
    """Return the allowed values of a request's Host header."""
    names = {address.host, *(("localhost", "127.0.0.1", "[::1]") if is_loopback(address.host) else ())}
    if address.host in ("0.0.0.0", "::"):
        names |= {"localhost", "127.0.0.1", socket.gethostname().lower(), *_own_addresses()}
    literal = {f"[{name}]" if ":" in name and not name.startswith("[") else name for name in names}
    return tuple(f"{name}:{address.port}" for name in literal)


def _own_addresses() -> set[str]:
    try:
        return {str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:
        return set()


def _bound(host: str, port: int | None) -> socket.socket:
    """Bind a socket; the default port may be replaced by a free one, a port that was given may not."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    for each in (PORT, 0) if port is None else (port,):
        place = socket.socket(kind, socket.SOCK_STREAM)
        if os.name != "nt":  # on Windows, two programs could share the port
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind((host, each))
        except (OSError, OverflowError) as error:
            place.close()
            reason = getattr(error, "strerror", None) or error
        else:
            return place
    raise InputError(
        f"The app cannot listen at {host}, port {port if port is not None else PORT} ({reason}).",
        code="port",
        remedy=Advice("Choose another port with {port}."),
    )


def _session(folder: Path) -> str:
    """Return the cookie's secret, stored with the runs so that open tabs survive a restart of the app."""
    path = folder / _SECRET
    try:
        about = path.lstat()
        ours = not hasattr(os, "getuid") or about.st_uid == os.getuid()
        if ours and stat.S_ISREG(about.st_mode) and about.st_mode & 0o077 == 0:
            secret = path.read_text(encoding="ascii").strip()
            if len(secret) >= 32:
                return secret
    except (OSError, UnicodeDecodeError):
        pass
    secret = secrets.token_urlsafe(32)
    try:
        path.unlink(missing_ok=True)
        place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InputError(
            f"{path}: this file cannot be replaced ({error.strerror}).",
            code="secret",
            remedy="Choose a folder that only you can write to.",
        ) from None
    with open(place, "w", encoding="ascii") as out:
        out.write(secret)
    return secret


async def _static(request: Request) -> Response:
    """Serve the style sheets and the script."""
    name = request.path_params["name"]
    if name == "report.css":  # shared with the report
        return Response(file_of(environment(), "style.css"), media_type="text/css")
    if name not in _STATIC:
        return Response("There is no such file.", 404)
    text = (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")
    return Response(text, media_type=_STATIC[name])


def _import_pages() -> None:
    """Import in advance what the first check and the first results need."""
    for name in ("app.check", "app.results", "app.score", "workflow.naming", "workflow.score"):
        importlib.import_module(f"icqf.{name}")


def _later(module: str, name: str) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint whose module is imported at the first request."""

    async def endpoint(request: Request) -> Response:
        handlers = await run_in_threadpool(importlib.import_module, f"icqf.app.{module}")
        response: Response = await getattr(handlers, name)(request)
        return response

    return endpoint


async def _broken(request: Request, error: Exception) -> Response:
    """Show that the app itself failed; the traceback is in the terminal."""
    details = (
        "Details are in the window in which icqf app was started. Your runs are unchanged. "
        "<a href=/>Continue</a>"
    )
    return HTMLResponse(message_page("Internal error", details), 500)
