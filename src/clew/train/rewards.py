"""Rewards of an episode (Graph-R1, eq. 13-15), and scores of a policy on held-out questions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clew.evaluate.metrics.answers import exact_match, f1
from clew.train.core.environment import Episode
from clew.train.core.rollout import Rollout
from clew.train.core.trajectory import Trajectory
from clew.train.questions import Task

Reward = Callable[[Episode, Sequence[str]], float]
"""A custom reward is such a function, passed to `train` in its `Job`."""
Score = Callable[[str, Sequence[str]], float]


def format_reward(episode: Episode, golds: Sequence[str] = (), *, each: float = 0.5) -> float:
    """Return `each` per well-formed step, at most 1 (eq. 13)."""
    return min(1.0, each * sum(move.well_formed for move in episode.moves))


def answer_reward(episode: Episode, golds: Sequence[str], *, score: Score = f1) -> float:
    """Return the token F1 of the final answer with the best-matching gold answer (eq. 14)."""
    return score(episode.answer, golds) if episode.answer else 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome reward: −1 + format + [format = 1] · answer (eq. 15)."""

    each: float = 0.5
    """Format reward of one step; 1 for R1, which has one step only."""
    score: Score = f1

    def __call__(self, episode: Episode, golds: Sequence[str]) -> float:
        """Return the reward, between −1 (nothing well-formed) and 1 (well-formed and right)."""
        form = format_reward(episode, each=self.each)
        right = answer_reward(episode, golds, score=self.score) if form == 1.0 else 0.0
        return -1.0 + form + right


def evaluate(
    rollout: Rollout, tasks: Sequence[Task]
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Answer held-out questions greedily; return mean scores and one record per question."""
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
            "formed": all(move.well_formed for move in one.episode.moves),
        }
        for task, one in zip(tasks, played, strict=True)
    ]
    means = {
        "f1": mean(record["f1"] for record in records),
        "em": mean(record["em"] for record in records),
        "answered": mean(bool(record["answer"]) for record in records),
        "formed": mean(record["formed"] for record in records),
        "turns": mean(one.episode.asked for one in played),
        "response": mean(one.generated_count for one in played),
        "seconds": round(timing.seconds, 2),
    }
    return means, records


def mean(values: Any) -> float:
    """Return the mean rounded to four places; 0 for no values."""
    numbers = [float(value) for value in values]
    return round(sum(numbers) / max(len(numbers), 1), 4)


def informative_share(rewards: Sequence[float], group: int) -> float:
    """Share of groups whose rewards differ; the others have zero advantage."""
    groups = [rewards[first : first + group] for first in range(0, len(rewards), group)]
    return mean(len(set(members)) > 1 for members in groups)


def combine_rows(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Combine the log rows of several processes, whose shards are equally large."""
    if len(rows) == 1:
        return rows[0]
    return {name: _combine_values(name, [row[name] for row in rows]) for name in rows[0]}


def _combine_values(name: str, values: Sequence[float]) -> float:
    if name == "longest":
        return max(values)
    total = sum(values)
    return round(total if name.endswith("_per_second") else total / len(values), 6)


def summarize_rollouts(
    played: Sequence[Trajectory], tasks: Sequence[Task], rewards: Sequence[float]
) -> dict[str, float]:
    """Summarise the rewards, scores and lengths of a step's rollouts."""
    return {
        "reward": mean(rewards),
        "f1": mean(
            f1(one.episode.answer, task.answers) if one.episode.answer else 0.0
            for one, task in zip(played, tasks, strict=True)
        ),
        "formed": mean(all(move.well_formed for move in one.episode.moves) for one in played),
        "answered": mean(bool(one.episode.answer) for one in played),
        "turns": mean(one.episode.asked for one in played),
        "response": mean(one.generated_count for one in played),
        "longest": max(len(one) for one in played),
    }
