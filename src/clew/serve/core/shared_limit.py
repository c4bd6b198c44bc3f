"""One limit on model calls at once, for all processes of a server: its workers and its jobs.

A call holds a lock on one of as many files as calls are allowed. The operating system holds the
locks, so a process that is killed leaves no slot taken.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.errors import Locked
from clew.llm.limits import ConcurrencyLimit
from clew.serve.core.folders import Folders, make_private
from clew.store.write_lock import WriterLock

_POLL_SECONDS = 0.02  # between two looks for a free slot


@dataclass(eq=False)
class SharedLimit(ConcurrencyLimit):
    """Slots for `most` calls at once over all processes that use the same folder."""

    folder: Path
    # One call of a process looks for a slot at a time: the others wait in order, and a build with
    # many calls gets no more of the free slots than the question of another process.
    _turn: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(1), init=False)

    def __post_init__(self) -> None:
        """Make the folder of the lock files."""
        make_private(self.folder)

    def slots(self) -> AbstractAsyncContextManager[Any]:
        """One slot: entering waits for it."""
        return self._hold()

    @asynccontextmanager
    async def _hold(self) -> AsyncIterator[None]:
        async with self._turn.slots():
            while (held := self._take()) is None:  # noqa: ASYNC110  (another process frees it)
                await asyncio.sleep(_POLL_SECONDS * random.uniform(0.5, 1.0))
        try:
            yield
        finally:
            held.__exit__()

    def _take(self) -> WriterLock | None:
        """Lock a file that no call holds; None if there is none."""
        first = random.randrange(self.most)  # so that most calls try one file only
        for number in range(first, first + self.most):
            with suppress(Locked):
                return WriterLock(self.folder / f"{number % self.most}.lock", 0.0).__enter__()
        return None


def share_model_calls(folders: Folders, most: int) -> SharedLimit:
    """Return the limit that all processes of the server over these folders share."""
    return SharedLimit(most, folders.state / "model_calls")
