"""The writing commands that are attacked: what each does, and the state it starts from.

A command is written so that it can be repeated after a kill, as a user would repeat it.
"""

import json
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.attack.sample import (
    QUESTIONS,
    TREES,
    make_sample,
    make_text,
    open_kb,
    run,
    stream,
)
from clew.agents.confidence import save_model
from clew.config import Settings
from clew.engine import KnowledgeBase, open_store
from clew.errors import StoreError
from clew.evaluate.calibrate import MIN_QUESTIONS, refit_confidence
from clew.evaluate.datasets import Question
from clew.labels import DocumentLabeller
from clew.llm.embed import EmbedRole, Vectors
from clew.store.sqlite.restore import restore_database
from clew.testing.fakes import HashEmbed, ScriptedChat
from clew.tune.run import tune

Work = Callable[[Path], Awaitable[None]]
_BATCH = 4
IN_FLIGHT = 4 * _BATCH  # texts: two calls that are awaited, and two whose answers are being saved
_GOLDS = ("Hallowmere", "no such town")
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
    stores_vectors: bool = True
    """False: it embeds questions and names of relations to read, as a search does."""


async def _with_kb(folder: Path, work: Callable[[KnowledgeBase], Awaitable[Any]]) -> None:
    base = await open_kb(folder / "kb", CountingEmbed(folder / "embedded"))
    try:
        await work(base)
    finally:
        await base.close()


class CountingEmbed(HashEmbed):
    """Counts texts in a file, which outlives a kill."""

    batch, concurrency = _BATCH, 2

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Embed and count."""
        found = await super().__call__(texts, role=role)
        with suppress(OSError), self._file.open("a") as file:  # it may lie on the full disk
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
    settings = Settings(kb=folder / "kb", extractor="offline")
    store = await open_store(settings, create=False, check=False)
    base = KnowledgeBase(store, settings, CountingEmbed(folder / "embedded"))
    await base.repair()
    await base.close()


async def undo(folder: Path) -> None:
    """Withdraw a decision."""
    with suppress(StoreError):  # it is withdrawn already
        await _with_kb(folder, lambda base: base.identity.undo("Upper Sarn", "Deepwell"))


async def describe(folder: Path) -> None:
    """Import long descriptions, and let a model summarise them."""
    reply = json.dumps({"description": "A person of many notes."})

    async def work(base: KnowledgeBase) -> None:
        await base.import_graph(folder / "people.jsonl")
        await base.identity.summarize_descriptions(ScriptedChat(lambda request: reply))

    await _with_kb(folder, work)


async def label(folder: Path) -> None:
    """Add documents with labels, some of which are known without."""

    async def work(base: KnowledgeBase) -> None:
        labeller = DocumentLabeller(base.store)
        documents = stream([make_sample(number) for number in range(8, 24)])
        await base.take(labeller.attach(documents, ["team=legal"]))
        await labeller.settle()

    await _with_kb(folder, work)


async def tune_queries(folder: Path) -> None:
    """Fit adapters from questions."""
    questions = [
        Question(str(n), QUESTIONS[n % len(QUESTIONS)] + f" {n}", gold=(f"note-{n}.txt",))
        for n in range(12)
    ]
    await _with_kb(folder, lambda base: tune(base, questions, lambda *told: None, ["naive"]))


async def calibrate(folder: Path) -> None:
    """Fit the confidence of answers to questions, and set the threshold of the gate."""
    questions = [
        Question(str(n), QUESTIONS[n % len(QUESTIONS)] + f" {n}", answers=(_GOLDS[n % 2],))
        for n in range(MIN_QUESTIONS)
    ]

    async def work(base: KnowledgeBase) -> None:
        fit = await refit_confidence(base, questions, "bm25", lambda *told: None)
        await save_model(base.store, fit.model)

    await _with_kb(folder, work)


async def back_up(folder: Path) -> None:
    """Copy the database to a file that is not there yet, and add documents."""
    if not (folder / "copy").exists():
        await _with_kb(folder, lambda base: base.backup(folder / "copy"))
    await add(folder)


def _make_people(folder: Path) -> None:
    notes = [f"Note {n} says that the person was seen near {t}." for n in range(40) for t in "AB"]
    people = [
        {"id": name, "name": name, "type": "person", "description": " ".join(notes)}
        for name in ("Ilse Brandvik", "Oda Falk", "Petra Sund")
    ]
    rows = [*people, {"head": "Petra Sund", "relation": "met", "tail": "Oda Falk"}]
    (folder / "people.jsonl").write_text("\n".join(map(json.dumps, rows)))


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
    db.execute("PRAGMA application_id = 0")
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
    Family("undo", undo),
    Family("describe", describe, _make_people),
    Family("label", label),
    Family("tune", tune_queries, stores_vectors=False),
    Family("calibrate", calibrate),
    Family("backup", back_up),
)
