"""The example of the docs: a tiny model that really learns to look things up."""

import pytest

from clew.train import toy


def test_there_is_nothing_to_know_without_looking() -> None:
    held = toy.make_contents()
    assert len(held) == 64 and set(held.values()) == set(toy.THINGS)
    assert toy.make_contents(1) != held == toy.make_contents(0)
    assert toy.make_retriever()(["box1 of room2", "box1"]) == [
        f"box1 of room2 holds {held['box1 of room2']}",
        "",
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_reward_rises_from_below_a_fifth_to_above_four(tmp_path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from clew.train.run_folder import read_log
    from clew.train.toy import build_toy_training

    told = build_toy_training(tmp_path, 50).run()
    rewards = [row["reward"] for row in read_log(tmp_path / "log.jsonl") if "reward" in row]
    assert sum(rewards[:3]) / 3 < 0.2
    assert sum(rewards[-5:]) / 5 > 0.8
    assert told["best"] > 0.9  # on boxes it never trained on
