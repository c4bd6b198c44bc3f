"""Propositions by rules: sentences that can be understood alone, each one an n-ary fact.

The names come from `clew.extract.rules`. Every sentence is split where two statements are joined,
a pronoun before any name is replaced by the name or noun it stands for, "The film" gets its title,
and a sentence that names nothing, by a pronoun neither, is preceded by the subject of its document.
What is not certain stays as it is written: a wrong name does more harm than a pronoun.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from clew.extract.model_extractors import DocumentExtractor
from clew.extract.references import (
    ANY,
    CHINESE_PRONOUN,
    HE,
    IT,
    PRONOUN,
    SHE,
    THEY,
    Mention,
    Reading,
    is_full_name,
    is_unspaced,
    resolve_mention,
)
from clew.extract.rules import Offline
from clew.extract.subject import ALTERNATIVE
from clew.text.name_spans import TITLE
from clew.text.names import name_key, strip_disambiguation
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

_POSSESSIVES = frozenset({"his", "her", "its", "their"})
# "It is known that" and "It was then that" stand for nothing.
_EMPTY_IT = re.compile(
    r"it\s+(?:is|was|has been|seems|appears)\s+(?:(?:\S+\s+){0,3}(?:that|who)\b"
    r"|(?:also |not |im)?(?:possible|important|necessary|common|easy|hard|difficult|worth\w*)\s"
    r"|(?:\w+ly )?(?:rain|snow|wind|cold|hot|warm|dark|late|early|noon|midnight|time)\w*)"
    r"|it\s+(?:rain|snow)"
)
_VERBS = "is|was|are|were|has|had|became"
_VERB_LIKE = re.compile(
    rf"(?:{_VERBS}|also|can|could|will|would|may|does|did|\w{{2,}}(?:ed|(?<!s)s))"
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
_OTHER_PERSON = re.compile(r"\b(?:him|her|his)\b(?!['’])", re.IGNORECASE)
# After "her" as an object; anything else is what belongs to her.
_AFTER_OBJECT = re.compile(
    r"\s*(?:[.,;:!?)]|\Z|(?:to|and|or|as|in|on|at|for|with|from|into|about|that|how|when|where|why|"
    r"what|who|while|because|after|before|until|by|the|an?|\w+ly)\b)",
    re.IGNORECASE,
)
_HEADING_WORDS = 10
_LEAD_CHARS = 5  # an article or a quotation mark may precede the name a sentence begins with


@dataclass(frozen=True)
class PropositionsOffline:
    """The rule-based extractor of propositions; `names` finds the names."""

    names: Offline = Offline()
    version: int = 7

    def stamp_parts(self, document: Document) -> tuple[str, ...]:
        """Return what a document's stamp needs besides the settings above."""
        return self.names.stamp_parts(document)

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk; names stay known from chunk to chunk."""
        extractions = await self.names(document, chunks)
        reading = Reading(document.text)
        return [
            replace(one, facts=tuple(_read_chunk(chunk, one, reading)))
            for chunk, one in zip(chunks, extractions, strict=True)
        ]


def _read_chunk(chunk: Chunk, found: Extraction, reading: Reading) -> Iterator[RawFact]:
    subject = next((name for f in found.facts for name, role in f.members if role == SUBJECT), "")
    told = (fact.text for fact in found.facts if not _is_heading(fact, reading.text))
    reading.begin(subject, next(told, ""))
    mentions = list(_find_mentions(found.entities, subject))
    mentions += _find_small_subject(chunk, subject, {one.start for one in mentions})
    mentions.sort(key=lambda one: one.start)
    reading.types.update((one.name, one.type) for one in mentions if one.known)
    for fact in found.facts:
        start, end = fact.span
        inside = [one for one in mentions if start <= one.start and one.end <= end]
        if _is_heading(fact, reading.text):
            heading = _read_heading(fact, inside, reading)
            if not fact.text.startswith("#"):  # a line without a mark may be an item of a list
                yield heading
            continue
        propositions = list(_read_sentence(_Sentence(fact, inside), reading))
        yield from propositions
        reading.end_sentence(propositions[-1].text, inside)


def _find_small_subject(chunk: Chunk, subject: str, taken: set[int]) -> Iterator[Mention]:
    """Yield where the subject, a title of several words, is written small: "The copper beetle"."""
    plain = strip_disambiguation(subject)
    if " " not in plain or plain == plain.title():
        return
    for found in re.finditer(rf"\b{re.escape(plain)}\b", chunk.text, re.IGNORECASE):
        if chunk.start + found.start() not in taken:
            start, end = chunk.start + found.start(), chunk.start + found.end()
            yield Mention(start, end, subject, TITLE, known=True, names_subject=True)


def _is_heading(fact: RawFact, text: str) -> bool:
    """Whether a sentence is marked as a heading, or is a short line of its own without an end."""
    start, end = fact.span
    if fact.text.startswith("#"):
        return True
    alone = text[:start].rstrip(" ").endswith("\n") and text[end:].lstrip(" ").startswith("\n")
    ends = fact.text.rstrip()[-1:] in ".!?:;,。！？：；"
    return alone and not ends and len(fact.text.split()) <= _HEADING_WORDS


def _read_heading(fact: RawFact, inside: list[Mention], reading: Reading) -> RawFact:
    """Begin a section; it is about someone only where the text names them elsewhere as well."""
    reading.leave_section()
    title = fact.text.lstrip("# ").strip()
    for one in inside:
        if one.name == title and is_full_name(title) and reading.text.count(f" {title}") > 1:
            reading.leading = resolve_mention(one, reading.subject)
            reading.remember("", [one])
            return fact
    members = tuple(member for member in fact.members if member[1] == SUBJECT)
    return replace(fact, members=members or fact.members)


def _find_mentions(entities: Sequence[RawEntity], subject: str) -> Iterator[Mention]:
    """Yield all names; other names of what the document is about stand for its subject."""
    for one in entities:
        names_subject = one.name == subject or one.about >= ALTERNATIVE
        # A single word that occurs once may be an ordinary word at the start of a sentence.
        certain = names_subject or " " in one.name or len(one.spans) > 1
        known = one.type not in LITERAL_TYPES and (certain or is_unspaced(one.name[0]))
        for start, end in one.spans:
            yield Mention(start, end, one.name, one.type, known, names_subject)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence as a fact, and the names in it."""

    fact: RawFact
    mentions: list[Mention]

    def names_within(self, begin: int, end: int) -> list[Mention]:
        """Return the names between two offsets of the text."""
        first = self.fact.span[0]
        return [one for one in self.mentions if begin <= one.start - first < end]

    def leading_name(self, begin: int, subject: str) -> str:
        """Return the name that stands at an offset, "" if none does."""
        first = self.fact.span[0]
        for one in self.mentions:
            if begin <= one.start - first <= begin + _LEAD_CHARS and one.known:
                return resolve_mention(one, subject)
        return ""


