"""Scores sequences of steps: relations by their labels, sentences by their vectors."""

from dataclasses import dataclass

import numpy as np

from clew.context import Context
from clew.graph.traverse import FactGraph, Ints
from clew.retrieve.naming.question_shape import QuestionShape
from clew.retrieve.paths.meaning import compute_word_votes, score_relation_paths
from clew.retrieve.paths.ways import Floats, embed_cached, load_relation_texts

_REST_WEIGHT = 0.7  # weight of the question without names against the whole question
_SENTENCE_WEIGHT = 12.0  # scale of a sentence's fit
_HOP_PENALTY = 0.6  # fit that each further sentence must add


@dataclass(frozen=True)
class RelationPathScorer:
    """Scores step codes for one question, as whole paths or step by step."""

    ctx: Context
    ways: FactGraph
    shape: QuestionShape

    async def score_paths(self, codes: Ints, *, whole: bool = True) -> Floats:
        """Score each row of codes (padded with -1); higher is better.

        Without `whole` they may be prefixes of paths.
        """
        scores = np.zeros(len(codes), np.float32)
        has_sentence = (self.ways.fact_of_code(codes) >= 0).any(axis=1)
        relation_rows = np.flatnonzero(~has_sentence)
        if len(relation_rows):
            scores[relation_rows] = await score_relation_paths(
                self.ctx, self.ways, self.shape, codes[relation_rows], whole=whole
            )
        sentence_rows = np.flatnonzero(has_sentence)
        if len(sentence_rows):
            fit = await self.score_steps(codes[sentence_rows])
            hops = (codes[sentence_rows] >= 0).sum(axis=1)
            scores[sentence_rows] = _SENTENCE_WEIGHT * fit.sum(axis=1) / hops - _HOP_PENALTY * (
                hops - 1
            )
        return scores

    async def score_steps(self, codes: Ints) -> Floats:
        """Score each single step, 0 for padding."""
        vector = await self._question_vector()
        distinct, at = np.unique(codes, return_inverse=True)
        fit = np.zeros(len(distinct), np.float32)
        own = self.ways.fact_of_code(distinct)
        sentences = np.flatnonzero((own >= 0) & (distinct >= 0))
        if len(sentences):
            fit[sentences] = self.ctx.view.cosines("fact", vector, own[sentences])
        relations = np.flatnonzero((own < 0) & (distinct >= 0))
        if len(relations):
            fit[relations] = await self._score_relations(distinct[relations] >> 1, vector)
        found: Floats = fit[at].reshape(codes.shape)
        return found

    async def _score_relations(self, labels: Ints, vector: Floats) -> Floats:
        """Score relations: half by cosine with the question, half by the strongest word vote."""
        words = await load_relation_texts(self.ctx)
        near = await embed_cached(self.ctx, [words[label] for label in labels.tolist()]) @ vector
        distinct, at = np.unique(labels, return_inverse=True)
        votes = await compute_word_votes(self.ctx, self.shape, distinct)
        fit: Floats = (near + votes.max(axis=0, initial=0.0)[at]) / 2
        return fit

    async def _question_vector(self) -> Floats:
        whole, rest = await self.ctx.vectors(
            [self.ctx.question, self.shape.rest or self.ctx.question]
        )
        return np.asarray((1 - _REST_WEIGHT) * whole + _REST_WEIGHT * rest, np.float32)
