"""Links a question to graph entities: by exact name, alias, similar spelling, or vector.

Unlike `link_names.LinkNames` it needs no passages about a name, accepts lower-case names, and
records for each link how it was made and how many other entities the name could mean.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context, TraceStep
from clew.errors import InputError, UnknownNameError
from clew.graph.name_matching import NgramIndex, build_ngram_index
from clew.graph.traverse import expand_entities
from clew.retrieve.graph_cache import build_traversal
from clew.retrieve.labels import has_vectors, load_short_texts
from clew.retrieve.lookup import require_elements
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.question import QUESTION_WORDS, locate_names, remove_names
from clew.retrieve.rank import top_positions
from clew.text.names import Tokens, name_key, tokenize, tokenize_question
from clew.text.unicode import hash64, normalize_name
from clew.types import Found, Hit

# With more names than this no n-gram index is built; only vectors find misspelt names.
_MAX_INDEXED_NAMES = 500_000
_MAX_SUGGESTIONS = 5
_MAX_MATCHES = 3
_MAX_COMPARED = 48  # names that are compared with one that may be misspelt
_MAX_ALIKE = 16  # entities of one name that are told apart
_MAX_NAME_TOKENS = 16  # tokens in a name
_MAX_QUESTION_TOKENS = 512  # tokens of a question that are searched for names
_NAMED_RELATIONS = 5  # relations that are told where a question names nothing
_STEM_CHARS = 4  # first letters that words of one stem share
_WEAK_SCORE = 0.1  # score of a name that is made of words which ask
_DIGITS = re.compile(r"\d+")
_EXACT_SCORE, _CASE_SCORE, _LOOSE_SCORE = (
    1.0,
    0.95,
    0.8,
)  # confidence by how exactly the spelling agrees


@dataclass(frozen=True, slots=True)
class EntityLink:
    """Tokens `first` to `last` name these entities, with confidences and the kind of match."""

    first: int
    last: int
    entities: tuple[tuple[int, float], ...]
    how: str
    score: float
    others: int = 0
    """Number of further entities with the name but a less similar spelling."""
    alike: tuple[int, ...] = ()
    """All entities with the name that are as good, also those that are not followed."""


@dataclass(frozen=True)
class LinkEntities:
    """Sets `entities` to those the question names, or to those whose names are given."""

    likeness: float = 0.6
    """Least share of common n-grams at which a name counts as a misspelling."""
    cosine: float = 0.75
    """Least cosine at which an entity counts as meant, where no spelling is similar."""
    most: int = 4
    """Entities of one name."""
    names: int = 12
    """Names of one question that are followed; the trace says how many are not."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities`, `names` as the question has them, and `rest`; raise if none is known."""
        if found.entities:
            return found
        require_elements(ctx, "entity")
        t = tokenize_question(ctx.question)
        if ctx.given_entities:
            named = await self._link_given_names(ctx)
        else:
            named = await self._link_exact_names(ctx, t) or await self._link_fuzzy_names(ctx, t)
        if not named:
            error = InputError if ctx.given_entities else UnknownNameError
            raise error(await _unknown_name_message(ctx))
        spans = [(link.first, link.last) for link in named if link.last > link.first]
        if len(named) > self.names:
            said = f"{len(named) - self.names} of {len(named)} names not used"
            ctx.trace.append(TraceStep("link", "", said, 0.0))
            best = sorted(named, key=lambda link: (-link.score, -link.first))[: self.names]
            named = sorted(best, key=lambda link: link.first)
        named = _choose_by_neighbours(ctx, named)
        return replace(
            found,
            entities=_to_hits(ctx.question, t, named),
            names=tuple(ctx.question[t.starts[a] : t.ends[b - 1]] for a, b in spans),
            rest=remove_names(ctx.question, t, spans),
            namesakes=tuple(link.alike for link in named if len(link.alike) > 1),
        )

    async def _link_given_names(self, ctx: Context) -> list[EntityLink]:
        """Link the names the caller gave, wherever they stand in the question."""
        named = []
        for name in ctx.given_entities:
            first, last = (locate_names(ctx.question, [name]) or [(0, 0)])[0]
            [matches] = ctx.view.find_by_own_name([name])
            matched = await _match_spelling(ctx, name, matches.tolist())
            if matched is None:
                fuzzy = await match_fuzzily(ctx, name, self.likeness, self.cosine)
                matched = fuzzy.entities, fuzzy.how, 0
            if matched[0]:
                alike = tuple(at for at, _ in matched[0])
                link = EntityLink(first, last, matched[0], matched[1], 1.0, matched[2], alike)
                named.append(link)
        return named

    async def _link_exact_names(self, ctx: Context, t: Tokens) -> list[EntityLink]:
        """Link names and aliases that occur verbatim in the question."""
        spans = [
            (first, last)
            for first in range(min(len(t), _MAX_QUESTION_TOKENS))
            for last in range(first + 1, min(len(t), first + _MAX_NAME_TOKENS) + 1)
        ]
        keys = np.array(
            [hash64(name_key(_span_text(ctx.question, t, *span))) for span in spans], "u8"
        )
        said = await _load_relation_words(ctx)
        candidates = []
        for span, (entities, weights, parts) in zip(
            spans, ctx.view.find_by_name_hash(keys), strict=True
        ):
            full = ~parts
            if full.any():
                likely = list(zip(entities[full].tolist(), weights[full].tolist(), strict=True))
                candidates.append(await self._make_candidate(ctx, t, span, likely, said))
        known = [one for one in candidates if one is not None]
        return self._select_links(t, known)

    async def _make_candidate(
        self,
        ctx: Context,
        t: Tokens,
        span: tuple[int, int],
        likely: list[tuple[int, float]],
        said: "_RelationWords",
    ) -> EntityLink | None:
        surface = _span_text(ctx.question, t, *span)
        sure = max(weight for _, weight in likely)
        named = [at for at, weight in likely if weight >= sure]
        matched = await _match_spelling(
            ctx, surface, named, _trailing_punctuation(ctx.question, t, span[1])
        )
        if matched is None:  # an alias or a shorter form
            best = tuple((at, sure) for at in named[:_MAX_ALIKE])
            matched = best, "alias", len(named) - len(best[: self.most])
        score = _score_span(t, *span, matched[1])
        if not _has_capital(t, *span) and said.contain(t.keys[span[0] : span[1]]):
            score = min(score, _WEAK_SCORE * score)
        if score <= 0:
            return None
        alike = tuple(at for at, _ in matched[0][:_MAX_ALIKE])
        return EntityLink(*span, matched[0][: self.most], matched[1], score, matched[2], alike)

    def _select_links(self, t: Tokens, candidates: list[EntityLink]) -> list[EntityLink]:
        """Select the best links that do not overlap; weak ones only where there is no other."""
        taken: set[int] = set()
        chosen: list[EntityLink] = []
        for one in sorted(candidates, key=lambda c: (-c.score, -c.first)):
            span = set(range(one.first, one.last))
            if span & taken:
                continue
            if not chosen or (one.score > 1 and _is_strong_name(t, one)):
                chosen.append(one)
                taken |= span
        return sorted(chosen, key=lambda c: c.first)

    async def _link_fuzzy_names(self, ctx: Context, t: Tokens) -> list[EntityLink]:
        """Link runs that look like names by spelling, then by vector."""
        found = []
        for first, last in _candidate_spans(t):
            fuzzy = await match_fuzzily(
                ctx, _span_text(ctx.question, t, first, last), self.likeness, self.cosine
            )
            if fuzzy.entities:
                alike = tuple(at for at, _ in fuzzy.entities)
                meant = fuzzy.entities[:_MAX_MATCHES]
                found.append(EntityLink(first, last, meant, fuzzy.how, fuzzy.score, alike=alike))
        return self._select_links(t, found)


