"""Marks that stand for names, put into a text and taken out again."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.names import LIGHT, Tokens, name_key, tokens

MARK = re.compile(r"\[[A-Z]+#\d+\]")
_LONGEST = 14  # tokens of a name


@dataclass
class Names:
    """All names and their marks."""

    marks: dict[str, str] = field(default_factory=dict)
    """Loose key of a name → its mark."""
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Mark → its name, its kind, and every form it took."""
    small: frozenset[str] | None = None
    """Words that the corpus writes without a capital; a name alone of such words needs one."""
    _numbers: dict[str, int] = field(default_factory=dict)

    def pass_over(self, texts: Iterable[str]) -> None:
        """Number on from marks that stand in the texts already: none may mean two things."""
        for text in texts:
            for mark in MARK.findall(text):
                kind, _, number = mark[1:-1].partition("#")
                self._numbers[kind] = max(self._numbers.get(kind, 0), int(number))

    def add(self, name: str, kind: str) -> str:
        """The mark of a name, a new one when it is met for the first time."""
        key = name_key(name)
        if key not in self.marks:
            self._numbers[kind] = self._numbers.get(kind, 0) + 1
            mark = f"{kind}#{self._numbers[kind]}"
            self.marks[key] = mark
            self.told[mark] = {"name": name, "kind": kind, "forms": []}
        return self.marks[key]

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where names stand in a text, longest first from left to right, with their marks."""
        t = tokens(text)
        held = [match.span() for match in MARK.finditer(text)]
        at = 0
        while at < len(t):
            if any(start <= t.starts[at] < end for start, end in held):
                at += 1  # part of a mark that stood there before
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
        """Whether tokens are meant as a name; without a capital only what is no usual word."""
        if any(t.upper[first:last]) or any(t.solo[first:last]) or any(t.digit[first:last]):
            return True
        if self.small is None:
            return False
        words = [key for key in t.keys[first:last] if key not in LIGHT and len(key) > 2]
        return len(words) > 2 or any(word not in self.small for word in words)


def hide(text: str, names: Names) -> tuple[str, list[str]]:
    """The text with marks, and what each mark in it stands for, in order."""
    parts: list[str] = []
    surfaces: list[str] = []
    at = 0
    for start, end, mark in names.spans(text):
        gap, said = text[at:start], text[start:end]
        surfaces += MARK.findall(gap)  # a mark that stood there before stands for itself
        parts += [gap, f"[{mark}]"]
        surfaces.append(said)
        if said not in names.told[mark]["forms"]:
            names.told[mark]["forms"].append(said)
        at = end
    surfaces += MARK.findall(text[at:])
    return "".join([*parts, text[at:]]), surfaces


def show(text: str, surfaces: Sequence[str]) -> str:
    """The text as it was."""
    ahead = iter(surfaces)
    return MARK.sub(lambda match: next(ahead, match[0]), text)
