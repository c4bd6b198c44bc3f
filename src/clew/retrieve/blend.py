"""Weighs the walk against plain relevance, by what the corpus and the question are like.

The walk relies on names that lead to a passage about them. Where most pages are about things that
other pages never name (news, reports, threads), or the question names only what stands
everywhere, the ranking is left to meaning, words and the best sentence of each passage.
"""

import re
from dataclasses import dataclass, replace

import numpy as np

from clew.adapters import get_tuning
from clew.context import Context, TraceStep
from clew.graph.csr import Floats
from clew.index.view import View
from clew.retrieve.best_units import score_units
from clew.retrieve.copies import drop_copies
from clew.retrieve.defined_terms import score_definitions
from clew.retrieve.facts import score_sentences
from clew.retrieve.mentions import OWN_NAME_CLAIM, SURE_CLAIM
from clew.retrieve.question import content_words
from clew.retrieve.rank import hit_positions, top_hits
from clew.retrieve.small_names import count_small_mentions
from clew.retrieve.step import Step
from clew.text.unicode import split_words
from clew.types import Found, Hit

_TINY = 1e-9
_MEMO_KEY = "share of mentions with a page"
_SMALL_KEY = "share of mentions with a page, small ones too"
_MAX_PAGES = 3  # a name that more passages are about leads to none of them in particular
# Share of the mentions that lead to one to three passages about them: at most .004 on web pages,
# .02 on a few long articles cut into passages, at least .046 on encyclopedias
# (docs/decisions/0016-retrieval-that-holds.md).
_NO_TRUST_SHARE, _FULL_TRUST_SHARE = 0.005, 0.04
_LEAST_WALK = 0.1  # a walk that would count less changes nothing, and takes most of the time
_CHAIN_TRUST = 0.5  # from which chains of names are worth following: manuals stay below 0.3
PLAIN_SIGNALS = ("meaning", "words", "best sentence")
PLAIN_SHARES = (0.4, 0.3, 0.3)  # of each within plain relevance; `python -m bench.signal_weights`
# Written like a code: in capitals, with a digit, an underscore, or a capital inside.
_CODE_WORD = re.compile(r"\b(?:[A-Z]{2,}|(?=\w*[\d_])\w+|[a-z]+[A-Z]\w*)\b")
_FEW_PASSAGES, _FEW_SHARE = 3, 0.005  # passages with a code that is rare, or their share of all
_LEADERS, _LEAD = 100, 0.1  # the best chunks of a signal, and what a lead over them counts


@dataclass(frozen=True, slots=True)
class SignalWeights:
    """How much the walk and plain relevance count, and what this follows from."""

    walk: float
    corpus: float
    """How far the names in this corpus lead to passages about them, 0 to 1."""
    names: float
    """How specific the most specific name of the question is, 0 to 1."""
    shares: tuple[float, float, float] = PLAIN_SHARES
    """Of meaning, words and best sentence within plain relevance; together 1."""
    tuned: bool = False
    """Whether `clew tune` chose the weights."""

    @property
    def plain(self) -> float:
        """The weight of plain relevance."""
        return 1 - self.walk

    def leave_to_words(self, known: float) -> "SignalWeights":
        """Give words the share of what vectors cannot tell; `known`: how far they know the text."""
        meaning, words, best = self.shares
        unknown = (1 - known) * (meaning + best)
        return replace(self, shares=(known * meaning, words + unknown, known * best))

    def describe(self) -> str:
        """Describe the weights in one line, for the trace."""
        named = zip(PLAIN_SIGNALS, self.shares, strict=True)
        plain = [f"{name} {self.plain * share:.2f}" for name, share in named]
        reason = f"corpus {self.corpus:.2f}, names {self.names:.2f}"
        # The walk begins at names and where relevance is highest, and adds a share of relevance:
        # a walk alone is not without meaning and words.
        start = "names" if self.names > 0 else "the most relevant passages (no name leads anywhere)"
        how = f" from {start} by sentences, meaning and words" if self.walk > 0 else ""
        said = ", ".join([f"walk {self.walk:.2f}{how}", *(plain if self.plain > 0 else ())])
        return f"{said} ({reason}{', tuned' if self.tuned else ''})"


