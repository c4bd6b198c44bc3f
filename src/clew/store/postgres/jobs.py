"""The queue of jobs: taken by `SKIP LOCKED`, held by a lease, given back when that ends.

A job may be run twice if its worker is killed or cut off; its result is used once. Model calls
take a slot that all workers share, and count against the budget of the run. What a call used goes
into the totals of the knowledge base in the transaction that frees its slot, before its reply is
kept; a slot whose worker was lost is counted with what its call was expected to cost.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString, NamedTuple
from uuid import uuid4

from clew.store.postgres.connections import Connection, Database
from clew.store.postgres.keyvalue import increment_values
from clew.types import Usage

LEASE_SECONDS = 30.0  # a worker that is silent for so long has lost its jobs
MAX_ATTEMPTS = 10  # a job that ended so many workers is not tried again
_SILENT_RUN_SECONDS = 60.0  # jobs of a build that nobody waits for are left alone
_READY, _TAKEN, _DONE, _FAILED = range(4)
_NOTHING_USED = Usage()
# Those that were lost least come first: a job that ends its workers must not hold up the others.
_TAKE: LiteralString = """
WITH next AS (
  SELECT j.id FROM jobs j JOIN runs r ON r.id = j.run
  WHERE (j.state = 0 AND j.not_before <= clock_timestamp()
         OR j.state = 1 AND j.lease < clock_timestamp())
    AND j.attempts < %(most)s AND r.seen > clock_timestamp() - %(silent)s * interval '1 second'
    AND (r.budget IS NULL OR r.spent < r.budget)
  ORDER BY j.attempts, j.id LIMIT %(many)s FOR UPDATE OF j SKIP LOCKED)
UPDATE jobs SET state = 1, attempts = attempts + 1, worker = %(worker)s,
  lease = clock_timestamp() + %(lease)s * interval '1 second'
FROM next WHERE jobs.id = next.id
RETURNING jobs.id, jobs.run, jobs.kind, jobs.payload, jobs.attempts
"""
_GIVE_UP: LiteralString = (
    "UPDATE jobs SET state = 3, error = 'its workers were lost ' || attempts || ' times' "
    "WHERE run = %s AND state = 1 AND lease < clock_timestamp() AND attempts >= %s"
)
# One slot of a model: if fewer than `most` are taken, and the run has money left.
_TAKE_SLOT: LiteralString = """
INSERT INTO slots(id, model, run, worker, until, calls, prompt_tokens, money)
OVERRIDING SYSTEM VALUE SELECT %(slot)s, %(model)s, %(run)s, %(worker)s,
  clock_timestamp() + %(seconds)s * interval '1 second', %(calls)s, %(tokens)s, %(money)s
WHERE (SELECT count(*) FROM slots WHERE model = %(model)s) < %(most)s
  AND NOT EXISTS (SELECT FROM runs WHERE id = %(run)s AND spent >= budget)
RETURNING id
"""
# Slots of calls that took too long, and of other workers that are silent.
_DROP_SLOTS: LiteralString = """
DELETE FROM slots WHERE until < clock_timestamp() OR worker != %s AND NOT EXISTS (
  SELECT FROM workers WHERE name = slots.worker
    AND seen > clock_timestamp() - %s * interval '1 second')
RETURNING run, calls, prompt_tokens, money
"""
_COUNT: LiteralString = """
UPDATE runs SET spent = spent + %s, calls = calls + %s, prompt_tokens = prompt_tokens + %s,
  completion_tokens = completion_tokens + %s WHERE id = %s
"""
_RESERVE: LiteralString = """
INSERT INTO rates(model, what, full_at)
VALUES (%(model)s, %(what)s, extract(epoch FROM clock_timestamp()) + %(seconds)s)
ON CONFLICT (model, what) DO UPDATE SET full_at =
  greatest(rates.full_at, extract(epoch FROM clock_timestamp())) + %(seconds)s
