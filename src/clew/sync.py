"""The only bridge from sync callers to the async core; works inside running loops too."""

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="clew-sync", daemon=True).start()
    return loop


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on the background loop and return its result; Ctrl-C cancels the work first."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        raise
