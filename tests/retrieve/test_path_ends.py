"""Which ends of a graph's paths an answer tells: all of them, one, or a yes or no."""

from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.reader.query_scorer import SCORER_FILE, QueryScorer
from clew.testing.word_scorer import WordScorer
from conftest import one_in_three

needs_scorer = pytest.mark.skipif(
    not SCORER_FILE.is_file(), reason="the scorer's weights are not installed"
)


async def import_rows(base: KnowledgeBase, folder: Path, rows: list[str]) -> None:
    graph = folder / "rows.tsv"
    graph.write_text("".join(row.replace(", ", "\t") + "\n" for row in rows), "utf-8")
    await base.import_graph(graph)


@pytest.mark.parametrize(("towns", "more"), [(40, 0), (320, 20)])
async def test_all_ends_of_the_asked_path_are_told(
    base: KnowledgeBase, tmp_path: Path, towns: int, more: int
) -> None:
    await import_rows(base, tmp_path, [f"Town{n:03}, located in, Ardland" for n in range(towns)])
    question = "List all towns in Ardland."
    base.scorer = WordScorer({question: ["? located in Ardland"]})
    answer = await base.ask(question, recipe="lego-12")
    told = answer.answer.partition("\n")[0]
    assert told.count("Town") == towns - more
    assert answer.complete == (not more)
    assert (f"and {more} more" in told) == bool(more)


async def test_without_the_scorer_all_ends_of_the_first_path_are_told(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    await import_rows(base, tmp_path, [f"Town{n:03}, located in, Ardland" for n in range(40)])
    answer = await base.ask("Which towns are located in Ardland?", recipe="lego-12")
    assert answer.answer.partition("\n")[0].count("Town") == 40


@needs_scorer
@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("Does parser depend on lexer?", "Yes"),
        ("Does the lexer depend on the parser?", "No"),
        ("Does the compiler depend on the parser?", "Yes"),
    ],
)
async def test_yes_or_no_about_two_plain_words(
    base: KnowledgeBase, tmp_path: Path, question: str, verdict: str
) -> None:
    base.scorer = QueryScorer.load()
    await import_rows(base, tmp_path, ["parser, depends_on, lexer", "compiler, depends_on, parser"])
    answer = await base.ask(question, recipe="lego-12")
    assert answer.candidate == verdict


async def test_a_name_is_no_sure_answer_to_a_question_of_yes_or_no(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    await import_rows(base, tmp_path, ["Mara Holt, employer, Tarn Mills"])
    question = "Does Mara Holt have an employer?"
    base.scorer = WordScorer({question: ["Mara Holt employer ?"]})
    answer = await base.ask(question, recipe="lego-12")
    assert answer.confidence < 0.5


UNITS = [f"Unit {one}, successor, Unit {two}" for one, two in zip("ABCDE", "BCDEF", strict=True)]


@needs_scorer
@pytest.mark.parametrize(
    ("question", "right"),
    one_in_three(
        [
            ("Unit B's successor's successor", "Unit D"),
            ("What is the successor of the successor of Unit B?", "Unit D"),
            ("What is the successor of Unit C?", "Unit D"),
            ("Unit C's predecessor", "Unit B"),
        ]
    ),
)
async def test_a_relation_is_taken_twice_in_its_direction(
    base: KnowledgeBase, tmp_path: Path, question: str, right: str
) -> None:
    base.scorer = QueryScorer.load()
    await import_rows(base, tmp_path, UNITS)
    answer = await base.ask(question, recipe="lego-12")
    assert answer.candidate == right


@pytest.mark.parametrize(
    ("chance", "sure"),
    [(["Unit D successor ?", "? successor Unit D"], False), (["Unit D successor ?"], True)],
)
async def test_a_direction_that_nothing_tells_is_unsure(
    base: KnowledgeBase, tmp_path: Path, chance: list[str], sure: bool
) -> None:
    await import_rows(base, tmp_path, UNITS)
    question = "Which unit guards Unit D?"
    base.scorer = WordScorer({question: chance})
    answer = await base.ask(question, recipe="lego-12")
    assert (answer.confidence >= 0.5) == sure


async def test_a_step_is_no_sure_answer_to_two_clauses(base: KnowledgeBase, tmp_path: Path) -> None:
    await import_rows(base, tmp_path, ["wolf, eats, hare", "eagle, eats, wolf", "owl, eats, mouse"])
    once, twice = "What eats the hare?", "What eats what eats the hare?"
    base.scorer = WordScorer({question: ["? eats hare"] for question in (once, twice)})
    told, unsure = [await base.ask(question, recipe="lego-12") for question in (once, twice)]
    assert told.candidate == "wolf" and told.confidence >= 0.5
    assert unsure.confidence < 0.5


async def test_a_yes_tells_only_what_was_asked(base: KnowledgeBase, tmp_path: Path) -> None:
    await import_rows(base, tmp_path, ["Mara Holt, owns, Tarn Mills", "Mara Holt, owns, Low Farm"])
    meant = {
        "Does Mara Holt own Low Farm?": [],
        "Mara Holt own what?": ["Mara Holt owns ?"],
        "what own Low Farm?": [],
    }
    base.scorer = WordScorer(meant)
    answer = await base.ask(next(iter(meant)), recipe="lego-12")
    assert answer.candidate == "Yes" and "Tarn Mills" not in answer.answer
    assert [one.quote for one in answer.citations] == ["Mara Holt owns Low Farm"]


@needs_scorer
@pytest.mark.parametrize(("year", "verdict"), [("1951", "Yes"), ("1934", "No")])
async def test_yes_or_no_about_a_year(
    base: KnowledgeBase, tmp_path: Path, year: str, verdict: str
) -> None:
    base.scorer = QueryScorer.load()
    rows = ["Mill Bridge, opening date, 1951", "Low Bridge, opening date, 1934"]
    await import_rows(base, tmp_path, rows)
    answer = await base.ask(f"Was Mill Bridge opened in {year}?", recipe="lego-12")
    assert answer.candidate == verdict and answer.confidence >= 0.5
