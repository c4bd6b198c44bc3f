"""With a model a question that wants breadth is told at least what is quoted without one."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agent_asking import asking
from test_accounts_of_topics import PAGES

from clew.agents.answering.extractive import QUOTED_NOTE
from clew.agents.answering.write import NO_REPLY, TOO_LONG
from clew.agents.answering.write_account import ADDED_NOTE
from clew.agents.ask import AskOptions
from clew.agents.messages import strip_marks
from clew.agents.base import Answer
from clew.config import Settings
from clew.context import AnswerDelta
from clew.engine import KnowledgeBase
from clew.llm.chat import ContextTooLong
from clew.testing.fakes import AgentScript
from clew.testing.hashed_kb import open_hashed
from conftest import one_in_three

ASKED = "Summarize the history of the roof"
RECIPES = ("clew", "steps+naive", "reader+naive", "reader+bm25")
POINT = "The survey by Pelham found rot in two beams of the roof."
INVENTED = "The roof was painted gold by the Duke of Verendia in 1822."
FACTS = ("rot in two beams", "Croft Timber was engaged", "15,900 pounds", "12 June", "third beam")


@pytest.fixture
async def hall(tmp_path: Path) -> AsyncIterator[KnowledgeBase]:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / name for name in PAGES])
    yield base
    await base.close()


def says(*points: tuple[str, list[int]], short: str = "", enough: bool = True) -> Any:
    """A model that gives these points, and the same short answer to anything else."""
    sentences = [{"text": text, "sources": sources} for text, sources in points]
    written = {"enough": enough, "sentences": sentences, "short": short, "missing": ""}
    brief = {**written, "sentences": sentences[:1], "short": "Pelham"}
    return AgentScript({"account": written, "answer": brief, "answer_graph": brief})


async def ask(hall: KnowledgeBase, script: Any, question: str = ASKED, **how: Any) -> Answer:
    return await asking(hall)(script, question, k=how.pop("k", 8), **how)


def copies(messages: list[dict[str, Any]]) -> str:
    """A model that repeats the last sentence of each passage."""
    shown = re.findall(r"^\[(\d+)\] (.*)$", messages[-1]["content"], re.MULTILINE)
    sentences = [{"text": f"{t.split('. ')[-1]}", "sources": [int(n)]} for n, t in shown]
    return json.dumps({"enough": True, "sentences": sentences, "short": "", "missing": ""})


def check_numbers(answer: Answer) -> None:
    marks = {int(n) for n in re.findall(r"\[(\d+)\]", answer.answer)}
    assert marks == set(range(1, len(answer.citations) + 1))


@pytest.mark.parametrize("recipe", RECIPES)
async def test_points_come_first_and_quotes_add_the_rest(hall: KnowledgeBase, recipe: str) -> None:
    script = says((POINT, [1]), (INVENTED, [2]))
    answer = await ask(hall, script, recipe=recipe)
    assert (answer.verdict, answer.kind, answer.note) == ("answered", "account", ADDED_NOTE)
    assert answer.answer.startswith(f"- {POINT} [1]")
    assert "Verendia" not in answer.answer
    assert all(fact in answer.answer for fact in FACTS)
    assert answer.answer.count("rot in two beams") == 1  # the point tells it
    check_numbers(answer)


@pytest.mark.parametrize("recipe", ["clew", "reader+naive"])
@pytest.mark.parametrize(
    "model",
    one_in_three(
        [
            copies,
            says((POINT, [99]), (INVENTED, [1])),
            f"They say: {POINT} [1]",
            "",
            "la",
            "{",
            "[]",
        ]
    ),
    ids=["copies", "wrong numbers", "prose", "nothing", "a word", "half", "no object"],
)
async def test_no_model_takes_anything_away(hall: KnowledgeBase, model: Any, recipe: str) -> None:
    quoted = await hall.ask(ASKED, recipe=recipe, k=8)
    answer = await ask(hall, (lambda _: model) if isinstance(model, str) else model, recipe=recipe)
    assert answer.kind == "account" and answer.confidence == quoted.confidence
    before, after = strip_marks(quoted.answer), strip_marks(answer.answer)
    assert set(re.findall(r"[\w,]+", before)) <= set(re.findall(r"[\w,]+", after))
    check_numbers(answer)


@pytest.mark.parametrize("recipe", ["clew", "reader+naive"])
async def test_an_unusable_reply_leaves_the_quotes(hall: KnowledgeBase, recipe: str) -> None:
    quoted = await hall.ask(ASKED, recipe=recipe, k=8)
    answer = await ask(hall, lambda _: "la", recipe=recipe)
    assert answer.answer == quoted.answer
    assert answer.note == f"{NO_REPLY}: {QUOTED_NOTE}"


async def test_a_window_that_is_too_small_leaves_the_quotes(hall: KnowledgeBase) -> None:
    def refuse(_: Any) -> str:
        raise ContextTooLong("the prompt has 4156 tokens, too many", status=400)

    quoted = await hall.ask(ASKED)
    answer = await ask(hall, refuse)
    assert answer.answer == quoted.answer
    assert answer.note.startswith(TOO_LONG) and "4156 tokens" in answer.note


@pytest.mark.parametrize("recipe", ["clew", "reader+naive"])
async def test_a_model_is_shown_what_is_about_the_topic(hall: KnowledgeBase, recipe: str) -> None:
    options = AskOptions(record_prompts=True)
    answer = await ask(hall, copies, recipe=recipe, manner=options)
    [shown] = answer.prompts
    assert "Croft Timber" in shown.messages[-1].content
    assert "bicycle" not in shown.messages[-1].content and "canteen" not in answer.answer


async def test_points_that_repeat_each_other_are_told_once(hall: KnowledgeBase) -> None:
    answer = await ask(hall, says((POINT, [1]), (POINT, [1]), ("Pelham found rot in beams.", [1])))
    assert answer.answer.count("Pelham") == 1


async def test_a_list_keeps_its_short_form_and_its_table(hall: KnowledgeBase) -> None:
    script = says(("E1 means that the sensor is broken.", [1]), short="E1, E2, E4")
    answer = await ask(hall, script, "List all error messages")
    assert all(code in answer.answer for code in ("E1", "E2", "E4"))


async def test_what_the_documents_do_not_tell_is_no_account(hall: KnowledgeBase) -> None:
    script = says(short="", enough=False)
    answer = await ask(hall, script, "Summarize the history of the airport", mode="reject")
    assert answer.verdict == "refused"


async def test_points_are_streamed(hall: KnowledgeBase) -> None:
    told: list[str] = []
    options = AskOptions(
        on_event=lambda event: told.append(event.text) if isinstance(event, AnswerDelta) else None
    )
    await ask(hall, says((POINT, [1])), manner=options)
    assert POINT in "".join(told)


async def test_an_agent_that_answers_in_a_few_words_gives_an_account(hall: KnowledgeBase) -> None:
    script = AgentScript(
        {
            "react": {"thought": "", "action": "finish", "input": "rot in two beams"},
            "account": {"enough": True, "sentences": [], "short": "", "missing": ""},
        }
    )
    answer = await ask(hall, script, recipe="react+naive")
    assert answer.kind == "account"
    assert all(fact in answer.answer for fact in FACTS)
