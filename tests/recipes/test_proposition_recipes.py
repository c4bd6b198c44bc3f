"""PropRAG, LinearRAG and GFM-RAG: what each does beyond nearness, on a small knowledge base."""

import pytest

from clew.engine import KnowledgeBase
from clew.recipes.propositions import PROPOSITION_RECIPES
from clew.types import Document
from conftest import document, stream

# The town's passage shares no word with the question: only Ilse Brandvik leads there.
CHAIN = (
    document("bridge", "Marrow Bridge was designed by Ilse Brandvik.", "Marrow Bridge"),
    document("ilse", "Ilse Brandvik came from Hallowmere.", "Ilse Brandvik"),
    document("town", "Hallowmere is a fishing port.", "Hallowmere"),
)
OTHERS = tuple(
    document(f"other {n}", f"Lake {n} lies near Oldtown, said Person {n}.", f"Lake {n}")
    for n in range(40)
)
ASKED = "Who came from where and designed Marrow Bridge?"


@pytest.fixture
async def chained(base: KnowledgeBase) -> KnowledgeBase:
    documents: tuple[Document, ...] = (*CHAIN, *OTHERS)
    await base.take(stream(documents))
    return base


@pytest.mark.parametrize("recipe", [one.name for one in PROPOSITION_RECIPES])
async def test_the_second_hop_is_found(chained: KnowledgeBase, recipe: str) -> None:
    results = await chained.search(ASKED, recipe=recipe, k=5)
    found = [passage.doc for passage in results.evidence.chunks]
    assert found[0] == "bridge" and "ilse" in found, found


async def test_a_path_joins_propositions_by_what_they_share(chained: KnowledgeBase) -> None:
    results = await chained.search(ASKED, recipe="proprag")
    joined = [path for path in results.evidence.paths if len(path.facts) > 1]
    assert any(
        path.facts[:2]
        == ("Marrow Bridge was designed by Ilse Brandvik.", "Ilse Brandvik came from Hallowmere.")
        and path.entities[1] == "Ilse Brandvik"
        for path in joined
    )
    assert max(len(path.facts) for path in joined) <= 3
    assert results.evidence.paths == tuple(
        sorted(results.evidence.paths, key=lambda path: -path.score)
    )


async def test_paths_are_reread_by_the_embedder_only_where_asked(chained: KnowledgeBase) -> None:
    summed = (await chained.search(ASKED, recipe="proprag")).evidence.paths
    reread = (await chained.search(ASKED, recipe="proprag-reread")).evidence.paths
    scores = {path.facts: path.score for path in summed if len(path.facts) > 1}
    both = [path for path in reread if path.facts in scores]
    assert both and any(abs(path.score - scores[path.facts]) > 1e-4 for path in both)


async def test_activation_ends_where_sentences_do_not_fit(chained: KnowledgeBase) -> None:
    entities = (await chained.search(ASKED, recipe="linearrag")).evidence.entities
    hops = {entity.name: entity.by for entity in entities}
    assert hops["Marrow Bridge"] == "hop 1"
    assert not any(name.startswith("Person") for name in hops)


async def test_messages_reach_neighbours_first(chained: KnowledgeBase) -> None:
    entities = (await chained.search(ASKED, recipe="gfm-rag")).evidence.entities
    names = [entity.name for entity in entities]
    assert {"Marrow Bridge", "Ilse Brandvik", "Hallowmere"} <= set(names)
    assert not any(name.startswith("Person") for name in names)
