"""Small graphs with vectors that tests choose themselves, so that scores can be worked out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clew.engine import KnowledgeBase
from clew.llm.embed import EmbedRole, Vectors
from clew.retrieve.step import Step
from clew.text.unicode import hash64
from clew.types import Chunk, Document, Extraction, Found, RawEntity, RawFact
from conftest import document, stream


@dataclass
class Told:
    """An extractor that says what it was told: facts by document name."""

    facts: Mapping[str, Sequence[RawFact]]
    types: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "Told"

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        said = tuple(self.facts.get(document.names[0], ()))
        title = (document.title,) if document.title else ()
        names = dict.fromkeys((*title, *(name for fact in said for name, _ in fact.members)))
        entities = tuple(
            RawEntity(name, self.types.get(name, "thing"), about=float(name == document.title))
            for name in names
        )
        return [Extraction(entities, said)] + [Extraction() for _ in chunks[1:]]


class Chosen:
    """An embedder with chosen first coordinates; the rest sets every text apart from the others."""

    name, dim = "chosen", 512

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.vectors = vectors

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        found = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(found, texts, strict=True):
            given = self.vectors.get(text.split("\n")[-1], ())
            own = np.random.default_rng(hash64(text)).standard_normal(self.dim - len(given))
            left = np.sqrt(max(0.0, 1 - float(np.dot(given, given))))
            row[: len(given)] = given
            row[len(given) :] = own / np.linalg.norm(own) * left
        return found


def joins(head: str, relation: str, tail: str) -> RawFact:
    """A triple."""
    return RawFact(
        f"{head} {relation} {tail}", ((head, "head"), (tail, "tail")), relation, span=(0, 1)
    )


def says(text: str, *members: str, subject: str = "") -> RawFact:
    """A sentence with its names."""
    roles = ((subject, "subject"),) if subject else ()
    return RawFact(text, (*roles, *((name, "member") for name in members)), span=(0, 1))


async def take_graph(
    base: KnowledgeBase,
    facts: Mapping[str, Sequence[RawFact]],
    types: Mapping[str, str] | None = None,
) -> KnowledgeBase:
    """One document for each name, with these facts."""
    documents = [document(name, f"Text of {name}.") for name in facts]
    await base.take(stream(documents), Told(facts, types or {}))
    return base


async def after(
    base: KnowledgeBase, question: str, *steps: Step, found: Found | None = None
) -> Found:
    """What is found after some steps."""
    async with base.store.snapshot() as now:
        result, ctx = found or Found(), await base.context(now, question)
        for step in steps:
            result = await step(ctx, result)
        return result


async def names_of(base: KnowledgeBase, positions: Sequence[int]) -> list[str]:
    """Entities by position, in words."""
    async with base.store.snapshot() as now:
        view = (await base.context(now, "?")).view
        keys = [int(view.keys("entity")[at]) for at in positions]
        held = await now.entities(keys)
        return [held[key].name for key in keys]


async def texts_of(base: KnowledgeBase, positions: Sequence[int]) -> list[str]:
    """Facts by position, in words."""
    async with base.store.snapshot() as now:
        view = (await base.context(now, "?")).view
        keys = [int(view.keys("fact")[at]) for at in positions]
        held = await now.facts(keys)
        return [held[key].text for key in keys]


async def docs_of(base: KnowledgeBase, found: Found) -> list[str]:
    """The documents of the chunks found, best first."""
    async with base.store.snapshot() as now:
        view = (await base.context(now, "?")).view
        keys = [int(view.keys("chunk")[hit.at]) for hit in found.chunks]
        held = await now.chunks(keys)
        names = await now.names([chunk.document for chunk in held.values()])
        return [names[held[key].document][0] for key in keys]
