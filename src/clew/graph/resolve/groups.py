"""Greedy grouping of candidate pairs into entities, best first, under constraints."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Why two names are one entity, the most certain reason first.
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
    """Columns: two entities, the reason they may be one, and the certainty (0 to 1)."""

    left: Ints
    right: Ints
    reason: Ints
    score: NDArray[np.float32]

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.left)


def pairs(
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    reason: int,
    score: float | NDArray[np.float32] = 1.0,
) -> Pairs:
    """Build pairs that share one reason."""
    scores = np.broadcast_to(np.asarray(score, np.float32), (len(left),))
    return Pairs(
        left.astype(np.int64),
        right.astype(np.int64),
        np.full(len(left), reason, np.int64),
        scores,
    )


def joined(many: list[Pairs]) -> Pairs:
    """Concatenate pairs."""
    return Pairs(
        np.concatenate([p.left for p in many]),
        np.concatenate([p.right for p in many]),
        np.concatenate([p.reason for p in many]),
        np.concatenate([p.score for p in many]),
    )


@dataclass(frozen=True, slots=True)
class Groups:
    """For each entity the one it is merged into (itself when not), and the pairs used."""

    into: Ints
    by: Ints
    """Indices of the pairs that merged groups."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Constraints on merging: classes, user-given nodes, and cannot-link pairs."""

    classes: Ints
    given: NDArray[np.bool_]
    apart: set[tuple[int, int]]


def grouped(found: Pairs, order_of: Ints, support: Ints, bars: Bars) -> Groups:
    """Merge pairs greedily, the most certain first, unless a constraint forbids it.

    `order_of` ranks entities by content, not by insertion, so that ties break the same way in any
    order of adding; the member with the most support represents its group.
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
