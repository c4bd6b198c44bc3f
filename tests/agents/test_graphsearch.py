"""GraphSearch: its modules, its channels, both verdicts, and the plan of its calls."""

from dataclasses import replace
from typing import Any

import pytest
from agent_asking import CONCLUDED, Ask, asking, reads, refines

from clew.agents.graphsearch import GraphSearch
from clew.agents.planning.model_plan import QueryTriple, Verdict, triples_to_questions
from clew.context import TraceStep
from clew.engine import KnowledgeBase
from clew.recipes.agents import AGENTS
from clew.recipes.registry import resolve_recipe
from clew.testing.fakes import AgentScript
from conftest import one_in_three

ODD = "Tell me the birth town of the person behind Marrow Bridge, please."


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def script(**more: Any) -> AgentScript:
    return AgentScript(
        {
            "read": reads,
            "refine_read": refines,
            "refine": {"notes": [{"text": "It was designed by Ilse Brandvik.", "source": 1}]},
            "draft": {"steps": ["…"], "answer": "Hallowmere"},
            "verify": {"verdict": "ACCEPT", "missing": ""},
            "expand": {"questions": ["Where was Ilse Brandvik born, exactly?"]},
            "conclude": CONCLUDED,
            "answer": CONCLUDED,
            "decompose": {
                "questions": ["Who is the designer of Marrow Bridge?", "Where was #1 born?"]
            },
            "relations": {
                "facts": [
                    {"subject": "Marrow Bridge", "relation": "designer", "object": "Entity#1"},
                    {"subject": "Entity#1", "relation": "birthplace", "object": "Entity#2"},
                ]
            },
            **more,
        }
    )


def named(trace: tuple[TraceStep, ...], name: str) -> list[TraceStep]:
    """All steps of that name, wherever in the tree they are."""
    return [
        found
        for step in trace
        for found in ([step] if step.step == name else []) + named(step.steps, name)
    ]


async def test_both_channels_answer_and_cite(ask: Ask) -> None:
    told = script()
    answer = await ask(told, recipe="graphsearch+clew")
    assert (answer.verdict, answer.candidate) == ("answered", "Hallowmere")
    assert "ilse" in {c.doc for c in answer.citations}
    assert named(answer.trace, "semantic channel")
    assert named(answer.trace, "relational channel")
    # The second question of a channel waits for the first and names what it found.
    asked = [step.input for step in named(answer.trace, "read")]
    assert "Where was Ilse Brandvik born?" in asked
    assert "decompose" in told.prompts


async def test_what_is_compared_needs_no_planning_model(ask: Ask) -> None:
    told = script()
    compared = "Who was born first, Ilse Brandvik or Anton Reeve?"
    await ask(told, compared, recipe="graphsearch+clew")
    assert "decompose" not in told.prompts


async def test_the_model_plans_what_no_rule_fits(ask: Ask) -> None:
    told = script()
    answer = await ask(told, ODD, recipe="graphsearch+clew")
    assert {"decompose", "relations"} <= set(told.prompts)
    assert "Where was Ilse Brandvik born?" in [s.input for s in named(answer.trace, "read")]


async def test_reject_expands_and_accept_does_not(ask: Ask) -> None:
    accepted = script()
    await ask(accepted, recipe="graphsearch+clew")
    assert "expand" not in accepted.prompts
    verdicts = [{"verdict": "REJECT", "missing": "the town"}, {"verdict": "ACCEPT", "missing": ""}]
    rejected = script(verify=verdicts)
    answer = await ask(rejected, recipe="graphsearch+clew")
    assert rejected.prompts.count("expand") == 1
    assert rejected.prompts.count("verify") == 2
    assert "Where was Ilse Brandvik born, exactly?" in [
        step.input for step in named(answer.trace, "read")
    ]


async def test_the_released_preset_expands_on_accept(ask: Ask) -> None:
    told = script()
    await ask(told, recipe="graphsearch-released+clew")
    assert told.prompts.count("expand") == 1


async def test_endless_rejection_is_bounded(ask: Ask) -> None:
    new = iter(range(1000))
    told = script(
        verify={"verdict": "REJECT", "missing": "everything"},
        expand=lambda _: {"questions": [f"What else is known, number {next(new)}?"]},
    )
    answer = await ask(told, recipe="graphsearch+clew")
    assert answer.verdict == "answered"
    assert told.prompts.count("expand") == GraphSearch().max_reflections
    assert answer.usage.calls <= 25


