"""Tolerant JSON parser for model output: repairs common mistakes, drops truncated items.

One pass, no recursion, no eval. A truncated reply yields exactly the items that were complete;
other mistakes (quotes, commas, brackets, comments, Python literals) are repaired where the
intention is clear. docs/models.md lists them.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Position = Literal["key", "value", "item"]
CLOSING_QUOTES = {'"': '"', "'": "'", "“": "”", "`": "`"}
QUOTE_OR_BACKSLASH = {closer: re.compile(rf"[{closer}\\]") for closer in CLOSING_QUOTES.values()}
WHITESPACE = re.compile(r"\s*")
ITEM_START = re.compile(r"[\"'“\[{\]}\d+-]|(?:true|false|null|None|True|False|NaN)\b|//|/\*|\Z")
FIELD_START = re.compile(r"[\"'“{}\]]|[\w$-]+\s*:|//|/\*|\Z")
COMMENT_START = re.compile(r"//|/\*|# |```")
ITEM_BOUNDARY = re.compile(r"\s*[\]}]\s*,\s*[\[{]\s*\Z")
TRAILING_COMMA = re.compile(r"\s*,\s*\Z")
LOOK_BACK_CHARS = 40
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"'\\/bfnrt“”]))")
ESCAPE_CHARS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
MAX_DEPTH = 200
MAX_REPAIR_CHARS = 500_000
"""Characters repaired at most: bounds the time spent on junk."""
THINK_TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning|reflection)>", re.IGNORECASE)
VALUE_START = re.compile(r"[{\[]")
SEPARATORS = re.compile(r"(?:[\s\ufeff,;]+|//[^\n]*|/\*.*?(?:\*/|\Z)|#[^\n]*)*", re.DOTALL)
BARE_WORD = re.compile(r"[^\s,:;\[\]{}\"“]+(?:[ \t]+[^\s,:;\[\]{}\"“#/]+)*")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
LITERALS = {"true": True, "false": False, "null": None, "none": None, "nan": None}
STRICT_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


@dataclass(frozen=True, slots=True)
class JsonValue:
    """One JSON value found in a text; `truncated` if the text ended before the value did."""

    value: Any
    truncated: bool
    end: int


def is_json(text: str) -> bool:
    """Whether a text is one whole JSON object or list, and nothing else."""
    whole = _decode_strict(text, len(text) - len(text.lstrip()))
    return whole is not None and not text[whole.end :].strip()


def iter_values(text: str) -> Iterator[JsonValue]:
    """Yield the objects and lists of a reply in order, repaired where needed."""
    whole = _decode_strict(text, len(text) - len(text.lstrip()))
    if whole is not None and not text[whole.end :].strip():
        yield whole
        return
    text = strip_thinking(text)[:MAX_REPAIR_CHARS]
    at = 0
    while (start := VALUE_START.search(text, at)) is not None:
        reading = (
            _decode_strict(text, start.start()) or _RepairingParser(text, start.start()).parse()
        )
        yield reading
        at = reading.end


def strip_thinking(text: str) -> str:
    """Remove the thinking blocks of a reasoning model, closed or not."""
    parts: list[str] = []
    at, inside = 0, False
    for tag in THINK_TAG.finditer(text):
        if tag[1]:
            if not inside:  # the opening tag was part of the chat template
                parts.clear()
            at, inside = tag.end(), False
        elif not inside:
            parts.append(text[at : tag.start()])
            inside = True
    return "".join(parts) if inside else "".join(parts) + text[at:]


def _decode_strict(text: str, start: int) -> JsonValue | None:
    """Decode valid JSON with the fast standard decoder."""
    if text[start : start + 1] not in ("{", "["):
        return None
    try:
        value, end = STRICT_DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return JsonValue(value, truncated=False, end=end)


@dataclass(slots=True)
class _OpenContainer:
    """An object or list that is still open; `key` waits for its value."""

    value: dict[str, Any] | list[Any]
    key: str | None = None

    def add(self, value: Any) -> None:
        """Add a complete value; in an object, one without a key is dropped."""
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.key is not None:
            self.value[self.key] = value
            self.key = None


@dataclass(slots=True)
class _RepairingParser:
    """Parses one faulty JSON value, with an explicit stack instead of recursion."""

    text: str
    pos: int
    stack: list[_OpenContainer] = field(default_factory=list)
    root: Any = None
    done: bool = False

    def parse(self) -> JsonValue:
        """Parse until the value or the text ends."""
        while not self.done:
            self._skip_separators()
            letter = self.text[self.pos : self.pos + 1]
            if not letter or self.text.startswith("```", self.pos):
                return self._finish_truncated()
            if letter in "{[":
                self._open_container(letter)
            elif letter in "}]":
                self._close_container(letter)
            elif letter in CLOSING_QUOTES:
                self._read_quoted()
            elif letter == ":":
                self.pos += 1
            else:
                self._read_bare_word()
        return JsonValue(self.root, truncated=False, end=self.pos)

    def _position(self) -> Position:
        top = self.stack[-1]
        if isinstance(top.value, list):
            return "item"
        return "key" if top.key is None else "value"

    def _skip_separators(self) -> None:
        """Skip whitespace, commas and comments; a key followed by a comma has no value."""
        end = self._separators_end()
        if self.stack and self.stack[-1].key is not None and "," in self.text[self.pos : end]:
            self.stack[-1].key = None
        self.pos = end

    def _separators_end(self) -> int:
        gap = SEPARATORS.match(self.text, self.pos)
        return gap.end() if gap else self.pos

    def _open_container(self, letter: str) -> None:
        self.pos += 1
        if len(self.stack) >= MAX_DEPTH:
            self.pos = len(self.text)  # no real answer is so deep: the rest is junk
            return
        if self.stack and self._position() == "key" and len(self.stack) > 1:
            if isinstance(self.stack[-2].value, list):  # the previous object was not closed
                self._pop()
        self.stack.append(_OpenContainer({} if letter == "{" else []))

    def _close_container(self, letter: str) -> None:
        """Close down to the matching bracket; a wrong one before a comma closes the innermost."""
        self.pos += 1
        wanted = dict if letter == "}" else list
        if not isinstance(self.stack[-1].value, wanted):
            fits = any(isinstance(frame.value, wanted) for frame in self.stack)
            if not fits or "," in self.text[self.pos : self._separators_end()]:
                if len(self.stack) > 1:
                    self._pop()
                return
            while not isinstance(self.stack[-1].value, wanted):
                self._pop()
        self._pop()

    def _pop(self) -> None:
        value = self.stack.pop().value
        if self.stack:
            self.stack[-1].add(value)
        else:
            self.root, self.done = value, True

    def _finish_truncated(self) -> JsonValue:
        """Finish at the end of the text, dropping incomplete list items."""
        innermost = self.stack[0]
        for frame in self.stack[1:]:
            if isinstance(innermost.value, list):
                break
            innermost.add(frame.value)
            innermost = frame
        return JsonValue(self.stack[0].value, truncated=True, end=len(self.text))

    def _read_quoted(self) -> None:
        quoted = read_string(self.text, self.pos, self._position(), len(self.stack))
        self.pos = quoted.end
        if quoted.complete:
            self._store(quoted.text, quoted.text)

    def _store(self, name: str, value: Any) -> None:
        """Store a string or word as a key, a value or an item."""
        colon = self.text[self.pos : self.pos + 1] not in (",", "]", "}") and self.text.startswith(
            ":", self._separators_end()
        )
        position = self._position()
        if position == "item" and colon and self._inside_object():
            while isinstance(self.stack[-1].value, list):  # the previous list was not closed
                self._pop()
            position = "key"
        if position != "key":
            self.stack[-1].add(value)
        elif colon:
            self.stack[-1].key = name

    def _inside_object(self) -> bool:
        return any(isinstance(frame.value, dict) for frame in self.stack)

    def _read_bare_word(self) -> None:
        """Read a number, a Python or JavaScript literal, or a string without quotes."""
        found = BARE_WORD.match(self.text, self.pos)
        word = found[0] if found else self.text[self.pos]
        self.pos += len(word)
        if self.text.startswith('"', self.pos) and can_end_string(
            self.text, self.pos + 1, self._position(), len(self.stack)
        ):
            self.pos += 1  # only the opening quote is missing
        known = word.lower() in LITERALS
        if self.pos >= len(self.text) and not known:
            return  # the word may be truncated
        if word.strip(".…"):
            self._store(word, LITERALS[word.lower()] if known else _parse_number(word))


def _parse_number(word: str) -> Any:
    if len(word) > 100 or not NUMBER.fullmatch(word):
        return word
    return float(word) if set(word) & set(".eE") else int(word)


# --- strings with unescaped quotes inside -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuotedString:
    """A string: its text, the position after it, and whether its closing quote was found."""

    text: str
    end: int
    complete: bool


def read_string(text: str, start: int, place: Position, depth: int) -> QuotedString:
    """Read the string whose opening quote is at `start`, `depth` brackets deep."""
    closer = CLOSING_QUOTES[text[start]]
    at = start + 1
    inner = 0
    while (found := QUOTE_OR_BACKSLASH[closer].search(text, at)) is not None:
        here = found.start()
        at = here + 1
        if found[0] == "\\":
            at += 1
        elif can_end_string(text, at, place, depth):
            return QuotedString(unescape(text[start + 1 : here]), at, complete=True)
        else:
            missed = _find_missed_end(text, start + 1, here, inner)
            if missed is not None:
                return QuotedString(
                    unescape(text[start + 1 : missed]).rstrip(' "'), missed, complete=True
                )
            inner += 1
    return QuotedString("", len(text), complete=False)


def can_end_string(text: str, at: int, place: Position, depth: int) -> bool:
    """Whether a string in this position may end just before `at`, judged by what follows."""
    after = _skip_whitespace(text, at)
    follows = text[after : after + 1]
    if follows == ":":
        return place != "value"
    if follows == ",":
        pattern = FIELD_START if place == "value" else ITEM_START
        return pattern.match(text, _skip_whitespace(text, after + 1)) is not None
    if follows in ("]", "}"):
        beyond = text[(later := _skip_whitespace(text, after + 1)) : later + 1]
        return depth <= 1 or beyond in ("", ",", "]", "}", "`", "/", "#")
    if follows in ('"', "[", "{"):  # a missing comma is likely only before a new line
        return "\n" in text[at:after]
    return not follows or COMMENT_START.match(text, after) is not None


def _find_missed_end(text: str, start: int, here: int, inner: int) -> int | None:
    """Find where the string should have ended if the quote at `here` opens the next one."""
    begin = max(start, here - LOOK_BACK_CHARS)
    before = text[begin:here]
    boundary = ITEM_BOUNDARY.search(before)
    if boundary is None and inner % 2 == 1:  # an odd inner quote was the end
        boundary = TRAILING_COMMA.search(before)
    return begin + boundary.start() if boundary else None


def _skip_whitespace(text: str, at: int) -> int:
    blank = WHITESPACE.match(text, at)
    return blank.end() if blank else at


def unescape(text: str) -> str:
    """Resolve JSON escapes; a backslash before anything else is kept."""
    if "\\" not in text:
        return text
    plain = ESCAPE.sub(_unescape_match, text)
    if any("\ud800" <= letter <= "\udfff" for letter in plain):
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


def _unescape_match(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return ESCAPE_CHARS.get(found[2], found[2])
