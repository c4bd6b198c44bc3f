"""Generations on disk: readers of an old one, foreign files, and concurrent creation."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from clew.errors import DamagedArrays, StoreError
from clew.index.derive import derive_arrays
from clew.store.array_files import remove_old_generations, save_arrays
from clew.store.checksums import FileSum, checksum_bytes, sum_file
from clew.store.mapped_arrays import MappedArrays
from clew.store.protocol import Change
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import MARIE, PIERRE


async def test_a_reader_keeps_its_arrays_while_two_generations_come(tmp_path: Path) -> None:
    writer = SqliteStore(tmp_path, create=True, durable=False)
    await writer.write(Change(add=[MARIE]), derive_arrays)
    before = {name: array.copy() for name, array in MappedArrays(tmp_path / "arrays/1").items()}
    async with SqliteStore(tmp_path).snapshot() as now:
        await writer.write(Change(add=[PIERRE]), derive_arrays)
        await writer.write(Change(remove=["marie.txt"]), derive_arrays)
        assert not (tmp_path / "arrays/1").exists()
        assert now.arrays.keys() == before.keys()
        for name, array in now.arrays.items():
            np.testing.assert_array_equal(array, before[name])


def test_arrays_come_back_as_they_were_and_cannot_be_written_to(tmp_path: Path) -> None:
    given = {
        "empty": np.zeros((0, 3), np.float32),
        "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "large": np.arange(100_000),
        "one": np.array(7),
        "words": np.array(["a", "bc"]),
    }
    save_arrays(tmp_path / "1", given, durable=False)
    held = MappedArrays(tmp_path / "1")
    for name, array in given.items():
        np.testing.assert_array_equal(held[name], array)
        assert held[name].dtype == array.dtype
        assert not held[name].flags.writeable
    with pytest.raises(KeyError):
        held["other"]


@pytest.mark.parametrize("raw", [b"", b"garbage", b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', "])
def test_a_damaged_array_names_the_way_out(tmp_path: Path, raw: bytes) -> None:
    save_arrays(tmp_path / "1", {"a": np.arange(3), "b": np.arange(3)}, durable=False)
    (tmp_path / "1" / "a.npy").write_bytes(raw)
    (tmp_path / "1" / "b.npy").write_bytes((tmp_path / "1" / "b.npy").read_bytes()[:-1])
    held = MappedArrays(tmp_path / "1")
    for name in "ab":
        with pytest.raises(StoreError, match="verify --repair"):
            held[name]


async def test_a_stray_file_among_the_arrays_does_no_harm(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True, durable=False)
    await store.write(Change(add=[MARIE]), derive_arrays)
    (tmp_path / "arrays" / ".DS_Store").write_bytes(b"x")
    for change in (Change(add=[PIERRE]), Change(remove=["marie.txt"])):
        await store.write(change, derive_arrays)
    assert sorted(path.name for path in (tmp_path / "arrays").iterdir()) == [".DS_Store", "2", "3"]


def test_what_cannot_be_removed_is_left_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in "123":
        save_arrays(tmp_path / number, {"a": np.arange(3)}, durable=False)

    def held(*_: object) -> None:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", held)
        remove_old_generations(tmp_path, {2, 3})
    assert (tmp_path / "1").exists()
    remove_old_generations(tmp_path, {2, 3})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "3"]


async def test_counting_bears_that_files_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path, create=True, durable=False)
    await store.write(Change(add=[MARIE]), derive_arrays)
    total = (await store.counts()).bytes
    gone = tmp_path / "arrays" / "1" / "chunk_keys.npy"
    size = gone.stat().st_size
    walk = os.walk

    def slow(*given: object):
        """A writer removes a file between the listing and the look at its size."""
        for found in list(walk(*given)):
            gone.unlink(missing_ok=True)
            yield found

    monkeypatch.setattr(os, "walk", slow)
    assert (await store.counts()).bytes == total - size


_CREATE = """
import sys
import time
from pathlib import Path
from clew.store.sqlite.store import SqliteStore
print("ready", flush=True)
sys.stdin.readline()
for n in range(5):
    SqliteStore(Path(sys.argv[1]) / str(n), create=True)
