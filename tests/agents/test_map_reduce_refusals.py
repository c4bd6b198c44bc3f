"""A refusal names what is missing: in the model's words, or in ours where it has none."""

import json
from typing import Any

import pytest
from agent_asking import asking

from clew.engine import KnowledgeBase

ASKED = "Who designed Marrow Bridge?"
POINT = {"text": "Marrow Bridge was designed by Ilse Brandvik.", "score": 90, "reports": [1, 2, 3]}
WRONG = [{"text": "Dragons guard every valley.", "points": [1]}]


@pytest.mark.parametrize(
    ("said", "enough", "told"),
    [
        ("", True, "no sentence of the answer is supported by the documents"),
        ("the year", True, "the year"),
        ("", False, "the reports do not contain the answer"),
        ("the year", False, "the year"),
    ],
)
async def test_what_a_summing_up_lacks_is_told(
    valley: KnowledgeBase, said: str, enough: bool, told: str
) -> None:
    await valley.builder.make_tree_manager().build(["leiden"])
    joined = {"enough": enough, "sentences": WRONG, "missing": said}

    def script(messages: list[dict[str, Any]]) -> str:
        shown = messages[-1]["content"]
        if "[[points" in shown or "cannot be used" in shown:
            return json.dumps(joined)
        return json.dumps({"points": [POINT] if "Brandvik" in shown else []})

    answer = await asking(valley)(script, ASKED, recipe="msgraphrag-global", mode="reject")
    assert answer.verdict == "refused"
    assert answer.missing == told
