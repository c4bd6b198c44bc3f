"""Questions that say in short what a graph says in several relations, or that name nothing."""

from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.errors import InputError
from clew.retrieve.paths.possessors import find_possessed
from clew.retrieve.question import locate_names, parse_question
from clew.testing.word_scorer import WordScorer

_ROWS = """
Pip	mother	Wren Moss
Wren Moss	mother	Fern Moss
Fern Moss	mother	Iris Dell
Fern Moss	birthplace	Tarrow
Wren Moss	birthplace	Kelm
Pip	godparent	Alder Finch
Alder Finch	guild	Coopers
"""


@pytest.fixture
async def family(base: KnowledgeBase, tmp_path: Path) -> KnowledgeBase:
    graph = tmp_path / "family.tsv"
    graph.write_text(_ROWS.lstrip(), "utf-8")
    await base.import_graph(graph)
    return base


async def test_who_has_a_mother_is_not_the_mother(family: KnowledgeBase) -> None:
    asked = "Who has a mother that was born in Kelm?"
    likely = ["? birthplace Kelm", "Wren Moss birthplace Kelm. ? mother Wren Moss"]
    family.scorer = WordScorer({asked: likely})
    answer = await family.ask("Who has a mother born in Kelm?", recipe="lego-12")
    assert answer.answer.startswith("Pip") and "Wren Moss" not in answer.answer.split("\n")[0]


@pytest.mark.parametrize(
    ("question", "noun"),
    [
        ("whose mother was born in Kelm?", "mother"),
        ("which child has a mother whose birthplace is Kelm?", "mother"),
        ("who has Kelm as a birthplace?", "birthplace"),
        ("who are the people whose mother was born in Kelm?", "mother"),
        ("what are the trades of the people whose mother was born in Kelm?", ""),
        ("where do those live whose mother was born in Kelm?", ""),
        ("who was born in Kelm?", ""),
        ("has Kelm a mother?", ""),
    ],
)
def test_what_somebody_has_is_read_from_the_question(question: str, noun: str) -> None:
    assert find_possessed(parse_question(question, locate_names(question, ["Kelm"]))) == noun


async def test_things_of_a_kind_are_listed_by_the_relation_to_them(family: KnowledgeBase) -> None:
    answer = await family.ask("list all mothers", recipe="lego-12")
    assert "Wren Moss" in answer.answer and "Fern Moss" in answer.answer
    assert "Alder Finch" not in answer.answer


async def test_things_of_a_type_are_listed(base: KnowledgeBase, tmp_path: Path) -> None:
    node = '<node id="{0}"><data key="n">{0}</data><data key="t">{1}</data></node>'
    things = (("Harrow", "Town"), ("Pell", "Town"), ("Gull", "Ship"))
    graph = tmp_path / "typed.graphml"
    graph.write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<key id="t" for="node" attr.name="type" attr.type="string"/>'
        '<key id="n" for="node" attr.name="name" attr.type="string"/>'
        '<key id="r" for="edge" attr.name="relation" attr.type="string"/>'
        f'<graph edgedefault="directed">{"".join(node.format(*one) for one in things)}'
        '<edge source="Gull" target="Pell"><data key="r">calls_at</data></edge></graph></graphml>',
        "utf-8",
    )
    await base.import_graph(graph)
    answer = await base.ask("which towns are there?", recipe="lego-12")
    assert {"Harrow", "Pell"} <= set(answer.answer.replace(",", "").split())
    assert "Gull" not in answer.answer


async def test_a_kind_that_the_graph_does_not_know_is_refused(family: KnowledgeBase) -> None:
    answer = await family.ask("list all dragons", recipe="lego-12")
    assert answer.missing.startswith("the question names nothing")
    assert "relations: 'birthplace'" in answer.missing


async def test_a_search_that_names_nothing_goes_by_words_and_meaning(
    family: KnowledgeBase,
) -> None:
    found = await family.search("which guild is it?", recipe="lego-12")
    assert found.evidence.chunks
    assert found.trace[-1].output == "meaning, words (the question names nothing known)"


async def test_a_given_name_must_be_known(family: KnowledgeBase) -> None:
    with pytest.raises(InputError):
        await family.search("which guild?", recipe="lego-12", entities=["Zzyzx Quorra"])
