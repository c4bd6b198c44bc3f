"""A graph whose rows are on shards: the front of PageRank in rounds (`cluster.walk`)."""

from collections.abc import Sequence
from itertools import count
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.cluster.walk import (
    WALK_ERROR,
    Mass,
    Places,
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
    "compare",
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
# Seeds that reach fewer edges than the budget over this use all of them until nothing waits.
_REACH_SHARE = 128
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
        self._links = links
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
            walk = _Walk(self._name, self._shards, damping, self._split(*given))
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
        if budget is None or self._reaches_few(seeds[0], budget // _REACH_SHARE):
            walk.push_until(WALK_ERROR, WALK_ERROR / (4 * max(1, self._edges)))
        else:
            walk.push_along(budget, float(seeds[1].max()))
        rest, scale = walk.settle([rows.strengths for rows in self._rows])
        # What still waits is spread widely: most of it ends where any long walk does.
        spread = rest / self._strength if budget is not None and self._strength else 0.0
        parts = walk.end(scale, spread, k)
        reached = [own[part[0]] for own, part in zip(self._nodes, parts, strict=True)]
        scores = np.concatenate([part[1] for part in parts])
        bounds = np.full(len(scores), rest)
        return take_top_k(
            ScoreEstimate(np.concatenate(reached), scores, bounds, rest), k, len(self)
        )

    def _reaches_few(self, nodes: Ints, most: int) -> bool:
        """Whether no more than so many edges can be reached from these nodes."""
        visited, edges = nodes, 0
        while len(nodes):
            _, edge = self._links.edges_of(nodes)
            edges += len(edge)
            if edges > most:
                return False
            nodes = np.setdiff1d(self._links.columns[edge].astype(np.int64), visited)
            visited = np.union1d(visited, nodes)
        return True

    def _split(self, nodes: Ints, masses: Doubles) -> list[Mass]:
        """The seeds of each shard, by place."""
        owner = self._owner[nodes]
        found = []
        for number, own in enumerate(self._nodes):
            mine = owner == number
            found.append((np.searchsorted(own, nodes[mine]).astype(np.int32), masses[mine]))
        return found


class _Walk:
    """One walk, seen from the front: what is on its way between shards, and what was used.

    Every shard is called once in a round. What decides about the next round, it tells before it
    knows what others send to it; a round that was begun with too low a level is done again.
    """

    def __init__(self, graph: str, shards: Shards, damping: float, seeds: list[Mass]) -> None:
        self._graph, self._shards, self._damping = graph, shards, damping
        self._number = next(_walk_numbers)
        self._incoming = seeds
        self._left, self._stuck, self._ended, self._peak = 1.0, 0.0, 0.0, 0.0
        self.rounds = 0
        """Times that all shards were called."""

    def push_until(self, error: float, least: float) -> None:
        """Push until no more than `error` can change."""
        self._exchange(self._push(least))
        while self._damping * self._left > error:
            self._exchange(self._push(least))

    def push_along(self, budget: int, level: float) -> None:
        """Push along so many edges, the largest residuals first, as `forward_push` does."""
        left, before, drained = budget, level, False
        while level > MIN_MASS and self._damping * self._left > WALK_ERROR:
            pushed = self._push(level, left)
            peak = max(one.peak for one in pushed)
            if drained and (known := _lower_level(before, peak)) != level:
                level = known  # what others sent made the peak
                pushed = self._tell("push_again", [(self._damping, level, self._room(left))])
            edges = sum(one.edges for one in pushed)
            if edges > left:
                self._exchange(self._push_part(pushed, left))
                return
            left -= edges
            self._exchange(pushed)
            drained, before = edges <= DRAINED_SHARE * budget, level
            if drained:
                level = _lower_level(level, self._peak)
                if any(len(places) for places, _ in self._incoming):
                    level = max(level, 2 * MIN_MASS)  # mass on its way is looked at

    def settle(self, strengths: Sequence[Doubles]) -> tuple[float, float]:
        """What still waits, and the factor from settled mass to scores."""
        stuck = self._stuck + sum(
            float(masses[own[places] <= 0].sum())
            for own, (places, masses) in zip(strengths, self._incoming, strict=True)
        )
        remaining = 1 - self._ended - self._damping * stuck
        rest = self._damping * (self._left - stuck) / remaining
        return rest, (1 - self._damping) / remaining

    def end(self, scale: float, spread: float, k: int) -> list[tuple[Places, Doubles]]:
        """The best places of every shard, which forgets the walk."""
        given = [(self._number, one, scale, spread, k) for one in self._incoming]
        return self._ask("end_walk", given)

    def _push(self, least: float, left: float = np.inf) -> list[PushedMass]:
        given = [(self._damping, one, least, self._room(left)) for one in self._incoming]
        if self.rounds:
            return self._tell("push", given)
        return self._ask("begin_walk", [(self._graph, self._number, one) for one in given])

    def _room(self, left: float) -> float:
        """The edges that a shard may use without more being used than are left."""
        return left / (2 * len(self._shards))

    def _push_part(self, pushed: list[PushedMass], left: int) -> list[PushedMass]:
        """Push the last round again, only the largest residuals that fit."""
        parts = [one.pushed for one in pushed if one.pushed is not None]
        if len(parts) < len(pushed):  # one shard had few of them
            parts = self._tell("list_pushed", [()])
        density = np.concatenate([part[0] for part in parts])
        edges = np.concatenate([part[1] for part in parts])
        order = np.argsort(-density, kind="stable")
        fit = int(np.count_nonzero(np.cumsum(edges[order]) <= left))
        least = float(density[order[fit - 1]]) if fit else np.inf
        return self._tell("push_part", [(self._damping, least)])

    def _tell(self, what: WalkStep, given: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Let every shard do a step, with arguments of its own or all with the same."""
        each = given if len(given) == len(self._shards) else [*given] * len(self._shards)
        return self._ask("walk_on", [(self._number, what, one) for one in each])

    def _ask(self, what: Question, given: Sequence[tuple[Any, ...]]) -> list[Any]:
        self.rounds += 1
        found = self._shards.ask(what, given)
        if any(one is None for one in found):
            raise WalkLost
        return found

    def _exchange(self, pushed: list[PushedMass]) -> None:
        self._incoming = exchange(pushed)
        self._ended += sum(one.ended for one in pushed)
        self._stuck = sum(one.stuck for one in pushed)
        self._peak = max(one.next_peak for one in pushed)
        sent = sum(float(masses.sum()) for _, masses in self._incoming)
        self._left = sent + sum(one.left for one in pushed)


def _lower_level(level: float, peak: float) -> float:
    return min(level, peak) / LEVEL_FACTOR
