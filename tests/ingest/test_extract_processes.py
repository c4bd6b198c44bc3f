"""Extraction by rules in several processes: the same knowledge base, whatever happens to them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from clew.builder import ignore_progress
from clew.config import ExtractSettings, Settings
from clew.engine import KnowledgeBase
from clew.ingest import extract_processes
from clew.ingest.build import AddResult
from clew.ingest.extract_processes import ENDED, NOT_STARTED
from clew.ingest.files import read
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import read_content
from clew.testing.fakes import HashEmbed

MANY, DOCUMENTS = 60, 220
HAS_PROC = Path("/proc/self/cmdline").exists()


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of rows, of which few count as many."""
    monkeypatch.setattr(extract_processes, "MIN_CHUNKS", MANY)
    file = tmp_path / "corpus.jsonl"
    rows = (
        {
            "id": f"row {at}",
            "title": f"Harbour {at}",
            "text": f"Harbour {at} is a port near Lindbay. Orla Quist {at % 97} opened it on "
            f"{at % 28 + 1} May {1900 + at % 90}. Its tool is set_depth_{at}, see RFC {1000 + at}.",
        }
        for at in range(DOCUMENTS)
    )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


async def build(
    folder: Path,
    corpus: Path,
    processes: int,
    progress: Callable[[str, int, int], None] = ignore_progress,
) -> tuple[AddResult, object]:
    """Build a knowledge base; return the result, and all that it then holds."""
    settings = Settings(kb=folder, extract=ExtractSettings(processes=processes))
    store = SqliteStore(folder, create=True, durable=False)
    base = KnowledgeBase(store, settings, HashEmbed())
    added = await base.take(read([corpus]), progress=progress)
    assert added.added == DOCUMENTS
    assert await base.verify() == []
    content = await read_content(store)
    await base.close()
    return added, content


def find_helpers() -> list[int]:
    """Return the processes that extract for this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == os.getpid() and b"extract_processes" in command:
                found.append(int(entry.name))
    return found


@dataclass
class HelperWatch:
    """Progress of a build: notes the processes that help, and ends them if asked to."""

    end: bool = False
    seen: set[int] = field(default_factory=set)

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage != "extract" or done < MANY or self.seen:
            return
        self.seen.update(find_helpers())
        for process in self.seen if self.end else ():
            os.kill(process, signal.SIGKILL)


@pytest.mark.skipif(not HAS_PROC, reason="processes are found in /proc")
async def test_two_processes_build_what_one_does(tmp_path: Path, corpus: Path) -> None:
    alone, together = HelperWatch(), HelperWatch()
    one, content = await build(tmp_path / "one", corpus, 1, alone)
    two, same = await build(tmp_path / "two", corpus, 2, together)
    assert same == content
    assert (one.note, two.note) == ("", "")
    assert (len(alone.seen), len(together.seen)) == (0, 1)
    assert find_helpers() == []


@pytest.mark.slow  # without a kill: test_two_processes_build_what_one_does
@pytest.mark.skipif(not HAS_PROC, reason="processes are found in /proc")
async def test_a_killed_process_costs_nothing_but_time(tmp_path: Path, corpus: Path) -> None:
    _, content = await build(tmp_path / "one", corpus, 1)
    watch = HelperWatch(end=True)
    added, same = await build(tmp_path / "two", corpus, 3, watch)
    assert len(watch.seen) == 2
    assert same == content
    assert added.note == ENDED
    assert find_helpers() == []


async def test_a_build_goes_on_alone_where_no_process_can_be_started(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    added, _ = await build(tmp_path / "kb", corpus, 2)
    assert added.note == NOT_STARTED


@pytest.mark.skipif(not HAS_PROC, reason="processes are found in /proc")
async def test_a_cancelled_build_leaves_no_process(tmp_path: Path, corpus: Path) -> None:
    watch = HelperWatch()

    def stop(stage: str, done: int, total: int) -> None:
        watch(stage, done, total)
        if watch.seen:
            work.cancel()

    work = asyncio.create_task(build(tmp_path / "kb", corpus, 2, stop))
    with pytest.raises(asyncio.CancelledError):
        await work
    assert watch.seen
    assert find_helpers() == []
