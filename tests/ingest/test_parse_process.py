"""Parsers run in a process that can be ended: a hostile file costs itself, and nothing else."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.ingest.files import read
from clew.ingest.readers.source import ReadBudget, Skipped
from clew.types import Document

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
LONG_PAGE = "<p>The <b>river</b> rises near <i>Vessen</i> and flows on.</p>" * 60_000


def _children() -> set[int]:
    """The parsers that this process has started, in whichever thread."""
    found = [path.read_text().split() for path in Path("/proc/self/task").glob("*/children")]
    all_of_them = {int(process) for some in found for process in some}
    return {
        process
        for process in all_of_them
        if b"parse_process" in Path(f"/proc/{process}/cmdline").read_bytes()
    }


async def _wait_until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110  (another process sets no event)
        await asyncio.sleep(0.01)


def _kill_all() -> None:
    for process in _children():
        os.kill(process, signal.SIGKILL)
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)  # dead, but not taken away


def _threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("read ")]


async def _read(*paths: Path, seconds: float = 60.0) -> list[object]:
    return [item async for item in read(paths, budget=ReadBudget(seconds=seconds))]


async def test_a_file_that_takes_too_long_is_ended_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(LONG_PAGE)
    (tmp_path / "b.html").write_text("<p>Short.</p>")
    late, short = await _read(tmp_path / "a.html", tmp_path / "b.html", seconds=0.1)
    assert isinstance(late, Skipped) and late.reason.startswith(
        "takes longer than 0.1 s to read (`[read] seconds`"
    )
    assert isinstance(short, Document) and short.text == "Short."
    assert _threads() == []


async def test_one_process_reads_many_files_and_is_replaced_when_it_dies(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>Short.</p>")
    before = _children()
    [first] = await _read(tmp_path / "a.html")
    started = _children() - before
    assert [first] == await _read(tmp_path / "a.html")
    assert _children() - before == started
    _kill_all()
    assert [first] == await _read(tmp_path / "a.html")


async def test_a_process_that_dies_while_reading_costs_that_file(tmp_path: Path) -> None:
    _kill_all()
    (tmp_path / "a.html").write_text("<p>Short.</p>")
    await _read(tmp_path / "a.html")
    (tmp_path / "b.html").write_text(LONG_PAGE)
    [process] = _children()
    reading = asyncio.create_task(_read(tmp_path / "b.html", tmp_path / "a.html"))
    began = _processor_ticks(process)
    await _wait_until(lambda: _processor_ticks(process) > began + 5)
    os.kill(process, signal.SIGKILL)
    hurt, short = await reading
    assert isinstance(hurt, Skipped) and hurt.reason.startswith("breaks its parser")
    assert isinstance(short, Document)


def _processor_ticks(process: int) -> int:
    """Processor time of a process so far, in hundredths of a second."""
    cells = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return int(cells[11]) + int(cells[12])


async def test_reading_that_is_cancelled_ends_the_process(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(LONG_PAGE)
    _kill_all()
    reading = asyncio.create_task(_read(tmp_path / "a.html"))
    before = _children()
    await _wait_until(lambda: bool(_children() - before))
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not _children() - before
