"""Collects the entities and facts of a chunk into an `Extraction`: cleaned, located, unique."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from clew.extract.locate import ChunkLocator, fold
from clew.extract.subject import FIRST_NAME, LATER_CHUNK_FACTOR, title_names
from clew.text.name_spans import DATE, NUMBER, find_name_spans
from clew.text.names import tokenize
from clew.text.unicode import UNSPACED_CHAR, clean, normalize_name
from clew.types import HEAD, MEMBER, TAIL, Extraction, RawEntity, RawFact

MAX_NAME_CHARS = 200
MIN_WEIGHT = 0.1
_LEAD_IN_CHARS = 5  # an article or a quotation mark may precede that name
_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_PRONOUNS = frozenset(
    "he she it they him her them his its their this that these those who which i we you us "
    "他 她 它 他们 她们 它们 我 我们 你 你们 此 该".split()
)


def clean_line(text: str) -> str:
    """Clean a name or phrase for storage: valid characters, one line, single spaces."""
    if text.isascii() and "\0" not in text:
        return " ".join(text.split())
    return " ".join(clean(text).split())


@lru_cache(maxsize=1 << 12)  # a corpus has few relations, often repeated
def split_relation_words(relation: str) -> str:
    """Split a relation name into words: `bornIn` and `born_in` become `born in`."""
    return (
        clean_line(_CAMEL_CASE.sub(" ", relation).replace("_", " "))
        if relation.isascii()
        else clean_line(relation)
    )


def triple_text(head: str, relation: str, tail: str) -> str:
    """A triple as text, with spaces unless the script has none."""
    text = head
    for part in (relation, tail):
        joined = text and part and _is_unspaced(text[-1]) and _is_unspaced(part[0])
        text += part if joined else f" {part}"
    return text.strip()


def _is_unspaced(char: str) -> bool:
    # Hangul is indexed like scripts without spaces but is written with them.
    return UNSPACED_CHAR.match(char) is not None and not "\uac00" <= char <= "\ud7a3"


def literal_type(name: str) -> str:
    """`date` or `number` if the whole name is one, else ""."""
    if not any(map(str.isdigit, name)):
        return ""
    name_tokens = tokenize(name)
    for span in find_name_spans(name, name_tokens, set()):
        if span.type in (DATE, NUMBER) and (span.first, span.last) == (0, len(name_tokens)):
            return span.type
    return ""


@dataclass
class ExtractionCollector:
    """Collects the entities and facts of one chunk; unusable ones are dropped and counted."""

    locator: ChunkLocator
    title: str = ""
    example: str = ""
    """The prompt's example answer, folded: names from it that the chunk lacks are dropped."""
    dropped: Counter[str] = field(default_factory=Counter)
    _entities: dict[str, RawEntity] = field(default_factory=dict, init=False)
    _facts: dict[tuple[str, ...], RawFact] = field(default_factory=dict, init=False)
    _names: dict[str, "_ParsedName"] = field(default_factory=dict, init=False)

    def add_entity(
        self,
        name: str,
        type: str = "",
        description: str = "",
        attributes: Mapping[str, str] | None = None,
    ) -> str:
        """Add an entity or complete a known one; return its name, or "" if it is unusable."""
        parsed = self._parse_name(name)
        if parsed.problem:
            self.dropped[parsed.problem] += 1
            return ""
        known = self._entities.get(parsed.key)
        if known is None:
            return self._keep_entity(parsed, type, description, attributes)
        if type or description or attributes:
            lines = dict.fromkeys(
                filter(None, (*known.description.split("\n"), clean_line(description)))
            )
            self._entities[parsed.key] = replace(
                known,
                type=known.type or clean_line(type),
                description="\n".join(lines),
                attributes={**(attributes or {}), **known.attributes},
            )
        return known.name

    def _keep_entity(
        self,
        parsed: "_ParsedName",
        type: str = "",
        description: str = "",
        attributes: Mapping[str, str] | None = None,
    ) -> str:
        """Add an entity unless its key is known; return the name in use."""
        known = self._entities.get(parsed.key)
        if known is not None:
            return known.name
        self._entities[parsed.key] = RawEntity(
            parsed.name,
            literal_type(parsed.name) or clean_line(type),
            clean_line(description),
            self.locator.find_name(parsed.name),
            attributes=attributes or {},
        )
        return parsed.name

    def _parse_name(self, name: str) -> "_ParsedName":
        """The cleaned name, its key, and why it is unusable; cached."""
        parsed = self._names.get(name)
        if parsed is None:
            cleaned = clean_line(name)
            parsed = self._names[name] = _ParsedName(
                cleaned, normalize_name(cleaned), self._find_problem(cleaned)
            )
        return parsed

    def _find_problem(self, name: str) -> str:
        if not any(map(str.isalnum, name)):
            return "name without a letter or digit"
        if len(name) > MAX_NAME_CHARS:
            return "name too long"
        if name.casefold() in _PRONOUNS and not (name.isupper() and len(name) > 1):
            return "pronoun"
        if self.example and not self.locator.find_name(name):
            folded = fold(name)
            if f'"{folded}"' in self.example and folded not in fold(self.title):
                return "copied from the prompt's example"
        return ""

    def add_triple(
        self,
        head: str,
        relation: str,
        tail: str,
        keywords: Iterable[str] = (),
        description: str = "",
        weight: float = 1.0,
    ) -> bool:
        """Add a triple; if unusable, count the reason and return False."""
        subject, object_, relation = (
            self._parse_name(head),
            self._parse_name(tail),
            split_relation_words(relation),
        )
        if problem := _triple_problem(subject, relation, object_):
            self.dropped[problem] += 1
            return False
        key = (relation.casefold(), subject.key, object_.key)
        if key not in self._facts:
            head, tail = self._keep_entity(subject), self._keep_entity(object_)
            text = triple_text(head, relation, tail)
            self._facts[key] = RawFact(
                text,
                ((head, HEAD), (tail, TAIL)),
                relation,
                tuple(dict.fromkeys(filter(None, map(clean_line, keywords)))),
                clean_line(description),
                _clamp_weight(weight),
                self.locator.find_fact((head, tail), text, description).span,
            )
        return True

    def add_segment(self, text: str, names: Iterable[str], weight: float = 1.0) -> bool:
        """Add a sentence with its entities; one without any is dropped."""
        text = clean_line(text)
        members = tuple(dict.fromkeys(name for name in names if name))
        if not members or not text:
            self.dropped["segment without an entity" if text else "segment without text"] += 1
            return False
        span = self.locator.find_quote(text) or self.locator.find_statement(text, members)
        fact = RawFact(
            text, tuple((name, MEMBER) for name in members), weight=_clamp_weight(weight), span=span
        )
        self._facts.setdefault((fold(text),), fact)
        return True

    def to_extraction(self) -> Extraction:
        """The collected extraction, with how far the chunk is about each entity."""
        about = self._subject_weights()
        for key, (name, weight) in about.items():
            entity = self._entities.get(key) or RawEntity(name, spans=self.locator.find_name(name))
            self._entities[key] = RawEntity(
                *(entity.name, entity.type, entity.description, entity.spans, round(weight, 3)),
                *(entity.aliases, entity.attributes),
            )
        return Extraction(tuple(self._entities.values()), tuple(self._facts.values()))

    def _subject_weights(self) -> dict[str, tuple[str, float]]:
        chunk = self.locator.chunk
        factor = LATER_CHUNK_FACTOR if chunk.start else 1.0
        about: dict[str, tuple[str, float]] = {}
        for name, weight in title_names(self.title).items():
            about[normalize_name(clean_line(name))] = (clean_line(name), weight * factor)
        if chunk.start == 0:
            opening = [
                (span[0], -span[1], entity.name)
                for entity in self._entities.values()
                for span in entity.spans[:1]
                if span[0] <= len(chunk.text) - len(chunk.text.lstrip()) + _LEAD_IN_CHARS
            ]
            for _, _, name in sorted(opening)[:1]:
                about.setdefault(normalize_name(name), (name, FIRST_NAME))
        return about


class _ParsedName(NamedTuple):
    """A cleaned name, its normalised key, and why it is unusable."""

    name: str
    key: str
    problem: str = ""


def _triple_problem(head: _ParsedName, relation: str, tail: _ParsedName) -> str:
    if not relation:
        return "triple without a relation"
    if head.problem or tail.problem:
        return "triple with an unusable name"
    return "triple of a thing with itself" if head.key == tail.key else ""


def _clamp_weight(weight: float) -> float:
    return min(1.0, max(MIN_WEIGHT, weight))
