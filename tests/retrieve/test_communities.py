"""Retrieval along trees: down to members, up to communities, over reports and summaries."""

from typing import Any

import pytest

from clew.context import Context
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.recipes.describe import required_trees
from clew.recipes.papers import TREE_RECIPES
from clew.recipes.registry import RECIPES
from clew.retrieve.communities.steps import BottomUp, IfGrown, Reports, ReportsOf, TopDown
from clew.retrieve.communities.summary_tree import EntityPairs
from clew.retrieve.expand import ChunksOf
from clew.retrieve.linking.link_names import LinkNames
from clew.retrieve.lookup import Dense
from clew.retrieve.rank import ANSWER_MARK
from clew.retrieve.step import Chain
from clew.types import Evidence, Found, Hit, Path
from conftest import VALLEY, OpenFilled, document, stream

ASKED = "Who designed Marrow Bridge?"
TOWNS = [
    document(
        f"t{n}", f"Town{n} is a town in Shire{n % 3}. Person{n} was born in Town{n}.", f"Town{n}"
    )
    for n in range(30)
]


async def fill_wood(base: KnowledgeBase) -> None:
    await base.take(stream(VALLEY))
    await base.take(stream(TOWNS))
    await base.builder.make_tree_manager().build(["dual", "leiden", "raptor", "e2"])


@pytest.fixture
async def wooded(open_filled: OpenFilled) -> KnowledgeBase:
    """The valley with towns around it, and every tree that recipes need."""
    return await open_filled(fill_wood)


async def found(base: KnowledgeBase, *steps: Any, question: str = ASKED) -> Evidence:
    RECIPES["under test"] = Chain("under test", steps)
    try:
        return (await base.search(question, recipe="under test")).evidence
    finally:
        del RECIPES["under test"]


async def test_top_down_leads_to_the_members_that_fit(wooded: KnowledgeBase) -> None:
    got = await found(wooded, TopDown(), ChunksOf(("facts",)))
    assert got.chunks[0].doc == "bridge"
    assert "Marrow Bridge" in {entity.name for entity in got.entities}
    assert got.communities[0].score == max(one.score for one in got.communities)
    assert got.communities[0].tree == "dual"


async def test_a_narrower_beam_opens_fewer_communities(wooded: KnowledgeBase) -> None:
    narrow = await found(wooded, TopDown(beam=1, communities=5))
    wide = await found(wooded, TopDown(beam=30, communities=30))
    assert len(narrow.communities) == 1 < len(wide.communities)
    assert narrow.communities[0].id in {one.id for one in wide.communities}


async def test_bottom_up_adds_the_community_and_its_keywords(wooded: KnowledgeBase) -> None:
    plain = await found(wooded, LinkNames())
    got = await found(wooded, LinkNames(), BottomUp(communities=2, keywords=3))
    assert got.entities[: len(plain.entities)] == plain.entities
    assert {one.by for one in got.entities[len(plain.entities) :]} == {"keyword"}
    assert 1 <= len(got.communities) <= 2


async def test_reports_cite_the_documents_word_for_word(wooded: KnowledgeBase) -> None:
    texts = {one.names[0]: one.text for one in [*VALLEY, *TOWNS]}
    for recipe in TREE_RECIPES:
        got = (await wooded.search("What are the towns like?", recipe=recipe.name)).evidence
        assert got.communities or recipe.name == "e2graphrag"
        for report in got.communities:
            assert report.citations
            assert report.name
            for one in report.citations:
                assert texts[one.doc][one.start : one.end] == one.quote


async def test_the_start_of_a_path_has_a_report_though_it_is_an_answer(
    wooded: KnowledgeBase,
) -> None:
    async def circle(ctx: Context, found: Found) -> Found:
        """A path that comes back to where it starts: its entity is marked as an answer."""
        (at,) = (hit.at for hit in found.entities[:1])
        return Found(entities=(Hit(at, 1.0, ANSWER_MARK),), paths=(Path((at,), ()),))

    got = await found(wooded, LinkNames(), circle, ReportsOf())
    assert got.communities and got.communities[0].tree == "leiden"


async def test_the_trace_says_why_there_is_no_report(wooded: KnowledgeBase) -> None:
    RECIPES["under test"] = Chain("under test", (ReportsOf(),))
    RECIPES["no tree"] = Chain("no tree", (ReportsOf(tree="louvain"),))
    try:
        none = await wooded.search(ASKED, recipe="under test")
        bare = await wooded.search(ASKED, recipe="no tree")
    finally:
        del RECIPES["under test"], RECIPES["no tree"]
    assert ("no report", "no entity found") in {(s.step, s.output) for s in none.trace}
    assert any(s.step == "no tree" and "louvain" in str(s.output) for s in bare.trace)


async def test_a_recipe_without_its_tree_says_which_to_grow(valley: KnowledgeBase) -> None:
    for recipe in TREE_RECIPES:
        [tree] = required_trees(recipe)
        with pytest.raises(ConfigError, match=f"clew tree --grow --by {tree}"):
            await valley.search("What are the towns like?", recipe=recipe.name)


async def test_passages_that_name_both_entities_come_first(wooded: KnowledgeBase) -> None:
    got = await found(
        wooded, LinkNames(), EntityPairs(), question="Was Ilse Brandvik born in Hallowmere?"
    )
    assert got.chunks[0].doc == "ilse"
    assert got.chunks[0].by == "both named"
    assert not got.communities  # the question is local
    whole = await found(wooded, LinkNames(), EntityPairs(), question="what is all this about?")
    assert whole.communities


async def test_raptor_summaries_bring_the_passages_they_quote(wooded: KnowledgeBase) -> None:
    got = (await wooded.search("towns in Shire1", recipe="raptor")).evidence
    assert {one.tree for one in got.communities} <= {"raptor"}
    docs = [passage.doc for passage in got.chunks]
    assert len(docs) == len(set(docs))


async def test_the_community_route_contributes_to_youtu(valley: KnowledgeBase) -> None:
    await valley.take(stream(TOWNS))
    without = await valley.search(ASKED, recipe="youtu-10")
    assert not without.evidence.communities
    await valley.builder.make_tree_manager().build(["dual"])
    with_tree = await valley.search(ASKED, recipe="youtu-10")
    assert with_tree.evidence.communities
    assert any(fact.by == "community" for fact in with_tree.evidence.facts)


def test_the_trees_of_a_recipe_are_read_from_its_steps() -> None:
    chain = Chain("x", (Dense(), IfGrown(TopDown("paper")), Reports("leiden")))
    assert required_trees(chain) == ("paper", "leiden")


# -- map and reduce


async def test_without_a_model_the_reports_are_quoted(wooded: KnowledgeBase) -> None:
    answer = await wooded.ask(ASKED, recipe="msgraphrag-global")
    assert answer.verdict == "answered"
    assert "designed by Ilse Brandvik" in answer.answer
    assert all(citation.quote in answer.answer for citation in answer.citations)
    empty = await wooded.ask("zzz qqq", recipe="msgraphrag-global", mode="reject")
    assert empty.verdict == "refused"
