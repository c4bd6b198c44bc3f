"""Questions about tables: answered by code over the rows, with the rows cited, or left alone."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
from clew.agents.ask import AskOptions
from clew.agents.conversation import ConversationTurn
from clew.agents.rules.table_words import is_same_word, load_operators, split_question
from clew.agents.tables.load import find_links
from clew.agents.tables.parse import parse_question
from clew.agents.tables.rows import load_tables, unpack_tables
from clew.ingest.build import SAVED_TABLES_KIND
from conftest import KnowledgeBase, OpenFilled, document, one_in_three, open_tables, stream

pytestmark = pytest.mark.usefixtures("rules_only")

TOWNS = (
    "name,region,people,founded,river code\n"
    "Hallowmere,Grey Coast,1200,1849-03-01,T1\n"
    "Vessen,Inland,86000,1204-01-01,T2\n"
    "Pellworth,Grey Coast,450,1931-07-09,T1\n"
    "Old Sand,Inland,,1650-05-05,T3\n"
)
RIVERS = [
    {"code": "T1", "river": "Tarn", "km": 40},
    {"code": "T2", "river": "Oss", "km": 310},
    {"code": "T3", "river": "Lind", "km": 95},
]


async def fill_tables(base: KnowledgeBase) -> None:
    folder = base.settings.kb.parent
    (folder / "towns.csv").write_text(TOWNS)
    (folder / "rivers.json").write_text(json.dumps(RIVERS))
    await base.add([folder / "towns.csv", folder / "rivers.json"])


@pytest.fixture
async def tables(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill_tables)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many towns are there in the Grey Coast region?", "2"),
        ("How many towns have more than 1,000 people?", "2"),
        ("How many towns have people?", "3"),
        ("What is the total number of people in Grey Coast?", "1650"),
        ("What is the average km of the rivers?", "148.33"),
        ("What is the median km?", "95"),
        ("Which town has the most people?", "Vessen"),
        ("Which town has the fewest people?", "Pellworth"),
        ("Which region has the most towns?", "Grey Coast, Inland"),
        ("Which towns were founded before 1700?", "Vessen, Old Sand"),
        ("Which towns were founded between 1800-01-01 and 1900-01-01?", "Hallowmere"),
        ("When was Pellworth founded?", "1931-07-09"),
        ("How many people does Vessen have?", "86000"),
        ("What is the region of Old Sand?", "Inland"),
        ("How many different regions are there?", "2"),
        ("Which towns have a name starting with Pell?", "Pellworth"),
        ("Which town was founded in 1849?", "Hallowmere"),
        ("Which town was founded in March 1849?", "Hallowmere"),
        ("How many towns were founded in January?", "1"),
        ("How many towns were founded in July 1931?", "1"),
        ("Which river has the code T2?", "Oss"),
        ("Which river does the code T2 stand for?", "Oss"),
        ("Which towns are located in Inland?", "Vessen, Old Sand"),
        ("Which town was founded first?", "Vessen"),
    ],
)
async def test_rows_answer(tables: KnowledgeBase, question: str, said: str) -> None:
    answer = await tables.ask(question)
    assert answer.candidate == said
    assert answer.verdict == "answered" and "computed from the rows of" in answer.note
    assert answer.citations
    for one in answer.citations:
        assert one.quote == (await tables.show(one.doc)).documents[0]["text"]


@pytest.mark.parametrize(
    "question",
    [
        "Why is Vessen so large?",
        "Who founded Hallowmere?",
        "What is the capital of Inland?",
        "How many soldiers were in Vessen?",
        "How many people live in Inland houses?",
        "Which town did the poet of Vessen like?",
        "Tell me about Vessen",
    ],
)
async def test_what_the_rows_do_not_say_is_left_to_retrieval(
    tables: KnowledgeBase, question: str
) -> None:
    assert "computed from the rows" not in (await tables.ask(question)).note


async def test_a_removed_row_no_longer_counts(base: KnowledgeBase, tmp_path: Path) -> None:
    await fill_tables(base)
    (tmp_path / "towns.csv").write_text("\n".join(TOWNS.splitlines()[:3]))
    await base.add([tmp_path / "towns.csv"])
    assert (await base.ask("How many towns are there in the Grey Coast region?")).candidate == "1"


async def test_what_is_saved_of_tables_follows_every_change(tables: KnowledgeBase) -> None:
    async def saved() -> str:
        return unpack_tables((await tables.store.get(SAVED_TABLES_KIND, ["rows"]))["rows"])

    assert "Hallowmere" in await saved()  # with the add: the first question need not read rows
    async with tables.store.snapshot() as snapshot:
        ctx = await tables.context(snapshot, "Which?")
        loaded = await load_tables(ctx)
        await tables.store.set(SAVED_TABLES_KIND, {"mark": ""})
        ctx.view.memo.clear()
        assert [(t.name, t.label, list(map(tuple, t.rows))) for t in loaded] == [
            (t.name, t.label, list(map(tuple, t.rows))) for t in await load_tables(ctx)
        ]
    gone = next(name for name in await tables.store.sources() if "towns.csv" in name)
    await tables.remove(gone.rpartition("#")[0])
    assert "Hallowmere" not in await saved()
    assert not (await tables.ask("How many towns are there in the Grey Coast region?")).computed


async def test_the_same_row_twice_counts_twice(base: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("item,price\nlamp,3\nlamp,3\nrope,5\n")
    await base.add([tmp_path / "sales.csv"])
    assert (await base.ask("What is the total price of lamp?")).candidate == "6"


async def test_columns_that_hold_keys_of_another_table_are_found(tables: KnowledgeBase) -> None:
    async with tables.store.snapshot() as snapshot:
        ctx = await tables.context(snapshot, "Which?")
        found = await load_tables(ctx)
    links = {
        (one.column, one.other.name.rpartition("/")[2], one.key)
        for table in found
        for one in find_links(table, found)
    }
    assert ("river code", "rivers.json", "code") in links


@pytest.mark.parametrize(
    ("question", "said", "cited"),
    [
        (
            "How many towns are on the river Tarn?",
            "2",
            {"towns.csv#2", "towns.csv#4", "rivers.json#1"},
        ),
        ("What is the km of the river of Vessen?", "310", {"towns.csv#3", "rivers.json#2"}),
    ],
)
async def test_linked_tables_answer_together(
    tables: KnowledgeBase, question: str, said: str, cited: set[str]
) -> None:
    answer = await tables.ask(question)
    assert answer.candidate == said
    assert {one.doc.rpartition("/")[2] for one in answer.citations} == cited


async def test_rows_are_entities_and_facts(tables: KnowledgeBase) -> None:
    shown = await tables.show("Vessen")
    [fact] = shown.entities[0]["facts"]
    assert fact["text"].startswith("Vessen\nname: Vessen; region: Inland; people: 86000;")
    assert [(one["name"], one["type"]) for one in (await tables.show("Inland")).entities] == [
        ("Inland", "region")
    ]


async def test_texts_are_answered_as_before(tables: KnowledgeBase) -> None:
    await tables.take(
        stream([document("b", "Marrow Bridge was designed by Ilse Brandvik.", "Bridge")])
    )
    answer = await tables.ask("Who designed the Marrow Bridge?")
    assert "Ilse Brandvik" in answer.answer


def test_words_and_operators() -> None:
    assert is_same_word("weigh", "weight") and is_same_word("varieties", "variety")
    assert not is_same_word("max", "maximum") and not is_same_word("state", "statement")
    words = split_question("How many at least 1,200 from 2024/01/05?")
    assert [word.fold for word in words][-3:] == ["1200", "from", "2024-01-05"]
    assert list(load_operators().find("comparisons", words)) == [(2, 4, ">=")]
    assert parse_question("How many?", []) == []


CITIES = (
    "城市,省份,人口,设立日期\n"
    "石桥,东省,949,1927-06-01\n"
    "柳河,东省,1291,1949-04-27\n"
    "青湾,西省,1237,1927-05-01\n"
)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("柳河的人口是多少？", "1291"),
        ("人口最多的城市是哪个？", "柳河"),
        ("东省有多少个城市？", "2"),
        ("东省的总人口是多少？", "2240"),
        ("人口超过1000的城市有哪些？", "柳河, 青湾"),
        ("1930年之前设立的城市有哪些？", "石桥, 青湾"),
        ("石桥属于哪个省份？", "东省"),
    ],
)
async def test_chinese_questions_are_answered_from_rows(
    base: KnowledgeBase, tmp_path: Path, question: str, said: str
) -> None:
    (tmp_path / "城市.csv").write_text(CITIES, encoding="utf-8")
    await base.add([tmp_path / "城市.csv"])
    answer = await base.ask(question)
    assert answer.candidate == said and answer.computed and answer.citations


async def test_a_chinese_question_with_other_words_is_not_computed(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "城市.csv").write_text(CITIES, encoding="utf-8")
    await base.add([tmp_path / "城市.csv"])
    assert not (await base.ask("柳河的天气是什么？")).computed


STAFF = (
    "name,department,salary,age,office\n"
    "Dana Petrov,Optics,72000,41,Sofia\n"
    "Ivo Marsh,Optics,81000,29,Lund\n"
    "Lena Okafor,Sales,64500,56,Sofia\n"
    "Rui Tanaka,Sales,59000,33,Kyoto\n"
)
GOODS = "sku,product,price,owner\nA-1,Lens kit,120.5,Dana Petrov\nA-2,Tripod,45,Lena Okafor\n"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    folder = tmp_path_factory.mktemp("office")
    (folder / "staff.csv").write_text(STAFF)
    (folder / "goods.csv").write_text(GOODS)
    with clew.open(folder / "kb") as base:
        base.add([folder / "staff.csv", folder / "goods.csv"])
        yield base


@pytest.mark.parametrize(
    ("question", "said"),
    one_in_three(
        [
            ("Who earns the most?", "Ivo Marsh"),
            ("Who earns more, Dana Petrov or Lena Okafor?", "Dana Petrov"),
            ("Which product is cheapest?", "Tripod"),
            ("How many goods cost more than 70?", "1"),
            ("Which product is cheaper than 100?", "Tripod"),
            ("Who is the oldest?", "Lena Okafor"),
            ("Who is youngest?", "Ivo Marsh"),
            ("How many staff are older than 40?", "2"),
            ("Who is younger than 30?", "Ivo Marsh"),
            ("Who is older, Dana Petrov or Lena Okafor?", "Lena Okafor"),
            ("Which department pays best?", "Optics"),
            ("How many staff are in Sofia or Lund?", "3"),
            ("Who owns the most expensive product?", "Dana Petrov"),
            ("What is the department of the owner of the Tripod?", "Sales"),
        ]
    ),
)
def test_words_that_mean_a_column_are_understood(office: clew.Kb, question: str, said: str) -> None:
    answer = office.ask(question)
    assert (answer.candidate, answer.computed) == (said, True)


@pytest.mark.parametrize(
    "question",
    [
        "What is the phone number of Ivo Marsh?",
        "What is the shoe size of Dana Petrov?",
        "Which product is the heaviest?",
        "Who is the tallest?",
        "Which office is the largest?",
    ],
)
def test_what_no_column_means_is_not_computed(office: clew.Kb, question: str) -> None:
    assert not office.ask(question).computed


async def test_a_sign_behind_a_letter_tells_languages_apart(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    rows = ["Loops,C++,Ann Hall", "Threads,C#,Tom Reed", "Types,C#,Tom Reed", "Rows,C#,Ann Hall"]
    (tmp_path / "books.csv").write_text("\n".join(["title,language,author", *rows]))
    await base.add([tmp_path / "books.csv"])
    assert (await base.ask("How many C# books are there?")).candidate == "3"
    assert (await base.ask("How many C++ books by Ann Hall are there?")).candidate == "1"
    before = (ConversationTurn("How many C++ books by Ann Hall are there?", "1"),)
    answer = await base.ask("And the C# ones by Tom Reed?", manner=AskOptions(history=before))
    assert answer.candidate == "2"


NESTED = {
    "talks.json": '[{"title": "Passkeys", "speaker": {"name": "Priya Raman"}, "attendees": 265},'
    ' {"title": "Typed SQL", "speaker": {"name": "Luis Ferran"}, "attendees": 120}]',
    "parcels.json": '[{"parcel": "P-7", "sender": {"name": "Ada Brook"}, "weight_kg": 4},'
    ' {"parcel": "P-8", "sender": {"name": "Ivo Marsh"}, "weight_kg": 9}]',
    "states.json": '[{"code": "NO", "name": {"common": "Norland", "official": "Realm of Norland"},'
    ' "rivers": 12}, {"code": "SU", "name": {"common": "Sudland", "official": "The Sudland"},'
    ' "rivers": 3}]',
    "visits.json": '[{"id": 1, "guest": {"name": "Mei Tan"}, "nights": 2},'
    ' {"id": 2, "guest": {"name": "Rui Prata"}, "nights": 5}]',
}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Which talk has the most attendees?", "Passkeys"),
        ("Which parcel has the highest weight?", "P-8"),
        ("Which state has the most rivers?", "Norland"),
        ("Which guest has the most nights?", "Rui Prata"),
    ],
)
def test_a_row_is_named_at_its_own_level_first(nested: clew.Kb, question: str, said: str) -> None:
    assert nested.ask(question).candidate == said


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    with open_tables(tmp_path_factory.mktemp("nested"), NESTED) as base:
        yield base