def _choose_by_neighbours(ctx: Context, named: Sequence[EntityLink]) -> list[EntityLink]:
    """Return the links; of entities with one name those beside another that the question names.

    "Paris, Texas" is the one that has a fact with Texas.
    """
    found = []
    for link in named:
        others = sorted({at for one in named if one is not link for at, _ in one.entities})
        if len(link.alike) > 1 and others:
            edges = expand_entities(build_traversal(ctx.view), np.array(link.alike, np.int64))
            beside = set(edges.source[np.isin(edges.target, others)].tolist())
            meant = tuple(at for place, at in enumerate(link.alike) if place in beside)
            if meant:
                own = dict(link.entities)
                sure = max(own.values())
                entities = tuple((at, own.get(at, sure)) for at in meant[: len(own)])
                link = replace(link, entities=entities, alike=meant)
        found.append(link)
    return found


def _trailing_punctuation(question: str, t: Tokens, last: int) -> str:
    """Return the punctuation right after a token; it may belong to a name ("Taxi!")."""
    found = re.match(r"[^\w\s]*", question[t.ends[last - 1] :])
    return found[0] if found else ""


async def _match_spelling(
    ctx: Context, surface: str, entities: Sequence[int], marks: str = ""
) -> tuple[tuple[tuple[int, float], ...], str, int] | None:
    """Of entities with one loose name return those spelt most alike; None if only aliases match."""
    keys = ctx.view.keys("entity")
    fetched = await ctx.snapshot.entities([int(keys[at]) for at in entities])
    tiers: dict[float, list[int]] = {}
    for at in dict.fromkeys(entities):
        name = fetched[int(keys[at])].name
        if name == surface or (marks and name == surface + marks):
            tiers.setdefault(_EXACT_SCORE, []).append(at)
        elif normalize_name(name) == normalize_name(surface):
            tiers.setdefault(_CASE_SCORE, []).append(at)
        elif name_key(name) == name_key(surface):
            tiers.setdefault(_LOOSE_SCORE, []).append(at)
    if not tiers:
        return None
    best = max(tiers)
    if best == _EXACT_SCORE and marks:
        names = {at: fetched[int(keys[at])].name for at in tiers[best]}
        with_marks = [at for at, name in names.items() if name == surface + marks]
        tiers[best] = with_marks or tiers[best]
    how = {
        _EXACT_SCORE: "exact",
        _CASE_SCORE: "exact but for case",
        _LOOSE_SCORE: "exact but for marks",
    }[best]
    others = sum(map(len, tiers.values())) - len(tiers[best])
    return tuple((at, best) for at in tiers[best]), how, others


