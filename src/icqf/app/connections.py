"""Connections that end when the other side falls silent, so that half a request holds nothing for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

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