async def weigh_signals(ctx: Context, entities: tuple[Hit, ...]) -> SignalWeights:
    """Return the weights for a question that names these entities."""
    view, corpus = ctx.view, await measure_corpus_trust(ctx)
    names = measure_specificity(view, entities)
    # Where most names lead on, so do those in passages: a question need not name anything.
    walk = corpus * (corpus + (1 - corpus) * names)
    mix = get_tuning(view).signals
    if mix is not None and mix.walk is not None:
        walk = mix.walk
    walk = walk if walk >= _LEAST_WALK else 0.0
    if mix is None:
        return SignalWeights(walk, corpus, names)
    return SignalWeights(walk, corpus, names, mix.shares, tuned=True)


async def measure_corpus_trust(ctx: Context) -> float:
    """Return how far mentioned names lead to passages about them, 0 to 1; computed once.

    Where too few do that are written with capitals, those that are written small count as well.
    """
    view = ctx.view
    share = view.measure_once(_MEMO_KEY, lambda: _share_of_mentions_with_page(view))
    if share < _FULL_TRUST_SHARE and view.count("chunk"):
        if _SMALL_KEY not in view.memo:
            small = await count_small_mentions(ctx)
            view.memo[_SMALL_KEY] = _share_of_mentions_with_page(view, small)
        share = view.memo[_SMALL_KEY]
    trust = (share - _NO_TRUST_SHARE) / (_FULL_TRUST_SHARE - _NO_TRUST_SHARE)
    return min(1.0, max(0.0, trust))


async def names_lead_on(ctx: Context) -> bool:
    """Whether names lead to passages about them as often as in an encyclopedia, or nearly."""
    return await measure_corpus_trust(ctx) >= _CHAIN_TRUST


def _share_of_mentions_with_page(view: View, small: float = 0.0) -> float:
    """Return the share of mentions that lead on, `small` more of which are written small."""
    if not view.count("chunk"):
        return 0.0
    if len(view.relations) and view.relations.min() >= 0:
        return 1.0  # all facts are triples: their ends are names that lead on
    owners, named = view.links("owners"), ~view.arrays["entity_literal"]
    sure, pages = np.flatnonzero(owners.weights >= SURE_CLAIM), owners.degrees()
    leads_on = np.zeros(len(pages), np.bool_)
    leads_on[owners.row_numbers()[sure]] = True
    leads_on &= named & (pages <= _MAX_PAGES)
    # Of each mention whether its name leads on (2), or is a name at all (1).
    kinds = (named.view(np.uint8) + leads_on)[view.links("chunk_entity").columns]
    kinds *= view.arrays["chunk_entity_about"] < OWN_NAME_CLAIM
    leading = small + int(np.count_nonzero(kinds == 2))
    return leading / max(1.0, small + int(np.count_nonzero(kinds)))


def measure_specificity(view: View, entities: tuple[Hit, ...]) -> float:
    """Return how specific the most specific of these names is: rare, and with one page, 1."""
    if not entities:
        return 0.0
    at = hit_positions(entities)
    pages = view.links("owners").degrees_of(at)
    sure = np.minimum([hit.score for hit in entities], 1)
    value = sure * np.sqrt(view.rarity[at] / np.maximum(pages, 1))
    return float(value[pages > 0].max(initial=0))


