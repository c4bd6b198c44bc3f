"""The lock that keeps a second writer out, here and on Windows."""

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from clew.errors import Locked
from clew.store import write_lock as lock
from clew.store.write_lock import WriterLock


def test_a_long_wait_ends_with_the_setting_to_change(tmp_path: Path) -> None:
    path = tmp_path / "writer.lock"
    with WriterLock(path, 0), pytest.raises(Locked, match="longer `wait` in clew.toml"):
        WriterLock(path, 0).__enter__()


async def test_a_wait_that_is_cancelled_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "writer.lock"
    with WriterLock(path, 0):
        waiting = asyncio.create_task(WriterLock(path, 60).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with WriterLock(path, 0):
        pass


class _Locking:
    """Windows's locks, as far as they are used: one holder of a byte of a file."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self) -> None:
        self.held: set[int] = set()

    def locking(self, _: int, mode: int, size: int) -> None:
        """Take or give back."""
        assert size == 1
        if mode == self.LK_NBLCK and self.held:
            raise PermissionError(13, "Permission denied")
        self.held = {1} if mode == self.LK_NBLCK else set()


@pytest.fixture
def on_windows(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as Windows would load it."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", _Locking())  # type: ignore[arg-type]
    assert lock.__file__ is not None
    spec = importlib.util.spec_from_file_location("lock_on_windows", lock.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lock_on_windows", module)  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_windows_keeps_a_second_writer_out_too(on_windows: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "writer.lock"
    with on_windows.WriterLock(path, 0) as held:
        assert held.files() == ()
        with pytest.raises(Locked, match="is writing"):
            on_windows.WriterLock(path, 0).__enter__()
    with on_windows.WriterLock(path, 0):
        pass
