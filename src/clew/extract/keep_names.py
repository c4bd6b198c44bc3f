"""Keeps the names among what looks like one: openers, greetings, labels and headings are none.

What decides is the document: whether a word has its capital elsewhere inside a sentence too, what
follows it as behind a subject or behind a verb, and whether a heading's words recur in the text.
"""

import re
from collections.abc import Iterator

from clew.extract.document_names import DocumentNames, is_all_capitals, is_shouted
from clew.extract.openers import find_lettered
from clew.extract.term_fragments import touches_wrap
from clew.text.name_spans import NAME, QUOTED, TERM, NameSpan
from clew.text.names import Tokens
from clew.text.word_forms import function_words, word_class

_CONTRACTION = re.compile(r"['’](?:t|ll|re|ve|d|m)\b")
_COMPOUND = re.compile(r"-[a-z]{2,}\s+[a-z]")  # "Full-time staff": the first part of a plain word
_IS_SUBJECT = re.compile(r"\s+(?:is|was|are|were|has|had|can|will|does|may|supports)\b")
_ARE = re.compile(r"\s+(?:are|were|have|can|may|must|should|will)\b")
_ARE_MANY = re.compile(r"\s+(?:are|were|have)\b")
_BEFORE_PLACES = frozenset("in aus nach".split())  # without an article
# Behind a verb: an article or pronoun, as in "Turn the key", "Give it back", "Let us go".
_BEHIND_VERB = re.compile(
    r"\s+(?:the|an?|this|that|these|those|my|your|his|our|their|its|each|every|any|all|both|some|no"
    r"|until|it|them|me|us|you|him|up|out|off|down|away|back|only|not|sure|as|if|how|what|when"
    r"|where|which|whether|why)\s+[\w\"“']"
)
# Behind a subject: a verb that is no noun, a possessive, an apposition.
_BEHIND_SUBJECT = re.compile(
    r"['’]s\b|\s+\(|\s*[,–—]|\s+(?:and|or|&|who|whose|which|is|was"
    r"|are|were|has|had|have|can|could|will|would|does|did|do|may|might|must|should|shall|also|then"
    r"|became|began|won|wrote|made|took|went|came|held|led|left|met|gave|got|sold|ran|built|grew"
    r"|said|says|\w+ed|\w+(?<![aeiou])s|\w+ly)\b"
)
_FIELD, _FIELD_END = (
    re.compile(r"[:：|][ \t]+[*_]*$"),
    re.compile(r"[*_]*[ \t]*(?:([,;(<|])|\n|\Z)"),
)
_MAX_ADDED = 2  # characters behind a term that are no part of it
_LABELLED = re.compile(r"[:：](?=\s)")
_HEADING = re.compile(r"\f? {0,3}#{1,6}[ \t]")
_SALUTATION_END = re.compile(r"(?:[ \t]+[a-z]+)?[ \t]*[,!][ \t]*$", re.MULTILINE)
_ROMAN_MARK = re.compile(r"[IVXLC]+[.)](?=\s)")
_FIRST_CELL = re.compile(r"\|[ \t]*(?:[^|:\n]{1,60}:[ \t]+)?")
_CELL_END = re.compile(r"[ \t]*\|")
# In Chinese, before a place that ends its clause, and behind what a dated or placed clause tells.
_BEFORE_PLACE, _CLAUSE_ENDS = ("于", "在"), ("。", "，", "；", "\n")
_DATED = re.compile(r"于\d")
_ORDERS = frozenset(("not", *(w for one in ("modal", "do", "be") for w in word_class("en", one))))
_ARTICLES = ("the", "a", "an")
_LEAST_SHOUTED = 4  # letters of a common word in capitals that is no acronym


