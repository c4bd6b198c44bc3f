"""Questions over linked files that the scorer finds asked; a fake one is told which."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.agents.tables.asked import Asked
from clew.agents.tables.load import Column, Table, join_tables
from clew.agents.tables.propose import list_filters, list_parts
from clew.agents.tables.wording import say_column
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.word_scorer import WordScorer
from conftest import one_in_three

FILES = {
    "kilns.csv": "kiln_id,name,fuel,volume_l\nK1,Big Bertha,gas,900\nK2,Ember,wood,400\n"
    "K3,Spark,electric,120\nK4,Anvil,gas,300\n",
    "firings.csv": "firing_no,kiln_id,fired_on,pots,paid_eur\nF01,K1,2024-02-03,60,180\n"
    "F02,K1,2024-03-10,55,170\nF03,K2,2024-03-28,20,90\nF04,K3,2024-05-02,8,25\n"
    "F05,K2,2024-06-14,30,110\n",
}


@pytest.fixture
async def pottery(tmp_path: Path) -> AsyncIterator[KnowledgeBase]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    base = await KnowledgeBase.open(Settings(kb=tmp_path / "kb"), create=True)
    await base.add([tmp_path / name for name in FILES])
    yield base
    await base.close()


def make_table(name: str) -> Table:
    header, *rows = [line.split(",") for line in FILES[name].strip().splitlines()]
    columns = {one: Column(one, [row[at] for row in rows]) for at, one in enumerate(header)}
    label = "name" if "name" in columns else "firing_no"
    return Table(name, label, columns, [(str(at), "", "") for at in range(len(rows))])


@pytest.mark.parametrize(
    ("question", "phrases", "answer"),
    one_in_three(
        [
            ("which one stayed cold", [], "Anvil"),
            ("cold all march 2024", ["firings: where fired on in march 2024"], "Spark, Anvil"),
            ("gas ones that stayed cold", ["kilns: where fuel is gas"], "Anvil"),
        ]
    ),
)
async def test_rows_that_none_refers_to_are_told(
    pottery: KnowledgeBase, question: str, phrases: list[str], answer: str
) -> None:
    pottery.scorer = WordScorer({question: ["kilns: without any firings", *phrases, f"= {answer}"]})
    found = await pottery.ask(question)
    assert (found.candidate, found.computed) == (answer, True), found.note
    assert found.citations


def test_a_column_of_a_linked_file_is_said_with_what_it_is_of() -> None:
    (firings,) = join_tables([make_table("kilns.csv"), make_table("firings.csv")])
    assert say_column(firings, "name") == "kilns name"
    assert say_column(firings, "paid_eur") == "paid eur"


def test_what_a_linked_file_repeats_is_not_added_up() -> None:
    (firings,) = join_tables([make_table("kilns.csv"), make_table("firings.csv")])
    kinds = {one.kind for one in list_parts(firings) if one.column == "volume_l"}
    assert {"ask", "max", "min"} <= kinds
    assert kinds.isdisjoint({"sum", "mean", "median"})


def test_columns_of_a_linked_file_are_looked_at_beside_many_own_ones() -> None:
    wide = make_table("firings.csv")
    more = {f"reading_{at}": Column(f"reading_{at}", ["1", "2", "3", "4", "5"]) for at in range(40)}
    wide = Table(wide.name, wide.label, {**wide.columns, **more}, wide.rows)
    (joined,) = join_tables([make_table("kilns.csv"), wide])
    assert "fuel" in {one.column for one in list_parts(joined)}


def test_a_name_to_which_no_row_refers_is_a_condition() -> None:
    (firings,) = join_tables([make_table("kilns.csv"), make_table("firings.csv")])
    filters = list_filters(Asked("How many firings did Anvil have?"), firings)
    assert ("name", "anvil") in {(one.column, one.value) for one in filters}


def test_codes_link_whatever_their_column_is_called() -> None:
    kilns = {"no": ["PK1", "PK2", "PK3"], "name": ["Ember", "Anvil", "Spark"]}
    jobs = {"job": ["a", "b", "c", "d"], "where": ["PK1", "PK3", "PK2", "PK1"]}
    tables = [
        Table(
            name,
            label,
            {k: Column(k, v) for k, v in cells.items()},
            [("", "", "")] * len(cells[label]),
        )
        for name, label, cells in (("kilns.csv", "name", kilns), ("jobs.csv", "job", jobs))
    ]
    assert [one.link for table in join_tables(tables) for one in table.partners] == ["where"]


@pytest.mark.parametrize(
    ("question", "numbers", "sign"),
    [
        ("kilns >15l", ["15"], ">"),
        ("fired with 50+ pots", ["50"], ">="),
        ("costs under twenty-two", ["22"], "<"),
        ("below 10k litres", ["10000"], "<"),
        ("pre-1990 ones", ["1990"], "<"),
        ("over fifteen pots", ["15"], ">"),
        ("order SO-1042", [], ""),
    ],
)
def test_numbers_are_read_as_people_type_them(question: str, numbers: list[str], sign: str) -> None:
    asked = Asked(question)
    assert [value for _, value in asked.numbers] == numbers
    assert "".join(asked.signs.get(at, "") for at, _ in asked.numbers) == sign


def test_a_comma_behind_a_year_is_no_part_of_it() -> None:
    assert Asked("Fired in 2024, which one?").times == [(2, "year", "2024")]


@pytest.mark.parametrize("question", ["firings in q1 24", "Fired in Q1 2024?"])
def test_a_quarter_may_have_a_short_year(question: str) -> None:
    assert [one.value for one in Asked(question).periods] == ["2024-01-01/2024-03-31"]
