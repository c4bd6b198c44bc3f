"""The papers' steps on graphs small enough to work out by hand."""

import weakref
from typing import Any

import numpy as np
import pytest
from plain_graph import Chosen, after, docs_of, joins, names_of, says, take_graph, texts_of

from clew.engine import KnowledgeBase
from clew.graph.csr import Doubles, Ints
from clew.graph.pagerank import LocalGraph
from clew.retrieve import ppr
from clew.retrieve.expand import ChunksOf, FactsOf, MembersOf
from clew.retrieve.lookup import NearEntities, NearFacts, SameName, SameWords
from clew.retrieve.paths.entity_paths import DepthFirst, FlowPaths, TypedPaths
from clew.retrieve.ppr import Ppr, Specific, WeighEntities
from clew.retrieve.rank import in_turns, interleave, reciprocal_facts
from clew.retrieve.subgraph.extract import PrizedTree
from clew.types import Found, Hit, Path

Q = "the question"


def hits(*pairs: tuple[int, float]) -> tuple[Hit, ...]:
    return tuple(Hit(at, score, "") for at, score in pairs)


async def position(base: KnowledgeBase, name: str) -> int:
    async with base.store.snapshot() as now:
        return int((await base.context(now, "?")).view.find_by_own_name([name])[0][0])


# -- fusing


def test_reciprocal_rank_gives_nothing_for_an_absent_rank() -> None:
    by_entity = Found(facts=hits((7, 0.9), (8, 0.5)))
    direct = Found(facts=hits((8, 0.7), (9, 0.6)))
    fused = reciprocal_facts([by_entity, direct]).facts
    assert [(hit.at, hit.score) for hit in fused] == [(8, 1.5), (7, 1.0), (9, 0.5)]


def test_turns_take_one_of_each_and_each_once() -> None:
    one, other = hits((1, 0.9), (2, 0.8), (3, 0.7)), hits((2, 0.95), (4, 0.1))
    assert [hit.at for hit in interleave([one, other])] == [1, 2, 4, 3]
    assert interleave([]) == () == interleave([(), ()])


def test_in_turns_joins_every_kind() -> None:
    path = Path((0, 1), (0,))
    both = in_turns(
        [Found(entities=hits((1, 1)), names=("x",)), Found(paths=(path,), facts=hits((2, 1)))]
    )
    assert (both.names, both.paths, len(both.entities), len(both.facts)) == (("x",), (path,), 1, 1)


# -- looking up


@pytest.fixture
async def near(base: KnowledgeBase) -> KnowledgeBase:
    base.embed = Chosen(
        {Q: [1], "Alpha": [0.9], "Beta": [0.5], "Gamma": [0.1], "Alpha likes Beta": [0.8]}
    )
    return await take_graph(
        base, {"a": [joins("Alpha", "likes", "Beta")], "b": [joins("Beta", "likes", "Gamma")]}
    )


async def test_entities_below_the_least_cosine_are_left_out(near: KnowledgeBase) -> None:
    found = await after(near, Q, NearEntities("question", top_k=3, least=0.2))
    assert await names_of(near, [hit.at for hit in found.entities]) == ["Alpha", "Beta"]
    assert [hit.score for hit in found.entities] == pytest.approx([0.9, 0.5], abs=2e-4)


async def test_each_name_is_looked_up_by_itself(near: KnowledgeBase) -> None:
    found = await after(
        near, Q, NearEntities("names", top_k=1, each=True), found=Found(names=("gamma", "Alpha"))
    )
    assert set(await names_of(near, [h.at for h in found.entities])) == {"Gamma", "Alpha"}
    assert {hit.score for hit in found.entities} == {1.0}  # they bear those names


async def test_a_sentence_is_read_with_the_name_of_its_subject(base: KnowledgeBase) -> None:
    base.embed = Chosen({Q: [1], "Alpha": [1], "It stands there.": [0, 1]})
    await take_graph(base, {"a": [says("It stands there.", "Gamma", subject="Alpha")]})
    alone = await after(base, Q, NearFacts("question", subject=0.0))
    together = await after(base, Q, NearFacts("question", subject=1.0))
    assert alone.facts[0].score == pytest.approx(0, abs=1e-6)
    # (0 + 1) / √(1 + 1 + 2·0): the cosine with the sum of two vectors at a right angle
    assert together.facts[0].score == pytest.approx(1 / np.sqrt(2), abs=1e-6)


