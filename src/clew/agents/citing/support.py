"""Find the passage spans that support a sentence, by word overlap and entailment."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from clew.agents.citing.entailment import Quote, find_entailing_sentences, is_entailed, is_negated
from clew.text.name_spans import find_name_spans
from clew.text.names import (
    FORM,
    HEAD,
    STOP_WORDS,
    name_key,
    short_forms,
    strip_disambiguation,
    tokenize,
)
from clew.text.places import find_breadcrumbs, page_at
from clew.text.sentences import sentence_spans
from clew.text.structure import CRUMB_SEPARATOR
from clew.text.unicode import split_words
from clew.types import LITERAL_TYPES, Citation, Passage

# Shares of the sentence's content words (longer than three letters) that must be found.
MIN_SHARE = 0.4
# A passage that the model did not name needs more of them to be cited instead.
_CLEAR_SHARE = 0.6
_MIN_ANSWER_SHARE = 0.75
_FEW_WORDS = 4  # of an answer with fewer words all must be found
_YEAR_DIGITS = 4  # digits
# Capitalised at the beginning of a question, and no part of a name behind them.
_OPENERS = STOP_WORDS | set("did does has have had can could will would should may".split())
# Between two names that are asked about alike: "A and the film B", "A、B".
_JOINT = re.compile(
    r"[\"”’')\s]*(?:,|、|，|\band\b|\bor\b|&|和|与|與|及|跟)"
    r"(?:\s*(?:,|\band\b|\bor\b))?(?:\s+[a-z]+){0,3}[\"“‘'(\s]*",
    re.IGNORECASE,
)
_TWO_SENTENCE_GAIN = 0.15  # extra share that two sentences need to be quoted instead of one


@dataclass(frozen=True, slots=True)
class SupportSpan:
    """A span of a passage and the share of a sentence's words it contains."""

    start: int
    end: int
    share: float


def find_best_span(sentence: str, passage: Passage) -> SupportSpan:
    """Return the sentence of the passage, or two in a row, with the most words of `sentence`."""
    wanted = _content_words(sentence)
    # Words of the title are given: the passage must contain the rest.
    wanted = wanted - set(split_words(passage.title)) or wanted
    spans = sentence_spans(passage.text)
    pairs = [(one[0], two[1]) for one, two in zip(spans, spans[1:], strict=False)]
    best = SupportSpan(0, 0, 0.0)
    for start, end in spans:
        share = _overlap_share(wanted, passage.text[start:end])
        best = max(best, SupportSpan(start, end, share), key=lambda place: place.share)
    for start, end in pairs:
        share = _overlap_share(wanted, passage.text[start:end])
        if share > best.share + _TWO_SENTENCE_GAIN:
            best = SupportSpan(start, end, share)
    return best


def measure_overlap(sentence: str, text: str) -> float:
    """Return the share of a sentence's content words that a text contains."""
    return _overlap_share(_content_words(sentence), text)


def _overlap_share(wanted: set[str], text: str) -> float:
    return len(wanted & set(split_words(text))) / max(1, len(wanted))


def _content_words(sentence: str) -> set[str]:
    found = split_words(sentence)
    long = {word for word in found if len(word) > 3 or not word.isascii() or word.isdigit()}
    return long or set(found)


def contains_answer(answer: str, text: str) -> bool:
    """Whether a text contains the answer: its words in a row, or most of them close together.

    All its numbers, names and negations must be among them.
    """
    text_words, wanted = split_words(text), split_words(answer)
    if not wanted:
        return False
    if f" {' '.join(wanted)} " in f" {' '.join(text_words)} ":
        return True
    distinct = set(wanted)
    most = len(distinct) if len(distinct) < _FEW_WORDS else _MIN_ANSWER_SHARE * len(distinct)
    width = len(wanted) + 1 if len(distinct) < _FEW_WORDS else 2 * len(wanted)
    must = {word for word in distinct if word.isdigit() or is_negated(word)} | _name_words(answer)
    spots = [at for at, word in enumerate(text_words) if word in distinct]
    near = (
        {text_words[at] for at in spots[i : i + width] if at < first + width}
        for i, first in enumerate(spots)
    )
    return any(len(some) >= most and must <= some for some in near)


