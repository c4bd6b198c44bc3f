"""Tell whether an answer is said of another thing than the one a question names.

"How long is the river Asker?" is not told by the length of the canal whose page mentions the river.
To go on from the thing that is named to another one, a question needs a word for the relation
between them, which a sentence on the way says ("owner", "twinned with"). Where the sentence that
has the answer says every word of the question by itself, and no other one that is cited says any,
none is left for that, and what it speaks of is another thing. What stands before the name wherever
it is mentioned belongs to it ("the river N"). So it is where the name is what something is done to,
and the question asks for what it does.
"""

import re
from collections.abc import Sequence

from clew.agents.answering.lacking import find_missing, name_home
from clew.agents.answering.told import find_home, list_words
from clew.agents.answering.units import STEM, stem_words
from clew.agents.citing.clauses import (
    Clause,
    find_antecedent,
    find_clause,
    has_other_name,
    is_of,
    refer_back,
    split_clauses,
)
from clew.agents.citing.support import mentions_name
from clew.agents.core.types import Answer
from clew.agents.reading.directed import MUTUAL
from clew.agents.reading.restrictions import Told, blank_names, is_short
from clew.agents.reading.spans import asked_words
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.text.irregular_verbs import BASE_OF_FORM
from clew.text.language import is_chinese
from clew.text.names import strip_disambiguation
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.text.word_forms import compare_words, is_read_language
from clew.types import Citation, Passage

_FORM = 0.9  # from which two words are forms of one
_REFERS = re.compile(r"\b(?:he|she|it|they|his|her|its|their)\b", re.IGNORECASE)
_PERSON = re.compile(r"\W*(?:he|she|his|her)\b", re.IGNORECASE)
_DEFINITE = re.compile(r"\W*(?:the|this|that)\s+[a-z]", re.IGNORECASE)
_DOES = r"\b(?:did|does|do|has|had|have)\s+(?:the\s+)?{}\s+(?:ever\s+|first\s+)?(?P<verb>[a-z]+)"
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being|by)\b", re.IGNORECASE)


async def find_other_subject(
    ctx: Context, question: str, names: Sequence[str], answer: Answer, cited: Sequence[Passage]
) -> float:
    """Return 1 where an answer is said of another thing than the one name of a question, else 0."""
    plain = is_read_language(question) and not is_chinese(question)
    known = [name for name in names if not name.isdigit()]
    if not plain or len(known) != 1 or answer.computed or not is_short(question, known):
        return 0.0
    places = [(one, home) for one in answer.citations if (home := find_home(one, cited))]
    held = [place for place in places if answer.candidate in place[0].quote]
    if not held or not is_named_here(ctx, known[0]):
        return 0.0
    last, home = held[-1]
    start, sentence, clause = _find_sentence(last, home, answer.candidate)
    if mentions_name(known[0], sentence):
        return float(_does_it(question, known[0], sentence))
    above = f"{name_home(last, [home])} {home.heading}"
    if is_of(known[0], home, start, sentence, clause) or _shares_word(ctx, known[0], above):
        return 0.0
    if _shares_word(ctx, known[0], sentence) or not _is_of_other(
        ctx, known[0], home, start, clause
    ):
        return 0.0
    led = " ".join(one.quote for one in answer.citations if one is not last)
    near = Told(sentence, 0, f"{home.text[:start]} {led}")
    own = stem_words(known[0]) | _find_apposition(question, known[0], near.around)
    pages = " ".join(one.text for one in answer.evidence.chunks)
    own |= _find_sort(question, known[0], pages)
    rest = {word: 1.0 for word in list_words(question, answer.candidate) if word not in own}
    sorts = _list_sorts(question, strip_disambiguation(home.title), near.whole)
    sorts -= _find_modifiers(question, sentence)
    if rest.keys() & (sorts | stem_words(led)):
        return 0.0  # the relation: what the other one is, or what leads to it
    return float(not await find_missing(ctx, question, rest, sentence))


def is_named_here(ctx: Context, name: str) -> bool:
    """Whether some passage has each word of a name; of others nothing is known to be said."""
    words = split_words(name)
    return bool(words) and bool(len(ctx.view.bm25.chunks_with_all(words)))


def _find_sentence(cited: Citation, home: Passage, short: str) -> tuple[int, str, Clause]:
    """Return where the sentence with an answer begins in its passage, the sentence, its clause."""
    at = cited.start - home.start + cited.quote.find(short)
    spans = sentence_spans(home.text)
    first, last = next(((a, b) for a, b in spans if a <= at < b), (at, at + len(short)))
    sentence = home.text[first:last]
    return first, sentence, find_clause(sentence, at - first)


