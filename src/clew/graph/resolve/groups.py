"""Greedy grouping of candidate pairs into entities, best first, under constraints."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Why two names are one entity, the most certain reason first.
USER, SPELLING, STATED_SAME, ALIAS, SIMILARITY, MODEL = range(6)
MERGE_REASONS = (
    "joined by hand",
    "the same name spelt another way",
    "a document says they are the same",
    "the one's stated other name",
    "alike in words and meaning, and met in the same company",
    "the model said they are the same",
)


@dataclass(frozen=True, slots=True)
class CandidatePairs:
    """Columns: two entities, the reason they may be one, and the certainty (0 to 1)."""

    left: Ints
    right: Ints
    reason: Ints
    score: NDArray[np.float32]

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.left)


def make_pairs(
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    reason: int,
    score: float | NDArray[np.float32] = 1.0,
) -> CandidatePairs:
    """Build pairs that share one reason."""
    scores = np.broadcast_to(np.asarray(score, np.float32), (len(left),))
    return CandidatePairs(
        left.astype(np.int64),
        right.astype(np.int64),
        np.full(len(left), reason, np.int64),
        scores,
    )


def concatenate_pairs(many: list[CandidatePairs]) -> CandidatePairs:
    """Concatenate pairs."""
    return CandidatePairs(
        np.concatenate([p.left for p in many]),
        np.concatenate([p.right for p in many]),
        np.concatenate([p.reason for p in many]),
        np.concatenate([p.score for p in many]),
    )


@dataclass(frozen=True, slots=True)
class EntityGroups:
    """For each entity the one it is merged into (itself when not), and the pairs used."""

    into: Ints
    pair_index: Ints
    """Indices of the pairs that merged groups."""


@dataclass(frozen=True, slots=True)
class MergeConstraints:
    """Constraints on merging: classes, user-given nodes, and cannot-link pairs."""

    classes: Ints
    given: NDArray[np.bool_]
    cannot_link: set[tuple[int, int]]


def group_pairs(
    found: CandidatePairs, order_of: Ints, support: Ints, bars: MergeConstraints
) -> EntityGroups:
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
        if (
            a == b
            or _has_class_conflict(kind[a], kind[b])
            or (given[a] and given[b] and not by_hand)
        ):
            continue
        mine, theirs = members.get(a, [a]), members.get(b, [b])
        if bars.cannot_link and not by_hand and _is_cannot_link(mine, theirs, bars.cannot_link):
            continue
        keep, move = (a, b) if (-support[a], order_of[a]) <= (-support[b], order_of[b]) else (b, a)
        by.append(at)
        head[members.pop(move, [move])] = keep
        members[keep] = [*mine, *theirs]
        kind[keep], given[keep] = max(kind[keep], kind[move]), given[keep] or given[move]
    return EntityGroups(head, np.array(by, np.int64))


def _is_cannot_link(mine: list[int], theirs: list[int], apart: set[tuple[int, int]]) -> bool:
    return any((min(x, y), max(x, y)) in apart for x in mine for y in theirs)


def _has_class_conflict(one: int, other: int) -> bool:
    return one > 0 and other > 0 and one != other
