"""What a run leaves: the best model, a folder of its own, and nothing lost by stopping."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from safetensors.torch import load_file  # noqa: E402
from tiny_training import SETTINGS, same, training, weights  # noqa: E402

from clew.errors import ConfigError, ModelError  # noqa: E402
from clew.train import loop, toy  # noqa: E402
from clew.train.core.rollout import StopRequested  # noqa: E402
from clew.train.core.safeguards import NonFiniteValue  # noqa: E402
from clew.train.learn.distributed import ProcessGroup  # noqa: E402
from clew.train.run_folder import lock_run_folder, read_log  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
DEV = toy.make_tasks()[:3]
EACH = replace(SETTINGS, eval_every=1)


class Killed(Exception):  # noqa: N818  (reads as what happened)
    """In the place of a kill: nothing of the run catches it."""


def _scored(monkeypatch, *f1):
    """The held-out questions' F1, one value a check; an exception is raised."""
    left = list(f1)

    def evaluate(rollout, tasks):
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return {"f1": found, "em": 0.0}, []

    monkeypatch.setattr(loop, "evaluate", evaluate)


def _served(folder):
    (file,) = (folder / "model").glob("*.safetensors")
    return load_file(file)


def test_the_best_on_the_held_out_questions_is_served_and_the_last_goes_on(tmp_path, monkeypatch):
    _scored(monkeypatch, 0.1, 0.9, 0.3)
    lines: list[str] = []
    run = training(tmp_path, replace(EACH, steps=2), dev=DEV, report=lines.append)
    told = run.run()
    assert (told["steps"], told["best_step"], told["served_step"]) == (2, 1, 1)
    kept = load_file(tmp_path / "best" / "step-000001" / "trained.safetensors")
    last = load_file(tmp_path / "checkpoints" / "step-000002" / "trained.safetensors")
    assert same(_served(tmp_path), kept) and not same(_served(tmp_path), last)
    assert same(weights(run), last)
    rows = read_log(tmp_path / "log.jsonl")
    assert [row["served_step"] for row in rows] == [0, 1, 1]
    assert "is step 1, the best on the 3 dev questions" in lines[-1]


def test_without_held_out_questions_the_last_is_served(tmp_path):
    run = training(tmp_path, replace(SETTINGS, steps=1))
    assert run.run()["served_step"] == 1
    assert same(_served(tmp_path), weights(run))


def test_an_adapter_can_be_served_before_the_run_ends(tmp_path):
    beside = []
    run = training(
        tmp_path, replace(EACH, lora_rank=4), lora=4, dev=DEV, on_model_saved=beside.append
    )
    run.step = _killed
    with pytest.raises(Killed):
        run.run()
    assert (tmp_path / "model" / "adapter_model.safetensors").is_file()
    assert (tmp_path / "model" / "tokenizer.json").is_file() and len(beside) == 1


def _killed(*given):
    raise Killed


def test_best_weights_found_just_before_a_kill_are_still_the_best(tmp_path, monkeypatch):
    settings = replace(EACH, steps=3, save_every=3)
    _scored(monkeypatch, 0.1, 0.9)
    run = training(tmp_path, settings, dev=DEV)
    inner = run.step
    run.step = lambda step: inner(step) if step == 0 else _killed()
    with pytest.raises(Killed):
        run.run()
    _scored(monkeypatch, 0.1, 0.9, 0.2, 0.3)
    told = training(tmp_path, settings, dev=DEV).run()
    assert (told["served_step"], told["stale"]) == (1, 2)


def test_a_warm_start_is_not_lost_by_a_kill_before_the_first_step(tmp_path):
    run = training(tmp_path)
    with torch.no_grad():
        for parameter in run.policy.trainable_parameters().values():
            parameter.add_(0.01)  # a warm start
    warm = weights(run)
    run.step = _killed
    with pytest.raises(Killed):
        run.run()
    again = training(tmp_path)
    assert again.checkpoints.newest() is not None  # so `clew train` does not warm it up again
    assert again.resume() == 0
    assert same(weights(again), warm) and same(again.policy.reference_weights, warm)


