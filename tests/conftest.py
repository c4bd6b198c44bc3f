"""Fixtures shared by the rooms: a fake embedder and a small knowledge base."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

import clew
from clew.config import EmbedSettings, Settings
from clew.engine import KnowledgeBase
from clew.kb_address import DatabaseAddress, parse_location
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.postgres_server import start_server, why_not
from clew.testing.word_reader import WordReader
from clew.text.unicode import digest
from clew.types import Document

_SCHEMAS = count(1)


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
    """An empty knowledge base with a fake embedder, which has all vectors at once for steps."""
    embed = EmbedSettings(kinds=("chunk", "entity", "fact"))
    settings = Settings(kb=tmp_path / "kb", wait=0.2, embed=embed)
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


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a PostgreSQL server for this run; skips where none can be started."""
    if reason := why_not():
        pytest.skip(reason)
    with start_server() as url:
        yield url


@pytest.fixture
def address(server: str) -> DatabaseAddress:
    """The address of a schema that does not exist yet."""
    found = parse_location(f"{server}&schema=kb{next(_SCHEMAS)}")
    assert isinstance(found, DatabaseAddress)
    return found


@pytest.fixture
def shared(address: DatabaseAddress, tmp_path: Path) -> Settings:
    """Settings of a knowledge base in that schema."""
    return Settings(kb=address, cache=tmp_path / "cache", wait=0.2)


@contextmanager
def open_tables(folder: Path, tables: Mapping[str, str]) -> Iterator[clew.Kb]:
    """Open a knowledge base of tables, given by the names and texts of their files."""
    for name, text in tables.items():
        (folder / name).write_text(text, encoding="utf-8")
    with clew.open(folder / "kb") as base:
        base.add([folder / name for name in tables])
        yield base