@dataclass(frozen=True, slots=True)
class _Part:
    """A statement within a sentence; `goes_on` if its subject is that of the part before."""

    begin: int
    end: int
    goes_on: bool = False


def _read_sentence(sentence: _Sentence, reading: Reading) -> Iterator[RawFact]:
    text = sentence.fact.text
    for part in _split_sentence(sentence):
        named = sentence.names_within(part.begin, part.end)
        written, referent = _complete(sentence, part, named, reading)
        leading = sentence.leading_name(part.begin, reading.subject) or referent
        written, other = _fill_other(written, leading, named, reading)
        reading.led = bool(leading)
        reading.leading = leading or reading.leading
        reading.remember(referent, named)
        if part.end < len(text):
            written = written.rstrip(" ,;；") + ("。" if text[part.end] == "；" else ".")
        members = [(name, role) for name, role in sentence.fact.members if role == SUBJECT]
        subject = members[0][0] if members else ""
        filled = filter(None, [referent, other])
        others = dict.fromkeys([*filled, *(one.name for one in named)])
        members += [(name, MEMBER) for name in others if name != subject]
        yield replace(sentence.fact, text=written, members=tuple(members))


def _complete(
    sentence: _Sentence, part: _Part, named: list[Mention], reading: Reading
) -> tuple[str, str]:
    """Return the part with its missing name filled in, and that name."""
    text = sentence.fact.text[part.begin : part.end].strip()
    offset = sentence.fact.span[0] + part.begin
    things = [one for one in named if one.known]
    unclear = None if reading.led else PRONOUN.match(sentence.fact.text)
    if part.goes_on and unclear:  # the same "it" goes on
        return f"{unclear[0]} {text}", ""
    if part.goes_on and reading.leading:
        return f"{strip_disambiguation(reading.leading)} {text}", reading.leading
    if part.begin:
        text = text[:1].upper() + text[1:]
    before = things[0].start - offset if things else len(text)
    pronoun = _find_pronoun(text[: max(before, 0)])
    if pronoun is not None:
        name = reading.resolve(pronoun[0])
        if filled := strip_disambiguation(name) or reading.resolve_thing(pronoun[0]):
            filled += "'s" if pronoun[0].lower() in _POSSESSIVES else ""
            filled = filled if pronoun.start() else filled[0].upper() + filled[1:]
            return text[: pronoun.start()] + filled + text[pronoun.end() :], name
    subject = reading.subject
    if not subject or any(one.names_subject for one in things):
        return text, ""
    if name_key(strip_disambiguation(subject)) in name_key(text):
        return text, ""
    shown = strip_disambiguation(subject)
    if at := _definite_end(text, reading.nouns):
        return f"{text[:at]} {shown}{text[at:]}", subject
    if things or pronoun is not None or PRONOUN.match(text):
        return text, ""
    return shown + ("：" if is_unspaced(text[0]) else ": ") + text, ""


