"""Entailment by code: whether quotes support a sentence's names, numbers, content and negation.

Code cannot infer; it can see that a number, a name or the verb is missing. Scripts without spaces
and capitals are compared by pairs of characters.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from clew.agents.citing.entries import cut_to_entries
from clew.text.names import STOP_WORDS, name_key, strip_disambiguation, tokenize
from clew.text.sentences import sentence_spans
from clew.text.unicode import UNSPACED_CHAR, split_words
from clew.types import Passage

# English, and others that write it as a word of its own. A capital within a sentence belongs to a
# name ("Never Say Never", the composer Nie Er); "No. 5" is a number, "non-fiction" a kind.
_BOUND = r"(?:more|less|fewer|later|earlier|longer|exceed\w*)\b"  # "no more than 5" denies nothing
_NEGATION_WORDS = (
    rf"not(?!\s+{_BOUND})|never|no(?!\.\s*\d|\s+{_BOUND})|nor|neither|without|cannot|nobody"
    r"|nothing|none|hardly|scarcely|barely"
    r"|(?:fail|failed|fails|failing) to|denied|denies|deny|\w+n['’]t"
    r"|nicht|nichts|kein(?:e[mnrs]?)?|nie|niemals|niemand|niet|geen|nooit|inte|ingen|aldrig|ikke"
    r"|nunca|jamás|ning[uú]n[oa]?|nadie|não|nem|ninguém|non(?!-)|nessun[oa]?|nikdy|değil"
    r"|не|ни|нет|никогда|никто|немає|لا|لم|لن|ليس|ليست|לא"
)
_SENTENCE_START = r"(?:(?<=[.!?] )|^[\"“'‘]?)"
_CAPITALISED_NEGATIONS = (
    r"Not|Never|No|Neither|Nobody|Nothing|None|Without|Hardly|Nicht|Kein(?:e[mnrs]?)?|Nie|Niemand"
    r"|Nunca|Nadie|Ning[uú]n[oa]?|Não|Ninguém|Niet|Geen|Nessun[oa]?|Non|Не|Ни|Нет|Никто|Никогда"
)
_FRENCH_NEGATION = (
    r"\b(?:[Nn]e\s|[Nn]['’])[^.,;]{1,40}?\b(?:pas|jamais|plus|rien|personne|aucune?)\b"
)
# Scripts without spaces, less the words in which the sign means something else: 非洲 is Africa.
_CJK_NEGATIONS = (
    r"非(?![洲常])|不(?![丹仅僅但久超足满滿]|[多少高低大小]于)|[无無](?![锡錫线線])|未(?![来來])|[没沒]|नहीं"
    r"|(?<![少危])ない(?!し)|なかっ|ません|않|못[하했한]|없[는다었으이]|아니"
)
_NEGATION = re.compile(
    rf"\b(?:{_NEGATION_WORDS})\b|\b(?:NOT|NEVER)\b|{_SENTENCE_START}(?:{_CAPITALISED_NEGATIONS})\b(?!\s+[A-Z]|\.\s*\d)"
    rf"|{_FRENCH_NEGATION}|{_CJK_NEGATIONS}"
)
_MIN_PAIR_SHARE = 0.6  # of the pairs of letters
# Function characters; a pair with one of them may differ without changing the sense.
# Characters common in names are left out: 上 is in 上海, 中 in 中国.
_FUNCTION_CHARS = frozenset(
    "的是在于於了和与與及并並也都而或其他她它们們这這那该該为為由被将將把从從给給对對以之者所有个個位名"
    "出生年月日曾则則即因但"
)
_NUMERAL_CLASSIFIER = re.compile("[二三四五六七八九十百千万萬亿億][年月日个個位名岁歲]")
# Han and Katakana: Hiragana is mostly grammar, and of other scripts too little is known.
_CONTENT_CHARS = re.compile("[\u3005-\u3007\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
# Hangul attaches particles to the end of a word: the beginning carries the content.
_HANGUL = re.compile("[\uac00-\ud7a3]{2,}")
_HANGUL_FUNCTION_CHARS = frozenset("그이저있없하했한되된됐는은의가를을에서로와과도다")
_CJK_PRONOUN = re.compile("[他她它其彼]|그는|그녀|それ")
_STEM_LETTERS = 5  # letters that "directed" and "director" share
_MIN_WORD_SHARE = 0.51  # share of the content words that must be found: of two both
_MAX_SENTENCES = 3  # sentences of the passages that may support one sentence
_SEVERAL_STATEMENTS = 2  # content words
_MIN_WORD_LETTERS = 4  # minimum letters of a content word
_STOP_WORDS = frozenset(
    "that this these those with from were been have which their they them there also into than "
    "then when where while whom whose what about after before between during such some other "
    "called named known being does did".split()
)
# A comparison of two facts stands in neither of them.
_COMPARISON_WORDS = frozenset(
    "older younger earlier later first last same both different longer shorter larger smaller "
    "bigger higher lower more fewer most least before after".split()
)
# Groups of synonyms, by their stems.
_SYNONYM_STEMS = (
    "born birth nativ",
    "died die dies dying death kille dead",
    "marri marry husba wife wives spous widow conso",
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
SYNONYM_OF_STEM = {stem: group.split()[0] for group in _SYNONYM_STEMS for stem in group.split()}
# "(June 8, 1806 – October 8, 1878)" implies birth and death, "is a 1961 film" a release.
_LIFE_DATES = re.compile(r"\([^()]*\d{3,4}[^()]*\)")
_RELEASE_YEAR = re.compile(r"\b(?:is|was)\s+an?\s+\d{4}\b")
_NEGATIVE_NUMBER = re.compile(r"(?<![\w.,)])(?<!\d )[-−](\d+)")  # no range: "1713 -65"
_PART = re.compile(r"[;；]\s*|\s(?:but|while|whereas)\s")
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
    content: frozenset[str]
    is_comparison: bool


@lru_cache(maxsize=256)  # a sentence is compared with many spans
def parse_claim(sentence: str) -> Claim:
    """Parse a sentence; names are capitalised words, except a single one at the beginning."""
    t = tokenize(sentence)
    run = len(t.upper) > 1 and t.upper[0] and t.upper[1]
    names = {
        key
        for at, key in enumerate(t.keys)
        if t.upper[at] and (at or run) and key not in STOP_WORDS and not t.digit[at]
    }
    numbers = frozenset(word for word in split_words(sentence) if word.isdigit())
    content = {key for key in t.keys if len(key) >= _MIN_WORD_LETTERS and key not in _STOP_WORDS}
    rest = {key for key in content - names if not key.isdigit()}
    named = [at for at, key in enumerate(t.keys) if key in names]
    # "Salt was released first" names nothing to compare it with.
    several = any(b - a > 1 for a, b in zip(named, named[1:], strict=False))
    compares = several and bool({*split_words(sentence)} & _COMPARISON_WORDS)
    return Claim(frozenset(names), numbers, frozenset(map(to_stem, rest)), compares)


def is_entailed(sentence: str, quotes: Sequence[Quote]) -> bool:
    """Whether the quotes together entail the sentence, as far as code can tell."""
    claim = parse_claim(sentence)
    quotes = [own for quote in quotes for own in cut_quote(sentence, quote)]
    quotes = _leave_out_unrelated(sentence, quotes)
    if not quotes:
        return False
    sentences = [one for quote in quotes for one in _split_sentences(quote)]
    if UNSPACED_CHAR.search(sentence):
        return any(_is_entailed_cjk(sentence, claim, one) for one in sentences)
    text = " ".join(quote.text for quote in quotes)
    if len(claim.content) == 1 and len(sentences) > 1:
        # One statement, one sentence: "born in Leipzig. He died in Munich." has no birth in Munich.
        return any(is_entailed(sentence, [one]) for one in sentences)
    if not claim.numbers <= _numbers_in_quotes(quotes) or not has_same_signs(sentence, text):
        return False
    if not all(any(_quote_names(name, claim, quote) for quote in quotes) for name in claim.names):
        return False
    if claim.is_comparison:
        return True
    enough = len(claim.content & _stems_of_text(text)) >= _MIN_WORD_SHARE * len(claim.content)
    return enough and has_same_polarity(sentence, text)


def _leave_out_unrelated(sentence: str, quotes: Sequence[Quote]) -> list[Quote]:
    """Leave out quotes of pages that have nothing to do with the page of what a sentence names.

    "N is a Swedish magazine" takes nothing from the page of another magazine. A page that names
    that one, or is named there, counts: who designed the bridge, and where she was born.
    """
    related = [one for one in quotes if _names_page(sentence, one.passage.title)]
    if not related:
        return list(quotes)
    rest = [one for one in quotes if one not in related]
    while linked := [one for one in rest if any(_is_linked(one, other) for other in related)]:
        related += linked
        rest = [one for one in rest if one not in linked]
    return [one for one in quotes if one in related]


def _is_linked(one: Quote, other: Quote) -> bool:
    """Whether both are of one page, or one of them names the other's page."""
    pairs = ((one, other), (other, one))
    return one.passage.id == other.passage.id or any(
        _names_page(here.text, there.passage.title) for here, there in pairs
    )


