"""Readers hold older generations while a writer adds, removes, and is killed at any step."""

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from signal import SIGKILL

import numpy as np
import pytest

from clew.index.derive import derive_arrays
from clew.store import array_files
from clew.store.protocol import Addition, Array, Arrays, Change
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import make_addition, make_triple

_PEOPLE = [f"Person{number}" for number in range(40)]


def make_document(number: int) -> Addition:
    draw = np.random.default_rng(number)
    names = draw.choice(_PEOPLE, 4, replace=False).tolist()
    facts = [make_triple(names[0], "knows", names[1]), make_triple(names[2], "likes", names[3])]
    return make_addition(f"doc {number}", f"{' and '.join(names)} met, {number}.", facts=facts)


def list_changes(folder: Path) -> list[Path]:
    return list(folder.glob("arrays/*/changes-*.bin"))


def copy_all(arrays: Arrays) -> dict[str, Array]:
    return {name: np.array(array) for name, array in arrays.items()}


def assert_same(arrays: Arrays, expected: Arrays) -> None:
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def draw_change(draw: np.random.Generator, held: set[int], number: int) -> Change:
    if held and draw.random() < 0.5:
        gone = int(draw.choice(sorted(held)))
        held.discard(gone)
        return Change(remove=[f"doc {gone}"])
    held |= {number, number + 1}
    return Change(add=[make_document(number), make_document(number + 1)])


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
async def test_readers_keep_what_they_opened_while_documents_come_and_go(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_files, "MIN_CHANGED_BYTES", 1)
    draw, held = np.random.default_rng(seed), set(range(60))
    writer = SqliteStore(tmp_path, create=True, durable=False)
    await writer.write(Change(add=[make_document(number) for number in held]), derive_arrays)
    async with AsyncExitStack() as readers:
        seen = []
        for step in range(10):
            now = await readers.enter_async_context(SqliteStore(tmp_path).snapshot())
            seen.append((now, copy_all(now.arrays)))
            await writer.write(draw_change(draw, held, 100 + 2 * step), derive_arrays)
            for reader, expected in seen:
                assert_same(reader.arrays, expected)
            assert await SqliteStore(tmp_path).find_problems() == []
    counts = await writer.counts()
    assert counts.documents == len(held)
    assert list_changes(tmp_path)


_WRITE_AND_DIE = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from clew.index.derive import derive_arrays
from clew.store import array_files
from clew.store.protocol import Change
from clew.store.sqlite.store import SqliteStore
from test_generation_readers import make_document

array_files.MIN_CHANGED_BYTES = 1  # most arrays are stored as changes
folder, job, left = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
real_open, real_rename, real_sync = Path.open, Path.rename, os.fsync
real_link = Path.hardlink_to

def count_down():
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)

def opening(path, mode="r", *given, **named):
    if "arrays" in path.parts and mode != "rb":
        count_down()
    return real_open(path, mode, *given, **named)

def renaming(path, target):
    count_down()
    return real_rename(path, target)

def linking(path, target):
    count_down()
    return real_link(path, target)

def syncing(handle):
    count_down()
    return real_sync(handle)

Path.open, Path.rename, Path.hardlink_to, os.fsync = opening, renaming, linking, syncing
change = Change(add=[make_document(900)]) if job == "add" else Change(remove=["doc 7"])
asyncio.run(SqliteStore(folder).write(change, derive_arrays))
"""


async def add_in_steps(store: SqliteStore) -> None:
    """Add documents in three writes: later ones append to files of the first, or note changes."""
    for first, last in ((0, 36), (36, 38), (38, 40)):
        added = [make_document(number) for number in range(first, last)]
        await store.write(Change(add=added), derive_arrays)
    assert list_changes(store.folder)


def run_writer(kb: Path, job: str, steps: int) -> int:
    """Run a write that is killed after so many steps; return how it ended."""
    given = [str(kb), job, str(steps), str(Path(__file__).parent)]
    return subprocess.run([sys.executable, "-c", _WRITE_AND_DIE, *given], check=False).returncode


@pytest.mark.slow  # six processes; one killed build: test_build_interrupted
@pytest.mark.parametrize("job", ["add", "remove"])
async def test_a_write_that_is_killed_changes_nothing_for_anybody(
    tmp_path: Path, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_files, "MIN_CHANGED_BYTES", 1)
    kb = tmp_path / "kb"
    await add_in_steps(SqliteStore(kb, create=True, durable=False))
    deaths = 0
    async with SqliteStore(kb).snapshot() as now:
        expected = copy_all(now.arrays)
        for steps in (3, 30, 70, 10_000):
            ended = await asyncio.to_thread(run_writer, kb, job, steps)
            assert_same(now.arrays, expected)
            assert await SqliteStore(kb).find_problems() == []
            deaths += ended == -SIGKILL
    assert deaths >= 3 and ended == 0
    spared = SqliteStore(tmp_path / "spared", create=True, durable=False)
    await add_in_steps(spared)
    await asyncio.to_thread(run_writer, tmp_path / "spared", job, 10_000)
    async with (
        SqliteStore(kb).snapshot() as one,
        SqliteStore(tmp_path / "spared").snapshot() as two,
    ):
        assert_same(one.arrays, two.arrays)
