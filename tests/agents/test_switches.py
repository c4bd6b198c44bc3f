"""For each switch of a method, a model whose final answer differs with and without it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from agent_asking import Ask, asking, reads, refines
from test_ablations import typed  # noqa: F401  (a fixture)
from test_graphsearch import ODD
from test_rograg import CHAIN, knows

from clew.agents.ask import AskOptions
from clew.agents.base import Answer
from clew.agents.graphsearch import GraphSearch
from clew.engine import KnowledgeBase
from clew.recipes.agents import AGENTS, AgentRecipe
from clew.testing.fakes import AgentScript
from conftest import document, stream

FULL = "graphsearch-qd-cr-qg-ld-ev-qe"
SENTENCES = {
    "Hallowmere": "Ilse Brandvik was born in Hallowmere.",
    "Vessen": "Ilse Brandvik died in Vessen in 1921.",
}


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def written(town: str) -> dict[str, Any]:
    """A written answer that names a town of the valley."""
    sentence = {"text": SENTENCES[town], "sources": list(range(1, 20))}
    return {"enough": True, "sentences": [sentence], "short": town, "missing": ""}


def writes_by(shown: Callable[[str], bool]) -> Callable[[str], dict[str, Any]]:
    """A writer whose answer depends on what it is shown."""
    return lambda message: written("Hallowmere" if shown(message) else "Vessen")


def searching(shown: Callable[[str], bool], **more: Any) -> AgentScript:
    """A model for GraphSearch."""
    facts = [
        {"subject": "Marrow Bridge", "relation": "designer", "object": "Entity#1"},
        {"subject": "Entity#1", "relation": "birthplace", "object": "Entity#2"},
    ]
    return AgentScript(
        {
            "read": reads,
            "refine_read": refines,
            "refine": {"notes": [{"text": "Marrow Bridge is a stone bridge.", "source": 1}]},
            "draft": {"steps": ["Ilse Brandvik is the designer."], "answer": "Hallowmere"},
            "verify": {"verdict": "REJECT", "missing": "the town"},
            "expand": {"questions": ["Where was Ilse Brandvik born, exactly?"]},
            "answer": writes_by(shown),
            "conclude": writes_by(shown),
            "decompose": {
                "questions": ["Who is the designer of Marrow Bridge?", "Where was #1 born?"]
            },
            "relations": {"facts": facts},
            **more,
        }
    )


@pytest.mark.parametrize(
    ("without", "with_it", "sign"),
    [
        ("graphsearch-none", "graphsearch-qd-cr", "Found in texts:"),
        ("graphsearch-qd-cr", "graphsearch-qd-cr-qg", "Where was Ilse Brandvik born?"),
        ("graphsearch-qd-cr-qg", "graphsearch-qd-cr-qg-ld", "- Ilse Brandvik is the designer."),
        ("graphsearch-qd-cr-qg-ld", FULL, "- REJECT the town"),
        ("graphsearch-qd-cr-qg-ld", FULL, "Found afterwards:"),
        ("graphsearch-relational", FULL, "Found in texts:"),
        ("graphsearch-semantic", FULL, "Found in the graph:"),
    ],
)
async def test_graphsearch_rows_change_the_answer(
    ask: Ask, without: str, with_it: str, sign: str
) -> None:
    for recipe, town in ((without, "Vessen"), (with_it, "Hallowmere")):
        answer = await ask(searching(lambda text: sign in text), ODD, recipe=f"{recipe}+clew")
        assert answer.candidate == town


@pytest.mark.parametrize(
    ("switch", "sign"),
    [("refine", "Relations:\n"), ("verify", "Check of the draft:"), ("expand", "Found afterwards")],
)
async def test_graphsearch_switches_change_the_answer(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, switch: str, sign: str
) -> None:
    whole = GraphSearch(rules=False)
    monkeypatch.setitem(AGENTS, "off", AgentRecipe("off", replace(whole, **{switch: False})))
    notes = {"refine": "Found in texts:"}.get(switch, sign)

    def shown(message: str) -> bool:
        found = message.partition("[[evidence")[0]
        # Without refinement the notes carry whole pages, headings and all.
        return (sign not in found) if switch == "refine" else notes in found

    answers = [
        (await ask(searching(shown), ODD, recipe=f"{row}+clew")).candidate for row in ("off", FULL)
    ]
    assert answers == ["Vessen", "Hallowmere"]


async def test_verification_and_expansion_see_draft_histories_and_graph(ask: Ask) -> None:
    heard: dict[str, str] = {}

    def hear(name: str, reply: Any) -> Callable[[str], Any]:
        return lambda message: heard.setdefault(name, message) and reply

    told = searching(
        lambda _: True,
        verify=hear("verify", {"verdict": "REJECT", "missing": "the town"}),
        expand=hear("expand", {"questions": []}),
    )
    await ask(told, ODD, recipe=f"{FULL}+clew")
    for message in heard.values():
        assert "- Ilse Brandvik is the designer." in message
        assert "Found in texts:" in message
        assert "Found in the graph:" in message
    assert "the town" in heard["expand"]


async def test_the_relational_channel_reads_no_passage(ask: Ask) -> None:
    pages: list[str] = []

    def read(message: str) -> Any:
        pages.append(message)
        return refines(message)

    verdict = {"verdict": "ACCEPT", "missing": ""}
    told = searching(lambda _: True, refine_read_graph=read, verify=verdict)
    await ask(told, ODD, recipe="graphsearch-relational+clew")
    assert pages
    assert all("Relations:" in page and "Passages:" not in page for page in pages)


async def test_the_relational_channel_reads_linked_facts_and_then_the_rest(ask: Ask) -> None:
    async def read_with(order: str) -> list[str]:
        pages: list[str] = []

        def read(message: str) -> Any:
            pages.append(message)
            return refines(message)

        told = searching(lambda _: True, refine_read_graph=read)
        mine = {"base": "graphsearch-relational+lightrag", "agent": {"facts": order}}
        await ask(told, ODD, recipe="mine", recipes={"mine": mine})
        shown = pages[0].rpartition("Relations:")[2].splitlines()
        return [line for line in shown if line[:1] == "[" != line[1:2]]

    linked, first = await read_with("linked"), await read_with("linked-first")
    assert linked == first[: len(linked)]
    assert len(first) > len(linked)
    assert "Marrow Bridge" in first[0]


async def test_the_reader_reads_the_facts_in_which_the_model_finds_nothing(ask: Ask) -> None:
    nothing = {"notes": [], "answer": "unknown"}
    told = searching(lambda _: True, refine_read_graph=nothing)
    answer = await ask(told, ODD, recipe="graphsearch-relational+lightrag")
    [channel] = [step for step in answer.trace if step.step == "relational channel"]
    assert "unknown" not in channel.output
    assert "Hallowmere" in channel.output


async def test_four_sub_queries_are_asked(ask: Ask) -> None:
    questions = [f"What is number {n} of Marrow Bridge?" for n in range(1, 7)]
    told = searching(lambda _: True, decompose={"questions": questions})
    answer = await ask(told, ODD, recipe="graphsearch-semantic+clew")
    [channel] = [step for step in answer.trace if step.step == "semantic channel"]
    asked = [step.input for step in channel.steps if step.step == "semantic-question"]
    assert sorted(asked) == questions[:4]  # they run at the same time


# -- Youtu


def reflecting(shown: Callable[[str], bool], types: list[str], **more: Any) -> AgentScript:
    """A model for Youtu."""

    def reflect(message: str) -> dict[str, Any]:
        town = "Hallowmere" if shown(message) else "Vessen"
        return {"thought": "done", "action": "answer", "text": town}

    part = {"question": "Where was Ilse Brandvik born?", "types": types}
    return AgentScript(
        {
            "read": {"quote": "", "source": 0, "answer": "unknown"},
            "involved": {"parts": [part]},
            "reflect": reflect,
            "answer": written("Vessen"),
            "conclude": written("Vessen"),
            **more,
        }
    )


async def test_the_type_filter_changes_the_answer(typed: KnowledgeBase) -> None:  # noqa: F811
    answers = {}
    for recipe in ("youtu-by-model", "youtu-no-schema"):
        told = reflecting(lambda message: "Pellworth" not in message, ["person"])
        answer = await asking(typed)(told, ODD, recipe=f"{recipe}+naive", k=6)
        answers[recipe] = answer.candidate
    assert answers == {"youtu-by-model": "Hallowmere", "youtu-no-schema": "Vessen"}


async def test_reflection_changes_the_answer(ask: Ask) -> None:
    answers = [
        (await ask(reflecting(lambda _: True, []), ODD, recipe=f"youtu-{row}+clew")).candidate
        for row in ("by-model", "no-agent")
    ]
    assert answers == ["Hallowmere", "Vessen"]


async def test_communities_change_the_answer_and_a_missing_tree_is_said(
    valley: KnowledgeBase,
) -> None:
    async def answer_with(recipe: str) -> Answer:
        told = reflecting(lambda message: "Topics:" in message, [])
        return await asking(valley)(told, ODD, recipe=recipe)

    bare = await answer_with("youtu-by-model")
    assert "`clew tree --grow --by dual`" in bare.note
    assert bare.candidate == "Vessen"
    await valley.builder.make_tree_manager().build(["dual"])
    grown, flat = await answer_with("youtu-by-model"), await answer_with("youtu-no-community")
    assert (grown.candidate, flat.candidate) == ("Hallowmere", "Vessen")
    assert "dual" not in grown.note + flat.note


async def test_the_planner_sees_the_whole_schema_and_thoughts_are_carried(
    typed: KnowledgeBase,  # noqa: F811
) -> None:
    plans, thoughts = [], []

    def plan(message: str) -> dict[str, Any]:
        plans.append(message)
        return {"parts": []}

    def reflect(message: str) -> dict[str, Any]:
        thoughts.append(message)
        query = f"What is known of town number {len(thoughts)}?"
        return {"thought": f"thought {len(thoughts)}", "action": "query", "text": query}

    told = reflecting(lambda _: True, [], involved=plan, reflect=reflect)
    await asking(typed)(told, ODD, recipe="youtu-by-model+naive")
    assert "entity types: " in plans[0]
    assert all(kind in plans[0] for kind in ("person", "town", "relations: ", "attributes: "))
    assert "- thought 1" in thoughts[1]
    assert "What is known of town number 1? unknown" in thoughts[1]


# -- ROGRAG


def planning(**more: Any) -> AgentScript:
    """A model for ROGRAG that answers with a plan's results, and otherwise without."""
    steps = [{"op": op, "args": args} for op, *args in CHAIN]
    return AgentScript(
        {
            "logic": {"steps": steps},
            "read": knows,
            "sufficient": {"sufficient": True, "missing": ""},
            "verify": {"verdict": "ACCEPT", "missing": ""},
            "conclude": writes_by(
                lambda text: "#2 retrieve(#1, place of birth) = Hallowmere" in text
            ),
            "answer": written("Vessen"),
            "know": {"answer": "It was Atlantis.", "short": "Atlantis"},
            **more,
        }
    )


