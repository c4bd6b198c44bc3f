"""A graph whose rows are on shards: the front of PageRank in rounds (`cluster.walk`)."""

from collections.abc import Sequence
from itertools import count
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.cluster.walk import (
    NO_MASS,
    WALK_ERROR,
    Mass,
    PushedMass,
    WalkRows,
    WalkStep,
    exchange,
    split_graph,
)
from clew.errors import StoreError
from clew.graph.csr import Csr, Doubles, Ints
from clew.graph.pagerank import (
    EDGE_BUDGET,
    PageRankResult,
    ScoreEstimate,
    Seeds,
    normalize_seeds,
    take_top_k,
)
from clew.graph.pagerank_push import DRAINED_SHARE, LEVEL_FACTOR, MIN_MASS

Question = Literal[
    "cosines",
    "nearest",
    "take_vectors",
    "postings",
    "find_names",
    "add_graph",
    "begin_walk",
    "walk_on",
    "end_walk",
]
"""What shards are asked: the methods of `Shard`."""
_MAX_TRIES = 4  # of a walk whose shards are lost
_EXACT_SHARE = 4  # a graph with fewer edges than the budget over this is ranked exactly
_walk_numbers = count(1)


class Shards(Protocol):
    """All shards of a generation, wherever they are."""

    def __len__(self) -> int:
        """How many there are."""

    def ask(self, what: Question, given: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Ask each shard, with arguments of its own; those without any are not asked."""


class WalkLost(Exception):  # noqa: N818  (reads as what happened)
    """A shard was started again, and has forgotten the walk."""


class ShardedGraph:
    """A graph whose rows are on shards, ranked in rounds."""

    def __init__(self, name: str, links: Csr, owner: NDArray[np.int16], shards: Shards) -> None:
        self._name, self._owner, self._shards = name, owner, shards
        self._rows: list[WalkRows] = split_graph(links, owner, len(shards))
        self._nodes = [np.flatnonzero(owner == number) for number in range(len(shards))]
        self._edges = len(links.columns)
        self._strength = float(links.weights.sum(dtype=np.float64))
        self.rounds = 0
        """Of the last walk."""

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._owner)

    def send(self) -> None:
        """Give every shard its rows."""
        self._shards.ask("add_graph", [(self._name, rows) for rows in self._rows])

    def rank(
        self, seeds: Seeds, k: int, *, damping: float, budget: int | None = EDGE_BUDGET
    ) -> PageRankResult:
        """Return the `k` nodes of highest score, by ~`budget` edges.

        Without a budget, and over a small graph, all scores together are within `WALK_ERROR`.
        """
        given = normalize_seeds(len(self), seeds)
        if budget is not None and _EXACT_SHARE * self._edges <= budget:
            budget = None
        for _ in range(_MAX_TRIES):
            walk = _Walk(next(_walk_numbers), self._shards, damping)
            try:
                found = self._walk(walk, given, k, budget)
            except WalkLost:
                self.send()
                continue
            self.rounds = walk.rounds
            return found
        raise StoreError("the shards were lost again and again while they were asked; try again")

    def _walk(
        self, walk: "_Walk", seeds: tuple[Ints, Doubles], k: int, budget: int | None
    ) -> PageRankResult:
        walk.begin(self._name, self._split(*seeds))
        if budget is None:
            walk.push_until(WALK_ERROR, WALK_ERROR / (4 * max(1, self._edges)))
        else:
            walk.push_along(budget, float(seeds[1].max()))
        rest, scale = walk.settle()
        # What still waits is spread widely: most of it ends where any long walk does.
        spread = rest / self._strength if budget is not None and self._strength else 0.0
        parts = walk.tell("find_best", [(scale, spread, k)] * len(self._shards))
        walk.end()
        reached = [own[part[0]] for own, part in zip(self._nodes, parts, strict=True)]
        scores = np.concatenate([part[1] for part in parts])
        bounds = np.full(len(scores), rest)
        return take_top_k(
            ScoreEstimate(np.concatenate(reached), scores, bounds, rest), k, len(self)
        )

    def _split(self, nodes: Ints, masses: Doubles) -> list[Mass]:
        """The seeds of each shard, by place."""
        owner = self._owner[nodes]
        found = []
        for number, own in enumerate(self._nodes):
            mine = owner == number
            found.append((np.searchsorted(own, nodes[mine]), masses[mine]))
        return found


class _Walk:
    """One walk, seen from the front: what is on its way between shards, and what was used."""

    def __init__(self, number: int, shards: Shards, damping: float) -> None:
        self._number, self._shards, self._damping = number, shards, damping
        self._incoming: list[Mass] = []
        self._left, self._ended = 1.0, 0.0
        self.rounds = 0

    def begin(self, name: str, seeds: list[Mass]) -> None:
        """Begin at the seeds."""
        self._incoming = seeds
        begun = self._shards.ask("begin_walk", [(name, self._number)] * len(self._shards))
        if not all(begun):
            raise WalkLost

    def tell(self, what: WalkStep, given: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Let every shard do a step."""
        found = self._shards.ask("walk_on", [(self._number, what, one) for one in given])
        if any(one is None for one in found):
            raise WalkLost
        return found

    def end(self) -> None:
        """Let the shards forget it."""
        self._shards.ask("end_walk", [(self._number,)] * len(self._shards))

    def push_until(self, error: float, least: float) -> None:
        """Push until no more than `error` can change."""
        while self._damping * self._left > error:
            self._exchange(self._push(least))

    def push_along(self, budget: int, level: float) -> None:
        """Push along so many edges, the largest residuals first, as `forward_push` does."""
        used = 0
        while level > MIN_MASS:
            pushed = self._push(level)
            edges = sum(one.edges for one in pushed)
            if used + edges > budget:
                self._exchange(self._push_part(budget - used))
                return
            used += edges
            self._exchange(pushed)
            if edges <= DRAINED_SHARE * budget:
                peaks = self.tell("find_peak", [(one,) for one in self._take_incoming()])
                level = min(level, max(peaks)) / LEVEL_FACTOR

    def settle(self) -> tuple[float, float]:
        """What still waits, and the factor from settled mass to scores."""
        sums = self.tell("sum_waiting", [(one,) for one in self._take_incoming()])
        remaining = 1 - self._ended - self._damping * sum(stuck for _, stuck in sums)
        rest = self._damping * sum(waiting for waiting, _ in sums) / remaining
        return rest, (1 - self._damping) / remaining

    def _push(self, least: float) -> list[PushedMass]:
        self.rounds += 1
        given = [(self._damping, one, least) for one in self._take_incoming()]
        return self.tell("push", given)

    def _push_part(self, budget: int) -> list[PushedMass]:
        """Push the last round again, only the largest residuals that fit."""
        parts = self.tell("list_pushed", [()] * len(self._shards))
        density = np.concatenate([part[0] for part in parts])
        edges = np.concatenate([part[1] for part in parts])
        order = np.argsort(-density, kind="stable")
        fit = int(np.count_nonzero(np.cumsum(edges[order]) <= budget))
        least = float(density[order[fit - 1]]) if fit else np.inf
        return self.tell("push_again", [(self._damping, least)] * len(self._shards))

    def _exchange(self, pushed: list[PushedMass]) -> None:
        self._incoming = exchange(pushed)
        self._ended += sum(one.ended for one in pushed)
        sent = sum(float(masses.sum()) for _, masses in self._incoming)
        self._left = sent + sum(one.left for one in pushed)

    def _take_incoming(self) -> list[Mass]:
        """What is on its way, once."""
        taken, self._incoming = self._incoming, [NO_MASS] * len(self._shards)
        return taken
