"""Search over shards: passages by document hash, scattered, scored with global statistics, merged.

A shard holds the vectors and the words of its passages. BM25 needs two numbers of all shards
together, the passages that have a word and their mean length, which are asked for first; then every
shard returns its best passages, of which the best are those that one machine would have found.
Recipes that walk the graph need all of it, and say so.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.agents.ask import check_question
from clew.agents.core.types import Results
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.retrieve.pack import fetch_evidence
from clew.retrieve.rank import fuse_rankings, top_positions
from clew.store.merge import embedded_text
from clew.text.unicode import hash64, split_words
from clew.types import Found, Hit

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
SHARDED_RECIPES = ("naive", "bm25", "hybrid")
_TOP = 100  # passages of each ranking, as the recipes have
_K1, _B = 1.2, 0.75  # of BM25, as the recipes have
_BLOCK = 5000  # passages read at once


class WordStatistics(NamedTuple):
    """What BM25 needs of all shards together."""

    passages: int
    words: int
    having: tuple[int, ...]
    """Passages that have each word asked for."""

    def __add__(self, other: "WordStatistics") -> "WordStatistics":  # type: ignore[override]
        having = tuple(one + more for one, more in zip(self.having, other.having, strict=True))
        return WordStatistics(self.passages + other.passages, self.words + other.words, having)


class ScoredKeys(NamedTuple):
    """Keys of passages, best first, their scores, and the codes that order equals."""

    keys: Ints
    scores: Floats
    codes: Ints


@dataclass(frozen=True)
class Shard:
    """Passages with their vectors and words; keys ascend."""

    keys: Ints
    codes: Ints
    vectors: Floats
    terms: NDArray[np.uint64]
    starts: Ints
    places: NDArray[np.int32]
    counts: Floats
    lengths: Floats

    def nearest(self, vector: Floats) -> ScoredKeys:
        """The passages whose vectors are nearest."""
        if not len(self.keys):
            return ScoredKeys(self.keys, np.zeros(0, np.float32), self.codes)
        return self._select(self.vectors @ vector, -1.0)

    def count_words(self, words: Sequence[str]) -> WordStatistics:
        """This shard's part of the statistics."""
        having = tuple(len(self._find(word)[0]) for word in words)
        return WordStatistics(len(self.keys), int(self.lengths.sum()), having)

    def match_words(self, words: Mapping[str, int], known: WordStatistics) -> ScoredKeys:
        """The passages that match words best, given how often each was asked for."""
        scores = np.zeros(len(self.keys), np.float32)
        mean = max(1.0, known.words / max(1, known.passages))
        norm = _K1 * (1 - _B + _B * self.lengths / np.float32(mean))
        for (word, times), having in zip(words.items(), known.having, strict=True):
            where, count = self._find(word)
            weight = float(np.log1p((known.passages - having + 0.5) / (having + 0.5))) * times
            scores[where] += weight * count * (_K1 + 1) / (count + norm[where])
        return self._select(scores, 0.0)

    def _find(self, word: str) -> tuple[NDArray[np.int32], Floats]:
        key = np.uint64(hash64(word))
        at = int(np.searchsorted(self.terms, key))
        if at == len(self.terms) or self.terms[at] != key:
            return self.places[:0], self.counts[:0]
        part = slice(int(self.starts[at]), int(self.starts[at + 1]))
        return self.places[part], self.counts[part]

    def _select(self, scores: Floats, above: float) -> ScoredKeys:
        best = top_positions(scores, self.codes, _TOP)
        best = best[scores[best] > above]
        return ScoredKeys(self.keys[best], scores[best], self.codes[best])


def make_shard(keys: Ints, codes: Ints, vectors: Floats, texts: Iterable[str]) -> Shard:
    """A shard of passages, with an index of their words; `codes` order those of equal score."""
    terms: list[int] = []
    counts: list[int] = []
    sizes: list[int] = []
    lengths: list[int] = []
    for text in texts:
        counted = Counter(split_words(text))
        terms += map(hash64, counted)
        counts += counted.values()
        sizes.append(len(counted))
        lengths.append(counted.total())
    words = np.array(terms, np.uint64)
    order = np.argsort(words, kind="stable")
    found, starts = np.unique(words[order], return_index=True)
    places = np.repeat(np.arange(len(keys), dtype=np.int32), sizes)[order]
    return Shard(
        keys,
        codes,
        vectors,
        found,
        np.append(starts, len(words)).astype(np.int64),
        places,
        np.array(counts, np.float32)[order],
        np.array(lengths, np.float32),
    )


class ShardClient(Protocol):
    """A shard, wherever it is."""

    async def nearest(self, vector: Floats) -> ScoredKeys:
        """The passages whose vectors are nearest."""

    async def count_words(self, words: Sequence[str]) -> WordStatistics:
        """The shard's part of the statistics."""

    async def match_words(self, words: Mapping[str, int], known: WordStatistics) -> ScoredKeys:
        """The passages that match words best."""


