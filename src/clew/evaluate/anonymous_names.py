"""Collect the names of a corpus and its questions, each with its placeholder."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.evaluate.kinds import UNKNOWN_KIND, classify_name
from clew.evaluate.marks import PLACEHOLDER, PlaceholderMap
from clew.extract.offline import Offline
from clew.names import CONNECTORS, name_key, strip_disambiguation, tokenize
from clew.text import clean, digest
from clew.types import LITERAL_TYPES, Chunk, Document, RawEntity

_CLAUSE_START = re.compile(r",\s+[a-z]")  # "Demon Dice, first sold as …" is a sentence, not a name
_SENTENCE_ENDS = ".?!。？！"
# Words that begin a question; capitalised, the rules take them for the first word of a name.
_QUESTION_WORDS = frozenset(
    "is are was were am do does did has have had can could will would shall should may might must "
    "in at on of for to from by with and or but if when while what which who whom whose where why "
    "how name tell give".split()
)


@dataclass
class _NameCandidates:
    """Names that the rule extractor has found so far."""

    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Key → name and kind."""
    short_forms: dict[str, set[str]] = field(default_factory=dict)
    """Key of a short form → keys of the names it may stand for."""
    titles: set[str] = field(default_factory=set)
    lowercase_words: set[str] = field(default_factory=set)

    def add(self, entity: RawEntity, title: str, text: str) -> None:
        """Add one name, or record it as a short form of the document's title entity."""
        name = strip_disambiguation(entity.name)
        key = name_key(name)
        if entity.type in LITERAL_TYPES or not key or _CLAUSE_START.search(name):
            return
        if key != title and self._is_surname_of_title(title, key):
            self.short_forms.setdefault(key, set()).add(title)
            return
        known = self.names.get(key)
        if known is None or known[1] == UNKNOWN_KIND:
            self.names[key] = (known[0] if known else name, classify_name(name, text, entity.about))
        for surface in (entity.name, *(text[start:end] for start, end in entity.spans)):
            self.short_forms.setdefault(name_key(surface), set()).add(key)

    def _is_surname_of_title(self, title: str, key: str) -> bool:
        """Whether `key` is the surname of the person that the document is about."""
        if not title.endswith(f" {key}") or title not in self.names:
            return False
        before = title[: -len(key)].split()[-1]
        return before not in CONNECTORS and self.names[title][1] in ("PERSON", UNKNOWN_KIND)

    def overruns_title(self, key: str) -> bool:
        """Whether a name in an unspaced script contains a title and extends beyond it.

        Rules cannot tell where a name ends in such a script; a title can.
        """
        parts = key.split(" ")
        if key in self.titles or not all(len(part) == 1 for part in parts):
            return False
        ends = range(2, len(parts) + 1)
        return any(" ".join(parts[a:b]) in self.titles for b in ends for a in range(b - 1))


async def collect_names(
    corpus: Sequence[Mapping[str, Any]], asked: Sequence[str] = ()
) -> PlaceholderMap:
    """Collect the names in the corpus and the questions; short forms only if unambiguous."""
    found = _NameCandidates()
    for row in corpus:
        title, text = (_blank_placeholders(str(row.get(part) or "")) for part in ("title", "text"))
        key = name_key(strip_disambiguation(title)) if title else ""
        if key:
            found.titles.add(key)
        t = tokenize(text)
        found.lowercase_words |= {k for k, upper in zip(t.keys, t.upper, strict=True) if not upper}
        for entity in await _extract_entities(title, text):
            found.add(entity, key, text)
    names = PlaceholderMap(lowercase_words=frozenset(found.lowercase_words))
    names.reserve_numbers(f"{row.get('title')} {row.get('text')}" for row in corpus)
    names.reserve_numbers(asked)
    kept = {key: entry for key, entry in found.names.items() if not found.overruns_title(key)}
    marks = {key: names.add(name, kind) for key, (name, kind) in kept.items()}
    for form, keys in found.short_forms.items():
        [only, *others] = keys
        if form and not others and only in marks and not found.overruns_title(form):
            names.placeholders.setdefault(form, marks[only])
    await _add_question_names(names, asked)
    return names


async def _add_question_names(names: PlaceholderMap, asked: Iterable[str]) -> None:
    """Add the names that occur only in questions."""
    for question in asked:
        text = _blank_placeholders(question)
        for start, end, _ in list(names.find_spans(text)):
            text = text[:start] + "x" * (end - start) + text[end:]
        for entity in await _extract_entities("", text):
            name = _strip_question_words(entity, text)
            if entity.type not in LITERAL_TYPES and name and not _CLAUSE_START.search(name):
                names.add(name, classify_name(name, text, 0.0))


def _strip_question_words(entity: RawEntity, text: str) -> str:
    """Strip leading question words from a name: "Is Karl" (taller?) gives "Karl"."""
    t = tokenize(entity.name)
    before = text[: entity.spans[0][0]].rstrip() if entity.spans else ""
    at = 0
    if not before or before[-1] in _SENTENCE_ENDS:
        while at < len(t) and t.keys[at] in _QUESTION_WORDS:
            at += 1
    return entity.name[t.starts[at] :].strip() if at < len(t) else ""


async def _extract_entities(title: str, text: str) -> Sequence[RawEntity]:
    document = Document(digest(title, text), text, title, ())
    chunk = Chunk(digest(document.id), document.id, 0, len(text), text, title)
    [found] = await Offline()(document, [chunk])
    return found.entities


def _blank_placeholders(text: str) -> str:
    """Blank out placeholders that the text already had; they are not names."""
    return clean(PLACEHOLDER.sub(lambda mark: " " * len(mark[0]), text))
