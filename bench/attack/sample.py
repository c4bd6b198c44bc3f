"""A small knowledge base to attack, its documents, and all that may not change unseen."""

import asyncio
import hashlib
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from clew.config import Settings
from clew.engine import KnowledgeBase, open_store
from clew.graph.community_tree import forest_from_arrays
from clew.index.view import View
from clew.ingest.readers.source import make_document
from clew.testing.fakes import HashEmbed
from clew.types import Document

T = TypeVar("T")
RECIPES = ("naive", "bm25", "hybrid", "hipporag2", "lightrag", "clew", "raptor", "youtu", "pathrag")
TREES = ("dual", "raptor")
_PEOPLE = ("Ilse Brandvik", "Anton Reeve", "Clara Lindqvist", "Oda Falk", "Edda Marling")
_TOWNS = ("Hallowmere", "Vessen", "Pellworth", "Upper Sarn", "Deepwell")
_WORKS = ("Marrow Bridge", "Tarn Mill", "Grey Lighthouse", "Corriden Tower", "Sarn Ferry")
_SENTENCES = (
    "{work} was designed by {person} in {year}.",
    "{person} was born in {town} and died in {other} in {year}.",
    "{town} is a market town near {other}.",
    "{person} lived in {town}, where {work} stands.",
    "{work} was restored in {year} after a storm in {town}.",
)
QUESTIONS = (
    "Where was the designer of the Marrow Bridge born?",
    "Which town is near Hallowmere?",
    "Who designed the Tarn Mill?",
)
# What a history must not change: every table by its content ids, without keys and vector rows.
_TRUTH_QUERIES = (
    "SELECT id, title, text, metadata, pages FROM documents",
    "SELECT s.name, d.id FROM sources s JOIN documents d ON d.key = s.document",
    "SELECT c.id, d.id, c.start, c.end, c.text, c.heading, c.page, c.failed FROM chunks c "
    "JOIN documents d ON d.key = c.document",
    "SELECT id, name, name_hash, type, description, aliases, attributes, support FROM entities",
    "SELECT e.id, f.hash, f.weight, f.part FROM forms f JOIN entities e ON e.key = f.entity",
    "SELECT id, text, relation, keywords, description, weight, support FROM facts",
    "SELECT f.id, p.ordinal, e.id, p.role FROM participants p JOIN facts f ON f.key = p.fact "
    "JOIN entities e ON e.key = p.entity",
    "SELECT e.id, c.id, m.surface, m.type, m.description, m.spans, m.about, m.aliases, "
    "m.attributes FROM mentions m JOIN entities e ON e.key = m.entity "
    "JOIN chunks c ON c.key = m.chunk",
    "SELECT f.id, c.id, s.text, s.relation, s.keywords, s.description, s.weight, s.start, s.end "
    "FROM sayings s JOIN facts f ON f.key = s.fact JOIN chunks c ON c.key = s.chunk",
    "SELECT key, value FROM memory WHERE kind IN "
    "('resolution', 'senses', 'summary', 'tuning', 'label', 'earlier-labels', "
    "'calibration')",
)


