"""A question that wants several things gets all of them, with what says so."""

from pathlib import Path

import pytest

from clew.agents.reading.choose import measure_coverage
from clew.agents.reading.lists import find_list, join_items, wants_several
from clew.agents.rules.question_analysis import find_wanted_block
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.reader.span_reader import READER_FILE, find_reader
from clew.testing.hashed_kb import open_hashed
from conftest import one_in_three

NOTES = """# Ferry office

## Signals of the gate

| Code | Meaning | What to do |
|---|---|---|
| G-11 | The ramp is wet | Drive slowly |
| G-27 | The ramp is closed | Wait in lane 3 |
"""
CHINESE = """# 渡轮公司

公司位于青岛。

## 退票流程

1. 打开网站。
2. 填写退票单。
3. 等待短信。
"""


@pytest.fixture
async def base(tmp_path: Path) -> KnowledgeBase:
    (tmp_path / "ferry.md").write_text(NOTES, encoding="utf-8")
    (tmp_path / "duolun.md").write_text(CHINESE, encoding="utf-8")
    kb = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await kb.add([tmp_path / "ferry.md", tmp_path / "duolun.md"])
    return kb


@pytest.mark.parametrize(
    ("sentence", "span", "items"),
    [
        (
            "It was begun by Ada Norr and her brother Olaf Norr.",
            "Ada Norr",
            ["Ada Norr", "Olaf Norr"],
        ),
        (
            "She shot Low Tide (1961) and The Quay (1968).",
            "The Quay",
            ["Low Tide", "The Quay"],
        ),
        ("Its owners are J.K. Lund, Mia de Vries, and Bo Ek.", "Mia de Vries", 3),
        ("The soup needs salt, black pepper and olive oil.", "salt", 3),
        ("He was born in Tromsø, Norway.", "Tromsø", ["Tromsø"]),
        ("It was led by Ada Norr and was sold to Bo Ek.", "Ada Norr", ["Ada Norr"]),
        ("The owners are Ada Norr and Bo Ek; the seat is Oslo.", "Bo Ek", ["Ada Norr", "Bo Ek"]),
    ],
)
def test_what_stands_in_one_list_is_found(sentence: str, span: str, items: list[str] | int) -> None:
    start = sentence.index(span)
    found = find_list(sentence, start, start + len(span))
    assert (len(found) if isinstance(items, int) else found) == items


def test_items_are_written_as_one_answer() -> None:
    assert join_items(["Ada", "Bo", "ada"]) == "Ada and Bo"
    assert join_items(["Ada", "Bo", "Cy"]) == "Ada, Bo and Cy"


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("Which films did N direct?", True),
        ("In which cities did N live?", True),
        ("Could you tell me who are the owners of N?", True),
        ("Name the founders of N.", True),
        ("Which bus goes to N?", False),
        ("Which series is about N?", False),
        ("Who founded N?", False),
        ("What does N do?", False),
        ("Which canal flows through N?", False),
        ("Which festival takes place in N?", False),
        ("Which plan costs more?", False),
        ("What causes rust?", False),
        ("What happens in May?", False),
        ("What makes the lamp blink?", False),
        ("Which canals flow through N?", True),
        ("Which lines cross the town?", True),
        ("Which local films won?", True),
        ("Which public holidays fall in May?", True),
        ("What options control the cache?", True),
        ("What types of fish live here?", True),
    ],
)
def test_plural_questions_want_several(question: str, several: bool) -> None:
    assert wants_several(question) is several


async def test_a_table_is_listed_whole(base: KnowledgeBase) -> None:
    answer = await base.ask("List the signals of the gate.", mode="reject")
    assert answer.verdict == "answered"
    assert answer.citations[0].quote.count("G-") == 2


@pytest.mark.parametrize(
    ("question", "named"),
    [("What does G-27 mean?", "The ramp is closed"), ("What to do on G-11?", "Drive slowly")],
)
async def test_a_cell_is_named_by_its_row_and_column(
    base: KnowledgeBase, question: str, named: str
) -> None:
    answer = await base.ask(question, mode="reject")
    assert answer.candidate == named
    assert named in answer.citations[0].quote


@pytest.mark.parametrize("question", ["如何退票?", "退票的步骤有哪些?", "请问退票流程是怎样的?"])
async def test_chinese_steps_are_quoted_in_order(base: KnowledgeBase, question: str) -> None:
    answer = await base.ask(question, mode="reject")
    quote = answer.citations[0].quote
    assert [quote.index(one) for one in ("1. 打开网站", "2. 填写退票单", "3. 等待短信")]


def test_what_asks_in_chinese_need_not_be_said() -> None:
    assert find_wanted_block("退票的步骤有哪些?") == "steps"
    assert measure_coverage("退票的步骤有哪些?", "退票流程") == 1
    assert measure_coverage("如何改签?", "退票流程") == 0


needs_reader = pytest.mark.skipif(not READER_FILE.is_file(), reason="no weights of the reader")
SPONSORS = "Aldo Cycles, Brenna Milk, Cormo Bank, Duvall Paint, Elkem Steel, Fanto Toys, Gorse Inn"
OTHER = "Halden Print, Ister Ferries, Juno Optics, Karst Stone, Lumo Lamps"


@needs_reader
@pytest.mark.parametrize(
    ("question", "begins"),
    one_in_three(
        [
            ("Which companies sponsored the Ome Valley Race?", ""),
            ("List all sponsors of the Ome Valley Race.", ""),
            ("How many sponsors has the Ome Valley Race had?", "12"),
        ]
    ),
)
async def test_pages_that_say_one_item_each_make_one_list(
    tmp_path: Path, question: str, begins: str
) -> None:
    names = f"{SPONSORS}, {OTHER}".split(", ")
    pages = [tmp_path / f"y{at}.md" for at in range(len(names))]
    for at, name in enumerate(names):
        text = f"# Ome Valley Race {2001 + at}\n\nThe race of {2001 + at} was sponsored by {name}."
        weather = f" {40 + at} riders started at Marle and the weather was fine.\n"
        pages[at].write_text(text + weather, encoding="utf-8")
    kb = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    kb.reader = find_reader(None)
    await kb.add(pages)
    answer = await kb.ask(question)
    assert [name for name in names if name not in answer.candidate] == []
    assert answer.candidate.startswith(begins) and not answer.complete


@needs_reader
@pytest.mark.parametrize(
    ("text", "question", "number"),
    [
        ("The ward kept 340 nurses on.", "How many nurses were left in the ward?", "340"),
        ("Of the 90 bulbs, 63 flowered in May.", "How many bulbs flowered in May?", "63"),
    ],
)
async def test_a_number_that_is_said_is_told_and_not_counted(
    tmp_path: Path, text: str, question: str, number: str
) -> None:
    (tmp_path / "note.md").write_text(f"# Note\n\n{text}\n", encoding="utf-8")
    kb = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    kb.reader = find_reader(None)
    await kb.add([tmp_path / "note.md"])
    assert (await kb.ask(question)).candidate.split()[0] == number
