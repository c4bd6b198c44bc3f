"""Finds field labels: words before a colon at a line's start, such as "Summary:"."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import zip_longest

# List, quote or emphasis marks, then up to three words and a colon.
_LABEL = re.compile(
    r"^[ \t>*_+•-]{0,12}+(\w[\w.&’'+/-]*+(?:[ \t]\w[\w.&’'+/-]*+){0,2}+)[*_]{0,3}:(?=[\s*_]|\Z)",
    re.MULTILINE,
)
_CLOSING_MARKS = " \t\n\"'”’»)*_>-"
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")


@dataclass(frozen=True, slots=True)
class FieldLabels:
    """Start offsets of labels, and of one-word labels that are not names, with their ends.

    Speakers in a dialogue precede a colon too: a repeated word that is always followed by whole
    sentences may be a name.
    """

    starts: frozenset[int] = frozenset()
    words: dict[int, int] = field(default_factory=dict)


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
