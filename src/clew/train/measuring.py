"""How well a policy answers: on held-out questions, and in a step's own rollouts."""

from collections.abc import Sequence
from typing import Any

from clew.evaluate.metrics import exact_match, f1
from clew.train.questions import Task
from clew.train.rollout import Rollout
from clew.train.trajectory import Trajectory


def evaluate(
    rollout: Rollout, tasks: Sequence[Task]
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Greedy answers to held-out questions: means, and one record a question."""
    played, timing = rollout([task.question for task in tasks], temperature=0.0)
    records = [
        {
            "id": task.id,
            "question": task.question,
            "gold": list(task.answers),
            "answer": one.episode.answer,
            "f1": f1(one.episode.answer, task.answers) if one.episode.answer else 0.0,
            "em": exact_match(one.episode.answer, task.answers),
            "queries": [move.text for move in one.episode.moves if move.kind == "query"],
            "formed": all(move.formed for move in one.episode.moves),
        }
        for task, one in zip(tasks, played, strict=True)
    ]
    means = {
        "f1": mean(record["f1"] for record in records),
        "em": mean(record["em"] for record in records),
        "answered": mean(bool(record["answer"]) for record in records),
        "formed": mean(record["formed"] for record in records),
        "turns": mean(one.episode.asked for one in played),
        "response": mean(one.written for one in played),
        "seconds": round(timing.seconds, 2),
    }
    return means, records


def mean(values: Any) -> float:
    """The mean, to four places; 0 of nothing."""
    found = [float(value) for value in values]
    return round(sum(found) / max(len(found), 1), 4)


def telling(rewards: Sequence[float], group: int) -> float:
    """The share of groups whose rewards differ; the others teach nothing."""
    groups = [rewards[first : first + group] for first in range(0, len(rewards), group)]
    return mean(len(set(one)) > 1 for one in groups)


def together(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """One row of what several processes tell of their shares, which are equally large."""
    if len(rows) == 1:
        return rows[0]
    return {name: _combined(name, [row[name] for row in rows]) for name in rows[0]}


def _combined(name: str, values: Sequence[float]) -> float:
    if name == "longest":
        return max(values)
    total = sum(values)
    return round(total if name.endswith("_per_second") else total / len(values), 6)


def summary(
    played: Sequence[Trajectory], tasks: Sequence[Task], rewards: Sequence[float]
) -> dict[str, float]:
    """How a step's rollouts fared."""
    return {
        "reward": mean(rewards),
        "f1": mean(
            f1(one.episode.answer, task.answers) if one.episode.answer else 0.0
            for one, task in zip(played, tasks, strict=True)
        ),
        "formed": mean(all(move.formed for move in one.episode.moves) for one in played),
        "answered": mean(bool(one.episode.answer) for one in played),
        "turns": mean(one.episode.asked for one in played),
        "response": mean(one.written for one in played),
        "longest": max(len(one) for one in played),
    }
