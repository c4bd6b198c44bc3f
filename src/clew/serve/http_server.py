"""uvicorn with time limits on slow callers, and with an end that finishes what has begun."""

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from math import ceil
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from clew.config import ServeSettings
from clew.serve.app import create_app
from clew.serve.core.server import Server

_log = logging.getLogger(__name__)
_KEEP_ALIVE = 30
_GOODBYE_SECONDS = 2  # in which answers that are cut say so
_HEADER_BYTES = 65_536  # of a request whose headers are not complete
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)


class TimedProtocol(HttpToolsProtocol):
    """Closes connections whose headers are too large or too slow, or whose answer is not read."""

    _head_bytes: int | None = None  # None: no request has begun, or its headers are complete

    def __init__(self, *given: Any, limits: ServeSettings, **named: Any) -> None:
        super().__init__(*given, **named)
        self._limits = limits
        self._waiting: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the clock with the connection."""
        super().connection_made(transport)
        self._start_clock()

    def data_received(self, data: bytes) -> None:
        """Start the clock with a new request, and stop it when its headers are complete."""
        if self.transport.is_closing():
            return
        if self._is_idle():
            self._start_clock()
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if not self._is_idle():
            self._stop_clock()
        if self._head_bytes is not None and self._head_bytes > _HEADER_BYTES:
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Count the bytes of the headers from the next piece on."""
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Count no longer; what follows is a body, which has its own limit."""
        self._head_bytes = None
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Give the caller some time to read what is buffered; without it the answer would wait."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._limits.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the caller reads."""
        self._stop_unread()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        self._stop_clock()
        self._stop_unread()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _start_clock(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self._limits.header_seconds, self._close_if_idle)

    def _stop_clock(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _stop_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _close_if_idle(self) -> None:
        self._waiting = None
        if self._is_idle():
            self.transport.close()


class StoppableServer(uvicorn.Server):
    """Ends cleanly on a signal: uvicorn would send itself the signal again after its shutdown."""

    def __init__(
        self,
        server: Server,
        *,
        replaceable: bool = False,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        limits = server.settings.serve
        super().__init__(
            uvicorn.Config(
                create_app(server),
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=_round_up(limits.shutdown_seconds),
                http=partial(TimedProtocol, limits=limits),  # type: ignore[arg-type]
                ws="none",
                lifespan="on",
            )
        )
        self._server, self._replaceable, self._on_ready = server, replaceable, on_ready
        self._leaving = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started and self._on_ready is not None:
            self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGTERM and SIGINT; on SIGHUP a worker makes room for the one that follows it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.stop_soon)
        # A terminal's Ctrl-C reaches workers too, but it is their supervisor that tells them.
        by_hand = self._ignore if self._replaceable else self.stop_soon
        loop.add_signal_handler(signal.SIGINT, by_hand)
        loop.add_signal_handler(signal.SIGHUP, self.leave)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)

    def stop_soon(self) -> None:
        """Stop within the time that running requests have; a second signal ends them at once."""
        loop, again = asyncio.get_running_loop(), self.should_exit and not self._leaving
        wait = 0.0 if again else self._server.settings.serve.shutdown_seconds
        loop.call_later(wait, self._server.interrupt)
        if self.should_exit:  # uvicorn waits for as long as it was told at the first signal
            loop.call_later(wait + _GOODBYE_SECONDS, self._end_requests)
        self._server.stop_soon()
        self.should_exit, self._leaving = True, False

    def _ignore(self) -> None:
        """Do nothing."""

    def leave(self) -> None:
        """Take no new requests and jobs; finish the streams that are open, however long."""
        if not self._replaceable:
            _log.warning("SIGHUP does nothing with one worker; restart it, or use --workers 2")
        elif not self.should_exit:
            self._server.runner.is_leaving = True
            limit = self._server.settings.serve.reload_seconds
            self.config.timeout_graceful_shutdown = _round_up(limit)
            asyncio.get_running_loop().call_later(limit, self._server.interrupt)
            self.should_exit = self._leaving = True

    def _end_requests(self) -> None:
        for task in self.server_state.tasks:
            task.cancel()
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()


def _round_up(seconds: float) -> int:
    """Return the time after which uvicorn cancels what still runs."""
    return ceil(seconds) + _GOODBYE_SECONDS
