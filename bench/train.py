"""The toy training task end to end on this machine: warm start and GRPO, speed and scores.

    pip install -e '.[train]' && python -m bench.train [--steps 50]

The last line is JSON.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from bench.machine import print_result
from clew.errors import ConfigError
from clew.train.learn.policy import require_train_extra


def main() -> None:
    """Train, log progress, and print the JSON result."""
    ask = argparse.ArgumentParser()
    ask.add_argument("--steps", type=int, default=50)
    given = ask.parse_args()
    try:
        require_train_extra()
    except ConfigError as error:
        sys.exit(f"error: {error}")
    from clew.train.run_folder import read_log
    from clew.train.toy import build_toy_training

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        training = build_toy_training(Path(folder), given.steps, _print_row)
        warm = time.perf_counter() - began
        result = training.run()
        rows = [row for row in read_log(Path(folder) / "log.jsonl") if "reward" in row]
    busy = sum(row["generating"] + row["learning"] for row in rows)
    total = busy + sum(row["retrieving"] for row in rows)
    tail = rows[-5:]
    print_result(
        "train",
        {
            "first_reward": rows[0]["reward"],
            "last_reward": round(sum(row["reward"] for row in tail) / len(tail), 4),
            "best_f1": result["best"],
            "steps": result["steps"],
            "warm_start_s": round(warm, 1),
            "grpo_s": result["seconds"],
            "tokens_per_second": round(sum(r["tokens_per_second"] for r in rows) / len(rows)),
            "episodes_per_second": round(sum(r["episodes_per_second"] for r in rows) / len(rows)),
            "share_generating_or_learning": round(busy / max(total, 1e-9), 3),
        },
        {"boxes": 64, "held_out": 16, "episodes_a_step": 192},
    )


def _print_row(line: str) -> None:
    """Print the rows of the table in docs/training.md; `dev_f1` is of held-out boxes."""
    row = json.loads(line) if line.startswith("{") else {}
    if "dev_f1" not in row:
        return
    # A row has the number of steps before its update; validation is after it.
    steps = row["step"] + ("reward" in row)
    reward = f"reward {row['reward']:+.3f}" if "reward" in row else " " * 13
    print(f"after {steps:3d} steps  {reward}  held-out F1 {row['dev_f1']:.3f}", flush=True)


if __name__ == "__main__":
    main()
