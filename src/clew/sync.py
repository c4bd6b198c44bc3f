"""Bridge from synchronous callers to the async core; also works inside a running loop."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

from clew.errors import ClewError

T = TypeVar("T")


@cache
def _background_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="clew-sync", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):
    # A forked child has no thread to run the loop; it starts its own.
    os.register_at_fork(after_in_child=_background_loop.cache_clear)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on this thread; Ctrl-C cancels it and is then raised."""
    return asyncio.run(work)


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on the background loop and return its result; Ctrl-C cancels the work first."""
    if _on_background_loop():
        work.close()
        raise ClewError(
            "called from clew's own event loop, where a blocking call would never return; "
            "use kb.aio and await there, or call from another thread"
        )
    future = asyncio.run_coroutine_threadsafe(_capture_exit(work), _background_loop())
    try:
        result = future.result()
    except KeyboardInterrupt:
        future.cancel()
        raise
    if isinstance(result, _CapturedExit):
        raise result.error
    return result


def _on_background_loop() -> bool:
    try:  # event listeners are called on this loop
        return asyncio.get_running_loop() is _background_loop()
    except RuntimeError:  # no running loop
        return False


class _CapturedExit:
    """An exit to raise in the caller: raised on the loop's thread, it would end the loop."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _capture_exit(work: Coroutine[Any, Any, T]) -> T | _CapturedExit:
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        return _CapturedExit(error)
