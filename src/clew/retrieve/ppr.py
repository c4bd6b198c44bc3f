"""Personalised PageRank over entities and passages (HippoRAG and HippoRAG 2)."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from clew.context import MAX_COMPARED, Context
from clew.graph.csr import Csr, Doubles, Floats, Ints, build_csr
from clew.graph.pagerank import EDGE_BUDGET
from clew.graph.similar_names import NamedVectors, SimilarNames, find_similar_names
from clew.index.estimates import Estimates
from clew.index.nearest import MIN_ESTIMATED
from clew.index.view import MIN_KEPT, View
from clew.retrieve.graph_cache import neighbour_graph
from clew.retrieve.rank import top_hits, top_positions
from clew.store.array_files import keep_arrays, load_kept
from clew.types import Found, Hit

_MAX_SYNONYMS = 10  # synonyms of one entity
_MAX_NODES = 4000  # nodes whose scores are computed: far more than passages are wanted
_SAMPLED = 512  # passages that tell the usual cosine of very many
_CORRECTED = 400  # of the best of these, whose own cosine is looked at
_NEAR_BUDGET = EDGE_BUDGET // 5  # edges; enough where walks start from the nearest only
_USUAL_EDGES = 60  # edges per node for scores that are computed once
Seeded = tuple[Ints, Doubles]
"""Reset nodes and their weights."""
_TINY = 1e-9


@dataclass(frozen=True)
class WeighEntities:
    """Sets reset weights of the facts' entities: mean score of their facts / passages with them.

    Scores count relative to the best fact's. Literals (dates, numbers) lead nowhere and get none.
    """

    top_k: int = 10

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities`, heaviest first."""
        if not found.facts:
            return replace(found, entities=())
        members, literal = ctx.view.links("fact_entity"), ctx.view.arrays["entity_literal"]
        best = max(hit.score for hit in found.facts)
        scores: dict[int, list[float]] = defaultdict(list)
        for hit in found.facts:
            for entity in dict.fromkeys(members.row(hit.at).tolist()):
                if not literal[entity]:
                    scores[entity].append(max(hit.score / best, 0.0))
        counts = _count_passages(ctx.view, scores)
        weight = {at: float(np.mean(s)) / counts[at] for at, s in scores.items()}
        ranked = sorted(weight, key=lambda at: (-weight[at], at))[: self.top_k]
        return replace(found, entities=tuple(Hit(at, weight[at], "reset") for at in ranked))


@dataclass(frozen=True)
class Specific:
    """Weighs entities by node specificity: 1 / passages they occur in."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set the scores of `entities`, heaviest first."""
        counts = _count_passages(ctx.view, [hit.at for hit in found.entities])
        weighted = [Hit(hit.at, 1 / counts[hit.at], hit.by) for hit in found.entities]
        return replace(found, entities=tuple(sorted(weighted, key=lambda h: (-h.score, h.at))))


def _count_passages(view: View, entities: Iterable[int]) -> dict[int, int]:
    """Return how many passages mention each entity; at least 1."""
    at = np.fromiter(entities, np.int64)
    counts = np.maximum(view.links("entity_chunk").degrees_of(at), 1)
    return dict(zip(at.tolist(), counts.tolist(), strict=True))


