"""Trees through the front door: grown, kept up to date, told, and borne whatever the input."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clew.config import ROLES, ModelSettings, Settings, TreeSettings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.graph.community_tree import (
    TREES,
    CommunityForest,
    forest_from_arrays,
    format_marks,
    select_tree,
)
from clew.llm.chat import Request
from clew.models import Models
from clew.store.memory import MemoryStore
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed, ScriptedChat
from clew.tree.manage import TreeManager
from clew.tree.outline import OutlineOptions, read_outline
from clew.tree.summaries import (
    MODEL,
    QUOTED,
    CommunitySummary,
    SummaryPoint,
    load_summaries,
)
from clew.types import Document
from conftest import VALLEY, document, one_in_three, stream

TOWNS = [
    document(
        f"t{n}", f"Town{n} is a town in Shire{n % 3}. Person{n} was born in Town{n}.", f"Town{n}"
    )
    for n in range(40)
]


async def forest(base: KnowledgeBase) -> CommunityForest:
    async with base.store.snapshot() as now:
        return forest_from_arrays(now.arrays)


async def whole(base: KnowledgeBase) -> None:
    """Every thing is in exactly one lowest community of each tree; every community has a text."""
    async with base.store.snapshot() as now:
        trees, arrays = forest_from_arrays(now.arrays), now.arrays
    things = np.flatnonzero(~arrays["entity_literal"])
    for name in trees.tree_names():
        here = select_tree(trees, name)
        if name in ("raptor", "e2"):
            assert set(here.chunks.columns.tolist()) == set(range(len(arrays["chunk_keys"])))
        else:
            assert sorted(here.entities.columns.tolist()) == things.tolist()
            ends = here.below.degrees() == 0
            assert (here.entities.degrees()[~ends] == 0).all()
        assert (here.sizes() > 0).all()
        assert (here.parent < np.arange(len(here))).all()
    marks = format_marks(trees, np.arange(len(trees)))
    assert set(await load_summaries(base.store, marks)) == set(marks)
    assert (trees.rows >= 0).all()


@pytest.mark.parametrize("tree", TREES)
async def test_every_tree_grows_is_whole_and_the_same_again(
    valley: KnowledgeBase, tree: str
) -> None:
    await valley.take(stream(TOWNS))
    room = valley.builder.make_tree_manager()
    grown = await room.build([tree])
    first = await forest(valley)
    assert grown.trees[tree]["communities"] == len(first) > 0
    await whole(valley)
    assert (await valley.status())["communities"] == len(first)
    again = await room.build([tree])
    second = await forest(valley)
    assert first.marks.tolist() == second.marks.tolist()
    assert first.parent.tolist() == second.parent.tolist()
    assert (again.quoted, again.written) == (0, 0)


async def test_trees_stand_side_by_side(valley: KnowledgeBase) -> None:
    room = valley.builder.make_tree_manager()
    await room.build(["leiden"])
    alone_before = select_tree(await forest(valley), "leiden")
    await room.build(["dual", "raptor"])
    trees = await forest(valley)
    assert trees.tree_names() == ("dual", "leiden", "raptor")
    assert select_tree(trees, "leiden").marks.tolist() == alone_before.marks.tolist()
    await whole(valley)


async def test_summaries_quote_their_facts(valley: KnowledgeBase) -> None:
    await valley.builder.make_tree_manager().build(["dual"])
    async with valley.store.snapshot() as now:
        trees = forest_from_arrays(now.arrays)
        told = await load_summaries(valley.store, format_marks(trees, np.arange(len(trees))))
        texts = {fact.text for fact in (await now.facts(now.arrays["fact_keys"].tolist())).values()}
        for one in told.values():
            assert one.by == QUOTED
            for point in one.points:
                [key] = point.facts
                assert (await now.facts([key]))[key].text == point.text
                assert point.text in texts


async def test_adding_documents_tends_the_tree_and_tells_only_what_changed(
    base: KnowledgeBase,
) -> None:
    await base.take(stream(TOWNS))
    await base.builder.make_tree_manager().build(["dual"])
    before = set(format_marks(await forest(base), np.arange(len(await forest(base)))))
    new = document("new", "Town3 has a new bridge. Mira Quell designed it.", "Mira Quell")
    await base.take(stream([new]))
    await whole(base)
    after = set(format_marks(await forest(base), np.arange(len(await forest(base)))))
    assert before != after
    assert len(before & after) >= len(before) - 6  # the rest is as it was, texts included
    assert await base.builder.make_tree_manager().update() is None


async def test_removing_documents_takes_their_words_out_of_the_tree(base: KnowledgeBase) -> None:
    await base.take(stream([*TOWNS, *VALLEY]))
    await base.builder.make_tree_manager().build(["dual", "leiden", "raptor", "e2"])
    await base.remove([one.names[0] for one in VALLEY])
    await whole(base)
    async with base.store.snapshot() as now:
        for tree in ("dual", "leiden", "raptor", "e2"):
            said = repr(await read_outline(now, base.store, tree, OutlineOptions(depth=4, most=0)))
            assert "Hallowmere" not in said
            assert "Town7" in said


async def test_vectors_that_nobody_could_make_are_made_up_for(base: KnowledgeBase) -> None:
    await base.take(stream([*TOWNS, *VALLEY]))
    await base.builder.make_tree_manager().build(["dual", "raptor"])
    bare = KnowledgeBase(base.store, base.settings, None)
    await bare.remove([one.names[0] for one in VALLEY])
    assert ((await forest(base)).rows < 0).any()
    assert (
        await bare.builder.make_tree_manager().update() is None
    )  # it has nothing to make them with
    other = KnowledgeBase(base.store, base.settings, HashEmbed("other", 32))
    assert (
        await other.builder.make_tree_manager().update() is None
    )  # and this one would make others
    assert await base.builder.make_tree_manager().update() is not None
    await whole(base)
    assert await base.builder.make_tree_manager().update() is None


async def test_without_growth_only_what_is_gone_leaves(tmp_path: Path) -> None:
    settings = Settings(kb=tmp_path / "kb", tree=TreeSettings(grow="never"))
    base = KnowledgeBase(
        SqliteStore(settings.kb, create=True, durable=False), settings, HashEmbed()
    )
    await base.take(stream(VALLEY))
    await base.builder.make_tree_manager().build(["dual"])
    held = await forest(base)
    await base.take(stream(TOWNS[:5]))
    assert (await forest(base)).marks.tolist() == held.marks.tolist()
    await base.remove(["moss"])
    async with base.store.snapshot() as now:
        said = repr(await read_outline(now, base.store, "dual", OutlineOptions(depth=3, most=0)))
    assert "Clara Lindqvist" not in said  # quoted anew, though nobody asked for a new tree
    await base.close()


async def test_the_memory_store_keeps_trees_as_the_folder_does(valley: KnowledgeBase) -> None:
    other = KnowledgeBase(MemoryStore(), valley.settings, HashEmbed())
    await other.take(stream(VALLEY))
    for base in (valley, other):
        await base.builder.make_tree_manager().build(["dual"])
        await base.take(stream(TOWNS[:2]))
        await whole(base)
    one, two = await forest(valley), await forest(other)
    assert set(format_marks(one, np.arange(len(one)))) == set(
        format_marks(two, np.arange(len(two)))
    )
    assert (await other.status())["communities"] == len(two)


async def test_repair_grows_what_was_grown_before(valley: KnowledgeBase) -> None:
    await valley.builder.make_tree_manager().build(["leiden"])
    held = await forest(valley)
    await valley.repair()
    assert (await forest(valley)).marks.tolist() == held.marks.tolist()


async def test_another_embedder_gets_its_own_vectors(valley: KnowledgeBase) -> None:
    await valley.builder.make_tree_manager().build(["leiden"])
    other = KnowledgeBase(valley.store, valley.settings, HashEmbed("other", 32))
    await other.reembed()
    await whole(other)
    found = await other.search("Who designed Marrow Bridge?", recipe="msgraphrag-global")
    assert found.evidence.communities


# -- told by a model


def groups_in(request: Request) -> list[str]:
    return re.findall(r"^Group (\d+)$", request.messages[-1].content, re.MULTILINE)


async def described(
    base: KnowledgeBase, reply: Any, change: Sequence[Document] = ()
) -> tuple[Any, ScriptedChat]:
    """Describe with a model, then add documents; the model is asked again where it must be."""
    chat = ScriptedChat(reply)
    settings = ModelSettings(model="m")
    with_model = KnowledgeBase(
        base.store, Settings(kb=base.settings.kb, models=settings, extractor="offline"), base.embed
    )
    with_model.models = Models(settings, base.store, chats=dict.fromkeys(ROLES, chat))
    grown = await with_model.builder.make_tree_manager().describe()
    if change:
        await with_model.take(stream(change))
    return grown, chat


def named(request: Request) -> str:
    """A model that does its work."""
    groups = [
        {"group": int(n), "name": f"Group of {n}", "points": [{"text": f"Said {n}.", "lines": [1]}]}
        for n in groups_in(request)
    ]
    return json.dumps({"groups": groups})


async def test_a_model_names_communities_and_is_not_asked_twice(base: KnowledgeBase) -> None:
    await base.take(stream(TOWNS))
    await base.builder.make_tree_manager().build(["dual"])
    grown, first = await described(base, named)
    assert grown.written > 0
    assert grown.lost == 0
    again, second = await described(base, named)
    assert (again.written, len(second.requests)) == (0, 0)
    new = document("new", "Town3 has a new bridge. Mira Quell designed it.", "Mira Quell")
    _, third = await described(base, named, [new])
    assert 0 < len(third.requests) < len(first.requests)
    await whole(base)


async def test_a_model_that_forgets_some_is_asked_for_them_alone(base: KnowledgeBase) -> None:
    await base.take(stream(TOWNS))
    await base.builder.make_tree_manager().build(["dual"])

    def lazy(request: Request) -> str:
        groups = groups_in(request)
        full = json.loads(named(request))["groups"]
        return json.dumps({"groups": full[:1] if len(groups) > 1 else full})

    grown, _ = await described(base, lazy)
    assert grown.lost == 0
    assert grown.written > 1
    await whole(base)


@pytest.mark.parametrize(
    "said",
    [
        "I would rather not.",
        json.dumps({"groups": []}),
        json.dumps({"groups": [{"group": 99, "name": "x", "points": []}]}),
        json.dumps(
            {"groups": [{"group": 1, "name": "", "points": [{"text": "y", "lines": [7000]}]}]}
        ),
    ],
)
async def test_a_model_that_says_nothing_usable_leaves_quoted_summaries(
    valley: KnowledgeBase, said: str
) -> None:
    await valley.builder.make_tree_manager().build(["dual"])
    grown, _ = await described(valley, lambda request: said)
    assert grown.lost > 0
    assert grown.written == 0
    await whole(valley)


async def test_a_described_fact_that_goes_takes_the_description_with_it(
    base: KnowledgeBase,
) -> None:
    await base.take(stream(VALLEY))
    await base.builder.make_tree_manager().build(["leiden"])
    await described(base, named)
    held = await load_summaries(
        base.store, format_marks(await forest(base), np.arange(len(await forest(base))))
    )
    assert any(one.by == MODEL for one in held.values())
    await base.remove(["ilse"])
    async with base.store.snapshot() as now:
        keys = set(now.arrays["fact_keys"].tolist())
    trees = await forest(base)
    for one in (
        await load_summaries(base.store, format_marks(trees, np.arange(len(trees))))
    ).values():
        assert keys.issuperset(one.seen)


async def test_describing_without_a_model_says_what_to_do(valley: KnowledgeBase) -> None:
    with pytest.raises(ConfigError, match="clew tree --grow"):
        await valley.builder.make_tree_manager().describe()
    await valley.builder.make_tree_manager().build(["dual"])
    with pytest.raises(ConfigError, match="no model is configured"):
        await valley.builder.make_tree_manager().describe()


# -- bad input

EMPTY: list[Document] = []
ONE = [document("one", "Hallowmere.", "Hallowmere")]
NO_FACTS = [document("none", "and then it was, or was not.", "")]
SAME = [document(f"s{n}", "Anton Reeve was a poet.", "Anton Reeve") for n in range(3)]


@pytest.mark.parametrize("tree", one_in_three(TREES))
@pytest.mark.parametrize("documents", [EMPTY, ONE, NO_FACTS, SAME])
async def test_odd_graphs_have_a_valid_tree(
    base: KnowledgeBase, tree: str, documents: list[Document]
) -> None:
    await base.take(stream(documents))
    await base.builder.make_tree_manager().build([tree])
    grows = bool(documents) if tree in ("raptor", "e2") else documents in (ONE, SAME)
    assert len(await forest(base)) == grows
    await whole(base)


class SameEmbed(HashEmbed):
    """All texts look the same."""

    async def __call__(self, texts: Sequence[str], /, *, role: Any = "passage") -> Any:
        return np.full((len(texts), 64), 0.125, np.float32)


@pytest.mark.parametrize("tree", one_in_three(TREES))
async def test_equal_vectors_have_a_valid_tree(base: KnowledgeBase, tree: str) -> None:
    same = KnowledgeBase(base.store, base.settings, SameEmbed())
    await same.take(stream([*VALLEY, *TOWNS]))
    await same.builder.make_tree_manager().build([tree])
    await whole(same)


async def test_without_vectors_links_alone_make_a_tree(tmp_path: Path) -> None:
    settings = Settings(kb=tmp_path / "kb")
    base = KnowledgeBase(SqliteStore(settings.kb, create=True, durable=False), settings, None)
    await base.take(stream(VALLEY))
    room = TreeManager(base.store)
    grown = await room.build(["leiden", "e2"])
    assert grown.trees["leiden"]["communities"] > 0
    with pytest.raises(ConfigError, match="--by leiden"):
        await room.build(["dual"])
    with pytest.raises(ConfigError, match="needs vectors"):
        await room.build(["raptor"])
    await base.close()


async def test_an_unknown_tree_is_named(valley: KnowledgeBase) -> None:
    with pytest.raises(ConfigError, match="no tree 'oak'"):
        await valley.builder.make_tree_manager().build(["oak"])
    async with valley.store.snapshot() as now:
        with pytest.raises(ConfigError, match="clew tree --grow --by dual"):
            await read_outline(now, valley.store)


async def test_new_passages_join_the_nearest_cluster(base: KnowledgeBase) -> None:
    await base.take(stream(TOWNS))
    await base.builder.make_tree_manager().build(["raptor"])
    before = await forest(base)
    await base.take(stream([document("new", "Town3 is a town in Shire0. It rained.", "Town3")]))
    after = await forest(base)
    assert after.parent.tolist() == before.parent.tolist()  # placed, not grown afresh
    changed = (after.marks != before.marks).any(axis=1)
    assert 0 < changed.sum() < len(after)
    await whole(base)


async def test_a_model_cites_the_words_of_passages(base: KnowledgeBase) -> None:
    await base.take(stream(VALLEY))
    await base.builder.make_tree_manager().build(["e2"])

    def says(request: Request) -> str:
        shown = request.messages[-1].content
        line = re.search(r"^(\d+)\. Ilse Brandvik:", shown, re.MULTILINE)
        point = {"text": "She died in Vessen.", "lines": [int(line[1])]} if line else None
        points = [point or {"text": "Much is said.", "lines": [1]}]
        return json.dumps({"groups": [{"group": 1, "name": "Valley", "points": points}]})

    await described(base, says)
    trees = await forest(base)
    told = await load_summaries(base.store, format_marks(trees, np.arange(len(trees))))
    [point] = [p for one in told.values() for p in one.points if p.text == "She died in Vessen."][
        :1
    ]
    async with base.store.snapshot() as now:
        [place] = point.places
        chunk = (await now.chunks([place.chunk]))[place.chunk]
    assert "died in Vessen" in chunk.text[place.start - chunk.start : place.end - chunk.start]


@pytest.mark.parametrize(
    "tree",
    [
        *("dual", "leiden"),
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("paper", "released", "raptor")),
    ],
)
async def test_the_order_of_documents_does_not_show(
    base: KnowledgeBase, tmp_path: Path, tree: str
) -> None:
    settings = Settings(kb=tmp_path / "other")
    store = SqliteStore(settings.kb, create=True, durable=False)
    other = KnowledgeBase(store, settings, HashEmbed())
    many = [*TOWNS, *VALLEY]
    marks = []
    for one, documents in ((base, many), (other, many[::-1])):
        await one.take(stream(documents))
        await one.builder.make_tree_manager().build([tree])
        trees = await forest(one)
        marks.append(sorted(format_marks(trees, np.arange(len(trees)))))
    assert marks[0] == marks[1]
    await other.close()


async def test_after_another_embedder_the_tree_is_grown_afresh(base: KnowledgeBase) -> None:
    await base.take(stream(TOWNS))
    await base.builder.make_tree_manager().build(["dual"])
    other = KnowledgeBase(base.store, base.settings, HashEmbed("other", 32))
    await other.reembed()
    await whole(other)
    await other.take(stream(VALLEY))
    await whole(other)
    assert (await forest(other)).middles.shape[1] == 32


def test_the_marks_of_a_quoted_heading_are_not_part_of_a_summary() -> None:
    points = (SummaryPoint("It crosses the Tarn."), SummaryPoint("## Marrow Bridge\nOf stone."))
    summary = CommunitySummary("bridges", points)
    assert summary.summary == "It crosses the Tarn. Marrow Bridge Of stone."