def keep_names(
    text: str,
    t: Tokens,
    spans: list[NameSpan],
    first: set[int],
    known: DocumentNames,
    small: frozenset[str],
) -> Iterator[NameSpan]:
    """Yield the spans that are names; `small` are the words that the text also writes small."""
    lettered = find_lettered(text, t, known.letters)
    first = first | {at + 1 for at in lettered}
    for found in (part for one in spans for part in _split_phrase(t, one, known)):
        if found.first in lettered and found.last - found.first < 2:
            continue  # the mark of an item
        span = _end_before_sentence(text, t, _drop_letter(found, lettered))
        span = _strip_article(text, t, span, first, known)
        span = _strip_pronoun(t, _strip_common(text, t, span, known), known)
        span = _cut_to_own_term(t, span, known) if span.type == TERM else span
        if span.type == NAME and _is_no_name(text, t, span, known, small):
            continue
        if span.type == QUOTED and known.is_code and span.last - span.first > 1:
            continue  # what a program says
        span = _drop_greeting(text, t, span, first, known)
        span = _drop_plural(text, t, span, first, known)
        if _is_lone_opener(text, t, span, first, known):
            continue
        if known.technical and (
            _is_cell_label(text, t, span) or _is_rare_term(text, t, span, known)
        ):
            continue
        if known.technical and span.type == NAME:
            trimmed = _drop_opener(text, t, span, first, known)
            if trimmed is None or (trimmed != span and _is_no_name(text, t, trimmed, known, small)):
                continue
            span = trimmed
        if not _is_common_noun(text, t, span, known):
            yield span


def _address(known: DocumentNames) -> frozenset[str]:
    """Return the pronouns that a language writes with a capital to be polite: "Sie"."""
    return frozenset(word_class(known.language, "polite"))


def _split_phrase(t: Tokens, span: NameSpan, known: DocumentNames) -> Iterator[NameSpan]:
    """Yield the names of a phrase in a language that writes nouns with capitals.

    An article of the object parts them ("Jorunn Hagen den Ausfall"), and so does "von" between a
    noun with an article and a name of several words ("die Hinweise von Thomas Wied").
    """
    first = span.first
    parting = word_class(known.language, "parting") if span.type == NAME else ()
    for at in range(span.first + 1, span.last - 1) if parting else ():
        parts = t.keys[at] in parting and not t.upper[at] and t.upper[at - 1]
        if parts and t.upper[at + 1]:
            yield NameSpan(first, at, NAME)
            first = at + 1
    of = word_class(known.language, "of")
    if (
        of
        and span.last - first > 3
        and t.keys[first + 1] in of
        and all(t.upper[first + 2 : span.last])
    ):
        if (first and _is_foreign_word(t.keys[first - 1], known)) or first > span.first:
            first += 2
    yield NameSpan(first, span.last, span.type)


def _drop_letter(span: NameSpan, lettered: set[int]) -> NameSpan:
    """Return a span without the letter that counts its item: "K. For"."""
    return NameSpan(span.first + 1, span.last, span.type) if span.first in lettered else span


def _end_before_sentence(text: str, t: Tokens, span: NameSpan) -> NameSpan:
    """Return a name in capitals without the function word that begins its text: "UID The"."""
    for at in range(span.first + 1, span.last):
        is_word = t.upper[at] and t.keys[at] in function_words("en")
        alone = not is_all_capitals(text, t, at)
        if span.type == NAME and is_word and alone and is_all_capitals(text, t, at - 1):
            small = at + 1 < len(t) and not t.upper[at + 1]
            return NameSpan(span.first, at, span.type) if small else span
    return span


def _is_lone_opener(
    text: str, t: Tokens, span: NameSpan, first: set[int], known: DocumentNames
) -> bool:
    """Whether a single word is only a contraction, or has its capital from the sentence."""
    if span.last - span.first > 1:
        return False
    if _CONTRACTION.match(text, t.ends[span.first]):
        return True
    if span.first in first and _COMPOUND.match(text, t.ends[span.first]):
        return not _is_inside(t.keys[span.first], known)
    return span.first in first and _is_opener(text, t, span.first, known)


def _is_common_noun(text: str, t: Tokens, span: NameSpan, known: DocumentNames) -> bool:
    """Whether nouns of German are common ones, or a single one stands alone in no place of names.

    "Tag der Woche" and "Cron-Befehl" are common as their nouns are.
    """
    if not known.noun_capitals or span.type != NAME:
        return False
    keys = t.keys[span.first : span.last]
    if len(keys) > 1:
        joined = not all(t.upper[span.first : span.last])
        return not known.common.isdisjoint(keys if joined else keys[-1:])
    if is_all_capitals(text, t, span.first):
        return keys[0] not in known.repeated
    rare = keys[0] not in known.repeated or keys[0] in known.common
    return rare and not _is_name_place(text, t, span.first)


