"""Placeholders that stand for names: insert them into a text and restore the names."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.names import STOP_WORDS, Tokens, name_key, tokenize

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