def _is_of_other(ctx: Context, name: str, home: Passage, start: int, clause: Clause) -> bool:
    """Whether a clause speaks of another thing for certain.

    It names the other, or refers to what its page, or the sentence before, is about.
    """
    said = home.text[start + clause.start : start + clause.end]
    if _begins_with(name, home.text[:start]) or _means_person(name, home.text, start, said):
        return False
    if has_other_name(clause.subject, name):
        return True
    other = strip_disambiguation(find_antecedent(home, start))
    known = bool(other) and bool(len(ctx.view.find_by_name_or_alias(other)))
    named = mentions_name(strip_disambiguation(home.title), home.text)
    # "The company was founded by N", on the page of a company.
    refers = _REFERS.search(said) or _DEFINITE.match(clause.subject)
    return refers is not None and (known or named)


def _shares_word(ctx: Context, name: str, text: str) -> bool:
    """Whether a text has the word that tells a name from others: the one in fewest passages."""
    words = split_words(name)
    rare = min(words, key=lambda word: len(ctx.view.bm25.chunks_with(word)), default="")
    return rare in split_words(text)


def _begins_with(name: str, before: str) -> bool:
    """Whether a sentence before speaks of a name: then a pronoun may stand for it."""
    sentences = (before[first:last] for first, last in sentence_spans(before))
    return any(mentions_name(name, split_clauses(one)[0].subject) for one in sentences)


def _means_person(name: str, text: str, start: int, said: str) -> bool:
    """Whether "she" may stand for a name: the sentence it goes back to names nobody before."""
    if _PERSON.match(said) is None:
        return False
    begin = refer_back(text, start, said)
    first = next((text[a:b] for a, b in sentence_spans(text) if a == begin), "")
    return mentions_name(name, first) and not has_other_name(split_clauses(first)[0].subject, name)


def _list_sorts(question: str, name: str, text: str) -> frozenset[str]:
    """Return the beginnings of the words that say what a thing is: "N was a composer"."""
    defined = rf"(?i)\b{re.escape(name)}{table_for(question).defined}"
    return stem_words(" ".join(found["sort"] for found in re.finditer(defined, text)))


def _find_modifiers(question: str, sentence: str) -> frozenset[str]:
    """Return the beginnings of words that only modify the next one: "town" of "town hall"."""
    words, said = split_words(question), f" {' '.join(split_words(sentence))} "
    pairs = zip(words, words[1:], strict=False)
    return frozenset(one[:STEM] for one, other in pairs if f" {one} {other} " in said)


def _find_sort(question: str, name: str, pages: str) -> frozenset[str]:
    """Return the beginning of a word that only says what a name is: "the town of N" is N, where a
    page says that N is a town.
    """
    found = re.search(rf"(?P<word>[^\W\d_]+)\s+of\s+{re.escape(name)}", question)
    word = found["word"].lower() if found else ""
    defined = rf"(?i)\b{re.escape(name)}{table_for(question).defined}"
    said = any(word in split_words(one["sort"]) for one in re.finditer(defined, pages))
    return frozenset({word[:STEM]} if word and said else ())


def _find_apposition(question: str, name: str, around: str) -> frozenset[str]:
    """Return the beginning of the word before a name, where the sentences on the way have it so."""
    found = re.search(rf"(?P<word>[^\W\d_]+)\s+{re.escape(name)}", question)
    word = found["word"].lower() if found else ""
    said = word and re.search(rf"\b{word}\s+{re.escape(name)}", around, re.IGNORECASE)
    return frozenset({word[:STEM]} if said and asked_words(word) else ())


def _does_it(question: str, name: str, sentence: str) -> bool:
    """Whether a question asks what a name does, and the sentence says that it is done to it."""
    found = re.search(_DOES.format(re.escape(name)), question, re.IGNORECASE)
    verb = found["verb"].lower() if found else ""
    if not verb or verb in MUTUAL or not asked_words(verb):
        return False
    plain = blank_names(sentence, [name])
    at = plain.find("_")
    forms = [one for one in re.finditer(r"[a-z]+", plain) if _is_form(verb, one[0])]
    if at < 0 or not forms or forms[0].start() > at or _PASSIVE.search(plain[:at]):
        return False
    subject = find_clause(sentence, forms[0].start()).subject
    return bool(_REFERS.fullmatch(subject.split(" ")[-1])) or has_other_name(subject, name)


def _is_form(verb: str, word: str) -> bool:
    return BASE_OF_FORM.get(word, word) == verb or compare_words(verb, word) >= _FORM
