"""Reward functions of an episode and the gold answers (Graph-R1, eq. 13-15)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clew.evaluate.metrics.answers import exact_match, f1
from clew.train.core.environment import Episode

Reward = Callable[[Episode, Sequence[str]], float]
"""A custom reward is such a function, passed to `train` in its `Job`."""
Score = Callable[[str, Sequence[str]], float]


def format_reward(episode: Episode, golds: Sequence[str] = (), *, each: float = 0.5) -> float:
    """Return `each` per well-formed step, at most 1 (eq. 13)."""
    return min(1.0, each * sum(move.well_formed for move in episode.moves))


def answer_reward(episode: Episode, golds: Sequence[str], *, score: Score = f1) -> float:
    """Return the token F1 of the final answer with the best-matching gold answer (eq. 14)."""
    return score(episode.answer, golds) if episode.answer else 0.0


def exact_answer_reward(episode: Episode, golds: Sequence[str]) -> float:
    """Return 1 if the final answer exactly matches a gold answer, else 0."""
    return answer_reward(episode, golds, score=exact_match)


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
