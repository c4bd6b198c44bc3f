"""Finds the subject of a document: its title, the phrase its first sentence defines, aliases."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clew.text.dates import MONTHS
from clew.text.name_spans import (
    COMMON_WORDS,
    NAME,
    NON_SUBJECT_OPENERS,
    SENTENCE_OPENERS,
    NameSpan,
    span_text,
)
from clew.text.names import Tokens, name_key, strip_disambiguation
from clew.types import LITERAL_TYPES

# Confidence of each kind of hint that a name is the subject. From MAIN on it is certain; below,
# stronger claims of other documents win (graph/page_owners.py); below MOST_FREQUENT it is a guess.
WHOLE_TITLE, PLAIN_TITLE, HEAD_PHRASE, FIRST_NAME, ALIAS = 1.0, 0.95, 0.9, 0.85, 0.8
BEFORE_VERB, BEFORE_COMMA, ONE_WORD_ALIAS, ALTERNATIVE = 0.7, 0.6, 0.6, 0.6
BEFORE_COLON, EARLIER_NAME, MOST_FREQUENT, MORE_FREQUENT = 0.5, 0.5, 0.44, 0.3
LATER_CHUNK_FACTOR = 0.7  # the title describes the first chunk; later chunks drift from it

_MARKS = frozenset('()（）«»“”„"')
_SPEAKERS = frozenset("we i you our my your".split())  # they begin no name of a subject
_BE_VERBS = (
    "is|was|are|were|refers|est|était|sont|ist|war|sind|es|era|fue|son|è|fu|foi|é|är|var|er|jest|"
    "был|была|это"
)
_PHRASE_END = re.compile(
    rf"\s*(?:[(（,，:;–—]|(?<=\w)\s?[\"“«]"
    rf"|\b(?:{_BE_VERBS}|has|had|means|became|may|can|born|née|also)\b|是|は|が)"
)
_VERB = re.compile(rf"\s+(?:{_BE_VERBS})\b|\s*(?:是|は|が)", re.IGNORECASE)
_ALIAS = re.compile(
    r"\b(?:also known as|better known as|best known as|known as|also called|also spelled|"
    r"also written|stage name|formerly|born|née|a\.k\.a\.?|aka|abbreviated(?: as| to)?|or simply|"
    r"nicknamed|pen name|pseudonym)\s*:?\s*(?:the\s+)?",
    re.IGNORECASE,
)
_OPENING_QUOTE = re.compile(r"[\"“«„《「『]\s*([^\"“”»«„《》「」『』\n]{1,80}?)\s*[\"”»》」』]")
# Characters of the first sentence searched for the end of its head phrase, and for its verb.
_MAX_PHRASE_CHARS, _MAX_CLAUSE_CHARS = 150, 300


def title_names(title: str) -> dict[str, float]:
    """The names in a title, each with the confidence that it is the subject."""
    if not title.strip():
        return {}
    plain = strip_disambiguation(title)
    found = {title.strip(): WHOLE_TITLE}
    for name, weight in (
        (plain, PLAIN_TITLE),
        (plain.split(",")[0], BEFORE_COMMA),
        (plain.split(":")[0], BEFORE_COLON),
    ):
        if _is_name(name):
            found.setdefault(name.strip(), weight)
    return found


@dataclass(frozen=True, slots=True)
class FirstSentence:
    """A document's first sentence and the names in it."""

    text: str
    tokens: Tokens
    start: int
    end: int
    spans: list[NameSpan]

    def token_text(self, first: int, last: int) -> str:
        """The text of tokens `first` to `last` (exclusive)."""
        return span_text(self.text, self.tokens, first, last)


def find_defined_names(
    text: str,
    t: Tokens,
    first_sentence: tuple[int, int],
    spans: list[NameSpan],
    titled: bool,
    labelled: bool = False,
) -> dict[str, float]:
    """Names of what the first sentence defines, with confidences; a label before it is skipped."""
    if not len(t):
        return {}
    start, end = first_sentence
    names = [s for s in spans if t.starts[s.first] < end and s.type not in LITERAL_TYPES]
    opening = FirstSentence(text, t, start, end, names)
    found: dict[str, float] = {}
    quote = _OPENING_QUOTE.match(text, start)
    candidates = [(quote[1], HEAD_PHRASE)] if quote else []
    candidates += [] if labelled else _find_head_phrases(opening, titled)
    has_head = bool(candidates)
    if names and names[0].first <= 1 and not has_head:
        candidates.append((opening.token_text(names[0].first, names[0].last), FIRST_NAME))
    candidates += _find_aliases(opening)
    candidates += _find_names_before_verb(opening, has_head)
    for name, weight in candidates:
        if _is_name(name) and "   " not in name:  # blanks in a row part what stands in columns
            found[name] = max(weight, found.get(name, 0.0))
    return found


