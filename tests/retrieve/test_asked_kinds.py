"""What a question says beside relations: a gender, a kind, an order, a count, one of namesakes."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from clew.engine import KnowledgeBase
from clew.reader.query_scorer import SCORER_FILE, QueryScorer
from conftest import one_in_three

pytestmark = pytest.mark.skipif(
    not SCORER_FILE.is_file(), reason="the scorer's weights are not installed"
)


async def import_lines(base: KnowledgeBase, folder: Path, rows: str) -> None:
    base.scorer = QueryScorer.load()
    graph = folder / "rows.tsv"
    lines = (row.strip().replace(", ", "\t") for row in rows.strip().splitlines())
    graph.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    await base.import_graph(graph)


async def tell(base: KnowledgeBase, question: str) -> str:
    answer = await base.ask(question, recipe="lego-12")
    return answer.answer.partition("\n")[0].partition(" [")[0]


FAMILY = """
    Ida Moe, parents, Karl Moe
    Ida Moe, parents, Dora Moe
    Karl Moe, gender, Male
    Dora Moe, gender, Female
    Karl Moe, profession, Sailor
    Dora Moe, profession, Poet
    Ida Moe, place_of_birth, Tarnby
    Tarnby, containedby, Nordmark
    Ostby, country, Nordmark
"""


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Who is the mother of Ida Moe?", "Dora Moe"),
        ("Who is Ida Moe's father?", "Karl Moe"),
        ("What is the profession of Ida Moe's mother?", "Poet"),
        ("In which country was Ida Moe born?", "Nordmark"),
        ("In which town was Ida Moe born?", "Tarnby"),
    ],
)
async def test_a_gender_and_a_kind_choose_the_end(
    base: KnowledgeBase, tmp_path: Path, question: str, told: str
) -> None:
    await import_lines(base, tmp_path, FAMILY)
    assert await tell(base, question) == told


async def test_people_of_the_other_gender_alone_are_hardly_the_answer(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    await import_lines(base, tmp_path, FAMILY.replace("Dora Moe, gender, Female", ""))
    rows = "Ole Bak, sibling, Una Bak\nUna Bak, gender, Female"
    await import_lines(base, tmp_path, rows)
    fitting = await base.ask("Who is Ole Bak's sister?", recipe="lego-12")
    other = await base.ask("Who is Ole Bak's brother?", recipe="lego-12")
    assert fitting.answer.startswith("Una Bak")
    assert other.confidence < fitting.confidence and other.confidence < 0.5


@pytest.mark.parametrize("relation", ["successor", "precedes"])
@pytest.mark.parametrize(
    ("question", "told"),
    one_in_three(
        [
            ("Which unit precedes Unit D?", "Unit C"),
            ("Which unit comes before Unit D?", "Unit C"),
            ("What comes after Unit D?", "Unit E"),
            ("What is Unit D followed by?", "Unit E"),
            ("What does Unit D follow?", "Unit C"),
        ]
    ),
)
async def test_neighbours_in_an_order_are_told_apart(
    base: KnowledgeBase, tmp_path: Path, relation: str, question: str, told: str
) -> None:
    units = "ABCDEFG"
    pairs = zip(units, units[1:], strict=False)
    rows = "\n".join(f"Unit {one}, {relation}, Unit {other}" for one, other in pairs)
    await import_lines(base, tmp_path, rows)
    answer = await base.ask(question, recipe="lego-12")
    assert answer.answer.startswith(told) and answer.confidence > 0.4


@pytest.mark.parametrize(
    "question",
    [
        "How many people were born in Bigtown?",
        "Count the people born in Bigtown",
        "What is the number of people born in Bigtown?",
    ],
)
async def test_what_is_counted_in_other_words(
    base: KnowledgeBase, tmp_path: Path, question: str
) -> None:
    rows = "\n".join(f"Person {n:02} Quill, place_of_birth, Bigtown" for n in range(40))
    await import_lines(base, tmp_path, rows)
    answer = await base.ask(question, recipe="lego-12")
    assert answer.candidate == "40"


async def import_two_towns(base: KnowledgeBase, folder: Path) -> None:
    base.scorer = QueryScorer.load()
    names = ["Lorne", "Lorne", "Ardland", "Velland", "Anne Hild", "Ove Clif"]
    ties = [("located_in", 0, 2), ("located_in", 1, 3), ("mayor", 0, 4), ("mayor", 1, 5)]
    nodes = [
        {"type": "node", "id": str(at), "labels": ["Thing"], "properties": {"name": name}}
        for at, name in enumerate(names)
    ]
    edges = [
        {
            "type": "relationship",
            "id": f"r{at}",
            "label": label,
            "start": {"id": str(one)},
            "end": {"id": str(other)},
        }
        for at, (label, one, other) in enumerate(ties)
    ]
    graph = folder / "towns.jsonl"
    graph.write_text("".join(json.dumps(row) + "\n" for row in [*nodes, *edges]), "utf-8")
    await base.import_graph(graph)


async def test_what_holds_of_each_namesake_is_told(base: KnowledgeBase, tmp_path: Path) -> None:
    await import_two_towns(base, tmp_path)
    answer = await base.ask("Who is the mayor of Lorne?", recipe="lego-12")
    assert "Anne Hild" in answer.answer and "Ove Clif" in answer.answer
    assert "Ardland" in answer.note and "Velland" in answer.note and answer.confidence < 0.5
    assert "namesakes" in [step.step for step in answer.trace]


async def test_another_name_tells_which_namesake_is_meant(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    await import_two_towns(base, tmp_path)
    answer = await base.ask("Who is the mayor of Lorne in Velland?", recipe="lego-12")
    assert answer.answer.startswith("Ove Clif") and "Anne Hild" not in answer.answer


class _Counting(QueryScorer):
    """A scorer that notes how long the questions are that it is asked."""

    longest = 0

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        type(self).longest = max(self.longest, len(question))
        return super().score(question, texts)


async def test_of_many_names_each_is_asked_about_alone(base: KnowledgeBase, tmp_path: Path) -> None:
    names = [f"{one} {two}" for one in ("Ada", "Bo", "Cy") for two in ("Ash", "Elm", "Fir", "Yew")]
    await import_lines(base, tmp_path, "\n".join(f"{name}, manager, Mara Holt" for name in names))
    assert base.scorer is not None
    base.scorer = _Counting(**vars(base.scorer))
    answer = await base.ask(f"Who is the manager of {', '.join(names)}?", recipe="lego-12")
    assert answer.answer.startswith("Mara Holt")
    assert 0 < _Counting.longest < 60
