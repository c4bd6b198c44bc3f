"""Messages that agents send to the model between calls, and retrieval after a failed plan."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agent_asking import ASKED, CONCLUDED, asking, reads, refines

from clew.agents.graph_r1_protocol import FINAL_ANSWER_REQUEST, FORMAT_REMINDER
from clew.context import TraceStep
from clew.engine import KnowledgeBase
from clew.llm.embed import EmbedRole, Vectors
from clew.testing.fakes import AgentScript, HashEmbed

ODD = "Tell me the birth town of the person behind Marrow Bridge, please."


def find_steps(trace: tuple[TraceStep, ...], name: str) -> list[TraceStep]:
    return [
        found
        for step in trace
        for found in ([step] if step.step == name else []) + find_steps(step.steps, name)
    ]


async def test_a_reply_without_a_tag_gets_a_reminder_and_a_query_gets_evidence(
    valley: KnowledgeBase,
) -> None:
    replies = [
        "I wonder.",
        "<think>first</think><query>Where was Ilse Brandvik born?</query>",
        "<think>now I know</think><answer>Hallowmere</answer>",
    ]
    requests: list[list[dict[str, Any]]] = []

    def script(messages: list[dict[str, Any]]) -> str:
        requests.append(messages)
        return replies[len(requests) - 1] if len(requests) <= len(replies) else "{}"

    answer = await asking(valley)(script, ASKED, recipe="graph-r1+clew")
    assert answer.candidate == "Hallowmere"
    [second, third] = requests[1:3]
    assert [one["role"] for one in second[-2:]] == ["assistant", "user"]
    assert (second[-2]["content"], second[-1]["content"]) == ("I wonder.", FORMAT_REMINDER)
    assert third[-1]["role"] == "user"
    assert third[-1]["content"].startswith("<knowledge>")
    assert "born in Hallowmere" in third[-1]["content"]


async def test_after_the_last_turn_the_final_answer_is_requested(valley: KnowledgeBase) -> None:
    requests: list[list[dict[str, Any]]] = []

    def script(messages: list[dict[str, Any]]) -> str:
        requests.append(messages)
        return f"<think>again</think><query>Who lived in town {len(requests)}?</query>"

    await asking(valley)(script, ASKED, recipe="graph-r1+clew")
    script = [one["content"] for one in requests[5] if one["role"] == "user"]
    assert [FINAL_ANSWER_REQUEST in one for one in script] == [
        False,
        False,
        False,
        False,
        False,
        True,
    ]


async def test_youtu_reflects_on_the_notes(valley: KnowledgeBase) -> None:
    shown: list[str] = []

    def reflect(message: str) -> dict[str, Any]:
        shown.append(message)
        return {"action": "answer", "text": "Hallowmere"}

    script = AgentScript(
        {
            "involved": {"parts": [{"question": "Where was Ilse Brandvik born?", "types": []}]},
            "read": reads,
            "refine_read": refines,
            "reflect": reflect,
            "conclude": CONCLUDED,
            "answer": CONCLUDED,
        }
    )
    answer = await asking(valley)(script, ODD, recipe="youtu+clew")
    assert answer.verdict == "answered"
    assert "Where was Ilse Brandvik born? Hallowmere" in shown[0]
    assert "(none)" not in shown[0]


async def test_if_a_plan_step_fails_the_whole_question_is_retrieved(
    valley: KnowledgeBase,
) -> None:
    nothing = {"quote": "", "source": 0, "answer": "unknown"}
    script = AgentScript({"read": nothing, "answer": CONCLUDED, "conclude": CONCLUDED})
    asked = "Who was born earlier, Ilse Brandvik or Clara Lindqvist?"
    answer = await asking(valley)(script, asked, recipe="steps+clew")
    inputs = [step.input for step in find_steps(answer.trace, "retrieve")]
    assert inputs[-1] == asked
    assert len(inputs) > 1
    assert answer.evidence.chunks


class SlowEmbed(HashEmbed):
    """An embedder that lets other tasks run, as a real one does."""

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        await asyncio.sleep(0.01)
        return await super().__call__(texts, role=role)


async def test_a_question_waits_for_the_answer_it_needs(valley: KnowledgeBase) -> None:
    valley.embed = SlowEmbed()
    steps = ["Who is the designer of Marrow Bridge?", "Where was #1 born?"]
    plan = {"decompose": {"questions": steps}}
    script = AgentScript({"read": reads, "answer": CONCLUDED, "conclude": CONCLUDED, **plan})
    answer = await asking(valley)(script, ASKED, recipe="steps-plan+clew")
    asked = [step.input for step in find_steps(answer.trace, "sub-question")]
    assert asked == ["Who is the designer of Marrow Bridge?", "Where was Ilse Brandvik born?"]
    assert answer.candidate == "Hallowmere"
