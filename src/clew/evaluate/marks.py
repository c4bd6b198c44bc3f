"""Placeholders that stand for names: insert them into a text and restore the names."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.names import LIGHT, Tokens, name_key, tokens

MARK = re.compile(r"\[[A-Z]+#\d+\]")
_LONGEST = 14  # tokens of a name


@dataclass
class Names:
    """All names and their placeholders."""

    marks: dict[str, str] = field(default_factory=dict)
    """Loose key of a name → its placeholder."""
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Placeholder → its name, its kind, and every surface form."""
    small: frozenset[str] | None = None
    """Words that occur in lower case in the corpus; a name made of these alone needs a capital."""
    _numbers: dict[str, int] = field(default_factory=dict)

    def pass_over(self, texts: Iterable[str]) -> None:
        """Reserve the numbers of placeholders already in the texts, so that none is used twice."""
        for text in texts:
            for mark in MARK.findall(text):
                kind, _, number = mark[1:-1].partition("#")
                self._numbers[kind] = max(self._numbers.get(kind, 0), int(number))

    def add(self, name: str, kind: str) -> str:
        """Return the placeholder of a name; a new name gets the next number of its kind."""
        key = name_key(name)
        if key not in self.marks:
            self._numbers[kind] = self._numbers.get(kind, 0) + 1
            mark = f"{kind}#{self._numbers[kind]}"
            self.marks[key] = mark
            self.told[mark] = {"name": name, "kind": kind, "forms": []}
        return self.marks[key]

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield (start, end, placeholder) of each name, left to right, longest match first."""
        t = tokens(text)
        taken = [match.span() for match in MARK.finditer(text)]
        at = 0
        while at < len(t):
            if any(start <= t.starts[at] < end for start, end in taken):
                at += 1  # inside a placeholder that the text already had
                continue
            for last in range(min(len(t), at + _LONGEST), at, -1):
                mark = self.marks.get(t.key(at, last))
                if mark is not None and self._named(t, at, last):
                    yield t.starts[at], t.ends[last - 1], mark
                    at = last
                    break
            else:
                at += 1

    def _named(self, t: Tokens, first: int, last: int) -> bool:
        """Whether tokens are a name; without a capital, only if they hold an uncommon word."""
        if any(t.upper[first:last]) or any(t.solo[first:last]) or any(t.digit[first:last]):
            return True
        if self.small is None:
            return False
        words = [key for key in t.keys[first:last] if key not in LIGHT and len(key) > 2]
        return len(words) > 2 or any(word not in self.small for word in words)


def hide(text: str, names: Names) -> tuple[str, list[str]]:
    """Replace names by placeholders; return the text and the originals in order."""
    parts: list[str] = []
    surfaces: list[str] = []
    at = 0
    for start, end, mark in names.spans(text):
        gap, surface = text[at:start], text[start:end]
        surfaces += MARK.findall(gap)  # a placeholder that was already there stands for itself
        parts += [gap, f"[{mark}]"]
        surfaces.append(surface)
        if surface not in names.told[mark]["forms"]:
            names.told[mark]["forms"].append(surface)
        at = end
    surfaces += MARK.findall(text[at:])
    return "".join([*parts, text[at:]]), surfaces


def show(text: str, surfaces: Sequence[str]) -> str:
    """Replace the placeholders by their originals, in order."""
    remaining = iter(surfaces)
    return MARK.sub(lambda match: next(remaining, match[0]), text)
