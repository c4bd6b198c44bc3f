"""Brings what is not a file into one: standard input and web pages, with checks before and limits.

A page is asked for over HTTP or HTTPS only, never from a private address unless that is allowed,
and never more than the read budget; each redirect is checked like the first address.
"""

import csv
import io
import ipaddress
import json
import re
import socket
import zipfile
from collections.abc import Sequence
from contextlib import closing
from html import unescape
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import BinaryIO
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from clew.errors import InputError
from clew.ingest.files import READERS, document_name, known_suffix
from clew.ingest.readers.source import (
    DEFAULT_BUDGET,
    ReadBudget,
    Skipped,
    SourceFile,
    format_megabytes,
)
from clew.text.unicode import digest

STDIN = "-"
_STDIN_NAME = "stdin"
_MAX_REDIRECTS = 5
_TIMEOUT = 30.0  # seconds without a byte
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Where neither the address nor the server says what it is, a page is HTML.
_SUFFIX_BY_TYPE = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/json": ".json",
    "application/x-ndjson": ".jsonl",
    "application/pdf": ".pdf",
}

# How files of some formats begin.
_MARKS = {
    b"%PDF-": ".pdf",
    b"SQLite format 3\x00": ".sqlite",
    b"PAR1": ".parquet",
    b"\\documentclass": ".tex",
}
# A part that tells what a packed file is.
_ZIP_PARTS = {
    "word/document.xml": ".docx",
    "ppt/presentation.xml": ".pptx",
    "xl/workbook.xml": ".xlsx",
    "META-INF/container.xml": ".epub",
}
_BEGIN = 1_000
# How servers call the page that lists a folder.
_LISTING = re.compile(rb"<title>\s*(?:index of|directory listing)\b", re.IGNORECASE)
_LINK = re.compile(rb"<a\s[^>]*href=[\"']([^\"'#?]+)[\"']", re.IGNORECASE)
_MAX_LISTED = 1_000  # files of a folder
_TABLE_BEGIN = 20_000  # bytes that tell whether a text is a table
_DELIMITED = {"\t": ".tsv", ",": ".csv", ";": ".csv", "|": ".csv"}
_MIN_LINES = 3  # the header and two rows
_COLUMN_NAME = re.compile(r"[^\W\d_][^.!?:\n]{0,40}")
_NUMBER = re.compile(r"\s*[^\w\s]?\s*\d[\d.,]*\s*\D{0,4}")
_PAGE_BEGIN = re.compile(rb"(?:<\?xml[^>]*>\s*)?<(?:!doctype html|html|head|body)\b")


def is_outside(given: str) -> bool:
    """Whether an argument is standard input or a web address rather than a path."""
    return given == STDIN or urlsplit(given).scheme.lower() in ("http", "https")


