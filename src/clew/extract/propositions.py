"""Propositions by rules: sentences that can be understood alone, each one an n-ary fact.

The names come from `clew.extract.rules`. Every sentence is split where two statements are joined,
a pronoun before any name is replaced by the name it stands for, "The film" gets its title, and a
sentence that names nothing is preceded by the subject of its document. What is not certain stays
as it is written: a wrong name does more harm than a pronoun.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from clew.extract.model_extractors import DocumentExtractor
from clew.extract.rules import Offline
from clew.extract.subject import ALTERNATIVE
from clew.text.names import name_key, strip_disambiguation
from clew.text.unicode import UNSPACED_CHAR
from clew.types import (
    LITERAL_TYPES,
    MEMBER,
    SUBJECT,
    Chunk,
    Document,
    Extraction,
    RawEntity,
    RawFact,
)

_HE, _SHE, _IT, _THEY = "he", "she", "it", "they"
_PRONOUNS = {
    **{"he": _HE, "his": _HE, "she": _SHE, "her": _SHE, "it": _IT, "its": _IT},
    **{"they": _THEY, "their": _THEY, "他": _HE, "她": _SHE, "它": _IT},
}
_POSSESSIVES = frozenset({"his", "her", "its", "their"})
_PRONOUN = re.compile(r"\b(he|she|it|they|his|her|its|their)\b(?!['’])", re.IGNORECASE)
_CHINESE_PRONOUN = re.compile(r"[他她它](?!们)")
# "It is known that" and "It was then that" stand for nothing.
_EMPTY_IT = re.compile(
    r"it\s+(?:is|was|has been|seems|appears)\s+(?:(?:\S+\s+){0,3}(?:that|who)\b"
    r"|(?:also |not |im)?(?:possible|important|necessary|common|easy|hard|difficult|worth\w*)\s)"
)
_VERBS = "is|was|are|were|has|had|became"
_VERB_LIKE = re.compile(
    rf"(?:{_VERBS}|also|can|could|will|would|may|does|did|\w{{2,}}(?:ed|(?<!s)s))"
)
_DEFINITION = re.compile(r"\b(?:is|was|are|were)\s+(?:an?|the|one of)\s+([^.,;(]+)", re.IGNORECASE)
_BORN = re.compile(r"\bborn\b|出生|生于", re.IGNORECASE)
_HE_OR_SHE = re.compile(r"\b(?:he|she|his|her|him)\b", re.IGNORECASE)
_ANY_PRONOUN = re.compile(rf"{_PRONOUN.pattern}|{_CHINESE_PRONOUN.pattern}", re.IGNORECASE)
_NOUN_END = re.compile(r"\w+(?:ed|ing)|of|in|on|at|for|from|by|with|to|and|or|that|which|who|where")
_PERSON_NOUN = re.compile(r"\w{3,}(?:er|or|ist|ian|man|woman|ess)s?")
_THING_NOUN = re.compile(
    r"(?:film|movie|album|song|single|novel|book|series|play|opera|game|magazine|\w*paper|river|"
    r"town|city|village|county|district|country|island|lake|mountain|street|road|building|bridge|"
    r"church|castle|museum|school|university|college|company|band|club|team|stadium|ship|tower|"
    r"theat(?:er|re)|cent(?:er|re)|airport|station|award|battle|war|species|genus|language|disease|"
    r"software|network|journal|computer|order|number|letter|chapter|character)s?"
)
# A statement with a subject of its own, or one that goes on with the subject of the first.
_NEW_SUBJECT = re.compile(
    rf",? (?:and|but) (?=(?:he|she|it|they) \w)|; (?=[^;]*\b(?:{_VERBS})\b)|；(?=\w)"
)
_NEW_NAME = re.compile(rf", (?:and|but) (?=(?:the )?[^\W\d_a-z]\w*(?: \w+){{0,4}} (?:{_VERBS}) )")
_SAME_SUBJECT = re.compile(rf",? (?:and|but) (?=(?:(?:later|then|also) )?(?:{_VERBS}) )")
_SUBORDINATE = re.compile(
    r"\b(?:who|whom|whose|which|that|where|when|while|because|although|if|as|between)\b"
)
_LONG_WORDS, _PART_WORDS = 12, 4  # words of a sentence worth splitting, and of its shortest part
_LEAD_WORDS, _LEAD_IN_WORDS = 3, 8  # words before a pronoun: without and with a comma
_ANY = "the subject"  # stands for the subject where its name does not matter
# What stands in a place, or after an article, is no person.
_NOT_PERSON_BEFORE = re.compile(
    r"\b(?:in|at|near|on|into|across|around|over|the|an?)\s+\Z|[于在到往至从《]\Z", re.IGNORECASE
)
_UNKNOWN_TYPES = frozenset(("", "person", "name", "title", "term"))
_BEFORE_CHARS = 12  # read before a name
_LEAD_CHARS = 5  # an article or a quotation mark may precede the name a sentence begins with


@dataclass(frozen=True)
class PropositionsOffline:
    """The rule-based extractor of propositions; `names` finds the names."""

    names: Offline = Offline()
    version: int = 2

    def stamp_parts(self, document: Document) -> tuple[str, ...]:
        """Return what a document's stamp needs besides the settings above."""
        return self.names.stamp_parts(document)

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk; names stay known from chunk to chunk."""
        extractions = await self.names(document, chunks)
        reading = _Reading(document.text)
        return [
            replace(one, facts=tuple(_read_chunk(chunk, one, reading)))
            for chunk, one in zip(chunks, extractions, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Mention:
    """A name where it stands in the document."""

    start: int
    end: int
    name: str
    type: str
    known: bool
    """Whether it is a name for certain, and not a date or number."""
    names_subject: bool

    def may_be_person(self, text: str) -> bool:
        """Whether it may name a person where it stands in the text."""
        if self.type == "person":
            return True
        if self.type in LITERAL_TYPES or self.type not in _UNKNOWN_TYPES:
            return False
        before = text[max(0, self.start - _BEFORE_CHARS) : self.start]
        inside = bool(before.strip()) and before.rstrip()[-1] not in ".!?:。！？"
        if _NOT_PERSON_BEFORE.search(before) or not (self.known or inside):
            return False
        return _is_unspaced(self.name[0]) or _is_person_like(self.name)


def _is_person_like(name: str) -> bool:
    """Whether a name is written as persons' are: capitals only, and no noun for a thing."""
    words = strip_disambiguation(name).split()
    proper = all(word[:1].isupper() and not any(map(str.isdigit, word)) for word in words)
    return proper and not _THING_NOUN.fullmatch(words[-1].lower()) if words else False


