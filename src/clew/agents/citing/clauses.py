"""Clauses of a sentence, each with its subject: what one says is not said by the other.

"N was born in A and studied in B" has no birth in B. Without a parser: a clause is a piece between
commas, conjunctions and brackets that has a verb; a piece without one belongs to its neighbour.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from clew.agents.citing.support import has_title, mentions_name
from clew.text.countries import find_countries
from clew.text.dates import MONTHS
from clew.text.irregular_verbs import BASE_OF_FORM
from clew.text.names import STOP_WORDS, name_key, strip_disambiguation
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.types import Passage

_BRACKET = re.compile(r"\([^()]*\)")
_RELATIVES = frozenset("who whom which that where when".split())
_BREAK = re.compile(
    r"(?:[,;:]\s*)?\b(?P<word>and|but|while|whereas|although|though|because|until|if|unless|who|"
    r"whom|which|that|where|when)\b|[,;:](?=\s)",
    re.IGNORECASE,
)
_FINITE = (
    "is are was were has have had do does did can could will would should may must lies stands"
)
_IRREGULAR = "|".join((*BASE_OF_FORM, "born", "dies", "hangs", "lay"))
# A participle before its noun ("the limited edition") is no verb of the clause.
_VERB = re.compile(
    rf"\b(?:(?P<finite>{_FINITE.replace(' ', '|')})|{_IRREGULAR}"
    r"|(?<!\bthe )(?<!\ba )(?<!\ban )(?<!\bhis )(?<!\bher )(?<!\bits )(?<!\bof )(?<!\bby )"
    r"[a-z]{2,}ed"
    r"|(?<=\b[Hh]e )[a-z]+|(?<=\b[Ss]he )[a-z]+|(?<=\b[Ii]t )[a-z]+|(?<=\b[Tt]hey )[a-z]+"
    r"|[a-z]{3,}s(?=\s+(?:the|an?|its|his|her|their|it|him|them|\d)\b))\b"
)
_FIRST_VERB = re.compile(
    r"(?:Born|Built|[A-Z][a-z]{2,}ed)\b(?=\s+(?:in|on|at|by|as|to|from|with)\b)"
)
_OPENING_VERB = re.compile(r"\s*(?:also\s+|then\s+|later\s+)*[a-z]{2,}s\s+\S")
_NAME = re.compile(
    r"[A-Z][\w’'-]*(?:[\s-]+(?:(?:of|the|de|van|von|der|da|di|la|le|du|for|in|on)\s+){0,2}[A-Z0-9]"
    r"[\w’'-]*)*"
)
_PRONOUN = re.compile(r"\b(?:he|she|it|they)\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"\s*(?:his|her|its|their)\b", re.IGNORECASE)

_REFERS = re.compile(
    r"\b(?:he|she|it|they|him|them|his|her|its|their|this|these|those)\b", re.IGNORECASE
)
_OPENING_PRONOUN = re.compile(r"\W*(?:he|she|it|they|his|her|its|their)\b", re.IGNORECASE)
_MOST_REFERRED = 4  # sentences, each of which refers to the one before
_DEFINITE_NOUN = re.compile(
    r"\W*(?:the|this|that)\s+(?:[a-z][\w’'-]*\s+){0,2}(?P<noun>[a-z][\w’'-]*)", re.I
)
_OWN_NAME = (
    r"(?P<name>[A-Z0-9][\w’'.-]*(?:\s+(?:of\s+|the\s+|de\s+|van\s+|von\s+)?[A-Z0-9][\w’'-]*)*)"
)
_CALLED = r",?\s+(?:the\s+|called\s+|named\s+|known\s+as\s+){0,2}"
_IS = r"(?:\s+(?:is|was|are|were)|,)\s+(?:an?|the|one\s+of\s+the)\s+(?:[\w’'-]+\s+){0,3}"
_MOST_BEFORE = 6  # sentences in which the noun is looked for


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a text that says one thing, and the words that name what it says it of."""

    start: int
    end: int
    subject: str
    in_brackets: bool = False


