"""Retrieval steps on graphs small enough to work out the ranking by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from film_graph import take_films
from plain_graph import Chosen, after, docs_of, names_of, says, take_graph, texts_of

from clew.engine import KnowledgeBase
from clew.index.view import View
from clew.retrieve.communities.steps import BottomUp
from clew.retrieve.graph_cache import get_entity_communities
from clew.retrieve.linking.link_entities import LinkEntities, match_fuzzily, suggest_names
from clew.retrieve.linking.link_names import LinkNames, link_names
from clew.retrieve.linking.page_facts import OwnFacts
from clew.retrieve.walk import Walk
from clew.text.names import tokenize
from clew.types import Found, Hit
from conftest import VALLEY, document, stream

Q = "What is asked?"
TOWNS = [
    document(
        f"t{n}", f"Town{n} is a town in Shire{n % 3}. Person{n} was born in Town{n}.", f"Town{n}"
    )
    for n in range(30)
]


async def test_a_passage_is_as_relevant_as_its_best_sentence(base: KnowledgeBase) -> None:
    base.embed = Chosen({Q: [1], "Text of a.": [0], "Text of b.": [0], "It rains.": [1]})
    await take_graph(base, {"a": [says("It snows.", "Alpha")], "b": [says("It rains.", "Beta")]})
    got = await after(base, Q, Walk(hops=0, seed=0.0, fused=0.0, relevance=1.0))
    assert await docs_of(base, got) == ["b", "a"]
    assert got.chunks[0].score == pytest.approx(1, abs=1e-4)
    assert got.chunks[1].score < 0.3


async def test_each_entity_leads_to_its_own_community(valley: KnowledgeBase) -> None:
    await valley.builder.make_tree_manager().build(["dual"])
    async with valley.store.snapshot() as now:
        ctx = await valley.context(now, Q)
        home = get_entity_communities(ctx, "dual")
        assert 0 in home
        for at in np.flatnonzero(home >= 0).tolist():
            got = await BottomUp()(ctx, Found(entities=(Hit(at, 1.0, "given"),)))
            assert [hit.at for hit in got.communities] == [int(home[at])]


async def test_a_part_of_a_longer_name_is_not_linked(valley: KnowledgeBase) -> None:
    async with valley.store.snapshot() as now:
        view = View(now.arrays, {})

    def linked(question: str) -> set[str]:
        t = tokenize(question)
        names = link_names(view, question, t)
        return {question[t.starts[one.first] : t.ends[one.last - 1]] for one in names}

    assert linked("How long is the Tarn?") == {"Tarn"}
    assert "Tarn" not in linked("Who built the Tarn Abbey?")
    assert linked("Is Brandvik an engineer?") == {"Brandvik"}  # the first word is not part of it


ALIKE = ["Alphadogs", "Alphaboats", "Alphacrows", "Alphadocks"]


async def test_the_most_similar_name_is_suggested_first(base: KnowledgeBase) -> None:
    await take_graph(base, {"a": [says("They meet.", *ALIKE)]})
    async with base.store.snapshot() as now:
        ctx = await base.context(now, Q)
        for name in ALIKE:
            assert (await suggest_names(ctx, f"Who saw {name}x?"))[0] == name


async def test_the_page_of_a_linked_name_ranks_before_a_closer_one(base: KnowledgeBase) -> None:
    base.embed = Chosen({Q: [1], "Near.": [0.4], "Far.": [0.0], "Text of a.": [0.4]})
    await take_graph(base, {"a": [says("Near.", "Alpha")], "b": [says("Far.", "Beta")]})
    near = await after(base, Q, OwnFacts())
    assert await docs_of(base, near) == ["a", "b"]
    about = replace(near, chunks=(replace(near.chunks[1], score=1.0),), facts=())
    got = await after(base, Q, OwnFacts(), found=about)
    assert await docs_of(base, got) == ["b", "a"]
    assert await texts_of(base, [hit.at for hit in got.facts]) == ["Far.", "Near."]


async def test_the_community_of_the_first_hit_ranks_first(valley: KnowledgeBase) -> None:
    await valley.take(stream(TOWNS))
    await valley.builder.make_tree_manager().build(["dual"])
    async with valley.store.snapshot() as now:
        ctx = await valley.context(now, Q)
        home = get_entity_communities(ctx, "dual")
        lived = np.unique(home[home >= 0])
        assert len(lived) > 1
        for one, other in [(lived[0], lived[-1]), (lived[-1], lived[0])]:
            first, second = (int(np.flatnonzero(home == at)[0]) for at in (one, other))
            given = Found(entities=(Hit(first, 1.0, "given"), Hit(second, 1.0, "given")))
            got = await BottomUp()(ctx, given)
            assert [(hit.at, hit.score) for hit in got.communities] == [(one, 1.0), (other, 0.5)]


async def test_context_words_rank_other_entities_of_that_name_lower(valley: KnowledgeBase) -> None:
    base = valley
    await base.take(
        stream(
            (
                document("film", "Salt is a film by Anton Reeve.", "Salt (2010 film)"),
                document("song", "Salt is a song by Clara Lindqvist.", "Salt (song)"),
            )
        )
    )
    question = "Who made the film Salt?"
    plain = await after(base, question, LinkNames(hint=0.0, namesake=1.0))
    hinted = await after(base, question, LinkNames(hint=1.0, namesake=1.0))
    before = {hit.at: hit.score for hit in plain.chunks}
    now = {hit.at: hit.score for hit in hinted.chunks}
    ratio = sorted(now[at] / before[at] for at in before)
    assert ratio == pytest.approx([np.exp(-1), 1])  # the film keeps its weight, the song loses
    [first] = [hit for hit in hinted.chunks if now[hit.at] == pytest.approx(before[hit.at])]
    assert await docs_of(base, replace(hinted, chunks=(first,))) == ["film"]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("what joins night ferry and stone orchard", ("night ferry", "stone orchard")),
        ("of Drama and night ferry", ("Drama",)),  # with capitals, small words name nothing more
        ("what joins Night Ferry and Stone Orchard", ("Night Ferry", "Stone Orchard")),
        ("what is drama in night ferry", ("night ferry",)),
    ],
)
async def test_a_second_name_is_linked_by_capitals_or_by_length(
    base: KnowledgeBase, tmp_path: Path, question: str, names: tuple[str, ...]
) -> None:
    films = await take_films(base, tmp_path)
    assert (await after(films, question, LinkEntities())).names == names


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Originally, was it in Hallowmere?", {"Hallowmere"}),
        ("Is Originally by Hallowmere?", {"Originally", "Hallowmere"}),
    ],
)
async def test_the_first_word_of_a_question_is_not_a_name(
    valley: KnowledgeBase, question: str, names: set[str]
) -> None:
    await valley.take(stream([document("song", "It was a song.", "Originally")]))
    async with valley.store.snapshot() as now:
        t = tokenize(question)
        linked = link_names(View(now.arrays, {}), question, t)
    assert {question[t.starts[one.first] : t.ends[one.last - 1]] for one in linked} == names


async def test_of_similar_names_only_the_closest_match(base: KnowledgeBase) -> None:
    await take_graph(base, {"a": [says("They meet.", *ALIKE)]})
    async with base.store.snapshot() as now:
        ctx = await base.context(now, Q)
        for name in ALIKE:
            found = await match_fuzzily(ctx, f"{name}x", 0.2, 2.0)
            assert found.how == "spelt like"
            assert await names_of(base, [at for at, _ in found.entities]) == [name]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("who directed Taxi! back then", "Taxi!"),
        ("who directed Taxi back then", "Taxi"),
        ("who directed taxi back then", "Taxi"),
    ],
)
async def test_a_name_is_linked_with_its_punctuation(
    base: KnowledgeBase, tmp_path: Path, question: str, name: str
) -> None:
    films = await take_films(base, tmp_path, "Taxi|directed_by|Ann Lee\nTaxi!|directed_by|Bo Roy\n")
    found = await after(films, question, LinkEntities())
    assert name in await names_of(films, [hit.at for hit in found.entities])
    if question.count("Taxi"):
        assert len(found.entities) == 1


async def test_a_fact_quotes_its_document_exactly(valley: KnowledgeBase) -> None:
    texts = {one.names[0]: one.text for one in VALLEY}
    results = await valley.search("Where was the designer of Marrow Bridge born?", recipe="clew")
    assert results.evidence.facts
    for fact in results.evidence.facts:
        assert fact.quote
        assert texts[fact.doc][fact.start : fact.end] == fact.quote