@dataclass(frozen=True)
class Ppr:
    """Ranks chunks by personalised PageRank with `found.entities` as weighted reset nodes.

    Over `passages`, chunks are nodes with a reset weight too: their cosine, scaled to 0…1, times
    `passage`. Over `entities` alone, a chunk sums the scores of the entities it mentions.
    """

    over: Literal["passages", "entities"] = "passages"
    damping: float = 0.5
    passage: float = 0.05
    synonym: float = 0.8
    """Entities whose names have at least this cosine are joined."""
    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first; without any entity to start from, chunks by cosine alone."""
        view = ctx.view
        cosines = ctx.estimates("chunk", await ctx.vector())
        entities = {hit.at: hit.score for hit in found.entities if hit.score > 0}
        if not entities:
            best = top_hits(cosines.values, view.codes("chunk"), self.top_k, "dense")
            return replace(found, chunks=best)
        nodes = np.fromiter(entities.keys(), np.int64, len(entities))
        masses = np.fromiter(entities.values(), np.float64, len(entities))
        if self.over == "entities":
            scores = self._sum_over_chunks(view, self._rank_nodes(view, (nodes, masses)))
        elif view.count("chunk") < MIN_ESTIMATED:
            scores = self._rank_from_all(view, (nodes, masses), cosines.values)
        else:
            scores = self._rank_from_nearest(view, (nodes, masses), cosines)
        near = top_hits(scores[0], view.codes("entity"), len(entities) + 20, "ppr")
        chunks = top_hits(scores[1], view.codes("chunk"), self.top_k, "ppr")
        return replace(
            found,
            chunks=tuple(hit for hit in chunks if hit.score > 0),
            entities=tuple(hit for hit in near if hit.score > 0),
        )

    def _rank_from_all(self, view: View, seeds: Seeded, cosines: Floats) -> tuple[Floats, Floats]:
        """Scores of entities and of chunks, each of which is a reset node, too."""
        low, high = float(cosines.min()), float(cosines.max())
        resets = (cosines - low) / max(high - low, _TINY) * self.passage
        at, count = np.flatnonzero(resets > 0), view.count("entity")
        nodes = np.concatenate([seeds[0], at + count])
        scores = self._rank_nodes(view, (nodes, np.concatenate([seeds[1], resets[at]])))
        return scores[:count], scores[count:]

    def _rank_from_nearest(
        self, view: View, seeds: Seeded, cosines: Estimates
    ) -> tuple[Floats, Floats]:
        """The same for very many chunks, nearly.

        Scores are linear in the reset weights. What is usual all chunks have, and its part of the
        scores is always the same; what the nearest have beyond it is walked from. What others have
        of their own is added to the best of them.
        """
        count, chunks = view.count("entity"), view.count("chunk")
        near = _find_nearest(cosines)
        usual = float(cosines.at(np.linspace(0, chunks - 1, _SAMPLED).astype(np.int64)).mean())
        low, high = float(cosines.values.min()), float(cosines.values.max())
        scale = self.passage / max(high - low, _TINY)
        more = (cosines.at(near) - usual) * scale
        near, more = near[more > 0], more[more > 0]
        masses = np.concatenate([seeds[1], more])
        walked = self._rank_nodes(
            view, (np.concatenate([seeds[0], near + count]), masses), _NEAR_BUDGET
        )
        common = (usual - low) * scale * chunks
        total = float(masses.sum()) + common
        scores = walked * np.float32(masses.sum() / total)
        scores += self._usual_scores(view) * np.float32(common / total)
        best = np.setdiff1d(
            top_positions(scores[count:], view.codes("chunk"), _CORRECTED), near, assume_unique=True
        )
        own = (1 - self.damping) * scale / total * (cosines.at(best) - usual)
        scores[count + best] += own.astype(np.float32)
        return scores[:count], scores[count:]

    def _usual_scores(self, view: View) -> Floats:
        """Scores of all nodes if every chunk is an equal reset node; kept with the generation."""
        name = f"usual {self._graph_name} {self.damping}"
        if name not in view.memo:
            kept = load_kept(view.arrays, name)
            if kept is None:
                chunks = view.count("chunk")
                nodes = np.arange(chunks) + view.count("entity")
                every = view.count("entity") + chunks
                scores = self._rank_nodes(view, (nodes, np.ones(chunks)), _USUAL_EDGES * every)
                kept = {"scores": scores}
                keep_arrays(view.arrays, name, {"scores": scores})
            view.memo[name] = kept["scores"]
        found: Floats = view.memo[name]
        return found

    @property
    def _graph_name(self) -> str:
        return f"ppr {self.over} {self.synonym}"

    def _rank_nodes(self, view: View, seeds: Seeded, budget: int = EDGE_BUDGET) -> Floats:
        """The score of every node; 0 beyond the best."""
        build = partial(_build_graph, view, self.over == "passages", self.synonym)
        graph = view.ranked_graph(self._graph_name, build)
        most = _MAX_NODES if budget <= EDGE_BUDGET else len(graph)
        best = graph.rank(seeds, most, damping=self.damping, budget=budget)
        scores = np.zeros(len(graph), np.float32)
        scores[best.nodes] = best.scores
        return scores

    def _sum_over_chunks(self, view: View, scores: Floats) -> tuple[Floats, Floats]:
        """The scores of entities, and for each chunk their sum over those it mentions."""
        links = view.links("chunk_entity")
        weighted = scores[links.columns] * links.weights
        summed = np.bincount(links.row_numbers(), weighted, minlength=len(links))
        return scores, summed.astype(np.float32)


def _find_nearest(cosines: Estimates) -> Ints:
    """Positions of the nearest chunks: those that were compared, or about as many of all."""
    if cosines.known is not None:
        return cosines.find_known()
    least = np.partition(cosines.values, -MAX_COMPARED)[-MAX_COMPARED]
    return np.flatnonzero(cosines.values >= least)


def _build_graph(view: View, passages: bool, least_cosine: float) -> Csr:
    """Join entities by facts and by synonymy, and with the passages that mention them."""
    entities, chunks = view.count("entity"), view.count("chunk")
    parts = [_edge_arrays(neighbour_graph(view)), _edge_arrays(synonym_graph(view, least_cosine))]
    if passages:
        entity, chunk, _ = _edge_arrays(view.links("entity_chunk"))
        ones = np.ones(len(entity), np.float32)
        parts += [(entity, chunk + entities, ones), (chunk + entities, entity, ones)]
    source, target, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    return build_csr(entities + chunks * passages, source, target, weight.astype(np.float32))


def _edge_arrays(links: Csr) -> tuple[Ints, Ints, Floats]:
    source = links.row_numbers()
    return source, links.columns.astype(np.int64), np.asarray(links.weights)


def synonym_graph(view: View, least: float) -> Csr:
    """Join entities with similar names, both ways, weighted by cosine; once per generation."""
    key = f"synonyms {least}"
    if key not in view.memo:
        count = view.count("entity")
        rows = view.arrays.get("entity_rows", np.zeros(0, np.int64))
        known = np.flatnonzero(rows >= 0) if "entity" in view.matrices else np.zeros(0, np.int64)
        if not len(known):
            return build_csr(count, known, known)
        source, target, weight = _edge_arrays(_find_synonyms(view, known, least, key).edges())
        view.memo[key] = build_csr(count, known[source], known[target], weight)
    links: Csr = view.memo[key]
    return links


def _find_synonyms(view: View, named: Ints, least: float, key: str) -> SimilarNames:
    """Compare names; of many only those that were not compared for an earlier generation."""
    given = NamedVectors(
        view.keys("entity")[named],
        view.codes("entity")[named],
        view.vector_marks("entity", named),
        lambda at: view.vectors("entity", named[at]),
        lambda vectors, at: np.stack(view.compare("entity", [(v, named[at]) for v in vectors])),
    )
    if view.count("chunk") < MIN_KEPT:
        return find_similar_names(given, least, _MAX_SYNONYMS)
    held = load_kept(view.arrays, key, lasting=True)
    known = None if held is None else SimilarNames(**held)
    found = find_similar_names(given, least, _MAX_SYNONYMS, known)
    parts = {part: getattr(found, part) for part in SimilarNames.__slots__}
    keep_arrays(view.arrays, key, parts, lasting=True)
    return found
