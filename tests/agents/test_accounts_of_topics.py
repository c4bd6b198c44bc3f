"""Where breadth is wanted, what covers the topic is quoted, and no single name is the answer."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.hashed_kb import open_hashed

PAGES = {
    "01-survey.md": "# Roof survey, January\n\nThe survey by Pelham found rot in two beams of the "
    "roof. Tom Reddy was asked for three quotations. The choir sang on Sunday.",
    "02-order.md": "# Roof order, February\n\nCroft Timber was engaged for the roof at 15,900 "
    "pounds. The insurance of the hall ends in June.",
    "03-copy.md": "# Notes\n\nCroft Timber was engaged for the roof at 15,900 pounds. Leonie Park "
    "looks after the garden of the hall.",
    "04-works.md": "# Roof works, June\n\nThe works on the roof were completed on 12 June, and a "
    "third beam was replaced.",
    "benefits.md": "# Benefits\n\nThe company pays five per cent of the salary into the pension "
    "fund. A bicycle can be leased through the firm. The canteen is subsidised by the firm.",
    "messages.md": "# Lights and messages\n\n| Message | Meaning |\n|---|---|\n"
    "| E1 | The sensor is broken |\n| E2 | The coil is iced up |\n| E4 | The fan is blocked |\n\n"
    "A blue light means that the air is dry enough.",
}


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[KnowledgeBase]:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / name for name in PAGES])
    yield base
    await base.close()


async def test_an_account_quotes_several_pages_once_each_and_in_order(kb: KnowledgeBase) -> None:
    answer = await kb.ask("Summarize the history of the roof")
    assert (answer.kind, answer.candidate) == ("account", "")
    docs = [Path(one.doc).name for one in answer.citations]
    assert len(set(docs)) >= 3 and docs == sorted(docs)
    assert "rot in two beams" in answer.answer and "12 June" in answer.answer
    assert answer.answer.count("Croft Timber was engaged") == 1
    assert "choir" not in answer.answer and "bicycle" not in answer.answer
    for number in range(1, len(answer.citations) + 1):
        assert f"[{number}]" in answer.answer


async def test_a_table_with_a_column_of_what_is_listed_is_quoted_whole(kb: KnowledgeBase) -> None:
    answer = await kb.ask("List all error messages")
    assert answer.candidate == "" and len(answer.citations) == 1
    assert all(code in answer.answer for code in ("E1", "E2", "E4"))


async def test_a_section_that_is_called_what_is_asked_for_is_quoted(kb: KnowledgeBase) -> None:
    answer = await kb.ask("What are the main benefits for employees?")
    assert answer.verdict == "answered"
    for said in ("pension", "bicycle", "canteen"):
        assert said in answer.answer
    assert Path(answer.citations[0].doc).name == "benefits.md"


async def test_confidence_says_how_much_of_the_topic_is_covered(kb: KnowledgeBase) -> None:
    covered = await kb.ask("Summarize the history of the roof")
    partly = await kb.ask("Summarize the history of the roof of the airport")
    assert covered.confidence > 0.5 > partly.confidence
    refused = await kb.ask("Summarize the history of the airport", mode="reject")
    assert refused.verdict == "refused"


@pytest.mark.parametrize(
    "question", ["What does E2 mean?", "Who was engaged for the roof?", "When were the works done?"]
)
async def test_a_question_for_one_thing_is_no_account(kb: KnowledgeBase, question: str) -> None:
    assert (await kb.ask(question)).kind != "account"


CAPTION = "Visitors queue before the gate of the Varrow museum on a sunny day."
ROOMS = {
    "clocks": "The hall of clocks shows ninety clocks that were collected by Edda Lorne.",
    "mill": "A paper mill from 1740 still turns in the yard and makes sheets by hand.",
    "coins": "The coins were found by a ploughman and fill eleven drawers.",
    "robbery": "Thieves took a silver beaker in 1988; it came back by post.",
    "garden": "Herbs of the old pharmacy grow in four beds behind the chapel.",
    "organ": "The organ was built for a cinema and bought for one crown.",
}


def write_site(folder: Path) -> list[Path]:
    """Pages of one site: each has the caption, its standings and one thing of its own."""
    for number, (name, said) in enumerate(ROOMS.items()):
        table = f"| Desk | Guests |\n|---|---|\n| North desk | {number + 4} |\n| South desk | 9 |"
        text = f"# Varrow museum: {name}\n\n{CAPTION}\n\n{said}\n\n{table}\n\n{CAPTION}\n"
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return [folder / f"{name}.md" for name in ROOMS]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[KnowledgeBase]:
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add(write_site(tmp_path))
    yield base
    await base.close()


async def test_what_every_page_repeats_is_no_part_of_an_account(site: KnowledgeBase) -> None:
    answer = await site.ask("Summarize what is known about the Varrow museum")
    assert answer.kind == "account"
    assert "queue" not in answer.answer and "desk" not in answer.answer
    assert sum(said in answer.answer for said in ROOMS.values()) >= 4


async def test_what_every_page_repeats_is_told_where_only_that_says_it(site: KnowledgeBase) -> None:
    answer = await site.ask("Give an overview of the guests at the desks")
    assert "North desk" in answer.answer


async def test_what_copies_of_one_page_say_is_not_taken_for_repeated(tmp_path: Path) -> None:
    said = "\n\n".join(ROOMS.values())
    for number in range(8):
        text = f"# Varrow museum\n\n{said}\n\nLeaflet number {number}.\n"
        (tmp_path / f"leaflet{number}.md").write_text(text, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / f"leaflet{number}.md" for number in range(8)])
    answer = await base.ask("Summarize what is known about the Varrow museum")
    await base.close()
    assert all(answer.answer.count(one) == 1 for one in ROOMS.values())


async def test_a_summary_of_the_only_page_tells_of_each_section(tmp_path: Path) -> None:
    text = "# Varrow museum\n\nThe museum opened in 1911 in a former barracks.\n"
    text += "".join(f"\n## {name.title()}\n\n{said}\n" for name, said in ROOMS.items())
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "page.md"])
    answer = await base.ask("Summarize the page")
    await base.close()
    assert "1911" in answer.answer and all(one in answer.answer for one in ROOMS.values())


async def test_only_the_items_with_the_code_that_is_asked_for_are_listed(tmp_path: Path) -> None:
    rows = [f"- Valve {name}, line L{number % 3}" for number, name in enumerate(ROOMS)]
    (tmp_path / "valves.md").write_text("# Valves\n\n" + "\n".join(rows), encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "valves.md"])
    answer = await base.ask("List all valves of line L1")
    every = await base.ask("List all valves")
    await base.close()
    assert [one.quote for one in answer.citations] == [rows[1], rows[4]]
    assert all(row in every.answer for row in rows)