@pytest.mark.parametrize(
    ("row", "script", "town"),
    [
        ("argument", {}, "Hallowmere"),
        ("argument", {"sufficient": {"sufficient": False, "missing": "x"}}, "Vessen"),
        ("unchecked", {"sufficient": {"sufficient": False, "missing": "x"}}, "Hallowmere"),
        ("result", {"verify": {"verdict": "REJECT", "missing": "x"}}, "Vessen"),
        ("unchecked", {"verify": {"verdict": "REJECT", "missing": "x"}}, "Hallowmere"),
        ("argument", {"logic": {"steps": []}}, "Vessen"),
        ("logic", {"logic": {"steps": []}}, "Atlantis"),
        ("logic", {}, "Hallowmere"),
    ],
)
async def test_rograg_rows_change_the_answer(
    ask: Ask, row: str, script: dict[str, Any], town: str
) -> None:
    answer = await ask(planning(**script), ODD, recipe=f"rograg-{row}+clew")
    assert answer.candidate == town


@pytest.mark.parametrize(
    ("switch", "message", "mode"),
    [
        ("intent", "lovely weather we are having, right?", "open"),
        ("gate", "Who won the Kentucky Derby ridden by Calvin Borel?", "reject"),
    ],
)
async def test_rograg_asks_first_whether_it_should_answer(
    ask: Ask, switch: str, message: str, mode: str
) -> None:
    answers = {}
    for on in (True, False):
        told = planning(
            intent={"intent": "chat", "topic": "weather"},
            logic={"steps": []},
            answer=written("Vessen"),
        )
        table = {"row": {"base": "rograg-argument+clew", "agent": {switch: on}}}
        answers[on] = await ask(told, message, recipe="row", mode=mode, recipes=table)
        assert ("answer" in told.prompts) is not on
    assert answers[True].verdict == "refused"
    # A stranger's name is refused later as well, after paid calls.
    assert (answers[False].verdict == "refused") is (switch == "gate")


