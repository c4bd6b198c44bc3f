"""Placeholders for the names of a corpus, labelled by kind: inserted into texts and restored."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.extract.rules import Offline
from clew.text.names import CONNECTORS, STOP_WORDS, Tokens, name_key, strip_disambiguation, tokenize
from clew.text.unicode import clean, digest
from clew.types import LITERAL_TYPES, Chunk, Document, RawEntity

PLACEHOLDER = re.compile(r"\[[A-Z]+#\d+\]")
_MAX_NAME_TOKENS = 14  # tokens of a name


@dataclass
class PlaceholderMap:
    """All names and their placeholders."""

    placeholders: dict[str, str] = field(default_factory=dict)
    """Loose key of a name → its placeholder."""
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Placeholder → its name, its kind, and every surface form."""
    lowercase_words: frozenset[str] | None = None
    """Words that occur in lower case in the corpus; a name made of these alone needs a capital."""
    _last_numbers: dict[str, int] = field(default_factory=dict)

    def reserve_numbers(self, texts: Iterable[str]) -> None:
        """Reserve the numbers of placeholders already in the texts, so that none is used twice."""
        for text in texts:
            for mark in PLACEHOLDER.findall(text):
                kind, _, number = mark[1:-1].partition("#")
                self._last_numbers[kind] = max(self._last_numbers.get(kind, 0), int(number))

    def add(self, name: str, kind: str) -> str:
        """Return the placeholder of a name; a new name gets the next number of its kind."""
        key = name_key(name)
        if key not in self.placeholders:
            self._last_numbers[kind] = self._last_numbers.get(kind, 0) + 1
            mark = f"{kind}#{self._last_numbers[kind]}"
            self.placeholders[key] = mark
            self.entries[mark] = {"name": name, "kind": kind, "forms": []}
        return self.placeholders[key]

    def find_spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield (start, end, placeholder) of each name, left to right, longest match first."""
        t = tokenize(text)
        taken = [match.span() for match in PLACEHOLDER.finditer(text)]
        at = 0
        while at < len(t):
            if any(start <= t.starts[at] < end for start, end in taken):
                at += 1  # inside a placeholder that the text already had
                continue
            for last in range(min(len(t), at + _MAX_NAME_TOKENS), at, -1):
                mark = self.placeholders.get(t.key(at, last))
                if mark is not None and self._is_name(t, at, last):
                    yield t.starts[at], t.ends[last - 1], mark
                    at = last
                    break
            else:
                at += 1

    def _is_name(self, t: Tokens, first: int, last: int) -> bool:
        """Whether tokens are a name; without a capital, only if they hold an uncommon word."""
        if any(t.upper[first:last]) or any(t.unspaced[first:last]) or any(t.digit[first:last]):
            return True
        if self.lowercase_words is None:
            return False
        words = [key for key in t.keys[first:last] if key not in STOP_WORDS and len(key) > 2]
        return len(words) > 2 or any(word not in self.lowercase_words for word in words)


def insert_placeholders(text: str, names: PlaceholderMap) -> tuple[str, list[str]]:
    """Replace names by placeholders; return the text and the originals in order."""
    parts: list[str] = []
    surfaces: list[str] = []
    at = 0
    for start, end, mark in names.find_spans(text):
        gap, surface = text[at:start], text[start:end]
        surfaces += PLACEHOLDER.findall(
            gap
        )  # a placeholder that was already there stands for itself
        parts += [gap, f"[{mark}]"]
        surfaces.append(surface)
        if surface not in names.entries[mark]["forms"]:
            names.entries[mark]["forms"].append(surface)
        at = end
    surfaces += PLACEHOLDER.findall(text[at:])
    return "".join([*parts, text[at:]]), surfaces


def restore_names(text: str, surfaces: Sequence[str]) -> str:
    """Replace the placeholders by their originals, in order."""
    remaining = iter(surfaces)
    return PLACEHOLDER.sub(lambda match: next(remaining, match[0]), text)


# English words that indicate a kind; names in other languages and unclear ones are NAME.
_KIND_WORDS = {
    "PERSON": (
        "actor actress singer musician politician king queen emperor empress prince princess duke "
        "duchess count countess bishop pope poet writer author novelist painter director producer "
        "engineer scientist physicist chemist player footballer cricketer composer lawyer judge "
        "general admiral soldier philosopher historian journalist son daughter wife husband "
        "mother father brother sister man woman person character model dancer architect rapper "
        "guitarist drummer songwriter screenwriter filmmaker businessman businesswoman athlete"
    ),
    "LOCATION": (
        "city town village river lake mountain island country state county province district "
        "region municipality capital continent sea bay valley street park community commune "
        "parish suburb hamlet peninsula township settlement kingdom empire republic coast"
    ),
    "ORGANISATION": (
        "company corporation university college school band group team club party organisation "
        "organization agency association institute newspaper publisher label church museum "
        "regiment army studio network station foundation league union bank airline"
    ),
    "WORK": (
        "film movie album song novel book series play opera magazine game poem painting single "
        "episode sitcom documentary musical symphony comic manga"
    ),
}
KIND_BY_WORD = {word: kind for kind, words in _KIND_WORDS.items() for word in words.split()}
UNKNOWN_KIND = "NAME"
_PHRASE_END = re.compile(r",|\b(?:who|that|which|by|of|in|from|and|on|for|at|near|with)\b")
_IS_A = re.compile(r"\b(?:is|was|are|were)\s+(?:a|an|the|one of the)\s+([^.;:]{3,140})", re.I)
_LOCATION_PREPOSITION = re.compile(r"\b(?:in|at|near|from|of)\s+$")
_PERSON_TITLE = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Sir|Lady|King|Queen|Prince|Princess|President)\.?\s+$"
)


def classify_name(name: str, text: str, about: float) -> str:
    """Return PERSON, LOCATION, ORGANISATION or WORK, or NAME where the text does not say."""
    if about > 0.5:
        is_a = _IS_A.search(text)
        if is_a:
            phrase = _PHRASE_END.split(is_a[1].lower())[0]
            known = [
                KIND_BY_WORD[word] for word in re.findall(r"[a-z]+", phrase) if word in KIND_BY_WORD
            ]
            if known:
                return known[-1]  # the head noun comes last: a film director is a director
    at = text.find(name)
    if at > 0:
        before = text[max(0, at - 24) : at]
        if _PERSON_TITLE.search(before):
            return "PERSON"
        if _LOCATION_PREPOSITION.search(before) and before.rstrip().endswith((" in", " near")):
            return "LOCATION"
    return UNKNOWN_KIND


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
