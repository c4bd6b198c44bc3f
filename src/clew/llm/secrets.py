"""Removes API keys from what an endpoint sends back: some echo them in errors and replies."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from clew.errors import ModelError
from clew.llm.chat import Reply

_MIN_LENGTH = 6  # characters; shorter ones, such as "none", occur in ordinary text
_MASK = b"***"


@dataclass(frozen=True, slots=True)
class SecretFilter:
    """Masks secrets in bytes and text."""

    secrets: tuple[bytes, ...] = ()

    def scrub(self, raw: bytes) -> bytes:
        """Mask every secret."""
        for secret in self.secrets:
            if secret in raw:
                raw = raw.replace(secret, _MASK)
        return raw

    def scrub_text(self, text: str) -> str:
        """Mask every secret in a text."""
        if not any(secret.decode("latin-1") in text for secret in self.secrets):
            return text
        return self.scrub(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

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
    return SecretFilter(tuple(s.encode() for s in sorted(found, key=len, reverse=True)))