@dataclass(slots=True)
class _Reading:
    """What a reader remembers of a document: who was spoken of, and by which pronoun."""

    text: str
    subject: str = ""
    nouns: frozenset[str] = frozenset()
    """Nouns of the sentence that says what the subject is."""
    leading: str = ""
    """The name the sentence before begins with, or that its first pronoun stands for."""
    several: bool = False
    """Whether the sentence before names several things: "they" may be all of them."""
    persons: tuple[str, ...] = ()
    things: tuple[str, ...] = ()
    """The names spoken of last that may be persons, and those that may be things."""
    pronouns: dict[str, str] = field(default_factory=dict)
    """The pronoun of each name whose kind is known."""
    types: dict[str, str] = field(default_factory=dict)

    def begin(self, subject: str, sentence: str) -> None:
        """Take the subject, with what its first sentence tells about it."""
        if not subject or subject == self.subject:
            return
        self.subject = subject
        defined = _DEFINITION.search(sentence)
        lead = sentence[: defined.start()] if defined else sentence
        if not _says_name(subject, lead):
            return
        words = defined[1].lower().split() if defined else []
        end = next((at for at, word in enumerate(words) if _NOUN_END.fullmatch(word)), len(words))
        self.nouns = frozenset(words[:end])
        head = words[end - 1] if end else ""
        if _THING_NOUN.fullmatch(head):
            self.pronouns[subject] = _IT
        elif _BORN.search(sentence) or _PERSON_NOUN.fullmatch(head) or head:
            self._set_person(subject, certain=not head or bool(_PERSON_NOUN.fullmatch(head)))

    def _set_person(self, name: str, *, certain: bool) -> None:
        """Take the pronoun that comes first, if it is also the most frequent of both."""
        found = [_PRONOUNS[one.group().lower()] for one in _ANY_PRONOUN.finditer(self.text)]
        counts = Counter(found)
        first = next((one for one in found if certain or one != _THEY), "")
        if first in (_HE, _SHE) and counts[first] == max(counts[_HE], counts[_SHE]):
            self.pronouns[name] = first
        if certain or first in (_HE, _SHE):
            self.types.setdefault(name, "person")

    def resolve(self, pronoun: str) -> str:
        """Return the name a pronoun stands for, "" if more than one fits, or none."""
        kind = _PRONOUNS[pronoun.lower()]
        if kind == _THEY and self.several:
            return ""
        name = self._find_person(kind) if kind in (_HE, _SHE) else self._find_thing(kind)
        if name:
            self.pronouns[name] = kind
        return name

    def _find_person(self, kind: str) -> str:
        """Return whom "he" or "she" stands for: the only one who was spoken of and fits."""
        fitting = [one for one in self.persons if self.pronouns.get(one, kind) == kind]
        if self.pronouns.get(self.leading) == kind and self.leading not in fitting:
            fitting.append(self.leading)
        if len(fitting) > 1:
            # A single word may be a place; who led the sentence goes on.
            others = [one for one in fitting if one != self.leading and _is_full_name(one)]
            sure = self.pronouns.get(self.leading) == kind
            return self.leading if sure and not others else ""
        if fitting:
            return fitting[0]
        return self.subject if self.pronouns.get(self.subject) == kind else ""

    def _find_thing(self, kind: str) -> str:
        """Return what "it" stands for: what leads or the page is about, if that is a thing."""
        for name in (self.leading, self.subject):
            if name and self.pronouns.get(name) == kind:
                return name
        if self.subject and self.leading == self.subject and self._may_be_thing(self.subject):
            return self.subject
        fitting = [one for one in self.things if self._may_be_thing(one)]
        return fitting[0] if len(fitting) == 1 else ""

    def _may_be_thing(self, name: str) -> bool:
        if not name or name in self.pronouns or self.types.get(name) == "person":
            return self.pronouns.get(name) == _IT
        if not _is_person_like(name):
            return True
        # A page that never says "he" or "she" is about no person.
        return name == self.subject and not _HE_OR_SHE.search(self.text)

    def remember(self, referent: str, named: Sequence[_Mention]) -> None:
        """Keep who and what a statement speaks of; one that names no one changes nothing."""
        persons = [self._called(one) for one in named if one.may_be_person(self.text)]
        things = [self._called(one) for one in named if one.known and one.type != "person"]
        if self.pronouns.get(referent, _IT) in (_HE, _SHE):
            persons.append(referent)
        elif referent:
            things.append(referent)
        self.persons = tuple(dict.fromkeys(persons)) or self.persons
        self.things = tuple(dict.fromkeys(things)) or self.things

    def _called(self, mention: _Mention) -> str:
        return _call(mention, self.subject)


