"""Access control: only a browser with the cookie set by the start address may use the app.

Pages of other sites can make a browser send requests here. Such requests are refused because of their Host (a
name made to point at this computer), their Origin or Sec-Fetch-Site (another page), or the missing cookie,
which is sent only from the app's own pages (SameSite=Strict).
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import KW_ONLY, dataclass
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
# A report is sandboxed: it runs its own script, but can access neither the app nor anything else.
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
ASK = "Open the address that icqf app printed when it started; it ends in a secret token."


class TooLarge(Exception):
    """A request exceeds the size limit; answered with `too_large`."""


@dataclass
class Guard:
    """Passes on only requests from the app's own pages.

    The start address ends in `token`, or in `once` if the program opens the browser: `once` is valid a single
    time, because other users of a computer can see the arguments of programs. Cookies do not distinguish
    ports, so the name `cookie` does. `limit` is in bytes.
    """

    app: Any
    _: KW_ONLY
    hosts: Iterable[str]
    token: str
    session: str
    cookie: str
    limit: int
    once: str = ""

    def __post_init__(self) -> None:
        self.tokens = {self.token, self.once} - {""}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        response = self._response(scope, headers)
        if response is not None:
            await response(scope, receive, _with_headers(send))
            return
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.limit:
                raise TooLarge
            return message

        await self.app(scope, limited, _with_headers(send))

    def _response(self, scope: Message, headers: dict[str, str]) -> Response | None:
        """Return the response to a request that is not passed on; None for one that is."""
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
            return HTMLResponse(message_page("This address has no valid token.", ASK), 403)
        if origin is not None and origin != own:
            return PlainTextResponse("Requests from other pages are refused.", 403)
        if site not in (None, "same-origin", "none"):
            return PlainTextResponse("Requests from other sites are refused.", 403)
        if method not in SAFE and origin is None:
            return PlainTextResponse("A request that changes something needs an Origin header.", 403)
        if not hmac.compare_digest(self._cookie(headers).encode(), self.session.encode()):
            return HTMLResponse(message_page("This browser has no access yet.", ASK), 403)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.limit:
            return too_large(self.limit)
        return None

    def _cookie(self, headers: dict[str, str]) -> str:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return "" if morsel is None else morsel.value

    def _welcome(self) -> Response:
        # A page, not a redirect: after a click on a link elsewhere, a redirect would not send the cookie.
        response = HTMLResponse(
            message_page("One moment …", "", '<meta http-equiv="refresh" content="0;url=/">')
        )
        response.set_cookie(self.cookie, self.session, httponly=True, samesite="strict", path="/")
        return response


def too_large(limit: int) -> Response:
    """Return the response to a file above the size limit."""
    return HTMLResponse(message_page("This file is too large.", limit_sentence(limit)), 413)


def limit_sentence(limit: int) -> str:
    """Return the size limit, and what to do about a larger file."""
    return (
        f"The app accepts files of at most {limit / 2**20:.0f} MB. Keep only the columns you need, or use "
        "the command line."
    )


def message_page(title: str, text: str, head: str = "") -> str:
    """Return a page with a title and a sentence, for requests that are not passed on."""
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">{head}'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        "<title>icqf</title></head>"
        f"<body><main><h1>{title}</h1><p>{text}</p></main></body></html>"
    )


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {key for key, _ in message["headers"]}
            more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in own]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return send_with_headers


SECONDS_FOR_HEAD = 15.0  # for a request's header, from its first byte or the start of the connection
SECONDS_OF_SILENCE = 60.0  # within an upload, or a response that is not read
_EACH = 1.0


class TimedProtocol(H11Protocol):
    """HTTP over one connection, which is closed when idle for too long."""

    def connection_made(self, transport: Any) -> None:
        """Start watching the connection."""
        super().connection_made(transport)
        self._since = self._moved = self.loop.time()
        self._head = True  # whether the header of a request is awaited
        self._waiting = 0  # bytes of the response not read yet
        self._watch: asyncio.TimerHandle | None = self.loop.call_later(_EACH, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching the connection."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Note the time, and pass the data on."""
        self._moved = self.loop.time()
        super().data_received(data)

    def _close_if_idle(self) -> None:
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
        self._watch = self.loop.call_later(_EACH, self._close_if_idle)
