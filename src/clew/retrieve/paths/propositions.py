"""Beam search over paths of propositions, each path scored as a whole (PropRAG).

Two propositions are neighbours if they share an entity. A path is compared with the question as one
text: by the sum of its propositions' vectors, and the best paths by the vector of their joined
text. What a path says twice adds little to either, so that the search goes on to what is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats, Ints, sorted_unique
from clew.retrieve.facts import fact_subjects, score_facts
from clew.retrieve.labels import has_vectors
from clew.retrieve.lookup import require_elements
from clew.retrieve.rank import hit_positions, top_positions
from clew.types import Found, Hit, Path

_MAX_CANDIDATES = 512  # propositions that are searched; passages may be long
_MAX_JOINED_CHARS = 2000  # of the text of a path
_TINY = 1e-6


@dataclass(frozen=True)
class PropositionPaths:
    """Finds the paths of up to `hops` propositions that together are nearest to the question.

    The search is among the propositions of the first `focus` passages found. It begins at the
    `seeds` nearest ones and keeps the `width` best paths from each at every hop; all that were kept
    are ranked. Of them the first `reread` of a hop are embedded as one text.
    """

    hops: int = 3
    width: int = 4
    seeds: int = 5
    focus: int = 50
    reread: int = 0
    subject: float = 0.5
    """How much the name of its subject counts beside a sentence's text."""
    top_k: int = 20

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`, best first, and `facts` to the propositions on them."""
        require_elements(ctx, "fact")
        graph = await self._select_propositions(ctx, found)
        beam = graph.start(self.seeds)
        kept = list(beam)
        for _ in range(self.hops - 1):
            beam = await self._extend(ctx, graph, beam)
            kept += beam
        best = sorted(kept, key=lambda one: (-one.score, one.facts))[: self.top_k]
        facts: dict[int, float] = {}
        for one in best:
            for at in one.facts:
                facts.setdefault(int(graph.facts[at]), one.score)
        return replace(
            found,
            paths=tuple(graph.to_path(one) for one in best),
            facts=tuple(Hit(at, score, "on a path") for at, score in facts.items()),
        )

    async def _select_propositions(self, ctx: Context, found: Found) -> "_PropositionGraph":
        """Collect the propositions of the passages found, or else those found themselves."""
        view, vector = ctx.view, await ctx.vector()
        links = view.links("chunk_fact")
        chunks = hit_positions(found.chunks[: self.focus])
        _, edge = links.edges_of(chunks)
        facts = sorted_unique(links.columns[edge]) if len(edge) else hit_positions(found.facts)
        near = await score_facts(ctx, vector, self.subject, facts)
        best = top_positions(near, view.codes("fact")[facts], _MAX_CANDIDATES)
        chosen, near = facts[best], near[best]
        members = view.links("fact_entity")
        of, edge = members.edges_of(chosen)
        entities = members.columns[edge].astype(np.int64)
        named = ~np.asarray(view.arrays.get("entity_literal", np.zeros(0)))[entities].astype(bool)
        vectors = self._read_vectors(ctx, chosen)
        return _PropositionGraph(chosen, near, of[named], entities[named], vector, vectors)

    def _read_vectors(self, ctx: Context, facts: Ints) -> Floats | None:
        """Return the vector of each proposition with its subject's; None if there is none."""
        view = ctx.view
        if not len(facts) or not has_vectors(view, "fact"):
            return None
        vectors = view.vectors("fact", facts)
        about = fact_subjects(view)
        has_subject = about.index[facts] < len(about.entities)
        subjects = about.entities[about.index[facts[has_subject]]]
        vectors[has_subject] += np.float32(self.subject) * view.vectors("entity", subjects)
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _TINY)
        unit: Floats = (vectors / lengths).astype(np.float32)
        return unit

    async def _extend(
        self, ctx: Context, graph: "_PropositionGraph", beam: list["_Trail"]
    ) -> list["_Trail"]:
        longer = [trail for one in beam for trail in graph.extend(one)]
        longer.sort(key=lambda one: (-one.score, one.facts))
        if self.reread:
            first = await _reread(ctx, graph, longer[: self.reread])
            longer = sorted(first, key=lambda one: (-one.score, one.facts)) or longer
        kept: dict[int, list[_Trail]] = {}
        for one in longer:
            same = kept.setdefault(one.facts[0], [])
            if len(same) < self.width:
                same.append(one)
        return [one for same in kept.values() for one in same]


@dataclass(frozen=True, slots=True)
class _Trail:
    """A path under way: propositions and the entities between them, as indices into the graph."""

    facts: tuple[int, ...]
    bridges: tuple[int, ...]
    score: float
    total: Floats | None
    """Sum of the propositions' vectors."""


@dataclass(frozen=True, slots=True)
class _PropositionGraph:
    """The propositions that are searched; `owner` and `entities` are parallel: who is in which."""

    facts: Ints
    near: Floats
    owner: Ints
    entities: Ints
    question: Floats
    vectors: Floats | None

    def start(self, seeds: int) -> list[_Trail]:
        """Return the nearest propositions as paths."""
        first = top_positions(self.near, self.facts, seeds)
        vectors = self.vectors
        return [
            _Trail((at,), (), float(self.near[at]), None if vectors is None else vectors[at])
            for at in first.tolist()
        ]

    def extend(self, trail: _Trail) -> list[_Trail]:
        """Return the path with each neighbour of its last proposition."""
        here = self.entities[self.owner == trail.facts[-1]]
        shared = np.flatnonzero(np.isin(self.entities, here))
        neighbours, first = np.unique(self.owner[shared], return_index=True)
        fresh = ~np.isin(neighbours, trail.facts)
        neighbours, bridges = neighbours[fresh], self.entities[shared[first[fresh]]]
        scores, totals = self._score(trail, neighbours)
        return [
            _Trail((*trail.facts, at), (*trail.bridges, bridge), score, total)
            for at, bridge, score, total in zip(
                neighbours.tolist(), bridges.tolist(), scores.tolist(), totals, strict=True
            )
        ]

    def _score(self, trail: _Trail, added: Ints) -> tuple[Floats, Sequence[Floats | None]]:
        if self.vectors is None or trail.total is None:
            before = self.near[list(trail.facts)].sum()
            means: Floats = (before + self.near[added]) / np.float32(len(trail.facts) + 1)
            return means, [None] * len(added)
        totals = trail.total + self.vectors[added]
        lengths = np.maximum(np.linalg.norm(totals, axis=1), _TINY)
        scores: Floats = totals @ self.question / lengths
        return scores, list(totals)

    def to_path(self, trail: _Trail) -> Path:
        """Return the path between positions of the view, from its first member to its last."""
        first = self._outer_member(trail.facts[0], trail.bridges[:1])
        last = self._outer_member(trail.facts[-1], trail.bridges[-1:] or (first,))
        facts = tuple(int(self.facts[at]) for at in trail.facts)
        return Path((first, *trail.bridges, last), facts, trail.score, "propositions")

    def _outer_member(self, fact: int, inner: tuple[int, ...]) -> int:
        """Return a member that is not the one inside the path, if there is another."""
        members: list[int] = self.entities[self.owner == fact].tolist()
        return next((one for one in members if one not in inner), (*members, *inner, 0)[0])


async def _reread(ctx: Context, graph: _PropositionGraph, trails: list[_Trail]) -> list[_Trail]:
    """Score paths by the vectors of their joined texts."""
    keys = ctx.view.keys("fact")
    wanted = {int(keys[graph.facts[at]]) for one in trails for at in one.facts}
    held = await ctx.snapshot.facts(sorted(wanted))
    texts = [
        " ".join(held[int(keys[graph.facts[at]])].text for at in one.facts)[:_MAX_JOINED_CHARS]
        for one in trails
    ]
    if not texts or ctx.embed is None:
        return trails
    vectors = await ctx.embed(texts, role="passage")
    scores = np.asarray(vectors @ graph.question, np.float32)
    return [replace(one, score=float(s)) for one, s in zip(trails, scores, strict=True)]
