"""Fixtures shared by the rooms: a fake embedder and a small knowledge base."""

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import pytest

from clew.config import EmbedSettings, Settings
from clew.engine import KnowledgeBase
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.word_reader import WordReader
from clew.text.unicode import digest
from clew.types import Document


def document(name: str, text: str, title: str = "") -> Document:
    """A document as a reader would give it."""
    return Document(digest(title, text), text, title, (name,))


async def stream(documents: Iterable[Document]) -> AsyncIterator[Document]:
    """Documents in the shape the build story reads."""
    for one in documents:
        yield one


VALLEY: Sequence[Document] = (
    document(
        "bridge",
        "Marrow Bridge is a stone bridge over the Tarn. It was designed by Ilse Brandvik.",
        "Marrow Bridge",
    ),
    document(
        "ilse",
        "Ilse Brandvik was an engineer. She was born in Hallowmere and died in Vessen in 1921.",
        "Ilse Brandvik",
    ),
    document("town", "Hallowmere is a fishing town on the Grey Coast.", "Hallowmere"),
    document("other", "Pellworth is a market town. Anton Reeve lived there.", "Pellworth"),
    document("poet", "Anton Reeve was a poet. He was born in Vessen.", "Anton Reeve"),
    document("moss", "Clara Lindqvist described the mosses of the Grey Coast.", "Clara Lindqvist"),
)


@pytest.fixture
async def base(tmp_path: Path) -> AsyncIterator[KnowledgeBase]:
    """An empty knowledge base with a fake embedder; steps that run alone find every vector."""
    everything = EmbedSettings(kinds=("chunk", "entity", "fact"))
    settings = Settings(kb=tmp_path / "kb", wait=0.2, embed=everything)
    opened = KnowledgeBase(
        SqliteStore(settings.kb, create=True, durable=False), settings, HashEmbed()
    )
    opened.reader = WordReader()
    yield opened
    await opened.close()


@pytest.fixture
async def valley(base: KnowledgeBase) -> KnowledgeBase:
    """The same with six small documents."""
    await base.take(stream(VALLEY))
    return base
