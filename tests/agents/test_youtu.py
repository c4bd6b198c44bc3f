"""Youtu-GraphRAG's agent: schema, type filter, what is read, reflection, ablations."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from agent_asking import HALLOWMERE, Ask, asking

from clew.agents.ask import AskOptions
from clew.agents.notebook import format_numbers
from clew.agents.youtu import Youtu, load_schema
from clew.engine import KnowledgeBase
from clew.llm.budget import UsageLimits
from clew.recipes.agents import AGENTS
from clew.retrieve.schema_filter import SchemaFilter, SchemaNames
from clew.testing.fakes import AgentScript, Messages, prompt_name
from clew.types import Chunk, Document, Extraction, Found, Hit, RawEntity, RawFact
from conftest import document, stream

THREE = [
    "Who designed Marrow Bridge?",
    "Where was the designer of Marrow Bridge born?",
    "What is Hallowmere?",
]


class Chat(AgentScript):
    """Replies by the name of the prompt; keeps what each prompt was shown."""

    def __init__(self, **replies: Any) -> None:
        super().__init__(
            {
                "decompose_by_schema": {"sub_questions": THREE},
                "reflect": [
                    {
                        "reasoning": "The designer is known, her town is not.",
                        "action": "query",
                        "text": "Where was Ilse Brandvik born?",
                    },
                    {"reasoning": "It is said now.", "action": "answer", "text": "Hallowmere"},
                ],
                "answer": HALLOWMERE,
                **replies,
            }
        )
        self.shown: dict[str, list[str]] = {}

    def __call__(self, messages: Messages) -> str:
        self.shown.setdefault(prompt_name(messages), []).append(str(messages[-1]["content"]))
        return super().__call__(messages)


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


async def test_it_retrieves_for_every_sub_question_then_reasons_and_queries(ask: Ask) -> None:
    chat = Chat()
    answer = await ask(chat, recipe="youtu")
    asked = [step.input for step in answer.trace if step.step == "look up"]
    assert asked == [*THREE, "Where was Ilse Brandvik born?"]
    first, second = chat.shown["reflect"]
    for number, question in enumerate(THREE, start=1):
        assert re.search(rf"#{number} {re.escape(question)} \(evidence: \d", first)
    assert "Further queries that can be made: 4" in first
    assert "The designer is known, her town is not." in second
    assert "#4 Where was Ilse Brandvik born?" in second
    (said,) = chat.shown["answer"]
    assert "So the answer is: Hallowmere" in said
    assert answer.candidate == "Hallowmere"
    assert answer.citations


async def test_what_is_read_keeps_its_numbers(ask: Ask) -> None:
    chat = Chat()
    await ask(chat, recipe="youtu")
    first, second = (
        dict(re.findall(r"^\[(\d+)\] (.*)$", said, re.M)) for said in chat.shown["reflect"]
    )
    assert first
    assert first.items() <= second.items()


async def test_the_schema_is_shown_and_what_it_does_not_have_filters_nothing(ask: Ask) -> None:
    chat = Chat(decompose_by_schema={"sub_questions": THREE[:1], "types": ["dragon"]})
    answer = await ask(chat, recipe="youtu")
    (said,) = chat.shown["decompose_by_schema"]
    assert re.search(r"entity types: \w+", said)
    assert answer.evidence.chunks


async def test_the_involved_types_filter_what_is_read(valley: KnowledgeBase) -> None:
    async with valley.store.snapshot() as now:
        ctx = await valley.context(now, "?")
        held = await now.entities(ctx.view.keys("entity").tolist())
    types = {entity.name: entity.type for entity in held.values()}

    async def read(involved: list[str]) -> set[str]:
        chat = Chat(decompose_by_schema={"sub_questions": THREE[:1], "types": involved})
        answer = await asking(valley)(chat, recipe="youtu-no-agent")
        return {types[one.name] for one in answer.evidence.entities}

    everything = await read([])
    assert len(everything) > 1
    assert await read([min(everything)]) == {min(everything)}


async def test_a_question_that_is_not_decomposed_stays_whole(ask: Ask) -> None:
    answer = await ask(Chat(decompose_by_schema="I would not."), recipe="youtu-no-agent")
    assert [step.input for step in answer.trace if step.step == "look up"] == [answer.question]
    assert answer.candidate == "Hallowmere"


async def test_reasoning_ends_after_the_last_step(ask: Ask) -> None:
    queries = [
        {"reasoning": "?", "action": "query", "text": f"What about part {n}?"} for n in range(9)
    ]
    chat = Chat(reflect=queries)
    answer = await ask(chat, recipe="youtu")
    assert chat.prompts.count("reflect") == Youtu().max_steps == 5
    assert sum(step.step == "look up" for step in answer.trace) == len(THREE) + 4
    assert answer.candidate == "Hallowmere"


@pytest.mark.parametrize("text", [THREE[0].upper(), " "])
async def test_a_query_that_was_made_before_ends_the_reasoning(ask: Ask, text: str) -> None:
    chat = Chat(reflect={"reasoning": "?", "action": "query", "text": text})
    await ask(chat, recipe="youtu")
    assert chat.prompts.count("reflect") == 1
    assert chat.prompts.count("answer") == 1


async def test_a_step_that_cannot_be_read_leads_to_the_answer(ask: Ask) -> None:
    answer = await ask(Chat(reflect="Hm."), recipe="youtu")
    assert answer.candidate == "Hallowmere"
    assert not answer.model_error


async def test_a_spent_budget_ends_the_work(ask: Ask) -> None:
    manner = AskOptions(limits=UsageLimits(calls=2))
    answer = await ask(Chat(), recipe="youtu", manner=manner)
    assert not answer.complete
    assert answer.usage.calls <= 2


async def test_without_the_agent_nothing_is_reflected_on(ask: Ask) -> None:
    chat = Chat()
    await ask(chat, recipe="youtu-no-agent")
    assert "reflect" not in chat.prompts
    assert all(question in chat.shown["answer"][0] for question in THREE)


async def test_without_the_schema_none_is_shown(ask: Ask) -> None:
    chat = Chat(decompose_by_schema={"sub_questions": THREE, "types": ["person"]})
    await ask(chat, recipe="youtu-no-schema")
    assert "entity types" not in chat.shown["decompose_by_schema"][0]


def test_each_row_of_the_ablation_differs_in_one_field() -> None:
    rows = {"no-schema": "schema", "no-agent": "reflection", "no-community": "communities"}
    for row, name in rows.items():
        assert AGENTS[f"youtu-{row}"].agent == replace(Youtu(), **{name: False})


@dataclass(frozen=True)
class OneExtraction:
    """Extracts the same from every chunk."""

    found: Extraction

    async def __call__(self, document: Document, chunks: Sequence[Chunk]) -> list[Extraction]:
        return [self.found for _ in chunks]


NORR = RawEntity("Norr", "tower", "A tower by the sea.", attributes={"height": "9 m"})
SUND = RawEntity("Sund", "tower", attributes={"height": "7 m", "painted": "red"})
OTTO = RawEntity("Otto", "king", "A king.", attributes={"crowned": "1180"})
BUILT = RawFact("Otto built Norr", (("Otto", "head"), ("Norr", "tail")), "built")


async def test_attributes_and_communities_are_shown_and_read(base: KnowledgeBase) -> None:
    found = Extraction((NORR, SUND, OTTO), (BUILT,))
    await base.take(stream([document("d", "Otto built Norr. Sund is red.")]), OneExtraction(found))
    await base.builder.make_tree_manager().build(["dual"])
    question = "How high is Norr?"
    chat = Chat(decompose_by_schema={"sub_questions": [question], "attributes": ["height"]})
    await asking(base)(chat, question, recipe="youtu")
    assert "attributes: height," in chat.shown["decompose_by_schema"][0]
    read = chat.shown["reflect"][0]
    assert "height: 9 m" in read
    assert "Topics:" in read
    for row in ("youtu-no-community", "youtu-no-community+youtu"):
        without = Chat()
        await asking(base)(without, question, recipe=row)
        assert "Topics:" not in without.shown["answer"][0]


async def test_an_empty_knowledge_base_has_no_types(base: KnowledgeBase) -> None:
    async with base.store.snapshot() as now:
        assert not await load_schema(await base.context(now, "?"))


async def test_only_what_fits_the_involved_types_is_kept(valley: KnowledgeBase) -> None:
    async with valley.store.snapshot() as now:
        ctx = await valley.context(now, "?")
        keys = ctx.view.keys("entity").tolist()
        held = await now.entities(keys)
        members = ctx.view.links("fact_entity")
        everything = Found(
            chunks=tuple(Hit(at, 1.0, "all") for at in range(ctx.view.count("chunk"))),
            entities=tuple(Hit(at, 1.0, "all") for at in range(len(keys))),
            facts=tuple(Hit(at, 1.0, "all") for at in range(ctx.view.count("fact"))),
        )
        rarest = (await load_schema(ctx)).types[-1]
        wanted = {at for at, key in enumerate(keys) if held[key].type == rarest}
        kept = await SchemaFilter(SchemaNames((rarest,)))(ctx, everything)
        assert {hit.at for hit in kept.entities} == wanted
        assert 0 < len(kept.facts) < ctx.view.count("fact")
        assert all(wanted & set(members.row(hit.at).tolist()) for hit in kept.facts)
        assert 0 < len(kept.chunks) < ctx.view.count("chunk")
        # An unknown type filters nothing.
        every = await SchemaFilter(SchemaNames(("no such type",)))(ctx, everything)
        assert replace(every, chunks=everything.chunks) == everything


def test_the_involved_names_are_bounded_by_the_schema() -> None:
    schema = SchemaNames(("person", "place"), ("born in",), ("occupation",))
    chosen = schema.select(["Person", "dragon"], ["bornIn"], ["height"])
    assert chosen == SchemaNames(("person",), ("born in",), ())


def test_numbers_are_written_in_short() -> None:
    assert format_numbers([3, 1, 2, 7]) == "1-3, 7"
    assert format_numbers([]) == "none"
