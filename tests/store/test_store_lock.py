"""Whoever writes holds the lock from beginning to end, and a closed store holds nothing."""

from pathlib import Path

import pytest

from clew.errors import Locked
from clew.index.derive import derive_arrays
from clew.store.protocol import Change
from clew.store.sqlite.store import SqliteStore
from clew.store.write_lock import WriterLock
from clew.testing.contracts import MARIE, PIERRE

HANDLES = Path("/proc/self/fd")


async def test_nobody_else_writes_from_the_first_word_to_the_last(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True, durable=False)
    lock = tmp_path / "writer.lock"

    def others_wait() -> bool:
        try:
            with WriterLock(lock, 0):
                return False
        except Locked:
            return True

    async with store.write_lock():
        assert others_wait()
        await store.write(Change(add=[MARIE]), derive_arrays)  # from within: it need not wait
        assert others_wait()
        async with store.write_lock():
            assert others_wait()
        assert others_wait()
        assert store.lock_fds()
    assert not others_wait()
    assert store.lock_fds() == ()
    await store.write(Change(add=[PIERRE]), derive_arrays)
    assert not others_wait()
    await store.close()


@pytest.mark.skipif(not HANDLES.is_dir(), reason="this system does not list open files")
async def test_a_closed_store_holds_no_file_of_its_database(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True, durable=False)
    await store.write(Change(add=[MARIE]), derive_arrays)
    async with store.snapshot() as now:
        assert now.generation == 1

    def held() -> bool:
        names = (str(one.readlink()) for one in HANDLES.iterdir() if one.is_symlink())
        return any(name.startswith(str(tmp_path / "kb.sqlite")) for name in names)

    assert held()
    await store.close()
    assert not held()
