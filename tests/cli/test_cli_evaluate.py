"""The measuring commands: compare, dataset convert, anonymise and friends."""

import json
from pathlib import Path

import in_process
import pytest
from in_process import clew

ROWS = [
    {"id": 7, "title": "Marrow Bridge", "text": "It was designed by Ilse Brandvik."},
    {"id": 8, "title": "Ilse Brandvik", "text": "She was born in Hallowmere in 1849."},
    {"id": 9, "title": "Hallowmere", "text": "Hallowmere is a fishing town on the Grey Coast."},
]
ASKED = [
    {
        "id": "q1",
        "question": "Where was the designer of Marrow Bridge born?",
        "gold": [7, 8],
        "answer": "Hallowmere",
    },
    {"id": "q2", "question": "Where is Hallowmere?", "gold": [9], "answer": "on the Grey Coast"},
]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measuring")
    data = folder / "data"
    data.mkdir()
    (data / "corpus.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    (data / "questions.jsonl").write_text("\n".join(map(json.dumps, ASKED)))
    (folder / "peers.jsonl").write_text(
        json.dumps({"recipe": "peer", "id": "q1", "found": ["7"], "seconds": 1.0})
    )
    words = ("compare", "data", "--recipe", "clew,bm25", "--records", "peers.jsonl", "--json")
    found = json.loads(clew(*words, "--out", "out", cwd=folder))
    (folder / "found.json").write_text(json.dumps(found))
    return folder


def test_compare_tells_what_eval_tells_and_what_is_sure(house: Path) -> None:
    found = json.loads((house / "found.json").read_text())
    assert set(found["recipes"]) == {"clew", "bm25", "peer"}
    assert found["recipes"]["peer"]["recall@2"] == 0.25  # half of q1, and q2 is missing
    assert found["recipes"]["peer"]["failed"] == 1
    cell = found["significance"]["cells"]["clew"]["recall@2"]
    assert cell["low"] <= cell["mean"] <= cell["high"]
    page = (house / "out" / "report.html").read_text(encoding="utf-8")
    assert "clew compare data --recipe clew,bm25 --records peers.jsonl --out out" in page
    assert str(house) not in page
    assert (house / "out" / "table.md").read_text().startswith("# data: recipes compared")


def test_gold_is_found_in_a_corpus_that_was_added_as_a_file(house: Path) -> None:
    clew("add", "data/corpus.jsonl", "--kb", "added", cwd=house)
    words = ("eval", "data", "--kb", "added", "--recipe", "bm25", "--metrics", "recall@5")
    found = json.loads(clew(*words, "--json", cwd=house))
    assert found["recipes"]["bm25"]["recall@5"] == 1.0


def test_records_alone_run_nothing(house: Path) -> None:
    words = ("compare", "data", "--records", "peers.jsonl", "--mode", "reject", "-k", "3")
    found = json.loads(clew(*words, "--json", "--out", "alone", cwd=house))
    assert set(found["recipes"]) == {"peer"}
    table = (house / "alone" / "table.md").read_text()
    assert "clew compare data --mode reject -k 3 --records peers.jsonl --out alone" in table


def test_people_get_a_table(house: Path) -> None:
    said = clew("eval", "data", "--answers", "--metrics", "recall@2,subem,grounded", cwd=house)
    assert "recall@2" in said and "grounded" in said and "data: 2 questions" in said


def test_a_narrow_window_hides_no_column(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "WIDE", 80)
    words = ("compare", "data", "--recipe", "clew,bm25", "--answers", "--records", "peers.jsonl")
    lines = clew(*words, cwd=house).splitlines()
    [head] = [line for line in lines if line.startswith("recipe")]
    assert len(head) > 80
    assert [title for title in head.split() if title in ("n", "failed")] == ["n", "failed"]
    at = head.index(" n ") + 1
    [peer] = [line for line in lines if line.startswith("peer")]
    assert peer[at:].split()[:2] == ["2", "1"]


def test_eval_shows_each_numbers_n_and_what_could_not_be_read(house: Path) -> None:
    more = [*ASKED, {"id": "q3", "question": "Who is Ilse?", "gold": [8]}, {"id": "no"}]
    (house / "more.jsonl").write_text("\n".join(map(json.dumps, more)))
    said = clew("eval", "more.jsonl", "--answers", "--metrics", "recall@2,subem", cwd=house)
    assert "more: 3 questions, 1 rows could not be read" in said
    [row] = [line.split() for line in said.splitlines() if line.startswith("clew ")]
    assert row[3:6] == ["(n=2)", "3", "0"]


def test_the_page_names_the_recorded_extractions(house: Path) -> None:
    (house / "openie.jsonl").write_text("")
    words = ("compare", "data", "--recipe", "bm25", "--openie", "openie.jsonl", "--out", "again")
    clew(*words, cwd=house)
    made = (house / "again" / "table.md").read_text()
    assert "clew compare data --recipe bm25 --openie openie.jsonl --out again" in made


def test_advice_names_what_is_wrong_with_the_questions(house: Path) -> None:
    rows = [*ASKED, {"id": "lost", "question": "Who?", "gold": [77]}, {"id": "no"}]
    (house / "asked").mkdir()
    (house / "asked" / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (house / "asked" / "corpus.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    words = ("advise", "asked", "--recipe", "bm25")
    found = json.loads(clew(*words, "--json", cwd=house))
    assert found["unread"] == 1
    assert any("'77' is not in corpus.jsonl" in problem for problem in found["problems"])
    said = clew(*words, cwd=house)
    assert "3 questions from your dataset, 1 rows could not be read" in said
    assert "too few for significant differences" in said


def test_bad_measuring_is_one_sentence(house: Path) -> None:
    against = ("compare", "data", "--recipe", "clew,bm25", "--against", "bm52")
    assert "'bm52' to compare with; available: clew, bm25" in clew(*against, cwd=house, code=1)
    judged = ("eval", "data", "--answers", "--metrics", "accuracy")
    assert "accuracy needs a judge, but no model is set" in clew(*judged, cwd=house, code=1)
    assert "unknown metric 'recal'" in clew("eval", "data", "--metrics", "recal", cwd=house, code=1)
    assert "unknown mode 'x'" in clew("compare", "data", "--mode", "x", cwd=house, code=1)


def test_making_data_and_taking_advice(house: Path) -> None:
    said = clew("make-questions", "--out", "made", "-n", "3", cwd=house)
    assert "made/questions.jsonl" in said
    found = json.loads(clew("advise", "made", "--recipe", "bm25", "--json", cwd=house))
    assert found["recommended"] == "bm25"
    said = clew("anonymise", "data", "--out", "hidden", cwd=house)
    assert "key.json" in said
    assert "Hallowmere" not in (house / "hidden" / "corpus.jsonl").read_text()
    (house / "qa.txt").write_text("who starred in [Film]\tAnn\n")
    said = clew("dataset", "convert", "metaqa", "qa.txt", "--out", "meta", cwd=house)
    assert "1 questions, 0 passages in meta" in said


def test_anonymising_never_costs_the_originals(house: Path) -> None:
    before = (house / "data" / "corpus.jsonl").read_text()
    assert "would overwrite it" in clew("anonymise", "data", "--out", "data", cwd=house, code=1)
    assert (house / "data" / "corpus.jsonl").read_text() == before
    twins = house / "twins"
    twins.mkdir()
    (twins / "corpus.jsonl").write_text(
        "\n".join(map(json.dumps, [*ROWS, {"id": 8, "text": "Hallowmere lies far."}, [1, 2]]))
    )
    (twins / "questions.jsonl").write_text("\n".join(map(json.dumps, [*ASKED, {"id": "z"}])))
    found = json.loads(clew("anonymise", "twins", "--out", "shut", "--json", cwd=house))
    assert found["problems"] == [
        "corpus.jsonl:5: is not an object",
        "questions.jsonl:3: no 'question'",
    ]
    assert "6 rows restored" in clew("anonymise", "shut", "--out", "open", "--restore", cwd=house)
    back = [json.loads(line) for line in (house / "open" / "corpus.jsonl").read_text().splitlines()]
    assert back[-1]["text"] == "Hallowmere lies far."
    assert back[1]["text"] == ROWS[1]["text"]


def test_a_grid_is_checked_before_anything_runs(house: Path) -> None:
    (house / "grid.toml").write_text(
        '[[vary]]\nrecipe = "clew"\nset = { "Walk.hops" = [1, "x"] }\n'
    )
    said = clew("compare", "data", "--grid", "grid.toml", cwd=house, code=1)
    assert "Walk.hops: must be an integer" in said


def test_wording_without_a_model_names_what_is_missing(house: Path) -> None:
    said = clew("make-questions", "--out", "worded", "--word", cwd=house, code=1)
    assert "no model is set for 'plan'" in said


def test_a_recipe_that_cannot_run_fails_the_command(house: Path) -> None:
    for command in ("eval", "compare"):
        said = clew(command, "data", "--recipe", "bm25,raptor", cwd=house, code=1)
        assert "error: raptor: every question failed" in said
        assert "raptor: 2 × " in said  # and why


def test_what_a_search_does_not_depend_on_is_not_run_again(house: Path) -> None:
    (house / "grid.toml").write_text('recipes = ["bm25"]\nk = [2, 3]\nmodes = ["open", "reject"]\n')
    found = json.loads(clew("compare", "data", "--grid", "grid.toml", "--json", cwd=house))
    assert list(found["recipes"]) == ["bm25"]
    assert any("add --answers" in problem for problem in found["problems"])