def _names_page(text: str, title: str) -> bool:
    words = name_key(strip_disambiguation(title)).split()
    return bool(words) and set(words) <= set(name_key(text).split())


def cut_quote(sentence: str, quote: Quote) -> list[Quote]:
    """Return what of a quote may support a sentence: of rows and terms only those it names."""
    spans = cut_to_entries(sentence, quote.passage.text, quote.start, quote.end)
    return [Quote(quote.passage, start, end) for start, end in spans]


def _split_sentences(quote: Quote) -> list[Quote]:
    spans = sentence_spans(quote.text)
    return [Quote(quote.passage, quote.start + a, quote.start + b) for a, b in spans]


def _stems_of_text(text: str) -> set[str]:
    """Return the stems of a text, and those that its dates imply."""
    stems = {to_stem(word) for word in name_key(text).split()}
    stems |= {"born", "died"} if _LIFE_DATES.search(text) else set()
    return stems | ({"relea"} if _RELEASE_YEAR.search(text) else set())


def _is_entailed_cjk(sentence: str, claim: Claim, quote: Quote) -> bool:
    """Entailment without capitals and spaces, by character pairs, numbers and foreign names."""
    page = quote.passage
    known_words = {*name_key(quote.text).split(), *name_key(page.title).split()}
    if not claim.numbers <= _numbers_in_quotes([quote]) or not claim.names <= known_words:
        return False
    supported = _is_supported_cjk(sentence, quote.text, page.title, page.text[: quote.start])
    return supported and has_same_polarity(sentence, quote.text)


