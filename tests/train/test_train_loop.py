"""Whole runs of a few steps on a tiny model: what moves, what a kill and a NaN leave behind."""

import json
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from tiny_training import SETTINGS  # noqa: E402
from tiny_training import same as _same  # noqa: E402
from tiny_training import training as _training  # noqa: E402
from tiny_training import weights as _weights  # noqa: E402

from clew.errors import ModelError  # noqa: E402
from clew.train import toy  # noqa: E402
from clew.train.learn import update as updates  # noqa: E402
from clew.train.run_folder import read_log  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("algorithm", ["grpo", "reinforce++", "ppo"])
def test_every_algorithm_takes_steps_and_writes_them_down(tmp_path, algorithm):
    training = _training(tmp_path, replace(SETTINGS, algorithm=algorithm, steps=2, updates=2))
    before = _weights(training)
    told = training.run()
    assert told["steps"] == 2
    assert not _same(before, _weights(training))
    rows = read_log(tmp_path / "log.jsonl")
    assert [row["step"] for row in rows] == [0, 1]
    for row in rows:
        assert row["grad"] > 0 and row["drift"] < 1.0
        assert {"reward", "f1", "turns", "response", "tokens_per_second"} <= row.keys()
    assert (tmp_path / "model" / "config.json").is_file()
    assert (tmp_path / "plots" / "reward.svg").is_file()


def test_an_adapter_trains_and_its_base_does_not(tmp_path):
    training = _training(tmp_path, replace(SETTINGS, steps=2, lora_rank=4), lora=4)
    names = set(_weights(training))
    assert names and all("lora_" in name for name in names)
    base = {n: p.clone() for n, p in training.policy.model.named_parameters() if n not in names}
    training.run()
    now = dict(training.policy.model.named_parameters())
    assert all(torch.equal(base[name], now[name]) for name in base)
    assert (tmp_path / "model" / "adapter_model.safetensors").is_file()


def test_the_first_ratio_is_one_and_the_reference_is_where_it_began(tmp_path):
    told = _training(tmp_path, replace(SETTINGS, steps=1)).run()
    (row,) = read_log(tmp_path / "log.jsonl")
    assert told["steps"] == 1
    assert row["clipped"] == 0 and row["drift"] < 1e-5 and row["kl"] < 1e-6


@pytest.mark.parametrize("algorithm", ["grpo", "reinforce++", "ppo"])
def test_a_run_in_two_parts_ends_where_a_whole_one_ends(tmp_path, algorithm):
    settings = replace(SETTINGS, algorithm=algorithm)
    whole = _training(tmp_path / "whole", settings)
    whole.run()
    _training(tmp_path / "parts", replace(settings, steps=2)).run()
    lines: list[str] = []
    rest = _training(tmp_path / "parts", settings, report=lines.append)
    rest.run()
    assert "resuming from step 2" in lines
    assert _same(_weights(whole), _weights(rest))
    if algorithm == "ppo":
        assert _same(whole.critic.parameters(), rest.critic.parameters())
    ours, theirs = (
        [row["reward"] for row in read_log(tmp_path / name / "log.jsonl")]
        for name in ("whole", "parts")
    )
    assert ours == theirs


def test_a_kill_while_writing_leaves_the_checkpoint_before(tmp_path):
    training = _training(tmp_path, replace(SETTINGS, steps=2))
    training.run()
    (tmp_path / "checkpoints" / ".step-000003.new").mkdir()
    (tmp_path / "checkpoints" / "step-000009").mkdir()  # renamed, but not whole
    again = _training(tmp_path, replace(SETTINGS, steps=2))
    assert again.resume() == 2
    assert _same(_weights(training), _weights(again))


def test_nan_stops_and_the_last_checkpoint_is_good(tmp_path):
    training = _training(tmp_path)
    whole = training.learn

    def broken(step, played, rewards):
        if step == 2:
            with torch.no_grad():
                next(iter(training.policy.trainable_parameters().values())).fill_(float("nan"))
        return whole(step, played, rewards)

    training.learn = broken
    with pytest.raises(ModelError, match="last checkpoint is"):
        training.run()
    again = _training(tmp_path)
    assert again.resume() == 2
    assert all(torch.isfinite(p).all() for p in again.policy.trainable_parameters().values())
    with pytest.raises(ModelError, match="reward is NaN or infinite"):
        _training(tmp_path / "r", reward=lambda episode, golds: float("nan")).run()


def test_memory_that_runs_out_halves_the_batch_once_and_changes_nothing(tmp_path, monkeypatch):
    usual = _training(tmp_path / "usual", replace(SETTINGS, steps=1))
    usual.run()
    lines: list[str] = []
    tight = _training(tmp_path / "tight", replace(SETTINGS, steps=1), report=lines.append)
    inner = updates.compute_gradients

    def short(policy, examples, objective, critic):
        if policy.cells > 300:
            inner(policy, examples, objective, critic)  # gradients of a try that then fails
            raise torch.OutOfMemoryError("no")
        return inner(policy, examples, objective, critic)

    monkeypatch.setattr(updates, "compute_gradients", short)
    tight.run()
    said = [line for line in lines if "out of memory" in line]
    assert said == ["out of memory: micro-batches are reduced to 256 tokens"]
    ours, theirs = _weights(usual), _weights(tight)
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-4) for name in ours)

    def never(policy, examples, objective, critic):
        raise torch.OutOfMemoryError("no")

    monkeypatch.setattr(updates, "compute_gradients", never)
    with pytest.raises(ModelError, match="does not fit in memory"):
        _training(tmp_path / "never", replace(SETTINGS, steps=1)).run()


def test_it_stops_when_the_held_out_answers_get_no_better(tmp_path):
    settings = replace(SETTINGS, steps=9, eval_every=1, patience=2, lr=1e-9)
    told = _training(tmp_path, settings, dev=toy.make_tasks()[:3]).run()
    assert told["steps"] == 2 and told["best_step"] == 0
    assert (tmp_path / "best" / "step-000000" / "trained.safetensors").is_file()
    assert len(json.loads((tmp_path / "dev.jsonl").read_text().splitlines()[0])) > 4


def test_a_reward_that_can_be_raised_is_raised(tmp_path):
    training = _training(tmp_path, replace(SETTINGS, steps=12, questions=8, group=4))
    training.run()
    rewards = [row["reward"] for row in read_log(tmp_path / "log.jsonl")]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.2