def _fill_other(text: str, leading: str, named: list[Mention], reading: Reading) -> tuple[str, str]:
    """Fill in "her" in "he taught her", if only one woman was spoken of in the whole text."""
    own = reading.pronouns.get(leading, "")
    found = _OTHER_PERSON.search(text)
    if own not in (HE, SHE) or found is None:
        return text, ""
    kind = SHE if found[0].lower() == "her" else HE
    fitting = [name for name, one in reading.pronouns.items() if one == kind]
    strangers = {reading.called(one) for one in named if one.may_be_person(reading.text)}
    if kind == own or len(fitting) != 1 or strangers - {leading, fitting[0]}:
        return text, ""
    after = text[found.end() :]
    owns = found[0].lower() == "his" or (kind == SHE and not _AFTER_OBJECT.match(after))
    shown = strip_disambiguation(fitting[0]) + ("'s" if owns else "")
    return text[: found.start()] + shown + after, fitting[0]


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
    if found := CHINESE_PRONOUN.match(text):
        return found
    found = PRONOUN.search(text)
    if found is None:
        return None
    word, before = found[0].lower(), text[: found.start()]
    if word == "it" and _EMPTY_IT.match(text.lower(), found.start()):
        return None
    # Within a sentence these often stand for a thing that the sentence itself speaks of.
    if before and (word in _POSSESSIVES or (word in (IT, THEY) and not _is_lead_in(before))):
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
        if sentence.leading_name(m.end(), ANY)
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
    starts = sentence.leading_name(begin, ANY) or PRONOUN.match(before)
    return bool(starts) and _SUBORDINATE.search(before) is None


def _keep_sentences(names: Offline) -> DocumentExtractor:
    return names


OFFLINE_EXTRACTORS: dict[str, Callable[[Offline], DocumentExtractor]] = {
    "offline": _keep_sentences,
    "propositions-offline": PropositionsOffline,
}
"""Extractors without a model by their names in the settings, each made from the rules for names."""