def find_entailing_sentences(sentence: str, passages: Sequence[Passage]) -> list[Quote]:
    """Return up to three sentences of the passages that together entail a sentence, or none.

    "The designer of the bridge was born in Kiel": who designed it and where she was born may stand
    in two sentences of one page.
    """
    claim = parse_claim(sentence)
    wanted = set(claim.names | claim.content | claim.numbers)
    sentences = [one for p in passages for one in _split_sentences(Quote(p, 0, len(p.text)))]
    stems = [
        _stems_of_text(one.text) | {*name_key(one.text).split(), *split_words(one.text)}
        for one in sentences
    ]
    chosen: list[int] = []
    while wanted and len(chosen) < _MAX_SENTENCES:
        best = max(range(len(sentences)), key=lambda at: len(wanted & stems[at]), default=-1)
        if best < 0 or not wanted & stems[best]:
            break
        chosen.append(best)
        wanted -= stems[best]
    quotes = [sentences[at] for at in sorted(chosen)]
    return quotes if not wanted and is_entailed(sentence, quotes) else []


def contains_names_and_numbers(sentence: str, texts: Sequence[str]) -> bool:
    """Whether every name and number of a sentence occurs in some text."""
    claim = parse_claim(sentence)
    known_words = {key for text in texts for key in name_key(text).split()}
    known_numbers = {word for text in texts for word in split_words(text)}
    has_names = all(any(_is_same_name(name, key) for key in known_words) for name in claim.names)
    return has_names and claim.numbers <= known_numbers


def swaps_names(sentence: str, text: str) -> bool:
    """Whether the sentence makes several statements with its names in another order than the text.

    "Born in Ribe and died in Odense" is made of the words of "born in Odense and died in Ribe".
    """
    claim, here = parse_claim(sentence), name_key(text).split()
    order = [key for key in name_key(sentence).split() if key in claim.names]
    if len(claim.content) < _SEVERAL_STATEMENTS or any(here.count(key) != 1 for key in order):
        return False
    return order != sorted(order, key=here.index)


def has_same_signs(sentence: str, text: str) -> bool:
    """Whether each number of a sentence is negative in both texts, or in neither."""
    below = set(_NEGATIVE_NUMBER.findall(text))
    return set(_NEGATIVE_NUMBER.findall(sentence)) == parse_claim(sentence).numbers & below


