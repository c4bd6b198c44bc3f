"""From pairs that may be one to groups that are: the surest first, and never against a bar."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Why two names are one, the surest first.
USER, SPELLING, SAID, ALIAS, LIKENESS, MODEL = range(6)
REASONS = (
    "joined by hand",
    "the same name spelt another way",
    "a document says they are the same",
    "the one's stated other name",
    "alike in words and meaning, and met in the same company",
    "the model said they are the same",
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Columns: two entities, why they may be one, and how surely (0 to 1)."""

    left: Ints
    right: Ints
    reason: Ints
    score: NDArray[np.float32]

    def __len__(self) -> int:
        """How many pairs."""
        return len(self.left)


def pairs(
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    reason: int,
    score: float | NDArray[np.float32] = 1.0,
) -> Pairs:
    """Pairs of one reason."""
    scores = np.broadcast_to(np.asarray(score, np.float32), (len(left),))
    return Pairs(
        left.astype(np.int64),
        right.astype(np.int64),
        np.full(len(left), reason, np.int64),
        scores,
    )


def joined(many: list[Pairs]) -> Pairs:
    """All pairs together."""
    return Pairs(
        np.concatenate([p.left for p in many]),
        np.concatenate([p.right for p in many]),
        np.concatenate([p.reason for p in many]),
        np.concatenate([p.score for p in many]),
    )


@dataclass(frozen=True, slots=True)
class Groups:
    """For each entity whom it is merged into (itself when not), and by which pairs."""

    into: Ints
    by: Ints
    """The pairs that tied groups together, by index."""


@dataclass(frozen=True, slots=True)
class Bars:
    """What keeps entities apart: classes, being given as nodes, and pairs that were ruled out."""

    classes: Ints
    given: NDArray[np.bool_]
    apart: set[tuple[int, int]]


def grouped(found: Pairs, order_of: Ints, support: Ints, bars: Bars) -> Groups:
    """Tie pairs together, the surest first, unless something bars it.

    `order_of` ranks entities by what they are, not by when they came, so that ties fall the same
    way whatever the order of adding; the best supported member stands for its group.
    """
    count = len(support)
    members: dict[int, list[int]] = {}
    head = np.arange(count)
    kind, given = bars.classes.copy(), bars.given.copy()
    by: list[int] = []
    low = np.minimum(order_of[found.left], order_of[found.right])
    high = np.maximum(order_of[found.left], order_of[found.right])
    for at in np.lexsort((high, low, -found.score, found.reason)).tolist():
        a, b = int(head[found.left[at]]), int(head[found.right[at]])
        by_hand = found.reason[at] == USER
        if a == b or _clash(kind[a], kind[b]) or (given[a] and given[b] and not by_hand):
            continue
        mine, theirs = members.get(a, [a]), members.get(b, [b])
        if bars.apart and not by_hand and _barred(mine, theirs, bars.apart):
            continue
        keep, move = (a, b) if (-support[a], order_of[a]) <= (-support[b], order_of[b]) else (b, a)
        by.append(at)
        head[members.pop(move, [move])] = keep
        members[keep] = [*mine, *theirs]
        kind[keep], given[keep] = max(kind[keep], kind[move]), given[keep] or given[move]
    return Groups(head, np.array(by, np.int64))


def _barred(mine: list[int], theirs: list[int], apart: set[tuple[int, int]]) -> bool:
    return any((min(x, y), max(x, y)) in apart for x in mine for y in theirs)


def _clash(one: int, other: int) -> bool:
    return one > 0 and other > 0 and one != other