def _call(mention: _Mention, subject: str) -> str:
    """Return the subject for another name of it; a name unlike it may be someone else's."""
    if not mention.names_subject or not subject or subject == _ANY:
        return subject if mention.names_subject and subject else mention.name
    words, own = (set(name_key(one).split()) for one in (subject, mention.name))
    short = "".join(word[0] for word in mention.name.split()).lower() == subject.lower()
    unspaced = _is_unspaced(subject[0]) and (subject in mention.name or mention.name in subject)
    return subject if words & own or short or unspaced else mention.name


def _says_name(name: str, text: str) -> bool:
    """Whether a text has the last word of a name, or the name in a script without spaces."""
    plain = strip_disambiguation(name)
    return bool(plain) and name_key(plain.split()[-1]) in name_key(text)


def _is_full_name(name: str) -> bool:
    return " " in name or (_is_unspaced(name[0]) and len(name) > 1)


def _read_chunk(chunk: Chunk, found: Extraction, reading: _Reading) -> Iterator[RawFact]:
    subject = next((name for f in found.facts for name, role in f.members if role == SUBJECT), "")
    reading.begin(subject, found.facts[0].text if found.facts else "")
    mentions = sorted(_find_mentions(found.entities, subject), key=lambda one: one.start)
    reading.types.update((one.name, one.type) for one in mentions if one.known)
    for fact in found.facts:
        start, end = fact.span
        inside = [one for one in mentions if start <= one.start and one.end <= end]
        yield from _read_sentence(_Sentence(fact, inside), reading)
        reading.several = len({one.name for one in inside if one.known}) > 1


