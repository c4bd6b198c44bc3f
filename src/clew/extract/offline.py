"""Entities and facts from plain text by rules: no model, any script, each document by itself.

Every sentence becomes one n-ary fact: the names in it are its members, and what the document is
about is its subject, so that "He was born in Paris" is a fact about him. Because nothing looks
beyond the document, adding and removing documents in any order gives the same result.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clew.extract.labels import Labels, labels_in
from clew.extract.spacy_names import refined
from clew.extract.spans import TITLE, NameSpan, name_spans, written
from clew.extract.subject import (
    OFTEN_NAMED,
    OFTENER_NAMED,
    defined_names,
    title_names,
    with_subject,
)
from clew.names import Tokens, name_key, tokens
from clew.sentences import sentence_spans
from clew.types import (
    LITERALS,
    MEMBER,
    SUBJECT,
    Chunk,
    Document,
    Extraction,
    FoundEntity,
    FoundFact,
)

# A document's title speaks for its first chunk; later chunks drift from it.
_LATER_CHUNK = 0.7


@dataclass(frozen=True, slots=True)
class _Name:
    """One occurrence of a name, in document offsets."""

    name: str
    type: str
    start: int
    end: int
    sentence: int


@dataclass(frozen=True)
class Offline:
    """The rule-based extractor; `spacy` names a model that refines what the rules find."""

    spacy: str = ""
    version: int = 5

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk."""
        title = title_names(document.title)
        common = _written_small(document.text)
        labels = labels_in(document.text)
        full: dict[str, str] = {}
        found = []
        for ordinal, chunk in enumerate(chunks):
            subject = {n: w * (_LATER_CHUNK if ordinal else 1.0) for n, w in title.items()}
            found.append(_extract(chunk, subject, full, self.spacy, common, labels))
        return found


def _extract(
    chunk: Chunk,
    subject: dict[str, float],
    full: dict[str, str],
    spacy: str,
    common: frozenset[str],
    labels: Labels,
) -> Extraction:
    text = chunk.text
    sentences = sentence_spans(text)
    t = tokens(text)
    first = _first_tokens(t, sentences)
    first.update(i for i, at in enumerate(t.starts) if chunk.start + at in labels.starts)
    spans = [
        span
        for span in name_spans(text, t, first)
        if not (
            span.first in first and span.last == span.first + 1 and t.keys[span.first] in common
        )
    ]
    if spacy:
        spans = refined(text, t, spans, spacy)
    spans = [span for span in spans if not _is_label(chunk, t, span, labels)]
    about = dict(subject)
    if chunk.start == 0 and sentences:
        labelled = len(t) > 0 and t.starts[0] in labels.words
        said = defined_names(text, t, sentences[0], spans, bool(subject), labelled)
        for name, weight in said.items():
            about[name] = max(weight, about.get(name, 0.0))
    spans = with_subject(t, spans, about)
    names = _full_names(list(_occurrences(chunk, t, spans, sentences)), about, full)
    _often_named(names, about)
    return Extraction(
        tuple(_entities(names, about, subject)), tuple(_facts(chunk, sentences, names, about))
    )


def _is_label(chunk: Chunk, t: Tokens, span: NameSpan, labels: Labels) -> bool:
    end = labels.words.get(chunk.start + t.starts[span.first], -1)
    return chunk.start + t.ends[span.last - 1] <= end


def _written_small(text: str) -> frozenset[str]:
    """Words that the document itself writes without a capital: at a sentence's start no names."""
    t = tokens(text)
    return frozenset(
        key
        for key, upper, solo in zip(t.keys, t.upper, t.solo, strict=True)
        if not upper and not solo
    )


def _first_tokens(t: Tokens, sentences: Sequence[tuple[int, int]]) -> set[int]:
    """The tokens that begin sentences."""
    found = set()
    at = 0
    for start, _ in sentences:
        while at < len(t) and t.starts[at] < start:
            at += 1
        found.add(at)
    return found


def _occurrences(
    chunk: Chunk, t: Tokens, spans: Iterable[NameSpan], sentences: Sequence[tuple[int, int]]
) -> Iterable[_Name]:
    at = 0
    for span in spans:
        start, end = t.starts[span.first], t.ends[span.last - 1]
        while at + 1 < len(sentences) and start >= sentences[at + 1][0]:
            at += 1
        name = written(chunk.text, t, span.first, span.last)
        yield _Name(name, span.type, chunk.start + start, chunk.start + end, at)


def _full_names(names: list[_Name], about: dict[str, float], full: dict[str, str]) -> list[_Name]:
    """A single word that ends or begins a longer name said before stands for that name."""
    for name in about:
        keys = name_key(name).split()
        if len(keys) > 1:
            full.setdefault(keys[-1], name)
            full.setdefault(keys[0], name)
    found = []
    for said in names:
        keys = name_key(said.name).split()
        whole = full.get(keys[0]) if len(keys) == 1 and said.type not in LITERALS else None
        if whole is not None and name_key(whole) != keys[0]:
            said = _Name(whole, said.type, said.start, said.end, said.sentence)
        elif len(keys) > 1 and said.type not in LITERALS:
            full.setdefault(keys[-1], said.name)
        found.append(said)
    return found


def _often_named(names: Sequence[_Name], about: dict[str, float]) -> None:
    """What a text names more often than its subject, it is also about."""
    counts = Counter(name.name for name in names if name.type not in LITERALS)
    if not counts:
        return
    name, times = min(counts.items(), key=lambda item: (-item[1], item[0]))
    subject = max((counts[known] for known in about), default=0)
    if times > 1 and times > subject:
        about.setdefault(name, OFTENER_NAMED if subject else OFTEN_NAMED)


def _entities(
    names: Sequence[_Name], about: dict[str, float], titles: dict[str, float]
) -> Iterable[FoundEntity]:
    spans: dict[str, list[tuple[int, int]]] = {name: [] for name in about}
    types: dict[str, str] = {name: TITLE if name in titles else "name" for name in about}
    for name in names:
        spans.setdefault(name.name, []).append((name.start, name.end))
        types.setdefault(name.name, name.type)
    for said, where in spans.items():
        yield FoundEntity(said, types[said], spans=tuple(where), about=about.get(said, 0.0))


def _facts(
    chunk: Chunk,
    sentences: Sequence[tuple[int, int]],
    names: Sequence[_Name],
    about: dict[str, float],
) -> Iterable[FoundFact]:
    """Every sentence with an entity in it, or about one."""
    subject = max(about, key=lambda name: about[name], default="")
    members: dict[int, list[str]] = {}
    for name in names:
        members.setdefault(name.sentence, []).append(name.name)
    for number, (start, end) in enumerate(sentences):
        said = dict.fromkeys(members.get(number, ()))
        who = [(subject, SUBJECT)] if subject else []
        who += [(name, MEMBER) for name in said if name != subject]
        if who:
            span = (chunk.start + start, chunk.start + end)
            yield FoundFact(chunk.text[start:end], tuple(who), span=span)
