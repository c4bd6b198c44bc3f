"""Tell which entries of a table or a list of terms a sentence speaks of.

Each row and each item stands for a thing of its own: what one of them says supports nothing about
another, however near they stand.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from clew.text.names import STOP_WORDS, name_key
from clew.text.structure import find_blocks

# "- **Demurrage**: a fee", "* `mode`: how": few words, then a colon.
_TERM = re.compile(r"[-*•+][ \t]+[*_`]*(?P<term>[^:\n]{1,60}?)[*_`]*:[*_`]*[ \t]+\S")
_COLUMN = re.compile(r"[^|:]{1,60}: (?=\S)")  # the name of a column before its value


@dataclass(frozen=True, slots=True)
class Entry:
    """One row or item, and the words that name what it is about."""

    start: int
    end: int
    label: tuple[str, ...]
    row: bool

    def is_named_by(self, words: Sequence[str]) -> bool:
        """Whether a sentence names it: a row anywhere, a term as what the sentence is about."""
        size = len(self.label)
        places = range(len(words) - size + 1) if self.row else range(min(1, len(words) - size + 1))
        return any(tuple(words[at : at + size]) == self.label for at in places)


def cut_to_entries(sentence: str, text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return what of a span speaks of the entries that a sentence names, less all other entries.

    A sentence that names no entry of the text keeps the span as it is.
    """
    entries = find_entries(text)
    words = [key for key in name_key(sentence).split() if key not in STOP_WORDS] if entries else []
    named = [one for one in entries if one.is_named_by(words)]
    if not named:
        return [(start, end)]
    kept, at = list[tuple[int, int]](), start
    for one in entries:
        if one in named or one.end <= start or end <= one.start:
            continue
        kept.append((at, one.start))
        at = max(at, one.end)
    return [(a, b) for a, b in (*kept, (at, end)) if text[a:b].strip()]


@lru_cache(maxsize=128)  # a passage is compared with every sentence that a model writes
def find_entries(text: str) -> tuple[Entry, ...]:
    """Return the rows of the tables and the terms of the lists in a text."""
    return tuple(_iter_entries(text))


def _iter_entries(text: str) -> Iterator[Entry]:
    for block in find_blocks(text):
        own = text[block.start : block.end]
        label = ""
        if block.kind == "row":
            label = _COLUMN.sub("", own.strip().strip("|").split("|")[0].strip(), count=1)
        elif block.kind == "item" and (found := _TERM.match(own.lstrip())):
            label = found["term"]
        key = tuple(word for word in name_key(label).split() if word not in STOP_WORDS)
        if key and any(char.isalpha() for word in key for char in word):
            yield Entry(block.start, block.end, key, block.kind == "row")
