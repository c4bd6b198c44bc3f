"""Packing: budgets per kind, numbered sources, the most reliable path last."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_graph import after

from clew.engine import KnowledgeBase
from clew.retrieve.lookup import Dense, NearEntities, NearFacts
from clew.retrieve.token_budget import Budget, count_within_budget, pack_evidence
from clew.types import Evidence, NamedEntity, Passage, Route, Statement

ASKED = "Who designed Marrow Bridge?"


def passage(text: str, title: str = "") -> Passage:
    return Passage("c", "doc", title, 1.0, text, 0, len(text))


def fact(text: str) -> Statement:
    return Statement("f", text, "", (), 1.0, doc="doc", chunk="c", start=0, end=len(text))


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


def test_sources_are_numbered_and_the_numbers_lead_to_them() -> None:
    made = pack_evidence(
        Evidence(
            chunks=(passage("She was born\nin Hallowmere.", "Ilse"), passage("A town.")),
            entities=(NamedEntity("e", "Ilse", "person", 1.0),),
            facts=(fact("Ilse designed it."),),
        )
    )
    assert "[1] Ilse designed it." in made.text
    assert "[2] Ilse: She was born in Hallowmere." in made.text
    assert "[3] A town." in made.text
    assert "Ilse (person)" in made.text
    assert [source.text for source in made.sources][0] == "Ilse designed it."
    assert isinstance(made.sources[1], Passage)


def test_the_most_reliable_path_stands_last() -> None:
    best, worse = Route(("A", "B"), ("met",), 0.9), Route(("C", "D"), ("saw",), 0.1)
    made = pack_evidence(Evidence(paths=(best, worse), chunks=(passage("x"),)))
    assert made.text.index("C ─[saw]→ D") < made.text.index("A ─[met]→ B")
    assert made.text.endswith("A ─[met]→ B")


@pytest.mark.parametrize("kind", ["facts", "entities"])
def test_what_does_not_fit_is_left_out_from_the_end(kind: str) -> None:
    evidence = Evidence(
        chunks=(passage("Passage."),),
        facts=tuple(fact(f"fact number {n} of some length") for n in range(50)),
        entities=tuple(NamedEntity(str(n), f"entity {n}", "", 1.0) for n in range(50)),
    )
    made = pack_evidence(evidence, Budget(entities=20, facts=40))
    assert "fact number 0" in made.text and "fact number 49" not in made.text
    assert "entity 0" in made.text and "entity 49" not in made.text
    assert made.sources[-1] == evidence.chunks[0]
