"""How much memory the machine has, and whether it is short now."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOMEM
from mmap import mmap
from pathlib import Path

LEAST_BOUND = 500_000_000
_SMALL_MACHINE = 8_000_000_000
_SPARE_BYTES = 64_000_000  # where they cannot be had, a library or a thread may not start
GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def bound_of_small_machine() -> int | None:
    """Half of the memory of a small machine or container, at least 500 MB; None for others."""
    sizes = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in map(Path, GROUP_LIMITS):
        if limit.exists() and (given := limit.read_text().strip()).isdigit():
            sizes.append(int(given))
    if min(sizes, default=_SMALL_MACHINE) >= _SMALL_MACHINE:
        return None
    return max(min(sizes) // 2, LEAST_BOUND)


def is_memory_short() -> bool:
    """Whether the system refuses this process a little more memory."""
    try:
        mmap(-1, _SPARE_BYTES).close()
    except (OSError, MemoryError):
        return True
    return False


def is_lack_of_memory(error: Exception) -> bool:
    """Whether memory was refused: to Python, to a file that was mapped, a thread or a library."""
    if isinstance(error, OSError):
        return error.errno == ENOMEM
    if isinstance(error, RuntimeError | ImportError):
        return is_memory_short()
    return isinstance(error, MemoryError)


@contextmanager
def short_memory_told() -> Iterator[None]:
    """Make a `MemoryError` of any error that occurs where memory is short.

    A library that cannot be mapped, or a thread that cannot be started, says something else.
    """
    try:
        yield
    except Exception as error:
        if is_memory_short():
            raise MemoryError(str(error)) from error
        raise
