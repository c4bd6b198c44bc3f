"""How Graph-R1 formats evidence: fused facts, facts grouped by page title, or passages."""

from dataclasses import replace

from clew.agents.graph_r1 import GraphR1
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
