"""Expands found elements to others: entities to facts, facts to entities, all to chunks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from clew import kernels
from clew.context import Context
from clew.graph.csr import Doubles, Floats, Ints, expand_ranges, sorted_unique
from clew.retrieve.facts import score_facts
from clew.retrieve.rank import hit_positions, top_positions
from clew.types import Found, Hit

if TYPE_CHECKING:
    from clew.index.view import View

VotingKind = Literal["entities", "facts", "paths"]
_COSINE_SHARE = 1e-4  # of a cosine beside votes: small enough to break ties only
_SETTLED = 4  # times as many of the likeliest are compared exactly, where there are very many
_MAX_FACTS_PER_ENTITY = 2000  # facts of one entity that are considered


@dataclass(frozen=True)
class FactsOf:
    """Takes the facts of the found entities."""

    top_k: int = 40
    order: Literal["similar", "degree"] = "similar"
    """By cosine with the question, or by the members' degrees, then by weight."""
    subject: float = 0.5
    """Weight of the subject's name beside a sentence's text."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`, best first."""
        view = ctx.view
        owned = entity_facts(view, hit_positions(found.entities))
        if self.order == "similar":
            scores = await score_facts(ctx, await ctx.vector(), self.subject, owned)
        else:
            scores = (endpoint_degrees(view, owned) + _fact_weights(view)[owned] / 1000).astype(
                np.float32
            )
        top = top_positions(scores, view.codes("fact")[owned], self.top_k)
        facts = tuple(Hit(int(owned[at]), float(scores[at]), self.order) for at in top)
        return replace(found, facts=facts)


@dataclass(frozen=True)
class MembersOf:
    """Takes the entities of the found facts, in the facts' order."""

    top_k: int = 80

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities`, best first."""
        members, codes = ctx.view.links("fact_entity"), ctx.view.codes("entity")
        score: dict[int, float] = {}
        for hit in found.facts:
            # In an order of their own: positions depend on when an entity was added.
            for entity in sorted(members.row(hit.at).tolist(), key=lambda at: int(codes[at])):
                score.setdefault(entity, hit.score)
        entities = tuple(Hit(at, value, "member") for at, value in score.items())
        return replace(found, entities=entities[: self.top_k])


@dataclass(frozen=True)
class ChunksOf:
    """Ranks the chunks that state what was found.

    By `votes` an element gives 1/rank to each chunk that states it, shared where many do, and ties
    are broken by cosine; by `similar` the cosine with the question decides alone.
    """

    of: tuple[VotingKind, ...] = ("facts",)
    top_k: int = 100
    order: Literal["votes", "similar"] = "votes"

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first."""
        view = ctx.view
        summed = np.zeros(view.count("chunk"))
        for kind in self.of:
            _add_votes(view, found, kind, summed)
        chunks, codes = np.flatnonzero(summed != 0), view.codes("chunk")
        vector = await ctx.vector()
        most = _SETTLED * self.top_k
        if len(chunks) > most and view.is_estimated("chunk"):
            near = ctx.estimates("chunk", vector).values[chunks]
            likely = top_positions(self._score(near, summed[chunks]), codes[chunks], most)
            chunks = np.sort(chunks[likely])
        scores = self._score(view.cosines("chunk", vector, chunks), summed[chunks])
        top = top_positions(scores, codes[chunks], self.top_k)
        by = f"said of {', '.join(self.of)}"
        hits = tuple(Hit(int(chunks[at]), float(scores[at]), by) for at in top)
        return replace(found, chunks=hits)

    def _score(self, near: Floats, votes: Doubles) -> Floats:
        """The score of chunks with these cosines and votes."""
        if self.order == "similar":
            return near
        mixed: Floats = (votes + near * _COSINE_SHARE).astype(np.float32)
        return mixed


def _add_votes(view: View, found: Found, kind: VotingKind, summed: Doubles) -> None:
    """Add an element's vote to each of its chunks: 1/rank, shared by the chunks that state it."""
    if kind == "paths":
        groups = [list(path.facts) for path in found.paths]
    else:
        groups = [[hit.at] for hit in getattr(found, kind)]
    sizes = np.array([len(group) for group in groups], np.int64)
    elements = np.array([at for group in groups for at in group], np.int64)
    links = view.links("entity_chunk" if kind == "entities" else "fact_chunk")
    group = np.repeat(np.arange(len(groups)), sizes)
    stating = np.bincount(group, links.degrees_of(elements), len(groups)).astype(np.int64)
    votes = 1 / np.arange(1, len(groups) + 1) / np.maximum(1, stating // np.maximum(1, sizes))
    if kernels.COMPILED is not None:
        given = elements, votes[group]
        kernels.COMPILED.add_votes((links.starts, links.columns), given, summed)
        return
    at, edge = links.edges_of(elements)
    np.add.at(summed, links.columns[edge], votes[group][at])


def _fact_weights(view: View) -> Floats:
    return view.arrays.get("fact_weight", np.zeros(0, np.float32))


def entity_facts(view: View, entities: Ints, most: int = _MAX_FACTS_PER_ENTITY) -> Ints:
    """Return the distinct facts of some entities, ascending; at most `most` of each entity."""
    return sorted_unique(entity_fact_pairs(view, entities, most)[1])


def entity_fact_pairs(
    view: View, entities: Ints, most: int = _MAX_FACTS_PER_ENTITY
) -> tuple[Ints, Ints]:
    """Return pairs (index of the entity, fact of it), at most `most` facts of each entity."""
    links = view.links("entity_fact")
    first = links.starts[entities]
    which, edge = expand_ranges(first, np.minimum(first + most, links.starts[entities + 1]))
    return which, links.columns[edge].astype(np.int64)


def endpoint_degrees(view: View, facts: Ints) -> Floats:
    """Return the sum of the two highest degrees among a fact's members."""
    members, stated = view.links("fact_entity"), view.links("entity_fact")
    first, second = np.zeros(len(facts), np.float32), np.zeros(len(facts), np.float32)
    at, edge = members.edges_of(facts)
    degree = stated.degrees_of(members.columns[edge]).astype(np.float32)
    np.maximum.at(first, at, degree)
    # The second highest is the highest once one of the highest is removed.
    order = np.lexsort((-degree, at))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = np.diff(at[order]) != 0
    left = order[~fresh]
    np.maximum.at(second, at[left], degree[left])
    return first + second


def subgraph_facts(found: Found) -> Ints | None:
    """Return the facts of the subgraph, ascending; None when none was extracted."""
    if not found.facts:
        return None
    return np.sort(hit_positions(found.facts))
