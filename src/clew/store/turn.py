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

    turn: "Turn"
    open: bool = True


# Per task: tasks started while the lock is held inherit it, all others have to wait.
_HELD: ContextVar[tuple[_Hold, ...]] = ContextVar("clew_turns", default=())


class Turn:
    """Lock for writing to one store, shared by all tasks and event loops."""

    def __init__(self) -> None:
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    @property
    def mine(self) -> bool:
        """Whether the current task, or the one that started it, holds the lock."""
        return any(hold.turn is self and hold.open for hold in _HELD.get())

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[bool]:
        """Acquire the lock; yields False if it is already held by this task."""
        if self.mine:
            yield False
            return
        gate = self._gates.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with gate:
            with self.held():
                yield True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock without waiting, if the caller knows that it is free."""
        before, hold = _HELD.get(), _Hold(self)
        _HELD.set((*before, hold))
        try:
            yield
        finally:
            hold.open = False
            _HELD.set(before)