def _name_words(text: str) -> set[str]:
    t = tokenize(text)
    spans = zip(t.keys, t.upper, t.starts, t.ends, strict=True)
    return {
        w for key, up, a, b in spans if up and key not in STOP_WORDS for w in split_words(text[a:b])
    }


def mentions_name(name: str, text: str) -> bool:
    """Whether a text mentions a name, in full or by an unambiguous form of it."""
    forms = _list_forms(name)
    here = f" {name_key(text)} "
    return not forms or any(form in here for form in forms)


@lru_cache(maxsize=2048)  # a name is looked for in many texts
def _list_forms(name: str) -> list[str]:
    """Return the unambiguous forms of a name as they stand between words, in full first."""
    bare = strip_disambiguation(name)
    key = name_key(bare)
    forms = (one for one in short_forms(bare) if one.kind in (FORM, HEAD))
    several = [form.key for form in forms if len(form.key.split()) > 1]
    return [f" {one} " for one in (key, *several)] if key else []


def has_title(passage: Passage, name: str) -> bool:
    """Whether a passage's page has this name as title."""
    return name_key(strip_disambiguation(passage.title)) == name_key(strip_disambiguation(name))


def find_names(question: str) -> list[str]:
    """Return the names in a question, without the words that open it ("Is the Tarn …")."""
    return [question[start:end] for start, end in _find_name_places(question)]


def _find_name_places(question: str) -> list[tuple[int, int]]:
    t = tokenize(question)
    places = []
    for span in find_name_spans(question, t, {0}):
        first = span.first
        while first < span.last and t.keys[first] in _OPENERS:
            first += 1
        if first < span.last and span.type not in LITERAL_TYPES:
            places.append((t.starts[first], t.ends[span.last - 1]))
    return places


def split_subjects(question: str) -> list[tuple[str, str]]:
    """Return the names that "and", "or" or a comma joins, each with what is asked of them all.

    None if the question has one subject.
    """
    places = _find_name_places(question)
    joined = [
        {one, other}
        for one, other in zip(places, places[1:], strict=False)
        if _JOINT.fullmatch(question[one[1] : other[0]])
    ]
    subjects = [question[start:end] for start, end in sorted(set().union(*joined))]
    rest = question
    for name in subjects:
        rest = rest.replace(name, " ")
    return [(name, rest) for name in subjects]


def find_about(asked: str, name: str, passages: Sequence[Passage]) -> Citation | None:
    """Cite the sentence about a name that has most words of what is asked.

    On a page with that title every sentence is about it, elsewhere only one that mentions it.
    """
    best: tuple[float, Citation] | None = None
    for passage in passages:
        own = has_title(passage, name)
        for start, end in sentence_spans(passage.text):
            quote = passage.text[start:end]
            if own or mentions_name(name, quote):
                share = measure_overlap(asked, quote)
                if (own or share) and (best is None or share + own > best[0]):
                    best = share + own, make_citation(passage, SupportSpan(start, end, share))
    return best[1] if best else None


def make_citation(passage: Passage, place: SupportSpan) -> Citation:
    """Cite a span, with the quote cut from the passage itself."""
    quote = passage.text[place.start : place.end]
    start = passage.start + place.start
    return Citation(passage.doc, passage.id, start, start + len(quote), quote)


