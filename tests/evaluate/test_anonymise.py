"""The anonymiser: names become marks, consistently, and come back to the letter."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import InputError
from clew.evaluate.anonymise import anonymise, restore
from clew.evaluate.datasets import load_dataset
from clew.evaluate.metrics.answers import choice_accuracy, reversion_accuracy
from clew.evaluate.placeholders import (
    PLACEHOLDER,
    PlaceholderMap,
    insert_placeholders,
    restore_names,
)
from conftest import VALLEY


def names_of(*known: str) -> PlaceholderMap:
    names = PlaceholderMap()
    for name in known:
        names.add(name, "PERSON")
    return names


def test_the_longest_name_is_replaced_and_the_key_leads_back() -> None:
    names = names_of("Ann", "Ann Ray", "林黛玉")
    text = "Ann Ray’s friend Ann met 林黛玉. An annex of [PERSON#9] stood."
    hidden, surfaces = insert_placeholders(text, names)
    assert hidden == "[PERSON#2]’s friend [PERSON#1] met [PERSON#3]. An annex of [PERSON#9] stood."
    assert restore_names(hidden, surfaces) == text


@given(st.lists(st.sampled_from(["Ann", "Ann Ray", "[X#1]", "ann", "’s", "]", "\n", "林"])))
def test_hiding_can_always_be_undone(parts: list[str]) -> None:
    text = " ".join(parts)
    for small in (None, frozenset({"ann"}), frozenset[str]()):
        names = names_of("Ann", "Ann Ray", "林")
        names.lowercase_words = small
        hidden, surfaces = insert_placeholders(text, names)
        assert restore_names(hidden, surfaces) == text
        assert "Ann" not in hidden
    assert "ann" not in hidden  # no text writes it small, so it is the name


ROWS: list[dict[str, Any]] = [
    {"id": one.names[0], "title": one.title, "text": one.text} for one in VALLEY
]
ASKED = [
    {
        "id": "q1",
        "question": "Where was Ilse Brandvik, the designer of Marrow Bridge, born?",
        "answer": "Hallowmere",
        "gold": ["bridge", "ilse"],
        "gold_triples": [["Ilse Brandvik", "born", "Hallowmere"]],
    },
    {"id": "q2", "question": "What is grass?", "answers": ["green"], "gold": []},
]


def written(path: Path, name: str, rows: list[dict[str, Any]]) -> None:
    path.mkdir(exist_ok=True)
    (path / name).write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def test_a_corpus_and_its_questions_are_anonymised_alike_and_restored(tmp_path: Path) -> None:
    written(tmp_path / "in", "corpus.jsonl", ROWS)
    written(tmp_path / "in", "questions.jsonl", ASKED)
    done = await anonymise(tmp_path / "in", tmp_path / "out")
    assert (done.passages, done.questions, done.left) == (6, 2, 1)
    text = (tmp_path / "out" / "corpus.jsonl").read_text()
    for name in ("Ilse", "Brandvik", "Hallowmere", "Pellworth", "Lindqvist", "Marrow"):
        assert name not in text
    question = read(tmp_path / "out" / "questions.jsonl")[0]
    assert "gold_triples" not in question  # it would give the names away
    [ilse, bridge] = PLACEHOLDER.findall(question["question"])
    corpus = {row["id"]: row for row in read(tmp_path / "out" / "corpus.jsonl")}
    assert (corpus["ilse"]["title"], corpus["bridge"]["title"]) == (ilse, bridge)
    assert question["answer"] == corpus["town"]["title"]
    assert restore(tmp_path / "out", tmp_path / "back") == 8
    back = read(tmp_path / "back" / "corpus.jsonl")
    assert [(row["title"], row["text"]) for row in back] == [(r["title"], r["text"]) for r in ROWS]
    assert read(tmp_path / "back" / "questions.jsonl")[0]["question"] == ASKED[0]["question"]


async def test_both_tasks_are_scored_by_their_metrics(tmp_path: Path) -> None:
    written(tmp_path / "in", "corpus.jsonl", ROWS)
    written(tmp_path / "in", "questions.jsonl", ASKED)
    await anonymise(tmp_path / "in", tmp_path / "out")
    [picked] = load_dataset(tmp_path / "out" / "choice.jsonl").questions
    assert picked.options is not None
    assert choice_accuracy(picked.answers[0], picked.answers, picked.options) == 1
    assert picked.prompt_text().count("\n") == len(picked.options)
    [undone] = load_dataset(tmp_path / "out" / "reversion.jsonl").questions
    assert undone.originals is not None and len(undone.originals) == 3
    assert reversion_accuracy(undone.answers[0], undone.originals) == 1
    assert "Ilse" not in undone.text


async def test_anonymising_needs_both_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"corpus\.jsonl does not exist"):
        await anonymise(tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match=r"no key\.json"):
        restore(tmp_path, tmp_path / "out")


async def test_rows_that_share_an_id_are_restored_each_to_its_own(tmp_path: Path) -> None:
    more = {"id": "ilse", "title": "", "text": "Hallowmere and Marrow Bridge.\u2028Pellworth."}
    written(tmp_path / "in", "corpus.jsonl", [*ROWS, more])
    written(tmp_path / "in", "questions.jsonl", [*ASKED, {"id": "q1", "question": "Marn?"}])
    await anonymise(tmp_path / "in", tmp_path / "out")
    restore(tmp_path / "out", tmp_path / "back")
    back = (tmp_path / "back" / "corpus.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line)["text"] for line in back if line] == [
        row["text"] for row in [*ROWS, more]
    ]
    assert read(tmp_path / "back" / "questions.jsonl")[-1]["question"] == "Marn?"
    kept = read(tmp_path / "out" / "questions.jsonl")
    written(tmp_path / "out", "questions.jsonl", kept[1:])
    with pytest.raises(InputError, match="1 rows have the id 'q1', but the key file has 2"):
        restore(tmp_path / "out", tmp_path / "back")
    written(tmp_path / "out", "questions.jsonl", [kept[0] | {"question": "x"}, *kept[1:]])
    with pytest.raises(InputError, match="the placeholders in 'question' do not match"):
        restore(tmp_path / "out", tmp_path / "back")


async def test_the_originals_are_never_written_over(tmp_path: Path) -> None:
    written(tmp_path / "in", "corpus.jsonl", ROWS)
    written(tmp_path / "in", "questions.jsonl", ASKED)
    before = (tmp_path / "in" / "corpus.jsonl").read_bytes()
    with pytest.raises(InputError, match="would overwrite it"):
        await anonymise(tmp_path / "in", tmp_path / "out" / ".." / "in")
    with pytest.raises(InputError, match="would overwrite it"):
        restore(tmp_path / "in", tmp_path / "in")
    assert (tmp_path / "in" / "corpus.jsonl").read_bytes() == before


async def test_rows_that_cannot_be_anonymised_are_named(tmp_path: Path) -> None:
    written(tmp_path, "corpus.jsonl", ROWS)
    written(tmp_path, "questions.jsonl", ASKED)
    with (tmp_path / "corpus.jsonl").open("a") as file:
        file.write("\n[1, 2]\n{torn")
    with (tmp_path / "questions.jsonl").open("ab") as file:
        file.write(b'\n{"id": "z"}\n{"id": "l", "question": "caf\xe9?", "answer": 7}')
    done = await anonymise(tmp_path, tmp_path / "out")
    assert (done.passages, done.questions) == (6, 3)
    assert [problem.partition(" (")[0] for problem in done.problems] == [
        "corpus.jsonl:7: is not an object",
        "corpus.jsonl:8: not JSON",
        "questions.jsonl:3: no 'question'",
        "questions.jsonl:4: not UTF-8; invalid bytes become \ufffd",
    ]
    assert read(tmp_path / "out" / "questions.jsonl")[-1]["answer"] == 7


async def test_one_thing_has_one_mark_in_every_script_and_case(tmp_path: Path) -> None:
    corpus = [
        {"id": 1, "title": "王小明", "text": "王小明出生于北京。作家王小明很有名。"},
        {
            "id": 2,
            "title": "Jean-Luc d'Aubigné",
            "text": "Jean-Luc d'Aubigné travaille. jean-luc d'aubigné aime Paris. D'AUBIGNÉ rit.",
        },
        {"id": 3, "title": "", "text": "There [PERSON#4] met McCartney near the grey mill."},
    ]
    asked = [
        {"id": 1, "question": "where did mccartney stay and who is Zanzibar Smith?"},
        {"id": 2, "question": "Is Zanzibar Smith grey?"},
    ]
    written(tmp_path, "corpus.jsonl", corpus)
    written(tmp_path, "questions.jsonl", asked)
    done = await anonymise(tmp_path, tmp_path / "out")
    chinese, french, english = read(tmp_path / "out" / "corpus.jsonl")
    assert chinese["text"].startswith(chinese["title"] + "出生") and "王" not in chinese["text"]
    assert PLACEHOLDER.findall(chinese["text"]).count(chinese["title"]) == 2
    assert PLACEHOLDER.findall(french["text"]).count(french["title"]) == 3
    assert english["text"].startswith("There [PERSON#4] met ")
    first, second = (row["question"] for row in read(tmp_path / "out" / "questions.jsonl"))
    assert PLACEHOLDER.findall(first)[0] in english["text"] and "Smith" not in first + second
    assert second == f"Is {PLACEHOLDER.findall(first)[1]} grey?"
    assert done.left == 0
    restore(tmp_path / "out", tmp_path / "back")
    assert read(tmp_path / "back" / "corpus.jsonl") == corpus
    assert read(tmp_path / "back" / "questions.jsonl") == asked


async def test_other_names_of_each_answer_keep_their_shape(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "question": "Who met Ilse Brandvik?",
        "answers": ["Ann Ray", "Bob"],
        "aliases": [["Hallowmere", "it"], []],
    }
    written(tmp_path, "corpus.jsonl", ROWS)
    written(tmp_path, "questions.jsonl", [row])
    await anonymise(tmp_path, tmp_path / "out")
    [hidden] = read(tmp_path / "out" / "questions.jsonl")
    assert PLACEHOLDER.fullmatch(hidden["aliases"][0][0]) and hidden["aliases"][1] == []
    restore(tmp_path / "out", tmp_path / "back")
    assert read(tmp_path / "back" / "questions.jsonl") == [row]