async def test_cosines_are_worked_out_once_for_a_question(near: KnowledgeBase) -> None:
    async with near.store.snapshot() as now:
        ctx = await near.context(now, Q)
        vector = await ctx.vector()
        first = ctx.cosines("entity", vector)
        assert ctx.with_question("another").cosines("entity", vector.copy()) is first
        assert not first.flags.writeable
        others = np.eye(20, ctx.view.matrices["entity"].shape[1], dtype=np.float32)
        held = [weakref.ref(ctx.cosines("entity", other)) for other in others]
        assert sum(one() is not None for one in held) <= 8  # they do not pile up
        # Few rows are picked out, of many all are compared: the same cosines.
        every = np.arange(ctx.view.count("entity"))
        for some in (every[:0], every[:1], every):
            expected = pytest.approx(first[some], abs=1e-6)
            assert ctx.view.cosines("entity", vector, some) == expected


async def test_exact_matching_takes_names_and_relations_letter_by_letter(
    near: KnowledgeBase,
) -> None:
    given = Found(names=("ALPHA", "Alph"), topics=("Likes", "like"))
    found = await after(near, Q, SameName("names"), SameWords("topics"), found=given)
    assert await names_of(near, [h.at for h in found.entities]) == ["Alpha"]
    texts = await texts_of(near, [h.at for h in found.facts])
    assert texts[0] == "Alpha likes Beta" and len(texts) == 2
    none = await after(near, Q, SameWords("topics"), found=Found(topics=("lik",)))
    assert none.facts == ()


# -- from one kind to the other


async def test_facts_by_degree_then_by_weight(base: KnowledgeBase) -> None:
    await take_graph(
        base,
        {
            "a": [joins("Hub", "knows", "Ada"), joins("Ada", "knows", "Bob")],
            "b": [joins("Hub", "knows", "Bob"), joins("Hub", "knows", "Cid")],
        },
    )
    ada = await position(base, "Ada")
    found = await after(base, Q, FactsOf(10, "degree"), found=Found(entities=hits((ada, 1))))
    # Hub has three facts and Ada two; Bob has two as well.
    assert await texts_of(base, [h.at for h in found.facts]) == ["Hub knows Ada", "Ada knows Bob"]
    assert [hit.score for hit in found.facts] == pytest.approx([5, 4], abs=0.01)


async def test_members_come_in_the_order_of_their_facts(near: KnowledgeBase) -> None:
    found = await after(near, Q, NearFacts("question", top_k=2), MembersOf(2))
    assert set(await names_of(near, [h.at for h in found.entities])) == {"Alpha", "Beta"}
    assert len(found.entities) == 2


async def test_chunks_get_the_votes_of_what_they_say(base: KnowledgeBase) -> None:
    both = [joins("Ada", "met", "Bob"), joins("Bob", "met", "Cid")]
    await take_graph(base, {"one": both[:1], "two": both[1:], "three": [joins("X", "met", "Y")]})
    found = await after(base, "Ada met Bob", NearFacts("question"), ChunksOf(("facts",)))
    assert (await docs_of(base, found))[0] == "one"
    scores = [hit.score for hit in found.chunks]
    assert scores == pytest.approx([1, 1 / 2, 1 / 3], abs=1e-3)


# -- HippoRAG


async def test_reset_weight_is_the_mean_of_scores_over_the_passages(base: KnowledgeBase) -> None:
    await take_graph(
        base,
        {
            "a": [joins("Ada", "met", "Bob"), joins("Ada", "met", "Cid")],
            "b": [joins("Bob", "left", "Dora")],
        },
    )
    async with base.store.snapshot() as now:
        view = (await base.context(now, Q)).view
        keys = view.keys("fact")
        facts = await now.facts(keys.tolist())
    at = {facts[int(key)].text: place for place, key in enumerate(keys)}
    given = hits((at["Ada met Bob"], 0.8), (at["Ada met Cid"], 0.4), (at["Bob left Dora"], 0.2))
    found = await after(base, Q, WeighEntities(3), found=Found(facts=given))
    names = await names_of(base, [hit.at for hit in found.entities])
    # Relative to the best fact: Ada (1 + 0.5)/2 in 1 passage; Cid 0.5 in 1;
    # Bob (1 + 0.25)/2 in 2 passages: 0.3125; Dora 0.25 is fourth and left out.
    assert dict(zip(names, [h.score for h in found.entities], strict=True)) == pytest.approx(
        {"Ada": 0.75, "Cid": 0.5, "Bob": 0.3125}
    )


