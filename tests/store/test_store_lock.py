"""The store's write lock is held during the whole write, and a closed store has no open file."""

from pathlib import Path

import pytest

from clew.errors import Locked
from clew.index.derive import derive_arrays
from clew.store.protocol import Change
from clew.store.sqlite.store import SqliteStore
from clew.store.write_lock import WriterLock
from clew.testing.contracts import MARIE, PIERRE

HANDLES = Path("/proc/self/fd")


async def test_the_lock_is_held_until_the_outermost_block_ends(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True, durable=False)
    lock = tmp_path / "writer.lock"

    def is_locked() -> bool:
        try:
            with WriterLock(lock, 0):
                return False
        except Locked:
            return True

    async with store.write_lock():
        assert is_locked()
        await store.write(Change(add=[MARIE]), derive_arrays)  # nested: no waiting
        assert is_locked()
        async with store.write_lock():
            assert is_locked()
        assert is_locked()
        assert store.lock_fds()
    assert not is_locked()
    assert store.lock_fds() == ()
    await store.write(Change(add=[PIERRE]), derive_arrays)
    assert not is_locked()
    await store.close()


@pytest.mark.skipif(not HANDLES.is_dir(), reason="this system does not list open files")
async def test_a_closed_store_has_no_open_database_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True, durable=False)
    await store.write(Change(add=[MARIE]), derive_arrays)
    async with store.snapshot() as now:
        assert now.generation == 1

    def is_open() -> bool:
        names = (str(one.readlink()) for one in HANDLES.iterdir() if one.is_symlink())
        return any(name.startswith(str(tmp_path / "kb.sqlite")) for name in names)

    assert is_open()
    await store.close()
    assert not is_open()