def _score_span(t: Tokens, first: int, last: int, how: str) -> float:
    """Score a span: longer first, then capitals and exact spelling; 0 for question words."""
    length = last - first - (last - first > 1 and t.keys[first] == "the" and not t.upper[first])
    capital = _has_capital(t, first, last)
    exact = how == "exact" and any(t.upper)  # without capitals no spelling is exact
    only_question_words = all(t.keys[at] in QUESTION_WORDS for at in range(first, last))
    after_article = length == 1 and first > 0 and t.keys[first - 1] in ("what", "which", "the")
    if only_question_words and not (capital and exact and length > 1):
        return _WEAK_SCORE * (length > 2 and how != "alias")
    return length + capital + 0.5 * exact - 0.5 * (how == "alias") - 0.3 * after_article


def _has_capital(t: Tokens, first: int, last: int) -> bool:
    return any(t.upper[at] or t.digit[at] for at in range(first, last) if at > 0)


@dataclass(frozen=True, slots=True)
class _RelationWords:
    """The words of the graph's relations: in a question they ask, though entities have them too."""

    texts: frozenset[str]
    words: frozenset[str]
    stems: frozenset[str]

    def contain(self, keys: Sequence[str]) -> bool:
        """Tell whether these words are a relation, or one word with the stem of one."""
        bare = [key for key in keys if key != "the"]
        if len(bare) != 1:
            return " ".join(bare) in self.texts
        return bare[0] in self.words or (
            len(bare[0]) > _STEM_CHARS and bare[0][:_STEM_CHARS] in self.stems
        )


