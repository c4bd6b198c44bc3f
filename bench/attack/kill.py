"""Kills every writing command at a random moment, repeats it, and compares with an undisturbed run.

`python -m bench.attack.kill [--count N] [--seconds S] [--seed N]`; a trial takes one command, such
as add, rm, import, tree, reembed, repair or restore. After a kill the knowledge base opens,
verifies and answers; after the command is repeated, tables, rankings and trees equal those of a run
that was not killed.
"""

import json
import os
import random
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.attack.campaign import RAM_DISK, expect, parse_options, run_campaign
from bench.attack.sample import (
    TREES,
    build_sample,
    describe_trees,
    make_sample,
    make_text,
    open_kb,
    rank_all,
    read_truth,
    run,
    stream,
)
from clew.engine import KnowledgeBase
from clew.errors import ClewError, StoreError
from clew.llm.embed import EmbedRole, Vectors
from clew.store.sqlite.restore import restore_database
from clew.testing.fakes import HashEmbed

Work = Callable[[Path], Awaitable[None]]
_GRAPH = [
    {"head": "Ilse Brandvik", "relation": "taught", "tail": "Oda Falk"},
    {"head": "Oda Falk", "relation": "lives in", "tail": "Vessen"},
    {"id": "Oda Falk", "name": "Oda Falk", "type": "person"},
]


@dataclass(frozen=True)
class Family:
    """A command: what it does, and the state it starts from."""

    name: str
    work: Work
    prepare: Callable[[Path], None] = lambda folder: None
    sound: bool = True
    """Whether the knowledge base is sound before it, and so must be after a kill."""


async def _with_kb(folder: Path, work: Callable[[KnowledgeBase], Awaitable[Any]]) -> None:
    base = await open_kb(folder / "kb", CountingEmbed(folder / "embedded"))
    try:
        await work(base)
    finally:
        await base.close()


class CountingEmbed(HashEmbed):
    """Counts texts in a file, which outlives a kill."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    async def __call__(self, texts: list[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Embed and count."""
        found = await super().__call__(texts, role=role)
        with self._file.open("a") as file:
            file.write(f"{len(texts)}\n" if role == "passage" else "")
        return found


async def add(folder: Path) -> None:
    """Add documents."""
    more = [make_sample(number) for number in range(20, 30)]
    await _with_kb(folder, lambda base: base.take(stream(more)))


async def add_files(folder: Path) -> None:
    """Add a folder with a file of rows."""
    await _with_kb(folder, lambda base: base.add([folder / "docs"]))


async def update(folder: Path) -> None:
    """Add changed versions of documents."""
    changed = [make_sample(number, version=1) for number in range(2, 8)]
    await _with_kb(folder, lambda base: base.take(stream(changed)))


async def remove(folder: Path) -> None:
    """Remove documents; what is gone already is not asked for again."""

    async def work(base: KnowledgeBase) -> None:
        known = await base.store.sources()
        names = [name for name in (f"note-{n}.txt" for n in range(1, 5)) if name in known]
        if names:
            await base.remove(names)
        else:
            await base.builder.update_trees()

    await _with_kb(folder, work)


async def import_graph(folder: Path) -> None:
    """Import a graph file."""
    await _with_kb(folder, lambda base: base.import_graph(folder / "graph.jsonl"))


async def grow(folder: Path) -> None:
    """Build the trees."""
    await _with_kb(folder, lambda base: base.builder.make_tree_manager().build(TREES))


async def reembed(folder: Path) -> None:
    """Recompute vectors."""
    await _with_kb(folder, lambda base: base.reembed())


async def repair(folder: Path) -> None:
    """Repair damaged files."""
    await _with_kb(folder, lambda base: base.repair())


async def join(folder: Path) -> None:
    """Merge two names."""
    with suppress(StoreError):  # they are merged already
        await _with_kb(folder, lambda base: base.identity.merge("Hallowmere", "Pellworth"))


async def split(folder: Path) -> None:
    """Split two names that were merged."""
    with suppress(StoreError):  # they are split already
        await _with_kb(folder, lambda base: base.identity.split("Upper Sarn"))


async def migrate(folder: Path) -> None:
    """Open a knowledge base of version 0.1 and write to it."""
    await _with_kb(folder, lambda base: base.take(stream([make_sample(40)])))


async def restore(folder: Path) -> None:
    """Restore a backup."""
    restore_database(folder / "kb", folder / "backup", 5.0)
    from clew.config import Settings
    from clew.engine import open_store

    settings = Settings(kb=folder / "kb", extractor="offline")
    store = await open_store(settings, create=False, check=False)
    base = KnowledgeBase(store, settings, CountingEmbed(folder / "embedded"))
    await base.repair()
    await base.close()


