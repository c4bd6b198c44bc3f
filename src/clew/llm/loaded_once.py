"""Model files are loaded once in a process, however many knowledge bases read with them."""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def once_per_file(
    load: Callable[Concatenate[Path, P], T],
) -> Callable[Concatenate[Path, P], T]:
    """Keep what is loaded from a file; one that has changed since is loaded again.

    A process that was forked loads its own, as the threads of a model are not forked with it.
    """
    held: dict[tuple[Any, ...], tuple[tuple[int, ...], T]] = {}
    lock = Lock()

    @wraps(load)
    def loaded(path: Path, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not path.is_file():
            return load(path, *args, **kwargs)
        found = path.stat()
        state = (os.getpid(), found.st_ino, found.st_mtime_ns, found.st_size)
        key = (path, *args, *sorted(kwargs.items()))
        with lock:
            if key not in held or held[key][0] != state:
                held[key] = (state, load(path, *args, **kwargs))
            return held[key][1]

    return loaded