@pytest.mark.parametrize("moment", ["between steps", "between turns", "while checking"])
def test_a_run_stopped_by_hand_goes_on_to_where_a_whole_one_ends(tmp_path, monkeypatch, moment):
    settings = replace(EACH, steps=3)
    _scored(monkeypatch, 0.1, 0.2, 0.5, 0.4)
    whole = training(tmp_path / "whole", settings, dev=DEV)
    wanted = whole.run()
    stopping = moment == "while checking"
    _scored(monkeypatch, 0.1, StopRequested() if stopping else 0.2, *([0.2] * stopping), 0.5, 0.4)
    run = training(tmp_path / "parts", settings, dev=DEV)
    inner = run.step
    if moment == "between turns":
        run.step = lambda step: (run.stop.set() if step == 1 else None, inner(step))[1]
    else:
        run.step = lambda step: (inner(step), run.stop.set())[0]
    told = run.run()
    assert told["steps"] == 1 and (tmp_path / "parts" / "model").is_dir()
    rest = training(tmp_path / "parts", settings, dev=DEV)
    found = rest.run()
    assert {**found, "seconds": 0} == {**wanted, "seconds": 0}
    assert same(weights(whole), weights(rest))


def test_a_run_that_stopped_early_is_over_when_it_is_run_again(tmp_path):
    settings = replace(EACH, steps=9, patience=2, lr=1e-9)
    assert training(tmp_path, settings, dev=DEV).run()["steps"] == 2
    assert training(tmp_path, settings, dev=DEV).run()["steps"] == 2
    assert len(read_log(tmp_path / "log.jsonl")) == 3


@pytest.mark.parametrize("dev", [(), DEV])
def test_weights_that_are_no_numbers_are_refused_and_no_checkpoint_is_praised(tmp_path, dev):
    run = training(tmp_path, replace(SETTINGS, beta=0.0), dev=dev)
    with torch.no_grad():
        next(iter(run.policy.trainable_parameters().values())).fill_(float("nan"))
    with pytest.raises(
        ModelError, match="NaN or infinite; training stopped, before the first step"
    ):
        run.run()


def test_a_reference_that_is_no_number_is_refused(tmp_path):
    run = training(tmp_path)
    run.policy.freeze_reference()
    next(iter(run.policy.reference_weights.values())).fill_(float("nan"))
    played, _ = run.rollout(["what is in box1 of room1"] * 3)
    with pytest.raises(NonFiniteValue, match="the reference"):
        run.estimator(played, [0.0, 0.5, 1.0])


def test_a_folder_has_one_run_at_a_time_and_is_no_file(tmp_path):
    with lock_run_folder(tmp_path / "run", ProcessGroup()):
        with lock_run_folder(
            tmp_path / "run", ProcessGroup(1, 2)
        ):  # another process of the same run
            pass
        with (
            pytest.raises(ConfigError, match="another process is training"),
            lock_run_folder(tmp_path / "run", ProcessGroup()),
        ):
            pass
    with lock_run_folder(tmp_path / "run", ProcessGroup()):
        (tmp_path / "file").touch()
    with (
        pytest.raises(ConfigError, match="is a file"),
        lock_run_folder(tmp_path / "file", ProcessGroup()),
    ):
        pass


def test_checks_made_again_after_a_kill_are_not_stale(tmp_path, monkeypatch):
    settings = replace(EACH, steps=4, save_every=100, patience=2)
    _scored(monkeypatch, 0.1, 0.2, 0.3, Killed())
    with pytest.raises(Killed):
        training(tmp_path, settings, dev=DEV).run()
    _scored(monkeypatch, 0.1, 0.2, 0.3, 0.4, 0.5)
    told = training(tmp_path, settings, dev=DEV).run()
    assert (told["steps"], told["best_step"], told["stale"]) == (4, 4, 0)


def test_why_it_ended_is_told(tmp_path, monkeypatch):
    _scored(monkeypatch, 0.5, 0.4)
    lines: list[str] = []
    settings = replace(EACH, steps=4, patience=1)
    told = training(tmp_path / "a", settings, dev=DEV, report=lines.append).run()
    assert told["ended"] == "dev F1 did not improve in 1 validations"
    assert "1 step done (dev F1 did not improve in 1 validations)" in lines[-1]
    told = training(tmp_path / "b", replace(SETTINGS, steps=9, minutes=1e-9)).run()
    assert told["ended"] == "the time limit of 1e-09 minutes was reached"


def test_rewards_that_never_differ_are_told_once_and_at_the_end(tmp_path):
    lines: list[str] = []
    run = training(tmp_path, report=lines.append, reward=lambda episode, golds: -1.0)
    run.run()
    assert sum(line.startswith("nothing is learned") for line in lines) == 2
    again: list[str] = []
    training(tmp_path / "b", report=again.append).run()
    assert not any(line.startswith("nothing is learned") for line in again)