async def test_specificity_is_one_over_the_passages(base: KnowledgeBase) -> None:
    await take_graph(base, {"a": [joins("Ada", "met", "Bob")], "b": [joins("Ada", "met", "Cid")]})
    ada, bob = await position(base, "Ada"), await position(base, "Bob")
    found = await after(base, Q, Specific(), found=Found(entities=hits((ada, 1), (bob, 1))))
    assert [(h.at, h.score) for h in found.entities] == [(bob, 1.0), (ada, 0.5)]


async def test_pagerank_over_entities_and_passages(base: KnowledgeBase) -> None:
    # One passage that says one triple: a triangle of Ada, Bob and the passage, all edges 1.
    base.embed = Chosen({Q: [1]})
    await take_graph(base, {"a": [joins("Ada", "met", "Bob")]})
    ada = await position(base, "Ada")
    found = await after(
        base, Q, Ppr(damping=0.5, passage=0.0), found=Found(entities=hits((ada, 1)))
    )
    # x = ½·start + ½·Px: Ada a, the others b each, a + 2b = 1, b = ½(a/2 + b/2) ⇒ b = a/3.
    assert found.chunks[0].score == pytest.approx(0.2, abs=1e-4)
    assert {round(hit.score, 3) for hit in found.entities} == {0.6, 0.2}


async def test_passages_begin_with_their_share_and_damping_counts(base: KnowledgeBase) -> None:
    base.embed = Chosen({Q: [1], "Text of a.": [0.9], "Text of b.": [0.1]})
    await take_graph(base, {"a": [joins("Ada", "met", "Bob")], "b": [joins("Cid", "met", "Dan")]})
    cid = await position(base, "Cid")
    seeds = Found(entities=hits((cid, 1.0)))
    alone = await after(base, Q, Ppr(damping=0.5, passage=0.0), found=seeds)
    assert await docs_of(base, alone) == ["b"]
    # a is the nearest passage (1 after scaling), b the farthest (0): a begins with 0.05/1.05.
    shared = await after(base, Q, Ppr(damping=0.5, passage=0.05), found=seeds)
    assert await docs_of(base, shared) == ["b", "a"]
    # In its own triangle a begins with all the mass there is: 0.6 of it stays.
    assert shared.chunks[1].score == pytest.approx(0.6 * 0.05 / 1.05, abs=1e-4)
    nowhere = await after(base, Q, Ppr(damping=0.0, passage=0.05), found=seeds)
    assert await docs_of(base, nowhere) == ["a"]


async def test_without_entities_passages_go_by_cosine(near: KnowledgeBase) -> None:
    found = await after(near, Q, Ppr())
    assert {hit.by for hit in found.chunks} == {"dense"} and len(found.chunks) == 2


async def test_names_that_are_alike_are_joined(base: KnowledgeBase) -> None:
    base.embed = Chosen({Q: [1], "Ada": [0, 1], "Adah": [0, 0.9]})
    await take_graph(base, {"a": [joins("Ada", "met", "Bob")], "b": [joins("Adah", "met", "Cid")]})
    ada = await position(base, "Ada")
    seeds = Found(entities=hits((ada, 1)))
    joined = await after(base, Q, Ppr(passage=0.0, synonym=0.8), found=seeds)
    apart = await after(base, Q, Ppr(passage=0.0, synonym=0.95), found=seeds)
    assert await docs_of(base, joined) == ["a", "b"] and await docs_of(base, apart) == ["a"]


