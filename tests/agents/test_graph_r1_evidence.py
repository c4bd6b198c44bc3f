"""How Graph-R1 formats evidence: facts grouped by page title, or passages."""

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
    shown = GraphR1(show="facts").format_evidence(Evidence((PAGE,), (), FACTS))
    assert shown.splitlines() == [
        "- Ana Roth: She was born in Marn. She died in Vessen.",
        "- Ash is a film.",
    ]
    assert GraphR1(show="facts", top_k=1).format_evidence(Evidence((), (), FACTS)) == (
        "- Ana Roth: She died in Vessen."
    )
    assert len(GraphR1(show="facts", room=10).format_evidence(Evidence((), (), FACTS))) == 10


def test_passages_are_used_and_facts_if_there_are_none() -> None:
    assert "film of 1962" in GraphR1().format_evidence(Evidence((PAGE,), (), FACTS))
    assert "died in Vessen" not in GraphR1().format_evidence(Evidence((PAGE,), (), FACTS))
    assert "died in Vessen" in GraphR1().format_evidence(Evidence((), (), FACTS))
    assert "film of 1962" in GraphR1(show="facts").format_evidence(Evidence((PAGE,)))
