"""Counting and adding up over a chain of look-ups: every branch counts, or nothing is said."""

from pathlib import Path

import pytest
from agent_asking import Ask, asking

from clew.agents import run_logic as run
from clew.agents.logic.forms import RawStep, needs_all_items, validate_plan
from clew.engine import KnowledgeBase
from clew.testing.fakes import AgentScript

ASKED = "Tell me about all capitals of provinces of Norland: how many, how large?"
LETTERS = "ABCDEFGH"


@pytest.fixture
async def ask(base: KnowledgeBase, tmp_path: Path) -> Ask:
    """Ask a land of eight provinces with a scripted model."""
    rows = ["head\trelation\ttail"]
    for number, letter in enumerate(LETTERS, start=1):
        rows += [
            f"Norland\thas province\tProvince {letter}",
            f"Province {letter}\thas capital\tTown {letter}",
            f"Town {letter}\tpopulation\t{1000 * number}",
        ]
    file = tmp_path / "norland.tsv"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    await base.import_graph(file)
    return asking(base)


def script(*last: str) -> AgentScript:
    steps = [
        ("retrieve", "Norland", "has province"),
        ("retrieve", "#1", "has capital"),
        ("retrieve", "#2", "population"),
        last,
    ]
    return AgentScript(
        {
            "logic": {"steps": [{"op": op, "args": args} for op, *args in steps]},
            "sufficient": {"sufficient": True, "missing": ""},
            "intent": {"intent": "question", "topic": ""},
        }
    )


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (("count", "#2"), "8"),
        (("sum", "#3"), "36,000"),
        (("max", "#3"), "8000"),
        (("get", "#3", "8"), None),
    ],
)
async def test_every_branch_counts(ask: Ask, last: tuple[str, ...], said: str | None) -> None:
    answer = await ask(script(*last), ASKED, recipe="rograg+clew", mode="reject")
    assert answer.verdict == "answered"
    assert answer.complete
    if said is None:
        assert answer.candidate in {f"{1000 * number}" for number in range(1, 9)}
    else:
        assert answer.candidate == said


async def test_more_than_can_be_looked_up_is_not_counted(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MAX_GRAPH_LOOKUPS", 7)
    answer = await ask(script("count", "#2"), ASKED, recipe="rograg+clew", mode="reject")
    assert answer.verdict == "refused"


def test_only_what_is_needed_is_looked_up() -> None:
    first = [
        RawStep(op="retrieve", args=["Norland", "has province"]),
        RawStep(op="retrieve", args=["#1", "has capital"]),
    ]
    assert not needs_all_items(validate_plan(first), 1)
    assert not needs_all_items(validate_plan([*first, RawStep(op="get", args=["#2", "1"])]), 1)
    both = [RawStep(op="get", args=["#1", "1"]), RawStep(op="count", args=["#1"])]
    assert needs_all_items(validate_plan([first[0], *both]), 1)