async def test_the_context_length_changes_what_is_shown(base: KnowledgeBase) -> None:
    pages = [
        document(
            f"p{n}", f"Marrow town {n} is old. " + f"Marrow {n} saw rain. " * 300, f"Marrow {n}"
        )
        for n in range(20)
    ]
    await base.take(stream(pages))
    sizes = {}
    for recipe in ("rograg-12k", "rograg-28k"):
        told = AgentScript({"answer": {"enough": False, "sentences": [], "missing": "all"}})
        options = AskOptions(record_prompts=True)
        answer = await asking(base)(
            told, "What is Marrow?", recipe=recipe, k=20, manner=options, window=64_000
        )
        [shown] = [p for p in answer.prompts if "[[evidence" in p.messages[-1].content]
        sizes[recipe] = len(shown.messages[-1].content) // 4
    assert sizes["rograg-12k"] <= 12_100
    assert 1.5 * sizes["rograg-12k"] < sizes["rograg-28k"] <= 28_100


# -- Graph-R1 and the baselines


async def test_graph_r1_is_shown_scored_facts_and_nothing_else(ask: Ask) -> None:
    steps = [
        "<think>who</think><query>Who designed Marrow Bridge?</query>",
        "<think>done</think><answer>Ilse Brandvik</answer>",
    ]
    options = AskOptions(record_prompts=True)
    answer = await ask(
        AgentScript({"graph_r1": steps}),
        "Who designed Marrow Bridge?",
        recipe="graph-r1",
        k=5,
        manner=options,
    )
    replies = [p for p in answer.prompts if p.messages[-1].content.startswith("<knowledge>")]
    lines = replies[0].messages[-1].content.splitlines()[1:-1]
    assert 0 < len(lines) <= 5
    assert all(line.startswith("- ") and line.endswith(")") and "(score " in line for line in lines)
    assert answer.candidate == "Ilse Brandvik"
    assert [citation.doc for citation in answer.citations] == ["bridge"]


