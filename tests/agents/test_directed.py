"""Who does what to whom: the two sides of a relation exchanged, and what holds without a thing."""

import pytest

from clew.agents.core.confidence import save_models
from clew.agents.reading.assertion import judge_without
from clew.agents.reading.directed import has_exchanged_sides
from clew.agents.rules.table import load_table
from clew.engine import KnowledgeBase
from clew.testing.word_reader import CONFIDENCE
from conftest import OpenFilled, document, stream

PAGES = {
    "Build": "The scanner calls the loader. In version 4 the cache was superseded by the ledger. "
    "The ledger is faster than the cache. Files may not be deleted without a backup. Guests may "
    "read without a token. Reports are printed with a header.",
    "Marlin Foods": "Marlin Foods is a subsidiary of Tarn Holdings. It acquired Pelham Dairy in "
    "2003. Dana Roe is the assistant of Miles Kerr.",
    "Imre Volk": "Imre Volk was a painter. He was a pupil of Cosima Brandt.",
}


async def fill_pages(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))
    await save_models(base.store, CONFIDENCE)


@pytest.fixture
async def pages(open_filled: OpenFilled) -> KnowledgeBase:
    base = await open_filled(fill_pages)
    base.scorer = None  # what sentences prove without it
    return base


@pytest.mark.parametrize(
    ("right", "exchanged"),
    [
        ("Does the scanner call the loader?", "Does the loader call the scanner?"),
        ("Was the cache superseded by the ledger?", "Was the ledger superseded by the cache?"),
        ("Is the ledger faster than the cache?", "Is the cache faster than the ledger?"),
        (
            "Is Marlin Foods a subsidiary of Tarn Holdings?",
            "Is Tarn Holdings a subsidiary of Marlin Foods?",
        ),
        ("Did Marlin Foods acquire Pelham Dairy?", "Did Pelham Dairy acquire Marlin Foods?"),
        ("Is Dana Roe the assistant of Miles Kerr?", "Is Miles Kerr the assistant of Dana Roe?"),
        ("Was Imre Volk a pupil of Cosima Brandt?", "Was Cosima Brandt a pupil of Imre Volk?"),
    ],
)
async def test_yes_is_not_said_of_exchanged_sides(
    pages: KnowledgeBase, right: str, exchanged: str
) -> None:
    assert (await pages.ask(right)).candidate == "yes"
    assert (await pages.ask(exchanged)).candidate != "yes"


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("May files be deleted without a backup?", "no"),
        ("May files be deleted with a backup?", "yes"),
        ("May guests read without a token?", "yes"),
        ("Are reports printed without a header?", "no"),
    ],
)
async def test_what_is_forbidden_without_a_thing_is_allowed_with_it(
    pages: KnowledgeBase, question: str, short: str
) -> None:
    assert (await pages.ask(question)).candidate == short


async def test_the_teacher_is_not_told_as_the_pupil(pages: KnowledgeBase) -> None:
    answer = await pages.ask("Who was the pupil of Imre Volk?")
    assert answer.candidate != "Cosima Brandt" or answer.confidence < 0.5


@pytest.mark.parametrize(
    ("question", "sentence", "short", "exchanged"),
    [
        ("Who was the pupil of Volk?", "He was a pupil of Anna Brandt.", "Anna Brandt", True),
        ("Who was the teacher of Volk?", "He was a pupil of Anna Brandt.", "Anna Brandt", False),
        ("Whom did Volk teach?", "He studied in Oslo under Anna Brandt.", "Anna Brandt", True),
        ("Who did Volk study under?", "He studied under Anna Brandt.", "Anna Brandt", False),
        ("Under whom did Volk train?", "He trained under Anna Brandt.", "Anna Brandt", False),
        ("What caused the crash at Ribe?", "At Ribe the cause was a leak.", "a leak", False),
        (
            "Owls was written by who?",
            "Owls is a book written and drawn by Ida Moe.",
            "Ida Moe",
            False,
        ),
        ("Who was the predecessor of Abt?", "His successor was Ida Moe.", "Ida Moe", True),
        ("Who was Abt's successor?", "His successor was Ida Moe.", "Ida Moe", False),
        ("Who preceded Abt?", "He was succeeded in 1921 by Ida Moe.", "Ida Moe", True),
        ("Who succeeded Abt?", "He was succeeded in 1921 by Ida Moe.", "Ida Moe", False),
        (
            "Who was the student of Pike?",
            "Rovers were coached by Ned Pike, who had been a student of Olaf Brun.",
            "Olaf Brun",
            True,
        ),
        ("Which company does Orion own?", "Orion belongs to Zebra AG.", "Zebra AG", True),
        ("Which company owns Orion?", "Orion belongs to Zebra AG.", "Zebra AG", False),
        ("Was Peter the son of John?", "John was the son of Peter.", "", True),
        ("Was John the son of Peter?", "John was the son of Peter.", "", False),
        ("Did Ida Moe marry Per Abt?", "Per Abt married Ida Moe.", "", False),
        ("Did Volk teach at the Oslo Academy?", "At the Oslo Academy he taught art.", "", False),
    ],
)
def test_sides_are_compared(question: str, sentence: str, short: str, exchanged: bool) -> None:
    assert has_exchanged_sides(question, sentence, load_table("en"), short) is exchanged


@pytest.mark.parametrize(
    ("claim", "sentence", "verdict"),
    [
        ("the tenant sublet without consent", "The tenant may not sublet without consent.", "no"),
        ("the tenant sublet with consent", "The tenant may not sublet without consent.", "yes"),
        ("the tenant sublet", "The tenant may not sublet without consent.", ""),
        ("guests read without a token", "Guests may read without a token.", "yes"),
        ("guests read without a badge", "Guests may read without a token.", "open"),
        ("first class without a long journey", "First class is for a long journey.", "open"),
        ("guests read", "Guests may read.", ""),
    ],
)
def test_without_is_read(claim: str, sentence: str, verdict: str) -> None:
    assert judge_without(claim, sentence) == verdict
