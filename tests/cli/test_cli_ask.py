"""The command line of asking: traces, histories, budgets, conversations, calibration."""

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from in_process import clew
from typer.testing import CliRunner

from clew.agents.base import Answer
from clew.cli import chat as talking
from clew.cli.app import app

PAGES = {
    "bridge.txt": "Marrow Bridge is a bridge over the Tarn. It was designed by Ilse Brandvik.",
    "ilse.txt": "Ilse Brandvik was an engineer. She was born in Hallowmere in 1870.",
    "town.txt": "Hallowmere is a fishing town on the Grey Coast.",
}
ASKED = "Where was the designer of Marrow Bridge born?"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a knowledge base of three small files."""
    folder = tmp_path_factory.mktemp("talk")
    (folder / "docs").mkdir()
    for name, text in PAGES.items():
        (folder / "docs" / name).write_text(text)
    clew("add", "docs", cwd=folder)
    return folder


def asked(house: Path, *words: str) -> Any:
    return json.loads(clew("ask", ASKED, "--json", *words, cwd=house))


def test_the_trace_is_a_tree(house: Path) -> None:
    found = asked(house)
    step = next(s for s in found["trace"] if s["step"] == "search")
    assert step["steps"]
    assert {"step", "input", "output", "seconds", "usage"} <= set(step)
    drawn = clew("ask", ASKED, "--trace", cwd=house)
    assert "── search" in drawn
    assert "Blended: 3 passages" in drawn
    assert "chunks=" not in drawn and "hops=" not in drawn
    assert "Blended: 3 passages" in clew("search", ASKED, "--trace", cwd=house)


def test_a_budget_is_taken(house: Path) -> None:
    found = asked(house, "--max-calls", "3", "--max-seconds", "60", "--max-tokens", "100")
    assert found["complete"] is True


@pytest.mark.parametrize("limit", ["--max-calls", "--max-tokens", "--max-seconds", "--max-money"])
def test_less_than_nothing_is_wrong_usage(house: Path, limit: str) -> None:
    assert limit in clew("ask", ASKED, limit, "-5", cwd=house, code=2)


def test_a_price_is_needed_where_money_counts(house: Path) -> None:
    words = ("ask", ASKED, "--model", "nameless", "--max-money", "1")
    assert "no price is set for 'nameless'" in clew(*words, cwd=house, code=1)


def test_no_time_means_no_looking_up_and_says_so(house: Path) -> None:
    assert "0 seconds is spent" in clew("ask", ASKED, "--max-seconds", "0", cwd=house, code=1)


@pytest.mark.parametrize(
    ("place", "said"), [("gone/h.jsonl", "the folder gone"), (".", "a folder")]
)
def test_where_no_history_can_be_kept_nothing_is_asked(
    house: Path, place: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.cli.ask.ask_question", lambda *_: pytest.fail("it was asked"))
    assert said in clew("ask", ASKED, "--history", place, cwd=house, code=1)


def test_an_answer_is_shown_also_where_it_cannot_be_kept(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = house / "brief"
    folder.mkdir()

    async def gone_meanwhile(*how: Any) -> Answer:
        folder.rmdir()
        return await talking.ask_question(*how)

    monkeypatch.setattr("clew.cli.ask.ask_question", gone_meanwhile)
    with chdir(house):
        done = CliRunner().invoke(app, ["ask", ASKED, "--history", "brief/h.jsonl"])
    assert "Hallowmere" in done.stdout
    assert (done.exit_code, "cannot write the answer to the history" in done.stderr) == (1, True)


def test_a_history_goes_on_after_a_line_without_an_end(house: Path) -> None:
    history = house / "cut.jsonl"
    history.write_bytes(b'\xef\xbb\xbf{"question": "Who was Ilse Brandvik?", "by": "me"}')
    for asked_next in ("Where was\u2028she born?", "And when?"):
        clew("ask", asked_next, "--history", "cut.jsonl", cwd=house)
    first, second, third = history.read_text("utf-8-sig").strip().split("\n")
    assert json.loads(first)["by"] == "me"
    assert json.loads(second)["question"] == "Where was\u2028she born?"
    assert json.loads(third)["question"] == "And when?"
    (house / "odd.jsonl").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in clew("ask", ASKED, "--history", "odd.jsonl", cwd=house, code=1)


def test_a_history_file_is_read_and_continued(house: Path) -> None:
    history = house / "talk.jsonl"
    history.write_text('{"question": "Who was Ilse Brandvik?", "answer": "An engineer."}\n')
    clew("ask", "Where was she born?", "--history", "talk.jsonl", cwd=house)
    turns = [json.loads(line) for line in history.read_text().splitlines()]
    assert [turn["question"] for turn in turns] == ["Who was Ilse Brandvik?", "Where was she born?"]
    (house / "bad.jsonl").write_text("no json\n")
    assert "bad.jsonl:1" in clew("ask", "x", "--history", "bad.jsonl", cwd=house, code=1)


def test_a_conversation_ends_with_an_empty_line(house: Path) -> None:
    said = clew("chat", cwd=house, told="Who was Ilse Brandvik?\nWhere was she born?\n\n")
    assert "Ilse Brandvik was an engineer." in said
    assert "Hallowmere" in said


def test_a_conversation_is_one_document_for_programs(house: Path) -> None:
    told = "Who was Ilse Brandvik?\nWhere was she born?\n\n"
    answers = json.loads(clew("chat", "--json", cwd=house, told=told))
    assert [one["question"] for one in answers] == told.split("\n")[:2]
    assert "Hallowmere" in answers[1]["answer"] and answers[1]["citations"]


def test_agents_are_listed_and_shown_as_tables(house: Path) -> None:
    listed = json.loads(clew("recipes", "--json", cwd=house))
    kinds = {(row["name"], row["kind"]) for row in listed}
    assert {("graphsearch", "agent"), ("rograg", "agent"), ("clew", "retriever")} <= kinds
    rows = json.loads(clew("recipes", "graphsearch+naive", "--json", cwd=house))
    assert {"GraphSearch", "Dense"} <= {row["step"] for row in rows}
    needs = {row["name"]: row["needs"] for row in listed if row["kind"] == "agent"}
    assert needs.pop("llm") == "a model"
    assert all(need.endswith("a model, if any") for need in needs.values())
    assert "needs: a model, if any" in clew("recipes", "reader+bm25", cwd=house)
    assert "no agent" in clew("ask", "x", "--recipe", "nobody+clew", cwd=house, code=1)


def test_the_confidence_is_refitted_on_questions_with_answers(house: Path) -> None:
    row = '{"question": "Who designed Marrow Bridge?", "answer": "Ilse Brandvik"}\n'
    (house / "few.jsonl").write_text(row)
    assert "too few" in clew("calibrate", "few.jsonl", cwd=house, code=1)
    (house / "same.jsonl").write_text(row * 25)
    assert "1 of 25 questions differ" in clew("calibrate", "same.jsonl", cwd=house, code=1)
    assert "shipped" in clew("calibrate", "--reset", cwd=house)
    assert "give questions with answers" in clew("calibrate", cwd=house, code=2)


def test_a_fit_that_saw_no_unanswerable_question_is_not_stored(house: Path) -> None:
    names = ("Marrow Bridge", "the Marrow Bridge", "Corrin Bridge")
    ways = ("Who designed {}?", "Who was {} designed by?", "{} was designed by whom?")
    more = ("Who built {}?", "Who planned {}?", "By whom was {} built?", "Tell me who drew {}.")
    rows = [
        {"question": way.format(name), "answer": "Ilse Brandvik"}
        for way in (*ways, *more)
        for name in names
    ]
    rows[0]["answer"] = "Somebody Else"  # so that there is something to tell apart
    (house / "answered.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = json.loads(clew("calibrate", "answered.jsonl", "--json", cwd=house))
    assert (found["unanswerable"], found["stored"]) == (0, False)
    assert "no question is without an answer" in clew("calibrate", "answered.jsonl", cwd=house)


def test_the_confidence_is_shown_and_may_be_demanded(house: Path) -> None:
    found = asked(house)
    assert 0 <= found["confidence"] <= 1 and found["signals"]
    assert "confidence" in clew("ask", ASKED, cwd=house)
    strict = asked(house, "--mode", "reject", "--confidence", "1")
    assert strict["verdict"] == "refused"


def test_what_cannot_be_read_or_has_no_effect_is_said(house: Path) -> None:
    (house / "broken.jsonl").write_text('{"question": 3}\nnot json\n')
    said = clew("calibrate", "broken.jsonl", cwd=house, code=1)
    assert "broken.jsonl:1" in said
    with chdir(house):
        result = CliRunner().invoke(app, ["ask", ASKED, "--confidence", "0.9"])
    assert "no effect without --mode reject" in result.stderr
