"""How much memory the machine has, and whether it is short now."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOMEM
from mmap import mmap
from pathlib import Path, PurePosixPath

LEAST_BOUND = 500_000_000
_SMALL_MACHINE = 8_000_000_000
_SPARE_BYTES = 64_000_000  # where they cannot be had, a thread may not start
_LIBRARY_BYTES = 256_000_000  # the same of a library with what it needs to start
_REFUSED = ("cannot allocate memory", "bad_alloc")
_NOT_MAPPED = "failed to map segment"  # also where a file must not be executed
_MOST_ARENAS = -8  # as glibc's malloc.h numbers its parameters
_MULTIPLIED = 256  # rows and columns; OpenBLAS works on few numbers without a buffer
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def bound_of_small_machine() -> int | None:
    """Half of the memory of a small machine or container, at least 500 MB; None for others."""
    sizes = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in find_group_limits():
        with suppress(OSError):  # none, or not to be read from within a container
            if (given := limit.read_text().strip()).isdigit():
                sizes.append(int(given))
    if min(sizes, default=_SMALL_MACHINE) >= _SMALL_MACHINE:
        return None
    return max(min(sizes) // 2, LEAST_BOUND)


def find_group_limits() -> Iterator[Path]:
    """The files with the limits of this process's control groups and of all above them.

    A line of the list is `0::/GROUP` in version 2, and `N:memory,…:/GROUP` in version 1. Within a
    container the group may be named as the machine names it: then only the root is there.
    """
    try:
        lines = OWN_GROUPS.read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    for line in ("0::/", "0:memory:/", *lines):
        _, kinds, own = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        root = GROUPS / "memory" if kinds else GROUPS
        name = "memory.limit_in_bytes" if kinds else "memory.max"
        group = PurePosixPath(own.lstrip("/"))
        if ".." not in group.parts:  # it is outside of what this process sees
            yield from (root / part / name for part in (group, *group.parents))


def is_memory_short(size: int = _SPARE_BYTES) -> bool:
    """Whether the system refuses this process a little more memory."""
    try:
        mmap(-1, size).close()
    except (OSError, MemoryError):
        return True
    return False


def is_lack_of_memory(error: BaseException) -> bool:
    """Whether memory was refused: to Python, to a file that was mapped, a thread or a library."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_lack_of_memory, error.exceptions))
    said = str(error).lower()
    if any(sign in said for sign in _REFUSED):
        return True
    if _NOT_MAPPED in said:
        return is_memory_short(_LIBRARY_BYTES)
    if isinstance(error, OSError):
        return error.errno == ENOMEM
    if isinstance(error, RuntimeError | ImportError):
        return is_memory_short()
    return isinstance(error, MemoryError)


def use_address_space_sparingly() -> None:
    """Where address space is limited (`ulimit -v`), reserve little, and at once what must be had.

    The C library reserves 64 MB for each thread otherwise; and OpenBLAS ends the process if it gets
    no memory for its first product.
    """
    if not sys.platform.startswith("linux"):
        return
    import resource

    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_MOST_ARENAS, 1)
    import numpy as np

    if is_memory_short():
        raise MemoryError
    np.ones((_MULTIPLIED, _MULTIPLIED), np.float32) @ np.ones((_MULTIPLIED, 2), np.float32)


@contextmanager
def short_memory_told() -> Iterator[None]:
    """Make a `MemoryError` of any error that occurs where memory is short.

    A library that cannot be mapped, or a thread that cannot be started, says something else.
    """
    try:
        yield
    except Exception as error:
        if is_lack_of_memory(error) or is_memory_short():
            raise MemoryError(str(error)) from error
        raise
