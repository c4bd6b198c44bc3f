"""What a question is answered with is quoted whole: what is announced, functions, definitions."""

from pathlib import Path

import pytest

from clew.agents.answering.units import QuestionSigns, rank_units
from clew.agents.base import Answer
from clew.config import Settings
from clew.reader.span_reader import find_reader
from clew.testing.hashed_kb import open_hashed
from clew.text.announced import find_counts
from clew.text.places import find_units, quotable_unit
from clew.types import Passage

RUSSIAN = """# Разрешение зависимостей

В программе имеются два основных алгоритма разрешения зависимостей.

Первый — непосредственное разрешение. Он используется при выборе пакета для установки.

Второй алгоритм называется интерактивным разрешением. Он даёт вам просмотр решения.

# Прочее

Для пакетов есть и другие страницы.
"""
RING = """/* Ring buffer for the CAN bus. */
#define RING_SIZE 256
/* Returns -EAGAIN when the buffer is empty. */
int ring_pop(struct ring *r, uint8_t *out)
{
    if (r->head == r->tail)
        return -EAGAIN;
    return 0;
}
"""


async def ask(tmp_path: Path, name: str, text: str, question: str, **more: str) -> Answer:
    for other, said in {name: text, **more}.items():
        (tmp_path / other).write_text(said, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    base.reader = find_reader(None)
    await base.add([tmp_path / other for other in (name, *more)])
    return await base.ask(question)


async def test_paragraphs_that_are_announced_by_their_number_are_quoted(tmp_path: Path) -> None:
    question = "Какие два алгоритма разрешения зависимостей есть в программе?"
    answer = await ask(tmp_path, "a.md", RUSSIAN, question)
    quote = answer.citations[0].quote
    assert quote.startswith("В программе имеются два") and quote.endswith("просмотр решения.")


@pytest.mark.parametrize(
    ("sentence", "counts"),
    [
        ("There are two main algorithms.", {2}),
        ("Es gibt drei Arten von Filtern.", {3}),
        ("安装方式有两种。", {2}),
        ("The 4 forms are these.", {4}),
        ("It was built in 1931 and has 2.5 m.", set()),
        ("It filters 5 % of it.", set()),
    ],
)
def test_small_numbers_count_things(sentence: str, counts: set[int]) -> None:
    assert find_counts(sentence) == counts


def test_only_as_many_paragraphs_as_are_announced_belong_to_a_unit() -> None:
    two = "It has two parts.\n\nThe first is a lid.\n\nThe second is a lamp."
    [unit] = find_units(two)
    assert unit.quote(two) == two
    three = f"{two}\n\nIt is sold in Vessen."
    assert [unit.quote(three) for unit in find_units(three)][0] == "It has two parts."
    found = "The survey found rot in two beams. A roofer came. The choir sang on Sunday."
    assert quotable_unit(found, 0, 5).quote(found) == "The survey found rot in two beams."


async def test_a_function_is_quoted_whole_and_a_code_with_its_sign(tmp_path: Path) -> None:
    question = "Which code does ring_pop return when the buffer is empty?"
    answer = await ask(tmp_path, "ring.c", RING, question)
    assert answer.candidate == "-EAGAIN", answer.answer
    assert answer.citations[0].quote == RING[RING.index("/* Returns") :].rstrip()


@pytest.mark.parametrize(
    "mark", ["`max_flow`: %s\n\n`min_flow`: %s", "- `max_flow`: %s\n- `low`: %s"]
)
async def test_a_definition_on_one_line_is_quoted_with_all_its_sentences(
    tmp_path: Path, mark: str
) -> None:
    said = ("The highest flow in litres per minute. Default 40.", "The lowest flow. Default 3.")
    text = f"# Pump settings\n\nThe pump is set in one file.\n\n{mark % said}\n"
    answer = await ask(tmp_path, "pump.md", text, "What is the default of max_flow?")
    assert answer.citations[0].quote.endswith(f"`max_flow`: {said[0]}")
    assert answer.citations[0].heading == "Pump settings > max_flow"
    assert "`min_flow`" not in answer.citations[0].quote


def test_lines_that_define_are_units_of_their_own() -> None:
    text = "max_flow: The highest flow. Default 40.\nmin_flow: The lowest flow,\nin litres."
    assert [unit.term for unit in find_units(text)] == ["max_flow", "min_flow"]
    assert [unit.quote(text) for unit in find_units(text)] == text.split("\n", 1)


ROTATE = """# rotate

## Options

copy
:   Make a copy of the log file, but don't change the original at all.

nocopy
:   Do not copy the original log file and leave it in place. (This overrides the copy option.)

copytruncate
:   Truncate the original log file to zero size in place after creating a copy of it.

nocopytruncate
:   Do not truncate the original log file in place after creating a copy of it.

size number
:   Log files are rotated only if they grow bigger than so many bytes; a k means kilobytes.

-H name
:   Release a log that was put "on hold".

-h name
:   Put a log "on hold", so that it is not rotated.
"""


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Which option keeps the original log file in place by copying it first?", "copy"),
        ("Which option prevents copying the original log file?", "no"),
    ],
)
async def test_of_opposite_terms_the_one_that_is_asked_for_comes_first(
    tmp_path: Path, question: str, first: str
) -> None:
    answer = await ask(tmp_path, "rotate.md", ROTATE, question)
    assert answer.citations[0].quote.startswith(first), answer.answer


async def test_a_short_answer_has_no_wide_gaps(tmp_path: Path) -> None:
    text = "# Radio\n\nA beacon is sent to the    Limited Broadcast\n   Address of it.\n"
    answer = await ask(tmp_path, "radio.txt", text, "To which address is a beacon sent?")
    assert "  " not in answer.candidate


def test_the_case_of_an_option_is_told_by_what_it_does() -> None:
    signs = QuestionSigns({"put": 0.5, "hold": 0.5}, action="put")
    best, second, *_ = rank_units(
        signs, [Passage("p", "rotate.md", "", 1.0, ROTATE, 0, len(ROTATE))]
    )
    assert (best.unit.term, second.unit.term) == ("-h name", "-H name")


CODES = """# Exit values

- 0 - Success
- 5 - Error starting the client-server protocol
- 23 - Partial transfer due to an error
- 24 - Partial transfer due to vanished source files
- 25 - The limit of deletions stopped it

# Settings

The file has these settings:

rotate count
:   Log files are rotated count times before they are removed.

missingok
:   If the log file is missing, go on to the next one without an error.

olddir directory
:   Logs are moved into the directory when they are rotated.
"""


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("What does exit code 24 mean?", "- 24 - Partial transfer due to vanished source files"),
        (
            "What does missingok do?",
            "missingok\n:   If the log file is missing, go on to the next one without an error.",
        ),
    ],
)
async def test_an_entry_of_a_list_is_quoted_alone(
    tmp_path: Path, question: str, quote: str
) -> None:
    answer = await ask(tmp_path, "tool.md", CODES, question)
    assert answer.citations[0].quote == quote, answer.answer
    assert answer.answer.count("\n-") + answer.answer.count("\n:") <= 1


def test_items_of_codes_are_units_and_others_are_not() -> None:
    codes = "- E7: no water\n- E8: no power\n- E9: no heat"
    assert [unit.term for unit in find_units(codes)] == ["E7", "E8", "E9"]
    [plain] = find_units("- take the pot: it is heavy\n- wash it\n- put it back")
    assert plain.term == ""
