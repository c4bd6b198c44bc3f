"""A beam over paths of passages, each path scored as a whole: several hypotheses of an answer.

A hypothesis is a path of passages, each reached through a name that the one before mentions. Its
value is what it says as a whole: the share of the question's words that occur in it, the cosine of
the sum of its best sentences with the question, how likely its links are, and how good its start
was. It goes on to what is missing: targets are preferred for words that no passage of the path has
yet. It ends when no word is missing, or when nothing makes it better.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats, Ints, Mask
from clew.retrieve.facts import SentenceFits
from clew.retrieve.follow_up import WordScores, leads_on, name_rarity
from clew.retrieve.labels import name_vectors
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.question import content_words
from clew.retrieve.rank import top_positions
from clew.retrieve.small_names import find_all_mentions

_TINY = 1e-9
_STARTS, _WIDTH, _DEPTH = 10, 8, 4  # first passages, hypotheses kept, passages of the longest
_NAMES, _TARGETS = 8, 4  # names followed from a passage, and passages tried for each
_NEAR, _WALKED = 0.6, 0.3  # weights of nearness to the name and of the walk, in choosing targets
_LIKELY, _START = 0.5, 0.5  # weights of the links and of the start, in the value
_SHARPNESS = 4.0  # how strongly a name in a better fitting sentence is preferred
_BEST = 6.0  # how fast a passage of a worse hypothesis loses


@dataclass(frozen=True, slots=True)
class _Hypothesis:
    """A path of passages, which words it says, the sum of its sentences, and its links' logs."""

    path: tuple[int, ...]
    said: Mask
    vector: Floats
    links: float
    start: float
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class _Link:
    """A name that a passage mentions: how likely it leads on, and the passages it leads to."""

    weight: float
    words: frozenset[str]
    targets: Ints
    near: Floats