def _strip_article(
    text: str, t: Tokens, span: NameSpan, first: set[int], known: DocumentNames
) -> NameSpan:
    """Return a span without an article that is no part of it: "A Hello", "the Lessee"."""
    at = span.first
    if span.last - at < 2:
        return span
    while span.type == NAME and span.last - at > 1 and _is_foreign_word(t.keys[at], known):
        if at == span.first and at not in first and t.keys[at] not in _address(known):
            break
        at += 1  # "Die Ruhezeit", "Wenn der Speicher"
    if at > span.first:
        return NameSpan(at, span.last, span.type)
    if t.keys[at] not in _ARTICLES:
        return span
    if span.type == QUOTED:
        defined = not t.upper[at] and all(t.upper[at + 1 : span.last])
        return NameSpan(at + 1, span.last, span.type) if defined else span
    opens = at in first and t.keys[at] not in known.inside and t.keys[at + 1] in known.inside
    return NameSpan(at + 1, span.last, span.type) if opens and span.type == NAME else span


def _strip_common(text: str, t: Tokens, span: NameSpan, known: DocumentNames) -> NameSpan:
    """Return a name without the common nouns around it: "Variable LOGNAME", "Debian-Pakete"."""
    first, last = span.first, span.last
    if not known.common or not all(t.upper[first:last]):
        return span
    while last - first > 1 and t.keys[first] in known.common and is_all_capitals(text, t, last - 1):
        first += 1
    while last - first > 1 and t.keys[last - 1] in known.common:
        last -= 1
    if last < span.last and text[t.ends[last - 1]] == "-" == text[t.starts[last - 1] - 1]:
        first = last - 1  # "Mini-Debian-System" is of Debian
    return NameSpan(first, last, span.type)


def _strip_pronoun(t: Tokens, span: NameSpan, known: DocumentNames) -> NameSpan:
    """Return a name without the function words of another language behind it: "Beachten Sie"."""
    closed = function_words(known.language) if known.language not in ("", "en") else frozenset()
    last = span.last
    while span.type == NAME and last - span.first > 1 and t.keys[last - 1] in closed:
        last -= 1
    return NameSpan(span.first, last, span.type)


def _cut_to_own_term(t: Tokens, span: NameSpan, known: DocumentNames) -> NameSpan:
    """Return the term within a run of characters that stands alone elsewhere: 工程师周文海设计.

    What ends the run stays: 县立图书馆 is no 图书馆, and neither is 青石桥管理局 only 青石桥.
    """
    if not t.unspaced[span.first]:
        return span
    while own := known.fragments.get(t.key(span.first, span.last)):
        span = NameSpan(span.first + own[0], span.first + own[1], TERM)
    if t.key(span.first, span.last) in known.whole_terms:
        return span
    for first in range(span.first, span.last - 1):
        for last in range(span.last - 1, max(first, span.last - _MAX_ADDED - 1), -1):
            if t.key(first, last) in known.own_terms:
                return NameSpan(first, last, TERM)
    return span


def _is_no_name(
    text: str, t: Tokens, span: NameSpan, known: DocumentNames, small: frozenset[str]
) -> bool:
    """Whether a capital has another reason: a heading, a label, a variable, or shouting."""
    at = span.first
    if _is_heading(text, t, span, known) and not _recurs(t, span, known):
        return True
    single = span.last - at == 1
    if is_shouted(text, t.starts[at], t.ends[span.last - 1]):
        return not (single and t.keys[at] in known.inside)
    if _names_section(text, t, span, known, small):
        return True
    if _is_order(text, t, span, small):
        return True
    if not single:  # a row of codes is none of them: "A1 B1 A2"
        keys = t.keys[at : span.last]
        return len(keys) > 2 and all(any(map(str.isdigit, key)) for key in keys)
    return _is_no_name_alone(text, t, at, known, small)


def _is_no_name_alone(
    text: str, t: Tokens, at: int, known: DocumentNames, small: frozenset[str]
) -> bool:
    """The same of a single word."""
    key, end = t.keys[at], t.ends[at]
    if _ROMAN_MARK.match(text, t.starts[at]) and _opens_line(text, t.starts[at]):
        return True  # "XI. Changes"
    if key in known.opening and not is_all_capitals(text, t, at):
        return True  # its capital inside a sentence is a slip: "for k = 1 Note that"
    if not is_all_capitals(text, t, at) and _is_foreign_word(key, known):
        return True  # "Sie"
    if len(key) == 1 and key not in known.repeated:
        return True  # O(n), "6.7 M", "at most N"
    if is_all_capitals(text, t, at) and key in function_words("en"):
        if key in small or len(key) >= _LEAST_SHOUTED:
            return True  # "MUST", "NOT"
    labelled = _LABELLED.match(text, end) is not None and key not in known.inside
    return labelled and bool(text[text.rfind("\n", 0, t.starts[at]) + 1 : t.starts[at]].strip())


