"""How Graph-R1 formats evidence: fused facts, facts grouped by page title, or passages."""

from dataclasses import replace
from typing import Any

from agent_asking import asking

from clew.agents.graph_r1 import GraphR1
from clew.engine import KnowledgeBase
from clew.types import Evidence, Passage, Statement

FACTS = tuple(
    Statement(f"f{n}", text, "", (), 1.0, start=start, title=title)
    for n, (title, start, text) in enumerate(
        [("Ana Roth", 40, "She died in Vessen."), ("Ana Roth", 0, "She was born in Marn.")]
        + [("Ash", 0, "Ash is a film.")]
    )
)
PAGE = Passage("c", "doc", "Ash", 1.0, "Ash is a film of 1962.", 0, 22)


def test_facts_are_grouped_by_page_in_text_order() -> None:
    shown = GraphR1(show="pages").format_evidence(Evidence((PAGE,), (), FACTS))
    assert shown.splitlines() == [
        "- Ana Roth: She was born in Marn. She died in Vessen.",
        "- Ash is a film.",
    ]
    assert GraphR1(show="pages", top_k=1).format_evidence(Evidence((), (), FACTS)) == (
        "- Ana Roth: She died in Vessen."
    )
    assert len(GraphR1(show="pages", room=10).format_evidence(Evidence((), (), FACTS))) == 40


def test_the_fused_facts_and_their_scores_are_all_that_is_shown() -> None:
    shown = GraphR1(top_k=2).format_evidence(Evidence((PAGE,), (), FACTS)).splitlines()
    assert shown == [
        "- Ana Roth: She died in Vessen. (score 1.00)",
        "- Ana Roth: She was born in Marn. (score 1.00)",
    ]


def test_knowledge_keeps_to_its_tokens() -> None:
    long = tuple(replace(fact, text=f"{fact.text} " * 400) for fact in FACTS)
    shown = GraphR1(room=100).format_evidence(Evidence((), (), long))
    assert shown.endswith("… (score 1.00)")
    assert len(shown) <= 400


def test_passages_are_shown_where_the_retriever_ranked_no_facts() -> None:
    around = tuple(replace(fact, by="around") for fact in FACTS)
    assert "film of 1962" in GraphR1().format_evidence(Evidence((PAGE,), (), around))
    assert "film of 1962" in GraphR1(show="passages").format_evidence(Evidence((PAGE,), (), FACTS))
    assert "died in Vessen" in GraphR1().format_evidence(Evidence((), (), around))
    assert "film of 1962" in GraphR1(show="pages").format_evidence(Evidence((PAGE,)))


async def test_knowledge_that_the_model_invents_is_looked_up_instead(valley: KnowledgeBase) -> None:
    heard: list[str] = []

    def say(messages: list[dict[str, Any]]) -> str:
        heard.append(messages[-1]["content"])
        if "born in Hallowmere" not in heard[-1]:
            invented = "<knowledge>She was born in Quarn.</knowledge><answer>Quarn</answer>"
            return f"<think>Where Ilse Brandvik was born is missing.</think>{invented}"
        return "<think>It is known.</think><answer>Hallowmere</answer>"

    asked = "Where was Ilse Brandvik born?"
    answer = await asking(valley)(say, asked, recipe="graph-r1+naive", mode="reject")
    assert answer.candidate == "Hallowmere"
    assert heard[1].startswith("<knowledge>") and "Hallowmere" in heard[1]


async def test_a_score_that_the_model_copies_is_no_part_of_its_answer(
    valley: KnowledgeBase,
) -> None:
    def say(messages: list[dict[str, Any]]) -> str:
        return "<think>It is known.</think><answer>Hallowmere (score 1.00)</answer>"

    asked = "Where was Ilse Brandvik born?"
    answer = await asking(valley)(say, asked, recipe="graph-r1", mode="open")
    assert answer.candidate == "Hallowmere"
