"""A knowledge base written by version 0.1.0 opens, answers and extends; only arrays are derived.

`fixtures/kb-0.1.tar.gz` holds the knowledge base, its corpus and the script that built it with the
code of that version: twelve documents, one more added and removed, a tree, two merged names and a
cached model reply.
"""

import tarfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase, open_store
from clew.entities.model_review import SAME_ENTITY_PROMPT
from clew.index.derive import derive_keeping_trees
from clew.llm.structured import FixedModeChat
from clew.llm.wrappers import CachedChat
from clew.models import ReplyCache
from clew.store.protocol import Change
from clew.testing.fakes import HashEmbed, ScriptedChat
from clew.types import Evidence

FIXTURE = Path(__file__).parent / "fixtures" / "kb-0.1.tar.gz"
GENERATION = 6  # 5 were stored; the arrays of that layout are derived again when it is opened
QUESTIONS = (
    "Where was the designer of the Marrow Bridge born?",
    "Who taught Ilse Brandvik at the Polytechnic of Vessen?",
    "When did the Deepwell mine close?",
    "Who is the Corriden Medal named after?",
)
RECIPES = ("clew", "searcher+bm25", "hipporag2")
UNPLACED = dict.fromkeys(("line", "end_line", "file_start", "file_end"))


async def open_kb(folder: str) -> KnowledgeBase:
    settings = Settings(kb=Path(folder), wait=0.2)
    return KnowledgeBase(await open_store(settings, create=True), settings, HashEmbed())


def scored(evidence: Evidence) -> Iterator[object]:
    """All evidence, without the last digits of scores: vectors lie in other rows."""
    for part in fields(evidence):
        for one in getattr(evidence, part.name):
            yield replace(one, score=round(one.score, 5))


@pytest.fixture
async def previous(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KnowledgeBase]:
    """The stored knowledge base, unpacked; documents are named relative to its folder."""
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    kb = await open_kb("kb")
    yield kb
    await kb.close()


@pytest.fixture
async def fresh(previous: KnowledgeBase) -> AsyncIterator[KnowledgeBase]:
    """The same documents, tree and merge, built with the current code."""
    kb = await open_kb("fresh")
    await kb.add([Path("corpus")])
    await kb.identity.merge("Deepwell Mine", "Upper Sarn")
    await kb.builder.make_tree_manager().build(["dual"])
    yield kb
    await kb.close()


async def test_it_opens_and_has_no_problems(previous: KnowledgeBase) -> None:
    status = await previous.status()
    assert (status["generation"], status["documents"]) == (GENERATION, 12)
    assert status["communities"] == 2
    assert await previous.verify() == []


async def test_adding_again_extracts_by_the_rules_of_now_and_equals_a_fresh_build(
    previous: KnowledgeBase, fresh: KnowledgeBase
) -> None:
    result = await previous.add([Path("corpus")])
    assert (result.unchanged, result.added, result.updated) == (0, 0, 12)
    assert await previous.store.sources() == await fresh.store.sources()
    assert (await previous.add([Path("corpus")])).unchanged == 12


async def test_answers_equal_those_of_a_fresh_build_with_other_names_extracted(
    previous: KnowledgeBase, fresh: KnowledgeBase
) -> None:
    for question in QUESTIONS:
        stored, built = [await kb.ask(question) for kb in (previous, fresh)]
        assert stored.answer == built.answer
        told = [replace(one, **UNPLACED) for one in built.citations]
        assert list(stored.citations) == told  # where a file has them is known from the next add
    assert (await previous.ask(QUESTIONS[0])).candidate == "Hallowmere"


async def test_searches_equal_those_of_a_fresh_build_after_adding_again(
    previous: KnowledgeBase, fresh: KnowledgeBase
) -> None:
    await previous.add([Path("corpus")])
    for question in QUESTIONS:
        for recipe in RECIPES:
            one, other = [await kb.search(question, recipe=recipe) for kb in (previous, fresh)]
            assert list(scored(one.evidence)) == list(scored(other.evidence))


async def test_its_arrays_equal_derived_ones(previous: KnowledgeBase) -> None:
    async with previous.store.snapshot() as now:
        stored = {name: np.array(array) for name, array in now.arrays.items()}
    await previous.store.write(Change(rebuild=True), derive_keeping_trees(stored))
    async with previous.store.snapshot() as now:
        assert now.generation == GENERATION + 1
        assert now.arrays.keys() == stored.keys()
        for name, array in stored.items():
            np.testing.assert_array_equal(array, now.arrays[name], err_msg=name)


async def test_its_merged_names_are_explained(previous: KnowledgeBase) -> None:
    found = (await previous.identity.explain("Upper Sarn"))[0]
    assert sorted(name.name for name in found.names) == ["Deepwell mine", "Upper Sarn"]
    assert len(found.merges) == 1


async def test_its_cached_reply_answers_the_same_request(previous: KnowledgeBase) -> None:
    cached = CachedChat(ScriptedChat([], name="recorded"), ReplyCache(previous.store))
    chat = FixedModeChat(cached, "schema")  # as recorded, whatever other tests learnt of the name
    reply = await SAME_ENTITY_PROMPT.ask_detailed(
        chat, language="en", pairs="1. A: Sarn | B: Upper Sarn"
    )
    assert reply.value.verdicts[0].same
    assert reply.usage.cached_calls == 1


async def test_a_document_added_to_it_is_searchable(
    previous: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "new.txt").write_text("Edda Marling painted the Marrow Bridge.")
    result = await previous.add([Path("new.txt")])
    assert (result.added, result.unchanged) == (1, 0)
    found = await previous.search("Whom did Edda Marling paint?", k=1)
    assert found.evidence.chunks[0].doc == "new.txt"
    assert await previous.verify() == []
