"""PageRank over shards: each pushes the mass at its own nodes, and what leaves it is exchanged.

In a round every shard is called once: it takes in what others sent, pushes the mass at its nodes
along their edges, and returns what is for nodes elsewhere, added up. The rounds are those of
one machine (`graph.pagerank_push`): large residuals first, until so many edges were used; or, over
a graph that is small enough, until all scores together are within the stated error.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Doubles, Floats, Ints, expand_ranges

WALK_ERROR = 1e-6
"""By which the scores of a walk over shards may differ from the exact ones, all together."""
_DENSE_SHARE = 8  # with more edges than an eighth of the nodes, sums are made for all nodes
WalkStep = Literal["push", "list_pushed", "push_again", "push_part"]
"""What a shard is told during a walk: the methods of `ShardWalk`."""
Places = NDArray[np.int32]
Mass = tuple[Places, Doubles]
"""Places within a shard, and the mass for each."""
NO_MASS: Mass = (np.zeros(0, np.int32), np.zeros(0))
PushedNodes = tuple[Doubles, Places]
"""Of nodes that were pushed, the mass per edge and the number of edges."""


class WalkRows(NamedTuple):
    """The edges that leave the nodes of one shard; targets by their shard and place there."""

    number: int
    starts: Ints
    owners: NDArray[np.int16]
    places: NDArray[np.int32]
    weights: Floats
    strengths: Doubles
    """Sum of the weights of each node's edges."""
    sizes: tuple[int, ...]
    """Number of nodes of each shard."""


class PushedMass(NamedTuple):
    """What a round has moved: mass for other shards, and what is left here."""

    sent: dict[int, Mass]
    left: float
    """Mass that waits at nodes of this shard."""
    stuck: float
    """What of it waits at nodes that no edge leaves."""
    ended: float
    """Mass that reached nodes that no edge leaves, and begins again at the seeds."""
    edges: int
    """Edges along which it was pushed."""
    peak: float
    """The most mass per edge at a node, before the push."""
    next_peak: float
    """The most after it, but for what others send."""
    pushed: PushedNodes | None
    """What was pushed, where it may have been too much."""


def split_graph(links: Csr, owner: NDArray[np.int16], count: int) -> list[WalkRows]:
    """The rows of each shard; `owner` is the shard of each node."""
    place = np.zeros(len(owner), np.int32)
    members = [np.flatnonzero(owner == number) for number in range(count)]
    for nodes in members:
        place[nodes] = np.arange(len(nodes))
    sizes = tuple(len(nodes) for nodes in members)
    found = []
    for number, nodes in enumerate(members):
        own = links.select(nodes)
        sums: Doubles = np.bincount(own.row_numbers(), own.weights, minlength=len(nodes)).astype(
            np.float64
        )
        targets = (owner[own.columns], place[own.columns])
        found.append(WalkRows(number, own.starts, *targets, own.weights, sums, sizes))
    return found


