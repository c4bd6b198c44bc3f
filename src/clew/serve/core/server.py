"""The parts that all requests of one server process share."""

import asyncio
import ipaddress
import logging
import sqlite3
import time
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.process import BaseProcess

from clew.config import Settings
from clew.llm.budget import UsageLimits
from clew.recipes.configure import add_own_recipes
from clew.recipes.registry import RecipeSet
from clew.serve.core.database import ServerDatabase
from clew.serve.core.engine_thread import EngineThread
from clew.serve.core.folders import Folders
from clew.serve.core.jobs import JobLedger, JobRunner, spawn
from clew.serve.core.keys import LOCAL_KEY, Key, KeyStore, today
from clew.serve.core.metrics import Metrics, Tracer
from clew.serve.core.problems import Problem
from clew.serve.core.uploads import UploadStore
from clew.serve.core.workspaces import OpenKb, WorkspacePool, open_knowledge_base
from clew.types import Usage

_AUDIT_DAYS = 90
_AUDIT_BATCH = 200  # lines written together; the rest follows within a second
_AUDIT_MOST = 100_000  # lines kept while they cannot be written
_REFUSED_SECONDS = 60.0
_MAX_REFUSED_PATH = 200
_NO_KEY = "-"
_DAY = 86_400
_LOOK_SECONDS = 0.3
_log = logging.getLogger(__name__)


@dataclass
class _Refusals:
    """Requests without a valid key that were refused with one status, since the first of them."""

    since: float
    method: str
    path: str
    request: str
    count: int = 0


@dataclass
class Server:
    """One server process: its settings, keys, workspaces and figures."""

    settings: Settings
    folders: Folders
    open_kb: OpenKb = open_knowledge_base
    metrics: Metrics = field(default_factory=Metrics)
    tracer: Tracer = field(default_factory=Tracer)
    ready: bool = False
    _audit: list[tuple[float, str, str, str, int, str]] = field(default_factory=list)
    _refused: dict[int, _Refusals] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open the database; knowledge bases are opened on demand."""
        self.database = ServerDatabase(self.folders.state)
        self.keys = KeyStore(self.database)
        self.pool = WorkspacePool(self.settings, self.folders, self.open_kb)
        self.engine = EngineThread()
        self.uploads = UploadStore(self.database, self.folders.state / "uploads")
        self.ledger = JobLedger(self.database, self.folders.state / "jobs")
        self.runner = JobRunner(self.ledger, self.settings.serve.jobs, self._start_job)

    @cached_property
    def recipes(self) -> RecipeSet:
        """All recipes by name, with those of the settings."""
        return add_own_recipes(self.settings.recipes, self.settings.file)

    def start(self) -> None:
        """Start the engine's thread."""
        self.engine.start()
        self.database.change("DELETE FROM audit WHERE time < ?", time.time() - _AUDIT_DAYS * _DAY)
        self.ready = True

    async def stop(self) -> None:
        """Close what is open."""
        self.ready = False
        await asyncio.to_thread(self.runner.stop)
        await self.engine.run(self.pool.close())
        self.engine.stop()
        self.flush_audit(at_end=True)
        self.database.close()

    async def look_after(self) -> None:
        """Start jobs and write the audit log, until cancelled."""
        try:
            while True:
                try:
                    await asyncio.to_thread(self.runner.tick)
                    self.flush_audit()
                except (sqlite3.Error, OSError) as error:  # such as a full disk: try again
                    _log.warning("cannot look after jobs and the audit log: %s", error)
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            self.ready = False

    def _start_job(self, job: str) -> BaseProcess:
        from clew.serve.core.job_process import run_job  # takes a while, and a start shall not

        return spawn(run_job, self.settings, self.folders, self.open_kb, job)

    def identify(self, token: str | None) -> Key:
        """Return the key of a token; without one, the local caller where no key was ever made."""
        if token:
            key = self.keys.find(token)
            if key is None:
                raise Problem(401, "this key is not valid; it may be revoked or expired")
            return key
        if self.keys.any_made() or not is_loopback(self.settings.serve.host):
            raise Problem(401, "a key is needed; send `Authorization: Bearer KEY`")
        return LOCAL_KEY

    # -- money and calls of a key

    def remaining_budget(self, key: Key) -> UsageLimits:
        """Return what a key may still use today; raise if that is nothing."""
        limits = key.limits
        if limits.calls_per_day is None and limits.money_per_day is None:
            return UsageLimits()
        row = self.database.row(
            "SELECT calls, money FROM spending WHERE key = ? AND day = ?", key.id, today()
        )
        calls, money = (row["calls"], row["money"]) if row else (0, 0.0)
        left_calls = None if limits.calls_per_day is None else limits.calls_per_day - calls
        left_money = None if limits.money_per_day is None else limits.money_per_day - money
        if (left_calls is not None and left_calls <= 0) or (
            left_money is not None and left_money <= 0
        ):
            raise Problem(
                429,
                "the budget of this key for today is used up",
                retry_after=_seconds_to_midnight(),
            )
        return UsageLimits(calls=left_calls, money=left_money)

    def record_usage(self, key: Key, usage: Usage) -> None:
        """Count the model calls of a question against its key."""
        if not usage.calls:
            return
        self.metrics.add("clew_model_calls_total", usage.calls)
        self.metrics.add("clew_model_money_total", usage.money)
        self.keys.spend(key.id, usage)

    # -- audit

    def record_access(self, key: Key, method: str, path: str, status: int, request: str) -> None:
        """Note one line of the audit log: who called what, never its content."""
        self._audit.append((time.time(), key.id, method, path, status, request))
        if len(self._audit) == _AUDIT_BATCH:
            try:
                self.flush_audit()
            except sqlite3.Error as error:  # the lines are kept and written later
                _log.warning("cannot write the audit log: %s", error)

    def record_refusal(self, method: str, path: str, status: int, request: str) -> None:
        """Count a refused request of nobody known; a minute of them is one line of the log."""
        first = _Refusals(time.time(), method, path[:_MAX_REFUSED_PATH], request)
        self._refused.setdefault(status, first).count += 1

    def flush_audit(self, *, at_end: bool = False) -> None:
        """Write the lines noted so far; refusals once a minute, and at the end."""
        for status, some in list(self._refused.items()):
            if at_end or time.time() - some.since > _REFUSED_SECONDS:
                del self._refused[status]
                shown = f"{some.request} and {some.count - 1} more"
                line = (some.since, _NO_KEY, some.method, some.path, status, shown)
                self._audit.append(line)
        lines, self._audit = self._audit, []
        if not lines:
            return
        try:
            with self.database.transaction() as db:
                db.executemany("INSERT INTO audit VALUES (?,?,?,?,?,?)", lines)
        except sqlite3.Error:
            self._audit = [*lines, *self._audit][-_AUDIT_MOST:]
            raise


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _seconds_to_midnight() -> float:
    return _DAY - time.time() % _DAY
