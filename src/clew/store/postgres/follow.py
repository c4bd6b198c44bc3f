"""Follow the notifications of new generations in a thread of its own."""

from collections.abc import Callable
from threading import Event, Thread

import psycopg
from psycopg import sql

from clew.errors import ClewError
from clew.store.postgres.connections import Connection, Database

_POLL_SECONDS = 2.0  # a pooler may keep notifications back: then the generation is asked for
_RETRY_SECONDS = 1.0


class GenerationFollower:
    """Calls `fetch` when a generation is announced, and at least every two seconds.

    A lost connection is opened again; what was announced meanwhile is fetched then.
    """

    def __init__(self, database: Database, fetch: Callable[[], int]) -> None:
        self._database = database
        self._fetch = fetch
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="clew-follower", daemon=True)
        self.generation = -1
        """The newest generation that was fetched."""
        self.last_error = ""
        """Why following failed last, if it did."""

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following, within a poll."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                db = self._database.connect()
                try:
                    self._follow(db)
                finally:
                    db.close()
            except (psycopg.Error, ClewError, OSError) as error:
                self.last_error = str(error)
                self._stopped.wait(_RETRY_SECONDS)

    def _follow(self, db: Connection) -> None:
        db.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._database.channel)))
        while not self._stopped.is_set():
            self.generation = self._fetch()
            self.last_error = ""
            # Ends at the first notification, or after the poll; all that came are one.
            for _ in db.notifies(timeout=_POLL_SECONDS, stop_after=1):
                break