async def test_three_and_three_sub_queries_stay_within_the_plan(ask: Ask) -> None:
    told = script(
        verify={"verdict": "REJECT", "missing": "more"},
        expand=lambda text: {
            "questions": [f"What of {len(text)} things?", f"And {len(text)} more?"]
        },
        decompose={"questions": ["Who is Ilse Brandvik?", "What is the Tarn?", "Where is #1?"]},
        relations={
            "facts": [
                {"subject": "Marrow Bridge", "relation": "designer", "object": "Entity#1"},
                {"subject": "Marrow Bridge", "relation": "river", "object": "Entity#2"},
                {"subject": "Entity#1", "relation": "birthplace", "object": "Entity#3"},
            ]
        },
    )
    answer = await ask(told, ODD, recipe="graphsearch+clew")
    assert sum(name.startswith("refine_read") for name in told.prompts) >= 6
    assert answer.usage.calls <= 25


@pytest.mark.parametrize(
    ("recipe", "without"),
    [
        ("graphsearch-none", {"refine_read", "refine", "draft", "verify", "expand"}),
        ("graphsearch-qd-cr", {"draft", "verify", "expand"}),
        ("graphsearch-qd-cr-qg", {"draft", "verify", "expand"}),
        ("graphsearch-qd-cr-qg-ld", {"verify", "expand"}),
    ],
)
async def test_ablations_leave_modules_out(ask: Ask, recipe: str, without: set[str]) -> None:
    told = script(verify={"verdict": "REJECT", "missing": "all"})
    answer = await ask(told, recipe=f"{recipe}+clew")
    assert answer.verdict == "answered"
    assert not without & set(told.prompts)


async def test_without_grounding_nothing_is_filled_in(ask: Ask) -> None:
    answer = await ask(script(), recipe="graphsearch-qd-cr+clew")
    asked = [step.input for step in named(answer.trace, "read")]
    assert "Where was born?" in asked
    assert not any("#" in question for question in asked)


@pytest.mark.parametrize("channel", ["semantic", "relational"])
async def test_one_channel_alone(ask: Ask, channel: str) -> None:
    answer = await ask(script(), recipe=f"graphsearch-{channel}+clew")
    other = {"semantic": "relational", "relational": "semantic"}[channel]
    assert named(answer.trace, f"{channel} channel")
    assert not named(answer.trace, f"{other} channel")


@pytest.mark.parametrize(
    "silent", ["refine_read", "refine", "draft", "verify", "expand", "conclude"]
)
async def test_any_module_may_say_nonsense(ask: Ask, silent: str) -> None:
    answer = await ask(script(**{silent: "la la la"}), recipe="graphsearch+clew", mode="reject")
    assert answer.verdict in ("answered", "refused")
    for citation in answer.citations:
        assert citation.quote


async def test_nonsense_everywhere_is_a_refusal(ask: Ask) -> None:
    answer = await ask(AgentScript({}), ODD, recipe="graphsearch+clew", mode="reject")
    assert answer.verdict == "refused"
    assert answer.citations == ()


async def test_cyclic_placeholders_leave_the_question_whole(ask: Ask) -> None:
    told = script(
        decompose={"questions": ["Where was #2 born?", "Who designed #1?"]},
        relations={
            "facts": [
                {"subject": "Entity#2", "relation": "director", "object": "Entity#3"},
                {"subject": "Entity#7", "relation": "home of Entity#1", "object": ""},
            ]
        },
    )
    answer = await ask(told, ODD, recipe="graphsearch+clew")
    assert answer.verdict == "answered"
    assert {step.input for step in named(answer.trace, "read")} == {ODD}
    left = " ".join(step.output for step in named(answer.trace, "plan"))
    assert "dropped question 1: #2 points forward" in left
    assert "dropped question 1: #0 points nowhere" in left


async def test_what_can_be_filled_of_a_plan_is_asked(ask: Ask) -> None:
    told = script(
        decompose={
            "questions": [
                "Where was #3 born?",
                "Who is the designer of Marrow Bridge?",
                "Where was #2 born?",
            ]
        }
    )
    answer = await ask(told, ODD, recipe="graphsearch-semantic+clew")
    asked = [step.input for step in named(answer.trace, "semantic-question")]
    assert asked == ["Who is the designer of Marrow Bridge?", "Where was Ilse Brandvik born?"]


@pytest.mark.parametrize(
    "said", one_in_three(["lorem ipsum", "[1, 2, 3]", '{"a":' * 50, "null", ""])
)
@pytest.mark.parametrize("mode", ["open", "reject"])
async def test_what_cannot_be_read_stays_within_the_plan_of_calls(
    ask: Ask, said: str, mode: str
) -> None:
    how = {"recipe": "graphsearch-released+clew", "mode": mode, "pinned": False}
    answer = await ask(lambda _: said, ODD, **how)
    assert answer.usage.calls <= GraphSearch().calls
    assert answer.verdict == "refused" or answer.citations