def _is_foreign_word(key: str, known: DocumentNames) -> bool:
    """Whether a word is a function word of a text in another language than English."""
    return known.language not in ("", "en") and key in function_words(known.language)


def _is_order(text: str, t: Tokens, span: NameSpan, small: frozenset[str]) -> bool:
    """Whether words in capitals say what must be: "MUST NOT", "DO NOT EDIT", "is RECOMMENDED"."""
    if not all(is_all_capitals(text, t, at) for at in range(span.first, span.last)):
        return False
    if span.last - span.first > 1:
        return t.keys[span.first] in _ORDERS
    before = t.keys[span.first - 1] if span.first else ""
    key = t.keys[span.first]
    return before in _ORDERS and len(key) >= _LEAST_SHOUTED and key in small


def _opens_line(text: str, start: int) -> bool:
    return not text[text.rfind("\n", 0, start) + 1 : start].strip(" \t#\f")


def _is_heading(text: str, t: Tokens, span: NameSpan, known: DocumentNames) -> bool:
    """Whether a span is in a heading, or a single word with a line and a blank line of its own."""
    if known.is_code:
        return False
    start, end = t.starts[span.first], t.ends[span.last - 1]
    line_start = text.rfind("\n", 0, start) + 1
    if _HEADING.match(text, line_start):
        return True
    if span.last - span.first > 1 or text[line_start:start].strip():
        return False
    before = text[:line_start].rstrip(" \t")
    return text[end : end + 2] == "\n\n" and before.endswith("\n\n")


def _recurs(t: Tokens, span: NameSpan, known: DocumentNames) -> bool:
    """Whether the words of a heading are a name: the text has them, single ones with a capital."""
    if span.last - span.first == 1:
        return t.keys[span.first] in known.inside
    return f" {t.key(span.first, span.last)} " in known.body


def _names_section(
    text: str, t: Tokens, span: NameSpan, known: DocumentNames, small: frozenset[str]
) -> bool:
    """Whether words in capitals refer to a heading of the document: "see EXIT STATUS"."""
    if t.key(span.first, span.last) not in known.headings:
        return False
    if not text[t.starts[span.first] : t.ends[span.last - 1]].isupper():
        return False
    key = t.keys[span.first]
    return span.last - span.first > 1 or (len(key) >= _LEAST_SHOUTED and key in small)


def _drop_greeting(
    text: str, t: Tokens, span: NameSpan, first: set[int], known: DocumentNames
) -> NameSpan:
    """Return the name of a salutation without its first word: "Dear Ana," on a line of its own."""
    at, end = span.first, t.ends[span.last - 1]
    if span.type != NAME or at not in first or t.keys[at] in known.inside:
        return span
    line_start = text.rfind("\n", 0, t.starts[at]) + 1
    own_line = not text[line_start : t.starts[at]].strip() and _SALUTATION_END.match(text, end)
    if own_line and span.last - at > 1:
        return NameSpan(at + 1, span.last, span.type)
    return span


def _drop_plural(
    text: str, t: Tokens, span: NameSpan, first: set[int], known: DocumentNames
) -> NameSpan:
    """Return the name behind things that are of it: "Users of Fedora can …"; not "Gangs of New
    York is …", of which only one is spoken.
    """
    at = span.first
    if span.type != NAME or at not in first or span.last - at < 3 or t.keys[at] in known.inside:
        return span
    plural = t.keys[at].endswith("s") and t.keys[at + 1] == "of"
    if plural and _ARE.match(text, t.ends[span.last - 1]):
        return NameSpan(at + 2, span.last, span.type)
    return span


