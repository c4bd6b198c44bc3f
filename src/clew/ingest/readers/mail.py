"""Reads e-mail: one message of an .eml file, or every message of an mbox.

What a message quotes below its own text is a section of its own, so that nobody is cited for the
words of others; in a mailbox it is left out where an earlier message has it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email import message_from_bytes
from email.errors import MessageError
from email.message import EmailMessage
from email.policy import EmailPolicy
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.decode import decode
from clew.ingest.readers.html import read_page
from clew.ingest.readers.source import (
    DocumentReader,
    ReadBudget,
    Skipped,
    SourceFile,
    make_document,
    read_bytes,
)
from clew.types import Document

_SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_MESSAGE_START = re.compile(rb"^From [^\n]*\d[^\n]*\n(?=[A-Za-z][A-Za-z0-9-]*:)", re.MULTILINE)
_ESCAPED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_MAIL_SUFFIXES = (".eml", ".mbox")  # messages within a message are parts of it
_REPLY_MARK = re.compile(r"^(?:(?:re|fwd?|aw|wg|sv|rv|tr)\s*:\s*)+", re.IGNORECASE)
_QUOTE_MARK = re.compile(r"^(?:>[ \t]?)+")
_ORIGINAL = re.compile(
    r"-{3,}[ \t]*([^\W\d_][^-\n]{3,60}?)[ \t]*-{3,}"
)  # "--- Original Message ---"
_QUOTED = "Quoted from an earlier message"
_MAX_PARTS = 200
_MAX_HEADER = 4_000  # characters: longer ones take the package `email` minutes
# What the package `email` raises for malformed messages, besides its own errors.
_PARSE_ERRORS = (
    *(MessageError, LookupError, ValueError, AttributeError, TypeError, RecursionError),
    OverflowError,  # a date with a number of many digits
)


@dataclass(frozen=True, slots=True)
class _Attached:
    """A file that is attached to a message."""

    name: str
    content: bytes


ReadAttached = Callable[[str, _Attached], str]
"""Returns the text of what is attached to a message of this name; raises `InputError`."""


class _ShortHeaderPolicy(EmailPolicy):
    """The package's usual policy, which cuts long headers."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """Return name and value of a header."""
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_MAX_HEADER]


_SHORT_HEADERS = _ShortHeaderPolicy()


@dataclass(frozen=True, slots=True)
class MailReader:
    """Reads messages, and what is attached to them by the readers of other kinds of files."""

    readers: Mapping[str, DocumentReader]

    def read_eml(self, source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
        """Read one message; its title is its subject."""
        yield from _read_message(read_bytes(source, budget), source.name, self._attached(budget))

    def read_mbox(self, source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
        """Read every message of a mailbox, each named by its position."""
        yield from _read_mailbox(source, budget, self._attached(budget))

    def _attached(self, budget: ReadBudget) -> ReadAttached:
        def read(name: str, attached: _Attached) -> str:
            suffix = PurePosixPath(attached.name).suffix.lower()
            reader = self.readers.get(suffix) if suffix not in _MAIL_SUFFIXES else None
            if reader is None:
                raise InputError("is attached and of a kind that cannot be read")
            with TemporaryDirectory() as folder:
                path = Path(folder, f"attached{suffix}")
                path.write_bytes(attached.content)
                items = list(reader(SourceFile(path, name), budget))
            found = [item.text for item in items if isinstance(item, Document)]
            if not found:
                raise InputError("is attached and has no text that can be read")
            return "\n".join(found)

        return read


def _read_mailbox(
    source: SourceFile, budget: ReadBudget, read_attached: ReadAttached
) -> Iterator[Document | Skipped]:
    raw = read_bytes(source, budget)
    starts = [found.start() for found in _MESSAGE_START.finditer(raw)]
    if not starts:
        raise InputError("is not a mailbox: no line begins with `From `")
    told: set[str] = set()
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(raw)], strict=True), 1):
        name = f"{source.name}#{number}"
        try:
            own = _ESCAPED_FROM.sub(rb"\1", raw[start:end].partition(b"\n")[2])
            yield from _read_message(own, name, read_attached, told)
        except InputError as error:
            yield Skipped(name, str(error))


