"""Facts of the pages a query is about: hand-worked rankings, and the recipe on real pages."""

from pathlib import Path

import numpy as np

from clew.engine import KnowledgeBase
from clew.graph.csr import Csr
from clew.index.view import View
from clew.retrieve.linking.page_facts import OwnPages, find_pages_about


class _Said(View):
    """Facts 0, 1 in chunk 0; 2 in chunks 1 and 2; 3 in chunk 2."""

    def links(self, name: str) -> Csr:
        assert name == "fact_chunk"
        columns = np.array([0, 0, 1, 2, 2], np.int32)
        return Csr(np.array([0, 1, 2, 4, 5]), columns, np.ones(5, np.float32))


VIEW = _Said({}, {})
FACTS = np.array([0.1, 0.4, 0.3, 0.2], np.float32)
CHUNKS = np.array([0.0, 0.2, 0.0], np.float32)


def _chosen(about: dict[int, float], **how: float) -> list[int]:
    return OwnPages(**how)(VIEW, (FACTS, CHUNKS), about).tolist()  # type: ignore[arg-type]


def test_without_names_meaning_decides() -> None:
    # Chunk 0: 0.4, 0.1. Chunk 1: 0.3 + 0.5 · 0.2 = 0.4. Chunk 2: 0.3, 0.2. Equals by position.
    assert _chosen({}, pages=1) == [1, 0]
    assert _chosen({}, pages=2) == [1, 0, 2]
    assert _chosen({}) == [1, 0, 2, 3]
    assert _chosen({}, facts=2) == [1, 2]  # the best two, page by page
    assert CHUNKS.tolist() == np.array([0.0, 0.2, 0.0], np.float32).tolist()  # left as it was


def test_the_page_about_a_name_comes_first() -> None:
    assert _chosen({2: 0.7}, pages=1) == [2, 3]
    # The surest counts 1 whatever its weight, a half as sure page half as much.
    assert _chosen({2: 0.2, 0: 0.1}, pages=2) == [2, 3, 1, 0]
    assert _chosen({2: 0.7}, pages=1, own=0.0) == [1, 0]


def test_pages_that_are_surely_about_nothing_change_nothing() -> None:
    assert _chosen({2: 0.0, 0: 0.0}, pages=2) == _chosen({}, pages=2)


async def test_the_recipe_works_on_a_graph_without_pages(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    graph = tmp_path / "people.tsv"
    graph.write_text("Alice Park\tknows\tBob Stone\nBob Stone\tlives in\tParis\n", encoding="utf-8")
    await base.import_graph(graph)
    asked = "Where does Bob Stone live, whom Alice Park knows?"
    async with base.store.snapshot() as now:
        assert set(find_pages_about(View(now.arrays, {}), asked).values()) == {0.0}
    found = await base.search(asked, recipe="own-facts")
    assert "Paris" in "".join(fact.text for fact in found.evidence.facts)


def test_no_facts_no_pages() -> None:
    class Empty(View):
        def links(self, name: str) -> Csr:
            return Csr(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))

    nothing = np.zeros(0, np.float32)
    assert OwnPages()(Empty({}, {}), (nothing, nothing), {}).tolist() == []


async def test_the_recipe_reads_the_page_that_is_about_the_name(valley: KnowledgeBase) -> None:
    found = await valley.search("place of birth of Anton Reeve", recipe="own-facts")
    assert found.evidence.facts[0].title == "Anton Reeve"
    assert found.evidence.chunks[0].title == "Anton Reeve"
    async with valley.store.snapshot() as now:
        view = View(now.arrays, {})
        assert len(find_pages_about(view, "place of birth of Anton Reeve")) == 1
        assert find_pages_about(view, "who knows") == {}
