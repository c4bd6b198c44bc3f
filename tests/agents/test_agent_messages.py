"""What an agent tells its model between two calls, and what it looks up when a plan fails."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agent_asking import ASKED, CONCLUDED, asking, reads

from clew.agents.graph_r1_protocol import FINAL_ANSWER_REQUEST, FORMAT_REMINDER
from clew.context import TraceStep
from clew.engine import KnowledgeBase
from clew.llm.embed import EmbedRole, Vectors
from clew.testing.fakes import AgentScript, HashEmbed

ODD = "Tell me the birth town of the person behind Marrow Bridge, please."


def named(trace: tuple[TraceStep, ...], name: str) -> list[TraceStep]:
    return [
        found
        for step in trace
        for found in ([step] if step.step == name else []) + named(step.steps, name)
    ]


async def test_a_step_that_is_none_is_nudged_and_a_query_is_answered(
    valley: KnowledgeBase,
) -> None:
    said = [
        "I wonder.",
        "<think>first</think><query>Where was Ilse Brandvik born?</query>",
        "<think>now I know</think><answer>Hallowmere</answer>",
    ]
    heard: list[list[dict[str, Any]]] = []

    def script(messages: list[dict[str, Any]]) -> str:
        heard.append(messages)
        return said[len(heard) - 1] if len(heard) <= len(said) else "{}"

    answer = await asking(valley)(script, ASKED, recipe="graph-r1+clew")
    assert answer.candidate == "Hallowmere"
    [second, third] = heard[1:3]
    assert [one["role"] for one in second[-2:]] == ["assistant", "user"]
    assert (second[-2]["content"], second[-1]["content"]) == ("I wonder.", FORMAT_REMINDER)
    assert third[-1]["role"] == "user"
    assert third[-1]["content"].startswith("<knowledge>")
    assert "born in Hallowmere" in third[-1]["content"]


async def test_after_the_last_turn_the_answer_is_demanded(valley: KnowledgeBase) -> None:
    heard: list[list[dict[str, Any]]] = []

    def script(messages: list[dict[str, Any]]) -> str:
        heard.append(messages)
        return f"<think>again</think><query>Who lived in town {len(heard)}?</query>"

    await asking(valley)(script, ASKED, recipe="graph-r1+clew")
    told = [one["content"] for one in heard[5] if one["role"] == "user"]
    assert [FINAL_ANSWER_REQUEST in one for one in told] == [
        False,
        False,
        False,
        False,
        False,
        True,
    ]


async def test_youtu_reflects_on_what_was_noted(valley: KnowledgeBase) -> None:
    shown: list[str] = []

    def reflect(message: str) -> dict[str, Any]:
        shown.append(message)
        return {"action": "answer", "text": "Hallowmere"}

    told = AgentScript(
        {
            "involved": {"parts": [{"question": "Where was Ilse Brandvik born?", "types": []}]},
            "read": reads,
            "reflect": reflect,
            "conclude": CONCLUDED,
            "answer": CONCLUDED,
        }
    )
    answer = await asking(valley)(told, ODD, recipe="youtu+clew")
    assert answer.verdict == "answered"
    assert "Where was Ilse Brandvik born? Hallowmere" in shown[0]
    assert "(none)" not in shown[0]


async def test_where_a_plan_leaves_a_gap_the_whole_question_is_looked_up(
    valley: KnowledgeBase,
) -> None:
    nothing = {"quote": "", "source": 0, "answer": "unknown"}
    told = AgentScript({"read": nothing, "answer": CONCLUDED, "conclude": CONCLUDED})
    asked = "Who was born earlier, Ilse Brandvik or Clara Lindqvist?"
    answer = await asking(valley)(told, asked, recipe="steps+clew")
    looked = [step.input for step in named(answer.trace, "retrieve")]
    assert looked[-1] == asked
    assert len(looked) > 1
    assert answer.evidence.chunks


class Slow(HashEmbed):
    """An embedder during whose work others go on, as a real one's do."""

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        await asyncio.sleep(0.01)
        return await super().__call__(texts, role=role)


async def test_a_question_waits_for_the_answer_it_needs(valley: KnowledgeBase) -> None:
    valley.embed = Slow()
    told = AgentScript({"read": reads, "answer": CONCLUDED, "conclude": CONCLUDED})
    answer = await asking(valley)(told, ASKED, recipe="steps+clew")
    asked = [step.input for step in named(answer.trace, "sub-question")]
    assert asked == ["Who is the designer of Marrow Bridge?", "Where was Ilse Brandvik born?"]
    assert answer.candidate == "Hallowmere"
