"""Answers from a graph: how sure they are, what of many names is used, and how refusals read."""

from pathlib import Path

import pytest
from film_graph import open_films

from clew.engine import KnowledgeBase
from clew.reader.query_scorer import SCORER_FILE, QueryScorer
from conftest import OpenFilled


@pytest.fixture
async def films(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_films(open_filled)


async def test_what_no_relation_says_is_less_sure(films: KnowledgeBase) -> None:
    said = await films.ask("who directed Grey Coast", recipe="lego-12")
    unsaid = await films.ask("who is the grandmother of Grey Coast", recipe="lego-12")
    assert said.answer.startswith("Anton Reeve") and unsaid.answer
    assert unsaid.confidence < said.confidence - 0.2


async def test_of_many_names_the_trace_says_how_many_are_not_used(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    names = [
        f"{one} {two}" for one in ("Ada", "Bo", "Cy", "Di") for two in ("Ash", "Elm", "Fir", "Yew")
    ]
    graph = tmp_path / "people.tsv"
    graph.write_text("".join(f"{name}\tknows\tMara Holt\n" for name in names), "utf-8")
    await base.import_graph(graph)
    found = await base.search(f"whom do {', '.join(names)} know?", recipe="lego-12")
    assert "4 of 16 names not used" in [step.output for step in found.trace]


async def test_a_question_that_names_nothing_is_refused_in_plain_words(
    films: KnowledgeBase,
) -> None:
    answer = await films.ask("what colour was the old tram?", mode="reject")
    assert answer.missing.startswith("the question names nothing in this knowledge base")
    assert "failed" not in answer.answer + answer.note


async def import_rows(base: KnowledgeBase, folder: Path, rows: list[str]) -> None:
    graph = folder / "rows.tsv"
    graph.write_text("".join(row.replace(", ", "\t") + "\n" for row in rows), "utf-8")
    await base.import_graph(graph)


async def test_the_subject_of_a_verb_is_asked_for(base: KnowledgeBase, tmp_path: Path) -> None:
    await import_rows(
        base, tmp_path, ["Vale, feeds, Mere", "Mere, feeds, Tarn", "Tarn, feeds, Sea"]
    )
    asked = await base.ask("What feeds Tarn?", recipe="lego-12")
    assert asked.answer.startswith("Mere") and "Sea" not in asked.answer


MEDICINES = [
    *("Rivaroxaban, developed by, Bayer", "Ibuprofen, developed by, Boots"),
    *("Rivaroxaban, drug class, Anticoagulant", "Ibuprofen, drug class, Painkiller"),
    *("Rivaroxaban, treats, Embolism", "Ibuprofen, treats, Arthritis"),
    *("Embolism, affects, Lung", "Arthritis, affects, Joint"),
    *("Embolism, symptom, Chest Pain", "Arthritis, symptom, Stiffness"),
]


async def test_which_drug_is_no_drug_class(base: KnowledgeBase, tmp_path: Path) -> None:
    await import_rows(base, tmp_path, MEDICINES)
    asked = await base.ask("Which drug comes from Bayer?", recipe="lego-12")
    assert asked.answer.startswith("Rivaroxaban")


@pytest.mark.skipif(not SCORER_FILE.is_file(), reason="the scorer's weights are not installed")
async def test_the_scorer_tells_use_and_maker_from_class(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    base.scorer = QueryScorer.load()
    await import_rows(base, tmp_path, MEDICINES)
    asked = await base.ask("What is Ibuprofen good for?", recipe="lego-12")
    assert asked.answer.startswith("Arthritis")
    found = await base.search("Who makes Ibuprofen?", recipe="lego-12")
    assert found.evidence.entities[0].name == "Boots"


BOOKS = [
    *("Maud Ferris, editor, Cass Wen", "Ezra Loom, editor, Piers Ode"),
    *("Maud Ferris, wrote, Salt Road", "Ezra Loom, wrote, Glass Orchard"),
    *("Quill House, parent company, Orbis Group", "Salt Road, publisher, Quill House"),
]


@pytest.mark.skipif(not SCORER_FILE.is_file(), reason="the scorer's weights are not installed")
@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Who is the editor of Ezra Loom?", True),
        ("Who is Maud Ferris's editor?", True),
        ("Who is the editor of Piers Ode?", False),
        ("What is the parent company of Orbis Group?", False),
    ],
)
async def test_whose_editor_somebody_is_is_not_told_as_their_editor(
    base: KnowledgeBase, tmp_path: Path, question: str, told: bool
) -> None:
    base.scorer = QueryScorer.load()
    await import_rows(base, tmp_path, BOOKS)
    assert ((await base.ask(question, recipe="lego-12")).confidence >= 0.5) == told


@pytest.mark.skipif(not SCORER_FILE.is_file(), reason="the scorer's weights are not installed")
async def test_a_ship_that_has_a_sister_ship_is_a_ship(base: KnowledgeBase, tmp_path: Path) -> None:
    base.scorer = QueryScorer.load()
    rows = ["Captain Ysolde, commands, Larkspur", "Larkspur, sister ship, Foxglove"]
    rows += ["Larkspur, home port, Skerrow", "Foxglove, home port, Dunmere"]
    await import_rows(base, tmp_path, rows)
    asked = await base.ask("Which ship does Captain Ysolde command?", recipe="lego-12")
    assert asked.answer.startswith("Larkspur") and asked.confidence >= 0.5
