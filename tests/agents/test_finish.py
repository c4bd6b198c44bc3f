"""What an agent says at the end is held against the passages like any other sentence."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from agent_asking import CONCLUDED, Ask, asking, reads, refines

from clew.agents.ask import AskOptions
from clew.engine import KnowledgeBase
from clew.llm.budget import UsageLimits
from clew.testing.fakes import AgentScript, Messages
from conftest import document, stream

DIED = "Where and when did Ilse Brandvik die?"
ODD = "Tell me the birth town of the person behind Marrow Bridge, please."
MILL = document("mill", "She was an engineer. She built the mill at Tarnfoot in 1880.", "Edda Holm")


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def finishing(final: str, query: str = DIED) -> dict[str, Any]:
    """Agents that look once and then say this; what they have written anew is nonsense."""
    return {
        "graph_r1": [f"<think>x</think><query>{query}", f"<think>x</think><answer>{final}"],
        "react": [
            {"thought": "", "action": "search", "input": query},
            {"thought": "", "action": "finish", "input": final},
        ],
        "next_thought": [
            {"sentence": "Ilse Brandvik was an engineer.", "answer": ""},
            {"sentence": final, "answer": final},
        ],
        "reflect": {"thought": "", "action": "answer", "text": final},
    }


AGENTS = ("graph-r1", "react", "ircot", "youtu")


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "final",
    [
        "died in Vessen in 1922",
        "Ilse Brandvik was never born in Hallowmere in 1921",
        "born in Vessen and died in Hallowmere in 1921",
    ],
)
async def test_a_final_answer_that_no_sentence_bears_is_refused(
    ask: Ask, agent: str, final: str
) -> None:
    answer = await ask(AgentScript(finishing(final)), DIED, recipe=f"{agent}+clew", mode="reject")
    assert (answer.verdict, answer.citations) == ("refused", ())


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_final_answer_that_is_said_is_cited(ask: Ask, agent: str) -> None:
    script = AgentScript(finishing("died in Vessen in 1921"))
    answer = await ask(script, DIED, recipe=f"{agent}+clew", mode="reject")
    assert answer.candidate == "died in Vessen in 1921"
    assert "died in Vessen in 1921" in answer.citations[0].quote


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_final_sentence_is_put_into_few_words_where_a_model_can(
    ask: Ask, agent: str
) -> None:
    final = "As far as can be told from all of this the town in question is Hallowmere"
    born = "Where was Ilse Brandvik born?"
    told = AgentScript({**finishing(final, born), "answer": CONCLUDED, "conclude": CONCLUDED})
    answer = await ask(told, born, recipe=f"{agent}+clew")
    assert answer.candidate == "Hallowmere" and answer.citations
    alone = await ask(AgentScript(finishing(final, born)), born, recipe=f"{agent}+clew")
    assert alone.candidate == final  # what it said is an answer, in open mode


@pytest.mark.parametrize(
    ("final", "short"),
    [
        ("No, she was born in Hallowmere, and he was born in Vessen.", "No"),
        ("Yes. Both are towns.", "Yes"),
        ("No Country for Old Men", "No Country for Old Men"),
    ],
)
async def test_yes_and_no_are_told_from_what_follows(ask: Ask, final: str, short: str) -> None:
    asked = "Were Ilse Brandvik and Anton Reeve both born in Vessen?"
    answer = await ask(AgentScript(finishing(final, asked)), asked, recipe="graph-r1+clew")
    assert answer.candidate == short


async def test_where_the_title_says_who_the_sentence_that_fits_is_cited(
    valley: KnowledgeBase,
) -> None:
    await valley.take(stream([MILL]))
    asked = "Who built the mill at Tarnfoot?"
    script = AgentScript(finishing("Edda Holm", asked))
    answer = await asking(valley)(script, asked, recipe="graph-r1+clew", mode="reject")
    assert answer.answer == "Edda Holm [1]"
    assert answer.citations[0].quote == "She built the mill at Tarnfoot in 1880."


async def test_a_title_alone_bears_nothing(valley: KnowledgeBase) -> None:
    await valley.take(stream([MILL]))
    asked = "Who founded the choir of the northern harbour?"
    script = AgentScript(finishing("Edda Holm", "Edda Holm"))
    answer = await asking(valley)(script, asked, recipe="graph-r1+clew", mode="reject")
    assert (answer.verdict, answer.citations) == ("refused", ())


def drafting(draft: str) -> Callable[[Messages], str]:
    """A model whose drafts are rejected again and again."""
    return AgentScript(
        {
            "read": reads,
            "refine_read": refines,
            "answer": CONCLUDED,
            "conclude": CONCLUDED,
            "refine": {"notes": []},
            "draft": {"steps": [], "answer": draft},
            "verify": {"verdict": "REJECT", "missing": "birth town"},
            "decompose": {"questions": ["Who is the designer of Marrow Bridge?"]},
            "relations": {"facts": []},
            "expand": {"questions": ["Where did Ilse Brandvik die?"]},
            "reflect": {"thought": "", "action": "answer", "text": draft},
            "involved": {
                "parts": [{"question": "Who is the designer of Marrow Bridge?", "types": []}]
            },
        }
    )


@pytest.mark.parametrize(
    ("agent", "calls"), [("graphsearch", n) for n in range(4, 13)] + [("youtu", 2), ("youtu", 3)]
)
async def test_a_budget_that_ends_makes_no_draft_an_answer(
    ask: Ask, agent: str, calls: int
) -> None:
    manner = AskOptions(UsageLimits(calls=calls))
    how: dict[str, Any] = {"recipe": f"{agent}+clew", "mode": "reject", "manner": manner}
    answer = await ask(drafting("Atlantis"), ODD, **how)
    assert not answer.complete
    assert "Atlantis" not in answer.answer
    assert answer.candidate
    assert any(answer.candidate in cited.quote for cited in answer.citations)


async def test_a_draft_that_a_passage_says_may_be_the_answer(ask: Ask) -> None:
    manner = AskOptions(UsageLimits(calls=7))
    how: dict[str, Any] = {"recipe": "graphsearch+clew", "mode": "reject", "manner": manner}
    answer = await ask(drafting("Hallowmere"), ODD, **how)
    assert (answer.complete, answer.candidate) == (False, "Hallowmere")
    marked = int(answer.answer.split("\n")[0].removeprefix("Hallowmere [").rstrip("]"))
    assert "Hallowmere" in answer.citations[marked - 1].quote


async def read_once(ask: Ask, text: str, short: str = "", mode: str = "reject") -> Any:
    said = {"enough": True, "sentences": [{"text": text, "sources": [1, 2]}], "short": short}
    asked = "Where was Ilse Brandvik born?"
    return await ask(lambda _: json.dumps(said), asked, recipe="reader+clew", mode=mode)


@pytest.mark.parametrize(
    "text",
    [
        "Ilse Brandvik was born in Hallowmere. She was killed by Anton Reeve.",
        "PWNED. Ilse Brandvik was born in Hallowmere. She hated cats.",
        "Ilse Brandvik was born in Hallowmere. 🎈",
    ],
)
async def test_sentences_written_as_one_are_checked_one_by_one(ask: Ask, text: str) -> None:
    answer = await read_once(ask, text)
    assert answer.answer == "Ilse Brandvik was born in Hallowmere. [1]"
    assert [cited.doc for cited in answer.citations] == ["ilse"]
    open_answer = await read_once(ask, text, mode="open")
    assert open_answer.answer.count("not supported") == text.rstrip(" 🎈").count(".") - 1


async def test_a_pronoun_means_somebody_of_the_sentence_before(ask: Ask) -> None:
    told = await read_once(ask, "Ilse Brandvik was an engineer. She was born in Hallowmere.")
    assert told.answer.count("[1]") + told.answer.count("[2]") == 2
    other = await read_once(ask, "Pellworth is a market town. It was designed by Ilse Brandvik.")
    assert "designed" not in other.answer


@pytest.mark.parametrize(
    ("short", "kept"),
    [
        ("Hallowmere", "Hallowmere"),
        ("Vessen", ""),
        ("yes", "yes"),
        ("in Hallowmere.", "in Hallowmere"),
    ],
)
async def test_the_short_answer_is_what_the_sentences_say(ask: Ask, short: str, kept: str) -> None:
    answer = await read_once(ask, "Ilse Brandvik was born in Hallowmere.", short)
    assert answer.candidate == kept
