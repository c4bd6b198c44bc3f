"""Keywords, question entities and the recognition filter: with a model, and without."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from plain_graph import after

from clew.config import ModelSettings
from clew.engine import KnowledgeBase
from clew.llm.chat import Request
from clew.models import Models
from clew.retrieve.linking.fact_filter import FACT_FILTER_PROMPT, Recognise
from clew.retrieve.linking.keywords import (
    KEYWORDS_PROMPT,
    QUESTION_ENTITIES_PROMPT,
    Keywords,
    QuestionEntities,
)
from clew.retrieve.lookup import NearFacts
from clew.retrieve.step import Step
from clew.testing.fakes import ScriptedChat
from clew.types import Found

ASKED = "Where was the designer of Marrow Bridge born?"


async def told(
    base: KnowledgeBase, say: str | Callable[[Request], str], *steps: Step, question: str = ASKED
) -> tuple[Found, ScriptedChat]:
    """What is found when a model says so, and the model that was asked."""
    chat = ScriptedChat(say if callable(say) else lambda _: say)
    models = Models(ModelSettings(model="m"), base.store)
    models.chats = dict.fromkeys(("extract", "plan", "answer", "judge"), chat)
    base.models = models
    return await after(base, question, *steps), chat


@pytest.mark.parametrize(
    "prompt", [KEYWORDS_PROMPT, QUESTION_ENTITIES_PROMPT, FACT_FILTER_PROMPT], ids=lambda p: p.name
)
def test_prompts_have_their_inputs_in_both_languages(prompt: Any) -> None:
    for language in ("en", "zh"):
        turns = prompt.template.render(dict.fromkeys(prompt.needs, "X y"), language)
        assert [turn.role for turn in turns] == ["system", "user", "assistant", "user"]
        assert "X y" in turns[-1].content
        example = json.loads(turns[2].content)
        assert prompt.out.model_validate(example)
    assert prompt.template.languages() == ["en", "zh"]


async def test_a_model_gives_both_levels_in_one_call(valley: KnowledgeBase) -> None:
    said = json.dumps({"names": ["Marrow Bridge", " "], "topics": ["designer", "birthplace"]})
    found, chat = await told(valley, said, Keywords())
    assert found.names == ("Marrow Bridge",)
    assert found.topics == ("designer", "birthplace")
    assert len(chat.requests) == 1
    assert ASKED in chat.requests[0].messages[-1].content


async def test_without_a_model_the_names_are_taken_out_of_the_question(
    valley: KnowledgeBase,
) -> None:
    found = await after(valley, ASKED, Keywords())
    assert found.names == ("Marrow Bridge",)
    assert found.topics == ("Where was the designer of born?",)
    plain = await after(valley, "what is a market town?", Keywords())
    assert plain.names == ()


@pytest.mark.parametrize("said", ["", "I do not know.", '{"names": 3}', "{"])
async def test_what_cannot_be_read_counts_as_no_model(valley: KnowledgeBase, said: str) -> None:
    found, _ = await told(valley, said, Keywords())
    assert found.names == ("Marrow Bridge",)
    found, _ = await told(valley, said, QuestionEntities())
    assert found.names == ("Marrow Bridge",)


async def test_entities_and_the_types_of_the_answer(valley: KnowledgeBase) -> None:
    said = json.dumps({"entities": ["Marrow Bridge"], "answer_types": ["place"]})
    found, chat = await told(valley, said, QuestionEntities())
    assert (found.names, found.topics) == (("Marrow Bridge",), ("place",))
    chinese, chat = await told(valley, said, QuestionEntities(), question="石桥由谁设计？")
    assert "阅读问题" in chat.requests[0].messages[0].content


def numbers(*keep: int) -> str:
    return json.dumps({"keep": list(keep)})


async def test_the_filter_keeps_what_the_model_picks(valley: KnowledgeBase) -> None:
    shown, _ = await told(valley, numbers(), NearFacts("question", top_k=4))
    kept, chat = await told(
        valley, numbers(2, 4, 9, 0), NearFacts("question", top_k=4), Recognise()
    )
    assert kept.facts == (shown.facts[1], shown.facts[3])
    assert "[4]" in chat.requests[0].messages[-1].content
    none, _ = await told(valley, numbers(), NearFacts("question", top_k=4), Recognise())
    assert none.facts == ()
    unread, _ = await told(valley, "?", NearFacts("question", top_k=4), Recognise())
    assert unread.facts == shown.facts


async def test_without_a_model_the_facts_of_what_is_named_stay(valley: KnowledgeBase) -> None:
    found = await after(valley, ASKED, NearFacts("question", top_k=8), Recognise())
    results = await valley.search(ASKED, recipe="naive", k=1)
    assert results.evidence.chunks[0].doc == "bridge"
    async with valley.store.snapshot() as now:
        view = (await valley.context(now, ASKED)).view
        [named] = view.find_by_own_name(["Marrow Bridge"])
        members = view.links("fact_entity")
        assert found.facts
        assert all(set(named.tolist()) & set(members.row(h.at).tolist()) for h in found.facts)


async def test_given_entities_are_not_asked_for(valley: KnowledgeBase) -> None:
    chat = ScriptedChat([])
    models = Models(ModelSettings(model="m"), valley.store)
    models.chats = dict.fromkeys(("extract", "plan", "answer", "judge"), chat)
    valley.models = models
    async with valley.store.snapshot() as now:
        from dataclasses import replace

        ctx = replace(await valley.context(now, ASKED), given_entities=("Hallowmere",))
        found = await QuestionEntities()(ctx, Found())
    assert found.names == ("Hallowmere",) and chat.requests == []


async def test_hipporag2_asks_once_and_falls_back_to_meaning(valley: KnowledgeBase) -> None:
    asked: list[Sequence[Any]] = []

    def none(request: Request) -> str:
        asked.append(request.messages)
        return numbers()

    chat = ScriptedChat(none)
    models = Models(ModelSettings(model="m"), valley.store)
    models.chats = dict.fromkeys(("extract", "plan", "answer", "judge"), chat)
    valley.models = models
    results = await valley.search(ASKED, recipe="hipporag2")
    assert len(asked) == 1
    assert {passage.by for passage in results.evidence.chunks} == {"dense"}
