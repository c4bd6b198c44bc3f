"""The event loop on which knowledge bases are used, in a thread apart from the HTTP loop.

A search computes for milliseconds without giving control back. On a loop of its own it delays
other searches only: the HTTP loop goes on to accept, refuse and answer health checks.
"""

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

T = TypeVar("T")
_SWITCH_INTERVAL = 0.001  # seconds until Python lets the other thread run; its default is 5 ms


class _End:
    """Ends a bridged iteration: with an error, or without."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class EngineThread:
    """Runs coroutines of another loop on this thread's loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=self._run_loop, name="clew-engine", daemon=True)
        self._make_error: Callable[[], Exception] | None = None
        self._waiting: set[asyncio.Future[Any]] = set()
        self._queues: set[asyncio.Queue[Any]] = set()

    def start(self) -> None:
        """Start the thread."""
        sys.setswitchinterval(_SWITCH_INTERVAL)
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def stop(self) -> None:
        """Cancel what still runs and end the thread."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result(timeout=10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=10)

    def interrupt(self, make_error: Callable[[], Exception]) -> None:
        """End all answers and iterations under way with an error; called on the HTTP loop."""
        self._make_error = make_error
        for waiting in self._waiting:
            waiting.cancel()
        for arrived in self._queues:
            arrived.put_nowait(_End(make_error()))

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the engine's loop; cancelling the caller cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def answer(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` for somebody who waits: it ends when it is interrupted."""
        waiting = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
        self._waiting.add(waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._make_error is None or (caller is not None and caller.cancelling()):
                raise
            raise self._make_error() from None
        finally:
            self._waiting.discard(waiting)

    async def iterate(self, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """Iterate on the engine's loop; closing the iterator cancels the work there."""
        here = asyncio.get_running_loop()
        arrived: asyncio.Queue[T | _End] = asyncio.Queue()

        def put(item: T | _End) -> None:
            here.call_soon_threadsafe(arrived.put_nowait, item)

        async def pump() -> None:
            end = _End(None)
            try:
                async with aclosing(items):
                    async for item in items:
                        put(item)
            except Exception as error:  # noqa: BLE001  (thread boundary: raised where it is awaited)
                end = _End(error)
            put(end)

        pumping = asyncio.run_coroutine_threadsafe(pump(), self._loop)
        self._queues.add(arrived)
        try:
            while not isinstance(item := await arrived.get(), _End):
                yield item
            if item.error is not None:
                raise item.error
        finally:
            self._queues.discard(arrived)
            pumping.cancel()

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
