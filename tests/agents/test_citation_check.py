"""Support by meaning, prompts in both languages, and questions in Chinese."""

import inspect
from typing import Any

import pytest
from agent_asking import asking

from clew.agents import baselines, graphsearch, rograg, youtu
from clew.agents import conversation as converse
from clew.agents import run_logic as logic_run
from clew.agents.answering import read as reading
from clew.agents.answering import write as written
from clew.agents.citing import check as checking
from clew.agents.citing.support import contains_same_names
from clew.agents.core.confidence import save_models
from clew.agents.planning import model_plan as planning
from clew.engine import KnowledgeBase
from clew.llm.prompt import Prompt
from clew.testing.fakes import AgentScript
from clew.testing.word_reader import CONFIDENCE
from clew.types import Passage
from conftest import document, stream

ROOMS = (baselines, converse, graphsearch, logic_run, planning, reading, rograg, written, youtu)
PROMPTS = {
    prompt.name: prompt
    for room in ROOMS
    for _, prompt in inspect.getmembers(room, lambda it: isinstance(it, Prompt))
}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", sorted(PROMPTS))
def test_every_prompt_takes_its_inputs_in_both_languages(name: str, language: str) -> None:
    page = PROMPTS[name].template
    assert "zh" in page.languages()
    turns = page.render({key: f"<{key}>" for key in page.needs}, language)
    assert turns[0].role == "system"
    for key in page.needs:
        assert f"<{key}>" in turns[-1].content
    assert turns[-2].role == "assistant"  # a worked example stands before the question


def test_other_words_must_keep_names_and_numbers() -> None:
    passage = Passage("c", "doc", "Ilse Brandvik", 1.0, "", 0, 0)
    quote = "She passed away in Vessen in 1921."
    assert contains_same_names("Ilse Brandvik died in Vessen in 1921.", passage, quote)
    assert not contains_same_names("Ilse Brandvik died in Marn in 1921.", passage, quote)
    assert not contains_same_names("Ilse Brandvik died in Vessen in 1922.", passage, quote)


async def test_a_sentence_in_other_words_is_cited_by_meaning(valley: KnowledgeBase) -> None:
    async with valley.store.snapshot() as snapshot:
        ctx = await valley.context(snapshot, "Where was she born?")
        text = "She was born in Hallowmere and died in Vessen in 1921."
        passage = Passage("c", "ilse", "Ilse Brandvik", 1.0, text, 10, 10 + len(text))
        found = await checking.find_paraphrase(
            ctx, "She was born and died, born in Hallowmere.", [passage]
        )
        assert found is not None
        assert (found.start, found.quote) == (10, text)
        assert await checking.find_paraphrase(ctx, "The Moon is made of cheese.", [passage]) is None
        assert await checking.find_paraphrase(ctx, "Anything.", []) is None


async def test_where_it_stands_and_small_talk_claim_nothing(valley: KnowledgeBase) -> None:
    text = "The Marrow Bridge is of stone. It was designed by the engineer Ilse Brandvik in 1887."
    passage = Passage("c", "marrow", "Marrow Bridge", 1.0, text, 0, len(text))
    said = (
        "Well, let me think. In the passage, Ilse Brandvik designed the Marrow Bridge. According "
        "to the text, Ilse Brandvik sold the Marrow Bridge. I hope this helps!"
    )
    async with valley.store.snapshot() as snapshot:
        ctx = await valley.context(snapshot, "Who designed the Marrow Bridge?")
        found = await checking.cite_sentences(ctx, [(said, [1])], [passage])
        lines, cited = checking.mark_sentences(ctx, found, "open")
    assert [line[:11] for line in lines] == ["In the pass", "According t"]
    assert lines[0].endswith("[1]") and "not supported" in lines[1]
    assert [one.quote[:15] for one in cited] == ["It was designed"]


async def test_a_chinese_question_is_planned_read_and_cited(base: KnowledgeBase) -> None:
    pages = [
        document("bridge", "马罗桥是一座石桥。它由伊尔莎设计。", "马罗桥"),
        document("ilse", "伊尔莎是一位工程师。她生于哈洛镇。", "伊尔莎"),
        document("other", "佩尔镇是一个集镇。", "佩尔镇"),
    ]
    await base.take(stream(pages))
    await save_models(base.store, CONFIDENCE)

    def reads(message: str) -> dict[str, Any]:
        asked = message.rsplit("问题：", 1)[-1]
        if "设计者是谁" in asked:
            return {"quote": "它由伊尔莎设计。", "source": 1, "answer": "伊尔莎"}
        if "伊尔莎的出生地" in asked:
            return {"quote": "她生于哈洛镇。", "source": 1, "answer": "哈洛镇"}
        return {"quote": "", "source": 0, "answer": "unknown"}

    told = AgentScript(
        {
            "read": reads,
            "refine_read": reads,
            "draft": {"answer": "哈洛镇"},
            "verify": {"verdict": "ACCEPT"},
        }
    )
    for recipe in ("steps+clew", "graphsearch+clew"):
        answer = await asking(base)(
            told, "马罗桥的设计者的出生地是哪里？", recipe=recipe, mode="reject"
        )
        assert (answer.verdict, answer.candidate) == ("answered", "哈洛镇")
        assert {c.quote for c in answer.citations} >= {"她生于哈洛镇。"}