def select_passages(numbers: Iterable[int], passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages with these numbers, from 1; numbers of none are ignored."""
    return [passages[n - 1] for n in dict.fromkeys(numbers) if 1 <= n <= len(passages)]


def find_citations(
    sentence: str, sources: Sequence[int], passages: Sequence[Passage]
) -> list[Citation]:
    """Return citations of the named passages (numbered from 1) that support the sentence.

    The passage with the most words comes first; another is cited only for what it adds.
    """
    named = select_passages(sources, passages)
    places = [(find_best_span(sentence, passage), passage) for passage in named]
    places = [pair for pair in places if pair[0].share >= MIN_SHARE]
    if not _spans_entail(sentence, places):
        quotes = find_entailing_sentences(sentence, named)
        return [make_citation(q.passage, SupportSpan(q.start, q.end, 1.0)) for q in quotes]
    uncovered = _content_words(sentence)
    found: list[Citation] = []
    for place, passage in sorted(places, key=lambda pair: -pair[0].share):
        cited = make_citation(passage, place)
        covered = uncovered & {*split_words(cited.quote), *split_words(passage.title)}
        if covered or not found:
            found.append(cited)
            uncovered = uncovered - covered
    return found


def _spans_entail(sentence: str, places: Sequence[tuple[SupportSpan, Passage]]) -> bool:
    """Whether one of the spans entails the sentence, or all of them together do."""
    quotes = [Quote(passage, place.start, place.end) for place, passage in places]
    return any(is_entailed(sentence, [quote]) for quote in quotes) or is_entailed(sentence, quotes)


def contains_same_names(sentence: str, passage: Passage, quote: str) -> bool:
    """Whether every name and number of a sentence stands in the quote or the passage's title."""
    t = tokenize(sentence)
    informative = {
        key
        for at, key in enumerate(t.keys)
        if t.digit[at] or t.unspaced[at] or (t.upper[at] and at > 0)
    }
    return informative <= {*name_key(quote).split(), *name_key(passage.title).split()}


def has_invented_name(sentence: str, texts: Sequence[str]) -> bool:
    """Whether a sentence has a name of two or more words, or a year, that no text contains.

    Small models copy names from the example in their prompt. A single word may be another form of
    a known one ("Norwegian" for "Norway").
    """
    known_words = {word for text in texts for word in name_key(text).split()}
    t = tokenize(sentence)
    unseen = [key not in known_words for key in t.keys]
    upper = [bool(flag) for flag in t.upper]
    pairs = zip(range(len(upper)), range(1, len(upper)), strict=False)
    if any(upper[a] and upper[b] and unseen[a] and unseen[b] for a, b in pairs):
        return True
    return any(
        s and len(k) == _YEAR_DIGITS and k.isdigit() for s, k in zip(unseen, t.keys, strict=True)
    )


def find_best_citation(sentence: str, passages: Sequence[Passage]) -> Citation | None:
    """Return the best supporting citation in any passage, named by the model or not."""
    places = [(find_best_span(sentence, passage), passage) for passage in passages]
    places = [
        pair for pair in places if pair[0].share >= _CLEAR_SHARE and _spans_entail(sentence, [pair])
    ]
    best = max(places, key=lambda pair: pair[0].share, default=None)
    return None if best is None else make_citation(best[1], best[0])


def _adds_title(passage: Passage, quote: str, crumbs: Sequence[str]) -> bool:
    """Whether a document's title says what neither its name, its sections nor the quote do."""
    title = name_key(passage.title)
    told = [name_key(one) for one in (*crumbs, quote)]
    if not title or any(title in one or (one and one in title) for one in told):
        return False
    name = name_key(passage.doc.rpartition("/")[2])
    return title not in name and name.partition(".")[0] not in title


def place_citations(
    citations: Iterable[Citation], passages: Iterable[Passage]
) -> tuple[Citation, ...]:
    """Return the citations with their section, the term they define and their page."""
    homes = {passage.id: passage for passage in passages}
    found = []
    for cited in citations:
        if (passage := homes.get(cited.chunk)) is not None and not cited.heading:
            at = max(0, cited.start - passage.start)
            crumbs = find_breadcrumbs(passage.doc, passage.text, at, passage.heading)
            if _adds_title(passage, cited.quote, crumbs):
                crumbs = (" ".join(passage.title.split()), *crumbs)
            page = page_at(passage.text, at, passage.page)
            cited = replace(cited, heading=CRUMB_SEPARATOR.join(crumbs), page=page)
        found.append(cited)
    return tuple(found)
