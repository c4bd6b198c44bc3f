"""The parts that all requests of one server process share."""

import asyncio
import ipaddress
import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

from clew.config import Settings
from clew.errors import ClewError
from clew.llm.budget import UNLIMITED, UsageLimits
from clew.serve.core.accounts import KeyAccount
from clew.serve.core.database import ServerDatabase
from clew.serve.core.engine_thread import EngineThread
from clew.serve.core.folders import Folders
from clew.serve.core.jobs import JobLedger, JobRunner, StartProcess, spawn
from clew.serve.core.keys import LOCAL_KEY, Key, KeyStore
from clew.serve.core.label_views import remove_abandoned
from clew.serve.core.metrics import Metrics, Tracer
from clew.serve.core.problems import Problem
from clew.serve.core.records import Records
from clew.serve.core.uploads import UploadStore
from clew.serve.core.workspaces import OpenKb, WorkspacePool, open_knowledge_base

if TYPE_CHECKING:
    from clew.recipes.registry import RecipeSet
    from clew.serve.core.limited_process import LimitedProcess

_DAY = 86_400
_LOOK_SECONDS = 0.3
_DRAW_SECONDS = 20.0  # of processor time for one page, at most
_IDLE_SECONDS = 60.0  # after which the process that draws pages ends
_log = logging.getLogger(__name__)


@dataclass
class Server:
    """One server process: its settings, keys, workspaces and figures."""

    settings: Settings
    folders: Folders
    open_kb: OpenKb = open_knowledge_base
    metrics: Metrics = field(default_factory=Metrics)
    tracer: Tracer = field(default_factory=Tracer)
    start_process: StartProcess = spawn
    ready: bool = False
    _accounts: dict[str, tuple[KeyAccount, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open the database; knowledge bases are opened on demand."""
        self.database = ServerDatabase(self.folders.state)
        self.keys = KeyStore(self.database)
        self.records = Records(self.database)
        self.pool = WorkspacePool(self.settings, self.folders, self.open_kb)
        self.engine = EngineThread()
        self.started = time.time()
        self.is_cut = False
        """Whether the time of running requests is over, as the server stops."""
        self.drawing = asyncio.Lock()  # one page at a time, so that none waits in a thread
        self.checked_files: dict[tuple[str, int, int, str], bool] = {}
        self.uploads = UploadStore(self.database, self.folders.state / "uploads")
        self.ledger = JobLedger(self.database, self.folders.state / "jobs")
        self.runner = JobRunner(self.ledger, self.settings.serve.jobs, self._start_job)

    @cached_property
    def recipes(self) -> "RecipeSet":
        """All recipes by name, with those of the settings; imported at the first question."""
        from clew.recipes.configure import add_own_recipes

        return add_own_recipes(self.settings.recipes, self.settings.file)

    @cached_property
    def drawer(self) -> "LimitedProcess":
        """The child process that draws pages of uploaded files; started when it is used."""
        from clew.serve.core.limited_process import LimitedProcess

        return LimitedProcess(min(_DRAW_SECONDS, self.settings.read.seconds))

    def start(self) -> None:
        """Start the engine's thread; the thread of this call is that of the event loop."""
        self.engine.start()
        self.records.forget_old()
        remove_abandoned(self.folders.state / "views")
        self.database.wait_briefly()
        self.ready = True

    def stop_soon(self) -> None:
        """Take no new work, and end jobs meanwhile: they go on when the server runs again."""
        self.ready = False  # job events can be followed again: their streams end
        self._stopping_jobs = asyncio.ensure_future(asyncio.to_thread(self.runner.stop))

    def interrupt(self) -> None:
        """Answer all questions under way with the news that the server stops."""
        self.is_cut = True
        self.engine.interrupt(tell_stopping)

    async def stop(self) -> None:
        """Close what is open."""
        self.ready = False
        await asyncio.to_thread(self.runner.stop)
        if "drawer" in self.__dict__:
            await asyncio.to_thread(self.drawer.close)
        await self.engine.run(self.pool.close())
        self.engine.stop()
        await asyncio.to_thread(self.records.flush, at_end=True)
        self.database.close()

    async def look_after(self) -> None:
        """Start jobs and write the audit log, until cancelled."""
        try:
            while True:
                try:
                    await asyncio.to_thread(self.records.flush)
                    await asyncio.to_thread(self.runner.tick)
                    if "drawer" in self.__dict__:
                        await asyncio.to_thread(self.drawer.close_idle, _IDLE_SECONDS)
                    await self.engine.run(self.pool.remove_outdated_copies())
                except (ClewError, sqlite3.Error, OSError) as error:  # such as a full disk: again
                    _log.warning("cannot look after jobs and the audit log: %s", error)
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            self.ready = False

    def _start_job(self, job: str) -> BaseProcess:
        from clew.serve.core.job_process import run_job  # takes a while, and a start shall not

        return self.start_process(run_job, self.settings, self.folders, self.open_kb, job)

    def identify(self, token: str | None) -> Key:
        """Return the key of a token; where none is needed, every caller is the local one.

        Clients that cannot go without a key may then send any.
        """
        if not self.needs_key:
            return LOCAL_KEY
        if not token:
            raise Problem(401, "a key is needed; send `Authorization: Bearer KEY`")
        key = self.keys.find(token)
        if key is None:
            raise Problem(401, "this key is not valid; it may be revoked or expired")
        self.records.note_use(key)
        return key

    @property
    def needs_key(self) -> bool:
        """Whether a key is needed: where one was ever made, and at a public address."""
        return self.keys.any_made() or not is_loopback(self.settings.serve.host)

    # -- money and calls of a key

    def remaining_budget(self, key: Key) -> UsageLimits:
        """Return what a key may still use today; raise if that is nothing."""
        if key.limits.calls_per_day is None and key.limits.money_per_day is None:
            return UNLIMITED
        left = key.limits.remaining(*self.keys.spent_today(key.id))
        if 0 in (left.calls, left.money):
            raise refuse_until_tomorrow("the budget of this key for today is used up")
        return left

    @contextmanager
    def open_account(self, key: Key) -> Iterator[KeyAccount]:
        """Give the questions of a key that run at once one account; used on the engine's loop."""
        account, users = self._accounts.get(key.id, (KeyAccount(self.keys, key), 0))
        self._accounts[key.id] = account, users + 1
        try:
            yield account
        finally:
            account, users = self._accounts.pop(key.id)
            if users > 1:
                self._accounts[key.id] = account, users - 1


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_until_tomorrow(why: str) -> Problem:
    """Return the answer to a key whose budget is used up: it has a new one at midnight (UTC)."""
    return Problem(429, why, retry_after=_DAY - time.time() % _DAY)


def tell_stopping() -> Problem:
    """Return the answer to requests that a stop of the server ends."""
    return Problem(503, "the server is stopping; ask again", retry_after=5)
