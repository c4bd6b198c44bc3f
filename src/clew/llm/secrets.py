"""Removes API keys from what an endpoint sends back: some echo them in errors and replies."""

import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, replace

from clew.errors import ModelError
from clew.llm.chat import Reply

_MIN_LENGTH = 6  # characters; shorter ones, such as "none", occur in ordinary text
_PART_LENGTH, _PART_STEP = 8, 4  # any 11 characters in a row of a secret hold such a part
_WORDS = re.compile(rb"[a-z\W_]*|[A-Z\W_]*")  # what is no random part, such as "required"
_MASK = b"***"
_SCHEMES = ("", "Bearer ")


@dataclass(frozen=True, slots=True)
class SecretFilter:
    """Masks secrets in bytes and text."""

    secrets: tuple[bytes, ...] = ()
    escaped: re.Pattern[bytes] | None = None
    """Finds secrets whose characters are escaped as in JSON or in an address."""
    parts: tuple[tuple[bytes, bytes, int], ...] = ()
    """Parts of secrets: each with its secret and where it lies in it."""

    def scrub(self, raw: bytes) -> bytes:
        """Mask every secret, also where it is escaped."""
        for secret in self.secrets:
            if secret in raw:
                raw = raw.replace(secret, _MASK)
        if self.escaped is not None and (b"\\" in raw or b"%" in raw):
            raw = self.escaped.sub(_MASK, raw)
        for part, secret, at in self.parts:
            if part in raw:
                raw = _mask_part(raw, part, secret, at)
        return raw

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
        most = max(map(len, self.secrets), default=0)
        for size in range(min(most, len(raw)), 0, -1):
            end = raw[-size:]
            # Of a part from the middle, fewer characters would hold back ordinary words.
            if any(one.startswith(end) or (size > 3 and end in one) for one in self.secrets):
                return self.scrub(raw[:-size]), end
        return self.scrub(raw), b""


def make_filter(secrets: Iterable[str]) -> SecretFilter:
    """A filter of these secrets, the longest first; short ones are ignored."""
    found = {secret.strip() for secret in secrets if len(secret.strip()) >= _MIN_LENGTH}
    if not found:
        return SecretFilter()
    plain = sorted(found, key=len, reverse=True)
    # Some endpoints quote the header as they log it.
    encoded = [b64encode(f"{how}{one}".encode()).rstrip(b"=") for one in plain for how in _SCHEMES]
    pattern = b"|".join(b"".join(map(_match_escaped, one)) for one in plain)
    every = sorted([*(one.encode() for one in plain), *encoded], key=len, reverse=True)
    parts = [found for one in plain for found in _list_parts(one.encode())]
    return SecretFilter(tuple(every), re.compile(pattern), tuple(parts))


def _list_parts(secret: bytes) -> list[tuple[bytes, bytes, int]]:
    """The parts by which a piece of a secret is found: its beginning, its end, some between."""
    last = len(secret) - _PART_LENGTH
    places = sorted({*range(0, last, _PART_STEP), last}) if last > 2 else []
    parts = [(secret[at : at + _PART_LENGTH], secret, at) for at in places]
    return [one for one in parts if not _WORDS.fullmatch(one[0])]


def _mask_part(raw: bytes, part: bytes, secret: bytes, at: int) -> bytes:
    """Mask a part wherever it occurs, with what comes before and after it in the secret."""
    found, begin = [], 0
    while (start := raw.find(part, begin)) >= 0:
        end, before, after = start + len(part), at, at + len(part)
        while start > begin and before and raw[start - 1] == secret[before - 1]:
            start, before = start - 1, before - 1
        while end < len(raw) and after < len(secret) and raw[end] == secret[after]:
            end, after = end + 1, after + 1
        found += [raw[begin:start], _MASK]
        begin = end
    return b"".join([*found, raw[begin:]])


def _match_escaped(character: str) -> bytes:
    """A pattern of a character as it is, or escaped in one of the usual ways."""
    raw = character.encode()
    units = character.encode("utf-16-be").hex(" ", 2).split()
    shapes = (
        re.escape(raw),
        rb"\\" + re.escape(raw),
        b"(?i:%b)" % b"".join(rb"\\u" + unit.encode() for unit in units),
        b"(?i:%b)" % b"".join(b"%%%02x" % one for one in raw),
    )
    return b"(?:%b)" % b"|".join(shapes)
