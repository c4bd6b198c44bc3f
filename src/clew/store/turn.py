"""One writer at a time within a program: its tasks wait for each other."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakKeyDictionary


@dataclass(eq=False)
class _Hold:
    """One stay; a task that outlives it has inherited nothing."""

    turn: "Turn"
    open: bool = True


# Kept per task, not counted: tasks begun within a turn belong to it, any other has to wait.
_HELD: ContextVar[tuple[_Hold, ...]] = ContextVar("clew_turns", default=())


class Turn:
    """Whose turn it is to write to one store."""

    def __init__(self) -> None:
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    @property
    def mine(self) -> bool:
        """Whether the current task, or one that it was begun by, has the turn."""
        return any(hold.turn is self and hold.open for hold in _HELD.get())

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[bool]:
        """Wait for the turn and keep it; False where it is ours already."""
        if self.mine:
            yield False
            return
        gate = self._gates.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with gate:
            with self.held():
                yield True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the turn without waiting, for one who knows that nobody else has it."""
        before, hold = _HELD.get(), _Hold(self)
        _HELD.set((*before, hold))
        try:
            yield
        finally:
            hold.open = False
            _HELD.set(before)
