"""Map-reduce: what a refusal names as missing, the short answer, and what is cited."""

import json
from typing import Any

import pytest
from agent_asking import asking

from clew.engine import KnowledgeBase

ASKED = "Who designed Marrow Bridge?"
POINT = {"text": "Marrow Bridge was designed by Ilse Brandvik.", "score": 90, "reports": [1, 2, 3]}
UNSUPPORTED = [{"text": "Dragons guard every valley.", "points": [1]}]


@pytest.mark.parametrize(
    ("missing", "enough", "expected"),
    [
        ("", True, "no sentence of the answer is supported by the documents"),
        ("the year", True, "the year"),
        ("", False, "the reports do not contain the answer"),
        ("the year", False, "the year"),
    ],
)
async def test_a_refusal_names_what_is_missing(
    valley: KnowledgeBase, missing: str, enough: bool, expected: str
) -> None:
    await valley.builder.make_tree_manager().build(["leiden"])
    joined = {"enough": enough, "sentences": UNSUPPORTED, "missing": missing}

    def script(messages: list[dict[str, Any]]) -> str:
        shown = messages[-1]["content"]
        if "[[points" in shown or "cannot be used" in shown:
            return json.dumps(joined)
        return json.dumps({"points": [POINT] if "Brandvik" in shown else []})

    answer = await asking(valley)(script, ASKED, recipe="msgraphrag-global", mode="reject")
    assert answer.verdict == "refused"
    assert answer.missing == expected


async def test_an_answer_is_named_and_cites_the_page_that_says_it(valley: KnowledgeBase) -> None:
    await valley.builder.make_tree_manager().build(["leiden"])
    sentences = [{"text": str(POINT["text"]), "points": [1]}]
    joined = {"enough": True, "sentences": sentences, "short": "Ilse Brandvik"}

    def script(messages: list[dict[str, Any]]) -> str:
        shown = messages[-1]["content"]
        return json.dumps(joined if "[[points" in shown else {"points": [POINT]})

    answer = await asking(valley)(script, ASKED, recipe="msgraphrag-global", mode="reject")
    assert (answer.candidate, [cited.doc for cited in answer.citations]) == (
        "Ilse Brandvik",
        ["bridge"],
    )
