"""Queries that the scorer finds asked; a fake one is told which."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.agents.tables.asked import Asked
from clew.agents.tables.load import Column, Table
from clew.agents.tables.propose import (
    Part,
    list_filters,
    list_parts,
    make_queries,
    weigh_conditions,
)
from clew.agents.tables.reading import Filter
from clew.agents.tables.run import find_rows, run_query
from clew.agents.tables.wording import say_query
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.word_scorer import WordScorer
from conftest import one_in_three, place_tables

SHIPS = """ship,launched,length_m,yard,insured,crew,home
Aurelia,1998-04-02,120,Korsund Works,yes,24,Tarvik
Eider,1961-10-11,45,Lysoe Yard,no,6,Korsund
Delphine,2005-07-30,161,Korsund Works,yes,40,Korsund
Cormorant,2011-01-19,80,Heim Dock,no,0,Tarvik
"""


@pytest.fixture
async def ships(tmp_path: Path) -> AsyncIterator[KnowledgeBase]:
    await asyncio.to_thread(place_tables, tmp_path, {"ships.csv": SHIPS})
    base = await KnowledgeBase.open(Settings(kb=tmp_path / "kb"))
    yield base
    await base.close()


def make_ships() -> Table:
    header, *rows = [line.split(",") for line in SHIPS.split()]
    rows = [line.split(",") for line in SHIPS.strip().splitlines()[1:]]
    columns = {name: Column(name, [row[at] for row in rows]) for at, name in enumerate(header)}
    return Table("ships.csv", "ship", columns, [(str(at), "", "") for at in range(len(rows))])


@pytest.mark.parametrize(
    ("question", "phrases", "answer"),
    one_in_three(
        [
            (
                "What's the biggest one?",
                ["ship (", "highest length m", "ship with the"],
                "Delphine",
            ),
            ("anything uninsured", ["ship (", "insured is no"], "Eider, Cormorant"),
            ("ships nobody mans", ["ship (", "no crew"], "Cormorant"),
            ("who built most of them", ["yard (", "most rows"], "Korsund Works"),
            ("where do several lie", ["home with more than"], "Tarvik, Korsund"),
            ("afloat before 1999?", ["ship (", "launched before 1999"], "Aurelia, Eider"),
        ]
    ),
)
async def test_what_the_scorer_finds_asked_is_computed(
    ships: KnowledgeBase, question: str, phrases: list[str], answer: str
) -> None:
    ships.scorer = WordScorer({question: [*phrases, f"= {answer}"]})
    found = await ships.ask(question)
    assert found.candidate == answer
    assert 0.3 < found.confidence < 0.9
    assert found.citations


async def test_a_guess_that_the_scorer_denies_is_not_told(ships: KnowledgeBase) -> None:
    question = "Who built the Aurelia?"
    ships.scorer = WordScorer({question: ["home where ship is aurelia"]})
    assert (await ships.ask(question)).candidate != "Korsund Works"


async def test_a_reading_that_guesses_nothing_stands_unless_the_scorer_rules_it_out(
    ships: KnowledgeBase,
) -> None:
    question = "What is the crew of the Aurelia?"
    ships.scorer = WordScorer({question: []}, wrong=0.1)
    found = await ships.ask(question)
    assert found.candidate == "24" and found.confidence > 0.5
    ships.scorer = WordScorer({question: []}, wrong=0.001)
    assert (await ships.ask(question)).confidence < 0.5


def test_a_value_that_no_word_says_is_less_likely_than_none() -> None:
    unsaid, said = Filter("home", "=", "tarvik"), Filter("home", "=", "tarvik", at=3)
    for one, likeliest in ((unsaid, ()), (said, (said,))):
        sets = weigh_conditions(make_ships(), {one: 0.9})
        assert max(sets, key=sets.__getitem__) == likeliest


async def test_whether_it_is_so_is_no_answer_to_a_request(ships: KnowledgeBase) -> None:
    question = "Tell me about the Aurelia of Tarvik"
    ships.scorer = WordScorer({question: ["whether there is a row", "whether it is so", "is "]})
    assert (await ships.ask(question)).candidate != "Yes"


async def test_a_question_that_the_scorer_cannot_read_is_read_by_rules(
    ships: KnowledgeBase,
) -> None:
    ships.scorer = WordScorer({})
    assert (await ships.ask("What is the crew of the Aurelia?")).candidate == "24"


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("Korsund ships", Filter("home", "=", "korsund")),
        ("longer than 80 metres", Filter("length_m", ">", "80")),
        ("launched in July 2005", Filter("launched", "month", "2005-07")),
        ("on 11 October 1961", Filter("launched", "=", "1961-10-11")),
        ("on the 11th of October", Filter("launched", "=", "1961-10-11")),
        ("since the 3rd of October", Filter("launched", ">=", "2011-10-03")),
        ("since two thousand", Filter("length_m", ">=", "2000")),
        ("not from Heim Dock", Filter("yard", "=", "heim dock", negated=True)),
        ("works of Korsund", Filter("yard", "=", "korsund works")),
    ],
)
def test_conditions_are_proposed(question: str, condition: Filter) -> None:
    assert condition in list_filters(Asked(question), make_ships())


def test_digits_of_a_code_are_no_number() -> None:
    assert Asked("what is SO-1042").numbers == []
    assert Asked("below -5 degrees").numbers == [(1, "-5")]


def test_queries_are_said_in_plain_words() -> None:
    table, asked = make_ships(), Asked("the two longest")
    parts = dict.fromkeys(list_parts(table), 0.0) | {
        Part("ask", "ship"): 0.9,
        Part("max", "length_m"): 0.9,
    }
    said = {say_query(one, run_query(one)) for one in make_queries(asked, table, parts, [()])}
    assert "ships: ship with the highest length m = Delphine" in said
    assert "ships: ship with the 2 highest length m = Delphine, Aurelia" in said


def test_words_that_may_say_two_conditions_say_one() -> None:
    cells = {"home": ["East", "East", "Mill"], "away": ["Mill", "Heim", "East"]}
    columns = {name: Column(name, own) for name, own in cells.items()}
    table = Table("games.csv", "", columns, [(str(at), "", "") for at in range(3)])
    home = [Filter("home", "=", "east", at=2), Filter("away", "=", "east", at=2)]
    other = Filter("away", "=", "mill", at=4)
    sets = weigh_conditions(table, {home[0]: 1.0, home[1]: 0.9, other: 0.9})
    assert max(sets, key=sets.__getitem__) == (home[0], other)
    assert not any(set(home) <= set(some) for some in sets)


@pytest.mark.parametrize(
    ("cells", "kind", "numbers"),
    [
        (["6 pm", "09:30", "11:05am"], "time", [1080, 570, 665]),
        (["3/14/2022", "4/2/2022"], "date", [738228, 738247]),
        (["14/3/2022", "2/4/2022"], "date", [738228, 738247]),
        (["3/4/2022", "5/6/2022"], "text", [None, None]),
        (["14/3/2022", "2/14/2022"], "text", [None, None]),
        (["25:10", "09:30"], "text", [None, None]),
    ],
)
def test_times_and_slashed_dates_are_compared(
    cells: list[str], kind: str, numbers: list[float | None]
) -> None:
    column = Column("when", cells)
    assert column.type == kind
    assert column.numbers == numbers


def test_numbers_that_come_again_are_told_apart() -> None:
    column = Column("line", ["14", "41", "14", "41", "7", "7"])
    assert column.has_few_numbers
    assert not Column("fare", ["14", "41", "15", "42", "7", "8"]).has_few_numbers


INVOICES = """invoice,due,paid_on,plan,actual,buyer_city,seller_city
A1,2024-02-01,2024-02-10,100,120,Oslo,Oslo
A2,2024-02-03,2024-01-20,90,80,Rome,Oslo
A3,2024-02-09,,50,50,Oslo,Rome
"""


@pytest.mark.parametrize(
    ("question", "phrases", "answer"),
    [
        ("late payers?", ["invoice (", "paid on after due"], "A1"),
        ("those within what was foreseen", ["invoice (", "actual under plan"], "A2"),
        ("as expected, exactly", ["invoice (", "plan same as actual"], "A3"),
        ("sent elsewhere", ["invoice (", "buyer city different from seller city"], "A2, A3"),
        ("settled on another day", ["invoice (", "due different from paid on"], "A1, A2"),
    ],
)
async def test_two_columns_of_a_row_are_compared(
    tmp_path: Path, question: str, phrases: list[str], answer: str
) -> None:
    await asyncio.to_thread(place_tables, tmp_path, {"invoices.csv": INVOICES})
    base = await KnowledgeBase.open(Settings(kb=tmp_path / "kb"))
    base.scorer = WordScorer({question: [*phrases, f"= {answer}"]})
    assert (await base.ask(question)).candidate == answer
    await base.close()


def test_comparisons_of_columns_are_few_and_make_sense() -> None:
    numbers = {f"n{at}": Column(f"n{at}", [str(at), "50", "7"]) for at in range(12)}
    days = {"begun": Column("begun", ["2024-01-01", "2024-03-01", "2024-04-01"])}
    flags = {"ok": Column("ok", ["yes", "no", "no"]), "km": Column("dist_km", ["1", "2", "3"])}
    rows = [(str(at), "", "") for at in range(3)]
    table = Table("t.csv", "", {**days, **flags, **numbers}, rows)
    some = [one for one in list_filters(Asked("which?"), table) if len(one.columns) > 1]
    assert 0 < len(some) <= 30
    assert not any({"begun", "ok"} & one.columns for one in some)


def test_of_conditions_that_choose_the_same_rows_few_are_tried() -> None:
    table = make_ships()
    filters = {Filter("insured", "flag"): 0.9, Filter("yard", "=", "korsund works"): 0.9}
    filters |= {Filter("length_m", ">", str(limit), at=limit): 0.9 for limit in (81, 90, 100)}
    sets = weigh_conditions(table, filters)
    assert sum(find_rows(table, some) == [0, 2] for some in sets) == 2
    assert () in sets


async def test_a_question_that_ends_in_a_denial_is_read(ships: KnowledgeBase) -> None:
    ships.scorer = None
    assert await ships.ask("Which ships are insured and which not?")


async def test_the_scorer_may_overrule_a_reading_that_guesses_nothing(
    ships: KnowledgeBase,
) -> None:
    question = "How many ships does each yard have?"
    ships.scorer = WordScorer({question: []}, wrong=0.1)
    assert (await ships.ask(question)).candidate == "4"
    ships.scorer = WordScorer(
        {question: ["for each yard", "ships: number of rows for"]}, right=0.998
    )
    assert (await ships.ask(question)).candidate.startswith("Korsund Works: 2")


async def test_whether_any_row_is_so_is_told(ships: KnowledgeBase) -> None:
    question = "Are any shorter than 50 metres?"
    meant = ["whether it is so", "ships: where length m under 50", "whether there is a row"]
    ships.scorer = WordScorer({question: meant}, right=0.998)
    assert (await ships.ask(question)).candidate == "Yes"


async def test_the_oldest_of_what_has_no_age_is_not_told(ships: KnowledgeBase) -> None:
    question = "Which yard is the oldest?"
    said = ["yard (", "earliest launched", "= Lysoe Yard", "= Eider"]
    ships.scorer = WordScorer({question: said})
    found = await ships.ask(question)
    assert found.candidate not in ("Lysoe Yard", "Eider") or found.confidence < 0.5


async def test_what_names_a_column_of_another_table_is_not_asked_of_this_one(
    ships: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "staff.csv").write_text(
        "name,hired_on\nIda Moll,2010-02-01\nPer Sund,2007-05-09\n", encoding="utf-8"
    )
    await ships.add([tmp_path / "staff.csv"])
    question = "Who was hired first?"
    ships.scorer = WordScorer({question: ["earliest launched", "= Eider"]})
    assert (await ships.ask(question)).candidate != "Eider"


async def test_what_a_stock_is_worth_is_its_price_times_its_number(
    ships: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "seeds.csv").write_text(
        "seed,price_eur,stock\nBasil,2.50,10\nDill,4.00,5\nThyme,1.00,7\n", encoding="utf-8"
    )
    await ships.add([tmp_path / "seeds.csv"])
    question = "How much is the whole stock of basil worth?"
    said = ["stock", "price", "seed is basil", "total price eur times stock", "= 25"]
    ships.scorer = WordScorer({question: said})
    assert (await ships.ask(question)).candidate == "25 EUR"


async def test_the_code_of_an_amount_is_told_with_it(ships: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "gifts.csv").write_text(
        "gift_no,giver,amount\nG01,Ivo Marsh,40\nG02,Ivo Marsh,10\nG03,Ivo Marsh,7\n",
        encoding="utf-8",
    )
    await ships.add([tmp_path / "gifts.csv"])
    question = "What is the largest gift?"
    ships.scorer = WordScorer({question: ["gift no (", "highest amount", "= G01"]})
    assert (await ships.ask(question)).candidate == "G01, 40"
