"""What a killed, stopped or starved `add` leaves behind: what was there before, or all of it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.extract.rules import Offline
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import read_content
from clew.testing.fakes import HashEmbed
from clew.types import Chunk, Document

# A child that adds every file of a folder with a fake embedder that takes its time.
CHILD = """
import asyncio, resource, signal, sys, time
from pathlib import Path
import typer
from clew.cli.common import run
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.ingest import embedding
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.kill_points import KillPoints

embedding.BLOCK = 8
folder, docs, pause, limit = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
points = KillPoints(folder, int(sys.argv[5]))
points.install()
# Whoever runs the tests in the background may have had Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
if limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

class Slow(HashEmbed):
    async def __call__(self, texts, /, *, role="passage"):
        print("embedding", flush=True)
        await asyncio.sleep(pause)
        return await super().__call__(texts, role=role)

async def main():
    base = KnowledgeBase(SqliteStore(folder, create=True), Settings(kb=folder), Slow())
    await base.add([docs])
    print(points.count, flush=True)

try:
    run(main, False)
except typer.Exit as leave:
    sys.exit(leave.exit_code)
"""


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for number in range(40):
        (folder / f"{number}.txt").write_text(
            f"Village {number} lies near Town {number % 7}. It was founded in {1500 + number}."
        )
    return folder


def _child(
    kb: Path, docs: Path, pause: float = 0.0, limit: int = 0, kill_at: int = 0
) -> "subprocess.Popen[str]":
    numbers = (pause, limit, kill_at)
    words = [sys.executable, "-c", CHILD, str(kb), str(docs), *map(str, numbers)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _added(kb: Path, docs: Path) -> tuple[dict[str, object], int]:
    """Add everything here; return what the knowledge base then holds and how much it embedded."""

    async def work() -> tuple[dict[str, object], int]:
        embed = HashEmbed()
        base = KnowledgeBase(SqliteStore(kb, create=True), Settings(kb=kb), embed)
        await base.add([docs])
        assert await base.verify() == []
        held = await read_content(base.store)
        await base.close()
        return held, embed.texts

    return asyncio.run(work())


def _documents(kb: Path) -> int:
    return asyncio.run(SqliteStore(kb).counts()).documents


@pytest.fixture(scope="module")
def undisturbed(
    docs: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, object], int, int]:
    """What a build comes to, how much it embeds, and at how many points it can be killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    said, _ = _child(folder / "counted", docs).communicate(timeout=60)
    return *_added(folder / "whole", docs), int(said.split()[-1])


@pytest.mark.parametrize(
    "share",  # before 0.3 the first calls are in flight
    [*(pytest.param(one, marks=pytest.mark.slow) for one in (0.3, 0.9, 1.0)), 0.5],
)
def test_kill_at_any_change_then_the_same_command_again(
    tmp_path: Path, docs: Path, undisturbed: tuple[dict[str, object], int, int], share: float
) -> None:
    whole, everything, points = undisturbed
    assert points > 40
    kb = tmp_path / "kb"
    child = _child(kb, docs, kill_at=max(1, int(points * share)))
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert _documents(kb) in (0, 40)
    again, embedded = _added(kb, docs)
    assert again == whole
    assert embedded < everything


def test_ctrl_c_is_one_sentence_and_leaves_nothing_half_done(tmp_path: Path, docs: Path) -> None:
    kb = tmp_path / "kb"
    child = _child(kb, docs, pause=0.2)
    assert child.stdout is not None
    child.stdout.readline()
    os.kill(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 1
    assert "interrupted" in said
    assert "Traceback" not in said
    assert _documents(kb) == 0


@pytest.mark.parametrize(
    "limit", [*(pytest.param(one, marks=pytest.mark.slow) for one in (40_000, 200_000)), 120_000]
)
def test_a_full_disk_is_one_sentence_and_the_knowledge_base_stays_whole(
    tmp_path: Path, docs: Path, undisturbed: tuple[dict[str, object], int, int], limit: int
) -> None:
    kb = tmp_path / "kb"
    child = _child(kb, docs, pause=0.0, limit=limit)
    said_out, said = child.communicate(timeout=60)
    assert child.returncode == 1, said_out
    assert "error:" in said
    assert "Traceback" not in said
    assert _added(kb, docs)[0] == undisturbed[0]


# A child whose embedder takes 20 ms a text, and writes down each that it has embedded.
SLOW_CHILD = """
import asyncio, signal, sys
from pathlib import Path
import typer
from clew.cli.common import run
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed

signal.signal(signal.SIGINT, signal.default_int_handler)
folder = Path(sys.argv[1])

class Slow(HashEmbed):
    async def __call__(self, texts, /, *, role="passage"):
        for text in texts:
            await asyncio.sleep(0.02)
            print("embedded", flush=True)
        return await super().__call__(texts, role=role)

async def main():
    settings = Settings(kb=folder, extractor="offline")
    base = KnowledgeBase(SqliteStore(folder, create=True), settings, Slow())
    await base.add([sys.argv[2]])

try:
    run(main, False)
except typer.Exit as leave:
    sys.exit(leave.exit_code)
"""


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, *(pytest.param(n, marks=pytest.mark.slow) for n in (15, 2))]
)
def test_what_was_embedded_and_extracted_before_a_kill_is_not_done_again(
    tmp_path: Path,
    docs: Path,
    undisturbed: tuple[dict[str, object], int, int],
    how: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, everything, _ = undisturbed
    kb = tmp_path / "kb"
    words = [sys.executable, "-c", SLOW_CHILD, str(kb), str(docs)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        done = everything * 2 // 3
        for _ in range(done):
            assert child.stdout.readline()
        child.send_signal(how)
    assert _documents(kb) == 0
    read = list[str]()
    extract = Offline.__call__

    async def note(self: Offline, document: Document, chunks: Sequence[Chunk]) -> object:
        read.extend(document.names)
        return await extract(self, document, chunks)

    monkeypatch.setattr(Offline, "__call__", note)
    again, embedded = _added(kb, docs)
    assert again == whole
    assert read == []
    # What was under way at the kill is lost: two seconds of work, of the many that there were.
    assert everything - done <= embedded <= everything - done + 100
    assert not (kb / "extracted.jsonl").exists()
