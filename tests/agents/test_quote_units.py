"""Without a model, units of manuals are quoted: a definition with its term, a row, steps."""

from pathlib import Path

import pytest

from clew.agents.answering.units import QuestionSigns, choose_units, rank_units
from clew.agents.quote_units import asks_one_thing, has_parts
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.ingest.readers.table_text import label_rows
from clew.reader.span_reader import find_reader
from clew.testing.hashed_kb import open_hashed
from clew.text.places import find_units
from clew.types import Passage
from conftest import one_in_three

MANUAL = """# Server settings

## Memory

pool_size (integer)
:   Sets the size of the shared pool of the server. It is read at start. The default is 128MB.

lock_wait (integer)
:   Sets how long the server waits for a lock. The default is one second.

## Limits

| Item | Limit |
|------|-------|
| name length | 63 bytes |
| columns | 1600 |

## Upgrading

To upgrade the server:

1. Stop it.
2. Copy the data folder.
3. Start the new one.

Run the check afterwards:

```
check --all
```
"""
FILLER = "\n\n".join(f"## Note {n}\n\n{'Nothing of note is said here. ' * 40}" for n in range(4))


@pytest.fixture
async def kb(tmp_path: Path) -> KnowledgeBase:
    (tmp_path / "manual.md").write_text(f"{MANUAL}\n{FILLER}", encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "manual.md"])
    return base


@pytest.mark.parametrize(
    ("question", "quoted"),
    one_in_three(
        [
            (
                "How large is the pool_size of the server by default?",
                "pool_size (integer)\n:   Sets",
            ),
            ("What is the limit of the name length?", "| Item: name length | Limit: 63 bytes |"),
            ("How do I upgrade the server?", "1. Stop it.\n2. Copy the data folder.\n3. Start"),
            ("What do I run to check afterwards?", "Run the check afterwards:\n\n```\ncheck --all"),
        ]
    ),
)
async def test_what_answers_is_quoted_as_a_unit(
    kb: KnowledgeBase, question: str, quoted: str
) -> None:
    answer = await kb.ask(question)
    assert any(quoted in citation.quote for citation in answer.citations), answer.answer
    text = (await kb.search(question)).evidence.chunks
    assert text and answer.verdict == "answered"
    for citation in answer.citations:  # each is a span of the document, word for word
        assert citation.quote in label_rows(f"{MANUAL}\n{FILLER}")
    await kb.close()


@pytest.mark.parametrize("question", ["What is pool_size?", "What is lock_wait?"])
async def test_a_unit_is_quoted_once(kb: KnowledgeBase, question: str) -> None:
    answer = await kb.ask(question)
    await kb.close()
    term = question.split()[-1].strip("?")
    assert [cited.quote.split()[0] for cited in answer.citations] == [term], answer.answer
    assert answer.answer.count(f"{term} (integer)") == 1 and "[2]" not in answer.answer


def test_units_are_whole_and_in_order() -> None:
    found = [unit.quote(MANUAL) for unit in find_units(MANUAL)]
    assert found[0].startswith("pool_size") and found[0].endswith("128MB.")
    assert any(text.startswith("To upgrade") and text.endswith("new one.") for text in found)
    assert not any(text.startswith("#") for text in found)
    assert {unit.section for unit in find_units(MANUAL)} >= {("Server settings", "Limits")}


def test_long_blocks_are_cut_with_their_term_and_header() -> None:
    rows = "\n".join(f"| name {n} | {n} |" for n in range(60))
    term = "wide (text)\n:   " + " ".join(f"Sentence number {n} is here." for n in range(60))
    units = find_units(f"| Item | Limit |\n|---|---|\n{rows}\n\n{term}\n")
    last_row = next(u for u in units if u.lead and "name 59" in _quote(u, rows, term))
    assert _quote(last_row, rows, term).startswith("| Item | Limit | …")
    assert any("wide (text) …" in _quote(u, rows, term) for u in units)


def _quote(unit: object, rows: str, term: str) -> str:
    return unit.quote(f"| Item | Limit |\n|---|---|\n{rows}\n\n{term}\n")  # type: ignore[attr-defined]


def test_units_that_say_the_same_are_quoted_once() -> None:
    text = "The pool is large by default."
    passages = [Passage(f"p{n}", f"{n}.md", "", 1.0, text, 0, len(text)) for n in range(2)]
    ranked = rank_units(QuestionSigns({"pool": 1.0}), passages)
    assert len(ranked) == 2 and len(choose_units(ranked, 3)) == 1


