"""A view whose vectors, words, names and walks are spread over shards; recipes see no difference.

Comparisons, lookups and the rounds of PageRank are scattered, and what comes back is merged with
the order of one machine. The integer columns of the graph, of which a question reads a few rows,
are mapped by the front as always.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.cluster.sharded_graph import Question, ShardedGraph, Shards
from clew.cluster.shards import Owners, Shard, ShardNames, cut_shard, find_owners
from clew.graph.csr import Csr, Floats, Ints, Mask
from clew.graph.pagerank import RankedGraph
from clew.index.estimates import Estimates
from clew.index.nearest import select_best
from clew.index.view import NameRows, View
from clew.store.bm25 import Bm25Index, FoundPostings
from clew.store.protocol import Snapshot
from clew.text.unicode import hash64
from clew.types import Kind


@dataclass(frozen=True)
class LocalShards:
    """Shards in this process, asked one after another: threads would share its cores."""

    shards: Sequence[Shard]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.shards)

    def ask(self, what: Question, given: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Ask each shard."""
        return [
            None if one is None else getattr(shard, what)(*one)
            for shard, one in zip(self.shards, given, strict=True)
        ]


@dataclass(frozen=True)
class SpreadGeneration:
    """The shards of a generation, and which of them has what."""

    shards: Shards
    owners: Owners
    positions: dict[tuple[Kind, int], Ints]
    """The positions with a vector, by kind and shard."""

    def ask_all(self, what: Question, *given: Any) -> list[Any]:
        """Ask every shard the same."""
        return self.shards.ask(what, [given] * len(self.shards))

    def has(self, kind: Kind) -> bool:
        """Whether the shards hold the vectors of a kind."""
        return (kind, 0) in self.positions


@dataclass(frozen=True)
class ShardedText(Bm25Index):
    """A BM25 index whose postings are on shards; the numbers of words are those of all."""

    spread: SpreadGeneration | None = None

    def look_up(self, terms: Sequence[str]) -> list[FoundPostings]:
        """Positions and counts of the chunks that contain each word, by shard and segment."""
        assert self.spread is not None, "made with its shards"
        parts = self.spread.ask_all("postings", [hash64(term) for term in terms])
        return [
            [posts for part in parts for posts in part[at] if len(posts[0])]
            for at in range(len(terms))
        ]


