"""Fixtures shared by the rooms: a fake embedder and a small knowledge base."""

import gc
import os
import shutil
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import hypothesis
import pytest

import clew
from clew.config import EmbedSettings, Settings
from clew.engine import KnowledgeBase
from clew.kb_address import DatabaseAddress, parse_location
from clew.llm import embed_local
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.postgres_server import start_server, why_not
from clew.testing.word_reader import WordReader
from clew.text.tables import read_tables
from clew.text.unicode import digest
from clew.types import Document

_SCHEMAS = count(1)
# A busy machine is no failure. Each law is tried on fewer examples than by `make test-all`.
hypothesis.settings.register_profile("quick", max_examples=25, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=100, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_finish() -> None:
    """Collect garbage less often, and leave what collecting the tests made to itself."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


READ_ALL = ("test_docs.py", "test_no_private_access.py", "test_page_files.py", "test_structure.py")
"""Tests that parse all of the code."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with those: then one process parses all, which the first tests are given to."""
    items.sort(key=lambda item: item.path.name not in READ_ALL)


@pytest.fixture(scope="session")
def weights_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights of the local embedder, which take seconds to make."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # the workers of one run share it, and fill it at the same time
    return root / "clew-cache"


@pytest.fixture(scope="session")
def local_embedder(weights_cache: Path) -> embed_local.LocalEmbedder:
    """The local embedder with its real weights."""
    return embed_local.LocalEmbedder(weights_cache)


_MODEL_OUTPUTS: WeakKeyDictionary[object, dict[Any, list[Any]]] = WeakKeyDictionary()


@pytest.fixture(scope="module", autouse=True)
def remembered_outputs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a model once on each input, but where the models themselves are tested.

    Most of the time of a question goes into them, and many tests ask the same of the same texts.
    """
    if request.path.parent.name in ("llm", "reader") or find_spec("onnxruntime") is None:
        yield
        return
    from onnxruntime import InferenceSession

    run = InferenceSession.run

    def run_once(
        session: object, names: Sequence[str] | None, feed: Mapping[str, Any]
    ) -> list[Any]:
        held = _MODEL_OUTPUTS.setdefault(session, {})
        given = tuple((name, one.shape, one.tobytes()) for name, one in feed.items())
        key = (tuple(names or ()), given)
        found = held.get(key)
        if found is None:
            if len(held) >= 4000:
                held.clear()
            found = held[key] = run(session, names, feed)
        return [one.copy() for one in found]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InferenceSession, "run", run_once)
        yield


def one_in_three(cases: Iterable[Any]) -> list[Any]:
    """Every third case, and the others as slow ones: each shows the same of another example."""
    return [
        pytest.param(*one, marks=() if at % 3 == 0 else pytest.mark.slow)
        for at, one in enumerate(one if isinstance(one, tuple) else (one,) for one in cases)
    ]


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


def list_rows(document: Document) -> list[dict[str, str]]:
    """The cells of all rows of a file of tables."""
    tables = read_tables(document.text, document.metadata)
    return [dict(row.cells) for table in tables for row in table.rows()]


def open_base(folder: Path) -> KnowledgeBase:
    """Open or create a knowledge base with a fake embedder; it has all vectors, for steps."""
    embed = EmbedSettings(kinds=("chunk", "entity", "fact"))
    settings = Settings(kb=folder, wait=0.2, embed=embed)
    opened = KnowledgeBase(
        SqliteStore(settings.kb, create=not folder.exists(), durable=False), settings, HashEmbed()
    )
    opened.reader = WordReader()
    return opened


Held = dict[str, bytes | None]
_FILLED: dict[tuple[tuple[str, str], ...], Held] = {}


def read_folder(folder: Path) -> Held:
    """All that a folder holds, by relative path: the bytes of a file, None for a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def write_folder(held: Held, target: Path) -> None:
    """Write what a folder of a hundred small files held; four times as fast as `copytree`."""
    target.mkdir()
    for name, content in held.items():
        if content is None:
            os.mkdir(f"{target}/{name}")
            continue
        with open(f"{target}/{name}", "xb", buffering=0) as file:
            assert file.write(content) == len(content)


Fill = Callable[[KnowledgeBase], Awaitable[object]]
OpenFilled = Callable[[Fill], Awaitable[KnowledgeBase]]


@pytest.fixture(scope="session")
def filled_folders() -> dict[str, Held]:
    """Knowledge bases that several tests begin with, by the function that filled them."""
    return {}


@pytest.fixture
async def open_filled(filled_folders: dict[str, Held], tmp_path: Path) -> AsyncIterator[OpenFilled]:
    """Open a copy of what a function fills a knowledge base with; it is called once per run."""
    opened = []

    async def open_copy(fill: Fill) -> KnowledgeBase:
        kept = f"{fill.__module__}.{fill.__qualname__}"
        if kept not in filled_folders:
            first = open_base(tmp_path / "first" / "kb")
            await fill(first)
            await first.close()
            filled_folders[kept] = read_folder(tmp_path / "first" / "kb")
            shutil.rmtree(tmp_path / "first")
        write_folder(filled_folders[kept], tmp_path / "kb")
        opened.append(open_base(tmp_path / "kb"))
        return opened[-1]

    yield open_copy
    for one in opened:
        await one.close()


async def fill_valley(base: KnowledgeBase) -> None:
    """Add the six small documents."""
    await base.take(stream(VALLEY))


@pytest.fixture
async def base(
    request: pytest.FixtureRequest, tmp_path: Path, open_filled: OpenFilled
) -> AsyncIterator[KnowledgeBase]:
    """An empty knowledge base with a fake embedder; `valley` where a test wants that too."""
    if "valley" in request.fixturenames:
        yield await open_filled(fill_valley)
        return
    opened = open_base(tmp_path / "kb")
    yield opened
    await opened.close()


@pytest.fixture
def valley(base: KnowledgeBase) -> KnowledgeBase:
    """A knowledge base of six small documents."""
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


def place_tables(folder: Path, tables: Mapping[str, str]) -> None:
    """Put files, given by their names and texts, and a knowledge base of them into a folder."""
    for name, text in tables.items():
        (folder / name).write_text(text, encoding="utf-8")
    given = tuple(tables.items())
    if given not in _FILLED:
        with clew.open(folder / "first" / "kb") as base:
            base.add([folder / name for name in tables])
        _FILLED[given] = read_folder(folder / "first" / "kb")
        shutil.rmtree(folder / "first")
    write_folder(_FILLED[given], folder / "kb")


@contextmanager
def open_tables(folder: Path, tables: Mapping[str, str]) -> Iterator[clew.Kb]:
    """Open a knowledge base of files, given by their names and texts; it is built once."""
    place_tables(folder, tables)
    with clew.open(folder / "kb") as base:
        yield base
