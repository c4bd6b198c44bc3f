"""Questions and runs that are not what they seem: each is refused with its line or its name."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from clew.errors import ConfigError, InputError
from clew.train.core.settings import TrainSettings
from clew.train.questions import Task, load_tasks
from clew.train.run_folder import check_run_config, describe_run

TASKS = [Task("1", "who?", ("Ostby",)), Task("2", "where?", ("Sund",))]


def _file(folder: Path, *rows: dict[str, object]) -> Path:
    file = folder / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"answers": "Ostby"}, ("Ostby",)),
        ({"answer": ["Ostby", "Sund"]}, ("Ostby", "Sund")),
        ({"answer": 1976}, ("1976",)),
        ({"answer": "Ostby", "aliases": "Østby"}, ("Ostby", "Østby")),
    ],
)
def test_one_answer_or_several_are_read_as_they_are_meant(tmp_path, given, read) -> None:
    assert load_tasks(_file(tmp_path, {"question": "who?", **given}))[0].answers == read


@pytest.mark.parametrize(
    "given",
    [
        {"answers": {"a": 1}},
        {"answer": True},
        {"answer": ["x", None]},
        {"answer": "x", "aliases": 3.5},
        {"answer": "x", "gold_triples": [["a", "b"]]},
        {"answer": "x", "gold_triples": "abc"},
    ],
)
def test_what_is_no_answer_is_refused_by_its_line(tmp_path, given) -> None:
    rows = ({"question": "who?", "answer": "x"}, {"question": "where?", **given})
    with pytest.raises(InputError, match=r"questions\.jsonl:2 cannot be read"):
        load_tasks(_file(tmp_path, *rows))


def _model(folder: Path, weights: bytes) -> str:
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(weights)
    return str(folder)


@pytest.fixture
def begun(tmp_path: Path) -> tuple[Path, str]:
    """A folder in which a run has saved a step, and its model."""
    out, model = tmp_path / "run", _model(tmp_path / "m", b"one")
    check_run_config(
        out, describe_run(model, {"recipe": "graph-r1"}, TASKS, TrainSettings()), write=True
    )
    saved = out / "checkpoints" / "step-000001"
    saved.mkdir(parents=True)
    (saved / "state.json").write_text("{}")
    return out, model


def test_a_run_goes_on_as_it_began_and_longer(tmp_path, begun) -> None:
    out, model = begun
    more = replace(TrainSettings(), steps=99, minutes=3.0, patience=4, cells=512)
    moved = _model(tmp_path / "elsewhere", b"one")
    before = (out / "run.json").read_bytes()
    for name in (model, moved):
        wanted = describe_run(name, {"recipe": "graph-r1"}, TASKS[::-1], more)
        check_run_config(out, wanted, write=True)  # raises where it is another run
        assert (out / "run.json").read_bytes() == before  # it stays the run that was begun


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"settings": TrainSettings(algorithm="ppo")}, "algorithm was grpo, is ppo"),
        ({"settings": TrainSettings(beta=0.5)}, "beta was 0.001, is 0.5"),
        ({"asked": {"recipe": "graph-r1+bm25"}}, r"recipe was graph-r1, is graph-r1\+bm25"),
        ({"tasks": TASKS[:1]}, "other questions"),
        ({"model": b"two"}, "model was .*m, is .*other"),
    ],
)
def test_another_run_is_not_continued(tmp_path, begun, change, told) -> None:
    out, model = begun
    if "model" in change:
        model = _model(tmp_path / "other", change["model"])
    wanted = describe_run(
        model,
        change.get("asked", {"recipe": "graph-r1"}),
        change.get("tasks", TASKS),
        change.get("settings", TrainSettings()),
    )
    with pytest.raises(ConfigError, match=told):
        check_run_config(out, wanted, write=True)


def test_an_out_that_is_a_file_is_refused(tmp_path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match="cannot write to --out"):
        check_run_config(tmp_path / "taken", {}, write=True)


def test_rows_are_read_as_evaluation_reads_them(tmp_path) -> None:
    file = tmp_path / "questions.jsonl"
    line = json.dumps({"id": "a", "question": "who\u2028is it?", "answer": "x"}, ensure_ascii=False)
    other = json.dumps({"id": "a", "question": "which?", "answer": "x", "options": {"A": "x"}})
    file.write_text(f"\ufeff{line}\n{other}\n", encoding="utf-8")
    assert [(task.id, task.question) for task in load_tasks(file)] == [
        ("a", "who\u2028is it?"),
        ("a~2", "which?\nA. x"),
    ]
    file.write_bytes('{"question": "Café?", "answer": "x"}'.encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        load_tasks(file)
