"""Evidence recall of each arm's retriever on the training questions, per hop. No GPU needed.

    PYTHONPATH=src python3 -m bench.gpu.reach --dir carry

Every hop of a training question is queried as "RELATION of NAME", as in its demonstration. A hop
is reached when the reply contains all words of the tail. Held-out questions are not used.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from bench.gpu.arms import HELD_OUT, SPLIT_SEED, build_retriever
from clew.evaluate.metrics.answers import normalise_answer
from clew.train.questions import load_tasks, split_tasks


def main() -> None:
    """Print one row per arm."""
    ask = argparse.ArgumentParser()
    ask.add_argument("--dir", type=Path, required=True)
    ask.add_argument("--arms", nargs="+", default=["chunks", "graph", "clew"])
    ask.add_argument("--limit", type=int, default=800, help="training questions")
    given = ask.parse_args()
    tasks, _ = split_tasks(load_tasks(given.dir / "questions.jsonl"), HELD_OUT, SPLIT_SEED)
    tasks = tasks[: given.limit]
    queries = [f"{relation} of {head}" for task in tasks for head, relation, _ in task.evidence]
    rows: dict[str, Any] = {}
    for arm in given.arms:
        replies = iter(build_retriever(arm, given.dir, "cpu")(queries))
        shown = [[(tail, next(replies)) for _, _, tail in task.evidence] for task in tasks]
        rows[arm] = {
            "hops": _share([_contains_words(*hop) for task in shown for hop in task]),
            "questions": _share([all(_contains_words(*hop) for hop in task) for task in shown]),
            "letters": round(sum(len(text) for task in shown for _, text in task) / len(queries)),
        }
        print(f"{arm:8} {rows[arm]}", flush=True)
    print(json.dumps({"queries": len(queries), "arms": rows}))


def _contains_words(tail: str, reply: str) -> bool:
    return set(normalise_answer(tail).split()) <= set(normalise_answer(reply).split())


def _share(values: list[bool]) -> float:
    return round(sum(values) / max(len(values), 1), 4)


if __name__ == "__main__":
    main()
