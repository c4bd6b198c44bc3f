"""Background notes of GraphSearch: only those that the cited passage supports."""

from typing import Any

import pytest
from agent_asking import CONCLUDED, asking, reads, refines

from clew.engine import KnowledgeBase
from clew.testing.fakes import AgentScript

SUPPORTED = "It was designed by Ilse Brandvik."


@pytest.mark.parametrize(
    ("note", "kept"),
    [
        ({"text": SUPPORTED, "source": 1}, True),
        ({"text": SUPPORTED, "source": 0}, False),
        ({"text": SUPPORTED}, False),
        ({"text": "It was blown up by Anton Reeve.", "source": 1}, False),
    ],
)
async def test_a_note_is_kept_if_its_passage_supports_it(
    valley: KnowledgeBase, note: dict[str, Any], kept: bool
) -> None:
    drafted: list[str] = []

    def draft(message: str) -> dict[str, Any]:
        drafted.append(message)
        return {"steps": ["…"], "answer": "Hallowmere"}

    def refine(message: str) -> dict[str, Any]:
        """Point at the line that says it, where the note points anywhere."""
        lines = [line for line in message.splitlines() if line.startswith("[")]
        number = next(n for n, line in enumerate(lines[1:], start=1) if SUPPORTED in line)
        return {"notes": [{**note, "source": number} if note.get("source") else note]}

    script = AgentScript(
        {
            "read": reads,
            "refine_read": refines,
            "refine": refine,
            "draft": draft,
            "verify": {"verdict": "ACCEPT", "missing": ""},
            "conclude": CONCLUDED,
            "answer": CONCLUDED,
            "decompose": {"questions": ["What is Pellworth?"]},
            "relations": {"facts": []},
        }
    )
    asked = "Tell me something of the crossing called Marrow Bridge, please."
    await asking(valley)(script, asked, recipe="graphsearch+clew")
    assert drafted
    assert (note["text"] in drafted[0]) == kept


async def test_expansion_is_given_the_notes_and_what_is_missing(
    valley: KnowledgeBase,
) -> None:
    requests: list[str] = []

    def expand(message: str) -> dict[str, Any]:
        requests.append(message)
        return {"questions": []}

    script = AgentScript(
        {
            "read": reads,
            "refine_read": refines,
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
    await asking(valley)(script, asked, recipe="graphsearch+clew")
    assert f"1. {asked} unknown" in requests[0]
    assert "the county" in requests[0]
