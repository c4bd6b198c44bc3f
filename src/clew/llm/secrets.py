"""Removes API keys from what an endpoint sends back: some echo them in errors and replies.

A key is looked for as it is, and in text that is folded: escapes are undone, letters made small,
and all but letters and digits left out. So it is found however it is spelled, spaced or escaped;
its forms in base64, in hexadecimal and backwards are looked for the same way.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from clew.errors import ModelError
from clew.llm.chat import Reply, TextCallback

_MIN_LENGTH = 6  # characters; shorter ones, such as "none", occur in ordinary text
_PART_LENGTH, _PART_STEP = 8, 4  # any 11 characters in a row of a secret hold such a part
_LONG_WORD = 20  # folded characters; a shorter key of letters alone, "not-needed", may be words
_WORDS = re.compile(rb"[a-z\W_]*|[A-Z\W_]*")  # what is no random part, such as "required"
_MIXED = re.compile(rb"(?=.*[a-z]).*[0-9]")  # letters and digits: no word and no date
_MASK = b"***"
_ESCAPES = re.compile(
    rb"\\+u([0-9a-f]{4})|\\+x([0-9a-f]{2})|%([0-9a-f]{2})|&#x([0-9a-f]{1,4});|&#([0-9]{1,5});"
    rb"|\\+[nrtbf]",
    re.IGNORECASE,
)
_SMALL = bytes(range(256)).lower()
_KEPT = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LEFT_OUT = bytes(code for code in range(256) if code not in _KEPT)


class _Part(NamedTuple):
    """A part of a secret, with the secret and where it lies in it."""

    part: bytes
    secret: bytes
    at: int


@dataclass(frozen=True, slots=True)
class SecretFilter:
    """Masks secrets in bytes and text."""

    secrets: tuple[bytes, ...] = ()
    parts: tuple[_Part, ...] = ()
    """Parts of secrets as they are."""
    folded: tuple[_Part, ...] = ()
    """Parts of folded secrets, and of their encoded forms."""

    def scrub(self, raw: bytes) -> bytes:
        """Mask every secret, however it is spelled."""
        for secret in self.secrets:
            if secret in raw:
                raw = raw.replace(secret, _MASK)
        found = [span for one in self.parts if one.part in raw for span in _find(raw, one)]
        plain = _undo_escapes(raw)
        text = _fold(plain)
        hits = [span for one in self.folded if one.part in text for span in _find(text, one)]
        if hits:
            places = [at for at, code in enumerate(plain) if code in _KEPT]
            found += [
                (places[first], _skip_escape(plain, places[last - 1])) for first, last in hits
            ]
        return _mask_spans(raw, found) if found else raw

    def scrub_text(self, text: str) -> str:
        """Mask every secret in a text."""
        raw = text.encode("utf-8", "surrogatepass")
        masked = self.scrub(raw)
        return text if masked == raw else masked.decode("utf-8", "surrogatepass")

    def scrub_reply(self, reply: Reply) -> Reply:
        """Mask every secret in a model's reply."""
        text = self.scrub_text(reply.text)
        return reply if text == reply.text else replace(reply, text=text)

    def scrub_error(self, error: ModelError) -> None:
        """Mask every secret in the message of an error."""
        error.args = tuple(self.scrub_text(str(part)) for part in error.args)

    def split_held(self, raw: bytes) -> tuple[bytes, bytes]:
        """Mask a block, and split off its end, as it was, where a secret may go on."""
        size = _measure_held(raw, self.secrets)
        plain = _undo_escapes(raw)
        kept = _measure_held(_fold(plain), {one.secret for one in self.folded})
        end = len(raw) - size
        if kept:
            places = [at for at, code in enumerate(plain) if code in _KEPT]
            end = min(end, places[-kept])
        return self.scrub(raw[:end]), raw[end:]


@dataclass(slots=True)
class HeldText:
    """Passes streamed text on, masked; what a secret may begin with waits for what follows."""

    filter: SecretFilter
    on_text: TextCallback
    _held: bytes = field(default=b"", init=False)

    def __call__(self, piece: str) -> None:
        """Pass on what is certain by now."""
        ready, self._held = self.filter.split_held(self._held + piece.encode("utf-8", "replace"))
        self._send(ready)

    def flush(self) -> None:
        """Pass on the rest: the text has ended."""
        rest, self._held = self.filter.scrub(self._held), b""
        self._send(rest)

    def _send(self, raw: bytes) -> None:
        if raw:
            self.on_text(raw.decode("utf-8", "replace"))


