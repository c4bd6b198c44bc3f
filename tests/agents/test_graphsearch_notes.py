"""What GraphSearch keeps of its first look: only what the passage it names says."""

from typing import Any

import pytest
from agent_asking import CONCLUDED, asking, reads

from clew.engine import KnowledgeBase
from clew.testing.fakes import AgentScript

SAID = "It was designed by Ilse Brandvik."


@pytest.mark.parametrize(
    ("note", "kept"),
    [
        ({"text": SAID, "source": 1}, True),
        ({"text": SAID, "source": 0}, False),
        ({"text": SAID}, False),
        ({"text": "It was blown up by Anton Reeve.", "source": 1}, False),
    ],
)
async def test_a_note_counts_with_the_passage_that_says_it(
    valley: KnowledgeBase, note: dict[str, Any], kept: bool
) -> None:
    drafted: list[str] = []

    def draft(message: str) -> dict[str, Any]:
        drafted.append(message)
        return {"steps": ["…"], "answer": "Hallowmere"}

    told = AgentScript(
        {
            "read": reads,
            "refine": {"notes": [note]},
            "draft": draft,
            "verify": {"verdict": "ACCEPT", "missing": ""},
            "conclude": CONCLUDED,
            "answer": CONCLUDED,
            "decompose": {"questions": ["What is Pellworth?"]},
            "relations": {"facts": []},
        }
    )
    asked = "Tell me something of the crossing called Marrow Bridge, please."
    await asking(valley)(told, asked, recipe="graphsearch+clew")
    assert drafted
    assert (note["text"] in drafted[0]) == kept


async def test_whoever_asks_on_hears_what_is_known_and_what_is_missing(
    valley: KnowledgeBase,
) -> None:
    heard: list[str] = []

    def expand(message: str) -> dict[str, Any]:
        heard.append(message)
        return {"questions": []}

    told = AgentScript(
        {
            "read": reads,
            "refine": {"notes": []},
            "draft": {"steps": ["…"], "answer": "Vessen"},
            "verify": {"verdict": "REJECT", "missing": "the county"},
            "expand": expand,
            "conclude": CONCLUDED,
            "answer": CONCLUDED,
            "decompose": {"questions": ["Where was Ilse Brandvik born?"]},
            "relations": {"facts": []},
        }
    )
    asked = "Tell me something of the crossing called Marrow Bridge, please."
    await asking(valley)(told, asked, recipe="graphsearch+clew")
    assert f"1. {asked} unknown" in heard[0]
    assert "the county" in heard[0]
