"""Entailment by code: whether quotes support a sentence's names, numbers, content and negation.

Code cannot infer; it can see that a number, a name or the verb is missing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from clew.agents.writing.denial import agree
from clew.agents.writing.unspaced import said_by
from clew.names import LIGHT, name_key, plain_title, tokens
from clew.sentences import sentence_spans
from clew.text import UNSPACED_CHAR, words
from clew.types import Passage

_STEM = 5  # letters that "directed" and "director" share
_MOST = 0.51  # share of the content words that must be found: of two both
_TOGETHER = 3  # sentences of the passages that may support one sentence
_SEVERAL = 2  # content words
_LONG = 4  # minimum letters of a content word
_EMPTY = frozenset(
    "that this these those with from were been have which their they them there also into than "
    "then when where while whom whose what about after before between during such some other "
    "called named known being does did".split()
)
# A comparison of two facts stands in neither of them.
_COMPARING = frozenset(
    "older younger earlier later first last same both different longer shorter larger smaller "
    "bigger higher lower more fewer most least before after".split()
)
# Groups of synonyms, by their stems.
_ALIKE = (
    "born birth nativ",
    "died death kille dead",
    "marri husba wife wives spous widow conso",
    "fathe mothe son sons daugh child paren offsp",
    "found estab creat opene start form",
    "relea publi issue premi",
    "compo music score scori sound write wrote writt autho penne novel book",
    "sing sang sung singe song recor perfo",
    "work worke emplo job",
    "study studi educa atten gradu schol",
    "locat lies situa based",
    "count natio citiz",
)
_SAME = {stem: group.split()[0] for group in _ALIKE for stem in group.split()}
# "(June 8, 1806 – October 8, 1878)" implies birth and death, "is a 1961 film" a release.
_LIFE = re.compile(r"\([^()]*\d{3,4}[^()]*\)")
_DATED = re.compile(r"\b(?:is|was)\s+an?\s+\d{4}\b")
_BELOW_ZERO = re.compile(r"(?<![\w.,)])(?<!\d )[-−](\d+)")  # no range: "1713 -65"
_PRONOUN = re.compile(r"\b(?:he|she|it|they|his|her|hers|its|their|him|them)\b", re.I)


@dataclass(frozen=True, slots=True)
class Quote:
    """A span of a passage."""

    passage: Passage
    start: int
    end: int

    @property
    def text(self) -> str:
        """The quoted text."""
        return self.passage.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence split into names, numbers and content words."""

    names: frozenset[str]
    numbers: frozenset[str]
    rest: frozenset[str]
    compares: bool


@lru_cache(maxsize=256)  # a sentence is compared with many spans
def claim_of(sentence: str) -> Claim:
    """Parse a sentence; names are capitalised words, except a single one at the beginning."""
    t = tokens(sentence)
    run = len(t.upper) > 1 and t.upper[0] and t.upper[1]
    names = {
        key
        for at, key in enumerate(t.keys)
        if t.upper[at] and (at or run) and key not in LIGHT and not t.digit[at]
    }
    numbers = frozenset(word for word in words(sentence) if word.isdigit())
    said = {key for key in t.keys if len(key) >= _LONG and key not in _EMPTY}
    rest = {key for key in said - names if not key.isdigit()}
    named = [at for at, key in enumerate(t.keys) if key in names]
    # "Salt was released first" names nothing to compare it with.
    several = any(b - a > 1 for a, b in zip(named, named[1:], strict=False))
    compares = several and bool({*words(sentence)} & _COMPARING)
    return Claim(frozenset(names), numbers, frozenset(map(_stem, rest)), compares)


def borne(sentence: str, quotes: Sequence[Quote]) -> bool:
    """Whether the quotes together entail the sentence, as far as code can tell."""
    if not quotes:
        return False
    sentences = [one for quote in quotes for one in _sentences(quote)]
    claim = claim_of(sentence)
    if UNSPACED_CHAR.search(sentence):
        return any(_by_pairs(sentence, claim, one) for one in sentences)
    text = " ".join(quote.text for quote in quotes)
    if len(claim.rest) == 1 and len(sentences) > 1:
        # One statement, one sentence: "born in Leipzig. He died in Munich." has no birth in Munich.
        return any(borne(sentence, [one]) for one in sentences)
    if not claim.numbers <= _numbers(quotes) or not same_signs(sentence, text):
        return False
    if not all(any(_named(name, claim, quote) for quote in quotes) for name in claim.names):
        return False
    if claim.compares:
        return True
    enough = len(claim.rest & _told(text)) >= _MOST * len(claim.rest)
    return enough and agree(sentence, text)