async def test_of_very_many_passages_walks_start_from_the_nearest(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(2)
    places = {f"Text of p{n}.": [float(one)] for n, one in enumerate(random.random(80) ** 3)}
    base.embed = Chosen({Q: [1], **places})
    people = [f"Person {n}" for n in random.integers(0, 60, 160)]
    await take_graph(
        base,
        {f"p{n}": [joins(people[n], "met", people[n + 80])] for n in range(80)},
    )
    seeds = Found(entities=hits((await position(base, people[3]), 0.5)))
    from_all = await after(base, Q, Ppr(), found=seeds)
    asked = []
    monkeypatch.setattr(ppr, "MIN_ESTIMATED", 80)
    monkeypatch.setattr(ppr, "MAX_COMPARED", 15)
    rank = LocalGraph.rank

    def note(graph: LocalGraph, given: tuple[Ints, Doubles], *rest: int, **how: Any) -> Any:
        asked.append(len(given[0]))
        return rank(graph, given, *rest, **how)

    monkeypatch.setattr(LocalGraph, "rank", note)
    nearest = await after(base, Q, Ppr(), found=seeds)
    assert sorted(asked) == [16, 80]  # those and the entity, and once all of them
    wanted, found = await docs_of(base, from_all), await docs_of(base, nearest)
    assert found[0] == wanted[0] and len({*found[:10]} & {*wanted[:10]}) >= 9
    assert found[:10] != await docs_of(base, await after(base, Q, Ppr(passage=0.0), found=seeds))
    for one, other in zip(from_all.chunks[:10], nearest.chunks[:10], strict=True):
        assert other.score == pytest.approx(one.score, rel=0.25)


# -- paths


async def test_the_most_reliable_path_comes_first(base: KnowledgeBase) -> None:
    # Ada ─ Bob directly; Ada ─ Cid ─ Dora over one; both pairs are seeds.
    await take_graph(
        base,
        {
            "a": [joins("Ada", "met", "Bob")],
            "b": [joins("Ada", "met", "Cid"), joins("Cid", "saw", "Dora")],
        },
    )
    seeds = hits(*[(await position(base, name), 1.0) for name in ("Ada", "Bob", "Dora")])
    found = await after(base, Q, FlowPaths(threshold=0.3), found=Found(entities=seeds))
    ways = [tuple(await names_of(base, path.entities)) for path in found.paths]
    assert ways == [("Ada", "Bob"), ("Ada", "Cid", "Dora"), ("Bob", "Ada", "Cid", "Dora")]
    assert [path.score for path in found.paths] == pytest.approx(
        [1.0, (1 + 0.8) / 2, (1 + 0.8 + 0.64) / 3]
    )
    assert len((await after(base, Q, FlowPaths(top_k=1), found=Found(entities=seeds))).paths) == 1


async def test_depth_first_follows_parallel_facts_on_a_multigraph(base: KnowledgeBase) -> None:
    await take_graph(
        base,
        {
            "a": [
                joins("Ada", "met", "Bob"),
                joins("Ada", "married", "Bob"),
                joins("Bob", "saw", "Cid"),
            ]
        },
    )
    ada = await position(base, "Ada")
    found = await after(base, Q, DepthFirst(depth=5, width=3), found=Found(entities=hits((ada, 1))))
    ways = [
        (*(await names_of(base, path.entities)), *(await texts_of(base, path.facts)))
        for path in found.paths
    ]
    assert set(ways) == {
        ("Ada", "Bob", "Ada met Bob"),
        ("Ada", "Bob", "Ada married Bob"),
        ("Ada", "Bob", "Cid", "Ada met Bob", "Bob saw Cid"),
        ("Ada", "Bob", "Cid", "Ada married Bob", "Bob saw Cid"),
    }


async def test_depth_first_goes_as_deep_as_it_may(base: KnowledgeBase) -> None:
    line = [joins(f"N{n}", "next", f"N{n + 1}") for n in range(8)]
    await take_graph(base, {"a": line})
    start = Found(entities=hits((await position(base, "N0"), 1)))
    assert max(len(p.facts) for p in (await after(base, Q, DepthFirst(5), found=start)).paths) == 5
    assert max(len(p.facts) for p in (await after(base, Q, DepthFirst(2), found=start)).paths) == 2


async def test_paths_towards_the_asked_type_come_first(base: KnowledgeBase) -> None:
    await take_graph(
        base,
        {"a": [joins("Ada", "lives", "Ulm"), joins("Ada", "met", "Bob")]},
        {"Ada": "person", "Bob": "person", "Ulm": "place"},
    )
    ada = Found(entities=hits((await position(base, "Ada"), 1)), topics=("place",))
    found = await after(base, Q, TypedPaths(types=1), found=ada)
    assert await names_of(base, found.paths[0].entities) == ["Ada", "Ulm"]
    # 1 · (1 + one answer on it + Ada and Ulm in its fact) against 1 · (1 + Ada in its fact)
    assert [path.score for path in found.paths] == pytest.approx([4.0, 2.0])


async def test_a_tree_joins_what_is_prized(base: KnowledgeBase) -> None:
    await take_graph(
        base,
        {"a": [joins("Ada", "met", "Bob"), joins("Bob", "saw", "Cid"), joins("X", "saw", "Y")]},
    )
    seeds = hits(*[(await position(base, name), 1.0) for name in ("Ada", "Cid", "X")])
    found = await after(base, Q, PrizedTree(cost=0.5), found=Found(entities=seeds))
    assert set(await names_of(base, [h.at for h in found.entities])) == {"Ada", "Bob", "Cid"}
    assert len(found.facts) == 2
    dear = await after(base, Q, PrizedTree(cost=4.0), found=Found(entities=seeds))
    assert await names_of(base, [h.at for h in dear.entities]) == ["Ada"]
