"""Tolerant JSON parser for model output: repairs common mistakes, drops truncated items.

One pass, no recursion, no eval. A truncated reply yields exactly the items that were complete;
other mistakes (quotes, commas, brackets, comments, Python literals) are repaired where the
intention is clear. docs/models.md lists them.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from clew.llm.quotes import CLOSERS, Place, may_end, read_string

MAX_DEPTH = 200
MAX_MENDED = 500_000
"""Characters repaired at most: bounds the time spent on junk."""
THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning|reflection)>", re.IGNORECASE)
START = re.compile(r"[{\[]")
GAP = re.compile(r"(?:[\s\ufeff,;]+|//[^\n]*|/\*.*?(?:\*/|\Z)|#[^\n]*)*", re.DOTALL)
BARE = re.compile(r"[^\s,:;\[\]{}\"“]+(?:[ \t]+[^\s,:;\[\]{}\"“#/]+)*")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
WORDS = {"true": True, "false": False, "null": None, "none": None, "nan": None}
STRICT = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


@dataclass(frozen=True, slots=True)
class Reading:
    """One JSON value found in a text; `truncated` if the text ended before the value did."""

    value: Any
    cut: bool
    end: int


def read_values(text: str) -> Iterator[Reading]:
    """Yield the objects and lists of a reply in order, repaired where needed."""
    whole = _strictly(text, len(text) - len(text.lstrip()))
    if whole is not None and not text[whole.end :].strip():
        yield whole
        return
    text = without_thoughts(text)[:MAX_MENDED]
    at = 0
    while (start := START.search(text, at)) is not None:
        reading = _strictly(text, start.start()) or _Reader(text, start.start()).read()
        yield reading
        at = reading.end


def without_thoughts(text: str) -> str:
    """Remove the thinking blocks of a reasoning model, closed or not."""
    parts: list[str] = []
    at, inside = 0, False
    for tag in THOUGHT.finditer(text):
        if tag[1]:
            if not inside:  # the opening tag was part of the chat template
                parts.clear()
            at, inside = tag.end(), False
        elif not inside:
            parts.append(text[at : tag.start()])
            inside = True
    return "".join(parts) if inside else "".join(parts) + text[at:]


def _strictly(text: str, start: int) -> Reading | None:
    """Decode valid JSON with the fast standard decoder."""
    if text[start : start + 1] not in ("{", "["):
        return None
    try:
        value, end = STRICT.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return Reading(value, cut=False, end=end)


@dataclass(slots=True)
class _Frame:
    """An object or list that is still open; `key` waits for its value."""

    value: dict[str, Any] | list[Any]
    key: str | None = None

    def put(self, value: Any) -> None:
        """Add a complete value; in an object, one without a key is dropped."""
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.key is not None:
            self.value[self.key] = value
            self.key = None


@dataclass(slots=True)
class _Reader:
    """Parses one faulty JSON value, with an explicit stack instead of recursion."""

    text: str
    at: int
    frames: list[_Frame] = field(default_factory=list)
    root: Any = None
    done: bool = False

    def read(self) -> Reading:
        """Parse until the value or the text ends."""
        while not self.done:
            self._gap()
            letter = self.text[self.at : self.at + 1]
            if not letter or self.text.startswith("```", self.at):
                return self._cut()
            if letter in "{[":
                self._open(letter)
            elif letter in "}]":
                self._close(letter)
            elif letter in CLOSERS:
                self._string()
            elif letter == ":":
                self.at += 1
            else:
                self._bare()
        return Reading(self.root, cut=False, end=self.at)

    def _place(self) -> Place:
        top = self.frames[-1]
        if isinstance(top.value, list):
            return "item"
        return "key" if top.key is None else "value"

    def _gap(self) -> None:
        """Skip whitespace, commas and comments; a key followed by a comma has no value."""
        end = self._past_gap()
        if self.frames and self.frames[-1].key is not None and "," in self.text[self.at : end]:
            self.frames[-1].key = None
        self.at = end

    def _past_gap(self) -> int:
        gap = GAP.match(self.text, self.at)
        return gap.end() if gap else self.at

    def _open(self, letter: str) -> None:
        self.at += 1
        if len(self.frames) >= MAX_DEPTH:
            self.at = len(self.text)  # no real answer is so deep: the rest is junk
            return
        if self.frames and self._place() == "key" and len(self.frames) > 1:
            if isinstance(self.frames[-2].value, list):  # the previous object was not closed
                self._pop()
        self.frames.append(_Frame({} if letter == "{" else []))

    def _close(self, letter: str) -> None:
        """Close down to the matching bracket; a wrong one before a comma closes the innermost."""
        self.at += 1
        wanted = dict if letter == "}" else list
        if not isinstance(self.frames[-1].value, wanted):
            fits = any(isinstance(frame.value, wanted) for frame in self.frames)
            if not fits or "," in self.text[self.at : self._past_gap()]:
                if len(self.frames) > 1:
                    self._pop()
                return
            while not isinstance(self.frames[-1].value, wanted):
                self._pop()
        self._pop()

    def _pop(self) -> None:
        value = self.frames.pop().value
        if self.frames:
            self.frames[-1].put(value)
        else:
            self.root, self.done = value, True

    def _cut(self) -> Reading:
        """Finish at the end of the text, dropping incomplete list items."""
        innermost = self.frames[0]
        for frame in self.frames[1:]:
            if isinstance(innermost.value, list):
                break
            innermost.put(frame.value)
            innermost = frame
        return Reading(self.frames[0].value, cut=True, end=len(self.text))

    def _string(self) -> None:
        quoted = read_string(self.text, self.at, self._place(), len(self.frames))
        self.at = quoted.end
        if quoted.whole:
            self._take(quoted.text, quoted.text)

    def _take(self, name: str, value: Any) -> None:
        """Store a string or word as a key, a value or an item."""
        colon = self.text[self.at : self.at + 1] not in (",", "]", "}") and self.text.startswith(
            ":", self._past_gap()
        )
        position = self._place()
        if position == "item" and colon and self._inside_object():
            while isinstance(self.frames[-1].value, list):  # the previous list was not closed
                self._pop()
            position = "key"
        if position != "key":
            self.frames[-1].put(value)
        elif colon:
            self.frames[-1].key = name

    def _inside_object(self) -> bool:
        return any(isinstance(frame.value, dict) for frame in self.frames)

    def _bare(self) -> None:
        """Read a number, a Python or JavaScript literal, or a string without quotes."""
        found = BARE.match(self.text, self.at)
        word = found[0] if found else self.text[self.at]
        self.at += len(word)
        if self.text.startswith('"', self.at) and may_end(
            self.text, self.at + 1, self._place(), len(self.frames)
        ):
            self.at += 1  # only the opening quote is missing
        known = word.lower() in WORDS
        if self.at >= len(self.text) and not known:
            return  # the word may be truncated
        if word.strip(".…"):
            self._take(word, WORDS[word.lower()] if known else _number(word))


def _number(word: str) -> Any:
    """Parse a number, or return the word unchanged."""
    if len(word) > 100 or not NUMBER.fullmatch(word):
        return word
    return float(word) if set(word) & set(".eE") else int(word)