def _read_message(
    raw: bytes, name: str, read_attached: ReadAttached, told: set[str] | None = None
) -> Iterator[Document | Skipped]:
    """Read a message; `told` are the lines of earlier ones, to which its own are added."""
    try:
        message = message_from_bytes(raw, policy=_SHORT_HEADERS)
        assert isinstance(message, EmailMessage)
        headers = {key: _header(message, key) for key in _SHOWN_HEADERS}
        body = _set_quotes_apart(_body_text(message), set() if told is None else told)
        attached = list(_list_attached(message))
    except _PARSE_ERRORS as error:
        raise InputError(f"is not an e-mail that can be read ({type(error).__name__})") from error
    if not body.strip() and not headers["Subject"]:
        raise InputError("has no text")
    for one in attached:
        try:
            body = f"{body.rstrip()}\n\n## {one.name}\n\n{read_attached(name, one).strip()}"
        except InputError as error:
            yield Skipped(f"{name}#{one.name}", str(error))
    shown = "\n".join(f"{key}: {value}" for key, value in headers.items() if value)
    metadata: dict[str, Any] = {"format": "email"}
    metadata |= {key.lower(): value for key, value in headers.items() if value and key != "Subject"}
    title = _REPLY_MARK.sub("", headers["Subject"])
    yield make_document(f"{shown}\n\n{body.strip()}".strip(), title, name, metadata)


def _set_quotes_apart(body: str, told: set[str]) -> str:
    """Give the quotes below a message's own text a heading, or leave out what was told before."""
    lines = body.rstrip().split("\n")
    first = _find_quoted_end(lines)
    own = lines[:first]
    quoted = [_QUOTE_MARK.sub("", line) for line in lines[first:]]
    told |= {line.strip() for line in own if line.strip()}
    if not any(map(str.strip, quoted)) or not any(map(str.strip, own)):
        return body
    opening = ""
    if own[-1].rstrip().endswith(":") and own[-1].strip():
        opening = own.pop().strip().rstrip(":")
    elif mark := _ORIGINAL.fullmatch(quoted[0].strip()):
        opening, quoted = mark[1].strip(), quoted[1:]
    kept = "\n".join(own).rstrip()
    if all(line.strip() in told for line in quoted if line.strip()):
        return kept
    return f"{kept}\n\n## {opening or _QUOTED}\n\n" + "\n".join(quoted).strip("\n")


def _find_quoted_end(lines: list[str]) -> int:
    """Return the line from which a message only quotes; beyond the last one if it does not."""
    for at, line in enumerate(lines):
        if _ORIGINAL.fullmatch(line.strip()):
            return at
    at = len(lines)
    while at and (lines[at - 1].startswith(">") or not lines[at - 1].strip()):
        at -= 1
    return at


def _header(message: EmailMessage, key: str) -> str:
    return " ".join(str(message.get(key) or "").split())


def _list_attached(message: EmailMessage) -> Iterator[_Attached]:
    for part in islice(message.walk(), _MAX_PARTS):
        if part.is_multipart() or part.get_content_disposition() != "attachment":
            continue
        content, name = part.get_payload(decode=True), " ".join((part.get_filename() or "").split())
        if isinstance(content, bytes) and content.strip():
            yield _Attached(name or part.get_content_type(), content)


def _body_text(message: EmailMessage) -> str:
    """Return the text parts that are not attachments; HTML only where there is no plain text."""
    plain: list[str] = []
    pages: list[str] = []
    for part in islice(message.walk(), _MAX_PARTS):
        if part.is_multipart() or part.get_content_disposition() == "attachment":
            continue
        kind = part.get_content_type()
        if kind not in {"text/plain", "text/html"}:
            continue
        payload = part.get_payload(decode=True)
        if not isinstance(payload, bytes) or not payload.strip():
            continue
        text, _ = decode(payload, part.get_content_charset() or "")
        (plain if kind == "text/plain" else pages).append(text)
    if plain:
        return "\n\n".join(plain)
    found = [page for html in pages if (page := read_page(html))]
    return "\n\n".join(page.text() for page in found)
