"""The walk of the default recipe: from passages about the question's names to linked passages.

A passage passes its weight on through the entities its sentences mention: to the passages about
those entities, and to other sentences that mention them. The share of each edge depends on how
well the mentioning sentence fits what the question still asks. The hops are recorded, so that the
path to a passage can be shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from clew import kernels
from clew.context import Context
from clew.graph.csr import Floats, Ints, group_equals, sorted_unique
from clew.index.estimates import Estimates
from clew.index.view import View
from clew.retrieve.copies import drop_copies
from clew.retrieve.facts import SentenceFits, score_sentences
from clew.retrieve.follow_up import WordScores, ask_for_missing, score_words
from clew.retrieve.hop import HopWeights, take_hop
from clew.retrieve.hypotheses import HypothesisSearch
from clew.retrieve.mentions import WalkHop, find_names_without_fact
from clew.retrieve.rank import hit_positions, top_hits, top_known_hits, top_positions
from clew.retrieve.small_names import find_all_mentions
from clew.types import Found, Hit, Path

_TINY = 1e-9
_RIVAL_SHARE = 0.97  # passages whose weights are this near compete for a name
_MAX_SENTENCES = 2000  # sentences mentioning one name that are compared with the question
_MAX_RELEVANT = 100  # passages whose relevance decides anything
MAX_NEAR = 700  # passages and facts compared at once, where there are very many
_SETTLED = 4  # times as many of the likeliest are compared exactly, where there are very many
_MAX_KEPT_SUBJECTS = 20_000
_MIN_WEIGHT = 0.05  # a passage below this weight passes nothing on


@dataclass(frozen=True, slots=True)
class _QuestionScores:
    """The question's vector, the fit of facts and chunks, and each chunk's hybrid relevance."""

    question: Floats
    fits: SentenceFits
    relevance: Estimates
    words: WordScores
    """BM25 of every chunk, by word of the question."""


@dataclass(frozen=True)
class Walk:
    """Ranks chunks by the sentence-weighted walk plus a share of plain relevance.

    It starts at `found.chunks` (the passages about the names in the question), at passages that
    mention `found.entities`, and at the most relevant passages.
    """

    hops: int = 3
    sharpness: float = 4.0
    """How strongly a better fitting sentence is preferred."""
    decay: float = 0.7
    fit: float = 2.0
    """How strongly a better fitting destination is preferred."""
    rest: float = 0.7
    """Weight of the question without names against the whole, in how well a sentence fits."""
    back: float = 0.4
    sideways: float = 0.5
    inward: float = 0.5
    """Weight of sentences that mention what a passage is about, against outgoing mentions."""
    unsaid: float = 0.45
    """Weight of a name that occurs in a passage but in none of its facts."""
    seed: float = 0.3
    seeds: int = 4
    fused: float = 0.3
    relevance: float = 0.5
    sure: float = 4.0
    """How strongly relevance decides between several passages about one name."""
    frontier: int = 20
    common: int = 100
    """A name that occurs in more passages than this leads only to passages about it."""
    missing: float = 0.0
    """Weight of passages that say what is missing beside a name just found, against the walk's."""
    added: float = 0.6
    """The share of that weight that is added, instead of taking the higher one."""
    rounds: int = 2
    """How often what is missing is looked for."""
    beam: float = 0.0
    """Weight of the best hypothesis that a passage is part of, added to its total."""
    top_k: int = 100
    facts: int = 20
    paths: int = 5

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks` and `facts` (the best fitting sentences), best first, and `paths`."""
        view = ctx.view
        if not view.count("chunk"):
            return replace(found, chunks=())
        question, rest = await ctx.vectors([ctx.question, found.rest or ctx.question])
        scores = await self._score_elements(ctx, question, rest)
        named = [hit.at for hit in found.entities if hit.score >= 1]
        start = self._initial_weights(view, found.chunks, named, scores)
        known = sorted_unique(view.first_namesake[named])
        walk_hops = await self._run_hops(ctx, start, known, scores)
        reached = start.copy()
        for hop in walk_hops:
            _raise_to(reached, hop)
        total, best, jumps = await self._find_missing(ctx, reached, known, scores)
        ranked = await drop_copies(ctx, total, best)
        best = best if ranked is total else None
        chunks = top_hits(ranked, view.codes("chunk"), self.top_k, "walk", best)
        shown = [hit.at for hit in chunks[: self.paths]]
        trails = [walk_hops, *([jump] for jump in jumps)]
        paths = [path for trail in trails for path in trace_paths(view, trail, shown)]
        return replace(
            found,
            chunks=chunks,
            facts=top_known_hits(scores.fits.facts, view.codes("fact"), self.facts, "sentence"),
            paths=tuple(sorted(dict.fromkeys(paths), key=lambda path: -path.score)),
        )

    async def _find_missing(
        self, ctx: Context, reached: Floats, known: Ints, scores: _QuestionScores
    ) -> tuple[Floats, Ints | None, list[WalkHop]]:
        """Return each chunk's total, those with the highest, and jumps to what is missing.

        Among those with the highest totals are all that are wanted; None stands for all chunks.
        """
        fits, words, jumps = scores.fits, scores.words, list[WalkHop]()
        best = np.zeros_like(reached)
        total, highest = self._settle(ctx.view, reached, best, scores)
        rounds = self.rounds if self.missing > 0 else 0
        for _ in range(rounds):
            again = await ask_for_missing(ctx, total, fits, known, words, highest)
            again.weight[again.chunks] *= self.missing
            jumps.append(again)
            _raise_to(best, again)
            # Totals only rise: the others stay behind those that were highest.
            total[again.chunks] = self._sum_totals(reached, best, scores, again.chunks)
            if highest is not None:
                highest = sorted_unique(np.concatenate([highest, again.chunks]))
        if self.beam > 0:
            search = HypothesisSearch(ctx, total, fits, scores.question, known, words)
            return total + np.float32(self.beam) * await search.score_passages(), None, jumps
        return total, highest, jumps

    def _sum_totals(
        self, reached: Floats, best: Floats, scores: _QuestionScores, at: Ints | None = None
    ) -> Floats:
        """Return the total of each chunk (or those at `at`): the walk's, what is missing, and fit.

        `best` is the highest weight of what was missing; plain relevance and fit add to all.
        """
        plain = scores.relevance.values, scores.fits.chunks.values
        if at is not None:
            reached, best, plain = reached[at], best[at], (plain[0][at], plain[1][at])
        shares = self.added, self.fused, self.relevance
        if kernels.COMPILED is not None:
            return kernels.COMPILED.sum_totals(reached, best, plain, shares)
        total = np.maximum(reached, best)
        total += shares[0] * best
        total += shares[1] * plain[0] + shares[2] * plain[1]
        return total

    def _settle(
        self, view: View, reached: Floats, best: Floats, scores: _QuestionScores
    ) -> tuple[Floats, Ints | None]:
        """Return the total of each chunk; all that may be among the best are compared exactly.

        Beside the totals: these chunks, if `top_k` of them are ahead of all others for sure.
        """
        total = self._sum_totals(reached, best, scores)
        if scores.fits.chunks.known is None:
            return total, None
        likely = top_positions(total, view.codes("chunk"), _SETTLED * self.top_k)
        others = total[likely[-1]]  # no other has more
        scores.fits.chunks.at(likely)
        scores.relevance.at(likely)
        total[likely] = self._sum_totals(reached, best, scores, likely)
        is_sure = np.count_nonzero(total[likely] > others) >= self.top_k
        return total, np.sort(likely) if is_sure else None

    async def _score_elements(
        self, ctx: Context, question: Floats, rest: Floats
    ) -> _QuestionScores:
        """Compute the scores that do not depend on the walk."""
        # A weighted sum of cosines is the cosine with the weighted sum: one pass over memory.
        target = (1 - self.rest) * question + self.rest * rest
        ctx.compare_together("chunk", [target, question], MAX_NEAR)
        fits = await score_sentences(ctx, target, MAX_NEAR)
        words = score_words(ctx)
        return _QuestionScores(question, fits, score_hybrid(ctx, question, words), words)

    def _initial_weights(
        self, view: View, about: tuple[Hit, ...], named: list[int], scores: _QuestionScores
    ) -> Floats:
        """Return start weights: passages about the names, mentioning them, or just relevant."""
        start = np.zeros(view.count("chunk"), np.float32)
        for name in dict.fromkeys(hit.by for hit in about):
            group = [hit for hit in about if hit.by == name]
            at = hit_positions(group)
            weight = np.array([hit.score for hit in group], np.float32)
            relevance = scores.relevance.at(at)
            # A passage yields to more relevant ones that are about the name as surely.
            rival = np.where(weight[None, :] >= _RIVAL_SHARE * weight[:, None], relevance, 0)
            lag = relevance - rival.max(axis=1)
            np.maximum.at(start, at, weight * np.exp(self.sure * lag))
        back = np.zeros_like(start)
        for entity in named:
            at, weight = self._passages_mentioning(view, entity, scores)
            back[at] += np.sqrt(view.rarity[entity]) * weight
            start[at] = np.maximum(start[at], self.back * np.minimum(back[at], 2))
        top = top_positions(scores.relevance.values, view.codes("chunk"), self.seeds)
        start[top] = np.maximum(start[top], self.seed * scores.relevance.values[top])
        return start

    def _passages_mentioning(
        self, view: View, entity: int, scores: _QuestionScores
    ) -> tuple[Ints, Floats]:
        """Passages with an entity, and weights: 1 for the sentence nearest the question."""
        facts = view.links("entity_fact")
        stating = facts.row(entity)[facts.row_weights(entity) > 0].astype(np.int64)
        if len(stating) > _MAX_SENTENCES:
            fit, codes = scores.fits.facts.at(stating), view.codes("fact")[stating]
            stating = stating[top_positions(fit, codes, _MAX_SENTENCES)]
        if not len(stating):
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        at, edge = view.links("fact_chunk").edges_of(stating)
        similarity = view.cosines("fact", scores.question, stating)
        weight = np.exp(self.sharpness * (similarity - similarity.max()))
        passages, _, of = group_equals(view.links("fact_chunk").columns[edge])
        best = np.zeros(len(passages), np.float32)
        np.maximum.at(best, of, weight[at])
        return passages.astype(np.int64), best

    def _hop_weights(self) -> HopWeights:
        given = self.sharpness, self.fit, self.unsaid, self.sideways, self.inward, self.decay
        return HopWeights(*given, self.common)

    async def _run_hops(
        self, ctx: Context, start: Floats, known: Ints, scores: _QuestionScores
    ) -> list[WalkHop]:
        """Walk `hops` hops; in each, a passage keeps the highest weight that reaches it."""
        walk_hops: list[WalkHop] = []
        weights, how = start, self._hop_weights()
        rows = np.flatnonzero(weights > _MIN_WEIGHT)
        for _ in range(self.hops):
            if len(rows) > self.frontier:
                codes = ctx.view.codes("chunk")[rows]
                rows = rows[np.lexsort((codes, -weights[rows]))[: self.frontier]]
            if not len(rows):
                break
            stated = await find_all_mentions(ctx, rows, known)
            unstated = await find_names_without_fact(ctx, rows, stated, known)
            mentions = stated, unstated, known
            walk_hops.append(take_hop(ctx.view, how, (rows, weights), mentions, scores.fits))
            weights, reached = walk_hops[-1].weight, walk_hops[-1].chunks
            rows = sorted_unique(reached[weights[reached] > _MIN_WEIGHT])
        return walk_hops


def _raise_to(weights: Floats, hop: WalkHop) -> None:
    """Raise weights to those of a hop where these are higher."""
    weights[hop.chunks] = np.maximum(weights[hop.chunks], hop.weight[hop.chunks])


def score_hybrid(ctx: Context, question: Floats, words: WordScores) -> Estimates:
    """Mean of dense and lexical relevance of every chunk, scaled so that the best scores 1.

    Of very many chunks it is exact for the best ones, and for any other when it is asked for.
    """
    near, lexical = ctx.estimates("chunk", question, most=MAX_NEAR), words.total
    ranges = *_measure_range(near.values), words.highest
    mixed = _mix_evenly(near.values, lexical, ranges)
    if near.known is not None:
        likely = top_positions(mixed, ctx.view.codes("chunk"), _SETTLED * _MAX_RELEVANT)
        settled, before = near.at(likely), ranges
        ranges = *_measure_range(near.values), words.highest
        if ranges == before:  # the others are as they were
            mixed[likely] = _mix_evenly(settled, lexical[likely], ranges)
        else:
            mixed = _mix_evenly(near.values, lexical, ranges)
    highest = np.float32(max(_TINY, float(mixed.max())))
    mixed /= highest

    def compare(at: Ints) -> Floats:
        found = _mix_evenly(near.at(at), lexical[at], ranges)
        found /= highest  # what is asked for later does not change the scale
        return found

    return Estimates(mixed, None if near.known is None else near.known.copy(), compare)


def _measure_range(dense: Floats) -> tuple[float, float]:
    """Return the lowest cosine, and how far they range."""
    low = dense.min()
    return float(low), max(_TINY, float(dense.max() - low))


def _mix_evenly(dense: Floats, lexical: Floats, ranges: tuple[float, float, float]) -> Floats:
    """Mean of the cosines of chunks and the scores of their words, each by its range."""
    if kernels.COMPILED is not None:
        return kernels.COMPILED.mix_evenly(dense, lexical, ranges)
    low, span, most = (np.float32(one) for one in ranges)
    mixed = (dense - low) / span / 2 + lexical / most / 2
    return mixed.astype(np.float32, copy=False)


def trace_paths(view: View, trail: Sequence[WalkHop], chunks: Sequence[int]) -> tuple[Path, ...]:
    """Return how the walk reached these chunks, strongest first; start chunks have no path."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], Path] = {}
    for chunk in chunks:
        for last in range(len(trail)):
            path = _trace_back(view, trail[: last + 1], chunk)
            if path is not None:
                key = (path.entities, path.facts)
                found[key] = max(path, found.get(key, path), key=lambda one: one.score)
    return tuple(sorted(found.values(), key=lambda path: -path.score))


def _trace_back(view: View, trail: Sequence[WalkHop], chunk: int) -> Path | None:
    score = float(trail[-1].weight[chunk])
    entities: list[int] = []
    facts: list[int] = []
    at = chunk
    for hop in reversed(trail):
        if hop.weight[at] <= 0:
            return None
        mention = int(hop.via[at])
        if int(hop.fact[mention]) < 0:
            return None  # found in the text: no fact to show
        entities.append(int(hop.entity[mention]))
        facts.append(int(hop.fact[mention]))
        at = int(hop.origin[mention])
    entities.reverse()
    facts.reverse()
    begin = _find_start(view, at, facts[0], entities[0])
    if begin is None or len({begin, *entities}) <= len(entities):
        return None  # a walk that returns to an entity explains nothing
    if not all(map(partial(_fact_joins, view), facts[1:], entities, entities[1:])):
        return None
    return Path((begin, *entities), tuple(facts), score, "walk")


def _find_start(view: View, chunk: int, fact: int, end: int) -> int | None:
    """Return the start entity: what the first chunk is about, if the fact joins it to its end.

    A passage of a graph holds the lines of several heads: there the fact's own head is taken.
    """
    main = _main_entity(view, chunk)
    if main is not None and _fact_joins(view, fact, main, end):
        return main
    others = (one for one in view.links("fact_entity").row(fact).tolist() if one != end)
    return next(others, None) if view.relations[fact] >= 0 else None


def _fact_joins(view: View, fact: int, one: int, other: int) -> bool:
    """Tell whether a fact joins both; a sentence without a relation counts for its passage."""
    if view.relations[fact] < 0:
        return True
    return {one, other} <= set(view.links("fact_entity").row(fact).tolist())


def _main_entity(view: View, chunk: int) -> int | None:
    """Return what a chunk is about; a view keeps it."""
    kept: dict[int, int | None] = view.memo.setdefault("main entities", {})
    if chunk not in kept:
        if len(kept) >= _MAX_KEPT_SUBJECTS:
            kept.clear()
        kept[chunk] = _find_main_entity(view, chunk)
    return kept[chunk]


def _find_main_entity(view: View, chunk: int) -> int | None:
    links = view.links("chunk_entity")
    part = slice(int(links.starts[chunk]), int(links.starts[chunk + 1]))
    about = view.arrays["chunk_entity_about"][part]
    if not len(about) or float(about.max()) <= 0:
        return None
    return int(links.columns[part][int(about.argmax())])
