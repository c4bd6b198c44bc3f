"""Scores relation paths by their text: LEGO-GraphRAG's EEMs.

A path is written as its relations ("gender of parents") and compared with the question without
its names: by the embedder's cosine, by a cross-encoder, or by the cosine of a language model's
embeddings (LLMs-E). What `clew tune` has fitted is added to a cosine.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from clew.adapters import PathAdapter, get_tuning
from clew.context import Context
from clew.errors import ConfigError
from clew.graph.csr import Floats, Ints
from clew.graph.traverse import FactGraph
from clew.retrieve.labels import embed_cached, has_vectors, load_short_texts
from clew.retrieve.pack import fetch_fact_texts
from clew.retrieve.rank import top_positions

PathScorerName = Literal["cosine", "cross-encoder", "llm-embeddings"]
CompareTexts = Callable[[Context, str, Sequence[str]], Awaitable[Floats]]
_INVERSE_TEMPERATURE = 20.0  # scale of a cosine, as a score whose differences are log odds
# A text says neither a step's direction nor much more if it says a relation again: of paths whose
# texts are nearly alike, the one as stored and without repeats counts more.
_BACKWARD_COST, _REPEAT_COST = 1.0, 3.0
_MAX_COMPARED = 256  # texts of one question that are compared; of more, those of the best steps
_MAX_CHARS = 300  # characters of a sentence that stands for a relation


class PathScorer(Protocol):
    """Scores step codes for one question, as whole paths or step by step."""

    async def score_paths(self, codes: Ints, *, whole: bool = True) -> Floats:
        """Score each row of codes (padded with -1); higher is better.

        Without `whole` they may be prefixes of paths.
        """
        ...

    async def score_steps(self, codes: Ints) -> Floats:
        """Score each single step, 0 for padding."""
        ...


@dataclass(frozen=True)
class TextPathScorer:
    """Compares the text of each relation path with what is asked, the question without names."""

    ctx: Context
    ways: FactGraph
    asked: str
    compare: CompareTexts
    stored: bool
    """Whether facts without a relation are compared by their stored vectors."""

    async def score_paths(self, codes: Ints, *, whole: bool = True) -> Floats:
        """Score each row of codes; beyond a limit only those whose steps fit best are compared."""
        del whole  # prefixes of paths are texts like any other
        has_sentence = (self.ways.fact_of_code(codes) >= 0).any(axis=1)
        if self.stored and has_sentence.any():
            return await self._average_steps(codes)
        if len(codes) <= _MAX_COMPARED:
            return await self._compare_rows(codes)
        mean = await self._average_steps(codes)
        rows = top_positions(mean, np.arange(len(codes)), _MAX_COMPARED)
        compared = await self._compare_rows(codes[rows])
        # Those that were not compared stay behind all that were, in the order of their steps.
        scores: Floats = (mean - mean.max() + compared.min() - 1).astype(np.float32)
        scores[rows] = compared
        return scores

    async def score_steps(self, codes: Ints) -> Floats:
        """Score each single step, 0 for padding."""
        distinct, at = np.unique(codes, return_inverse=True)
        scores = np.zeros(len(distinct), np.float32)
        facts = self.ways.fact_of_code(distinct)
        by_vector = (distinct >= 0) & (facts >= 0) & self.stored
        if by_vector.any():
            asked = await self.ctx.vector(self.asked)
            near = self.ctx.view.cosines("fact", asked, facts[by_vector])
            scores[by_vector] = _INVERSE_TEMPERATURE * near
        steps = np.flatnonzero((distinct >= 0) & ~by_vector)
        if len(steps):
            scores[steps] = await self._compare_rows(distinct[steps][:, None])
        found: Floats = scores[at].reshape(codes.shape)
        return found

    async def _average_steps(self, codes: Ints) -> Floats:
        steps = await self.score_steps(codes)
        mean: Floats = steps.sum(axis=1) / np.maximum((codes >= 0).sum(axis=1), 1)
        return mean

    async def _compare_rows(self, codes: Ints) -> Floats:
        said = await self._step_texts(np.unique(codes[codes >= 0]))
        texts = [
            " of ".join(said[code] for code in reversed(row) if code >= 0) for row in codes.tolist()
        ]
        distinct = list(dict.fromkeys(texts))
        scores = await self.compare(self.ctx, self.asked, distinct)
        score_of = dict(zip(distinct, scores.tolist(), strict=True))
        near = np.array([score_of[text] for text in texts], np.float32)
        backward = ((codes >= 0) & (codes % 2 == 1)).sum(axis=1)
        costs: Floats = _BACKWARD_COST * backward + _REPEAT_COST * _count_repeats(codes >> 1)
        return (near - costs).astype(np.float32)

    async def _step_texts(self, codes: Ints) -> dict[int, str]:
        labels = await load_short_texts(self.ctx)
        facts = self.ways.fact_of_code(codes)
        fetched = await fetch_fact_texts(self.ctx, facts[facts >= 0].tolist())
        return {
            code: fetched[fact].text[:_MAX_CHARS] if fact >= 0 else labels[code >> 1]
            for code, fact in zip(codes.tolist(), facts.tolist(), strict=True)
        }


@dataclass(frozen=True)
class TunedPathScorer:
    """Adds to another scorer what `clew tune` has fitted for each step of a whole path."""

    ctx: Context
    ways: FactGraph
    asked: str
    inner: PathScorer
    adapter: PathAdapter

    async def score_paths(self, codes: Ints, *, whole: bool = True) -> Floats:
        """Score each row of codes; prefixes, and paths of sentences, as the inner scorer does."""
        scores = await self.inner.score_paths(codes, whole=whole)
        if not whole or not len(codes) or (self.ways.fact_of_code(codes) >= 0).any():
            return scores
        texts = await load_short_texts(self.ctx)
        labels = np.unique(codes[codes >= 0] >> 1)
        named = await embed_cached(self.ctx, [texts[label] for label in labels.tolist()])
        [asked] = await embed_cached(self.ctx, [self.asked])
        return self.adapter.score_paths(asked, named, _number_labels(codes, labels), scores)

    async def score_steps(self, codes: Ints) -> Floats:
        """Score each single step, 0 for padding."""
        return await self.inner.score_steps(codes)


def _number_labels(codes: Ints, labels: Ints) -> Ints:
    """Return codes whose relations are counted from 0 in the order of `labels`."""
    return np.where(codes >= 0, 2 * np.searchsorted(labels, codes >> 1) + (codes & 1), -1)


def _count_repeats(labels: Ints) -> Ints:
    """Count the steps of each row whose relation an earlier step of it has."""
    repeats = np.zeros(len(labels), np.int64)
    for at in range(1, labels.shape[1]):
        again = (labels[:, :at] == labels[:, at : at + 1]).any(axis=1)
        repeats += again & (labels[:, at] >= 0)
    return repeats


async def _compare_by_cosine(ctx: Context, question: str, texts: Sequence[str]) -> Floats:
    [asked] = await ctx.vectors([question])
    near: Floats = _INVERSE_TEMPERATURE * (await embed_cached(ctx, texts) @ asked)
    return near


async def _compare_by_cross_encoder(ctx: Context, question: str, texts: Sequence[str]) -> Floats:
    if ctx.rerank is None:
        raise ConfigError(
            "this recipe scores paths with a cross-encoder, and none is configured; set `model` "
            "and `base_url`, or `folder`, under [rerank] in clew.toml"
        )
    return await ctx.rerank(question, texts)


async def _compare_by_llm_embeddings(ctx: Context, question: str, texts: Sequence[str]) -> Floats:
    """LLMs-E: the language model's own vectors; without a model, the embedder's."""
    if ctx.models is None or not ctx.models.has("plan"):
        return await _compare_by_cosine(ctx, question, texts)
    embed = ctx.models.embedder("plan")
    cache: dict[str, Floats] = ctx.view.memo.setdefault(f"vectors of {embed.name}", {})
    missing = [text for text in dict.fromkeys((question, *texts)) if text not in cache]
    if missing:
        cache.update(zip(missing, await embed(missing), strict=True))
    table = np.array([cache[text] for text in texts], np.float32)
    norms = np.linalg.norm(table, axis=1) * np.linalg.norm(cache[question])
    near: Floats = _INVERSE_TEMPERATURE * (table @ cache[question]) / np.maximum(norms, 1e-9)
    return near


_COMPARISONS: dict[PathScorerName, CompareTexts] = {
    "cosine": _compare_by_cosine,
    "cross-encoder": _compare_by_cross_encoder,
    "llm-embeddings": _compare_by_llm_embeddings,
}


def create_scorer(ctx: Context, ways: FactGraph, rest: str, name: PathScorerName) -> PathScorer:
    """Create the scorer of this name; `rest` is the question without names, empty for all of it."""
    asked, plain = rest or ctx.question, name == "cosine"
    stored = plain and has_vectors(ctx.view, "fact")
    scorer = TextPathScorer(ctx, ways, asked, _COMPARISONS[name], stored)
    adapter = get_tuning(ctx.view).paths if plain else None
    return scorer if adapter is None else TunedPathScorer(ctx, ways, asked, scorer, adapter)
