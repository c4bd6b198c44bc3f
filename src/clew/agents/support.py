"""Does a passage support a sentence? Decided by code, on the passage's own words."""

from collections.abc import Sequence
from dataclasses import dataclass

from clew.sentences import sentence_spans
from clew.text import words
from clew.types import Citation, Passage

# Shares of the sentence's words (the rarer kind, longer than three letters) that must be found.
ENOUGH = 0.4
_WORTH_TWO = 0.15  # how much more two sentences must say to be quoted instead of one


@dataclass(frozen=True, slots=True)
class Place:
    """A span of a passage and how much of a sentence it says."""

    start: int
    end: int
    share: float


def best_place(sentence: str, passage: Passage) -> Place:
    """The sentence of the passage, or two in a row, that say most of `sentence`."""
    wanted = _content(sentence)
    # What the title says is given: the passage must say the rest of the sentence.
    wanted = wanted - set(words(passage.title)) or wanted
    spans = sentence_spans(passage.text)
    pairs = [(one[0], two[1]) for one, two in zip(spans, spans[1:], strict=False)]
    best = Place(0, 0, 0.0)
    for start, end in spans:
        share = _share(wanted, passage.text[start:end])
        best = max(best, Place(start, end, share), key=lambda place: place.share)
    for start, end in pairs:
        share = _share(wanted, passage.text[start:end])
        if share > best.share + _WORTH_TWO:
            best = Place(start, end, share)
    return best


def _share(wanted: set[str], text: str) -> float:
    return len(wanted & set(words(text))) / max(1, len(wanted))


def _content(sentence: str) -> set[str]:
    said = words(sentence)
    long = {word for word in said if len(word) > 3 or not word.isascii() or word.isdigit()}
    return long or set(said)


def citations_for(
    sentence: str, sources: Sequence[int], passages: Sequence[Passage]
) -> list[Citation]:
    """Citations of the named passages (counted from 1) that really say the sentence."""
    found = []
    for number in dict.fromkeys(sources):
        if not 1 <= number <= len(passages):
            continue
        passage = passages[number - 1]
        place = best_place(sentence, passage)
        if place.share >= ENOUGH:
            quote = passage.text[place.start : place.end]
            start = passage.start + place.start
            found.append(Citation(passage.doc, passage.id, start, start + len(quote), quote))
    return found