@pytest.mark.parametrize(
    ("settings", "queries", "shown"),
    [
        ({"show": "passages"}, 1, lambda known: "(score " in known),
        ({"top_k": 1}, 1, lambda known: known.count("- ") > 1),
        ({"turns": 1}, 2, lambda known: True),
    ],
)
async def test_graph_r1_settings_change_the_answer(
    ask: Ask, settings: dict[str, Any], queries: int, shown: Callable[[str], bool]
) -> None:
    """What a query is answered with, how much of it, and how often it may ask."""

    def thinking() -> Callable[[str], str]:
        heard: list[str] = []

        def think(message: str) -> str:
            heard.extend([message] if message.startswith("<knowledge>") else [])
            if len(heard) < queries:
                return f"<think>{len(heard)}</think><query>Who designed Marrow Bridge?</query>"
            return f"<answer>{'Hallowmere' if shown(heard[0]) else 'Vessen'}</answer>"

        return think

    towns = []
    for changed in ({}, settings):
        told = AgentScript({"graph_r1": thinking(), "answer": written("Vessen")})
        table = {"row": {"base": "graph-r1", "agent": {"name": "graph-r1", **changed}}}
        towns.append((await ask(told, ODD, recipe="row", recipes=table, k=None)).candidate)
    assert towns == ["Hallowmere", "Vessen"]


@pytest.mark.parametrize(("agent", "thought"), [("react", "first idea"), ("ircot", "First idea.")])
async def test_baselines_see_their_passages_and_thoughts(
    ask: Ask, agent: str, thought: str
) -> None:
    told = AgentScript(
        {
            "react": [
                {"thought": thought, "action": "search", "input": "Who is Ilse Brandvik?"},
                {"thought": "done", "action": "finish", "input": "Hallowmere"},
            ],
            "next_thought": [
                {"sentence": thought, "answer": ""},
                {"sentence": "So it is.", "answer": "Hallowmere"},
            ],
            "answer": written("Vessen"),
            "conclude": written("Vessen"),
        }
    )
    answer = await ask(told, ODD, recipe=f"{agent}+clew", manner=AskOptions(record_prompts=True))
    second = answer.prompts[1].messages[-1].content
    assert thought in second
    assert "Ilse Brandvik was an engineer" in second
