"""Retrievers for training: any recipe of a knowledge base, or an exported file on a GPU."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.agents.graph_r1_protocol import (
    format_bullets,
    format_pages,
    format_scored_facts,
    prefix_title,
)
from clew.retrieve.linking.page_facts import OwnPages, find_pages_about
from clew.train.search.exported_kb import ExportedKb

if TYPE_CHECKING:
    from clew.engine import KnowledgeBase
    from clew.types import Evidence

_MAX_ENTITY_FACTS = 50
"""Facts of linked entities that enter the rank fusion."""
_KNOWLEDGE_TOKENS = 625
"""Tokens of knowledge per query, as the served agent shows."""
_CACHE_SIZE = 100_000
"""Cached replies; a training run repeats many queries."""


def format_evidence(evidence: "Evidence") -> str:
    """Format evidence as a knowledge text: facts with scores, or titled passages."""
    if evidence.facts:
        facts = [(fact.title, fact.text, fact.score) for fact in evidence.facts]
        return format_scored_facts(facts, _KNOWLEDGE_TOKENS)
    return format_bullets([prefix_title(chunk.title, chunk.text) for chunk in evidence.chunks])


@dataclass
class KbRetriever:
    """Retrieves with a recipe of an open knowledge base; `show` formats the evidence."""

    kb: "KnowledgeBase"
    recipe: str | None = None
    k: int = 5
    show: "Callable[[Evidence], str]" = format_evidence
    """Use the served agent's formatter, so that training and serving agree."""
    concurrency: int = 16
    _semaphore: asyncio.Semaphore = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._semaphore = asyncio.Semaphore(self.concurrency)

    async def __call__(self, queries: Sequence[str]) -> list[str]:
        """Search each distinct query once."""
        distinct = list(dict.fromkeys(queries))
        found = await asyncio.gather(*(self._search(query) for query in distinct))
        known = dict(zip(distinct, found, strict=True))
        return [known[query] for query in queries]

    async def _search(self, query: str) -> str:
        if not query.strip():
            return ""
        async with self._semaphore:
            results = await self.kb.search(query, recipe=self.recipe, k=self.k)
        return self.show(results.evidence)


@dataclass
class CachedRetriever:
    """Caches a retriever's replies: the knowledge base does not change while training."""

    retrieve: Callable[[Sequence[str]], list[str]]
    cache: dict[str, str] = field(default_factory=dict, repr=False)

    def __call__(self, queries: Sequence[str]) -> list[str]:
        """Return replies, from the cache where possible."""
        fresh = [query for query in dict.fromkeys(queries) if query not in self.cache]
        if len(self.cache) + len(fresh) > _CACHE_SIZE:
            self.cache.clear()
            fresh = list(dict.fromkeys(queries))
        if fresh:
            self.cache |= zip(fresh, self.retrieve(fresh), strict=True)
        return [self.cache[query] for query in queries]


@dataclass(frozen=True)
class PassageRetriever:
    """Search-R1's retriever: passages by vector similarity."""

    kb: ExportedKb
    k: int = 5  # Graph-R1, Table 7

    def __call__(self, queries: Sequence[str]) -> list[str]:
        """Return the best `k` passages of each query."""
        scores = self.kb.embed(queries) @ self.kb.vectors["chunk"].T
        best = scores.topk(min(self.k, scores.shape[1]), dim=1).indices.tolist()
        return [format_bullets([self.kb.passage_text(at) for at in row]) for row in best]


@dataclass(frozen=True)
class DualPathRetriever:
    """Graph-R1's retriever (eq. 7-9): facts of the query's entities fused with similar facts."""

    kb: ExportedKb
    k: int = 5  # Graph-R1, Table 7
    entities: int = 5  # released: k_V
    facts: int = 5  # released: k_H

    def __call__(self, queries: Sequence[str]) -> list[str]:
        """Return the best `k` facts of each query."""
        vectors = self.kb.embed(queries)
        top = (vectors @ self.kb.vectors["entity"].T).topk(self.entities, dim=1).indices.tolist()
        scores = (vectors @ self.kb.vectors["fact"].T).cpu().numpy()
        return [
            self._format_facts(self._fuse_rankings(query, similar, row))
            for query, similar, row in zip(queries, top, scores, strict=True)
        ]

    def _format_facts(self, fused: dict[int, float]) -> str:
        """Format the facts as the served agent does."""
        titles, texts, chunk = self.kb.texts["title"], self.kb.texts["fact"], self.kb.fact_chunk
        return format_scored_facts(
            [(titles[chunk[at]], texts[at], score) for at, score in fused.items()],
            _KNOWLEDGE_TOKENS,
        )

    def _fuse_rankings(
        self, query: str, similar: list[int], scores: NDArray[np.float32]
    ) -> dict[int, float]:
        """Return the best facts with their fused scores, best first."""
        # Entities named in the query (eq. 7 without a model), else the most similar ones.
        linked = self.kb.link_entities(query)
        candidates = self.kb.facts_of(linked or similar)
        by_entity = candidates[np.argsort(-scores[candidates], kind="stable")][:_MAX_ENTITY_FACTS]
        direct = np.argpartition(-scores, min(self.facts, len(scores) - 1))[: self.facts]
        direct = direct[np.argsort(-scores[direct], kind="stable")]
        fused: dict[int, float] = {}
        for ranking in (by_entity, direct):
            for place, at in enumerate(ranking.tolist(), start=1):
                fused[at] = fused.get(at, 0.0) + 1.0 / place
        best = sorted(fused, key=lambda at: (-fused[at], -scores[at], at))[: self.k]
        return {at: fused[at] for at in best}


@dataclass(frozen=True)
class PageFactsRetriever:
    """The retriever of the recipe `own-facts`: facts of the pages about a named entity."""

    kb: ExportedKb
    select: OwnPages = OwnPages()

    def __call__(self, queries: Sequence[str]) -> list[str]:
        """Return the selected facts of each query, grouped by page."""
        vectors = self.kb.embed(queries)
        facts = (vectors @ self.kb.vectors["fact"].T).cpu().numpy()
        chunks = (vectors @ self.kb.vectors["chunk"].T).cpu().numpy()
        return [
            self._format_facts(
                self.select(self.kb.view, (fact, chunk), find_pages_about(self.kb.view, query))
            )
            for query, fact, chunk in zip(queries, facts, chunks, strict=True)
        ]

    def _format_facts(self, facts: NDArray[np.int64]) -> str:
        texts, titles, chunk = self.kb.texts["fact"], self.kb.texts["title"], self.kb.fact_chunk
        return format_pages(
            [(titles[chunk[at]], self.kb.fact_offsets[at], texts[at]) for at in facts.tolist()]
        )