def _is_opener(text: str, t: Tokens, at: int, known: DocumentNames) -> bool:
    """Whether a word that begins a sentence is no name: it has no capital elsewhere, and what
    follows stands behind a verb or behind no subject, or its language has no names there alone.
    """
    if t.keys[at] in function_words(known.language) and known.language != "en":
        return True
    if not t.upper[at] or _is_inside(t.keys[at], known) or is_all_capitals(text, t, at):
        return False
    if any(map(str.isdigit, t.keys[at])):
        return False
    if known.language not in ("", "en"):
        return True
    end = t.ends[at]
    if _BEHIND_VERB.match(text, end) or _SALUTATION_END.match(text, end):
        return True
    if t.keys[at].endswith("s") and _ARE_MANY.match(text, end):
        return True  # things: "Logs are kept"
    follows = at + 1 < len(t) and text[end : t.starts[at + 1]].isspace() and not t.upper[at + 1]
    return follows and _BEHIND_SUBJECT.match(text, end) is None


def _is_inside(key: str, known: DocumentNames) -> bool:
    """Whether a word has its capital inside sentences, too, and mostly there."""
    return key in known.inside and key not in known.mostly_small


def _is_name_place(text: str, t: Tokens, at: int) -> bool:
    """Whether a German noun stands as names of places do: right behind "in" or "aus"."""
    if at == 0 or t.keys[at - 1] not in _BEFORE_PLACES:
        return False
    return text[t.ends[at - 1] : t.starts[at]] == " "


def _is_cell_label(text: str, t: Tokens, span: NameSpan) -> bool:
    """Whether a span is the label of a table cell: `| Code: 23505 |`."""
    start, end = t.starts[span.first], t.ends[span.last - 1]
    return text[end : end + 1] in (":", "：") and text[max(0, start - 2) : start] == "| "


def _is_rare_term(text: str, t: Tokens, span: NameSpan, known: DocumentNames) -> bool:
    """Whether a term of a script without case or spaces occurs only once, and nothing names it."""
    if span.type != TERM:
        return False
    start, end = t.starts[span.first], t.ends[span.last - 1]
    if t.unspaced[span.first] and touches_wrap(text, start, end):
        return True
    if t.key(span.first, span.last) in known.repeated_terms:
        return False
    line = text[text.rfind("\n", 0, start) + 1 : start]
    names_row = _FIRST_CELL.fullmatch(line) and _CELL_END.match(text, end)
    placed = line.endswith(_BEFORE_PLACE) and text.startswith(_CLAUSE_ENDS, end)
    return not (names_row or placed or _DATED.match(text, end))


def _drop_opener(
    text: str, t: Tokens, span: NameSpan, first: set[int], known: DocumentNames
) -> NameSpan | None:
    """Return a span without a word that has its capital only from the sentence, None if empty."""
    at = span.first
    single = span.last - at == 1
    inside = _is_inside(t.keys[at], known) if single else t.keys[at] in known.inside
    if at not in first or (inside and t.keys[at] not in known.small):
        return span
    word = text[t.starts[at] : t.ends[at]]
    if word[1:] != word[1:].lower() or any(map(str.isdigit, word)):
        return span
    if single:
        if _ARE.match(text, t.ends[at]) and word.endswith("s"):
            return None  # things, not a name: "Entries are compressed"
        return span if _IS_SUBJECT.match(text, t.ends[at]) else None
    after = at + 1
    if t.upper[after] and t.keys[at] not in known.small and not _has_own_name(text, t, span, known):
        return span  # "Mail Transfer Agents", but not "The Cache", "Der Server", "Suppose Debian"
    while after < span.last and not t.upper[after]:
        after += 1
    return NameSpan(after, span.last, span.type) if after < span.last else None


def _has_own_name(text: str, t: Tokens, span: NameSpan, known: DocumentNames) -> bool:
    """Whether the second word of a span that opens a sentence is a name without the first.

    Its capital there tells nothing by itself where the span is a subject or all that a field says:
    "Author: Lotte Winther", but "Click Save."
    """
    start, end = t.starts[span.first], t.ends[span.last - 1]
    before = text[text.rfind("\n", 0, start) + 1 : start]
    field_end = _FIELD_END.match(text, end)
    if field_end and (_FIELD.search(before) or not (before.strip() or field_end[1])):
        return False
    second = t.keys[span.first + 1]
    if second in known.apart or known.noun_capitals or t.keys[span.first] in function_words("en"):
        return second in known.inside
    acts = text[end : end + 1] == " " and text[end + 1 : end + 2].isalpha()
    is_subject = acts and _BEHIND_SUBJECT.match(text, end)
    return second in known.inside and not is_subject
