"""Two processes on a CPU: one set of weights, one log."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clew.errors import ConfigError
from clew.train.learn.distributed import ProcessGroup
from clew.train.learn.grpo import token_weights
from clew.train.rewards import combine_rows

SCRIPT = """
import json, sys
from pathlib import Path
from clew.train import toy
from clew.train.questions import Task
from clew.train.run import Job, assemble_training
from clew.train.core.settings import TrainSettings

folder = Path(sys.argv[1])
settings = TrainSettings(steps=2, questions=4, group=3, lr=1e-2, lora_rank=4, turns=1, brief=True,
                         length=64, step_tokens=10, reply_tokens=20, dev=4, eval_every=1, cells=512)
short = lambda episode, golds: -sum(len(m.text) + len(m.think) for m in episode.moves) / 10
job = Job(
    str(folder / "tiny"), folder / "run", toy.make_tasks(), settings, toy.make_retriever(), short
)
training = assemble_training(job)
before = {n: float(p.sum()) for n, p in training.policy.trainable_parameters().items()}
training.run()
after = {n: float(p.sum()) for n, p in training.policy.trainable_parameters().items()}
rank = training.processes.rank
(folder / f"rank{rank}.json").write_text(json.dumps([training.processes.size, before, after]))
"""


def test_a_batch_is_shared_out_and_must_be_even() -> None:
    two = ProcessGroup(1, 2)
    assert two.shard([0, 1, 2, 3]) == [1, 3] and not two.is_main
    with pytest.raises(ConfigError, match="multiple"):
        two.check_divisible(5)
    assert ProcessGroup().broadcast("x") == "x" and ProcessGroup().shard([1, 2]) == [1, 2]


@pytest.mark.slow
def test_two_processes_end_with_the_same_weights(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    from clew.train import toy

    toy.make_model(1).save_pretrained(tmp_path / "tiny")
    toy.make_tokenizer().save_pretrained(tmp_path / "tiny")
    (tmp_path / "play.py").write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launch, "--master-port", "29631", str(tmp_path / "play.py"), str(tmp_path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ours, theirs = (json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1))
    assert ours == theirs and ours[0] == 2
    assert ours[1] != ours[2]  # they learned, and alike
    steps = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in steps] == [0, 0, 1]


def test_shares_averaged_are_the_whole() -> None:
    """Two processes with 10 and 1,000 tokens weigh each token as one process with all would."""
    lengths = ([10], [600, 400])
    mean = sum(map(sum, lengths)) / 2
    shares = [token_weights(one, "token", mean) for one in lengths]
    whole = token_weights([10, 600, 400], "token")
    averaged = [each / 2 for share in shares for each in share]
    for one, other in zip(averaged, whole, strict=True):
        assert one == pytest.approx(other)
    assert ProcessGroup().reduce_mean(7) == 7 and ProcessGroup().gather("x") == ["x"]


def test_a_row_of_several_processes_tells_of_them_all() -> None:
    rows = [
        {"reward": 0.5, "longest": 10, "tokens_per_second": 100.0, "generating": 2.0},
        {"reward": 0.0, "longest": 30, "tokens_per_second": 50.0, "generating": 4.0},
    ]
    assert combine_rows(rows) == {
        "reward": 0.25,
        "longest": 30,
        "tokens_per_second": 150.0,
        "generating": 3.0,
    }
    assert combine_rows(rows[:1]) == rows[0]