@lru_cache(maxsize=256)
def split_clauses(sentence: str) -> tuple[Clause, ...]:
    """Return the clauses of a sentence in order, those in brackets behind the others."""
    plain = _BRACKET.sub(lambda found: " " * len(found[0]), sentence)
    main = _fill_opening(_join_pieces(plain))
    inner = [
        Clause(found.start(), found.end(), _last_name(plain[: found.start()]), in_brackets=True)
        for found in _BRACKET.finditer(sentence)
    ]
    return (*(main or [Clause(0, len(sentence), "")]), *inner)


def find_clause(sentence: str, at: int) -> Clause:
    """Return the clause of a sentence that has this place, the bracket where it is in one."""
    clauses = split_clauses(sentence)
    inside = [c for c in clauses if c.start <= at < c.end]
    return inside[-1] if inside else clauses[0]


def find_verbs(text: str) -> list[str]:
    """Return the words of a text that are verbs by their form or place."""
    return [found[0].lower() for found in _VERB.finditer(text)]


def _pieces(plain: str) -> Iterator[tuple[int, int, str]]:
    """Yield the pieces between breaks, each with the mark or word that opens it."""
    start, opened = 0, ""
    for found in _BREAK.finditer(plain):
        yield start, found.start(), opened
        start, opened = found.end(), (found["word"] or ",").lower()
    yield start, len(plain), opened


def _join_pieces(plain: str) -> list[Clause]:
    """Make clauses of the pieces that have a verb; what precedes the first verb is the subject."""
    clauses: list[Clause] = []
    pending, main = None, ""
    for start, end, opened in _pieces(plain):
        verb = _find_verb(plain[start:end], opened)
        relative = opened in _RELATIVES
        if verb is None:
            if clauses and pending is None:
                clauses[-1] = replace(clauses[-1], end=end)
            elif pending is None:
                pending = start
            continue
        begin = start if pending is None or relative else pending
        before = plain[begin : start + verb.start()].strip(" ,")
        if relative:
            subject = before or _last_name(plain[:start])
        elif before:
            subject = main = before
        else:
            subject = _inherit_subject(plain, clauses, opened, verb, main)
        if not relative:
            pending = None
        clauses.append(Clause(begin, end, subject))
    return clauses


def _find_verb(piece: str, opened: str) -> re.Match[str] | None:
    if (opened in ("and", "but") or opened in _RELATIVES) and _OPENING_VERB.match(piece):
        return re.match(r"\s*", piece)
    return (None if opened else _FIRST_VERB.match(piece)) or _VERB.search(piece)


def _inherit_subject(
    plain: str, clauses: Sequence[Clause], opened: str, verb: re.Match[str], main: str
) -> str:
    """Return the subject of a clause that begins with its verb: that of the one before.

    Behind a comma a participle belongs to the name before it, a finite verb to the main subject.
    """
    if not clauses:
        return ""
    before = clauses[-1]
    if opened != ",":
        return before.subject
    if "finite" in verb.re.groupindex and verb["finite"]:
        return main or before.subject
    return _last_name(plain[before.start : before.end]) or before.subject


def _fill_opening(clauses: list[Clause]) -> list[Clause]:
    """Give "Born in A, he …" the subject of the clause behind it."""
    if len(clauses) > 1 and not clauses[0].subject:
        return [replace(clauses[0], subject=clauses[1].subject), *clauses[1:]]
    return clauses


def _last_name(text: str) -> str:
    found = [name[0] for name in _NAME.finditer(text) if name[0].lower() not in STOP_WORDS]
    return found[-1] if found else ""


def titles_name(passage: Passage, name: str) -> bool:
    """Whether a page's title is a name, or begins with it: "Vantage" for "Vantage Optics"."""
    title = name_key(strip_disambiguation(passage.title)).split()
    given = name_key(name).split()
    return has_title(passage, name) or (bool(given) and title[: len(given)] == given)


