"""Scoring sequences of steps: relations by their words, sentences by their vectors."""

from dataclasses import dataclass

import numpy as np

from clew.context import Context
from clew.graph.traverse import Ints, Ways
from clew.retrieve.naming.question_shape import Shape
from clew.retrieve.paths.meaning import path_scores, word_votes
from clew.retrieve.paths.ways import Floats, kept_vectors, label_words

_REST = 0.7  # what the question still asks, against the whole question
_SENTENCE = 12.0  # how strongly a better fitting sentence is preferred
_HOP = 0.6  # what each further sentence must bring


@dataclass(frozen=True)
class TrailScorer:
    """Scores codes for one question, as whole paths or step by step."""

    ctx: Context
    ways: Ways
    shape: Shape

    async def paths(self, codes: Ints, *, whole: bool = True) -> Floats:
        """A score for each row of codes (padded with -1); higher is better.

        Without `whole` they may be beginnings of paths.
        """
        scores = np.zeros(len(codes), np.float32)
        said = (self.ways.own_fact(codes) >= 0).any(axis=1)
        named = np.flatnonzero(~said)
        if len(named):
            scores[named] = await path_scores(
                self.ctx, self.ways, self.shape, codes[named], whole=whole
            )
        told = np.flatnonzero(said)
        if len(told):
            fit = await self.steps(codes[told])
            hops = (codes[told] >= 0).sum(axis=1)
            scores[told] = _SENTENCE * fit.sum(axis=1) / hops - _HOP * (hops - 1)
        return scores

    async def steps(self, codes: Ints) -> Floats:
        """How well each single step fits, 0 where there is none."""
        asked = await self._asked()
        distinct, at = np.unique(codes, return_inverse=True)
        fit = np.zeros(len(distinct), np.float32)
        own = self.ways.own_fact(distinct)
        told = np.flatnonzero((own >= 0) & (distinct >= 0))
        if len(told):
            fit[told] = self.ctx.view.similar("fact", asked, own[told])
        named = np.flatnonzero((own < 0) & (distinct >= 0))
        if len(named):
            fit[named] = await self._named(distinct[named] >> 1, asked)
        found: Floats = fit[at].reshape(codes.shape)
        return found

    async def _named(self, labels: Ints, asked: Floats) -> Floats:
        """Relations: half by likeness to the question, half by the word that says them most."""
        words = await label_words(self.ctx)
        near = await kept_vectors(self.ctx, [words[label] for label in labels.tolist()]) @ asked
        distinct, at = np.unique(labels, return_inverse=True)
        votes = await word_votes(self.ctx, self.shape, distinct)
        fit: Floats = (near + votes.max(axis=0, initial=0.0)[at]) / 2
        return fit

    async def _asked(self) -> Floats:
        whole, rest = await self.ctx.vectors(
            [self.ctx.question, self.shape.rest or self.ctx.question]
        )
        return np.asarray((1 - _REST) * whole + _REST * rest, np.float32)
