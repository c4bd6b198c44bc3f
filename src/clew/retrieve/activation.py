"""Entities activated through sentences, and two ways to rank passages by them.

`SemanticBridge` is LinearRAG's retrieval: no relations, only which sentence and which passage names
which entity. `MessagePassing` spreads scores over the entity graph as GFM-RAG's network does, with
fixed weights instead of trained ones; `SumEntities` is its ranking of documents.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from clew.context import Context
from clew.graph.csr import Csr, Doubles, Floats, Ints, build_csr
from clew.index.view import View
from clew.retrieve.facts import score_facts
from clew.retrieve.lookup import require_elements
from clew.retrieve.rank import hit_positions, top_hits
from clew.types import Found, Hit

_MAX_NODES = 4000  # nodes whose scores are computed: far more than passages are wanted
_TINY = 1e-9


@dataclass(frozen=True)
class SemanticBridge:
    """Activates entities from sentence to sentence, then ranks passages by PageRank (LinearRAG).

    An active entity passes its score, times the cosine of question and sentence, to the entities of
    its `sentences` nearest sentences, while the product is at least `least`. Then entities and
    passages that name them are one graph: entities restart it by activation, passages by their
    cosine (times `ratio`) and the active entities they name, all times `passage`.
    """

    rounds: int = 3
    sentences: int = 1
    least: float = 0.5
    ratio: float = 1.5
    passage: float = 0.05
    damping: float = 0.5
    subject: float = 0.5
    """How much the name of its subject counts beside a sentence's text."""
    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities` and `chunks`, best first; without an entity, chunks by cosine alone."""
        require_elements(ctx, "entity")
        view, vector = ctx.view, await ctx.vector()
        dense = ctx.cosines("chunk", vector)
        active = {hit.at: (hit.score, 1) for hit in found.entities if hit.score > 0}
        if not active:
            return replace(found, chunks=top_hits(dense, view.codes("chunk"), self.top_k, "dense"))
        near = np.asarray(await score_facts(ctx, vector, self.subject), np.float64)
        active = self._activate(view, near, active)
        scores = self._rank(view, dense, active)
        entities = sorted(active, key=lambda at: (-active[at][0], at))
        chunks = top_hits(scores, view.codes("chunk"), self.top_k, "activated")
        return replace(
            found,
            chunks=tuple(hit for hit in chunks if hit.score > 0),
            entities=tuple(Hit(at, active[at][0], f"hop {active[at][1]}") for at in entities),
        )

    def _activate(
        self, view: View, near: Doubles, active: dict[int, tuple[float, int]]
    ) -> dict[int, tuple[float, int]]:
        """Return all active entities, each with its score and the round that reached it."""
        facts, members = view.links("entity_fact"), view.links("fact_entity")
        literal = view.arrays["entity_literal"]
        found, frontier, read = dict(active), dict(active), set[int]()
        for hop in range(2, self.rounds + 2):
            reached: dict[int, float] = {}
            for entity, (score, _) in frontier.items():
                unread = [at for at in facts.row(entity).tolist() if at not in read]
                unread.sort(key=lambda at: (-near[at], at))
                for fact in unread[: self.sentences]:
                    read.add(fact)
                    passed = score * near[fact]
                    if passed < self.least:
                        continue
                    for other in members.row(fact).tolist():
                        if not literal[other]:
                            reached[other] = max(passed, reached.get(other, 0.0))
            frontier = {at: (s, hop) for at, s in reached.items() if at not in found}
            found.update(frontier)
        return found

    def _rank(self, view: View, dense: Floats, active: dict[int, tuple[float, int]]) -> Floats:
        nodes = np.fromiter(active, np.int64, len(active))
        scores = np.array([score for score, _ in active.values()])
        level = np.array([hop for _, hop in active.values()])
        links = view.links("entity_chunk")
        which, edge = links.edges_of(nodes)
        bonus = scores[which] * np.log1p(links.weights[edge]) / level[which]
        bonuses = np.bincount(links.columns[edge], bonus, minlength=len(dense))
        low, high = float(dense.min()), float(dense.max())
        words = (dense - low) / max(high - low, _TINY)
        resets = self.passage * (self.ratio * words + np.log1p(bonuses))
        count = view.count("entity")
        seeds = (
            np.concatenate([nodes, np.arange(len(dense)) + count]),
            np.concatenate([scores, resets]),
        )
        graph = view.ranked_graph("mention graph", partial(_mention_graph, view))
        ranked = graph.rank(seeds, _MAX_NODES, damping=self.damping)
        found = np.zeros(len(graph), np.float32)
        found[ranked.nodes] = ranked.scores
        return found[count:]


def _mention_graph(view: View) -> Csr:
    """Return entities and the passages that name them, weighted by how often."""
    links, count = view.links("entity_chunk"), view.count("entity")
    entity, chunk = links.row_numbers(), links.columns.astype(np.int64) + count
    weights = np.concatenate([links.weights, links.weights]).astype(np.float32)
    source, target = np.concatenate([entity, chunk]), np.concatenate([chunk, entity])
    return build_csr(count + view.count("chunk"), source, target, weights)


@dataclass(frozen=True)
class MessagePassing:
    """Spreads the scores of `found.entities` over the graph, along facts that suit the question.

    In each of `layers` rounds an entity sends its score to the other members of its facts, weighted
    by how near the fact is to the question beside the nearest one, and what arrives is divided by
    the square root of the receiver's number of facts; `share` of it is added to where the question
    began. These weights are fixed: GFM-RAG learns them.
    """

    layers: int = 6
    share: float = 0.5
    subject: float = 0.5
    """How much the name of its subject counts beside a sentence's text."""
    top_k: int = 20

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities`, best first."""
        require_elements(ctx, "fact")
        view = ctx.view
        began = {hit.at: hit.score for hit in found.entities if hit.score > 0}
        if not began:
            return replace(found, entities=())
        gates = _fact_gates(await score_facts(ctx, await ctx.vector(), self.subject))
        start = np.zeros(view.count("entity"))
        counts = view.links("entity_chunk").degrees_of(np.fromiter(began, np.int64, len(began)))
        start[list(began)] = np.array(list(began.values())) / np.maximum(counts, 1)
        start /= start.max()
        members, scores = view.links("fact_entity"), start
        owner = members.row_numbers()
        degrees = np.bincount(members.columns, minlength=len(start))
        damping = np.sqrt(np.maximum(degrees, 1))
        for _ in range(self.layers):
            arrived = _send(members, owner, gates, scores) / damping
            scores = start + self.share * arrived / max(float(arrived.max()), _TINY)
        scores[np.asarray(view.arrays["entity_literal"], bool)] = 0
        ranked = top_hits(
            scores.astype(np.float32), view.codes("entity"), self.top_k, "message passing"
        )
        return replace(found, entities=tuple(hit for hit in ranked if hit.score > 0))


def _fact_gates(near: Floats) -> Doubles:
    """Return how far each fact lets a message pass: from 0 at the mean cosine to 1 at the best."""
    middle, best = float(near.mean()), float(near.max())
    gates = np.maximum(near.astype(np.float64) - middle, 0) / max(best - middle, _TINY)
    squared: Doubles = gates * gates
    return squared


def _send(members: Csr, owner: Ints, gates: Doubles, scores: Doubles) -> Doubles:
    """Return what arrives at each entity from the other members of its facts.

    `owner` is the fact of each membership.
    """
    sent = scores[members.columns]
    total = np.bincount(owner, sent, minlength=len(members))
    arrived = gates[owner] * (total[owner] - sent)
    summed = np.bincount(members.columns, arrived, minlength=len(scores))
    return summed.astype(np.float64, copy=False)


@dataclass(frozen=True)
class SumEntities:
    """Ranks chunks by the sum of the scores of the entities they name, ties by cosine."""

    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first; without any entity, chunks by cosine."""
        view = ctx.view
        dense = ctx.cosines("chunk", await ctx.vector())
        links = view.links("entity_chunk")
        which, edge = links.edges_of(hit_positions(found.entities))
        weights = np.array([hit.score for hit in found.entities])[which]
        summed = np.bincount(links.columns[edge], weights, minlength=len(dense))
        # Small enough to break ties only.
        scores = (summed + dense * 1e-4).astype(np.float32)
        return replace(found, chunks=top_hits(scores, view.codes("chunk"), self.top_k, "entities"))
