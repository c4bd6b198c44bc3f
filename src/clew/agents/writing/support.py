"""Find the passage spans that support a sentence, by word overlap and entailment."""

from collections.abc import Sequence
from dataclasses import dataclass

from clew.agents.writing.bearing import Quote, borne, gathered
from clew.agents.writing.denial import denies
from clew.names import FORM, HEAD, LIGHT, forms, name_key, plain_title, tokens
from clew.sentences import sentence_spans
from clew.text import words
from clew.types import Citation, Passage

# Shares of the sentence's content words (longer than three letters) that must be found.
ENOUGH = 0.4
# A passage that the model did not name needs more of them to be cited instead.
CLEARLY = 0.6
_MOST = 0.75
_FEW = 4  # of an answer with fewer words all must be found
_YEAR = 4  # digits
_WORTH_TWO = 0.15  # extra share that two sentences need to be quoted instead of one


@dataclass(frozen=True, slots=True)
class Place:
    """A span of a passage and the share of a sentence's words it contains."""

    start: int
    end: int
    share: float


def best_place(sentence: str, passage: Passage) -> Place:
    """Return the sentence of the passage, or two in a row, with the most words of `sentence`."""
    wanted = _content(sentence)
    # Words of the title are given: the passage must contain the rest.
    wanted = wanted - set(words(passage.title)) or wanted
    spans = sentence_spans(passage.text)
    pairs = [(one[0], two[1]) for one, two in zip(spans, spans[1:], strict=False)]
    best = Place(0, 0, 0.0)
    for start, end in spans:
        share = _share(wanted, passage.text[start:end])
        best = max(best, Place(start, end, share), key=lambda place: place.share)
    for start, end in pairs:
        share = _share(wanted, passage.text[start:end])
        if share > best.share + _WORTH_TWO:
            best = Place(start, end, share)
    return best


def share_of(sentence: str, text: str) -> float:
    """Return the share of a sentence's content words that a text contains."""
    return _share(_content(sentence), text)


def _share(wanted: set[str], text: str) -> float:
    return len(wanted & set(words(text))) / max(1, len(wanted))


def _content(sentence: str) -> set[str]:
    found = words(sentence)
    long = {word for word in found if len(word) > 3 or not word.isascii() or word.isdigit()}
    return long or set(found)


def said_in(answer: str, text: str) -> bool:
    """Whether a text contains the answer: its words in a row, or most of them close together.

    All its numbers, names and negations must be among them.
    """
    text_words, wanted = words(text), words(answer)
    if not wanted:
        return False
    if f" {' '.join(wanted)} " in f" {' '.join(text_words)} ":
        return True
    distinct = set(wanted)
    most = len(distinct) if len(distinct) < _FEW else _MOST * len(distinct)
    reach = len(wanted) + 1 if len(distinct) < _FEW else 2 * len(wanted)
    must = {word for word in distinct if word.isdigit() or denies(word)} | _capitalised(answer)
    spots = [at for at, word in enumerate(text_words) if word in distinct]
    near = (
        {text_words[at] for at in spots[i : i + reach] if at < first + reach}
        for i, first in enumerate(spots)
    )
    return any(len(some) >= most and must <= some for some in near)


def _capitalised(text: str) -> set[str]:
    """Return the words of the names in a text."""
    t = tokens(text)
    spans = zip(t.keys, t.upper, t.starts, t.ends, strict=True)
    return {w for key, up, a, b in spans if up and key not in LIGHT for w in words(text[a:b])}


def mentions(name: str, text: str) -> bool:
    """Whether a text mentions a name, in full or by an unambiguous form of it."""
    bare = plain_title(name)
    here = f" {name_key(text)} "
    if not name_key(bare) or f" {name_key(bare)} " in here:
        return True
    return any(
        f" {form.key} " in here
        for form in forms(bare)
        if form.kind in (FORM, HEAD) and len(form.key.split()) > 1
    )


def titled(passage: Passage, name: str) -> bool:
    """Whether a passage's page has this name as title."""
    return name_key(plain_title(passage.title)) == name_key(plain_title(name))


def citation(passage: Passage, place: Place) -> Citation:
    """Cite a span, with the quote cut from the passage itself."""
    quote = passage.text[place.start : place.end]
    start = passage.start + place.start
    return Citation(passage.doc, passage.id, start, start + len(quote), quote)


def citations_for(
    sentence: str, sources: Sequence[int], passages: Sequence[Passage]
) -> list[Citation]:
    """Return citations of the named passages (numbered from 1) that support the sentence.

    The passage with the most words comes first; another is cited only for what it adds.
    """
    named = [passages[n - 1] for n in dict.fromkeys(sources) if 1 <= n <= len(passages)]
    places = [(best_place(sentence, passage), passage) for passage in named]
    places = [pair for pair in places if pair[0].share >= ENOUGH]
    if not _bear(sentence, places):
        quotes = gathered(sentence, named)
        return [citation(q.passage, Place(q.start, q.end, 1.0)) for q in quotes]
    uncovered = _content(sentence)
    found: list[Citation] = []
    for place, passage in sorted(places, key=lambda pair: -pair[0].share):
        cited = citation(passage, place)
        covered = uncovered & {*words(cited.quote), *words(passage.title)}
        if covered or not found:
            found.append(cited)
            uncovered = uncovered - covered
    return found


def _bear(sentence: str, places: Sequence[tuple[Place, Passage]]) -> bool:
    """Whether one of the spans entails the sentence, or all of them together do."""
    quotes = [Quote(passage, place.start, place.end) for place, passage in places]
    return any(borne(sentence, [quote]) for quote in quotes) or borne(sentence, quotes)


def same_names(sentence: str, passage: Passage, quote: str) -> bool:
    """Whether every name and number of a sentence stands in the quote or the passage's title."""
    t = tokens(sentence)
    telling = {
        key
        for at, key in enumerate(t.keys)
        if t.digit[at] or t.solo[at] or (t.upper[at] and at > 0)
    }
    return telling <= {*name_key(quote).split(), *name_key(passage.title).split()}


def invented(sentence: str, texts: Sequence[str]) -> bool:
    """Whether a sentence has a name of two or more words, or a year, that no text contains.

    Small models copy names from the example in their prompt. A single word may be another form of
    a known one ("Norwegian" for "Norway").
    """
    known_words = {word for text in texts for word in name_key(text).split()}
    t = tokens(sentence)
    unseen = [key not in known_words for key in t.keys]
    upper = [bool(flag) for flag in t.upper]
    pairs = zip(range(len(upper)), range(1, len(upper)), strict=False)
    if any(upper[a] and upper[b] and unseen[a] and unseen[b] for a, b in pairs):
        return True
    return any(s and len(k) == _YEAR and k.isdigit() for s, k in zip(unseen, t.keys, strict=True))


def best_citation(sentence: str, passages: Sequence[Passage]) -> Citation | None:
    """Return the best supporting citation in any passage, named by the model or not."""
    places = [(best_place(sentence, passage), passage) for passage in passages]
    places = [pair for pair in places if pair[0].share >= CLEARLY and _bear(sentence, [pair])]
    best = max(places, key=lambda pair: pair[0].share, default=None)
    return None if best is None else citation(best[1], best[0])
