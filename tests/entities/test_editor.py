"""Users see why names were merged, take it back, and let a model decide on the rest."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase, open_store
from clew.errors import StoreError
from clew.ingest.embedding import load_deferred
from clew.llm.chat import Request
from clew.store.resolved_entities import LONG_DESCRIPTION
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed, ScriptedChat
from clew.types import Chunk, Document, Extraction, RawEntity
from conftest import document, stream

LONG_NAME = " ".join(f"word{n}" for n in range(24))


class Listed:
    """An extractor that finds what the text lists, one per line: `name:type=its description`."""

    name = "listed"

    async def __call__(self, document: Document, chunks: Sequence[Chunk]) -> Sequence[Extraction]:
        return [self._extract(chunk) for chunk in chunks]

    def _extract(self, chunk: Chunk) -> Extraction:
        pairs = [line.partition("=") for line in chunk.text.splitlines()]
        return Extraction(
            tuple(
                RawEntity(name, kind, text.strip())
                for names, _, text in pairs
                for name, _, kind in [names.partition(":")]
                if name.strip()
            )
        )


async def _add_texts(base: KnowledgeBase, **texts: str) -> None:
    await base.take(stream([document(name, text) for name, text in texts.items()]), Listed())


async def _names(base: KnowledgeBase) -> set[str]:
    async with base.store.snapshot() as now:
        found = await now.entities(now.arrays["entity_keys"].tolist())
    return {entity.name for entity in found.values()}


async def test_why_split_and_join(base: KnowledgeBase) -> None:
    await _add_texts(base, a="The Fox=cunning", b="Fox=red", c="Fox=quick")
    thing = (await base.identity.explain("the fox"))[0]
    assert [(m.into, m.name, m.because) for m in thing.merges] in (
        [("Fox", "The Fox", "the same name in another spelling")],
        [("The Fox", "Fox", "the same name in another spelling")],
    )
    assert (await base.show("The Fox")).entities[0]["description"].split("\n") == [
        "cunning",
        "quick",
        "red",
    ]
    await base.identity.split("Fox")
    assert await _names(base) == {"Fox", "The Fox"}
    # It stays apart when more is added, and joining takes it back.
    await _add_texts(base, d="The Fox=sly")
    assert await _names(base) == {"Fox", "The Fox"}
    await base.identity.merge("Fox", "The Fox")
    assert len(await _names(base)) == 1
    with pytest.raises(StoreError, match="already one entity"):
        await base.identity.merge("Fox", "The Fox")


async def test_a_user_merges_names_of_different_types(base: KnowledgeBase) -> None:
    await _add_texts(
        base, a="Oda Falk:person=she", b="Falk Works:place=a site", c="The Falk Works=x"
    )
    assert await _names(base) == {"Oda Falk", "Falk Works"}
    await base.identity.merge("Oda Falk", "Falk Works")
    assert len(await _names(base)) == 1  # with the other spelling, which is a place, too
    await _add_texts(base, d="Falk Works:place=a larger site", e="Oda Falk:person=a founder")
    assert len(await _names(base)) == 1
    reasons = {merge.because for merge in (await base.identity.explain("Oda Falk"))[0].merges}
    assert "merged by the user" in reasons
    await base.identity.undo("Oda Falk", "Falk Works")
    assert await _names(base) == {"Oda Falk", "Falk Works"}
    assert await base.verify() == []


async def test_a_join_stays_with_the_names_it_was_made_by(base: KnowledgeBase) -> None:
    await _add_texts(base, a="Oxford=x\nOxford=y", b="Oxford=z", c="Rome=x", d="Jupiter=x")
    await base.identity.merge("Oxford", "Rome")
    await base.identity.merge("Rome", "Jupiter")  # Rome goes by Oxford's name here
    await base.identity.split("Jupiter", other="Oxford")
    assert len(await _names(base)) == 2
    [kept] = await base.identity.explain("rome")
    assert {name.name for name in kept.names} == {"Rome", "Jupiter"}


async def test_what_is_left_of_a_thing_stays_one(base: KnowledgeBase) -> None:
    await _add_texts(base, a="Oxford=x", b="Rome=x", c="Jupiter=x", d="Elm=x")
    for other in ("Oxford", "Jupiter", "Elm"):
        await base.identity.merge("Rome", other)
    await base.identity.split("Elm", other="Rome")  # what held all of them together
    [kept] = await base.identity.explain("Elm")
    assert {name.name for name in kept.names} == {"Oxford", "Jupiter", "Elm"}
    await base.identity.split("Elm")
    assert len(await _names(base)) == 4


async def test_a_sense_that_was_joined_can_be_split_again(base: KnowledgeBase) -> None:
    await _add_texts(base, a="Jan Novak=a judge", b="His Honour=a judge")
    await base.identity.split("Jan Novak", documents=["a"])
    [judge] = await base.identity.explain("Jan Novak")
    assert "#" in judge.entity.id  # the name's only sense that is left
    await base.identity.merge("Jan Novak", "His Honour")
    assert len(await _names(base)) == 1
    await base.identity.split("His Honour")
    assert len(await _names(base)) == 2


async def test_what_a_document_says_can_be_set_apart(base: KnowledgeBase) -> None:
    await _add_texts(
        base, a="Jan Novak=a baker", b="Jan Novak=a judge", c="Jan Novak=a baker of rye"
    )
    await base.identity.split("Jan Novak", documents=["b"])
    shown = sorted(e["description"] for e in (await base.show("Jan Novak")).entities)
    assert shown == ["a baker\na baker of rye", "a judge"]
    assert (await base.identity.explain("Jan Novak"))[0].namesakes
    assert await base.verify() == []
    with pytest.raises(StoreError, match="no document is named 'z'"):
        await base.identity.split("Jan Novak", documents=["z"])


async def test_splitting_one_name_says_what_to_do(base: KnowledgeBase) -> None:
    await _add_texts(base, a="Elm=a tree")
    with pytest.raises(StoreError, match="--document"):
        await base.identity.split("Elm")
    with pytest.raises(StoreError, match="no entity is named 'Oak'"):
        await base.identity.split("Oak")


async def test_a_model_decides_once_on_close_names(base: KnowledgeBase) -> None:
    # The fake embedder hashes words, so names that share most words lie close.
    one, other = f"{LONG_NAME} Parks", f"{LONG_NAME} Park"
    await _add_texts(base, a=f"{one}=founded 1802", b=f"{other}=founded in 1802")
    listed = await base.identity.review_close_names(None, 10)
    assert {frozenset((a.name, b.name)) for a, b, _ in listed.pairs} == {frozenset((one, other))}
    chat = ScriptedChat([json.dumps({"verdicts": [{"pair": 1, "same": True}]})])
    judged = await base.identity.review_close_names(chat, 10)
    assert [d.same for d in judged.decisions] == [True]
    assert len(await _names(base)) == 1
    because = (await base.identity.explain(one))[0].merges[0].because
    assert because == "the model judged them the same"
    assert (await base.identity.review_close_names(chat, 10)).pairs == ()
    assert len(chat.requests) == 1


async def test_a_model_that_answers_nonsense_decides_nothing(base: KnowledgeBase) -> None:
    one, other = f"{LONG_NAME} Seven", f"{LONG_NAME} Eight"
    await _add_texts(base, a=f"{one}=x", b=f"{other}=y")
    chat = ScriptedChat(lambda request: "I would rather not say.")
    judged = await base.identity.review_close_names(chat, 10)
    assert judged.decisions == () and judged.failed == len(judged.pairs) == 1
    assert len(await _names(base)) == 2


async def test_long_descriptions_are_told_shorter_once(base: KnowledgeBase) -> None:
    notes = {f"d{n}": f"Elm=note {n} " + "so tall " * 30 for n in range(8)}
    await _add_texts(base, **notes)

    def reply(request: Request) -> str:
        return json.dumps({"description": "A tall tree."})

    chat = ScriptedChat(reply)
    assert len((await base.show("Elm")).entities[0]["description"]) > LONG_DESCRIPTION
    assert await base.identity.summarize_descriptions(chat) == 1
    assert (await base.show("Elm")).entities[0]["description"] == "A tall tree."
    assert await base.identity.summarize_descriptions(chat) == 0
    # With another note the words are others, so a new summary is written.
    await _add_texts(base, d9="Elm=note nine")
    assert await base.identity.summarize_descriptions(chat) == 1
    assert len(chat.requests) == 2


async def test_vectors_of_few_dimensions_are_compared(tmp_path: Path) -> None:
    settings = Settings(kb=tmp_path / "kb", wait=0.2)
    store = SqliteStore(settings.kb, create=True, durable=False)
    base = KnowledgeBase(store, settings, HashEmbed("narrow", 4))
    await _add_texts(base, a="Ilse Brandvik=a painter\nOda Falk=a keeper of bees")
    assert await _names(base) == {"Ilse Brandvik", "Oda Falk"}
    assert await base.verify() == []
    await base.close()


async def test_a_name_that_is_split_off_has_a_vector(tmp_path: Path) -> None:
    settings = Settings(kb=tmp_path / "kb")
    kb = KnowledgeBase(await open_store(settings, create=True), settings, HashEmbed())
    await _add_texts(kb, a="The Fox=cunning", b="Fox=red", c="Hen=brown")
    assert "entity" in await load_deferred(kb.store)
    await kb.builder.embed_deferred("entity")
    await kb.identity.split("Fox")
    assert await kb.verify() == []
    await kb.close()


async def test_trees_follow_decisions_on_names(base: KnowledgeBase) -> None:
    await _add_texts(base, a="Fox=red\nHen=brown", b="Owl=grey\nHen=quick", c="Cat=black\nOwl=old")
    await base.builder.make_tree_manager().build(["dual", "raptor"])
    await base.identity.merge("Fox", "Cat")
    assert "stale" not in (await base.status())["trees"].values()
    await base.identity.split("Fox")
    assert "stale" not in (await base.status())["trees"].values()


async def test_undoing_a_split_restores_the_merge_before_it(base: KnowledgeBase) -> None:
    await _add_texts(base, a="Oxford=x", b="Rome=x", c="Jupiter=x")
    await base.identity.merge("Rome", "Oxford")
    await base.identity.merge("Rome", "Jupiter")
    await base.identity.split("Rome")
    assert len(await _names(base)) == 3
    await base.identity.undo("Rome", "Jupiter")  # the split as a whole, not this pair only
    assert len(await _names(base)) == 1
    await base.identity.undo("Rome", "Jupiter")
    assert len(await _names(base)) == 2
    await base.identity.undo("Rome", "Oxford")
    assert len(await _names(base)) == 3
    with pytest.raises(StoreError, match="nothing to undo"):
        await base.identity.undo("Rome", "Oxford")


async def test_corrections_are_listed_and_undone_in_any_order(base: KnowledgeBase) -> None:
    await _add_texts(base, a="Oxford=x", b="Rome=x", c="Oxford=y", d="Oxford=z")
    await base.identity.merge("Rome", "Oxford")
    await base.identity.split("Rome", other="Oxford")
    await base.identity.split("Oxford", documents=["c"])
    await base.identity.split("Oxford", documents=["d"])
    listed = await base.identity.list_corrections()
    assert [(one.number, one.what, set(one.names), one.documents) for one in listed] == [
        (4, "split", {"Oxford"}, ("d",)),
        (3, "split", {"Oxford"}, ("c",)),
        (2, "split", {"Rome", "Oxford"}, ()),
        (1, "merge", {"Rome", "Oxford"}, ()),
    ]
    await base.identity.undo_correction(1)  # the split that came after still holds
    await base.identity.undo_correction(3)
    assert len((await base.identity.explain("Oxford"))[0].namesakes) == 1
    await base.identity.undo_correction(2)
    await base.identity.undo_correction(4)
    assert (await base.identity.explain("Oxford"))[0].namesakes == ()
    assert await base.identity.list_corrections() == []
    assert len(await _names(base)) == 2
    with pytest.raises(StoreError, match="no correction 4"):
        await base.identity.undo_correction(4)
    assert await base.verify() == []


async def test_the_log_forgets_the_names_of_removed_documents(base: KnowledgeBase) -> None:
    await _add_texts(base, a="Oxford=x", b="Rome=x")
    await base.identity.merge("Rome", "Oxford")
    await base.remove(["b"])
    [merge] = await base.identity.list_corrections()
    assert sorted(merge.names) == ["", "Oxford"]
    await base.identity.undo_correction(merge.number)
    assert await base.identity.list_corrections() == []