def test_the_definition_of_what_is_asked_comes_first() -> None:
    text = "Sample: -prune stops at project3.\n\n-prune, --cut=DEPTH\n:   Do not descend.\n"
    passage = Passage("p", "find.1", "", 1.0, text, 0, len(text))
    for asked in ("prune", "cut"):
        ranked = rank_units(QuestionSigns({asked: 0.5, "sampl": 0.2}), [passage])
        assert ranked[0].text.startswith("-prune, --cut")


def test_a_term_may_leave_what_it_is_part_of_to_the_title() -> None:
    text = "TEND\n:   Feeds a stove.\n\ntender:  One who feeds stoves of the KILN.\n"
    passage = Passage("p", "kiln.md", "KILN", 1.0, text, 0, len(text))
    signs = QuestionSigns(
        {"tende": 0.5, "kiln": 0.5}, asked=("tender", "kiln"), meant=frozenset(("tende", "kiln"))
    )
    assert rank_units(signs, [passage])[0].text.startswith("tender:")


@pytest.mark.parametrize(
    ("question", "one"),
    [
        ("How many connections are allowed?", True),
        ("Which option stashes local changes?", True),
        ("What port does it use?", True),
        ("What is upsc for?", False),
        ("What happens when the disk is full?", False),
        ("How do I get back to the original state?", False),
        ("What is the difference between merge and rebase?", False),
    ],
)
def test_only_one_thing_is_named(question: str, one: bool) -> None:
    assert asks_one_thing(question) is one


def test_rows_of_tables_are_quoted_like_other_parts() -> None:
    assert has_parts("name: Hallowmere; region: Grey Coast; people: 1200.")
    assert not has_parts("Note: the bridge was built in 1871. It is long; it is old.")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What does lock_wait set?", "how long the server waits"),
        ("How do I upgrade the server?", "Copy the data folder."),
    ],
)
async def test_what_adds_nothing_is_not_quoted(kb: KnowledgeBase, question: str, said: str) -> None:
    answer = await kb.ask(question)
    [only] = answer.citations
    assert said in only.quote


SHEET = """# Calder bench supplies

The P30 costs 189 euros and the P60 costs 259 euros. The warranty of the P30 is two years. The case
is made of steel. The fuse of the P60 is a slow type. The output is cut above 85 degrees.

| Part | Number |
|---|---|
| Lead | CL-11 |
| Clamp | CB-20 |
"""
AGENDA = """Minutes of the choir

1. Finances. The balance is 4310 pounds. The hire of the hall costs 25 pounds. Members agreed.

2. Summer concert. The concert will be on 21 June. Mara Lind orders 200 programmes. The hall is old.

3. Piano. The piano was tuned in March. The pedal is broken. Nobody has time for it.
"""


async def _open_page(folder: Path, text: str) -> KnowledgeBase:
    (folder / "page.md").write_text(text.replace("case\nis", "case is"), encoding="utf-8")
    base = await open_hashed(Settings(kb=folder / "kb"), True)
    await base.add([folder / "page.md"])
    return base


async def test_a_paragraph_is_quoted_by_the_sentence_that_tells(tmp_path: Path) -> None:
    base = await _open_page(tmp_path, SHEET)
    answer = await base.ask("Why is the output cut?")
    assert answer.citations[0].quote == "The output is cut above 85 degrees."


async def test_what_two_sentences_say_of_two_things_is_no_answer(tmp_path: Path) -> None:
    base = await _open_page(tmp_path, SHEET)
    own = await base.ask("What type is the fuse of the P60?")
    other = await base.ask("What type is the fuse of the P30?")
    assert other.confidence < min(0.3, own.confidence / 2)


async def test_a_numbered_paragraph_is_quoted_from_its_title_to_its_sentence(
    tmp_path: Path,
) -> None:
    base = await _open_page(tmp_path, AGENDA)
    answer = await base.ask("Why is there a summer concert on 21 June?")
    assert answer.citations[0].quote == "2. Summer concert. The concert will be on 21 June."


@pytest.mark.parametrize(
    "announced",
    [
        "\tgate_lock yes",
        "    gate_lock yes\n    gate_wait 5",
        "gate_lock yes",
        "- gate_lock\n- wait",
    ],
)
async def test_what_announces_something_is_quoted_with_it(tmp_path: Path, announced: str) -> None:
    said = "To keep the harbour gate shut at night, add this to the file of the keeper:"
    text = f"The harbour has two gates.\n\n{said}\n\n{announced}\n\nThe keeper starts it again.\n"
    (tmp_path / "gates.txt").write_text(text, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "gates.txt"])
    answer = await base.ask("What must be added to keep the harbour gate shut at night?")
    quotes = [cited.quote for cited in answer.citations]
    assert any(f"{said}\n\n{announced}" in quote for quote in quotes), answer.answer
    assert all(quote in answer.answer for quote in quotes)
    await base.close()


