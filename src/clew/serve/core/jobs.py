"""Jobs: builds and evaluations, each in a process of its own, with a ledger in the database.

A job whose process was killed is started again: a build goes on where it stopped.
"""

import json
import multiprocessing
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

from clew.errors import Locked
from clew.serve.core.database import ServerDatabase
from clew.serve.core.folders import make_private
from clew.serve.core.problems import Problem
from clew.store.write_lock import WriterLock

JobKind = Literal["build", "plan", "eval", "compare", "tree"]
END_STATES = ("done", "failed", "cancelled")
_MAX_ATTEMPTS = 3
_START_SECONDS = 15.0  # within which a new process takes its lock
_MAX_EVENTS = 1000  # events kept of one job
_MAX_QUEUED = 100
_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class Job:
    """One job as the ledger has it."""

    id: str
    workspace: str
    kind: str
    state: str
    """queued, running, done, failed or cancelled."""
    owner: str
    request: dict[str, Any]
    result: Any
    error: str
    attempts: int
    created: float
    started: float | None
    finished: float | None

    def to_json(self) -> dict[str, Any]:
        """Return what a caller is told."""
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "result": self.result,
            "error": self.error,
            "attempts": self.attempts,
            "created": self.created,
            "started": self.started,
            "finished": self.finished,
        }


class JobLedger:
    """Reads and writes jobs and their events; used by the server and by job processes."""

    def __init__(self, database: ServerDatabase, folder: Path) -> None:
        self.database = database
        self._folder = folder
        make_private(folder)

    def add(self, workspace: str, kind: JobKind, owner: str, request: dict[str, Any]) -> Job:
        """Queue a job; a second build of a workspace is refused."""
        job = secrets.token_hex(8)
        with self.database.transaction() as db:
            self._check_queue()
            try:
                db.execute(
                    "INSERT INTO jobs(id, workspace, kind, state, owner, request, created) "
                    "VALUES (?,?,?,'queued',?,?,?)",
                    (job, workspace, kind, owner, json.dumps(request), time.time()),
                )
            except sqlite3.IntegrityError as error:
                raise _building() from error
            self.add_event(job, "state", {"state": "queued"})
            return self.get(job)

    def check_may_build(self, workspace: str) -> None:
        """Raise what `add` would raise for a build now."""
        self._check_queue()
        query = "SELECT 1 FROM jobs WHERE workspace = ? AND kind = 'build' AND state IN "
        if self.database.row(query + "('queued', 'running')", workspace) is not None:
            raise _building()

    def _check_queue(self) -> None:
        waiting = self.database.row("SELECT count(*) AS n FROM jobs WHERE state = 'queued'")
        if waiting is not None and waiting["n"] >= _MAX_QUEUED:
            raise Problem(429, "too many jobs are waiting; try again later", retry_after=30)

    def get(self, job: str) -> Job:
        """Return a job that exists."""
        row = self.database.row("SELECT * FROM jobs WHERE id = ?", job)
        assert row is not None
        return _read_job(row)

    def find(self, workspace: str, job: str) -> Job | None:
        """Return a job of a workspace."""
        row = self.database.row("SELECT * FROM jobs WHERE id = ? AND workspace = ?", job, workspace)
        return None if row is None else _read_job(row)

    def newest(
        self, workspace: str, most: int = 100, kinds: Sequence[JobKind] = (), skip: int = 0
    ) -> list[Job]:
        """Return the newest jobs of a workspace, of all or some kinds, after the first few."""
        rows = self.database.rows(
            "SELECT * FROM jobs WHERE workspace = ?1 "
            "AND (?2 = '' OR kind IN (SELECT value FROM json_each('[' || ?2 || ']'))) "
            "ORDER BY created DESC, id LIMIT ?3 OFFSET ?4",
            *(workspace, ",".join(json.dumps(kind) for kind in kinds), most, skip),
        )
        return [_read_job(row) for row in rows]

    def cancel(self, job: str) -> None:
        """Cancel a job: at once while it waits, else as soon as its process notices."""
        changed = self.database.change(
            "UPDATE jobs SET state = 'cancelled', finished = ? WHERE id = ? AND state = 'queued'",
            *(time.time(), job),
        )
        if changed:
            self.add_event(job, "state", {"state": "cancelled"})
        else:
            self.database.change(
                "UPDATE jobs SET cancel = 1 WHERE id = ? AND state = 'running'", job
            )

    def is_cancelled(self, job: str) -> bool:
        """Whether somebody asked a running job to stop."""
        row = self.database.row("SELECT cancel FROM jobs WHERE id = ?", job)
        return row is not None and bool(row["cancel"])

    def has_ended(self, job: str) -> bool:
        """Whether a job is done, failed, cancelled or gone."""
        row = self.database.row("SELECT state FROM jobs WHERE id = ?", job)
        return row is None or row["state"] in END_STATES

    def claim(self, at_once: int) -> Job | None:
        """Mark the oldest job that may run as running; one job of a workspace at a time."""
        if self.database.row("SELECT 1 FROM jobs WHERE state = 'queued'") is None:
            return None  # seen without the write lock
        with self.database.transaction() as db:
            running = db.execute("SELECT count(*) FROM jobs WHERE state = 'running'").fetchone()[0]
            row = db.execute(
                "SELECT id FROM jobs j WHERE state = 'queued' AND NOT EXISTS (SELECT 1 FROM jobs "
                "r WHERE r.workspace = j.workspace AND r.state = 'running') ORDER BY created"
            ).fetchone()
            if row is None or running >= at_once:
                return None
            db.execute(
                "UPDATE jobs SET state = 'running', started = ?, attempts = attempts + 1 "
                "WHERE id = ?",
                (time.time(), row[0]),
            )
        self.add_event(row[0], "state", {"state": "running"})
        return self.get(row[0])

    def finish(self, job: str, state: str, result: Any = None, error: str = "") -> None:
        """Note the end of a job, or that it is to be run again (`queued`)."""
        ended = time.time() if state in END_STATES else None
        self.database.change(
            "UPDATE jobs SET state = ?, result = ?, error = ?, finished = ? "
            "WHERE id = ? AND state = 'running'",
            *(state, json.dumps(result), error, ended, job),
        )
        self.add_event(job, "state", {"state": state, "error": error})

    def requeue_lost(self, own: Callable[[str], bool]) -> None:
        """Queue running jobs again whose process is gone; `own` says which are surely alive."""
        # Not the whole rows: this is asked several times a second, and requests may be large.
        for row in self.database.rows("SELECT id, started FROM jobs WHERE state = 'running'"):
            if own(row["id"]) or time.time() - (row["started"] or 0) < _START_SECONDS:
                continue
            if not self.is_locked(row["id"]):
                self.requeue(self.get(row["id"]))

    def requeue(self, job: Job) -> None:
        """Run a job again, unless it has ended its process too often."""
        if job.attempts >= _MAX_ATTEMPTS:
            self.finish(job.id, "failed", error=f"its process ended {job.attempts} times")
        else:
            self.finish(job.id, "queued")

    def put_back(self, job: str) -> None:
        """Queue a job that a stop of the server ended; that is no attempt of its own."""
        changed = self.database.change(
            "UPDATE jobs SET state = 'queued', attempts = attempts - 1 "
            "WHERE id = ? AND state = 'running'",
            job,
        )
        if changed:
            self.add_event(job, "state", {"state": "queued", "error": ""})

    def lock(self, job: str) -> WriterLock:
        """Return the lock that a job's process holds while it lives."""
        return WriterLock(self._folder / f"{job}.lock", 0.0)

    def is_locked(self, job: str) -> bool:
        """Whether the process of a job lives."""
        try:
            with self.lock(job):
                return False
        except Locked:
            return True

    def add_event(self, job: str, name: str, data: dict[str, Any]) -> None:
        """Append an event; old ones are dropped."""
        with self.database.transaction() as db:
            last = db.execute("SELECT max(number) FROM job_events WHERE job = ?", (job,))
            number = (last.fetchone()[0] or 0) + 1
            db.execute(
                "INSERT INTO job_events VALUES (?,?,?,?)", (job, number, name, json.dumps(data))
            )
            db.execute(
                "DELETE FROM job_events WHERE job = ? AND number <= ?", (job, number - _MAX_EVENTS)
            )

    def events(self, job: str, after: int) -> list[tuple[int, str, dict[str, Any]]]:
        """Return the events of a job after a number."""
        rows = self.database.rows(
            "SELECT * FROM job_events WHERE job = ? AND number > ? ORDER BY number", job, after
        )
        return [(row["number"], row["name"], json.loads(row["data"])) for row in rows]


