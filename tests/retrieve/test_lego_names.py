"""Names of every script and with every mark are found in a question, and lead to their answers."""

from pathlib import Path

import pytest
from film_graph import best

from clew.engine import KnowledgeBase
from clew.errors import ClewError

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


@pytest.mark.parametrize(("name", "place"), [(row[0], row[2]) for row in ROWS])
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
    with pytest.raises(ClewError, match="nothing that is known"):
        await people.search("where was Amelie born", recipe=recipe)
