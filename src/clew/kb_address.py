"""Where a knowledge base is: a folder, or a schema of a PostgreSQL database."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from clew.errors import ConfigError
from clew.text.unicode import digest

DEFAULT_SCHEMA = "clew"
_SCHEMES = ("postgresql://", "postgres://")
_MAX_NAME_BYTES = 63  # PostgreSQL cuts longer names


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """A schema of a PostgreSQL database; as text without its password."""

    url: str = field(repr=False)
    """What libpq connects to; may hold a password."""
    schema: str = DEFAULT_SCHEMA

    def __str__(self) -> str:
        """The address as the user wrote it, without the password."""
        parts = urlsplit(self.url)
        user, at, host = parts.netloc.rpartition("@")
        shown = user.partition(":")[0] + at + host
        kept = [pair for pair in parse_qsl(parts.query) if pair[0] != "password"]
        if self.schema != DEFAULT_SCHEMA:
            kept.append(("schema", self.schema))
        return urlunsplit((parts.scheme, shown, parts.path, urlencode(kept, quote_via=quote), ""))

    @property
    def name(self) -> str:
        """A short name, for titles."""
        return self.schema

    @property
    def has_password(self) -> bool:
        """Whether the address holds a password."""
        parts = urlsplit(self.url)
        return parts.password is not None or "password" in dict(parse_qsl(parts.query))

    @property
    def full_url(self) -> str:
        """The whole address with its password, for another process."""
        mark = "&" if urlsplit(self.url).query else "?"
        return f"{self.url}{mark}{urlencode({'schema': self.schema}, quote_via=quote)}"

    def beside(self, name: str) -> "DatabaseAddress":
        """The address of another knowledge base in the same database."""
        return DatabaseAddress(self.url, _check_schema(f"{self.schema}_{name}"))

    def work_folder(self, cache: Path) -> Path:
        """Where this machine keeps files of this knowledge base."""
        return cache / "databases" / digest(str(self))[:16]


KbLocation = Path | DatabaseAddress


def parse_location(given: object) -> KbLocation:
    """A folder, or `postgresql://USER@HOST/DATABASE?schema=NAME`; the schema is `clew` if unset."""
    if isinstance(given, Path | DatabaseAddress):
        return given
    if not isinstance(given, str):
        raise ConfigError(f"{given!r} is no knowledge base; name a folder or a database")
    text = given
    if not text.startswith(_SCHEMES):
        return Path(text)
    parts = urlsplit(text)
    options = parse_qsl(parts.query, keep_blank_values=True)
    named = [value for name, value in options if name == "schema"]
    kept = urlencode([pair for pair in options if pair[0] != "schema"], quote_via=quote)
    url = urlunsplit(("postgresql", parts.netloc, parts.path, kept, ""))
    # An empty host is valid: a local server is reached by its socket.
    url = url if "://" in url else url.replace("postgresql:", "postgresql://", 1)
    return DatabaseAddress(url, _check_schema(named[-1] if named else DEFAULT_SCHEMA))


def child_location(kb: KbLocation, name: str) -> KbLocation:
    """Another knowledge base of this name within a folder, or beside a schema."""
    return kb.beside(name) if isinstance(kb, DatabaseAddress) else kb / name


def _check_schema(name: str) -> str:
    reserved = name.startswith("pg_") or name == "information_schema"
    if not re.fullmatch(r"[^\W\d][\w-]*", name) or len(name.encode()) > _MAX_NAME_BYTES or reserved:
        raise ConfigError(
            f"{name!r} cannot be the schema of a knowledge base; use letters, digits, _ and -, "
            f"at most {_MAX_NAME_BYTES}, not beginning with a digit or pg_"
        )
    return name
