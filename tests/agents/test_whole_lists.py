"""A list that runs over the border of two passages is quoted whole, in order."""

from dataclasses import replace
from pathlib import Path

import pytest

from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.base import Answer
from clew.agents.quote_units import complete_lists
from clew.config import Settings
from clew.context import Context
from clew.engine import KnowledgeBase
from clew.testing.hashed_kb import open_hashed
from clew.types import Citation, Found

STEPS = [
    f"{n}. Clean sieve {n} of the washer with a soft brush and dry it before you go on."
    for n in range(1, 41)
]
PARTS = [f"- Spare part P{n} in a bag with two screws and a rubber seal." for n in range(40)]
OPTIONS = [f"--part{n} <name>\n:   Take part {n} of the washer to the workshop." for n in range(60)]
PAGE = "\n".join(
    (
        "# The washer\n\n## Yearly service\n\nFor the yearly service:\n",
        *STEPS,
        "\n## Storage\n\nKeep it dry.\n\n1. Cover it with a cloth.\n2. Lock the room.",
        "\n## Contents of the box\n\nThe contents of the box are:\n",
        *PARTS,
        "\n## Options of washctl\n\n" + "\n\n".join(OPTIONS),
        "\n## Exit status of washctl\n\n0\n:   All went well.\n\n1\n:   Water ran out.",
    )
)


@pytest.fixture
async def washer(tmp_path: Path) -> KnowledgeBase:
    write(tmp_path / "washer.md")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "washer.md"])
    return base


def write(path: Path) -> None:
    path.write_text(PAGE)


@pytest.mark.parametrize(
    ("question", "items"),
    [
        ("How do I do the yearly service of the washer?", STEPS),
        ("List the contents of the box", PARTS),
        ("List the options of washctl", OPTIONS),
    ],
)
async def test_all_items_are_quoted_in_order(
    washer: KnowledgeBase, question: str, items: list[str]
) -> None:
    answer = await washer.ask(question, mode="open")
    places = [answer.answer.find(f"{item.strip()}") for item in items]
    assert -1 not in places
    assert places == sorted(places)
    assert len(answer.citations) > 1  # each is in one passage
    for cited in answer.citations:
        assert cited.quote in PAGE
    assert "Cover it with a cloth" not in answer.answer
    assert "Water ran out" not in answer.answer


async def test_an_entry_within_the_part_that_is_added_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "washctl.md"
    page.write_text("# Washer\n\n## Options of washctl\n\n" + "\n\n".join(OPTIONS[:30]))
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([page])
    completed = list[tuple[Citation, ...]]()

    async def complete(ctx: Context, found: Found, answer: Answer) -> Answer:
        whole = await complete_lists(ctx, found, answer)
        first, second = whole.citations
        home = next(one for one in whole.evidence.chunks if one.id == first.chunk)
        at = first.start - home.start
        entry = make_citation(home, SupportSpan(at, at + len(OPTIONS[0]), 1.0))
        again = await complete_lists(ctx, found, replace(whole, citations=(second, entry)))
        completed.extend([(first, second), again.citations])
        return whole

    monkeypatch.setattr("clew.agents.graph_reader.complete_lists", complete)
    await base.ask("List the options of washctl", mode="open")
    assert completed[0] == completed[1]
