"""The house walk through the front door: hops, namesakes, names said differently.

The way that a walk is said to have come: every fact on it joins what stands beside it.
"""

from pathlib import Path

import pytest
from film_graph import take_films

from clew.engine import KnowledgeBase
from conftest import document, stream


async def found(base: KnowledgeBase, question: str, k: int = 3) -> list[str]:
    results = await base.search(question, recipe="clew", k=k)
    return [passage.doc for passage in results.evidence.chunks]


async def test_two_hops_lead_from_the_bridge_to_the_town(valley: KnowledgeBase) -> None:
    question = "Where was the designer of Marrow Bridge born?"
    assert set(await found(valley, question)) == {"bridge", "ilse", "town"}


async def test_the_way_is_kept(valley: KnowledgeBase) -> None:
    results = await valley.search("Where was the designer of Marrow Bridge born?", recipe="clew")
    ways = [path.entities for path in results.evidence.paths]
    assert ("Marrow Bridge", "Ilse Brandvik", "Hallowmere") in ways


NAMESAKES = (
    document("film", "Salt is a film by Anton Reeve. It was shot in Vessen.", "Salt (2010 film)"),
    document("song", "Salt is a song by Clara Lindqvist about the sea.", "Salt (song)"),
    document("reeve", "Anton Reeve was a director. He died in Pellworth.", "Anton Reeve"),
    document("clara", "Clara Lindqvist was a singer from Hallowmere.", "Clara Lindqvist"),
)


@pytest.mark.parametrize(
    ("question", "first"),
    [("Who made the film Salt?", "film"), ("Who sang the song Salt?", "song")],
)
async def test_words_beside_a_name_tell_namesakes_apart(
    base: KnowledgeBase, question: str, first: str
) -> None:
    await base.take(stream(NAMESAKES))
    assert (await found(base, question))[0] == first


async def test_a_name_is_found_however_it_is_said(base: KnowledgeBase) -> None:
    await base.take(
        stream(
            (
                document("sears", "Frederick Francis Sears was a director born in Vessen."),
                document("film", "Grey Coast is a film directed by Fred F. Sears."),
                document("other", "Pellworth is a market town in the north."),
            )
        )
    )
    assert (await found(base, "Where was Fred Sears born?", 1)) == ["sears"]
    assert set(await found(base, "Where was the director of Grey Coast born?", 2)) == {
        "film",
        "sears",
    }


async def test_an_empty_knowledge_base_has_no_passages(base: KnowledgeBase) -> None:
    assert await found(base, "Where was Fred Sears born?") == []


@pytest.mark.parametrize("question", ["?", "…", "a" * 10_000, "是谁", "\u202e x", "the of and"])
async def test_any_question_is_answered(valley: KnowledgeBase, question: str) -> None:
    assert len(await found(valley, question)) == 3


async def test_the_order_of_adding_does_not_matter(base: KnowledgeBase) -> None:
    question = "Who sang the song Salt?"
    await base.take(stream(NAMESAKES))
    fresh = await found(base, question, 4)
    await base.remove(["song", "reeve"])
    await base.take(stream(reversed(NAMESAKES)))
    assert await found(base, question, 4) == fresh


@pytest.mark.parametrize(
    "question",
    [
        "who directed The Prowler",
        "who starred in films by the director of Grey Coast",
        "which films did the writer of Night Ferry direct",
        "what was released in 1991",
    ],
)
async def test_every_hop_joins_its_ends(base: KnowledgeBase, tmp_path: Path, question: str) -> None:
    await take_films(base, tmp_path)
    found = await base.search(question, recipe="clew")
    assert found.evidence.paths
    for path in found.evidence.paths:
        for one, fact, other in zip(path.entities, path.facts, path.entities[1:], strict=False):
            assert one in fact, path
            assert other in fact, path