@dataclass(frozen=True)
class HypothesisSearch:
    """The search for one question; `total` is what the walk gave each passage."""

    ctx: Context
    total: Floats
    fits: SentenceFits
    question: Floats
    known: Ints
    words: WordScores
    _links: dict[int, list[_Link]] = field(default_factory=dict)

    async def score_passages(self) -> Floats:
        """Return for each passage how good its best hypothesis is: 1 for the best of all."""
        beam = [self._start(at) for at in self._first_passages()]
        kept = list(beam)
        for _ in range(_DEPTH - 1):
            beam = await self._extend(beam)
            kept += beam
        scores = np.zeros(len(self.total), np.float32)
        best = max((one.value for one in kept), default=0.0)
        for one in kept:
            reached = list(one.path)
            share = np.float32(np.exp(_BEST * (one.value - best)))
            scores[reached] = np.maximum(scores[reached], share)
        return scores

    def _first_passages(self) -> Sequence[int]:
        first: list[int] = top_positions(self.total, self.ctx.view.codes("chunk"), _STARTS).tolist()
        return first

    def _start(self, at: int) -> _Hypothesis:
        start = float(self.total[at]) / max(_TINY, float(self.total.max()))
        first = _Hypothesis((at,), self._says(at), self._best_sentence(at), 0.0, start)
        return self._evaluate(first)

    async def _extend(self, beam: Sequence[_Hypothesis]) -> list[_Hypothesis]:
        """Return the best longer paths that are better than what they continue."""
        longer: dict[frozenset[int], _Hypothesis] = {}
        for one in beam:
            if one.said.all():
                continue
            for link in await self._follow(one.path[-1]):
                for at in self._choose_targets(one, link):
                    new = self._continue(one, link, at)
                    same = longer.get(frozenset(new.path))
                    if new.value > one.value and (same is None or new.value > same.value):
                        longer[frozenset(new.path)] = new
        ranked = sorted(longer.values(), key=lambda one: (-one.value, one.path))
        return ranked[:_WIDTH]

    def _choose_targets(self, one: _Hypothesis, link: _Link) -> list[int]:
        """Return the passages with the name that say most of what is missing."""
        at = link.targets
        missing = [
            scores[at] > 0
            for (word, scores), said in zip(self.words.by_word.items(), one.said, strict=True)
            if not said and word not in link.words
        ]
        weights = [
            weight
            for word, weight, said in zip(
                self.words.by_word, self._word_weights, one.said, strict=True
            )
            if not said and word not in link.words
        ]
        found = np.array(weights, np.float32) @ np.array(missing) if missing else 0.0
        walked = self.total[at] / max(_TINY, float(self.total.max()))
        value = found + self.fits.chunks.at(at) + _NEAR * link.near + _WALKED * walked
        best = at[np.argsort(-value, kind="stable")[:_TARGETS]].tolist()
        return [target for target in best if target not in one.path]

    def _continue(self, one: _Hypothesis, link: _Link, at: int) -> _Hypothesis:
        links = one.links + float(np.log(max(link.weight, 1e-3)))
        vector = one.vector + self._best_sentence(at)
        return self._evaluate(
            _Hypothesis((*one.path, at), one.said | self._says(at), vector, links, one.start)
        )

    def _evaluate(self, one: _Hypothesis) -> _Hypothesis:
        said = float(self._word_weights[one.said].sum())
        length = max(_TINY, float(np.linalg.norm(one.vector)))
        cosine = float(one.vector @ self.question) / length
        likely = one.links / max(1, len(one.path) - 1)
        value = said + cosine + _LIKELY * likely + _START * one.start
        return _Hypothesis(one.path, one.said, one.vector, one.links, one.start, value)

    async def _follow(self, at: int) -> list[_Link]:
        """Return the names that a passage mentions, likeliest first, and where each leads."""
        if at in self._links:
            return self._links[at]
        view = self.ctx.view
        mentions = await find_all_mentions(self.ctx, np.array([at]), self.known)
        fit = self.fits.facts.at(mentions.fact)
        order = np.lexsort((mentions.entity, -fit))
        _, first = np.unique(mentions.entity[order], return_index=True)
        chosen = order[np.sort(first)[:_NAMES]]
        names = await fetch_entity_labels(self.ctx, mentions.entity[chosen].tolist())
        vectors = await name_vectors(self.ctx, {at: one.name for at, one in names.items()})
        found = []
        for place in chosen.tolist():
            entity = int(mentions.entity[place])
            words = content_words(names[entity].name) if entity in names else []
            owners = view.links("owners").row(entity).astype(np.int64)
            targets = np.union1d(view.bm25.chunks_with_all(words), owners)
            targets = targets[targets != at]
            if leads_on(len(targets), len(self.total)) and entity in vectors:
                near = view.cosines("chunk", vectors[entity], targets)
                likely = float(np.exp(_SHARPNESS * (fit[place] - fit.max())))
                weight = likely * name_rarity(len(targets), len(self.total))
                found.append(_Link(weight, frozenset(words), targets, near))
        self._links[at] = found
        return found

    def _says(self, at: int) -> Mask:
        return np.array([scores[at] > 0 for scores in self.words.by_word.values()], np.bool_)

    def _best_sentence(self, at: int) -> Floats:
        """Return the vector of the passage's best fitting sentence, or its own if it has none."""
        view = self.ctx.view
        facts = view.links("chunk_fact").row(at).astype(np.int64)
        if len(facts):
            found = view.vectors("fact", facts[[int(np.argmax(self.fits.facts.at(facts)))]])
        else:
            found = view.vectors("chunk", np.array([at]))
        sentence: Floats = found[0]
        return sentence

    @cached_property
    def _word_weights(self) -> Floats:
        """How rare each word of the question is; all together 1."""
        count = len(self.total)
        having = [np.count_nonzero(scores) for scores in self.words.by_word.values()]
        rare = np.log1p(count / (1 + np.array(having, np.float32)))
        weights: Floats = (rare / max(_TINY, float(rare.sum()))).astype(np.float32)
        return weights