async def test_the_limit_leaves_the_best_so_far_and_a_call_for_the_answer(ask: Ask) -> None:
    new = iter(range(1000))
    told = script(
        refine_read=lambda text: (
            refines(text) if "designer" in text.rsplit("Question:")[-1] else "la la"
        ),
        draft="la la",
        decompose={"questions": ["Who is the designer of Marrow Bridge?", "What was #1 fond of?"]},
        verify={"verdict": "REJECT", "missing": "everything"},
        expand=lambda _: {
            "questions": [f"What else, number {next(new)}?", f"And what of {next(new)}?"]
        },
    )
    answer = await ask(told, ODD, recipe="small", recipes=limited("graphsearch+clew", 25))
    assert answer.usage.calls <= 25
    assert told.prompts[-1].startswith("conclude")
    assert not answer.complete
    assert "the budget of 23 calls is spent" in answer.note
    assert answer.candidate == "Hallowmere"


def limited(base: str, calls: int) -> dict[str, Any]:
    """The table of a recipe with fewer calls."""
    return {"small": {"base": base, "agent": {"calls": calls}}}


def wide(**more: Any) -> AgentScript:
    """A model that asks four sub-queries of each channel, and whose draft needs an expansion."""
    verdicts = iter(["REJECT"])
    return script(
        decompose={"questions": [f"Which bridge has number {n}?" for n in range(4)]},
        relations={
            "facts": [
                {"subject": f"Bridge {n}", "relation": "designer", "object": f"Entity#{n}"}
                for n in range(1, 5)
            ]
        },
        verify=lambda _: {"verdict": next(verdicts, "ACCEPT"), "missing": "the town"},
        **more,
    )


WIDE = "Which bridge has a designer who was born in the town of number 3?"
FULL = "graphsearch-qd-cr-qg-ld-ev-qe+lightrag"


async def test_four_sub_queries_a_channel_leave_calls_for_the_expansion(ask: Ask) -> None:
    answer = await ask(wide(), WIDE, recipe=FULL)
    assert answer.complete and not named(answer.trace, "drop")
    read = [step.input for step in named(answer.trace, "read")]
    assert len(read) >= 9 and "Where was Ilse Brandvik born, exactly?" in read


async def test_sub_queries_are_dropped_by_name_before_the_expansion_is(ask: Ask) -> None:
    told = wide()
    answer = await ask(told, WIDE, recipe="small", recipes=limited(FULL, 20))
    assert answer.usage.calls <= 20 and told.prompts[-1].startswith("conclude")
    dropped = "; ".join(str(step.input) for step in named(answer.trace, "drop")).split("; ")
    assert dropped[0] and all(question in answer.note for question in dropped)
    assert "Where was Ilse Brandvik born, exactly?" in [
        step.input for step in named(answer.trace, "read")
    ]


def test_facts_become_questions_for_their_unknowns() -> None:
    facts = [
        QueryTriple(subject="Marrow Bridge", relation="designer", object="Entity#1"),
        QueryTriple(subject="Entity#1", relation="place of birth", object="Entity#2"),
    ]
    assert triples_to_questions(facts) == [
        "What is the designer of Marrow Bridge?",
        "What is the place of birth of #1?",
    ]
    assert triples_to_questions(
        [QueryTriple(subject="Entity#1", relation="capital", object="法国")]
    ) == ["What has capital 法国?"]


def test_facts_that_cannot_be_asked_point_nowhere() -> None:
    facts = [
        QueryTriple(subject="", relation="capital", object=""),
        QueryTriple(subject="Ash", relation="", object="Entity#1"),
        QueryTriple(subject="Entity#1", relation="director", object=""),
        QueryTriple(subject="Ash", relation="director", object="Entity#1"),
        QueryTriple(subject="Elm", relation="home of Entity#1", object="Entity#4"),
    ]
    # What has no relation is left out before the rest is numbered.
    assert triples_to_questions(facts) == [
        "What is the director of #2?",
        "What is the director of Ash?",
        "What is the home of #2 of Elm?",
    ]
    assert triples_to_questions([QueryTriple(subject="Entity#2", relation="director")]) == [
        "What is the director of #0?"
    ]


def test_the_ablation_recipes_are_values_of_one_agent() -> None:
    full = GraphSearch()
    assert AGENTS["graphsearch"].agent == full
    planned = AGENTS["graphsearch-qd-cr-qg-ld-ev-qe"].agent
    assert planned == replace(full, rules=False)
    assert AGENTS["graphsearch-semantic"].agent == replace(planned, channels=("semantic",))
    released = resolve_recipe("graphsearch-released+naive").agent
    assert isinstance(released, GraphSearch)
    assert (released.expand_on, released.max_reflections) == (Verdict.ACCEPT, 1)