def split_sources(given: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Split arguments into paths, and what has to be fetched first; raise for what is neither."""
    for one in given:
        if not one.strip():
            raise InputError("a path is empty; give a file or a folder (`.` is the current one)")
        scheme = one.partition("://")[0] if "://" in one else ""
        if scheme.isalpha() and not is_outside(one) and not Path(one).exists():
            raise InputError(
                f"{one}: {scheme.lower()} addresses are not fetched, only http and https; "
                "download it and add the file"
            )
    paths = [Path(one) for one in given if not is_outside(one)]
    return paths, list(dict.fromkeys(one for one in given if is_outside(one)))


def fetch_sources(
    given: Sequence[str],
    folder: Path,
    stdin: BinaryIO,
    *,
    name: str = "",
    allow_private: bool = False,
    budget: ReadBudget = DEFAULT_BUDGET,
) -> list[SourceFile | Skipped]:
    """Save standard input and pages as files in a folder; each page is named by its address.

    Standard input is called `name`, else by what it holds, so that no text replaces another. Where
    there are several, one that cannot be fetched is skipped. Of a page that only lists a folder,
    the documents in it are fetched.
    """
    found: list[SourceFile | Skipped] = []
    waiting = list(given)
    while waiting:
        one = waiting.pop(0)
        try:
            if one == STDIN:
                raw = _read_input(stdin, budget)
                called = name or f"{_STDIN_NAME}-{digest(raw.hex())[:8]}"
                suffix = known_suffix(called) or guess_suffix(raw) or ".txt"
            else:
                raw, called, suffix = fetch_page(one, allow_private=allow_private, budget=budget)
                if suffix == ".html" and _LISTING.search(raw[:_BEGIN]) and one in given:
                    waiting += _list_files(raw, one)
                    continue
        except InputError as error:
            if len(given) == 1 and one in given:
                raise
            found.append(Skipped(one if one == STDIN else document_name_of(one), str(error)))
            continue
        path = folder / f"{digest(called)}{suffix}"
        path.write_bytes(raw)
        found.append(SourceFile(path, called))
    return found


def _list_files(raw: bytes, url: str) -> list[str]:
    """Return the addresses of the documents in a folder, of the page that lists it."""
    folder = urlsplit(url)._replace(query="", fragment="").geturl()
    folder = folder if folder.endswith("/") else f"{folder}/"
    links = [unescape(one.decode("utf-8", "replace")) for one in _LINK.findall(raw)]
    found = [urljoin(folder, link) for link in links]
    inside = [one for one in found if one.startswith(folder) and "/" not in one[len(folder) :]]
    files = [one for one in dict.fromkeys(inside) if known_suffix(unquote(urlsplit(one).path))]
    if not files:
        raise InputError(f"{url} only lists a folder, without a document that can be read")
    return files[:_MAX_LISTED]


def guess_suffix(raw: bytes) -> str:
    """Return the suffix of a format that begins with its own mark, or ""."""
    for mark, suffix in _MARKS.items():
        if raw.startswith(mark):
            return suffix
    if raw.startswith(b"PK\x03\x04"):
        try:
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                parts = archive.namelist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            return ""
        return next((s for part, s in _ZIP_PARTS.items() if part in parts), "")
    begin = raw[:_BEGIN].lstrip().lower()
    if _PAGE_BEGIN.match(begin):
        return ".html"
    if begin[:1] in (b"{", b"["):
        return _guess_json(raw)
    return _guess_delimited(raw)


def _guess_json(raw: bytes) -> str:
    """Return which kind of JSON a text is: one value, or one in each line; "" if neither."""
    for text, suffix in ((raw, ".json"), (raw.lstrip().split(b"\n", 1)[0], ".jsonl")):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            continue
        return suffix
    return ""


def _guess_delimited(raw: bytes) -> str:
    """Return the suffix of a text whose lines have the same fields, under a header; else ""."""
    text = raw[:_TABLE_BEGIN].decode("utf-8-sig", errors="replace")
    if len(raw) > _TABLE_BEGIN:
        text = text[: text.rfind("\n") + 1]  # the last line may be cut
    for delimiter, suffix in _DELIMITED.items():
        try:
            found = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
            rows = [row for row in found if row]
        except csv.Error:
            continue
        if len(rows) >= _MIN_LINES and len({len(row) for row in rows}) == 1 and _has_header(rows):
            return suffix
    return ""


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of some rows names columns: short, all different, no number or sentence."""
    names = [cell.strip() for cell in rows[0]]
    if len(names) < 2 or len(set(names)) < len(names):
        return False
    if any(not _COLUMN_NAME.fullmatch(name) for name in names):
        return False
    # In prose a space follows each comma; a table with such spaces has a column of numbers.
    is_tight = not any(cell.startswith(" ") for row in rows for cell in row)
    columns = zip(*rows[1:], strict=True)
    return is_tight or any(all(_NUMBER.fullmatch(cell) for cell in one) for one in columns)


def _read_input(stdin: BinaryIO, budget: ReadBudget) -> bytes:
    raw = stdin.read(budget.file_bytes + 1)
    if len(raw) > budget.file_bytes:
        raise InputError(f"standard input has more than {format_megabytes(budget.file_bytes)}")
    if not raw.strip():
        raise InputError("standard input is empty; pipe a text into `clew add -`")
    return raw


def fetch_page(
    url: str, *, allow_private: bool = False, budget: ReadBudget = DEFAULT_BUDGET
) -> tuple[bytes, str, str]:
    """Return a page's bytes, its name (the address without a fragment) and its suffix."""
    name = document_name_of(url)
    at = url
    for _ in range(_MAX_REDIRECTS + 1):
        parts = urlsplit(at)
        connection = _connect(parts, url, allow_private)
        try:
            target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
            query = f"?{quote(parts.query, safe='/%:@!$&()*+,;=~-._?')}" if parts.query else ""
            connection.request("GET", target + query, headers={"User-Agent": "clew"})
            with closing(connection.getresponse()) as reply:
                if reply.status in _REDIRECTS and (onward := reply.getheader("Location")):
                    at = urljoin(at, onward)
                    continue
                raw = _read_reply(reply, url, budget)
                return raw, name, _choose_suffix(reply, parts) or guess_suffix(raw) or ".html"
        except (OSError, HTTPException) as error:
            raise InputError(f"{url} cannot be fetched: {_explain(error)}") from error
        finally:
            connection.close()
    raise InputError(f"{url} is redirected more than {_MAX_REDIRECTS} times")


def document_name_of(url: str) -> str:
    """Return the name of a page's document: its address without user, password and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    shown = unquote(parts._replace(netloc=host, fragment="").geturl())
    scheme, _, rest = shown.partition("://")
    return f"{scheme.lower()}://{document_name(Path(rest))}"


def _connect(parts: SplitResult, url: str, allow_private: bool) -> HTTPConnection:
    """Connect to a host that may be asked; nothing is sent before its address is checked."""
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise InputError(f"{url} leads to {parts.geturl()!r}, which is not a web address")
    kind = HTTPSConnection if parts.scheme.lower() == "https" else HTTPConnection
    try:
        # An invalid port raises when it is read.
        connection = kind(parts.hostname, parts.port, timeout=_TIMEOUT)
        for found in socket.getaddrinfo(parts.hostname, connection.port, type=socket.SOCK_STREAM):
            _check_address(str(found[4][0]), parts.hostname, allow_private)
        connection.connect()
        try:
            # Names can change their address between the two: the one that answers counts.
            _check_address(connection.sock.getpeername()[0], parts.hostname, allow_private)
        except InputError:
            connection.close()
            raise
    except (OSError, ValueError) as error:
        raise InputError(f"{url} cannot be fetched: {_explain(error)}") from error
    return connection


def _check_address(address: str, host: str, allow_private: bool) -> None:
    found = ipaddress.ip_address(address.partition("%")[0])
    inner = getattr(found, "ipv4_mapped", None) or found
    if not allow_private and (not inner.is_global or inner.is_multicast):
        raise InputError(
            f"{host} is a private address ({inner}); `--allow-private` fetches it all the same"
        )


def _explain(error: Exception) -> str:
    strerror = getattr(error, "strerror", None)
    return str(strerror or error or type(error).__name__).lower()


def _read_reply(reply: HTTPResponse, url: str, budget: ReadBudget) -> bytes:
    if reply.status != 200:
        raise InputError(f"{url} answers {reply.status} {reply.reason}".rstrip())
    raw = reply.read(budget.file_bytes + 1)
    if len(raw) > budget.file_bytes:
        raise InputError(f"{url} has more than {format_megabytes(budget.file_bytes)}")
    if not raw:
        raise InputError(f"{url} is empty")
    return raw


def _choose_suffix(reply: HTTPResponse, parts: SplitResult) -> str:
    kind = (reply.getheader("Content-Type") or "").partition(";")[0].strip().lower()
    by_name = Path(unquote(parts.path)).suffix.lower()
    if by_name in READERS and by_name and kind not in ("text/html", "application/xhtml+xml"):
        return by_name
    return _SUFFIX_BY_TYPE.get(kind, "")
