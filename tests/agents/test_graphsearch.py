"""GraphSearch: plans of any length, both channels, grounding, verdicts, and its ablations."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from agent_asking import Ask, asking

from clew.agents.base import Answer
from clew.agents.graphsearch import needs_answers, needs_entities
from clew.agents.notebook import Note, Notes
from clew.context import TraceStep
from clew.engine import KnowledgeBase
from clew.recipes.agents import AGENTS
from clew.testing.fakes import prompt_name

# The shape of the paper's own example (Figure 12): eight sub-questions, six sub-queries of triples.
EIGHT = [
    "Which house stands by Marrow Bridge?",
    "Who is Reeve?",
    "In which towns did Reeve live?",
    "Which town of the Grey Coast is to be left out of #3?",
    "Which school is in what is left of #3 without #4?",
    "How many prizes has #1 won?",
    "How many prizes has #5 won?",
    "Which of #1 and #5 has won more prizes?",
]
SIX = [
    [("Marrow Bridge", "stands by", "Entity#1"), ("Entity#1", "is a", "house")],
    [("Entity#1", "number of prizes", "Entity#2")],
    [("Reeve", "lived in", "Entity#3"), ("Grey Coast", "has", "Entity#4")],
    [("Entity#3", "has school", "Entity#5"), ("Entity#3", "is not", "Entity#4")],
    [("Entity#5", "number of prizes", "Entity#6")],
    [("Entity#2", "compare with", "Entity#6")],
]


def triples(*queries: list[tuple[str, str, str]]) -> dict[str, Any]:
    """A reply that plans sub-queries of triples."""
    parts = ("subject", "relation", "object")
    return {
        "queries": [{"triples": [dict(zip(parts, one, strict=True)) for one in q]} for q in queries]
    }


TWO = {"queries": ["Who designed Marrow Bridge?", "Where was #1 born?"]}
TWO_TRIPLES = triples(
    [("Marrow Bridge", "designed by", "Entity#1")], [("Entity#1", "born in", "Entity#2")]
)
ANSWERED = {"enough": True, "answer": "In Hallowmere [1].", "short": "Hallowmere"}


class Chat:
    """Replies by the name of the prompt; keeps what each prompt was shown."""

    def __init__(self, **replies: Any) -> None:
        self.replies: Mapping[str, Any] = {
            "decompose_text": TWO,
            "decompose_triples": TWO_TRIPLES,
            "ground": lambda said: {"query": said.rpartition("Sub-query: ")[2].replace("#1", "X")},
            "refine_text": {"items": [1], "context": "Ilse Brandvik designed it."},
            "refine_triples": {"items": [1], "context": "Marrow Bridge | designer | Brandvik"},
            "sub_answer": {"answer": "Ilse Brandvik"},
            "draft": {"reasoning": "She was born there.", "answer": "Hallowmere"},
            "verify": {"verdict": "ACCEPT"},
            "expand_text": {"queries": ["What is the home town of Ilse Brandvik?"]},
            "expand_triples": triples([("Ilse Brandvik", "home town", "Entity#9")]),
            "answer": ANSWERED,
            **replies,
        }
        self.shown: dict[str, list[str]] = {}

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        name, said = prompt_name(messages), str(messages[-1]["content"])
        before = self.shown.setdefault(name, [])
        reply = self.replies[name]
        if isinstance(reply, list):
            reply = reply[min(len(before), len(reply) - 1)]
        before.append(said)
        reply = reply(said) if callable(reply) else reply
        return reply if isinstance(reply, str) else json.dumps(reply)

    def count(self, name: str) -> int:
        return len(self.shown.get(name, []))


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def steps(trace: tuple[TraceStep, ...]) -> Iterator[TraceStep]:
    """All steps, wherever in the tree they are."""
    for step in trace:
        yield step
        yield from steps(step.steps)


def inputs(answer: Answer, name: str) -> list[str]:
    return [step.input for step in steps(answer.trace) if step.step == name]


async def test_every_sub_query_of_a_long_plan_is_asked(ask: Ask) -> None:
    chat = Chat(decompose_text={"queries": EIGHT}, decompose_triples=triples(*SIX))
    answer = await ask(chat, recipe="graphsearch")
    asked = [line.rpartition("Sub-query: ")[2] for line in chat.shown["sub_answer"]]
    assert len(asked) == len(EIGHT) + len(SIX)
    assert sum(" | " in query for query in asked) == len(SIX)  # as triples, not as questions
    # Those that refer to an earlier one are grounded, and no others.
    assert chat.count("ground") == 5 + 4
    assert answer.candidate == "Hallowmere"
    assert answer.citations
    for query in (EIGHT[0], "Entity#2 | compare with | Entity#6"):
        assert query in chat.shown["draft"][0]


def test_a_sub_query_waits_for_those_that_find_what_it_needs() -> None:
    plan = ["; ".join(" | ".join(one) for one in query) for query in SIX]
    waits = [needs_entities(plan, at) for at in range(len(plan))]
    assert waits == [set(), {0}, set(), {2}, {3}, {1, 4}]
    assert [needs_answers(EIGHT, at) for at in range(8)] == [
        *(set(), set(), set(), {2}, {2, 3}, {0}, {4}, {0, 4})
    ]
    assert needs_answers(["Who made the C#3 tuner?", "Is #2 or #9 it?"], 1) == set()


async def test_grounding_reads_what_came_before(ask: Ask) -> None:
    chat = Chat()
    answer = await ask(chat, recipe="graphsearch")
    text, graph = sorted(chat.shown["ground"], key=lambda said: " | " in said.splitlines()[-1])
    for part in ("#1 Who designed Marrow Bridge?", "Context: Ilse", "Answer: Ilse Brandvik"):
        assert part in text
    assert "Sub-query: Where was #1 born?" in text
    assert "#1 Marrow Bridge | designed by | Entity#1" in graph
    assert "Sub-query: Entity#1 | born in | Entity#2" in graph
    # What the model made of it is searched for; of triples, what is known.
    assert "Where was X born?" in inputs(answer, "search")
    assert "EntityX born in" in inputs(answer, "search")


async def test_each_channel_reads_its_own_kind(ask: Ask) -> None:
    chat = Chat()
    await ask(chat, recipe="graphsearch")
    assert all("Relations:" not in said for said in chat.shown["refine_text"])
    assert all("Relations:" in said for said in chat.shown["refine_triples"])
    assert not any("Passages:" in said for said in chat.shown["refine_triples"])


@pytest.mark.parametrize("k", [1, 4])
async def test_the_callers_number_of_passages_reaches_the_model(ask: Ask, k: int) -> None:
    chat = Chat()
    await ask(chat, recipe="graphsearch", k=k)
    assert all(len(re.findall(r"^\[\d+\]", said, re.M)) == k for said in chat.shown["refine_text"])


async def test_the_answer_reads_both_histories_and_what_was_kept(ask: Ask) -> None:
    chat = Chat(refine_text={"items": [2], "context": "kept text"}, verify={"verdict": "ACCEPT"})
    await ask(chat, recipe="graphsearch")
    (said,) = chat.shown["answer"]
    for part in ("semantic channel:", "relational channel:", "kept text", "Drafted answer:"):
        assert part in said
    assert "ACCEPT" in said
    # Of each page one line was kept, so not all that was read is shown.
    read = {line for one in chat.shown["refine_text"] for line in one.splitlines()}
    numbered = re.compile(r"^\[\d+\] ", re.M)
    assert len(numbered.findall(said)) < len({numbered.sub("", line) for line in read})


async def test_a_rejected_draft_is_expanded_in_both_channels_and_drafted_again(ask: Ask) -> None:
    rejected = {"reasoning": "…", "verdict": "REJECT", "missing": "her home town"}
    chat = Chat(verify=[rejected, {"verdict": "ACCEPT"}])
    answer = await ask(chat, recipe="graphsearch")
    assert [chat.count(n) for n in ("draft", "verify", "expand_text", "expand_triples")] == [
        *(2, 2, 1, 1)
    ]
    assert "REJECT: her home town" in chat.shown["expand_triples"][0]
    assert "What is the home town of Ilse Brandvik?" in inputs(answer, "search")
    assert "Ilse Brandvik home town" in inputs(answer, "search")
    assert "#3 Ilse Brandvik | home town | Entity#9" in chat.shown["draft"][1]


async def test_an_accepted_draft_ends_the_search(ask: Ask) -> None:
    chat = Chat()
    await ask(chat, recipe="graphsearch")
    assert chat.count("draft") == chat.count("verify") == 1
    assert chat.count("expand_text") == 0


async def test_drafts_that_stay_rejected_end_after_the_last_reflection(ask: Ask) -> None:
    number = iter(range(99))

    def more(said: str) -> dict[str, Any]:
        return {"queries": [f"What else is there, part {next(number)}?"]}

    chat = Chat(verify={"verdict": "REJECT", "missing": "all"}, expand_text=more)
    answer = await ask(chat, recipe="graphsearch")
    assert chat.count("draft") == chat.count("verify") == 3
    assert chat.count("expand_text") == 2
    assert answer.candidate == "Hallowmere"


async def test_an_expansion_without_anything_new_ends_the_search(ask: Ask) -> None:
    chat = Chat(verify={"verdict": "REJECT"}, expand_text=TWO, expand_triples={"queries": []})
    await ask(chat, recipe="graphsearch")
    assert chat.count("draft") == 1


async def test_the_released_preset_expands_what_is_accepted_once(ask: Ask) -> None:
    chat = Chat()
    await ask(chat, recipe="graphsearch-released")
    assert (chat.count("expand_text"), chat.count("draft")) == (1, 2)
    rejected = Chat(verify={"verdict": "REJECT"})
    await ask(rejected, recipe="graphsearch-released")
    assert rejected.count("expand_text") == 0


MODULES = {
    "qd": ("decompose_text", "decompose_triples"),
    "cr": ("refine_text", "refine_triples"),
    "qg": ("ground",),
    "ld": ("draft",),
    "ev": ("verify",),
    "qe": ("expand_text", "expand_triples"),
}


@pytest.mark.parametrize("row", ["none", "qd-cr", "qd-cr-qg", "qd-cr-qg-ld", "qd-cr-qg-ld-ev-qe"])
async def test_a_row_of_the_ablation_calls_its_modules_and_no_others(ask: Ask, row: str) -> None:
    chat = Chat(verify={"verdict": "REJECT", "missing": "more"})
    answer = await ask(chat, recipe=f"graphsearch-{row}")
    for module, prompts in MODULES.items():
        assert all((chat.count(name) > 0) == (module in row.split("-")) for name in prompts)
    assert answer.candidate == "Hallowmere"


@pytest.mark.parametrize(("row", "left"), [("semantic", "triples"), ("relational", "text")])
async def test_one_channel_alone_never_asks_the_other(ask: Ask, row: str, left: str) -> None:
    chat = Chat(verify={"verdict": "REJECT"})
    await ask(chat, recipe=f"graphsearch-{row}")
    assert not any(name.endswith(f"_{left}") for name in chat.shown)


GARBAGE = ["decompose_text", "decompose_triples", "ground", "refine_text", "refine_triples"]
GARBAGE += ["sub_answer", "draft", "verify", "expand_text", "expand_triples"]


@pytest.mark.parametrize("name", GARBAGE)
async def test_a_module_that_cannot_be_read_is_passed_over(ask: Ask, name: str) -> None:
    verdict: Any = {"verdict": "REJECT", "missing": "more"}
    chat = Chat(**{"verify": verdict, name: "I had rather not say."})
    answer = await ask(chat, recipe="graphsearch")
    assert chat.count(name)
    assert answer.candidate == "Hallowmere"
    assert not answer.model_error


async def test_placeholders_are_filled_plainly_where_grounding_fails(ask: Ask) -> None:
    answer = await ask(Chat(ground="?"), recipe="graphsearch")
    assert "Where was Ilse Brandvik born?" in inputs(answer, "search")


async def test_a_spent_budget_ends_the_work(valley: KnowledgeBase) -> None:
    from clew.agents.ask import AskOptions
    from clew.llm.budget import UsageLimits

    manner = AskOptions(limits=UsageLimits(calls=4))
    answer = await asking(valley)(Chat(), recipe="graphsearch", manner=manner)
    assert not answer.complete
    assert answer.usage.calls <= 4


def test_the_full_row_of_the_ablation_is_the_system_itself() -> None:
    assert AGENTS["graphsearch-qd-cr-qg-ld-ev-qe"].agent == AGENTS["graphsearch"].agent


def test_old_contexts_are_cut_first_and_answers_stay() -> None:
    long = "word " * 400
    notes = [Note(f"query {n}", long, f"answer {n}", number=n) for n in range(1, 5)]
    shown = Notes({"semantic channel": notes, "Draft": ["a draft"]}).fit(1200)
    contexts = re.findall(r"Context: (.*)", shown)
    assert [len(one) for one in contexts] == sorted(map(len, contexts))
    assert len(contexts[0]) < len(contexts[-1]) == len(f"{long}".rstrip())
    assert all(f"answer {n}" in shown for n in range(1, 5))
