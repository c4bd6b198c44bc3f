"""Settings and questions: what is refused, and with which words."""

import json

import pytest

from clew.errors import ConfigError, InputError
from clew.train.core.settings import TrainSettings, settings_from
from clew.train.questions import load_tasks, select_batch, split_tasks


def test_a_file_and_what_is_given_by_hand(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('algorithm = "reinforce++"\nlr = 1\nsteps = 3\n')
    found = settings_from(path, steps=7, seed=None)
    assert (found.algorithm, found.lr, found.steps) == ("reinforce++", 1.0, 7)
    assert settings_from(None) == TrainSettings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("speed = 3", "unknown training setting 'speed'"),
        ('steps = "many"', "the type must be int"),
        ('algorithm = "magic"', "choose grpo, reinforce"),
        ("group = 1", "at least 2"),
        ("questions = 0", "at least 1"),
        ("eval_every = 0", "eval_every = 0: choose at least 1"),
        ("save_every = 0", "save_every = 0: choose at least 1"),
        ("keep = 0", "keep = 0: choose at least 1"),
        ("batch = 0", "batch = 0: choose at least 1"),
        ("lora_rank = -1", "lora_rank = -1: choose at least 0"),
        ("temperature = 0", "temperature = 0.0: choose a number above 0"),
        ("beta = nan", "beta = nan"),
        ("lr = inf", "lr = inf"),
        ("steps = [", "not valid TOML"),
    ],
)
def test_bad_settings_are_named(tmp_path, text, said):
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        settings_from(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        settings_from(tmp_path / "absent.toml")


def test_a_fifth_is_held_out_and_at_most_a_hundred():
    few = TrainSettings()
    assert [few.count_dev_questions(count) for count in (4, 20, 800)] == [0, 4, 100]
    assert (
        TrainSettings(dev=0).count_dev_questions(20) == 0
        and TrainSettings(dev=7).count_dev_questions(20) == 7
    )
    with pytest.raises(ConfigError, match="dev = 20 leaves none of 20 questions"):
        TrainSettings(dev=20).count_dev_questions(20)


def _folder(tmp_path, rows):
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return tmp_path


def test_tasks_hold_answers_aliases_and_evidence(tmp_path):
    row = {
        "id": "a",
        "question": "Who?",
        "answer": "Ann",
        "aliases": ["Annie"],
        "gold_triples": [["X", "mother", "Ann"]],
    }
    (task,) = load_tasks(_folder(tmp_path, [row, ""]))
    assert (task.answers, task.evidence) == (("Ann", "Annie"), (("X", "mother", "Ann"),))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"question": "Who?"}], "1 of 1 questions .* have no answer"),
        ([{"question": "Who?", "answer": " "}], "have no answer"),
        ([{"answer": "x"}], "questions.jsonl:1 has no `question`"),
        (["{"], "questions.jsonl:1 is not JSON"),
        ([], "has no questions"),
    ],
)
def test_questions_that_cannot_train_are_refused(tmp_path, rows, said):
    with pytest.raises(InputError, match=said):
        load_tasks(_folder(tmp_path, rows))


def test_a_folder_without_questions_is_named(tmp_path):
    with pytest.raises(InputError, match=r"has no questions\.jsonl"):
        load_tasks(tmp_path)


def test_a_split_depends_on_ids_and_seed_only(tmp_path):
    rows = [{"id": f"q{n}", "question": f"{n}?", "answer": "a"} for n in range(50)]
    tasks = load_tasks(_folder(tmp_path, rows))
    train, held = split_tasks(tasks, 10, 7)
    assert (len(train), len(held)) == (40, 10)
    assert not {t.id for t in train} & {t.id for t in held}
    assert {t.id for t in split_tasks(tasks[::-1], 10, 7)[1]} == {t.id for t in held}
    assert {t.id for t in split_tasks(tasks, 10, 8)[1]} != {t.id for t in held}
    with pytest.raises(InputError, match="cannot hold out 50"):
        split_tasks(tasks, 50, 7)


def test_an_epoch_asks_every_question_once(tmp_path):
    rows = [{"id": f"q{n}", "question": f"{n}?", "answer": "a"} for n in range(10)]
    tasks = load_tasks(_folder(tmp_path, rows))
    first = [task.id for step in range(5) for task in select_batch(tasks, step, 4, 1)]
    assert sorted(first[:10]) == sorted(first[10:]) == sorted(task.id for task in tasks)
    assert first[:10] != first[10:]
