"""Collect the names of a corpus and its questions, each with its placeholder."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.evaluate.kinds import UNCLEAR, kind_of
from clew.evaluate.marks import MARK, Names
from clew.extract.offline import Offline
from clew.names import CONNECTORS, name_key, plain_title, tokens
from clew.text import clean, digest
from clew.types import LITERALS, Chunk, Document, FoundEntity

_CLAUSE = re.compile(r",\s+[a-z]")  # "Demon Dice, first sold as …" is a sentence, not a name
_STOPS = ".?!。？！"
# Words that begin a question; capitalised, the rules take them for the first word of a name.
_ASKING = frozenset(
    "is are was were am do does did has have had can could will would shall should may might must "
    "in at on of for to from by with and or but if when while what which who whom whose where why "
    "how name tell give".split()
)


@dataclass
class _Found:
    """Names that the rule extractor has found so far."""

    seen: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Key → name and kind."""
    forms: dict[str, set[str]] = field(default_factory=dict)
    """Key of a short form → keys of the names it may stand for."""
    titles: set[str] = field(default_factory=set)
    small: set[str] = field(default_factory=set)

    def add(self, entity: FoundEntity, title: str, text: str) -> None:
        """Add one name, or record it as a short form of the document's title entity."""
        name = plain_title(entity.name)
        key = name_key(name)
        if entity.type in LITERALS or not key or _CLAUSE.search(name):
            return
        if key != title and self._ends(title, key):
            self.forms.setdefault(key, set()).add(title)
            return
        known = self.seen.get(key)
        if known is None or known[1] == UNCLEAR:
            self.seen[key] = (known[0] if known else name, kind_of(name, text, entity.about))
        for surface in (entity.name, *(text[start:end] for start, end in entity.spans)):
            self.forms.setdefault(name_key(surface), set()).add(key)

    def _ends(self, title: str, key: str) -> bool:
        """Whether `key` is the surname of the person that the document is about."""
        if not title.endswith(f" {key}") or title not in self.seen:
            return False
        before = title[: -len(key)].split()[-1]
        return before not in CONNECTORS and self.seen[title][1] in ("PERSON", UNCLEAR)

    def swallows(self, key: str) -> bool:
        """Whether a name in an unspaced script contains a title and extends beyond it.

        Rules cannot tell where a name ends in such a script; a title can.
        """
        parts = key.split(" ")
        if key in self.titles or not all(len(part) == 1 for part in parts):
            return False
        ends = range(2, len(parts) + 1)
        return any(" ".join(parts[a:b]) in self.titles for b in ends for a in range(b - 1))


async def names_of(corpus: Sequence[Mapping[str, Any]], asked: Sequence[str] = ()) -> Names:
    """Collect the names in the corpus and the questions; short forms only if unambiguous."""
    found = _Found()
    for row in corpus:
        title, text = (_bare(str(row.get(part) or "")) for part in ("title", "text"))
        key = name_key(plain_title(title)) if title else ""
        if key:
            found.titles.add(key)
        t = tokens(text)
        found.small |= {k for k, upper in zip(t.keys, t.upper, strict=True) if not upper}
        for entity in await _entities(title, text):
            found.add(entity, key, text)
    names = Names(small=frozenset(found.small))
    names.pass_over(f"{row.get('title')} {row.get('text')}" for row in corpus)
    names.pass_over(asked)
    kept = {key: entry for key, entry in found.seen.items() if not found.swallows(key)}
    marks = {key: names.add(name, kind) for key, (name, kind) in kept.items()}
    for form, keys in found.forms.items():
        [only, *others] = keys
        if form and not others and only in marks and not found.swallows(form):
            names.marks.setdefault(form, marks[only])
    await _asked_names(names, asked)
    return names


async def _asked_names(names: Names, asked: Iterable[str]) -> None:
    """Add the names that occur only in questions."""
    for question in asked:
        text = _bare(question)
        for start, end, _ in list(names.spans(text)):
            text = text[:start] + "x" * (end - start) + text[end:]
        for entity in await _entities("", text):
            name = _unasked(entity, text)
            if entity.type not in LITERALS and name and not _CLAUSE.search(name):
                names.add(name, kind_of(name, text, 0.0))


def _unasked(entity: FoundEntity, text: str) -> str:
    """Strip leading question words from a name: "Is Karl" (taller?) gives "Karl"."""
    t = tokens(entity.name)
    before = text[: entity.spans[0][0]].rstrip() if entity.spans else ""
    at = 0
    if not before or before[-1] in _STOPS:
        while at < len(t) and t.keys[at] in _ASKING:
            at += 1
    return entity.name[t.starts[at] :].strip() if at < len(t) else ""


async def _entities(title: str, text: str) -> Sequence[FoundEntity]:
    document = Document(digest(title, text), text, title, ())
    chunk = Chunk(digest(document.id), document.id, 0, len(text), text, title)
    [found] = await Offline()(document, [chunk])
    return found.entities


def _bare(text: str) -> str:
    """Blank out placeholders that the text already had; they are not names."""
    return clean(MARK.sub(lambda mark: " " * len(mark[0]), text))
