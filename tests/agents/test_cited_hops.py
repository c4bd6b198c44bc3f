"""An answer that rests on two sentences cites both: the one that has it, and what leads there."""

from typing import Literal

import pytest

from clew.agents.answering.cite_bridge import cite_bridge
from clew.agents.base import Answer
from clew.engine import KnowledgeBase
from clew.types import Citation, Evidence, Passage

Kind = Literal["span", "words"]
WORKS = (
    "The crane in hall 3 was supplied by Lodestar Hoists. The furnace was supplied by Brandt. "
    "Orders go to Lodestar Hoists, Kest Glass and Brandt."
)
PARTNERS = "Lodestar Hoists has its seat in Vantaa and employs 210 people."
PASSAGES = (
    Passage("w", "works", "Works", 1.0, WORKS, 0, len(WORKS)),
    Passage("p", "partners", "Partners", 1.0, PARTNERS, 0, len(PARTNERS)),
)


async def cite(base: KnowledgeBase, question: str, kind: Kind = "span") -> list[str]:
    """Return what is cited for an answer that was read in one sentence."""
    own = Citation("partners", "p", 0, len(PARTNERS), PARTNERS)
    answer = Answer(
        *(question, "", "210 [1]", "answered", (own,), Evidence(chunks=PASSAGES), (), 0.0),
        candidate="210",
        kind=kind,
    )
    async with base.store.snapshot() as now:
        ctx = await base.context(now, question)
        found = cite_bridge(ctx, answer)
    assert (f"[{len(found.citations)}]") in found.answer
    return [one.quote for one in found.citations]


async def test_the_sentence_that_leads_to_the_answer_is_cited(base: KnowledgeBase) -> None:
    cited = await cite(base, "How many people does the supplier of the crane employ?")
    assert cited == [PARTNERS, "The crane in hall 3 was supplied by Lodestar Hoists."]


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many people does Lodestar Hoists employ?", "span"),  # nothing is lacking
        ("How many people does the baker of Tarrow employ?", "span"),  # nothing says it
        ("How many people does the supplier of the crane employ?", "words"),
    ],
)
async def test_nothing_else_is_cited(base: KnowledgeBase, question: str, kind: Kind) -> None:
    assert await cite(base, question, kind) == [PARTNERS]
