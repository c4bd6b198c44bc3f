"""Which recipe answers where none is named."""

from pathlib import Path

import pytest
from agent_asking import ASKED, CONCLUDED, asking

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.fakes import AgentScript
from conftest import document, stream

ROWS = """head,relation,tail
rich,maintained by,Will McGugan
typer,depends on,rich
Will McGugan,born in,Edinburgh
openai,depends on,pydantic
openai,depends on,httpx
pydantic,maintained by,Samuel Colvin
httpx,maintained by,Tom Christie
"""
BORN = "Where was the maintainer of rich born?"


@pytest.fixture
async def graph(base: KnowledgeBase, tmp_path: Path) -> KnowledgeBase:
    """A knowledge base that holds a graph and nothing else."""
    file = tmp_path / "packages.csv"
    file.write_text(ROWS, encoding="utf-8")
    await base.import_graph(file)
    return base


async def test_a_graph_is_asked_by_its_paths(graph: KnowledgeBase) -> None:
    answer = await graph.ask(BORN)
    assert answer.candidate == "Edinburgh"
    assert answer.recipe == "lego-12"
    reason = "found with lego-12, because the knowledge base holds only an imported graph"
    assert reason in answer.note
    both = await graph.ask("What does openai depend on?", mode="reject")
    assert "pydantic" in both.answer
    assert "httpx" in both.answer


async def test_a_graph_is_searched_by_its_paths(graph: KnowledgeBase) -> None:
    found = await graph.search(BORN)
    assert found.recipe == "lego-12"
    assert "found with lego-12, because" in found.note
    assert (await graph.search(BORN, recipe="clew")).recipe == "clew"
    await graph.take(stream([document("note", "Ana Roth maintains a mill in Kiel.")]))
    assert (await graph.search(BORN)).recipe == "clew"


async def test_a_recipe_that_is_named_is_taken(graph: KnowledgeBase) -> None:
    named = await graph.ask(BORN, recipe="clew")
    assert (named.recipe, "lego-12" in named.note) == ("clew", False)
    told = Settings(kb=graph.settings.kb, recipe="clew")
    base = KnowledgeBase(graph.store, told, graph.embed)
    assert (await base.ask(BORN)).recipe == "clew"


async def test_documents_beside_it_are_read(graph: KnowledgeBase) -> None:
    assert (await graph.ask(BORN)).recipe == "lego-12"
    await graph.take(stream([document("note", "Ana Roth maintains a mill in Kiel.")]))
    assert (await graph.ask(BORN)).recipe == "clew"
    await graph.remove(["note"])
    assert (await graph.ask(BORN)).recipe == "lego-12"


async def test_documents_alone_and_nothing_at_all(
    valley: KnowledgeBase, base: KnowledgeBase
) -> None:
    assert (await valley.ask(ASKED)).recipe == "clew"
    assert (await base.ask(ASKED)).recipe == "clew"


async def test_a_model_plans_and_reads_on_a_graph_too(graph: KnowledgeBase) -> None:
    answer = await asking(graph)(AgentScript({"answer": CONCLUDED}), BORN)
    assert answer.recipe == "clew"