def _make_files(folder: Path) -> None:
    (folder / "docs").mkdir()
    rows = [{"id": number, "text": make_text(number)} for number in range(50, 60)]
    (folder / "docs/rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for number in range(60, 64):
        (folder / f"docs/{number}.txt").write_text(make_text(number))


def _make_graph(folder: Path) -> None:
    (folder / "graph.jsonl").write_text("\n".join(map(json.dumps, _GRAPH)))


def _damage_vectors(folder: Path) -> None:
    for path in (folder / "kb").glob("vectors/*/chunk.npy"):
        path.write_bytes(path.read_bytes()[:300])


def _damage_arrays(folder: Path) -> None:
    for path in (folder / "kb").glob("arrays/*/entity_keys.npy"):
        path.unlink()
    _damage_vectors(folder)


def _make_backup(folder: Path) -> None:
    source = sqlite3.connect(folder / "kb/kb.sqlite")
    target = sqlite3.connect(folder / "backup")
    source.backup(target)
    source.close()
    target.close()
    run(remove(folder))


def _make_old(folder: Path) -> None:
    """The format of version 0.1: no checksums in tables, arrays and vectors."""
    db = sqlite3.connect(folder / "kb/kb.sqlite")
    for table in ("documents", "sources", "chunks", "entities", "facts", "memory"):
        db.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
    db.execute("ALTER TABLE chunks DROP COLUMN extracted")
    db.execute("DELETE FROM meta WHERE key = 'arrays'")
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()
    for path in (folder / "kb/arrays").glob("*/*"):
        if path.suffix != ".npy":
            path.unlink()


FAMILIES = (
    Family("add", add),
    Family("add-files", add_files, _make_files),
    Family("update", update),
    Family("rm", remove),
    Family("import", import_graph, _make_graph),
    Family("tree", grow),
    Family("reembed", reembed, _damage_vectors, sound=False),
    Family("repair", repair, _damage_arrays, sound=False),
    Family("join", join),
    Family("split", split),
    Family("migrate", migrate, _make_old),
    Family("restore", restore, _make_backup, sound=False),
)


@dataclass(frozen=True)
class Reference:
    """The state a family starts from, and what it comes to undisturbed."""

    folder: Path
    before: Any
    after: Any
    seconds: float
    embedded: int


@cache
def make_reference(number: int) -> Reference:
    """Prepare a family's starting state, run it once, and keep what comes of it."""
    family = FAMILIES[number]
    root = Path(tempfile.mkdtemp(prefix="clew-attack-", dir=RAM_DISK))
    (root / "start").mkdir()
    run(build_sample(root / "start/kb"))
    family.prepare(root / "start")
    before = inspect_kb(root / "start") if family.sound else None
    (root / "start/embedded").unlink(missing_ok=True)
    shutil.copytree(root / "start", root / "done")
    began = time.monotonic()
    expect(_fork(family.work, root / "done", None) == 0, f"{family.name} fails undisturbed")
    seconds = time.monotonic() - began
    return Reference(
        root / "start", before, inspect_kb(root / "done"), seconds, _count(root / "done")
    )


def inspect_kb(folder: Path) -> Any:
    """Tables, rankings, trees and what verify says."""

    async def work() -> Any:
        base = await open_kb(folder / "kb")
        try:
            found = await rank_all(base), await describe_trees(base), await base.verify()
        finally:
            await base.close()
        return found

    return run(work()), read_truth(folder / "kb")


def _count(folder: Path) -> int:
    file = folder / "embedded"
    return sum(map(int, file.read_text().split())) if file.exists() else 0


def _fork(work: Work, folder: Path, delay: float | None) -> int:
    """Run in a child process that is killed after `delay` seconds; return its status."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            if delay is not None:
                signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-4))
            os.chdir(folder)  # document names are relative
            run(work(Path()))  # type: ignore[arg-type]
            code = 0
        except ClewError as error:
            os.write(2, f"{error}\n".encode())
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def attack_kill(rng: random.Random, folder: Path) -> str:
    """One trial: kill, look, repeat, compare."""
    number = rng.randrange(len(FAMILIES))
    family, reference = FAMILIES[number], make_reference(number)
    trial = Path(shutil.copytree(reference.folder, folder / "trial"))
    kills = 0
    for _ in range(rng.choice((1, 1, 2, 3))):
        status = _fork(family.work, trial, rng.random() * reference.seconds)
        kills += os.WIFSIGNALED(status)
        if family.sound:
            seen = inspect_kb(trial)
            expect(not seen[0][2], f"{family.name}: after a kill, verify: {seen[0][2]}")
    expect(_fork(family.work, trial, None) == 0, f"{family.name}: cannot be repeated")
    found, wanted = inspect_kb(trial), reference.after
    for what, one, other in zip(
        ("rankings", "trees", "problems", "tables"),
        (*found[0], found[1]),
        (*wanted[0], wanted[1]),
        strict=True,
    ):
        differ = one != other and [a for a, b in zip(one, other, strict=False) if a != b][:1]
        expect(one == other, f"{family.name}: other {what} than undisturbed: {str(differ)[:300]}")
    again = _count(trial) - reference.embedded
    expect(again <= kills * 1024, f"{family.name}: {again} texts embedded twice")
    return f"{family.name}: {'killed' if kills else 'ended first'}"


if __name__ == "__main__":
    run_campaign("kill", attack_kill, parse_options(str(__doc__), 12_000))
