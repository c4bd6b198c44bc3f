"""ROGRAG: plans of the model, run by code over what it reads; checks that bind; the way back."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from agent_asking import HALLOWMERE, Ask, asking

from clew.agents.ask import AskOptions
from clew.agents.base import Answer
from clew.context import AnswerDelta, TraceStep
from clew.engine import KnowledgeBase
from clew.testing.fakes import AgentScript

RECORD = AskOptions(record_prompts=True)
CHAIN = (
    ("Who designed Marrow Bridge?", "retrieve", "Marrow Bridge", "designer", "?"),
    ("Where was #1 born?", "retrieve", "#1", "place of birth", "?"),
)
KNOWN: Mapping[str, list[dict[str, str]]] = {
    "Who designed Marrow Bridge?": [{"text": "Ilse Brandvik"}],
    "Where was Ilse Brandvik born?": [{"text": "Hallowmere"}],
    "Which towns?": [{"text": "Hallowmere"}, {"text": "Pellworth"}, {"text": "Vessen"}],
    "Which ports?": [{"text": "vessen"}, {"text": "Tarn"}],
    "People of Hallowmere?": [{"text": "1,200 people", "number": "1200"}],
    "People of Pellworth?": [{"text": "four thousand", "number": "4000"}],
    "People of Vessen?": [{"text": "3,500", "number": "3500"}],
    "Length of the Tarn?": [{"text": "4.5 km", "number": "4.5 km"}],
    "Length of the Orr?": [{"text": "900 metres", "number": "900 m"}],
    "Opening of the bridge?": [{"text": "12 March 1888", "date": "1888-03-12"}],
    "Opening of the ferry?": [{"text": "spring 1921", "date": "1921-04"}],
}
TOWNS = (
    ("Which towns?", "retrieve", "?", "kind", "town"),
    ("People of #1?", "retrieve", "#1", "population", "?"),
)
LENGTHS = (
    ("Length of the Tarn?", "retrieve", "Tarn", "length", "?"),
    ("Length of the Orr?", "retrieve", "Orr", "length", "?"),
)
OPENINGS = (
    ("Opening of the bridge?", "retrieve", "Marrow Bridge", "opening", "?"),
    ("Opening of the ferry?", "retrieve", "Tarn Ferry", "opening", "?"),
)


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def plan(*steps: tuple[str, ...]) -> dict[str, Any]:
    """A plan as the model writes it: of every step its question, operator and arguments."""
    return {"steps": [{"question": q, "op": op, "args": args} for q, op, *args in steps]}


def reads(prompt: str) -> dict[str, Any]:
    """Reads what is known of a lookup, from the line that has it or from the first."""
    asked = prompt.rpartition("Lookup: ")[2].partition("\n")[0]
    lines = re.findall(r"^\[(\d+)\] (.*)$", prompt, re.M)
    values = []
    for value in KNOWN.get(asked, []):
        at = [int(n) for n, line in lines if value["text"] in line][:1] or [1]
        values.append(value | {"items": at})
    return {"reasoning": "…", "values": values}


def script(*steps: tuple[str, ...], **more: Any) -> AgentScript:
    """A model that plans these steps, reads them, and finds all well."""
    return AgentScript(
        {
            "intent": {"intent": "question", "domain": "bridges", "topic": "Marrow Bridge"},
            "logic": plan(*steps),
            "read_values": reads,
            "check_argument": {"sufficient": True},
            "check_result": {"sufficient": True},
            "answer": HALLOWMERE,
            **more,
        }
    )


def results(answer: Answer) -> list[str]:
    """What each step of the plan gave."""
    return [one.text.rpartition(" = ")[2] for one in answer.evidence.findings]


def steps_of(answer: Answer) -> list[str]:
    def walk(steps: tuple[TraceStep, ...]) -> list[str]:
        return [name for step in steps for name in (*walk(step.steps), step.step)]

    return walk(answer.trace)


async def test_a_plan_is_read_step_by_step_and_its_results_are_cited(ask: Ask) -> None:
    told = script(*CHAIN)
    answer = await ask(told, recipe="rograg+clew", manner=RECORD)
    assert told.prompts == [
        "intent", "logic", "read_values", "read_values", "check_argument", "answer"
    ]  # fmt: skip
    assert results(answer) == ["Ilse Brandvik", "Hallowmere"]
    page = answer.prompts[-1].messages[-1].content
    assert "#1 Who designed Marrow Bridge? retrieve(Marrow Bridge, designer, ?)" in page
    assert "It was designed by Ilse Brandvik" in page  # the passage it came from
    assert "Anton Reeve" not in page  # of all else that was found nothing
    assert answer.candidate == "Hallowmere"
    assert {citation.doc for citation in answer.citations} == {"bridge", "ilse"}


async def test_readers_know_what_the_whole_question_is_about(ask: Ask) -> None:
    answer = await ask(script(*CHAIN), recipe="rograg+clew", manner=RECORD)
    about = "about: Marrow Bridge; bridges"
    prompts = [prompt.messages[-1].content for prompt in answer.prompts]
    assert about in prompts[1] and about in prompts[2]
    assert "Where was Ilse Brandvik born?" in prompts[3]


@pytest.mark.parametrize(
    ("steps", "given"),
    [
        ((*TOWNS, ("", "count", "#1")), "3"),
        ((*TOWNS, ("", "sum", "#2")), "8,700"),
        ((*TOWNS, ("", "mean", "#2")), "2,900"),
        ((*TOWNS, ("", "max", "#2")), "Pellworth: four thousand"),
        ((*TOWNS, ("", "min", "#2")), "Hallowmere: 1,200 people"),
        ((*TOWNS, ("", "sort", "#2", "ascending"), ("", "get", "#3", "2")), "Vessen: 3,500"),
        ((*TOWNS, ("", "filter", "#2", ">=", "3500"), ("", "count", "#3")), "2"),
        ((*TOWNS, ("", "filter", "#1", "contains", "WORTH")), "Pellworth"),
        (
            (*TOWNS, ("Which ports?", "retrieve", "?", "kind", "port"),
             ("", "filter", "#2", ">", "2000"), ("", "intersect", "#4", "#3")),
            "Vessen: 3,500",
        ),
        (
            (TOWNS[0], ("Which ports?", "retrieve", "?", "kind", "port"),
             ("", "difference", "#1", "#2")),
            "Hallowmere; Pellworth",
        ),
        (
            (TOWNS[0], ("Which ports?", "retrieve", "?", "kind", "port"),
             ("", "union", "#1", "#2"), ("", "count", "#3")),
            "4",
        ),
        ((*LENGTHS, ("", "compare", "#1", "#2", "larger")), "Tarn"),
        ((*LENGTHS, ("", "compare", "#1", "#2", "difference")), "3.6 km"),
        ((*LENGTHS, ("", "compare", "#1", "#2", "same")), "no"),
        ((*LENGTHS, ("", "filter", "#1", "<", "#2"), ("", "count", "#3")), "0"),
        ((*OPENINGS, ("", "compare", "#1", "#2", "earlier")), "Marrow Bridge"),
        ((*OPENINGS, ("", "compare", "#1", "#2", "later")), "Tarn Ferry"),
        ((*OPENINGS, ("", "compare", "#1", "#2", "difference")), "33 years"),
        ((*OPENINGS, ("", "filter", "#1", "before", "1900"), ("", "count", "#3")), "1"),
    ],
)  # fmt: skip
async def test_code_computes_what_the_model_read(
    ask: Ask, steps: tuple[tuple[str, ...], ...], given: str
) -> None:
    answer = await ask(script(*steps), recipe="rograg+bm25")
    assert results(answer)[-1] == given
    assert "fell back" not in answer.note


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ((("", "teleport", "#1"),), "there is no operator 'teleport'"),
        ((("", "count", "#1"),), "#1 is no earlier step"),
        ((("", "retrieve", "?", "mayor", "?"),), "the subject or the object must be known"),
        ((("", "retrieve", "Tarn", "length", "9 km"),), "nothing is asked"),
        ((TOWNS[0], ("", "filter", "#1", "near", "Tarn")), "'near' must be one of ="),
        ((TOWNS[0], ("", "sort", "#1")), "it has 1 arguments and needs 2"),
        ((TOWNS[0], ("", "get", "#1", "0")), "'0' must be a number from 1"),
        ((), "there are no steps"),
    ],
)
async def test_a_plan_that_cannot_run_is_repaired_once(
    ask: Ask, steps: tuple[tuple[str, ...], ...], problem: str
) -> None:
    told = script(logic=[plan(*steps), plan(*CHAIN)])
    answer = await ask(told, recipe="rograg+bm25", manner=RECORD)
    assert problem in answer.prompts[2].messages[-1].content
    assert results(answer) == ["Ilse Brandvik", "Hallowmere"]
    never = await ask(script(*steps), recipe="rograg+bm25")
    assert "fell back to the dual level" in never.note and problem in never.note
    assert never.candidate == "Hallowmere"


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((("Who built the moon?", "retrieve", "moon", "builder", "?"),), "nothing was found"),
        ((*LENGTHS, ("", "compare", "#1", "#2", "earlier")), "it cannot be told"),
        ((CHAIN[0], ("", "sum", "#1")), "'Ilse Brandvik' is not a number"),
        ((CHAIN[0], ("", "get", "#1", "7")), "there is no value 7 among 1"),
        ((LENGTHS[0], TOWNS[0], ("People of #2?", "retrieve", "#2", "population", "?"),
          ("", "union", "#1", "#3"), ("", "sum", "#4")), "do not go together"),
    ],
)  # fmt: skip
async def test_a_plan_without_a_result_falls_back(
    ask: Ask, steps: tuple[tuple[str, ...], ...], why: str
) -> None:
    answer = await ask(script(*steps), recipe="rograg+bm25")
    assert "fell back to the dual level" in answer.note and why in answer.note
    assert answer.candidate == "Hallowmere" and answer.citations


async def test_the_dual_level_searches_for_the_topic_too(ask: Ask) -> None:
    answer = await ask(script(), recipe="rograg+bm25")
    [dual] = [step for step in answer.trace if step.step == "dual level"]
    [search] = [step for step in dual.steps if step.step == "search"]
    assert search.input == f"{answer.question}\n(Marrow Bridge; bridges)"


async def test_one_lookup_for_each_of_too_many_values_is_not_made(ask: Ask) -> None:
    table = {"row": {"base": "bm25", "agent": {"name": "rograg", "lookups": 2}}}
    answer = await ask(script(*TOWNS), recipe="row", recipes=table)
    assert "3 lookups are too many" in answer.note


async def test_arguments_that_do_not_suffice_bind(ask: Ask) -> None:
    told = script(*CHAIN, check_argument={"sufficient": False, "missing": "her birth certificate"})
    answer = await ask(told, recipe="rograg+bm25")
    assert told.prompts.count("answer") == 1
    assert "her birth certificate" in answer.note and not results(answer)
    unread = script(*CHAIN, check_argument="no JSON at all")
    assert "could not be read" in (await ask(unread, recipe="rograg+bm25")).note


async def test_a_result_that_is_rejected_is_withdrawn(ask: Ask) -> None:
    first = HALLOWMERE | {"answer": "She was born in Vessen [1].", "short": "Vessen"}
    told = script(
        *CHAIN, answer=[first, HALLOWMERE], check_result={"sufficient": False, "missing": "wrong"}
    )
    heard: list[Any] = []
    answer = await ask(told, recipe="rograg-result+bm25", manner=AskOptions(on_event=heard.append))
    assert "check_argument" not in told.prompts
    assert answer.candidate == "Hallowmere" and "wrong" in answer.note
    pieces = [event for event in heard if isinstance(event, AnswerDelta)]
    restarts = [at for at, piece in enumerate(pieces) if piece.restart]
    said = "".join(piece.text for piece in pieces[: restarts[0]])
    again = "".join(piece.text for piece in pieces[restarts[-1] :])
    assert "Vessen" in said and "Hallowmere" in again and "Vessen" not in again


async def test_an_answer_that_the_logic_form_does_not_give_falls_back(ask: Ask) -> None:
    unknown = {"enough": False, "answer": "", "short": "unknown", "missing": "the town"}
    answer = await ask(script(*CHAIN, answer=[unknown, HALLOWMERE]), recipe="rograg+bm25")
    assert answer.candidate == "Hallowmere" and "the town" in answer.note


async def test_nothing_is_checked_where_checks_are_off(ask: Ask) -> None:
    told = script(*CHAIN)
    await ask(told, recipe="rograg-unchecked+bm25")
    assert not {"check_argument", "check_result"} & set(told.prompts)


async def test_each_level_alone(ask: Ask) -> None:
    told = script(*CHAIN, check_argument={"sufficient": False})
    alone = await ask(told, recipe="rograg-logic+bm25")
    assert results(alone) == ["Ilse Brandvik", "Hallowmere"]
    assert "check_argument" not in told.prompts and "dual level" not in steps_of(alone)
    told = script(*CHAIN)
    table = {"row": {"base": "bm25", "agent": {"name": "rograg", "logic": False}}}
    dual = await ask(told, recipe="row", recipes=table)
    assert told.prompts == ["intent", "answer"] and dual.candidate == "Hallowmere"
    unknown = {"enough": False, "answer": "", "short": "unknown"}
    refused = await ask(script(answer=unknown), recipe="rograg-logic+bm25")
    assert refused.verdict == "refused"


@pytest.mark.parametrize("mode", ["open", "reject"])
async def test_small_talk_is_no_question(ask: Ask, mode: str) -> None:
    told = script(intent={"intent": "chat", "topic": "thanks"})
    answer = await ask(told, "Thanks, you are great!", recipe="rograg+bm25", mode=mode)
    assert answer.verdict == "refused" and "small talk" in answer.missing
    assert told.prompts == ["intent"]


async def test_refusing_is_the_models_verdict(ask: Ask) -> None:
    unknown = {"enough": False, "answer": "", "short": "unknown", "missing": "her shoe size"}
    answer = await ask(script(*CHAIN, answer=unknown), recipe="rograg+bm25", mode="reject")
    assert (answer.verdict, answer.missing) == ("refused", "her shoe size")


async def test_lookups_that_do_not_wait_for_each_other_run_at_once(ask: Ask) -> None:
    told = script(*LENGTHS, ("", "compare", "#1", "#2", "same"))
    answer = await ask(told, recipe="rograg+bm25")
    names = [name for name in steps_of(answer) if name.startswith("#")]
    assert sorted(names[:2]) == ["#1 retrieve", "#2 retrieve"] and names[2:] == ["#3 compare"]
    assert results(answer)[-1] == "no"