def _sentences(quote: Quote) -> list[Quote]:
    spans = sentence_spans(quote.text)
    return [Quote(quote.passage, quote.start + a, quote.start + b) for a, b in spans]


def _told(text: str) -> set[str]:
    """Return the stems of a text, and those that its dates imply."""
    stems = {_stem(word) for word in name_key(text).split()}
    stems |= {"born", "died"} if _LIFE.search(text) else set()
    return stems | ({"relea"} if _DATED.search(text) else set())


def _by_pairs(sentence: str, claim: Claim, quote: Quote) -> bool:
    """Entailment without capitals and spaces, by character pairs, numbers and foreign names."""
    page = quote.passage
    known_words = {*name_key(quote.text).split(), *name_key(page.title).split()}
    if not claim.numbers <= _numbers([quote]) or not claim.names <= known_words:
        return False
    supported = said_by(sentence, quote.text, page.title, page.text[: quote.start])
    return supported and agree(sentence, quote.text)


def gathered(sentence: str, passages: Sequence[Passage]) -> list[Quote]:
    """Return up to three sentences of the passages that together entail a sentence, or none.

    "The designer of the bridge was born in Kiel": who designed it and where she was born may stand
    in two sentences of one page.
    """
    claim = claim_of(sentence)
    wanted = set(claim.names | claim.rest | claim.numbers)
    sentences = [one for p in passages for one in _sentences(Quote(p, 0, len(p.text)))]
    stems = [_told(one.text) | {*name_key(one.text).split(), *words(one.text)} for one in sentences]
    chosen: list[int] = []
    while wanted and len(chosen) < _TOGETHER:
        best = max(range(len(sentences)), key=lambda at: len(wanted & stems[at]), default=-1)
        if best < 0 or not wanted & stems[best]:
            break
        chosen.append(best)
        wanted -= stems[best]
    quotes = [sentences[at] for at in sorted(chosen)]
    return quotes if not wanted and borne(sentence, quotes) else []


def names_and_numbers(sentence: str, texts: Sequence[str]) -> bool:
    """Whether every name and number of a sentence occurs in some text."""
    claim = claim_of(sentence)
    known_words = {key for text in texts for key in name_key(text).split()}
    known_numbers = {word for text in texts for word in words(text)}
    has_names = all(any(_same_name(name, key) for key in known_words) for name in claim.names)
    return has_names and claim.numbers <= known_numbers


def crossed(sentence: str, text: str) -> bool:
    """Whether the sentence makes several statements with its names in another order than the text.

    "Born in Ribe and died in Odense" is made of the words of "born in Odense and died in Ribe".
    """
    claim, here = claim_of(sentence), name_key(text).split()
    order = [key for key in name_key(sentence).split() if key in claim.names]
    if len(claim.rest) < _SEVERAL or any(here.count(key) != 1 for key in order):
        return False
    return order != sorted(order, key=here.index)


def same_signs(sentence: str, text: str) -> bool:
    """Whether each number of a sentence is negative in both texts, or in neither."""
    below = set(_BELOW_ZERO.findall(text))
    return set(_BELOW_ZERO.findall(sentence)) == claim_of(sentence).numbers & below


def _numbers(quotes: Sequence[Quote]) -> set[str]:
    return {w for q in quotes for w in (*words(q.text), *words(q.passage.title)) if w.isdigit()}


def _named(name: str, claim: Claim, quote: Quote) -> bool:
    """Whether the quote has the name; or, unless it begins with another, its title or context."""
    if any(_same_name(name, key) for key in name_key(quote.text).split()):
        return True
    title = name_key(plain_title(quote.passage.title)).split()
    if _of_another(quote.text, claim.names | set(title)):
        return False
    if name in title:
        return True
    before = name_key(quote.passage.text[: quote.start]).split()
    return _PRONOUN.search(quote.text) is not None and name in before


def _of_another(text: str, known: set[str] | frozenset[str]) -> bool:
    """Whether a text begins with another name."""
    t = tokens(text)
    at = 1 if t.keys[:1] and t.keys[0] in LIGHT else 0
    run: list[str] = []
    while at < len(t.keys) and (t.upper[at] or (run and t.keys[at] in LIGHT)):
        run.append(t.keys[at])
        at += 1
    names = [key for key in run if key not in LIGHT]
    return len(names) > 1 and not set(names) & known


def _same_name(name: str, key: str) -> bool:
    """Whether two names match up to the last letter: "Argentina" and "Argentine"."""
    most = min(len(name), len(key))
    return name == key or (most > _STEM and name[: most - 1] == key[: most - 1])


def _stem(word: str) -> str:
    stem = word[:_STEM]
    return _SAME.get(stem, stem)