@dataclass(frozen=True)
class LocalShard:
    """A shard in this process, searched one after another: threads would share its cores."""

    shard: Shard

    async def nearest(self, vector: Floats) -> ScoredKeys:
        """The passages whose vectors are nearest."""
        return self.shard.nearest(vector)

    async def count_words(self, words: Sequence[str]) -> WordStatistics:
        """The shard's part of the statistics."""
        return self.shard.count_words(words)

    async def match_words(self, words: Mapping[str, int], known: WordStatistics) -> ScoredKeys:
        """The passages that match words best."""
        return self.shard.match_words(words, known)


async def split_into_shards(base: KnowledgeBase, count: int) -> tuple[int, list[Shard]]:
    """The newest generation and its passages as shards, by the hash of their document."""
    async with base.store.snapshot() as now:
        ctx = await base.context(now, "")
        keys, codes = ctx.view.keys("chunk"), ctx.view.codes("chunk")
        rows = now.arrays.get("chunk_rows", np.zeros(0, np.int64))
        matrix = ctx.view.matrices.get("chunk")
        members: list[list[int]] = [[] for _ in range(count)]
        texts: list[list[str]] = [[] for _ in range(count)]
        for start in range(0, len(keys), _BLOCK):
            block = keys[start : start + _BLOCK].tolist()
            chunks = await now.chunks(block)
            for at, key in enumerate(block, start):
                shard = hash64(chunks[key].document) % count
                members[shard].append(at)
                texts[shard].append(embedded_text(chunks[key]))
        shards = []
        for positions, own in zip(members, texts, strict=True):
            mine = np.array(positions, np.int64)
            vectors = _take_vectors(matrix, rows[mine])
            shards.append(make_shard(keys[mine], codes[mine], vectors, own))
        return now.generation, shards


def _take_vectors(matrix: Floats | None, rows: Ints) -> Floats:
    """Vectors by row; none at all if there is no embedder."""
    if matrix is None or not len(matrix):
        return np.zeros((len(rows), 0), np.float32)
    found: Floats = np.ascontiguousarray(matrix[np.maximum(rows, 0)])
    found[rows < 0] = 0
    return found


@dataclass
class ShardedSearch:
    """Scatters a question over shards of one generation, and merges what they find."""

    base: KnowledgeBase
    shards: Sequence[ShardClient]
    generation: int

    async def search(self, question: str, *, recipe: str = "hybrid", k: int = 10) -> Results:
        """As `KnowledgeBase.search`, for recipes that rank passages."""
        if recipe not in SHARDED_RECIPES:
            raise ConfigError(
                f"the recipe {recipe!r} needs the whole graph, which no shard has; shards serve "
                f"{', '.join(SHARDED_RECIPES)}"
            )
        started = perf_counter()
        check_question(question, k)
        async with self.base.store.snapshot() as now:
            if now.generation != self.generation:
                raise ConfigError("the shards are of an older generation; make them again")
            ctx = await self.base.context(now, question, recipe)
            rankings = []
            if recipe != "bm25":
                rankings.append(await self._rank_by_vector(await ctx.vector()))
            if recipe != "naive":
                rankings.append(await self._rank_by_words(question))
            keys = ctx.view.keys("chunk")
            hits = [
                self._to_hits(one, keys, by)
                for one, by in zip(rankings, _NAMES[recipe], strict=True)
            ]
            chunks = fuse_rankings(hits) if len(hits) > 1 else hits[0]
            found = await fetch_evidence(ctx, replace(Found(), chunks=chunks[:k]))
        return Results(question, recipe, found, (), perf_counter() - started, ctx.meter.total)

    async def _rank_by_vector(self, vector: Floats) -> ScoredKeys:
        return _merge(await asyncio.gather(*(one.nearest(vector) for one in self.shards)))

    async def _rank_by_words(self, question: str) -> ScoredKeys:
        words = dict(Counter(split_words(question)))
        parts = await asyncio.gather(*(one.count_words(list(words)) for one in self.shards))
        known = sum(parts[1:], start=parts[0])
        return _merge(await asyncio.gather(*(one.match_words(words, known) for one in self.shards)))

    @staticmethod
    def _to_hits(found: ScoredKeys, keys: Ints, by: str) -> tuple[Hit, ...]:
        at = np.searchsorted(keys, found.keys).tolist()
        return tuple(map(Hit, at, found.scores.tolist(), [by] * len(at)))


_NAMES = {"naive": ("dense",), "bm25": ("bm25",), "hybrid": ("dense", "bm25")}


def _merge(parts: Sequence[ScoredKeys]) -> ScoredKeys:
    """The best of all shards; ties go by code, then by key, as on one machine."""
    keys = np.concatenate([part.keys for part in parts])
    order = np.argsort(keys)
    keys = keys[order]
    scores = np.concatenate([part.scores for part in parts])[order]
    codes = np.concatenate([part.codes for part in parts])[order]
    best = top_positions(scores, codes, _TOP)
    return ScoredKeys(keys[best], scores[best], codes[best])


async def open_local_shards(base: KnowledgeBase, count: int) -> ShardedSearch:
    """Split the newest generation into shards within this process."""
    generation, shards = await split_into_shards(base, count)
    return ShardedSearch(base, [LocalShard(shard) for shard in shards], generation)