def _key_of_words(text: str) -> str:
    """Return the key of a text in lower case: of plain words itself, as of most relations."""
    plain = text.isascii() and text.replace(" ", "").isalnum() and not text.startswith("the ")
    return text if plain else name_key(text)


async def _load_relation_words(ctx: Context) -> _RelationWords:
    """Return the words of all relations, once per generation."""
    memo = ctx.view.memo
    if "relation words" not in memo:
        texts = frozenset(map(_key_of_words, await load_short_texts(ctx)))
        words = frozenset(" ".join(texts).split()) - QUESTION_WORDS
        stems = frozenset(word[:_STEM_CHARS] for word in words if len(word) > _STEM_CHARS)
        memo["relation words"] = _RelationWords(texts, words, stems)
    found: _RelationWords = memo["relation words"]
    return found


def _is_strong_name(t: Tokens, named: EntityLink) -> bool:
    """Decide whether a name counts beside a better one: by capitals, or several words."""
    inside = range(named.first, named.last)
    if any(t.upper[1:]):
        return any(t.upper[at] for at in inside if at > 0)
    return sum(key != "the" for key in t.keys[named.first : named.last]) > 1


def _candidate_spans(t: Tokens) -> list[tuple[int, int]]:
    """Return runs without question words, longest first: possible misspelt names."""
    runs, first = [], 0
    for at in range(len(t) + 1):
        if at == len(t) or (t.keys[at] in QUESTION_WORDS and not t.upper[at]):
            if at > first:
                runs.append((first, at))
            first = at + 1
    inner = [
        (a, b)
        for first, last in runs
        for a in range(first, last)
        for b in range(a + 1, min(last, a + 6) + 1)
        if any(t.upper[i] for i in range(a, b)) or not any(t.upper[1:])
    ]
    return sorted(dict.fromkeys([*runs, *inner]), key=lambda span: (span[0] - span[1], span))[:24]


def _span_text(question: str, t: Tokens, first: int, last: int) -> str:
    return question[t.starts[first] : t.ends[last - 1]]


def _to_hits(question: str, t: Tokens, named: Sequence[EntityLink]) -> tuple[Hit, ...]:
    hits: dict[int, Hit] = {}
    for link in named:
        quoted = (
            f" “{_span_text(question, t, link.first, link.last)}”" if link.last > link.first else ""
        )
        shared = len(link.entities) + link.others
        ambiguity = f", one of {shared} with this name" if shared > 1 else ""
        for at, confidence in link.entities:
            hits.setdefault(at, Hit(at, confidence, f"{link.how}{quoted}{ambiguity}"))
    return tuple(sorted(hits.values(), key=lambda hit: (-hit.score, hit.at)))


async def _unknown_name_message(ctx: Context) -> str:
    near = await suggest_names(ctx, " ".join(ctx.given_entities) or ctx.question)
    relations = sorted(await load_short_texts(ctx))[:_NAMED_RELATIONS]
    known = [
        f"{what}: {', '.join(map(repr, some))}"
        for what, some in (("similar names", near), ("relations", relations))
        if some
    ]
    return "the question names nothing in this knowledge base; ask again with a known name" + (
        f" ({'; '.join(known)})" if known else ""
    )


@dataclass(frozen=True, slots=True)
class FuzzyMatch:
    """Entities a text may mean, with confidences, and the kind of match."""

    entities: tuple[tuple[int, float], ...] = ()
    how: str = ""
    score: float = 0.0