def make_filter(secrets: Iterable[str]) -> SecretFilter:
    """A filter of these secrets, the longest first; short ones are ignored."""
    found = {secret.strip() for secret in secrets if len(secret.strip()) >= _MIN_LENGTH}
    plain = [one.encode() for one in sorted(found, key=len, reverse=True)]
    parts = [part for one in plain for part in _list_parts(one) if not _WORDS.fullmatch(part.part)]
    folded = [
        part
        for one in plain
        for form in (_list_forms(one) if _is_random(one) else ())
        for part in (_Part(form, form, 0), *_list_parts(form))
        if _MIXED.match(part.part) or part.part == form
    ]
    return SecretFilter(tuple(plain), tuple(parts), tuple(dict.fromkeys(folded)))


def _is_random(secret: bytes) -> bool:
    """Whether a folded secret is none that ordinary text says, as "not needed"."""
    folded = _fold(secret)
    return len(folded) >= (_PART_LENGTH if _MIXED.match(folded) else _LONG_WORD)


def _list_forms(secret: bytes) -> Iterator[bytes]:
    """The folded forms of a secret that tell it: plain, backwards, hexadecimal, base64."""
    yield _fold(secret)
    yield _fold(secret)[::-1]
    yield secret.hex().encode()
    for before, lost in enumerate((0, 2, 3)):  # characters that depend on what comes before it
        coded = b64encode(bytes(before) + secret).rstrip(b"=")
        whole = len(coded) if (before + len(secret)) % 3 == 0 else -1  # else on what comes after
        yield _fold(coded[lost:whole])


def _list_parts(secret: bytes) -> list[_Part]:
    """The parts by which a piece of a secret is found: its beginning, its end, some between."""
    last = len(secret) - _PART_LENGTH
    if last <= 2:
        return [_Part(secret, secret, 0)]
    places = sorted({*range(0, last, _PART_STEP), last})
    return [_Part(secret[at : at + _PART_LENGTH], secret, at) for at in places]


def _fold(raw: bytes) -> bytes:
    """Letters and digits alone, in small letters."""
    return raw.translate(_SMALL, _LEFT_OUT)


def _undo_escapes(raw: bytes) -> bytes:
    """Text with its escapes replaced by what they stand for, filled up to the same length."""
    if not (b"\\" in raw or b"%" in raw or b"&#" in raw):
        return raw
    return _ESCAPES.sub(_undo_escape, raw)


def _undo_escape(match: re.Match[bytes]) -> bytes:
    *sixteen, ten = match.groups()
    digits = next((one for one in sixteen if one), None)
    code = int(digits, 16) if digits else int(ten or b"0")
    return (bytes([code]) if code < 128 else b"").ljust(len(match[0]), b"\0")


def _skip_escape(plain: bytes, at: int) -> int:
    """Where the character at a place ends: an escape fills the places after it with zeros."""
    end = at + 1
    while end < len(plain) and plain[end] == 0:
        end += 1
    return end


def _find(text: bytes, one: _Part) -> Iterator[tuple[int, int]]:
    """Where a part occurs, with what comes before and after it in its secret."""
    begin = 0
    while (start := text.find(one.part, begin)) >= 0:
        end, before, after = start + len(one.part), one.at, one.at + len(one.part)
        while start > begin and before and text[start - 1] == one.secret[before - 1]:
            start, before = start - 1, before - 1
        while end < len(text) and after < len(one.secret) and text[end] == one.secret[after]:
            end, after = end + 1, after + 1
        yield start, end
        begin = end


def _mask_spans(raw: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    """Mask spans, which may overlap: those that do share a mask."""
    made: list[bytes] = []
    done = 0
    for start, end in sorted(spans):
        if start >= done or not made:
            made += [raw[done:start], _MASK]
        done = max(done, end)
    return b"".join([*made, raw[done:]])


def _measure_held(text: bytes, secrets: Iterable[bytes]) -> int:
    """Length of the longest end of a text that a secret may go on from."""
    longest = 0
    for secret in secrets:
        for size in range(min(len(secret), len(text)), longest, -1):
            end = text[-size:]
            # Of a part from the middle, fewer characters would hold back ordinary words.
            if secret.startswith(end) or (size > 3 and end in secret):
                longest = size
                break
    return longest
