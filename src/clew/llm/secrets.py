"""Removes API keys from what an endpoint sends back: some echo them in errors and replies."""

import re
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, replace

from clew.errors import ModelError
from clew.llm.chat import Reply

_MIN_LENGTH = 6  # characters; shorter ones, such as "none", occur in ordinary text
_MASK = b"***"
_SCHEMES = ("", "Bearer ")


@dataclass(frozen=True, slots=True)
class SecretFilter:
    """Masks secrets in bytes and text."""

    secrets: tuple[bytes, ...] = ()
    escaped: re.Pattern[bytes] | None = None
    """Finds secrets whose characters are escaped as in JSON or in an address."""

    def scrub(self, raw: bytes) -> bytes:
        """Mask every secret, also where it is escaped."""
        for secret in self.secrets:
            if secret in raw:
                raw = raw.replace(secret, _MASK)
        if self.escaped is not None and (b"\\" in raw or b"%" in raw):
            raw = self.escaped.sub(_MASK, raw)
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
        """Split off the end of a block that may be the beginning of a secret."""
        most = max(map(len, self.secrets), default=1) - 1
        for size in range(min(most, len(raw)), 0, -1):
            if any(secret.startswith(raw[-size:]) for secret in self.secrets):
                return raw[:-size], raw[-size:]
        return raw, b""


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
    return SecretFilter(tuple(every), re.compile(pattern))


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