"""


def test_several_processes_may_make_one_knowledge_base(tmp_path: Path) -> None:
    words = [sys.executable, "-c", _CREATE, str(tmp_path)]
    makers = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for maker in makers:
        assert maker.stdout is not None
        assert maker.stdout.readline() == "ready\n"
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    for maker in makers:
        maker.communicate(timeout=60)
    assert [maker.returncode for maker in makers] == [0, 0, 0]


HANDLES = Path("/proc/self/fd")


@pytest.mark.skipif(not HANDLES.is_dir(), reason="this system does not list open files")
@pytest.mark.parametrize("durable", [True, False])
def test_saving_leaves_no_file_open(tmp_path: Path, durable: bool) -> None:
    def held() -> list[str]:
        found = []
        for handle in HANDLES.iterdir():
            try:
                found.append(str(handle.readlink()))
            except OSError:  # the one that lists them
                continue
        return [name for name in found if name.startswith(str(tmp_path))]

    save_arrays(tmp_path / "1", {"a": np.arange(5), "b": np.eye(3)}, durable=durable)
    assert held() == []
    assert sorted(MappedArrays(tmp_path / "1")) == ["a", "b"]
    assert held() == []  # small files are read at once


@pytest.mark.parametrize("durable", [True, False])
def test_what_was_there_is_replaced(tmp_path: Path, durable: bool) -> None:
    save_arrays(tmp_path / "1", {"a": np.arange(5), "old": np.eye(3)}, durable=durable)
    save_arrays(tmp_path / "1", {"a": np.arange(9)}, durable=durable)
    arrays = MappedArrays(tmp_path / "1")
    assert len(arrays) == 1
    assert arrays["a"].tolist() == list(range(9))
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_an_unchanged_array_shares_its_file_with_the_previous_generation(tmp_path: Path) -> None:
    first = {"a": np.arange(500), "b": np.arange(6).reshape(2, 3), "c": np.zeros(3, np.int64)}
    seal = save_arrays(tmp_path / "1", first)
    held = MappedArrays(tmp_path / "1", seal)
    turned = np.asfortranarray(first["b"])  # equal values in another order of bytes
    second = {"a": held["a"], "b": turned, "c": np.zeros(3, np.int32), "d": np.arange(2)}
    seal = save_arrays(tmp_path / "2", second, previous=held)
    remove_old_generations(tmp_path, {2})
    again = MappedArrays(tmp_path / "2", seal)
    assert again.check_all() == []
    for name, array in second.items():
        np.testing.assert_array_equal(again[name], array)
        assert again[name].dtype == array.dtype
    third = {**second, "a": np.arange(500), "d": np.arange(3)}
    save_arrays(tmp_path / "3", third, previous=again)
    shared = {path.name for path in (tmp_path / "3").glob("*.npy") if path.stat().st_nlink == 2}
    assert shared == {"a.npy", "b.npy", "c.npy", "d.npy"}


def test_further_rows_are_appended_and_earlier_generations_do_not_see_them(tmp_path: Path) -> None:
    rows = np.arange(60_000).reshape(-1, 3)
    grown = {
        1: {"long": rows[:19_000], "short": rows[:2], "none": rows[:0], "changed": rows[:9]},
        2: {"long": rows[:19_999], "short": rows[:9], "none": rows[:4], "changed": rows[1:11]},
        3: {"long": rows, "short": rows[:9], "none": rows[:5], "changed": rows[1:12]},
    }
    held, seals = None, {}
    for number, arrays in grown.items():
        seals[number] = save_arrays(tmp_path / str(number), arrays, previous=held)
        held = MappedArrays(tmp_path / str(number), seals[number])
    for number, arrays in grown.items():
        found = MappedArrays(tmp_path / str(number), seals[number])
        assert found.check_all() == []
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
    links = {path.name: path.stat().st_nlink for path in (tmp_path / "3").glob("*.npy")}
    assert links == {"long.npy": 3, "short.npy": 3, "none.npy": 3, "changed.npy": 2}
    os.truncate(tmp_path / "3" / "long.npy", (tmp_path / "3" / "long.npy").stat().st_size - 24)
    assert MappedArrays(tmp_path / "2", seals[2]).check_all() == []
    with pytest.raises(DamagedArrays, match="its size is wrong"):
        MappedArrays(tmp_path / "3", seals[3])


def test_what_an_interrupted_write_appended_is_overwritten(tmp_path: Path) -> None:
    rows = np.arange(90_000)
    seal = save_arrays(tmp_path / "1", {"a": rows[:50_000]})
    held = MappedArrays(tmp_path / "1", seal)
    save_arrays(tmp_path / "2", {"a": np.append(rows[:50_000], -rows)}, previous=held)
    # The second was never published: the next write begins again after the first.
    seal_2 = save_arrays(tmp_path / "2", {"a": rows}, previous=MappedArrays(tmp_path / "1", seal))
    again = MappedArrays(tmp_path / "2", seal_2)
    assert again.check_all() == [] == MappedArrays(tmp_path / "1", seal).check_all()
    np.testing.assert_array_equal(again["a"], rows)
    np.testing.assert_array_equal(held["a"], rows[:50_000])


@pytest.mark.parametrize("begin", [0, 1, 511, 512, 513, 1024, 3000])
def test_a_checksum_that_is_continued_is_that_of_the_whole(begin: int) -> None:
    raw = np.random.default_rng(begin).bytes(3000)
    whole = sum_file(raw)
    assert sum_file(raw, sum_file(raw[:begin])) == whole
    assert sum_file(raw, FileSum(begin, 0)) == whole  # a sum of an earlier version
    assert checksum_bytes(raw) == whole.checksum != sum_file(raw[:begin] + b"!").checksum


def test_a_damaged_array_is_not_shared(tmp_path: Path) -> None:
    seal = save_arrays(tmp_path / "1", {"a": np.arange(500)})
    path = tmp_path / "1" / "a.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    held = MappedArrays(tmp_path / "1", seal)
    seal = save_arrays(tmp_path / "2", {"a": np.arange(500)}, previous=held)
    assert MappedArrays(tmp_path / "2", seal)["a"].tolist() == list(range(500))


@pytest.mark.parametrize("count", [20_000, 200_000])
def test_a_checked_file_is_summed_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    seal = save_arrays(tmp_path / "1", {"large": np.arange(count)}, durable=False)
    # As if the file had been there for a while: nothing is noted of one that just changed.
    monkeypatch.setattr("clew.store.checked_files.time_ns", lambda: time.time_ns() + 10**10)
    assert MappedArrays(tmp_path / "1", seal)["large"][-1] == count - 1
    with monkeypatch.context() as patched:
        patched.setattr("clew.store.mapped_arrays.sum_file", pytest.fail)
        assert MappedArrays(tmp_path / "1", seal)["large"][-1] == count - 1
    path = tmp_path / "1" / "large.npy"
    raw, before = path.read_bytes(), path.stat()
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(bytes([raw[1000] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # it looks as old as before
    with pytest.raises(DamagedArrays):
        MappedArrays(tmp_path / "1", seal)["large"]


def test_a_file_that_just_changed_is_summed_by_every_reader(tmp_path: Path) -> None:
    seal = save_arrays(tmp_path / "1", {"large": np.arange(200_000)}, durable=False)
    assert MappedArrays(tmp_path / "1", seal)["large"][0] == 0
    assert not (tmp_path / "1.kept").exists()
