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
_BORN = re.compile(r"\bborn\b", re.IGNORECASE)
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
_LEAD_CHARS = 5  # an article or a quotation mark may precede the name a sentence begins with


@dataclass(frozen=True)
class PropositionsOffline:
    """The rule-based extractor of propositions; `names` finds the names."""

    names: Offline = Offline()
    version: int = 1

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
    pronouns: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)

    def begin(self, subject: str, sentence: str) -> None:
        """Take the subject, with what its first sentence tells about it."""
        if not subject or subject == self.subject:
            return
        self.subject = subject
        defined = _DEFINITION.search(sentence)
        words = defined[1].lower().split() if defined else []
        end = next((at for at, word in enumerate(words) if _NOUN_END.fullmatch(word)), len(words))
        self.nouns = frozenset(words[:end])
        head = words[end - 1] if end else ""
        if _THING_NOUN.fullmatch(head):
            self.pronouns[subject] = _IT
        elif _BORN.search(sentence) or _PERSON_NOUN.fullmatch(head):
            self._set_person(subject)

    def _set_person(self, name: str) -> None:
        counts = Counter(_PRONOUNS[found.lower()] for found in _PRONOUN.findall(self.text))
        if counts[_HE] != counts[_SHE]:
            self.pronouns[name] = max((_HE, _SHE), key=lambda one: counts[one])
        self.types.setdefault(name, "person")

    def resolve(self, pronoun: str) -> str:
        """Return the name a pronoun stands for, "" if that is not clear."""
        kind = _PRONOUNS[pronoun.lower()]
        if kind == _THEY and self.several:
            return ""
        known = (name for name, one in reversed(self.pronouns.items()) if one == kind)
        for name in (self.leading, *known, self.subject):
            if name and self._fits(name, kind):
                self.pronouns.pop(name, None)
                self.pronouns[name] = kind  # the last one spoken of comes last
                return name
        return ""

    def _fits(self, name: str, kind: str) -> bool:
        if name in self.pronouns:
            return self.pronouns[name] == kind
        type_ = self.types.get(name, "")
        if kind in (_HE, _SHE):
            return type_ in ("", "person", "name", "title", "term")
        return type_ != "person"


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
                return subject if one.names_subject else one.name
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