RETURNING full_at - %(seconds)s - extract(epoch FROM clock_timestamp())
"""


class Job(NamedTuple):
    """A job that this worker holds."""

    id: int
    run: str
    kind: str
    payload: bytes
    attempts: int


class FinishedJob(NamedTuple):
    """A job that ended: its result, or why it failed."""

    id: int
    result: bytes
    error: str


@dataclass(frozen=True)
class JobQueue:
    """The queue of one knowledge base."""

    database: Database
    worker: str = field(default_factory=lambda: f"{socket.gethostname()}-{uuid4().hex[:8]}")
    lease: float = LEASE_SECONDS
    most_attempts: int = MAX_ATTEMPTS

    # -- of the build that wants the results

    def begin_run(self, budget: float | None = None) -> str:
        """Begin a build; return its name. Runs that nobody waits for any more are removed."""
        name = uuid4().hex
        self.count_lost_calls()
        with self.database.transaction() as db:
            db.execute(
                "WITH gone AS (DELETE FROM runs WHERE seen < clock_timestamp() - "
                "interval '1 day' RETURNING id) DELETE FROM jobs USING gone WHERE run = gone.id"
            )
            db.execute("INSERT INTO runs(id, budget) VALUES (%s, %s)", (name, budget))
        return name

    def end_run(self, run: str) -> None:
        """End a build with all its jobs."""
        with self.database.transaction() as db:
            db.execute("DELETE FROM runs WHERE id = %s", (run,))
            db.execute("DELETE FROM jobs WHERE run = %s", (run,))

    def enqueue(self, run: str, tasks: Sequence[tuple[str, bytes]]) -> list[int]:
        """Add jobs and announce them; return their ids."""
        with self.database.transaction() as db:
            rows = db.execute(
                "INSERT INTO jobs(run, kind, payload) SELECT %s, * FROM unnest(%s::text[], "
                "%s::bytea[]) RETURNING id",
                (run, [kind for kind, _ in tasks], [payload for _, payload in tasks]),
            ).fetchall()
            self._notify(db)
        return sorted(int(row[0]) for row in rows)

    def collect(self, run: str, used: Sequence[int] = ()) -> list[FinishedJob]:
        """The jobs that ended; those whose results were used are removed, and only those.

        A result whose reading is interrupted is still there. It shows that this build waits, too.
        """
        with self.database.transaction() as db:
            # The row of the run first, as in `end_run`: one may overlap with the other.
            db.execute("UPDATE runs SET seen = clock_timestamp() WHERE id = %s", (run,))
            db.execute("DELETE FROM jobs WHERE id = ANY(%s::bigint[])", (list(used),))
            db.execute(_GIVE_UP, (run, self.most_attempts))
            found = db.execute(
                "SELECT id, result, error FROM jobs WHERE run = %s AND state >= 2", (run,)
            ).fetchall()
        return [FinishedJob(int(at), bytes(result or b""), error) for at, result, error in found]

    def is_out_of_money(self, run: str) -> bool:
        """Whether a build has spent its budget."""
        with self.database.transaction() as db:
            row = db.execute(
                "SELECT budget IS NOT NULL AND spent >= budget FROM runs WHERE id = %s", (run,)
            ).fetchone()
        return bool(row and row[0])

    def read_usage(self, run: str) -> Usage:
        """What the calls of a build have used so far."""
        with self.database.transaction() as db:
            row = db.execute(
                "SELECT calls, prompt_tokens, completion_tokens, spent FROM runs WHERE id = %s",
                (run,),
            ).fetchone()
        return Usage(int(row[0]), int(row[1]), int(row[2]), money=float(row[3])) if row else Usage()

    # -- of the workers

    def take(self, many: int) -> list[Job]:
        """Take jobs that are ready, or whose worker has been silent for too long."""
        with self.database.transaction() as db:
            found = db.execute(
                _TAKE,
                {
                    "many": many,
                    "most": self.most_attempts,
                    "silent": _SILENT_RUN_SECONDS,
                    "worker": self.worker,
                    "lease": self.lease,
                },
            ).fetchall()
        return sorted(Job(at, run, kind, bytes(raw), tries) for at, run, kind, raw, tries in found)

    def heartbeat(self, held: Sequence[int]) -> set[int]:
        """Keep these jobs; return those that are still ours."""
        with self.database.transaction() as db:
            db.execute(
                "INSERT INTO workers VALUES (%s, clock_timestamp()) ON CONFLICT (name) "
                "DO UPDATE SET seen = excluded.seen",
                (self.worker,),
            )
            found = db.execute(
                "UPDATE jobs SET lease = clock_timestamp() + %s * interval '1 second' "
                "WHERE id = ANY(%s::bigint[]) AND worker = %s AND state = 1 RETURNING id",
                (self.lease, list(held), self.worker),
            ).fetchall()
        return {int(row[0]) for row in found}

    def finish(self, job: int, result: bytes) -> bool:
        """Store a result; False if the job is no longer ours, and another result counts."""
        return self._end(job, _DONE, result, "")

    def fail(self, job: int, error: str) -> bool:
        """Say that a job cannot be done."""
        return self._end(job, _FAILED, b"", error)

    def _end(self, job: int, state: int, result: bytes, error: str) -> bool:
        with self.database.transaction() as db:
            found = db.execute(
                "UPDATE jobs SET state = %s, result = %s, error = %s, payload = '' "
                "WHERE id = %s AND worker = %s AND state = 1 RETURNING run",
                (state, result, error, job, self.worker),
            ).fetchone()
            if found:
                self._notify(db)
        return found is not None

    def release(self, job: int, *, after: float = 0.0, failed: bool = False) -> None:
        """Give a job back, to be tried again later; only a failed attempt counts."""
        with self.database.transaction() as db:
            db.execute(
                "UPDATE jobs SET state = 0, attempts = attempts - %s, "
                "not_before = clock_timestamp() + %s * interval '1 second' "
                "WHERE id = %s AND worker = %s AND state = 1",
                (int(not failed), after, job, self.worker),
            )
            self._notify(db)

    def leave(self) -> None:
        """Say that this worker is gone."""
        with self.database.transaction() as db:
            db.execute("DELETE FROM workers WHERE name = %s", (self.worker,))

    def count_workers(self) -> int:
        """Workers that are alive."""
        with self.database.transaction() as db:
            row = db.execute(
                "SELECT count(*) FROM workers "
                "WHERE seen > clock_timestamp() - %s * interval '1 second'",
                (self.lease,),
            ).fetchone()
        return int(row[0]) if row else 0

    @property
    def channel(self) -> str:
        """The channel on which new and finished jobs are announced."""
        return f"{self.database.channel}_jobs"

    def _notify(self, db: Connection) -> None:
        db.execute("SELECT pg_notify(%s, '')", (self.channel,))

    # -- limits that all workers share

    def take_slot(
        self,
        slot: int,
        model: str,
        run: str,
        most: int,
        seconds: float,
        about: Usage = _NOTHING_USED,
    ) -> bool:
        """Take a slot for a call to a model, for so long at most; False if none is free.

        `about` is what the call is counted with if its worker is lost.
        """
        with self.database.transaction() as db:
            self._drop_slots(db)
            values = {"slot": slot, "model": model, "run": run, "most": most, "seconds": seconds}
            costs = {"calls": about.calls, "tokens": about.prompt_tokens, "money": about.money}
            row = db.execute(_TAKE_SLOT, {**values, **costs, "worker": self.worker}).fetchone()
        return row is not None

    def free_slot(self, slot: int, run: str, used: Usage) -> None:
        """Give a slot back, and count what its call used, unless that was done before."""
        with self.database.transaction() as db:
            if db.execute("DELETE FROM slots WHERE id = %s RETURNING id", (slot,)).fetchone():
                self._count(db, run, used)

    def count_lost_calls(self) -> None:
        """Free the slots of workers that are silent; their calls count as they were expected."""
        with self.database.transaction() as db:
            self._drop_slots(db)

    def _drop_slots(self, db: Connection) -> None:
        # One after another: two workers must not take the last slot together.
        db.execute("SELECT pg_advisory_xact_lock(%s)", (self.database.lock_key ^ 2,))
        lost = db.execute(_DROP_SLOTS, (self.worker, self.lease)).fetchall()
        for run, calls, tokens, money in lost:
            self._count(db, run, Usage(calls, tokens, money=money))

    def _count(self, db: Connection, run: str, used: Usage) -> None:
        """Count a call for its build, which may have ended, and for the knowledge base."""
        if used.calls:
            counts = (used.calls, used.prompt_tokens, used.completion_tokens)
            db.execute(_COUNT, (used.money, *counts, run))
            tokens = used.prompt_tokens + used.completion_tokens
            totals = {"calls": used.calls, "tokens": tokens, "spent": used.money}
            increment_values(db, "manifest", {key: n for key, n in totals.items() if n})

    def reserve(self, model: str, what: str, seconds: float) -> float:
        """Reserve so many seconds of a rate; return how long to wait before using it."""
        values: dict[str, Any] = {"model": model, "what": what, "seconds": seconds}
        with self.database.transaction() as db:
            row = db.execute(_RESERVE, values).fetchone()
        return max(0.0, float(row[0])) if row else 0.0
