"""Aligns a question's words with the steps of a relation path, in the order they are read.

From its name outwards a question says its steps in order: "the gender of X's mother" has mother
before gender, and so has "X's mother's gender". Which words come first depends on the sentence, so
a few orders are tried and the best counts.
"""

from dataclasses import dataclass

import numpy as np

from clew.graph.csr import Floats, Ints
from clew.retrieve.question import QuestionShape

_AUXILIARIES = frozenset("is are was were be been has have had do does did".split())
_QUESTION_STARTS = frozenset("who whom whose which what when where".split())
_MAX_WORDS = 24  # words that are aligned, those nearest to the name


@dataclass(frozen=True, slots=True)
class Alignment:
    """How well each path fits: vote mass left unexplained, and steps that no word mentions."""

    unexplained: Floats
    unspoken: Floats


def reading_orders(shape: QuestionShape) -> list[Ints]:
    """Return orders of the words (as indices) from the name outwards, without duplicates."""
    places = np.array(shape.positions, np.int64)
    words = np.arange(len(places))
    name = shape.name_position
    if name < 0:
        orders = [words, words[::-1]]
    else:
        before, after = words[places < name][::-1], words[places > name]
        split = _clause_start(shape, name)
        inner, outer = after[places[after] < split], after[places[after] >= split]
        orders = [
            np.concatenate([inner, before, outer]),
            np.concatenate([before, inner, outer]),
        ]
        if len(inner) > 1 and any(key in _AUXILIARIES for key in shape.keys[:name]):
            # "when did the films of X's actors appear": the verb at the end is said of the whole.
            orders.append(np.concatenate([inner[:-1], before, inner[-1:], outer]))
    distinct = {tuple(order[:_MAX_WORDS].tolist()): None for order in orders}
    return [np.array(order, np.int64) for order in distinct]


def _clause_start(shape: QuestionShape, name: int) -> int:
    """Return the position after the name at which a new clause starts."""
    for at in range(name + 1, len(shape.keys)):
        if shape.keys[at] in _AUXILIARIES or shape.keys[at] in _QUESTION_STARTS:
            return at
    return len(shape.keys)


def align_paths(shape: QuestionShape, votes: Floats, need: Floats, steps: Ints) -> Alignment:
    """Align every path with the best of the reading orders.

    `votes` are words × step kinds, with a last column of zeros; `steps` holds for each path its
    columns, -1 for padding; `need` is how much of each word must be explained.
    """
    best: Alignment | None = None
    for order in reading_orders(shape):
        found = _align_in_order(votes[order], need[order], steps)
        if best is None:
            best = found
            continue
        better = found.unexplained + found.unspoken < best.unexplained + best.unspoken
        best = Alignment(
            np.where(better, found.unexplained, best.unexplained),
            np.where(better, found.unspoken, best.unspoken),
        )
    assert best is not None, "there is always an order"
    return best


def _align_in_order(votes: Floats, need: Floats, steps: Ints) -> Alignment:
    """Assign each word to a step, or to none, so that the steps are in order (Viterbi).

    State `j` of a path has reached its `j`-th step. A word that moves on to a step speaks it; one
    that stays only explains itself.
    """
    paths, width = steps.shape
    left = np.zeros((paths, width + 1), np.float32)
    silent = np.tile(np.arange(width + 1, dtype=np.float32), (paths, 1))
    for word in range(len(votes)):
        said = votes[word][steps]
        unsaid = np.maximum(need[word] - said, 0)
        stay_left = left + need[word]
        stay_left[:, 1:] = left[:, 1:] + unsaid
        # Moving on to step j from any earlier state: the steps skipped stay silent.
        on_left = left[:, :-1] + unsaid
        on_silent = silent[:, :-1] + 1 - said
        better = on_left + on_silent < stay_left[:, 1:] + silent[:, 1:]
        new_left, new_silent = stay_left, silent.copy()
        new_left[:, 1:] = np.where(better, on_left, stay_left[:, 1:])
        new_silent[:, 1:] = np.where(better, on_silent, silent[:, 1:])
        left, silent = _skip_steps(new_left, new_silent)
    end = np.arange(paths), (steps >= 0).sum(axis=1)
    return Alignment(left[end], silent[end])


def _skip_steps(left: Floats, silent: Floats) -> tuple[Floats, Floats]:
    """Let every state be reached from the one before at the cost of a silent step."""
    for state in range(1, left.shape[1]):
        skipped = silent[:, state - 1] + 1
        better = left[:, state - 1] + skipped < left[:, state] + silent[:, state]
        left[:, state] = np.where(better, left[:, state - 1], left[:, state])
        silent[:, state] = np.where(better, skipped, silent[:, state])
    return left, silent
