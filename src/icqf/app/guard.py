"""Who may speak with the app: this machine's own browser, with the cookie that the start address gave.

A page of another site can make a browser send requests here. Such a request is refused by its Host (a name
that was made to point at this machine), by its Origin or Sec-Fetch-Site (another page), and for want of the
cookie, which is sent with requests of the app's own pages only (SameSite=Strict).
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

import h11
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

START = "/start"
SAFE = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# A report is a page of its own: it runs its own script, and reaches neither the app nor anything else.
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; form-action 'none'; frame-ancestors 'self'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
ASK = "Open the address that icqf app printed when it started; it ends in a token of its own."


class TooLarge(Exception):
    """A request that is longer than is taken; the app answers it with `too_large`."""


class Guard:
    """Lets requests of the app's own pages through to it, and no others.

    The start address ends in `token`, or in `once` where the browser is opened: that is taken once only, as
    everybody on a machine may see what its programs are started with. Cookies do not tell ports apart, so
    each has a `cookie` of its own name. `limit` is in bytes.
    """

    def __init__(
        self,
        app: Any,
        *,
        hosts: Iterable[str],
        token: str,
        session: str,
        cookie: str,
        limit: int,
        once: str = "",
    ) -> None:
        self.tokens = {token, once} - {""}
        self.once = once
        self.app, self.hosts, self.session = app, frozenset(hosts), session
        self.cookie, self.limit = cookie, limit

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # the app speaks plain HTTP only
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        answer = self._refused(scope, headers)
        if answer is not None:
            await answer(scope, receive, _with_headers(send))
            return
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.limit:
                raise TooLarge
            return message

        await self.app(scope, counted, _with_headers(send))

    def _refused(self, scope: Message, headers: dict[str, str]) -> Response | None:
        """The answer to a request that is not passed on."""
        host, method, path = headers.get("host", "").lower(), scope["method"], scope["path"]
        if host not in self.hosts:
            return PlainTextResponse("This is not an address of the app.", 421)
        own = f"{scope.get('scheme', 'http')}://{host}"
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if path == START and method in SAFE:
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if any(hmac.compare_digest(given.encode(), token.encode()) for token in self.tokens):
                self.tokens -= {self.once} & {given}
                return self._welcome()
            return HTMLResponse(_page("This address has no valid token.", ASK), 403)
        if origin is not None and origin != own:
            return PlainTextResponse("Requests from other pages are refused.", 403)
        if site not in (None, "same-origin", "none"):
            return PlainTextResponse("Requests from other sites are refused.", 403)
        if method not in SAFE and origin is None:
            return PlainTextResponse("A request that changes something must say where it comes from.", 403)
        if not hmac.compare_digest(self._cookie(headers).encode(), self.session.encode()):
            return HTMLResponse(_page("This browser has not been let in yet.", ASK), 403)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.limit:
            return too_large(self.limit)
        return None

    def _cookie(self, headers: dict[str, str]) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return "" if found is None else found.value

    def _welcome(self) -> Response:
        # A page rather than a redirect: after a click on a link elsewhere the cookie would not be sent on.
        answer = HTMLResponse(_page("One moment …", "", '<meta http-equiv="refresh" content="0;url=/">'))
        answer.set_cookie(self.cookie, self.session, httponly=True, samesite="strict", path="/")
        return answer


def too_large(limit: int) -> Response:
    """The answer to a file that is larger than is taken."""
    return HTMLResponse(_page("This file is too large.", limit_sentence(limit)), 413)


def limit_sentence(limit: int) -> str:
    """Return how large a file may be, and what to do about a larger one."""
    return (
        f"The app takes files of at most {limit / 2**20:.0f} MB. Keep only the columns that are needed, or "
        "use the command line."
    )


def _page(title: str, text: str, head: str = "") -> str:
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">{head}'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        "<title>icqf</title></head>"
        f"<body><main><h1>{title}</h1><p>{text}</p></main></body></html>"
    )


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {key for key, _ in message["headers"]}
            more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in given]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sent


SECONDS_FOR_HEAD = 15.0  # of a request, from its first byte or the beginning of the connection
SECONDS_OF_SILENCE = 60.0  # in the middle of a file that is sent, or of an answer that is not taken
_EACH = 1.0


class TimedProtocol(H11Protocol):
    """HTTP over one connection, which is closed when nothing comes of it."""

    def connection_made(self, transport: Any) -> None:
        """Begin to watch the connection."""
        super().connection_made(transport)
        self._since = self._moved = self.loop.time()
        self._head = True  # whether the head of a request is waited for
        self._waiting = 0  # bytes of the answer that the other side has not taken
        self._watch: asyncio.TimerHandle | None = self.loop.call_later(_EACH, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching it."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        self._moved = self.loop.time()
        super().data_received(data)

    def _look(self) -> None:
        now, state = self.loop.time(), self.conn.their_state
        head = state is h11.IDLE
        if head and not self._head:  # the next request may begin
            self._since = now
        self._head = head
        waiting = self.transport.get_write_buffer_size()
        if waiting != self._waiting:
            self._moved, self._waiting = now, waiting
        silent = now - self._moved > SECONDS_OF_SILENCE
        if head and not waiting and now - self._since > SECONDS_FOR_HEAD:
            self.transport.close()
        elif silent and (waiting or (state is h11.SEND_BODY and not self.flow.read_paused)):
            self.transport.abort()
        self._watch = self.loop.call_later(_EACH, self._look)