def _find_mentions(entities: Sequence[RawEntity], subject: str) -> Iterator[_Mention]:
    """Yield all names; other names of what the document is about stand for its subject."""
    for one in entities:
        names_subject = one.name == subject or one.about >= ALTERNATIVE
        # A single word that occurs once may be an ordinary word at the start of a sentence.
        certain = names_subject or " " in one.name or len(one.spans) > 1
        known = one.type not in LITERAL_TYPES and (certain or _is_unspaced(one.name[0]))
        for start, end in one.spans:
            yield _Mention(start, end, one.name, one.type, known, names_subject)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence as a fact, and the names in it."""

    fact: RawFact
    mentions: list[_Mention]

    def names_within(self, begin: int, end: int) -> list[_Mention]:
        """Return the names between two offsets of the text."""
        first = self.fact.span[0]
        return [one for one in self.mentions if begin <= one.start - first < end]

    def leading_name(self, begin: int, subject: str) -> str:
        """Return the name that stands at an offset, "" if none does."""
        first = self.fact.span[0]
        for one in self.mentions:
            if begin <= one.start - first <= begin + _LEAD_CHARS and one.known:
                return _call(one, subject)
        return ""


@dataclass(frozen=True, slots=True)
class _Part:
    """A statement within a sentence; `goes_on` if its subject is that of the part before."""

    begin: int
    end: int
    goes_on: bool = False


def _read_sentence(sentence: _Sentence, reading: _Reading) -> Iterator[RawFact]:
    text = sentence.fact.text
    for part in _split_sentence(sentence):
        named = sentence.names_within(part.begin, part.end)
        written, referent = _complete(sentence, part, named, reading)
        leading = sentence.leading_name(part.begin, reading.subject) or referent
        reading.leading = leading or reading.leading
        reading.remember(referent, named)
        if part.end < len(text):
            written = written.rstrip(" ,;；") + ("。" if text[part.end] == "；" else ".")
        members = [(name, role) for name, role in sentence.fact.members if role == SUBJECT]
        subject = members[0][0] if members else ""
        others = dict.fromkeys([*filter(None, [referent]), *(one.name for one in named)])
        members += [(name, MEMBER) for name in others if name != subject]
        yield replace(sentence.fact, text=written, members=tuple(members))


def _complete(
    sentence: _Sentence, part: _Part, named: list[_Mention], reading: _Reading
) -> tuple[str, str]:
    """Return the part with its missing name filled in, and that name."""
    text = sentence.fact.text[part.begin : part.end].strip()
    offset = sentence.fact.span[0] + part.begin
    things = [one for one in named if one.known]
    if part.goes_on and reading.leading:
        return f"{strip_disambiguation(reading.leading)} {text}", reading.leading
    if part.begin:
        text = text[:1].upper() + text[1:]
    before = things[0].start - offset if things else len(text)
    pronoun = _find_pronoun(text[: max(before, 0)])
    if pronoun is not None and (name := reading.resolve(pronoun[0])):
        filled = strip_disambiguation(name) + ("'s" if pronoun[0].lower() in _POSSESSIVES else "")
        return text[: pronoun.start()] + filled + text[pronoun.end() :], name
    subject = reading.subject
    if not subject or any(one.names_subject for one in things):
        return text, ""
    if name_key(strip_disambiguation(subject)) in name_key(text):
        return text, ""
    shown = strip_disambiguation(subject)
    if at := _definite_end(text, reading.nouns):
        return f"{text[:at]} {shown}{text[at:]}", subject
    if things and pronoun is None:
        return text, ""
    return shown + ("：" if _is_unspaced(text[0]) else ": ") + text, ""


def _definite_end(text: str, nouns: frozenset[str]) -> int:
    """Return where "The film" ends, if it says what the subject is; 0 otherwise."""
    words = text.split(" ", 4)
    for last in (2, 1):
        if len(words) > last + 1 and words[0] == "The" and words[last].lower() in nouns:
            follows = _VERB_LIKE.fullmatch(words[last + 1])
            return len(" ".join(words[: last + 1])) if follows else 0
    return 0


def _find_pronoun(text: str) -> re.Match[str] | None:
    """Find the first pronoun that stands for something named before the sentence."""
    if found := _CHINESE_PRONOUN.match(text):
        return found
    found = _PRONOUN.search(text)
    if found is None:
        return None
    word, before = found[0].lower(), text[: found.start()]
    if word == "it" and _EMPTY_IT.match(text.lower(), found.start()):
        return None
    # Within a sentence these often stand for a thing that the sentence itself speaks of.
    if before and (word in _POSSESSIVES or (word in (_IT, _THEY) and not _is_lead_in(before))):
        return None
    return found


def _is_lead_in(text: str) -> bool:
    words = len(text.split())
    return words <= _LEAD_WORDS or (text.endswith(", ") and words <= _LEAD_IN_WORDS)


def _split_sentence(sentence: _Sentence) -> list[_Part]:
    """Split a long sentence into its statements, where each has a subject for certain."""
    text = sentence.fact.text
    if len(text.split()) < _LONG_WORDS and "；" not in text:
        return [_Part(0, len(text))]
    parts, begin, goes_on = [], 0, False
    cuts = [(m.start(), m.end(), False) for m in _NEW_SUBJECT.finditer(text)]
    cuts += [
        (m.start(), m.end(), False)
        for m in _NEW_NAME.finditer(text)
        if sentence.leading_name(m.end(), _ANY)
    ]
    cuts += [(m.start(), m.end(), True) for m in _SAME_SUBJECT.finditer(text)]
    for end, after, same in sorted(cuts):
        if end < begin or not _may_cut(sentence, begin, end, after, same):
            continue
        parts.append(_Part(begin, end, goes_on))
        begin, goes_on = after, same
    return [*parts, _Part(begin, len(text), goes_on)]


def _may_cut(sentence: _Sentence, begin: int, end: int, after: int, same: bool) -> bool:
    text = sentence.fact.text
    before = text[begin:end]
    if before.count("(") != before.count(")") or sum(map(before.count, '"“”')) % 2:
        return False
    shortest = min(len(before.split()), len(text[after:].split()))
    if shortest < _PART_WORDS and text[end:after] != "；":
        return False
    if not same:
        return True
    # "…, who was born there and was …": whose subject it is depends on the clause.
    starts = sentence.leading_name(begin, _ANY) or _PRONOUN.match(before)
    return bool(starts) and _SUBORDINATE.search(before) is None


def _is_unspaced(char: str) -> bool:
    return UNSPACED_CHAR.match(char) is not None


def _keep_sentences(names: Offline) -> DocumentExtractor:
    return names


OFFLINE_EXTRACTORS: dict[str, Callable[[Offline], DocumentExtractor]] = {
    "offline": _keep_sentences,
    "propositions-offline": PropositionsOffline,
}
"""Extractors without a model by their names in the settings, each made from the rules for names."""