class ShardWalk:
    """The state of one walk at the nodes of one shard."""

    def __init__(self, rows: WalkRows) -> None:
        self._rows = rows
        self._passed = np.zeros(rows.sizes[rows.number])
        self._waiting = np.zeros_like(self._passed)
        self._degrees = np.diff(rows.starts)
        self._per_edge = np.maximum(self._degrees, 1)
        self._ends = np.flatnonzero(rows.strengths <= 0)
        self._peak = 0.0
        self._chosen = np.zeros(0, np.int64)
        self._before = self._passed, self._waiting

    def push(self, damping: float, incoming: Mass, least: float, room: float) -> PushedMass:
        """Take in mass, and push that of all nodes that have more than `least` per edge.

        With more than `room` edges the nodes are listed, as some of them may be too many.
        """
        self._take_in(incoming)
        self._before = self._passed.copy(), self._waiting.copy()
        self._peak = self._find_peak()
        return self._push_above(damping, least, room)

    def push_again(self, damping: float, least: float, room: float) -> PushedMass:
        """Undo the last push, and push what has more than another `least` per edge."""
        self._undo()
        return self._push_above(damping, least, room)

    def push_part(self, damping: float, least: float) -> PushedMass:
        """Undo the last push, and of its nodes push those with at least so much per edge."""
        density, _ = self.list_pushed()
        self._undo()
        self._chosen = self._chosen[density >= least]
        return self._push_chosen(damping, np.inf)

    def list_pushed(self) -> PushedNodes:
        """The nodes that were pushed last."""
        edges = self._degrees[self._chosen]
        return self._before[1][self._chosen] / np.maximum(edges, 1), edges.astype(np.int32)

    def find_best(
        self, incoming: Mass, scale: float, spread: float, k: int
    ) -> tuple[Places, Doubles]:
        """Take in mass; the `k` places of highest score, what still waits spread by strength."""
        self._take_in(incoming)
        scores = scale * (self._passed + self._waiting) + spread * self._rows.strengths
        places = np.arange(len(scores), dtype=np.int32)
        if k < len(scores):
            # Equal ones are all returned: which of them count is decided over all shards.
            places = np.flatnonzero(scores >= np.partition(scores, -k)[-k]).astype(np.int32)
        places = places[scores[places] > 0]
        return places, scores[places]

    def _undo(self) -> None:
        self._passed, self._waiting = self._before[0].copy(), self._before[1].copy()

    def _find_peak(self) -> float:
        return float((self._waiting / self._per_edge).max(initial=0.0))

    def _push_above(self, damping: float, least: float, room: float) -> PushedMass:
        self._chosen = np.flatnonzero(self._waiting > least * self._per_edge)
        return self._push_chosen(damping, room)

    def _push_chosen(self, damping: float, room: float) -> PushedMass:
        rows, chosen = self._rows, self._chosen
        mass = damping * self._waiting[chosen]
        self._passed[chosen] += self._waiting[chosen]
        self._waiting[chosen] = 0
        strengths = rows.strengths[chosen]
        ends = strengths <= 0
        ended = float(mass[ends].sum())
        chosen, per_weight = chosen[~ends], mass[~ends] / strengths[~ends]
        which, edge = expand_ranges(rows.starts[chosen], rows.starts[chosen + 1])
        moved = per_weight[which] * rows.weights[edge]
        sent = self._send(rows.owners[edge], rows.places[edge], moved)
        self._take_in(sent.pop(rows.number, NO_MASS))
        return PushedMass(
            sent=sent,
            left=float(self._waiting.sum()),
            stuck=float(self._waiting[self._ends].sum()),
            ended=ended,
            edges=len(edge),
            peak=self._peak,
            next_peak=self._find_peak(),
            pushed=self.list_pushed() if len(edge) > room else None,
        )

    def _take_in(self, incoming: Mass) -> None:
        places, masses = incoming
        self._waiting += np.bincount(places, masses, minlength=len(self._waiting))

    def _send(
        self, owners: NDArray[np.int16], places: NDArray[np.int32], moved: Doubles
    ) -> dict[int, Mass]:
        """What goes to each shard, added up by node."""
        sent = {}
        for number, size in enumerate(self._rows.sizes):
            mine = slice(None) if len(self._rows.sizes) == 1 else np.flatnonzero(owners == number)
            found = _add_up(places[mine], moved[mine], size)
            if len(found[0]):
                sent[number] = found
        return sent


def _add_up(places: NDArray[np.int32], moved: Doubles, size: int) -> Mass:
    if len(places) * _DENSE_SHARE > size:
        sums: Doubles = np.bincount(places, moved, minlength=size).astype(np.float64)
        found = np.flatnonzero(sums).astype(np.int32)
        return found, sums[found]
    distinct, at = np.unique(places, return_inverse=True)
    sums = np.bincount(at, moved, minlength=len(distinct)).astype(np.float64)
    return distinct.astype(np.int32), sums


def exchange(pushed: Sequence[PushedMass]) -> list[Mass]:
    """What each shard takes in next: all that the others sent to it."""
    found: list[Mass] = []
    for number in range(len(pushed)):
        parts = [one.sent[number] for one in pushed if number in one.sent]
        places = [places for places, _ in parts] or [NO_MASS[0]]
        masses = [masses for _, masses in parts] or [NO_MASS[1]]
        found.append((np.concatenate(places), np.concatenate(masses)))
    return found