class JobRunner:
    """Starts queued jobs in processes, and starts those again whose process was killed."""

    def __init__(
        self, ledger: JobLedger, at_once: int, start: Callable[[str], BaseProcess]
    ) -> None:
        self._ledger, self._at_once, self._start = ledger, at_once, start
        self._processes: dict[str, BaseProcess] = {}
        self._lock = threading.Lock()
        self.is_leaving = False
        """Whether this server only finishes what it has: another one takes new jobs."""

    def tick(self) -> None:
        """Look after the jobs; called every fraction of a second."""
        with self._lock:
            for job, process in list(self._processes.items()):
                if not process.is_alive():
                    process.join()
                    del self._processes[job]
                    if (ended := self._ledger.get(job)).state == "running":
                        self._ledger.requeue(ended)
            if self.is_leaving:
                return
            self._ledger.requeue_lost(self._processes.__contains__)
            job_now = self._ledger.claim(self._at_once)
            if job_now is not None:
                self._processes[job_now.id] = self._start(job_now.id)

    def processes(self) -> list[BaseProcess]:
        """Return the processes that this server has started and that run."""
        return list(self._processes.values())

    def stop(self) -> None:
        """End the processes of this server; their jobs go on when it is started again."""
        with self._lock:
            self.is_leaving = True
            for process in self._processes.values():
                process.terminate()
            deadline = time.monotonic() + _STOP_SECONDS
            for job, process in self._processes.items():
                process.join(max(0.0, deadline - time.monotonic()))
                process.kill()
                process.join()
                # It may have ended before it could say so; the next server shall not have to guess.
                self._ledger.put_back(job)
            self._processes.clear()


StartProcess = Callable[..., BaseProcess]
"""Starts a process that runs a function with arguments."""


def spawn(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a process that shares nothing with this one."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    return process


def _building() -> Problem:
    return Problem(409, "a build of this workspace is already queued or running", retry_after=10)


def _read_job(row: sqlite3.Row) -> Job:
    return Job(
        *(row["id"], row["workspace"], row["kind"], row["state"], row["owner"]),
        *(json.loads(row["request"]), json.loads(row["result"]), row["error"], row["attempts"]),
        *(row["created"], row["started"], row["finished"]),
    )