@dataclass(frozen=True)
class Blended:
    """Mixes the ranking of a step that starts at names with plain relevance.

    Its weight is measured (`weigh_signals`); a step without weight is not run.
    """

    inner: Step
    rest: float = 0.7
    """Weight of the question without common names against the whole, in how a sentence fits."""
    top_k: int = 100
    facts: int = 20

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first; `facts` and `paths` are the step's."""
        view = ctx.view
        if not view.count("chunk"):
            return replace(found, chunks=())
        weights = (await weigh_signals(ctx, found.entities)).leave_to_words(ctx.meaning())
        ctx.trace.append(TraceStep("signals", "", weights.describe(), 0.0))
        walked = await self.inner(ctx, found) if weights.walk > 0 else found
        if weights.plain <= 0 or (weights.walk > 0 and not walked.chunks):
            return walked
        scores = await score_plainly(ctx, found, self.rest)
        plain = scores.mix(weights.shares)
        if not await names_lead_on(ctx):
            plain = plain + await score_definitions(ctx, plain)
            plain = plain + await score_units(ctx, plain)
        ties = view.codes("chunk")
        if weights.walk <= 0:
            facts = top_hits(scores.fact_fit, view.codes("fact"), self.facts, "sentence")
            chunks = top_hits(await drop_copies(ctx, plain), ties, self.top_k, "relevance")
            return replace(found, chunks=chunks, facts=facts, paths=())
        # A chunk that the step left out scores no more than its last one.
        total = np.full(len(plain), min(hit.score for hit in walked.chunks), np.float32)
        total[hit_positions(walked.chunks)] = [hit.score for hit in walked.chunks]
        mixed = (weights.walk * total + weights.plain * plain).astype(np.float32)
        by = walked.chunks[0].by
        chunks = top_hits(await drop_copies(ctx, mixed), ties, self.top_k, by)
        return replace(walked, chunks=chunks)


@dataclass(frozen=True, slots=True)
class PlainScores:
    """Every chunk by meaning, words and best sentence, and each fact's fit."""

    meaning: Floats
    words: Floats
    sentence: Floats
    fact_fit: Floats

    def mix(self, shares: tuple[float, float, float], lead: float = _LEAD) -> Floats:
        """Return the weighted sum of the three, each scaled; `lead` is what a lead counts."""
        signals = (self.meaning, self.words, self.sentence)
        scaled = [share * _scale(one, lead) for share, one in zip(shares, signals, strict=True)]
        mixed: Floats = np.sum(scaled, axis=0).astype(np.float32)
        return mixed


async def score_plainly(ctx: Context, found: Found, rest: float = 0.7) -> PlainScores:
    """Score every chunk by each of the signals that need no name.

    `rest` weighs the question without common names against the whole, in how a sentence fits.
    """
    question, specific = await ctx.vectors([ctx.question, found.specific or ctx.question])
    fits = await score_sentences(ctx, (1 - rest) * question + rest * specific)
    words = ctx.view.bm25.scores(await repeat_rare_codes(ctx))
    meaning = ctx.estimates("chunk", question).values
    return PlainScores(meaning, words, fits.chunks.values, fits.facts.values)


async def repeat_rare_codes(ctx: Context) -> list[str]:
    """Return the words of a question that say something, codes that few passages have twice.

    In manuals and tables "KM" or "copy2" says more than the rest; names of an encyclopedia lead on.
    """
    view, question = ctx.view, ctx.question
    words = content_words(question)
    if await names_lead_on(ctx):
        return words
    few = max(_FEW_PASSAGES, _FEW_SHARE * view.count("chunk"))
    codes = {word for found in _CODE_WORD.findall(question) for word in split_words(found)}
    rare = [word for word in words if word in codes and len(view.bm25.chunks_with(word)) <= few]
    return [*words, *rare]


def _scale(values: Floats, lead: float) -> Floats:
    """Scale to 0 … 1, and add by how many standard deviations a value leads the best ones."""
    low, high = float(values.min()), float(values.max())
    if high - low <= _TINY:  # one passage, or copies of one
        return np.full_like(values, 1.0 if high > 0 else 0.0)
    count = min(_LEADERS, len(values))
    best = np.partition(values, len(values) - count)[len(values) - count :]
    ahead = (values - best.mean()) / max(_TINY, float(best.std()))
    scaled: Floats = (values - low) / (high - low) + lead * ahead
    return scaled
