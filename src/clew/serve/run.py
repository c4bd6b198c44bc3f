"""Run the server: bind the address, then answer in this process or in several children."""

import asyncio
import contextlib
import multiprocessing
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from clew import sync
from clew.config import Settings
from clew.errors import ConfigError
from clew.serve.app import create_app
from clew.serve.core.database import ServerDatabase
from clew.serve.core.folders import Folders
from clew.serve.core.keys import KeyStore
from clew.serve.core.server import Server, is_loopback
from clew.serve.core.workspaces import OpenKb, open_knowledge_base

_BACKLOG = 2048
_POLL_SECONDS = 0.2
_MIN_LIFETIME = 5.0  # a worker that ends sooner failed to start; it is not started again
_KEEP_ALIVE = 30
_HEADER_BYTES = 65_536  # of a request whose headers are not complete
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n"
    b"Connection: close\r\n\r\n"
)
_HEADER_SECONDS = 15.0  # within which a request's headers must arrive


@dataclass(frozen=True)
class ServeOptions:
    """What a server process needs to start; sent to children."""

    settings: Settings
    folders: Folders
    open_kb: OpenKb = open_knowledge_base


def check_bind(settings: Settings, folders: Folders) -> None:
    """Raise if the address is public and no key protects it."""
    host = settings.serve.host
    if is_loopback(host) or KeyStore(ServerDatabase(folders.state)).any_active():
        return
    raise ConfigError(
        f"{host} can be reached from other machines and there is no key; make one with "
        "`clew keys add NAME`, or serve on 127.0.0.1"
    )


def bind(host: str, port: int) -> socket.socket:
    """Bind the address and listen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        why = (error.strerror or str(error)).lower()
        raise ConfigError(
            f"cannot listen on {host}:{port}: {why}; choose another --port"
        ) from error
    made.set_inheritable(True)
    return made


async def serve(options: ServeOptions, announce: Callable[[str], None]) -> None:
    """Serve until a signal says stop; `announce` is called with the address."""
    serve_settings = options.settings.serve
    check_bind(options.settings, options.folders)
    bound = bind(serve_settings.host, serve_settings.port)
    try:
        host, port = bound.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        announce(f"http://{shown}:{port}{serve_settings.root_path}")
        if serve_settings.workers == 1:
            await _make_uvicorn(options).serve([bound])
        else:
            await _Supervisor(options, bound).run()
    finally:
        bound.close()


def _make_uvicorn(options: ServeOptions) -> uvicorn.Server:
    server = Server(options.settings, options.folders, options.open_kb)
    config = uvicorn.Config(
        create_app(server),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=round(options.settings.serve.shutdown_seconds),
        http=TimedProtocol,
        ws="none",
        lifespan="on",
    )
    return StoppableServer(config)


class StoppableServer(uvicorn.Server):
    """Ends cleanly on a signal: uvicorn would send itself the signal again after its shutdown."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on the first signal, and at once on the second; a hangup changes nothing."""
        loop, numbers = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)
        for number in numbers:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        loop.add_signal_handler(signal.SIGHUP, _ignore_hangup)
        try:
            yield
        finally:
            for number in (*numbers, signal.SIGHUP):
                loop.remove_signal_handler(number)


def _ignore_hangup() -> None:
    """Go on: only a server with several workers can replace them."""


class TimedProtocol(HttpToolsProtocol):
    """Closes connections whose request line and headers are too large or do not arrive in time."""

    _waiting: asyncio.TimerHandle | None = None
    _head_bytes: int | None = None  # None: no request has begun, or its headers are complete

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

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _start_clock(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(_HEADER_SECONDS, self._close_if_idle)

    def _stop_clock(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _close_if_idle(self) -> None:
        self._waiting = None
        if self._is_idle():
            self.transport.close()


def run_worker(options: ServeOptions, bound: socket.socket) -> None:
    """Answer requests in a child process until it is told to stop."""
    with contextlib.suppress(KeyboardInterrupt):
        sync.run(_make_uvicorn(options).serve([bound]))


class _Supervisor:
    """Keeps worker processes running; SIGHUP replaces them one generation after the other."""

    def __init__(self, options: ServeOptions, bound: socket.socket) -> None:
        self._options, self._bound = options, bound
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[BaseProcess, float] = {}
        self._leaving: list[BaseProcess] = []
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Start the workers, watch them, and end them."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self._replace_workers)
        self._start_missing()
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _POLL_SECONDS)
            self._restart_ended()
        for worker in (*self._workers, *self._leaving):
            worker.terminate()
        for worker in (*self._workers, *self._leaving):
            await asyncio.to_thread(worker.join, self._options.settings.serve.shutdown_seconds + 5)
            worker.kill()

    def _start_missing(self) -> None:
        while len(self._workers) < self._options.settings.serve.workers:
            worker = self._context.Process(target=run_worker, args=(self._options, self._bound))
            worker.start()
            self._workers[worker] = monotonic()

    def _restart_ended(self) -> None:
        self._leaving = [worker for worker in self._leaving if worker.is_alive()]
        for worker, began in list(self._workers.items()):
            if not worker.is_alive():
                del self._workers[worker]
                failed = (worker.exitcode or 0) > 0  # negative: it was killed by a signal
                if failed and monotonic() - began < _MIN_LIFETIME:
                    self._stopping.set()
                    raise ConfigError("a worker process failed to start; its message is above")
        if not self._stopping.is_set():
            self._start_missing()

    def _replace_workers(self) -> None:
        """Start new workers; the old ones finish their streams and end."""
        old, self._workers = list(self._workers), {}
        self._start_missing()
        for worker in old:
            worker.terminate()
        self._leaving += old
