"""Links names in a question to entities and to the passages about them."""

from dataclasses import dataclass, replace
from itertools import accumulate
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Floats
from clew.graph.name_matching import match_names
from clew.graph.page_owners import name_rarities
from clew.index.view import View
from clew.retrieve.question import (
    NAME_BREAKS,
    OPENING_WORDS,
    QUESTION_WORDS,
    WORK_KINDS,
    remove_names,
    span_key,
)
from clew.text.name_spans import find_capitalised_runs
from clew.text.names import CONNECTORS, Tokens, encode_name, tokenize_question
from clew.text.unicode import hash64
from clew.types import Found, Hit

if TYPE_CHECKING:
    from clew.context import Context

_MAX_NAME_TOKENS = 14  # tokens in a name
_MAX_QUESTION_TOKENS = 512  # tokens of a question that are searched for names
_MAX_CACHED_QUESTIONS = 64  # questions of which a view keeps the links
_ABOUT_PREFIX = "about "
_LONG_NAME = 2  # words that stand together by chance less than those of a shorter name
_TIE_SHARE = 0.97  # a passage with this share of the highest score counts as equally sure
_SURE_CLAIM = 0.84  # a claim at least this high settles which entity a name means
# Of the passages with a name's one word, or all its words, those that must use them as the name.
_WORD_SHARE, _PHRASE_SHARE = 0.2, 0.1


@dataclass(frozen=True, slots=True)
class NameLink:
    """Tokens `first` to `last` of the question name these entities, with these confidences."""

    first: int
    last: int
    entities: NDArray[np.int32]
    weights: Floats
    score: float
    """Of two overlapping names the one with the higher score wins."""


@dataclass(frozen=True)
class LinkNames:
    """Finds the entities that the question names, and the passages about them; no model."""

    hint: float = 1.0
    """Weight of the words beside a name ("the film Salt") in telling namesakes apart."""
    namesake: float = 0.6
    """Factor for passages that are about a name less surely than the surest one."""
    common: float = 0.5
    """A name less rare than this stands on so many pages that it tells none of them apart."""

    async def __call__(self, ctx: "Context", found: Found, /) -> Found:
        """Set `entities`, `chunks` to passages about them, `rest` to the question without names."""
        view = ctx.view
        t = tokenize_question(ctx.question)
        linked = link_names(view, ctx.question, t)
        weight: dict[int, float] = {}
        for link in linked:
            for entity, sure in zip(link.entities.tolist(), link.weights.tolist(), strict=True):
                weight[entity] = max(weight.get(entity, 0.0), sure)
        ranked = sorted(weight, key=lambda at: (-weight[at], at))
        rarity = [measure_rarity(view, t, link) for link in linked]
        common = [link for link, own in zip(linked, rarity, strict=True) if own.max() < self.common]
        return replace(
            found,
            entities=tuple(Hit(at, weight[at], "name") for at in ranked),
            chunks=tuple(
                hit
                for link, own in zip(linked, rarity, strict=True)
                for hit in self.passages_about(view, t, link, own)
            ),
            rest=remove_names(ctx.question, t, [(link.first, link.last) for link in linked]),
            specific=remove_names(ctx.question, t, [(link.first, link.last) for link in common]),
        )

    def passages_about(self, view: View, t: Tokens, link: NameLink, rarity: Floats) -> list[Hit]:
        """Return the passages about one name; `by` holds the name, so that they compete."""
        owners = view.links("owners")
        entities = link.entities.astype(np.int64)
        which, edge = owners.edges_of(entities)
        claim = owners.weights[edge] * link.weights[which]
        weight = claim * np.sqrt(rarity)[which]
        best: dict[int, float] = {}
        for chunk, sure in zip(owners.columns[edge].tolist(), weight.tolist(), strict=True):
            best[chunk] = max(best.get(chunk, 0.0), sure)
        if len(best) > 1:
            best = self._apply_hints(view, t, link, best)
        by = _ABOUT_PREFIX + t.key(link.first, link.last)
        # Where all names are merely similar, none is preferred.
        less = self.namesake if claim.max(initial=0) >= _SURE_CLAIM else 1.0
        least = _TIE_SHARE * max(best.values(), default=0.0)
        return [
            Hit(chunk, sure if sure >= least else sure * less, by) for chunk, sure in best.items()
        ]

    def _apply_hints(
        self, view: View, t: Tokens, link: NameLink, owners: dict[int, float]
    ) -> dict[int, float]:
        """Favour the passages that contain the words beside the name."""
        context = t.keys[max(0, link.first - 2) : link.first] + t.keys[link.last : link.last + 3]
        informative = [word for word in context if word not in QUESTION_WORDS or word in WORK_KINDS]
        if not informative:
            return owners
        chunks = np.array(list(owners), np.int32)
        share = np.mean(
            [np.isin(chunks, view.bm25.chunks_with(word)) for word in informative], axis=0
        )
        factor = np.exp(self.hint * (share - share.max()))
        return dict(zip(owners, (np.array(list(owners.values())) * factor).tolist(), strict=True))


