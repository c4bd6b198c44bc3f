"""Personalised PageRank over entities and passages (HippoRAG and HippoRAG 2)."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from clew.context import Context
from clew.graph.csr import Csr, Doubles, Floats, Ints, build_csr
from clew.graph.similar_names import NamedVectors, SimilarNames, find_similar_names
from clew.index.view import MIN_KEPT, View
from clew.retrieve.graph_cache import neighbour_graph
from clew.retrieve.rank import top_hits
from clew.store.array_files import keep_arrays, load_kept
from clew.types import Found, Hit

_MAX_SYNONYMS = 10  # synonyms of one entity
_MAX_NODES = 4000  # nodes whose scores are computed: far more than passages are wanted
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
        dense = ctx.estimates("chunk", await ctx.vector()).values
        entities = {hit.at: hit.score for hit in found.entities if hit.score > 0}
        if not entities:
            return replace(found, chunks=top_hits(dense, view.codes("chunk"), self.top_k, "dense"))
        nodes = np.fromiter(entities.keys(), np.int64, len(entities))
        masses = np.fromiter(entities.values(), np.float64, len(entities))
        if self.over == "passages":
            resets = self._passage_weights(dense)
            nonzero = np.flatnonzero(resets > 0)
            nodes = np.concatenate([nodes, nonzero + view.count("entity")])
            masses = np.concatenate([masses, resets[nonzero]])
        scores = self._run_pagerank(view, (nodes, masses))
        near = top_hits(scores[0], view.codes("entity"), len(entities) + 20, "ppr")
        chunks = top_hits(scores[1], view.codes("chunk"), self.top_k, "ppr")
        return replace(
            found,
            chunks=tuple(hit for hit in chunks if hit.score > 0),
            entities=tuple(hit for hit in near if hit.score > 0),
        )

    def _passage_weights(self, dense: Floats) -> Floats:
        low, high = float(dense.min()), float(dense.max())
        weight: Floats = (dense - low) / max(high - low, _TINY) * self.passage
        return weight

    def _run_pagerank(self, view: View, seeds: tuple[Ints, Doubles]) -> tuple[Floats, Floats]:
        build = partial(_build_graph, view, self.over == "passages", self.synonym)
        graph = view.ranked_graph(f"ppr {self.over} {self.synonym}", build)
        nearest_nodes = graph.rank(seeds, _MAX_NODES, damping=self.damping)
        scores = np.zeros(len(graph), np.float32)
        scores[nearest_nodes.nodes] = nearest_nodes.scores
        count = view.count("entity")
        if self.over == "passages":
            return scores[:count], scores[count:]
        links = view.links("chunk_entity")
        owner = links.row_numbers()
        weighted = scores[links.columns] * links.weights
        summed = np.bincount(owner, weighted, minlength=len(links)).astype(np.float32)
        return scores, summed


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
