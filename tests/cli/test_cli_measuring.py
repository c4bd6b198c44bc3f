"""The measuring commands: compare, dataset convert, anonymise and friends."""

import json
from pathlib import Path

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


def test_records_alone_run_nothing(house: Path) -> None:
    words = ("compare", "data", "--records", "peers.jsonl", "--mode", "reject", "-k", "3")
    found = json.loads(clew(*words, "--json", "--out", "alone", cwd=house))
    assert set(found["recipes"]) == {"peer"}
    table = (house / "alone" / "table.md").read_text()
    assert "clew compare data --mode reject -k 3 --records peers.jsonl --out alone" in table


def test_people_get_a_table(house: Path) -> None:
    said = clew("eval", "data", "--answers", "--metrics", "recall@2,subem,grounded", cwd=house)
    assert "recall@2" in said and "grounded" in said and "data: 2 questions" in said


def test_bad_measuring_is_one_sentence(house: Path) -> None:
    assert "no metric 'recal'" in clew("eval", "data", "--metrics", "recal", cwd=house, code=1)
    assert "no mode 'x'" in clew("compare", "data", "--mode", "x", cwd=house, code=1)


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