def _find_head_phrases(opening: FirstSentence, titled: bool) -> list[tuple[str, float]]:
    """Text before the first bracket, comma or verb, and before the verb, if a name."""
    t, start = opening.tokens, opening.start
    found: list[tuple[str, float]] = []
    for stop in (
        _PHRASE_END.search(opening.text, start + 1, min(opening.end, start + _MAX_PHRASE_CHARS)),
        _find_verb(opening),
    ):
        last = bisect_left(t.starts, stop.start()) if stop else 0
        if stop is None or not 0 < last <= 10 or not _looks_like_name(opening, last):
            continue
        if t.keys[0] in _SPEAKERS or opening.text.startswith(",\n", stop.start()):
            continue  # "We present Quillon, a …", "Dear Ana,"
        if titled or _can_be_subject(t, last, stop[0].strip()):
            found.append((opening.token_text(0, last), HEAD_PHRASE))
            if "or" in t.keys[1 : last - 1]:
                middle = t.keys.index("or", 1)
                found.append((opening.token_text(0, middle), ALTERNATIVE))
                found.append((opening.token_text(middle + 1, last), ALTERNATIVE))
    return found


def _find_verb(opening: FirstSentence) -> re.Match[str] | None:
    start = opening.start
    return _VERB.search(opening.text, start + 1, min(opening.end, start + _MAX_CLAUSE_CHARS))


def _can_be_subject(t: Tokens, last: int, stop: str) -> bool:
    """Whether the phrase may be a subject: "His Girl Friday is", not "His wife," or "In Ulm,"."""
    return t.keys[0] not in NON_SUBJECT_OPENERS or (last > 1 and t.upper[1] and stop not in ",，")


def _looks_like_name(opening: FirstSentence, last: int) -> bool:
    t = opening.tokens
    head = opening.text[opening.start : t.ends[last - 1]]
    if "(" in head or t.keys[last - 1] in ("and", "or", "of"):
        return False
    named = any(t.upper[at] and t.keys[at] not in SENTENCE_OPENERS for at in range(last))
    return t.unspaced[0] or t.digit[0] or (t.upper[0] and named)


def _find_aliases(opening: FirstSentence) -> Iterator[tuple[str, float]]:
    """Names after "also known as" and similar; a single word gets a lower weight."""
    t = opening.tokens
    for match in _ALIAS.finditer(opening.text, opening.start, opening.end):
        for span in opening.spans:
            if 0 <= t.starts[span.first] - match.end() <= 2:
                weight = ALIAS if span.last - span.first > 1 else ONE_WORD_ALIAS
                yield opening.token_text(span.first, span.last), weight
                break


def _find_names_before_verb(opening: FirstSentence, has_head: bool) -> Iterator[tuple[str, float]]:
    """Names before the verb, the last one strongest: "In its first year the Quay Prize was …"."""
    verb = _find_verb(opening)
    if verb is None:
        return
    t = opening.tokens
    for span in opening.spans:
        gap = verb.start() - t.ends[span.last - 1]
        if span.first == 0 or gap < 0:
            continue
        if gap <= 1 and not has_head:
            yield opening.token_text(span.first, span.last), BEFORE_VERB
        elif span.last - span.first > 1:
            yield opening.token_text(span.first, span.last), EARLIER_NAME


def add_subject_spans(t: Tokens, spans: list[NameSpan], about: Iterable[str]) -> list[NameSpan]:
    """Add the spans of the subject's multi-word names, ignoring case within them.

    They replace shorter names inside them: "Brother Rat" in "Brother Rat and a Baby".
    """
    found = {(span.first, span.last): span for span in spans}
    # A span ends with a word, not with a bracket or a quotation mark.
    whole = [name for name in about if not _MARKS.intersection(name)]
    for name in sorted({tuple(name_key(name).split()) for name in whole}, key=len, reverse=True):
        if len(name) < 2:
            continue
        for at in (i for i, key in enumerate(t.keys) if key == name[0] and t.upper[i]):
            last = at + len(name)
            if tuple(t.keys[at:last]) != name:
                continue
            inside = [s for s in found if at <= s[0] and s[1] <= last and s != (at, last)]
            if any(s[0] <= at and last <= s[1] and s != (at, last) for s in found):
                continue
            for span in inside:
                if found[span].type not in LITERAL_TYPES:
                    del found[span]
            found.setdefault((at, last), NameSpan(at, last, NAME))
    return sorted(found.values())


def _is_name(name: str) -> bool:
    keys = name_key(name).split()
    return any(not (key in COMMON_WORDS or key in MONTHS or key.isdigit()) for key in keys)