@dataclass(frozen=True)
class ShardedView(View):
    """A generation of which shards hold the vectors, words, names and graphs to walk on."""

    spread: SpreadGeneration = field(kw_only=True)

    def cosines(self, kind: Kind, vector: Floats, at: NDArray[np.integer] | None = None) -> Floats:
        """Cosine of every element (or those at `at`) with `vector`; -1 where there is no vector."""
        if not self.spread.has(kind):
            return super().cosines(kind, vector, at)
        if at is not None:
            return self.compare(kind, [(vector, at.astype(np.int64))])[0]
        scores = np.full(self.count(kind), -1, np.float32)
        for number, part in enumerate(self.spread.ask_all("cosines", kind, vector)):
            scores[self.spread.positions[kind, number]] = part
        return scores

    def cosines_with(self, kind: Kind, vectors: Sequence[Floats]) -> Sequence[Floats]:
        """For each vector its cosines with every element."""
        return [self.cosines(kind, vector) for vector in vectors]

    def compare(self, kind: Kind, asked: Sequence[tuple[Floats, Ints]]) -> list[Floats]:
        """For each vector its cosines with some elements; every shard is asked once for all."""
        if not self.spread.has(kind):
            return super().compare(kind, asked)
        found = [np.full(len(at), -1, np.float32) for _, at in asked]
        owners = [self.spread.owners[kind][at] for _, at in asked]
        given: list[tuple[Any, ...] | None] = []
        places = []
        for number in range(len(self.spread.shards)):
            mine = [np.flatnonzero(owner == number) for owner in owners]
            which = [one for one, own in enumerate(mine) if len(own)]
            given.append(
                (kind, [(asked[one][0], asked[one][1][mine[one]]) for one in which])
                if which
                else None
            )
            places.append([(one, mine[one]) for one in which])
        for own, parts in zip(places, self.spread.shards.ask("compare", given), strict=True):
            for (one, where), cosines in zip(own, parts or [], strict=True):
                found[one][where] = cosines
        return found

    def estimates(
        self, kind: Kind, vector: Floats, most: int, *, others: bool = True
    ) -> Estimates | None:
        """None where shards hold the vectors: they compare all at once."""
        if self.spread.has(kind):
            return None
        return super().estimates(kind, vector, most, others=others)

    def estimates_with(
        self, kind: Kind, vectors: Sequence[Floats], most: int
    ) -> Sequence[Estimates | None]:
        """The estimates of each vector."""
        return [self.estimates(kind, vector, most) for vector in vectors]

    def nearest(self, kind: Kind, vector: Floats, k: int) -> tuple[Ints, Floats]:
        """The `k` elements with the highest cosines: the best of each shard's best."""
        if not self.spread.has(kind):
            return super().nearest(kind, vector, k)
        parts = self.spread.ask_all("nearest", kind, vector, k)
        positions = np.concatenate([part[0] for part in parts])
        scores = np.concatenate([part[1] for part in parts])
        best = select_best(scores, self.codes(kind)[positions], k)
        return positions[best], scores[best]

    def vectors(self, kind: Kind, positions: Ints) -> Floats:
        """The vectors of some elements; zeros for those without one."""
        if not self.spread.has(kind):
            return super().vectors(kind, positions)
        owner = self.spread.owners[kind][positions]
        which = [np.flatnonzero(owner == number) for number in range(len(self.spread.shards))]
        asked = [(kind, positions[mine]) if len(mine) else None for mine in which]
        found = np.zeros((len(positions), self.matrices[kind].shape[1]), np.float32)
        for mine, part in zip(which, self.spread.shards.ask("take_vectors", asked), strict=True):
            if part is not None:
                found[mine] = part
        return found

    def find_alike(
        self, positions: Ints, bounds: tuple[Sequence[float], Sequence[int]], crowd: int
    ) -> Mask | None:
        """None where shards hold the vectors."""
        return None if self.spread.has("chunk") else super().find_alike(positions, bounds, crowd)

    @cached_property
    def bm25(self) -> Bm25Index:
        """The BM25 index; its postings are on the shards."""
        whole = super().bm25
        return ShardedText(whole.segments, whole.keys, spread=self.spread)

    def look_up_names(self, hashes: NDArray[np.uint64]) -> list[NameRows]:
        """For each hashed key its entities, from all shards, in the order of one machine."""
        parts: list[tuple[Ints, ShardNames]] = self.spread.ask_all("find_names", hashes)
        which = np.concatenate([part[0] for part in parts])
        names = ShardNames(*map(np.concatenate, zip(*(part[1] for part in parts), strict=True)))
        order = np.lexsort((names.at, which))
        ends = np.searchsorted(which[order], np.arange(len(hashes) + 1))
        found = []
        for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            own = names.select(order[a:b])
            found.append((own.entities, own.weights, own.kinds))
        return found

    def ranked_graph(self, name: str, build: Callable[[], Csr]) -> RankedGraph:
        """A graph for PageRank whose rows are on the shards of its nodes."""
        if name not in self.memo:
            links = build()
            # Entities come first, then passages, in every graph that is walked.
            owner = np.concatenate([self.spread.owners["entity"], self.spread.owners["chunk"]])
            made = ShardedGraph(name, links, owner[: len(links)], self.spread.shards)
            made.send()
            self.memo[name] = made
        found: ShardedGraph = self.memo[name]
        return found


def spread_view(view: View, shards: Shards, owners: Owners, kinds: Sequence[Kind]) -> ShardedView:
    """The same generation, asked for from shards that hold the vectors of these kinds."""
    positions = {
        (kind, number): np.flatnonzero(
            (owners[kind] == number) & (view.arrays[f"{kind}_rows"] >= 0)
        )
        for kind in kinds
        for number in range(len(shards))
    }
    spread = SpreadGeneration(shards, owners, positions)
    given = (view.arrays, view.matrices, view.generation)
    return ShardedView(*given, indexes=view.indexes, spread=spread)


@dataclass(frozen=True)
class SpreadLocally:
    """Splits every generation into shards within this process."""

    count: int

    async def __call__(self, view: View, now: Snapshot) -> View:
        """Split one generation."""
        owners = await find_owners(view, now, self.count)
        shards = [cut_shard(view, owners, number) for number in range(self.count)]
        return spread_view(view, LocalShards(shards), owners, list(shards[0].vectors))
