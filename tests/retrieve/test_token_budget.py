"""Token budgets per kind of evidence."""

from hypothesis import given
from hypothesis import strategies as st
from plain_graph import after

from clew.engine import KnowledgeBase
from clew.retrieve.lookup import Dense, NearEntities, NearFacts
from clew.retrieve.pack import Budget, count_within_budget

ASKED = "Who designed Marrow Bridge?"


@given(st.lists(st.integers(1, 50)), st.integers(-5, 300))
def test_as_many_as_fit_and_no_more(sizes: list[int], budget: int) -> None:
    count = count_within_budget(sizes, budget)
    assert sum(sizes[:count]) <= max(budget, 0)
    assert count == len(sizes) or sum(sizes[: count + 1]) > budget


async def test_a_budget_keeps_the_best_of_each_kind(valley: KnowledgeBase) -> None:
    steps = (NearEntities("question", top_k=5), NearFacts("question", top_k=5), Dense())
    whole = await after(valley, ASKED, *steps)
    assert await after(valley, ASKED, *steps, Budget()) == whole
    cut = await after(valley, ASKED, *steps, Budget(entities=8, facts=30, chunks=40))
    assert 0 < len(cut.entities) < len(whole.entities)
    assert 0 < len(cut.facts) < len(whole.facts)
    assert cut.facts == whole.facts[: len(cut.facts)]
    assert 0 < len(cut.chunks) < len(whole.chunks)


async def test_the_total_is_what_passages_get(valley: KnowledgeBase) -> None:
    steps = (NearFacts("question", top_k=5), Dense())
    tight = await after(valley, ASKED, *steps, Budget(total=60))
    assert len(tight.chunks) == 1  # the best passage always stays
    loose = await after(valley, ASKED, *steps, Budget(facts=0, total=60))
    assert loose.facts == () and len(loose.chunks) > 1