def is_of(name: str, passage: Passage, start: int, sentence: str, clause: Clause) -> bool:
    """Whether a clause of the sentence at `start` says something of a name.

    The name is its subject or stands in it; or the subject is a pronoun or "the company", and the
    page, or the sentence before, is about the name, or a sentence before gives the company it.
    """
    if not clause.in_brackets and mentions_name(name, sentence[clause.start : clause.end]):
        return not _is_owner(name, clause.subject)
    if mentions_name(name, clause.subject):
        return not _is_owner(name, clause.subject)
    if _POSSESSIVE.match(clause.subject):
        return False
    if has_other_name(clause.subject, f"{passage.title} {name}"):
        return False
    meant = find_meant(passage.text[:start], clause.subject)
    if meant is not None and mentions_name(name, meant[1]):
        return True
    return titles_name(passage, name) or mentions_name(name, find_antecedent(passage, start))


def names_subject(name: str, passage: Passage, start: int, clause: Clause) -> bool:
    """Whether the subject of a clause is a name, or a pronoun that stands for it."""
    if not name or _is_owner(name, clause.subject):
        return False
    pronoun = _PRONOUN.fullmatch(clause.subject.strip()) is not None
    subject = find_antecedent(passage, start) if pronoun else clause.subject
    return mentions_name(name, subject)


def _is_owner(name: str, subject: str) -> bool:
    """Whether only something of a name is spoken of: "N's father"."""
    return re.search(rf"{re.escape(name)}['’]s?\s+\w", subject, re.IGNORECASE) is not None


def has_other_name(subject: str, known: str) -> bool:
    """Whether a subject has a name beside those known; nations and months are none."""
    if _PRONOUN.search(subject):
        return False
    own = set(split_words(known))
    words = re.findall(r"[A-Z][\w’'-]*", subject)
    first = subject.lstrip("#*_ \"“'").split(" ")[0]
    return any(
        not (set(split_words(word)) & own)
        and word.lower() not in MONTHS
        and not find_countries(split_words(word))[0]
        and not (word == first and word.lower() in STOP_WORDS)
        for word in words
    )


def find_antecedent(passage: Passage, start: int) -> str:
    """Return the subject of the nearest sentence before a place that names one, else the title."""
    before = [span for span in sentence_spans(passage.text) if span[1] <= start]
    for first, last in reversed(before):
        sentence = passage.text[first:last]
        subject = split_clauses(sentence)[0].subject
        if not sentence.startswith("#") and has_other_name(subject, ""):
            return subject
    return passage.title


def refer_back(text: str, at: int, said: str) -> int:
    """Return where the sentences begin that what is said at a place refers to; else the place.

    "It" goes back to the sentence before, and on while that begins with a pronoun, too; "the
    grinder" to the sentence that gives one its name.
    """
    meant = find_meant(text[:at], split_clauses(said)[0].subject)
    if meant is not None:
        return meant[0]
    before = sentence_spans(text[:at]) if _REFERS.search(said) else []
    for first, last in reversed(before[-_MOST_REFERRED:]):
        at = first
        if not _OPENING_PRONOUN.match(text[first:last]):
            break
    return at


def find_meant(text: str, subject: str) -> tuple[int, str] | None:
    """Return where the sentence begins that names what a subject refers to, and that name.

    "… its first grinder, the Korn. It sold well. The grinder was drawn by …": the nearest sentence
    before that has the noun tells, if a name stands beside the noun there. None if the subject is
    no "the grinder", or nothing names it.
    """
    found = _DEFINITE_NOUN.fullmatch(subject)
    if found is None:
        return None
    noun = re.escape(found["noun"])
    for first, last in reversed(sentence_spans(text)[-_MOST_BEFORE:]):
        sentence = text[first:last]
        if re.search(rf"\b{noun}\b", sentence, re.IGNORECASE) is None:
            continue
        name = _find_name_beside(sentence, noun)
        if name:
            return first, name
        if not re.search(rf"\b(?:the|this|that)\s+{noun}\b", sentence, re.IGNORECASE):
            return None  # another one, without a name
    return None


def _find_name_beside(sentence: str, noun: str) -> str:
    """Return the name that stands for a noun in a sentence: "the fund N", "N is a fund"."""
    for pattern in (
        rf"\b{noun}{_CALLED}{_OWN_NAME}",
        rf"{_OWN_NAME}{_IS}{noun}\b",
        rf"{_OWN_NAME}\s+{noun}\b",
    ):
        found = re.search(pattern, sentence)
        if found is not None:
            return found["name"]
    return ""