def _numbers_in_quotes(quotes: Sequence[Quote]) -> set[str]:
    return {
        w
        for q in quotes
        for w in (*split_words(q.text), *split_words(q.passage.title))
        if w.isdigit()
    }


def _quote_names(name: str, claim: Claim, quote: Quote) -> bool:
    """Whether the quote has the name; or, unless it begins with another, its title or context."""
    if any(_is_same_name(name, key) for key in name_key(quote.text).split()):
        return True
    title = name_key(strip_disambiguation(quote.passage.title)).split()
    if _begins_with_other_name(quote.text, claim.names | set(title)):
        return False
    if name in title:
        return True
    before = name_key(quote.passage.text[: quote.start]).split()
    return _PRONOUN.search(quote.text) is not None and name in before


def _begins_with_other_name(text: str, known: set[str] | frozenset[str]) -> bool:
    t = tokenize(text)
    at = 1 if t.keys[:1] and t.keys[0] in STOP_WORDS else 0
    run: list[str] = []
    while at < len(t.keys) and (t.upper[at] or (run and t.keys[at] in STOP_WORDS)):
        run.append(t.keys[at])
        at += 1
    names = [key for key in run if key not in STOP_WORDS]
    return len(names) > 1 and not set(names) & known


def _is_same_name(name: str, key: str) -> bool:
    """Whether two names match up to the last letter: "Argentina" and "Argentine"."""
    most = min(len(name), len(key))
    return name == key or (most > _STEM_LETTERS and name[: most - 1] == key[: most - 1])


def to_stem(word: str) -> str:
    """Return the letters that forms of a word share, the same for synonyms."""
    stem = word[:_STEM_LETTERS]
    return SYNONYM_OF_STEM.get(stem, stem)


# -- negation


def is_negated(text: str) -> bool:
    """Whether a text contains a negation."""
    return _NEGATION.search(text) is not None


def has_same_polarity(sentence: str, text: str) -> bool:
    """Whether both texts are negated, or neither is; parts of a text that say nothing of a sentence
    do not count: "… was bought by N; the price was not told".
    """
    wanted = parse_claim(sentence).content
    parts = [one for one in _PART.split(text) if _stems_of_text(one) & wanted] or [text]
    return is_negated(sentence) == any(map(is_negated, parts))


# -- scripts without spaces


def _is_content_pair(pair: str) -> bool:
    """Whether a pair carries content: part of a name, a thing, a number of things."""
    if _NUMERAL_CLASSIFIER.fullmatch(pair):
        return True
    return _CONTENT_CHARS.fullmatch(pair) is not None and not set(pair) & _FUNCTION_CHARS


def _has_unsupported_pair(pairs: Sequence[str], known: set[str]) -> bool:
    """Whether a content pair is missing from `known`, other than where two known words meet."""
    around = zip(["", *pairs], pairs, [*pairs[1:], ""], strict=False)
    return any(
        _is_content_pair(pair)
        and pair not in known
        and not _is_word_boundary(before, pair, after, known)
        for before, pair, after in around
    )


def _is_word_boundary(before: str, pair: str, after: str, known: set[str]) -> bool:
    joins = before[-1:] == pair[0] and after[:1] == pair[-1]
    return joins and before in known and after in known


def _hangul_prefixes(text: str) -> set[str]:
    found = {run[:2] for run in _HANGUL.findall(unicodedata.normalize("NFC", text))}
    return {pair for pair in found if not set(pair) <= _HANGUL_FUNCTION_CHARS}


def _is_supported_cjk(sentence: str, text: str, title: str, before: str) -> bool:
    """Whether a page's sentence supports another: most pairs, and every content pair.

    The title, or the text before a pronoun, may supply the subject, unless the sentence begins with
    another one.
    """
    pairs, text_pairs, title_pairs = split_words(sentence), split_words(text), {*split_words(title)}
    available, distinct = set(text_pairs), set(pairs)
    if len(distinct & available) < _MIN_PAIR_SHARE * len(distinct):
        return False
    opening = text_pairs[: next(at for at, pair in enumerate(text_pairs) if pair in distinct)]
    if not any(_is_content_pair(pair) and pair not in title_pairs for pair in opening):
        available |= title_pairs | (
            set(split_words(before)) if _CJK_PRONOUN.search(text) else set()
        )
    return not _has_unsupported_pair(pairs, available) and _hangul_prefixes(sentence) <= available
