"""Scores sequences of steps: relations by their labels, sentences by their vectors."""

from dataclasses import dataclass

import numpy as np

from clew.context import Context
from clew.graph.traverse import Ints, Ways
from clew.retrieve.naming.question_shape import Shape
from clew.retrieve.paths.meaning import path_scores, word_votes
from clew.retrieve.paths.ways import Floats, kept_vectors, label_words

_REST = 0.7  # weight of the question without names against the whole question
_SENTENCE = 12.0  # scale of a sentence's fit
_HOP = 0.6  # fit that each further sentence must add


@dataclass(frozen=True)
class TrailScorer:
    """Scores step codes for one question, as whole paths or step by step."""

    ctx: Context
    ways: Ways
    shape: Shape

    async def paths(self, codes: Ints, *, whole: bool = True) -> Floats:
        """Score each row of codes (padded with -1); higher is better.

        Without `whole` they may be prefixes of paths.
        """
        scores = np.zeros(len(codes), np.float32)
        has_sentence = (self.ways.own_fact(codes) >= 0).any(axis=1)
        relation_rows = np.flatnonzero(~has_sentence)
        if len(relation_rows):
            scores[relation_rows] = await path_scores(
                self.ctx, self.ways, self.shape, codes[relation_rows], whole=whole
            )
        sentence_rows = np.flatnonzero(has_sentence)
        if len(sentence_rows):
            fit = await self.steps(codes[sentence_rows])
            hops = (codes[sentence_rows] >= 0).sum(axis=1)
            scores[sentence_rows] = _SENTENCE * fit.sum(axis=1) / hops - _HOP * (hops - 1)
        return scores

    async def steps(self, codes: Ints) -> Floats:
        """Score each single step, 0 for padding."""
        vector = await self._asked()
        distinct, at = np.unique(codes, return_inverse=True)
        fit = np.zeros(len(distinct), np.float32)
        own = self.ways.own_fact(distinct)
        sentences = np.flatnonzero((own >= 0) & (distinct >= 0))
        if len(sentences):
            fit[sentences] = self.ctx.view.similar("fact", vector, own[sentences])
        relations = np.flatnonzero((own < 0) & (distinct >= 0))
        if len(relations):
            fit[relations] = await self._named(distinct[relations] >> 1, vector)
        found: Floats = fit[at].reshape(codes.shape)
        return found

    async def _named(self, labels: Ints, vector: Floats) -> Floats:
        """Score relations: half by cosine with the question, half by the strongest word vote."""
        words = await label_words(self.ctx)
        near = await kept_vectors(self.ctx, [words[label] for label in labels.tolist()]) @ vector
        distinct, at = np.unique(labels, return_inverse=True)
        votes = await word_votes(self.ctx, self.shape, distinct)
        fit: Floats = (near + votes.max(axis=0, initial=0.0)[at]) / 2
        return fit

    async def _asked(self) -> Floats:
        whole, rest = await self.ctx.vectors(
            [self.ctx.question, self.shape.rest or self.ctx.question]
        )
        return np.asarray((1 - _REST) * whole + _REST * rest, np.float32)
