"""Run the server: bind the address, then answer in this process or in several children."""

import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from shlex import quote
from time import monotonic

from clew import sync
from clew.config import Settings
from clew.errors import ClewError, ConfigError
from clew.serve.core.database import ServerDatabase
from clew.serve.core.folders import Folders, keep_to_owner
from clew.serve.core.keys import KeyStore
from clew.serve.core.server import Server, is_loopback
from clew.serve.core.workspaces import OpenKb, open_knowledge_base
from clew.serve.http_server import StoppableServer

_BACKLOG = 2048
_POLL_SECONDS = 0.2
_MIN_LIFETIME = 5.0  # a worker that ends sooner failed to start
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # seconds before a worker is started again
_END_SECONDS = 5.0  # for a worker to end after the time of its requests
_MAX_FAILURES = 5  # failed starts in a row after which a server without any worker ends
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServeOptions:
    """What a server process needs to start; sent to children."""

    settings: Settings
    folders: Folders
    open_kb: OpenKb = open_knowledge_base

    def make_server(self) -> Server:
        """Return the server of one process."""
        return Server(self.settings, self.folders, self.open_kb)


def check_bind(settings: Settings, folders: Folders) -> None:
    """Raise if the address is public and no key protects it."""
    host = settings.serve.host
    if is_loopback(host) or KeyStore(ServerDatabase(folders.state)).any_active():
        return
    option, at = (
        ("--kb", folders.database or folders.root) if folders.single else ("--root", folders.root)
    )
    where = f"{option} {quote(str(at))}"
    raise ConfigError(
        f"{host} can be reached from other machines and there is no key; make one with "
        f"`clew keys add NAME {where}`, or serve on 127.0.0.1"
    )


def bind(host: str, port: int) -> socket.socket:
    """Bind the address and listen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Of this protocol by name: asyncio else leaves out TCP_NODELAY, and answers wait for 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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


async def serve(
    options: ServeOptions, announce: Callable[[str], None], read_settings: Callable[[], Settings]
) -> None:
    """Serve until a signal says stop; `announce` is called with the address.

    A reload starts workers with the settings that `read_settings` then returns.
    """
    serve_settings = options.settings.serve
    check_bind(options.settings, options.folders)
    bound = bind(serve_settings.host, serve_settings.port)
    try:
        host, port = bound.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        announce(f"http://{shown}:{port}{serve_settings.root_path}")
        if serve_settings.workers == 1:
            await StoppableServer(options.make_server()).serve([bound])
        else:
            await _Supervisor(options, bound, read_settings).run()
    finally:
        bound.close()


def run_worker(options: ServeOptions, bound: socket.socket, ready: Event) -> None:
    """Answer requests in a child process until it is told to stop."""
    keep_to_owner()
    try:
        made = StoppableServer(options.make_server(), replaceable=True, on_ready=ready.set)
        with contextlib.suppress(KeyboardInterrupt):
            sync.run(made.serve([bound]))
    except (ClewError, OSError, sqlite3.Error) as error:
        raise SystemExit(f"a worker ends: {error}") from error


@dataclass(frozen=True)
class _Worker:
    """One worker process."""

    process: BaseProcess
    ready: Event
    began: float

    @property
    def has_failed(self) -> bool:
        """Whether it ended before it could serve, or soon after."""
        ended = self.process.exitcode is not None
        return ended and (not self.ready.is_set() or monotonic() - self.began < _MIN_LIFETIME)

    @property
    def is_stable(self) -> bool:
        """Whether it serves, and has done so for a while."""
        return self.ready.is_set() and monotonic() - self.began >= _MIN_LIFETIME


class _Supervisor:
    """Keeps worker processes running; SIGHUP replaces them by ones with the settings of now."""

    def __init__(
        self, options: ServeOptions, bound: socket.socket, read_settings: Callable[[], Settings]
    ) -> None:
        self._options, self._bound, self._read_settings = options, bound, read_settings
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._replaced: list[_Worker] = []
        """Those that serve until their successors are ready."""
        self._replaced_options = options
        self._leaving: list[_Worker] = []
        self._stopping = asyncio.Event()
        self._failures = 0
        """Failed starts since a worker was last stable."""
        self._next_start = 0.0

    async def run(self) -> None:
        """Start the workers, watch them, and end them."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self._replace_workers)
        try:
            self._start_missing()
            while not self._stopping.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), _POLL_SECONDS)
                self._look_after()
        finally:
            await self._stop_all()

    async def _stop_all(self) -> None:
        self._bound.close()  # else callers would be kept waiting, as no worker accepts them now
        processes = [w.process for w in (*self._workers, *self._replaced, *self._leaving)]

        def tell_all() -> None:
            for process in processes:
                process.terminate()

        tell_all()
        for number in (signal.SIGTERM, signal.SIGINT):  # a second one ends requests at once
            asyncio.get_running_loop().add_signal_handler(number, tell_all)
        deadline = monotonic() + self._options.settings.serve.shutdown_seconds + _END_SECONDS
        for process in processes:
            await asyncio.to_thread(process.join, max(0.0, deadline - monotonic()))
            process.kill()

    def _start_missing(self) -> None:
        """Start as many workers as are missing, unless one has just failed."""
        if monotonic() < self._next_start:
            return
        while len(self._workers) < self._options.settings.serve.workers:
            ready = self._context.Event()
            arguments = (self._options, self._bound, ready)
            process = self._context.Process(target=run_worker, args=arguments)
            process.start()
            self._workers.append(_Worker(process, ready, monotonic()))

    def _look_after(self) -> None:
        self._leaving = [one for one in self._leaving if one.process.is_alive()]
        ended = [one for one in self._workers if not one.process.is_alive()]
        self._workers = [one for one in self._workers if one.process.is_alive()]
        failed = sum(one.has_failed for one in ended)
        if failed and self._replaced:
            self._return_to_replaced()
        elif failed:
            self._note_failures(failed)
        elif any(one.is_stable for one in self._workers):
            self._failures = 0
        if self._stopping.is_set():
            return
        self._start_missing()
        if self._replaced and all(one.ready.is_set() for one in self._workers):
            for one in self._replaced:
                _hang_up(one.process)
            self._leaving += self._replaced
            self._replaced = []

    def _note_failures(self, failed: int) -> None:
        """Wait longer before each further start; end if no worker serves after many."""
        self._failures += failed
        if self._failures >= _MAX_FAILURES and not any(one.ready.is_set() for one in self._workers):
            raise ConfigError(
                f"no worker process could be started in {self._failures} attempts; the messages "
                "above say why"
            )
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(10, self._failures - 1))
        self._next_start = monotonic() + pause
        _log.error("a worker process ended too soon; the next is started in %g s", pause)

    def _return_to_replaced(self) -> None:
        _log.error("the new workers failed to start; the old ones go on")
        for one in self._workers:
            one.process.terminate()
        self._leaving += self._workers
        self._workers, self._replaced = self._replaced, []
        self._options = self._replaced_options

    def _replace_workers(self) -> None:
        """Start new workers; once they are ready, the old ones finish their streams and end."""
        if self._replaced:  # the last reload has not ended
            return
        try:
            settings = self._read_settings()
        except ClewError as error:
            _log.error("nothing is reloaded: %s", error)
            return
        self._replaced_options = self._options
        self._options = replace(self._options, settings=settings)
        self._next_start, self._failures = 0.0, 0
        self._replaced, self._workers = self._workers, []
        self._start_missing()


def _hang_up(process: BaseProcess) -> None:
    if process.pid is not None and process.is_alive():
        os.kill(process.pid, signal.SIGHUP)