HARBOUR = """# The harbour

## Notes

- **Night berths** of the inner basin, from 40 metres of length on, where a pilot is booked
  (`berths.csv`, `NIGHT`). They are given out again when a ship has not come by ten in the
  evening; until then the berth is kept. %s
- **Day berths** are free.

## Lamps

The lamp of the harbour shows its state with one of the following signals:

green
:   if ships may enter

white
:   if the pilot has to be waited for

dark
:   if the lamp is being repaired

## Bell

To silence the bell of the harbour for a night you can use

```
bell --hush
```
""" % ("The list of those who wait is read from its beginning, and nobody is called twice. " * 6)


async def test_a_wrapped_item_is_quoted_from_its_beginning(tmp_path: Path) -> None:
    base = await _open_page(tmp_path, HARBOUR)
    answer = await base.ask("From how many metres of length on are night berths used?")
    told = [one.quote for one in answer.citations if "(`berths.csv`" in one.quote]
    assert told and all(quote.startswith("- **Night berths**") for quote in told), answer.answer


async def test_what_definitions_are_announced_for_is_quoted_with_all_of_them(
    tmp_path: Path,
) -> None:
    base = await _open_page(tmp_path, HARBOUR)
    answer = await base.ask("What does the lamp of the harbour show with its signals?")
    whole = HARBOUR[HARBOUR.index("The lamp of") : HARBOUR.index("\n\n## Bell")]
    assert any(whole in one.quote for one in answer.citations), answer.answer


async def test_a_sentence_that_breaks_off_is_quoted_with_its_code(tmp_path: Path) -> None:
    base = await _open_page(tmp_path, HARBOUR)
    answer = await base.ask("How do I silence the bell of the harbour for a night?")
    whole = HARBOUR[HARBOUR.index("To silence") :].strip()
    assert any(whole in one.quote for one in answer.citations), answer.answer


def test_parts_of_a_long_list_know_what_announces_it() -> None:
    items = "\n\n".join(f"code {n}\n:   {'Something is said. ' * 12}" for n in range(8))
    units = find_units(f"It ends with one of these states:\n\n{items}\n\nLater it rests.")
    announced = [unit.announced for unit in units if unit.term and unit.start]
    assert announced == ["It ends with one of these states:"] * 7
    assert not units[-1].announced


STATES = """# The lift

## States

The panel of the lift shows one of these letters for its state:

D
:   The doors are open.

W
:   Somebody has weighed it down.

Z
:   It rests for the night.

## Panel

The panel shows the state of the lift in letters, and each code is explained on its back side.
"""


async def test_a_letter_is_looked_up_as_it_is_written(tmp_path: Path) -> None:
    base = await _open_page(tmp_path, STATES)
    answer = await base.ask("What does the state code Z of the panel mean?")
    assert "Z\n:   It rests for the night." in answer.citations[0].quote, answer.answer
    unknown = await base.ask("What does the state code Q of the panel mean?")
    assert unknown.confidence < min(0.5, answer.confidence)


async def test_a_list_of_definitions_is_quoted_whole_where_a_list_is_asked_for(
    tmp_path: Path,
) -> None:
    text = STATES.replace("one of these letters for its state:", "its state codes by letters.")
    base = await _open_page(tmp_path, text)
    answer = await base.ask("What are the state codes of the lift?")
    whole = text[text.index("The panel of") : text.index("\n\n## Panel")]
    assert any(whole in one.quote for one in answer.citations), answer.answer


async def test_terms_that_begin_with_signs_of_values_are_no_error(tmp_path: Path) -> None:
    terms = {"= a": "Assigns a value.", ", b": "Parts two things.", "CS-204": "The door is open."}
    listed = "".join(f"<dt>{term}</dt><dd>{what}</dd>" for term, what in terms.items())
    page = tmp_path / "operators.html"
    page.write_text(f"<html><body><h1>Operators</h1><dl>{listed}</dl></body></html>")
    kb = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    kb.reader = find_reader(None)
    await kb.add([page])
    assert "The door is open." in (await kb.ask("What does error CS-204 mean?")).answer
