"""From the question to entities of a graph: exactly, nearly, or not at all.

Names of every script and with every mark are found in a question, and lead to their answers.
"""

from pathlib import Path

import pytest
from film_graph import best, open_films

from clew.engine import KnowledgeBase
from clew.errors import ClewError, InputError
from clew.retrieve.linking.link_entities import LinkEntities
from clew.types import Found
from conftest import OpenFilled, one_in_three


async def linked(base: KnowledgeBase, question: str) -> list[tuple[str, str]]:
    async with base.store.snapshot() as now:
        ctx = await base.context(now, question)
        found = await LinkEntities()(ctx, Found())
        keys = ctx.view.keys("entity")
        held = await now.entities([int(keys[hit.at]) for hit in found.entities])
        return [(held[int(keys[hit.at])].name, hit.by) for hit in found.entities]


@pytest.fixture
async def films(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_films(open_filled)


@pytest.mark.parametrize(
    ("question", "name", "how"),
    [
        ("who directed Grey Coast", "Grey Coast", "exact “Grey Coast”"),
        ("who directed grey coast", "Grey Coast", "exact but for case “grey coast”"),
        ("what did ANTON REEVE direct?", "Anton Reeve", "exact but for case “ANTON REEVE”"),
        ("which films were released in 1991", "1991", "exact “1991”"),
        ("who directed Grey Coats", "Grey Coast", "spelt like “Grey Coats”"),
        ("films with Clara Lindquist", "Clara Lindqvist", "spelt like “Clara Lindquist”"),
    ],
)
async def test_a_name_is_found_and_it_says_how(
    films: KnowledgeBase, question: str, name: str, how: str
) -> None:
    assert (await linked(films, question))[0] == (name, how)


async def test_of_two_names_that_differ_in_an_article_the_one_as_spelt_is_meant(
    films: KnowledgeBase,
) -> None:
    assert await linked(films, "who directed The Prowler") == [
        ("The Prowler", "exact “The Prowler”, one of 2 with this name")
    ]
    assert await linked(films, "who directed Prowler") == [
        ("Prowler", "exact “Prowler”, one of 2 with this name")
    ]


async def test_several_names_are_all_linked(films: KnowledgeBase) -> None:
    names = [name for name, _ in await linked(films, "did Anton Reeve and Mara Holt both direct")]
    assert sorted(names) == ["Anton Reeve", "Mara Holt"]


async def test_a_question_that_names_nothing_says_so_and_offers_names(films: KnowledgeBase) -> None:
    with pytest.raises(InputError, match="names nothing in this knowledge base; .*similar names"):
        await linked(films, "who owns Qwzzk Vrttl")
    with pytest.raises(InputError, match="'Anton Reeve'"):
        await linked(films, "who likes Ant Reevington the Third")


async def test_given_names_come_first_and_may_stand_nowhere_in_the_question(
    films: KnowledgeBase,
) -> None:
    results = await films.search("who directed it", recipe="lego-12", entities=["Grey Coast"])
    assert results.evidence.entities[0].name == "Anton Reeve"
    with pytest.raises(InputError, match="names nothing in this knowledge base"):
        await films.search("who directed it", recipe="lego-12", entities=["Zzyzx Qqq"])


async def test_a_question_without_a_known_name_is_told_so(films: KnowledgeBase) -> None:
    with pytest.raises(InputError, match="similar names"):
        await films.ask("who owns Qwzzk Vrttl", recipe="lego-12")


@pytest.mark.parametrize("question", ["?", "…", "a" * 5_000, "\u202e x", "the of and", "是谁"])
async def test_any_question_ends_in_answers_or_one_sentence(
    films: KnowledgeBase, question: str
) -> None:
    try:
        await films.search(question, recipe="lego-12")
    except InputError as error:
        assert "\n" not in str(error)


ROWS = [
    ("שלום חנוך", "born_in", "משמרות"),  # right to left
    ("نجيب محفوظ", "born_in", "القاهرة"),
    ("Ame\u0301lie", "born_in", "Montmartre"),  # a letter and its accent, apart
    ("a|b, c\td", "born_in", "Pipe"),  # separators of three formats
    ("日本語", "born_in", "東京"),
    ('O\'Brien "the Kid"', "born_in", "Cork"),
    ("🙂 Smile", "born_in", "Keyboard"),
]


@pytest.fixture
async def people(base: KnowledgeBase, tmp_path: Path) -> KnowledgeBase:
    file = tmp_path / "people.csv"
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in ROWS]
    file.write_text("\n".join(quoted) + "\n", encoding="utf-8")
    done = await base.import_graph(file, form="csv")
    assert done.rows == len(ROWS) and done.bad == 0
    return base


@pytest.mark.parametrize(("name", "place"), one_in_three([(row[0], row[2]) for row in ROWS]))
async def test_a_name_is_found_as_it_stands(people: KnowledgeBase, name: str, place: str) -> None:
    # A tab is one of the spaces between words.
    assert (await best(people, f"where was {name} born", "lego-12"))[0] == place


async def test_an_accent_may_be_written_either_way(people: KnowledgeBase) -> None:
    assert (await best(people, "where was Am\u00e9lie born", "lego-12"))[0] == "Montmartre"


async def test_marks_that_shape_the_text_do_not_count(people: KnowledgeBase) -> None:
    turned = "\u202bשלום חנוך\u202c"
    assert (await best(people, f"where was {turned} born", "lego-12"))[0] == "משמרות"


@pytest.mark.parametrize("recipe", ["lego-1", "lego-12"])
async def test_where_everything_was_removed_no_name_is_known(
    people: KnowledgeBase, tmp_path: Path, recipe: str
) -> None:
    await people.remove([(tmp_path / "people.csv").as_posix()])
    with pytest.raises(ClewError, match="names nothing in this knowledge base"):
        await people.search("where was Amelie born", recipe=recipe)