def measure_rarity(view: View, t: Tokens, link: NameLink) -> Floats:
    """Return how rare linked entities are, by mentions, and by the words of a longer name.

    A site may write its own name on every page in a form that is no mention of a page's title.
    """
    own = view.rarity[link.entities]
    words = [word for word in t.keys[link.first : link.last] if word not in QUESTION_WORDS]
    if len(words) < _LONG_NAME:
        return own
    together = len(view.bm25.chunks_with_all(words))
    rarity: Floats = np.minimum(own, name_rarities(np.array([together]), view.count("chunk"))[0])
    return rarity


@dataclass(frozen=True, slots=True)
class _QuestionTokens:
    """A question's tokens, whether it has capitals at all, and its likely names."""

    tokens: Tokens
    has_capitals: bool
    name_runs: list[tuple[int, int]]
    run_lengths: list[int]
    """For each token the length of the run it is in."""


def link_names(view: View, question: str, t: Tokens) -> list[NameLink]:
    """Return the names in a question, in its order; of overlapping ones the likeliest stays.

    The view keeps the links of the last questions: several steps ask for the same.
    """
    cache: dict[str, list[NameLink]] = view.memo.setdefault("question name links", {})
    if question not in cache:
        if len(cache) >= _MAX_CACHED_QUESTIONS:
            cache.clear()
        cache[question] = _link_names(view, question, t)
    return cache[question]


def _link_names(view: View, question: str, t: Tokens) -> list[NameLink]:
    read = _analyse_question(question, t)
    spans = _find_candidates(read)
    keys = np.array([hash64(span_key(t, first, last)) for first, last in spans], np.uint64)
    found: dict[tuple[int, int], NameLink] = {}
    for span, (entities, weights, parts) in zip(spans, view.find_by_name_hash(keys), strict=True):
        if not len(entities):  # most phrases
            continue
        linked = _make_link(view, read, span, entities[~parts], weights[~parts])
        if linked is not None:
            found[span] = linked
    return _drop_overlaps([*found.values(), *_link_similar_names(view, read, found)])


def _analyse_question(question: str, t: Tokens) -> _QuestionTokens:
    cased = any(t.upper[1:])
    runs = find_capitalised_runs(question, t, {0}) if cased else _find_content_runs(question, t)
    runs = [run for run in runs if run[0] < _MAX_QUESTION_TOKENS]
    run_lengths = [0] * len(t)
    for first, last in runs:
        run_lengths[first:last] = [last - first] * (last - first)
    return _QuestionTokens(t, cased, runs, run_lengths)


def _find_content_runs(question: str, t: Tokens) -> list[tuple[int, int]]:
    """Return runs of content words, for a question without capitals."""
    found, first = [], 0
    for at in range(len(t) + 1):
        ends = at == len(t) or t.keys[at] in NAME_BREAKS
        if ends or (at > first and not question[t.ends[at - 1] : t.starts[at]].isspace()):
            if at - first > 1:
                found.append((first, at))
            first = at + 1 if ends else at
    return found


def _link_similar_names(
    view: View, read: _QuestionTokens, found: dict[tuple[int, int], NameLink]
) -> list[NameLink]:
    """Link runs that look like names but match no owned name to the most similar names."""
    t = read.tokens
    spans = []
    for first, last in read.name_runs:
        while first == 0 and last - first > 1 and t.keys[first] in OPENING_WORDS:
            first += 1
        exact = found.get((first, last))
        if exact is None or exact.score < last - first:
            spans.append((first, last))
    if not spans:
        return []
    codes = [encode_name(t.key(first, last)) for first, last in spans]
    starts = np.cumsum([0, *map(len, codes)])
    flat = np.array([code for one in codes for code in one], np.int64)
    asker, name, score = match_names(view.words, starts, flat)
    linked = []
    for number, (first, last) in enumerate(spans):
        rows = asker == number
        length = last - first
        if not rows.any() or (length == 1 and np.count_nonzero(rows) > 1):
            continue
        entities = view.arrays["word_entities"][name[rows]].astype(np.int32)
        sure = length * float(score[rows].max()) + 0.5 * (length > 1 and read.has_capitals)
        linked.append(NameLink(first, last, entities, score[rows], sure))
    return linked


