"""Reentrant write lock for the tasks of one process."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakKeyDictionary


@dataclass(eq=False)
class _Hold:
    """One acquisition; a task that outlives it no longer holds the lock."""

    lock: "TaskLock"
    open: bool = True


# Per task: tasks started while the lock is held inherit it, all others have to wait.
_HELD_LOCKS: ContextVar[tuple[_Hold, ...]] = ContextVar("clew_turns", default=())


class TaskLock:
    """Lock for writing to one store, shared by all tasks and event loops."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    @property
    def is_held(self) -> bool:
        """Whether the current task, or the one that started it, holds the lock."""
        return any(hold.lock is self and hold.open for hold in _HELD_LOCKS.get())

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[bool]:
        """Acquire the lock; yields False if it is already held by this task."""
        if self.is_held:
            yield False
            return
        gate = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with gate:
            with self.hold():
                yield True

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock without waiting, if the caller knows that it is free."""
        before, hold = _HELD_LOCKS.get(), _Hold(self)
        _HELD_LOCKS.set((*before, hold))
        try:
            yield
        finally:
            hold.open = False
            _HELD_LOCKS.set(before)
