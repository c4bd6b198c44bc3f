"""The adapters give the same passages as `kb.search`; each is skipped where its package is not."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
from clew.api import Kb
from clew.config import Settings
from clew.integrations.passages import describe_passage, find_passages_async

ASKED = "Who designed the Marrow Bridge?"


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[Kb]:
    settings = Settings(recipe="keywords", extractor="offline")
    with clew.open(tmp_path / "kb", settings=settings) as opened:
        opened.aio.embed = None
        opened.add_texts(
            [("bridge", "Ilse Brandvik designed the Marrow Bridge."), ("town", "Vessen is a town.")]
        )
        yield opened


def _expected(kb: Kb) -> list[tuple[str, str, str]]:
    found = kb.search(ASKED, recipe="keywords", k=3).evidence.chunks
    assert found
    return [(one.id, one.text, one.doc) for one in found]


async def test_passages_are_found_without_blocking(kb: Kb) -> None:
    [found] = await find_passages_async(kb, ASKED, "keywords", 3)
    assert describe_passage(found) | {"score": 0} == {
        **{"doc": "bridge", "title": "", "start": 0, "end": 41, "score": 0},
    }


async def test_langchain(kb: Kb) -> None:
    pytest.importorskip("langchain_core")
    from clew.integrations.langchain import ClewRetriever

    retriever = ClewRetriever(kb=kb, recipe="keywords", k=3)
    found = retriever.invoke(ASKED)
    assert [(d.id, d.page_content, d.metadata["doc"]) for d in found] == _expected(kb)
    assert [d.id for d in await retriever.ainvoke(ASKED)] == [d.id for d in found]


async def test_llama_index(kb: Kb) -> None:
    pytest.importorskip("llama_index.core")
    from clew.integrations.llama_index import ClewRetriever

    retriever = ClewRetriever(kb, recipe="keywords", k=3)
    found = retriever.retrieve(ASKED)
    assert [(n.node.node_id, n.text, n.metadata["doc"]) for n in found] == _expected(kb)
    assert [n.node.node_id for n in await retriever.aretrieve(ASKED)] == [
        n.node.node_id for n in found
    ]


def test_haystack(kb: Kb) -> None:
    haystack = pytest.importorskip("haystack")
    from clew.integrations.haystack import ClewRetriever

    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", ClewRetriever(recipe="keywords", k=3, kb=kb))
    found = pipeline.run({"retriever": {"query": ASKED}})["retriever"]["documents"]
    assert [(d.id, d.content, d.meta["doc"]) for d in found] == _expected(kb)
    saved = ClewRetriever("there", recipe="keywords", k=4).to_dict()
    again = ClewRetriever.from_dict(saved)
    assert (again.folder, again.recipe, again.k) == ("there", "keywords", 4)


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("haystack", "haystack", "haystack"),
        ("langchain", "langchain_core", "langchain"),
        ("llama_index", "llama_index", "llama-index"),
    ],
)
def test_an_adapter_without_its_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str, extra: str
) -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"clew.integrations.{module}", raising=False)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install .*{extra}"):
        importlib.import_module(f"clew.integrations.{module}")