def _drop_overlaps(candidates: list[NameLink]) -> list[NameLink]:
    """Return the best candidates that do not overlap, in the question's order."""
    taken: set[int] = set()
    chosen = []
    for candidate in sorted(candidates, key=lambda c: (-c.score, c.first, c.last)):
        span = set(range(candidate.first, candidate.last))
        if not span & taken:
            taken |= span
            chosen.append(candidate)
    return sorted(chosen, key=lambda c: c.first)


def _find_candidates(read: _QuestionTokens) -> list[tuple[int, int]]:
    """Return the spans that may be a name, by case and words.

    "place of birth" is a phrase even if a page has that title.
    """
    t, count = read.tokens, min(len(read.tokens), _MAX_QUESTION_TOKENS + _MAX_NAME_TOKENS)
    # How many tokens before each one say something, and have a capital or no spaces.
    telling = [0, *accumulate(key not in QUESTION_WORDS for key in t.keys[:count])]
    upper = [0, *accumulate(t.upper[:count])]
    marked = [0, *accumulate(map(or_, t.upper[:count], t.unspaced[:count]))]
    begin = marked[1] if count and not t.unspaced[0] else 0  # a capital that begins the question
    found = []
    for first in range(min(count, _MAX_QUESTION_TOKENS)):
        if _is_name_alone(read, first):
            found.append((first, first + 1))
        for last in range(first + 2, min(count, first + _MAX_NAME_TOKENS) + 1):
            if telling[last] == telling[first]:
                is_name = upper[last] - upper[first] == last - first
            else:
                marks = marked[last] - marked[first] - (begin if first == 0 else 0)
                is_name = marks > 0 or not read.has_capitals
            if is_name:
                found.append((first, last))
    return found


def _is_name_alone(read: _QuestionTokens, at: int) -> bool:
    t = read.tokens
    if t.keys[at] in QUESTION_WORDS or t.digit[at] or (at == 0 and t.keys[0] in OPENING_WORDS):
        return False
    return t.upper[at] or t.unspaced[at] or not read.has_capitals


def _make_link(
    view: View,
    read: _QuestionTokens,
    span: tuple[int, int],
    entities: NDArray[np.int32],
    weights: Floats,
) -> NameLink | None:
    if not len(entities):
        return None
    degrees = view.links("owners").degrees_of(entities)
    owned = bool((degrees > 0).any())
    score = _score_span(read, *span, owned)
    if score <= 0 or _is_common_phrase(view, read, *span, entities):
        return None
    if owned:
        # Variants of a name that no passage is about would only add noise.
        keep = (degrees > 0) | (weights >= 1)
        entities, weights = entities[keep], weights[keep]
    return NameLink(*span, entities, weights, score)


def _is_common_phrase(
    view: View, read: _QuestionTokens, first: int, last: int, entities: NDArray[np.int32]
) -> bool:
    """Whether texts use these words mostly otherwise than as this name.

    Asked where capitals do not tell: without any, and at the beginning of the question.
    """
    if read.has_capitals and (first > 0 or last - first > 1):
        return False
    words = [word for word in read.tokens.keys[first:last] if word not in QUESTION_WORDS]
    together = view.bm25.chunks_with_all(words)
    as_name = int(view.links("entity_chunk").degrees_of(entities).sum())
    least = _WORD_SHARE if len(words) == 1 else _PHRASE_SHARE
    return as_name < least * len(together)


def _score_span(read: _QuestionTokens, first: int, last: int, owned: bool) -> float:
    """Prefer longer names, then names that passages are about; parts of longer names lose."""
    t, length = read.tokens, last - first
    if length == 1 and read.run_lengths[first] > 1 and read.has_capitals:
        return 0.6 if owned else 0.0
    if owned:
        return length + 0.5
    if length == 1:
        return 0.9
    loose = CONNECTORS if read.has_capitals else CONNECTORS | QUESTION_WORDS
    return 0.0 if t.keys[first] in loose or t.keys[last - 1] in loose else 0.9 * length
