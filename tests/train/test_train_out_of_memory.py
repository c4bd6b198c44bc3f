"""Memory that runs out in rollouts, and in passes without gradients."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from tiny_training import SETTINGS, training  # noqa: E402

from clew.errors import ModelError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
QUESTIONS = [f"what is in box{number} of room1" for number in range(7)]


def _short(monkeypatch, thing, name, fits):
    """Let a method run out of memory unless what it is given fits."""
    inner = getattr(thing, name)

    def tight(first, *rest):
        if not fits(first):
            raise torch.OutOfMemoryError("no")
        return inner(first, *rest)

    monkeypatch.setattr(thing, name, tight)


def test_a_rollout_plays_fewer_at_once_and_answers_all(tmp_path, monkeypatch):
    lines: list[str] = []
    run = training(tmp_path, report=lines.append)
    usual, _ = run.rollout(QUESTIONS, temperature=0.0)
    _short(monkeypatch, run.rollout.decoder, "prefill", lambda prompts: len(prompts) <= 2)
    found, timing = run.rollout(QUESTIONS, temperature=0.0)
    assert [one.ids.tolist() for one in found] == [one.ids.tolist() for one in usual]
    assert timing.episodes == 7 and run.rollout.batch == 1
    assert lines == [
        f"out of memory: the rollout batch is reduced to {count} episodes" for count in (3, 1)
    ]
    _short(monkeypatch, run.rollout.decoder, "prefill", lambda prompts: False)
    with pytest.raises(ModelError, match="one episode of 64 tokens does not fit"):
        run.rollout(QUESTIONS)


@pytest.mark.parametrize("what", ["log-probabilities", "values"])
def test_a_pass_without_gradients_takes_smaller_batches(tmp_path, monkeypatch, what):
    lines: list[str] = []
    run = training(tmp_path, replace(SETTINGS, algorithm="ppo"), report=lines.append)
    played, _ = run.rollout(QUESTIONS)
    longest = max(map(len, played))

    def measured():
        if what == "values":
            return run.critic.estimate_values(run.policy, played, run.report)
        return run.policy.score_trajectories(played, run.report)

    run.policy.cells = 4 * longest
    usual = measured()
    _short(monkeypatch, run.policy, "logprobs", lambda batch: batch.ids.shape[0] <= 1)
    tight = measured()
    for ours, theirs in zip(usual, tight, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    assert lines and all("out of memory: micro-batches" in line for line in lines)
    assert len(lines) == len(set(lines))
    _short(monkeypatch, run.policy, "logprobs", lambda batch: False)
    with pytest.raises(ModelError, match="does not fit in memory"):
        measured()