async def match_fuzzily(ctx: Context, text: str, likeness: float, cosine: float) -> FuzzyMatch:
    """Return the entities with a similar spelling, or else the one nearest by vector."""
    if not ctx.view.count("entity"):  # vectors of removed entities may still be stored
        return FuzzyMatch()
    index = await _get_ngram_index(ctx)
    if index is not None:
        at, share = index.find_similar(text, _MAX_COMPARED)
        like = [(int(a), float(s)) for a, s in zip(at, share, strict=True)]
        near = [pair for pair in like if pair[1] >= likeness]
        near = await _keep_same_digits(ctx, text, near)
        if near:
            top = [pair for pair in near if pair[1] >= near[0][1] - 0.02]
            top = (await _find_longer_names(ctx, text, near[0][0], like) or top)[:_MAX_ALIKE]
            return FuzzyMatch(tuple(top), "spelt like", near[0][1] * len(text.split()))
    if ctx.embed is None or not has_vectors(ctx.view, "entity"):
        return FuzzyMatch()
    nearest, scores = ctx.nearest("entity", await ctx.vector(text), 1)
    if not len(nearest) or scores[0] < cosine:
        return FuzzyMatch()
    sure = float(scores[0])
    meant = await _keep_same_digits(ctx, text, [(int(nearest[0]), sure)])
    return FuzzyMatch(tuple(meant), "means", sure * 0.5 * len(text.split()))


async def _find_longer_names(
    ctx: Context, text: str, best: int, like: Sequence[tuple[int, float]]
) -> list[tuple[int, float]]:
    """Return the entities whose names have all words of a text, if the best has: "Thorn" is each.

    None where the best is only spelt alike.
    """
    labels = await fetch_entity_labels(ctx, [at for at, _ in like])
    said = set(tokenize(text).keys)
    having = [pair for pair in like if said <= set(tokenize(labels[pair[0]].name).keys)]
    return having if any(at == best for at, _ in having) else []


async def _keep_same_digits(
    ctx: Context, text: str, near: list[tuple[int, float]]
) -> list[tuple[int, float]]:
    """Return the entities with the digits of a text: SHP-2040 is no misspelt SHP-1002."""
    digits = _DIGITS.findall(text)
    if not digits or not near:
        return near
    keys = ctx.view.keys("entity")
    fetched = await ctx.snapshot.entities([int(keys[at]) for at, _ in near])
    return [
        (at, share)
        for at, share in near
        if sorted(_DIGITS.findall(fetched[int(keys[at])].name)) == sorted(digits)
    ]


async def _get_ngram_index(ctx: Context) -> NgramIndex | None:
    """Return the n-gram index of all names, built on first use; None with too many names."""
    memo, keys = ctx.view.memo, ctx.view.keys("entity").tolist()
    if len(keys) > _MAX_INDEXED_NAMES:
        return None
    if "letters" not in memo:
        fetched = await ctx.snapshot.entities(keys)
        memo["letters"] = build_ngram_index([fetched[key].name for key in keys])
    index: NgramIndex = memo["letters"]
    return index


async def suggest_names(ctx: Context, text: str) -> list[str]:
    """Suggest names similar to a text, or else the most frequent names."""
    similar = await _match_letters(ctx, text)
    ranked = sorted(similar, key=lambda at: (-similar[at], at))[:_MAX_SUGGESTIONS]
    if not ranked:
        degrees = ctx.view.links("entity_fact").degrees()
        ranked = top_positions(
            degrees.astype(np.float32), ctx.view.keys("entity"), _MAX_SUGGESTIONS
        ).tolist()
    keys = [int(ctx.view.keys("entity")[at]) for at in ranked]
    fetched = await ctx.snapshot.entities(keys)
    return [fetched[key].name for key in keys]


async def _match_letters(ctx: Context, text: str) -> dict[int, float]:
    """Return entities whose names share n-grams with parts of a text."""
    index = await _get_ngram_index(ctx)
    if index is None:
        return {}
    t = tokenize(text)
    content_words = [key for key in t.keys if key not in QUESTION_WORDS]
    phrases = [" ".join(content_words[a : a + 3]) for a in range(len(content_words))] or [text]
    similar: dict[int, float] = {}
    for part in [text, *phrases, *content_words][:40]:
        for at, share in zip(*index.find_similar(part, _MAX_SUGGESTIONS), strict=True):
            similar[int(at)] = max(similar.get(int(at), 0.0), float(share))
    return similar
