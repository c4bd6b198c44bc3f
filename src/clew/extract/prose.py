"""Reads what a model says of a chunk in prose, where it was asked for JSON.

Lines such as `Ada Lovelace | wrote | Notes` are triples, sentences are facts about their names.
Nothing counts that the chunk does not say: its names must stand there, and most of its words.
"""

import re
from collections.abc import Iterator

from clew.extract.collect import ExtractionCollector
from clew.text.name_spans import find_name_spans, span_text
from clew.text.names import STOP_WORDS, tokenize
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words

READ_AS_PROSE = "shape that was asked for (prose was read by its sentences)"
_MIN_TOLD = 0.6  # share of a sentence's words that the chunk has
_MARKS = re.compile(r"^[\s>*+•-]*(?:\d{1,3}[.)]\s+)?|[*_`]+")
_SEPARATOR = re.compile(r"\s*(?:\||→|⟶|-+>|=+>|;|\t)\s*")
_IN_BRACKETS = re.compile(r"[(<\[](.+)[)>\]]\W*")


def read_prose(reply: str, collector: ExtractionCollector) -> int:
    """Add what a reply in prose says of the collector's chunk; return how many facts it is."""
    count = 0
    for line in reply.split("\n"):
        bare = _MARKS.sub("", line).strip()
        if parts := _split_triple(bare):
            if all(collector.locator.find_name(name) for name in parts[::2]):
                count += collector.add_triple(*parts)
            continue
        for start, end in sentence_spans(bare):
            count += _read_sentence(bare[start:end], collector)
    if count:
        collector.dropped[READ_AS_PROSE] += 1
    return count


def _split_triple(line: str) -> tuple[str, str, str] | None:
    """Return the parts of a line that is a triple."""
    parts = _SEPARATOR.split(line)
    if len(parts) != 3 and (inside := _IN_BRACKETS.fullmatch(line)):
        parts = [part.strip(" \"'“”") for part in inside[1].split(",")]
    if len(parts) != 3:
        return None
    head, relation, tail = (part.strip(" \"'“”.()[]<>") for part in parts)
    return (head, relation, tail) if head and relation and tail else None


def _read_sentence(sentence: str, collector: ExtractionCollector) -> bool:
    """Add a sentence as a fact about its names, if the chunk says it; whether it is one.

    What stands before a colon, without a name of the chunk, announces it and is left out: "Here is
    what I found: …". A mere list of names is no fact.
    """
    head, colon, rest = sentence.partition(": ")
    if colon and not list(_find_names(head, collector)):
        return _read_sentence(rest, collector)
    names = list(_find_names(sentence, collector))
    if not names or not _is_told(sentence, collector):
        return False
    members = [collector.add_entity(name) for name in names]
    more = {*split_words(sentence)} - {*split_words(" ".join(names))} - STOP_WORDS
    return bool(more) and collector.add_segment(sentence, members)


def _find_names(sentence: str, collector: ExtractionCollector) -> Iterator[str]:
    """Yield the names of a sentence that stand in the chunk."""
    tokens = tokenize(sentence)
    for span in find_name_spans(sentence, tokens, {0}):
        name = span_text(sentence, tokens, span.first, span.last)
        opens = span.first == 0 and span.last == 1 and tokens.keys[0] in STOP_WORDS
        if not opens and collector.locator.find_name(name):
            yield name


def _is_told(sentence: str, collector: ExtractionCollector) -> bool:
    """Whether the chunk and the title have most words of a sentence."""
    told = set(split_words(f"{collector.title} {collector.locator.chunk.text}"))
    words = [word for word in split_words(sentence) if word not in STOP_WORDS]
    return bool(words) and sum(word in told for word in words) >= _MIN_TOLD * len(words)