_TABLES = (
    *("documents", "sources", "chunks", "entities", "facts", "forms", "participants"),
    *("mentions", "sayings"),
)
_SELECT_VALUES = (
    "SELECT kind, key, value FROM memory WHERE kind NOT IN ('arrival', 'correction', 'reply') "
    "AND NOT (kind = 'manifest' AND (key = 'labels' OR key GLOB char(31) || '*')) "
    "ORDER BY kind, key"
)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run async code from a campaign."""
    return asyncio.run(work)


def make_text(number: int, version: int = 0) -> str:
    """The text of a document, always the same for one number and version."""
    at = int.from_bytes(hashlib.blake2b(f"{number}:{version}".encode(), digest_size=8).digest())
    lines = []
    for pick in range(2 + at % 3):
        at = at // 7 + pick * 1_000_003
        lines.append(
            _SENTENCES[at % len(_SENTENCES)].format(
                person=_PEOPLE[at // 5 % len(_PEOPLE)],
                town=_TOWNS[at // 11 % len(_TOWNS)],
                other=_TOWNS[at // 13 % len(_TOWNS)],
                work=_WORKS[at // 17 % len(_WORKS)],
                year=1800 + at % 150,
            )
        )
    return " ".join(lines)


def make_sample(number: int, version: int = 0) -> Document:
    """A document."""
    return make_document(make_text(number, version), f"Note {number}", f"note-{number}.txt")


async def stream(documents: Sequence[Document]) -> AsyncIterator[Document]:
    """Documents in the form that a knowledge base takes."""
    for document in documents:
        yield document


async def open_kb(folder: Path, embed: HashEmbed | None = None) -> KnowledgeBase:
    """Open or create a knowledge base with a fake embedder."""
    settings = Settings(kb=folder, wait=5.0, extractor="offline")
    store = await open_store(settings, create=True)
    base = KnowledgeBase(store, settings, embed or HashEmbed())
    vars(base)["reader"] = None  # a search needs none, and opening it takes most of a trial's time
    return base


async def build_sample(folder: Path, documents: int = 12) -> None:
    """Build the knowledge base: documents in two adds, a decision and two trees."""
    base = await open_kb(folder)
    half = documents // 2
    await base.take(stream([make_sample(number) for number in range(half)]))
    await base.take(stream([make_sample(number) for number in range(half, documents)]))
    await base.identity.merge("Upper Sarn", "Deepwell")
    await base.builder.make_tree_manager().build(TREES)
    await base.close()


async def rank_all(base: KnowledgeBase, recipes: Sequence[str] = RECIPES) -> list[Any]:
    """What every recipe finds for every question: chunks, entities and facts with their scores."""
    found: list[Any] = []
    for recipe in recipes:
        for question in QUESTIONS:
            evidence = (await base.search(question, recipe=recipe, k=5)).evidence
            found.append(
                (
                    recipe,
                    [(c.doc, c.start, c.end, c.text, round(c.score, 4)) for c in evidence.chunks],
                    [(e.name, round(e.score, 4)) for e in evidence.entities],
                    [(f.text, round(f.score, 4)) for f in evidence.facts],
                    sorted((c.name, c.summary) for c in evidence.communities),
                )
            )
    return found


def fingerprint(folder: Path) -> str:
    """A hash of all that searches read: two folders with the same one answer alike."""
    found = hashlib.blake2b(digest_size=16)
    with closing(sqlite3.connect(folder / "kb.sqlite")) as db:
        for table in _TABLES:
            rows = db.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608  (our own names)
            found.update(repr((table, sorted(rows, key=repr))).encode())
        kept = db.execute(_SELECT_VALUES).fetchall()
        # Costs and times, which differ between two runs, are numbers; no search reads them.
        texts = [row for row in kept if not row[2].replace(".", "", 1).isdigit()]
        found.update(repr(texts).encode())
        newest = db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0]
    arrays = folder.glob(f"arrays/{newest}/*.npy")
    for path in sorted([*arrays, *folder.glob("vectors/*/*.npy")]):
        content = path.read_bytes()
        if path.name == "tree_middles.npy":  # sums of vectors, whose last digits depend on order
            content = np.round(np.load(path), 4).tobytes()
        found.update(f"{path.parent.parent.name}/{path.name}".encode() + content)
    return found.hexdigest()


def read_truth(folder: Path) -> list[list[tuple[Any, ...]]]:
    """All that is stored and not derived, in an order of its own."""
    db = sqlite3.connect(folder / "kb.sqlite")
    try:
        return [sorted(db.execute(query).fetchall(), key=repr) for query in _TRUTH_QUERIES]
    finally:
        db.close()


async def describe_trees(base: KnowledgeBase) -> list[Any]:
    """Every community by level and the names of its members, and the state of each tree."""
    async with base.store.snapshot() as snapshot:
        forest = forest_from_arrays(snapshot.arrays)
        keys = View(snapshot.arrays, {}).keys("entity").tolist()
        names = {key: entity.name for key, entity in (await snapshot.entities(keys)).items()}
        chunk_keys = View(snapshot.arrays, {}).keys("chunk").tolist()
        ids = {key: chunk.id for key, chunk in (await snapshot.chunks(chunk_keys)).items()}
        states = await base.builder.make_tree_manager().states(snapshot)
    found = []
    for at in range(len(forest)):
        members = sorted(names[keys[one]] for one in forest.members(at)[0])
        passages = sorted(ids[chunk_keys[one]] for one in forest.passages(at)[0])
        found.append((int(forest.tree[at]), int(forest.level[at]), members, passages))
    return [sorted(found), sorted(states.items())]
