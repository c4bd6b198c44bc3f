"""Each row of an ablation does something else than the row it is compared with."""

import json
from typing import Any

import pytest
from agent_asking import ASKED, asking
from test_every_agent import good

from clew.engine import KnowledgeBase
from clew.types import Extraction, RawEntity, RawFact
from conftest import VALLEY, OpenFilled, one_in_three, stream

FULL = "graphsearch-qd-cr-qg-ld-ev-qe"
ROWS = [
    ("graphsearch-none", "graphsearch-qd-cr"),
    ("graphsearch-qd-cr", "graphsearch-qd-cr-qg"),
    ("graphsearch-qd-cr-qg", "graphsearch-qd-cr-qg-ld"),
    ("graphsearch-qd-cr-qg-ld", FULL),
    ("graphsearch-semantic", FULL),
    ("graphsearch-relational", FULL),
    ("graphsearch-semantic", "graphsearch-relational"),
    ("graphsearch-released", FULL),
    ("youtu-no-schema", "youtu-by-model"),
    ("youtu-no-agent", "youtu-by-model"),
    ("rograg-result", "rograg-argument"),
    ("rograg-unchecked", "rograg-argument"),
    ("rograg-logic", "rograg-argument"),
    (FULL, "graphsearch"),
    ("youtu-by-model", "youtu"),
]


async def fill_typed(base: KnowledgeBase) -> None:
    """The valley with types."""
    types = {"Marrow Bridge": "bridge", "Ilse Brandvik": "person", "Hallowmere": "town"}

    async def extract(document: Any, chunks: Any, /) -> list[Extraction]:
        found = []
        for chunk in chunks:
            here = [name for name in types if name in chunk.text]
            facts = [
                RawFact(
                    chunk.text,
                    tuple((name, "member") for name in here),
                    span=(chunk.start, chunk.start + len(chunk.text)),
                )
            ]
            entities = tuple(RawEntity(name, types[name]) for name in here)
            found.append(Extraction(entities, tuple(facts) if here else ()))
        return found

    await base.take(stream(VALLEY), extract)


@pytest.fixture
async def typed(open_filled: OpenFilled) -> KnowledgeBase:
    """The valley with types."""
    return await open_filled(fill_typed)


async def said_to_the_model(base: KnowledgeBase, recipe: str) -> list[str]:
    """Everything a good model was asked, whatever the order of what runs side by side."""
    told, heard = good(), []

    def say(messages: list[dict[str, Any]]) -> str:
        heard.append(json.dumps(messages, ensure_ascii=False))
        return told(messages)

    compared = "Who was born first, Ilse Brandvik or Anton Reeve?"
    for question in (ASKED, compared):
        await asking(base)(say, question, recipe=f"{recipe}+clew")
    return sorted(heard)


@pytest.mark.parametrize(("row", "beside"), one_in_three(ROWS))
async def test_a_switch_matters_also_where_rules_could_plan(
    typed: KnowledgeBase, row: str, beside: str
) -> None:
    assert await said_to_the_model(typed, row) != await said_to_the_model(typed, beside)


@pytest.mark.parametrize("recipe", ["youtu-no-schema", "youtu-no-agent", "graphsearch-qd-cr"])
async def test_without_a_model_rules_still_plan(valley: KnowledgeBase, recipe: str) -> None:
    answer = await valley.ask(ASKED, recipe=f"{recipe}+clew")
    assert answer.verdict == "answered"
    assert any(step.step == "plan by rules" for step in answer.trace)
