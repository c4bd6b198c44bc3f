"""Retrievers for the environment: any recipe of a knowledge base, or an exported file on a GPU."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.agents.graph_r1 import listed
from clew.errors import ConfigError
from clew.names import name_key, tokens
from clew.train.export import KINDS, unpack_texts, unpack_vectors

if TYPE_CHECKING:
    from clew.engine import KnowledgeBase
    from clew.types import Evidence

_LONGEST_NAME = 10
_RANKED = 50
"""Facts of linked entities that take part in the fusion."""


@dataclass
class KbRetriever:
    """A recipe of an open knowledge base: its facts, or its passages where it finds none."""

    kb: "KnowledgeBase"
    recipe: str | None = None
    k: int = 5
    at_once: int = 16
    _gate: asyncio.Semaphore = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._gate = asyncio.Semaphore(self.at_once)

    async def __call__(self, queries: Sequence[str]) -> list[str]:
        """Search each query once."""
        distinct = list(dict.fromkeys(queries))
        found = await asyncio.gather(*(self._one(query) for query in distinct))
        known = dict(zip(distinct, found, strict=True))
        return [known[query] for query in queries]

    async def _one(self, query: str) -> str:
        if not query.strip():
            return ""
        async with self._gate:
            results = await self.kb.search(query, recipe=self.recipe, k=self.k)
        return said(results.evidence, self.k)


def said(evidence: "Evidence", k: int) -> str:
    """Evidence as knowledge: the best facts, or passages under their titles."""
    if evidence.facts:
        return listed([fact.text for fact in evidence.facts[:k]])
    return listed([titled(chunk.title, chunk.text) for chunk in evidence.chunks[:k]])


def titled(title: str, text: str) -> str:
    """A text under the name of what it is about, unless it says so itself."""
    return text if not title or title.lower() in text.lower() else f"{title}: {text}"


class Exported:
    """A knowledge base that `export_kb` wrote, its vectors on the device."""

    def __init__(self, path: Path, embed: Any, *, device: str = "cpu") -> None:
        """Load it; `embed` turns queries into unit vectors on the same device."""
        import torch

        with np.load(path, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        self.embed = embed
        self.texts = {name: unpack_texts(arrays, f"{name}_text") for name in (*KINDS, "title")}
        if not self.texts["fact"]:
            raise ConfigError(f"{path} holds no facts; export a knowledge base that has a graph")
        self.vectors = {
            kind: torch.from_numpy(unpack_vectors(arrays, kind)).to(device) for kind in KINDS
        }
        self.starts: NDArray[np.int64] = arrays["entity_fact_starts"]
        self.columns: NDArray[np.int64] = arrays["entity_fact_columns"].astype(np.int64)
        starts, chunks = arrays["fact_chunk_starts"], arrays["fact_chunk_columns"]
        self.fact_chunk: list[int] = chunks[starts[:-1]].tolist()
        self.named: dict[str, list[int]] = {}
        for at, name in enumerate(self.texts["entity"]):
            self.named.setdefault(name_key(name), []).append(at)

    def passage(self, at: int) -> str:
        """A chunk under its title."""
        return titled(self.texts["title"][at], self.texts["chunk"][at])

    def fact(self, at: int) -> str:
        """A fact under the title of the passage that says it."""
        return titled(self.texts["title"][self.fact_chunk[at]], self.texts["fact"][at])

    def linked(self, query: str) -> list[int]:
        """Entities that the query names; the longest names win."""
        t = tokens(query)
        found: list[int] = []
        first = 0
        while first < len(t):
            for last in range(min(len(t), first + _LONGEST_NAME), first, -1):
                bearers = self.named.get(name_key(query[t.starts[first] : t.ends[last - 1]]))
                if bearers and (last - first > 1 or t.upper[first]):
                    found.extend(bearers)
                    first = last - 1
                    break
            first += 1
        return found

    def facts_of(self, entities: Sequence[int]) -> NDArray[np.int64]:
        """The facts in which some entities take part."""
        parts = [self.columns[self.starts[one] : self.starts[one + 1]] for one in entities]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


@dataclass(frozen=True)
class Passages:
    """Search-R1's retriever: the passages nearest in meaning."""

    kb: Exported
    k: int = 5  # Graph-R1, Table 7

    def __call__(self, queries: Sequence[str]) -> list[str]:
        """The best `k` passages of each query."""
        scores = self.kb.embed(queries) @ self.kb.vectors["chunk"].T
        best = scores.topk(min(self.k, scores.shape[1]), dim=1).indices.tolist()
        return [listed([self.kb.passage(at) for at in row]) for row in best]


@dataclass(frozen=True)
class DualPath:
    """Graph-R1's retriever (eq. 7-9): facts of the query's entities and facts near it, fused."""

    kb: Exported
    k: int = 5  # Graph-R1, Table 7
    entities: int = 5  # released: k_V
    facts: int = 5  # released: k_H

    def __call__(self, queries: Sequence[str]) -> list[str]:
        """The best `k` facts of each query."""
        vectors = self.kb.embed(queries)
        near = (vectors @ self.kb.vectors["entity"].T).topk(self.entities, dim=1).indices.tolist()
        scores = (vectors @ self.kb.vectors["fact"].T).cpu().numpy()
        return [
            listed([self.kb.fact(at) for at in self._fused(query, close, row)])
            for query, close, row in zip(queries, near, scores, strict=True)
        ]

    def _fused(self, query: str, close: list[int], scores: NDArray[np.float32]) -> list[int]:
        # Named entities are the query's own (eq. 7 without a model); those near it fill up.
        linked = self.kb.linked(query)
        theirs = self.kb.facts_of(linked or close)
        by_entity = theirs[np.argsort(-scores[theirs], kind="stable")][:_RANKED]
        direct = np.argpartition(-scores, min(self.facts, len(scores) - 1))[: self.facts]
        direct = direct[np.argsort(-scores[direct], kind="stable")]
        rank: dict[int, float] = {}
        for ranking in (by_entity, direct):
            for place, at in enumerate(ranking.tolist(), start=1):
                rank[at] = rank.get(at, 0.0) + 1.0 / place
        return sorted(rank, key=lambda at: (-rank[at], -scores[at], at))[: self.k]
