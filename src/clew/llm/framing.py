"""HTTP/1.1 responses read from a stream: head, body, chunks, compression, all bounded.

ValueError means: this is no HTTP/1.1, or more of it than anyone should send.
"""

import asyncio
import zlib
from asyncio import StreamReader
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

BLOCK = 64 * 1024
PACKED = ("gzip", "x-gzip", "deflate")


@dataclass(frozen=True, slots=True)
class Answer:
    """A response's head; names of headers are lower case."""

    status: int
    headers: Mapping[str, str]

    def keeps_line(self) -> bool:
        """Say whether the connection may be used again after the body."""
        ends = "content-length" in self.headers or "transfer-encoding" in self.headers
        return ends and self.headers.get("connection", "").lower() != "close"


async def read_head(reader: StreamReader) -> Answer:
    """Read the final head; "100 Continue" and its kin only precede it."""
    while True:
        answer = _head(await reader.readuntil(b"\r\n\r\n"))
        if answer.status >= 200:
            return answer


def _head(raw: bytes) -> Answer:
    first, *rest = raw[:-4].decode("latin-1").split("\r\n")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1.") or not status[:3].isdigit():
        raise ValueError(f"its first line is {first[:60]!r}")
    headers = {}
    for line in rest:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return Answer(int(status[:3]), headers)


async def read_body(
    reader: StreamReader, answer: Answer, limit: int, silence: float
) -> AsyncIterator[bytes]:
    """Yield the body as it comes, unpacked; more than `limit` bytes are refused."""
    encoding = answer.headers.get("content-encoding", "identity").lower()
    if encoding not in ("identity", *PACKED):
        raise ValueError(f"its body is packed as {encoding!r}")
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in PACKED else None
    left = limit
    async for block in _blocks(reader, answer, limit, silence):
        plain = unpack.decompress(block, left + 1) if unpack else block
        left -= len(plain)
        if left < 0:
            raise ValueError(f"its body is longer than {limit:,} bytes")
        if plain:
            yield plain


async def read_short(
    reader: StreamReader, answer: Answer, limit: int, silence: float
) -> bytes | None:
    """A short body of known length in one go, as most are; None for any other, still unread."""
    length = answer.headers.get("content-length", "")
    odd = "transfer-encoding" in answer.headers or "content-encoding" in answer.headers
    if odd or answer.status != 200 or not (length.isascii() and length.isdigit()):
        return None
    if int(length) > min(BLOCK, limit):
        return None
    async with asyncio.timeout(silence):
        return await reader.readexactly(int(length))


def _blocks(
    reader: StreamReader, answer: Answer, limit: int, silence: float
) -> AsyncIterator[bytes]:
    """Choose by the head how the body's end is found."""
    if answer.headers.get("transfer-encoding", "").lower() == "chunked":
        return _chunked(reader, limit, silence)
    length = answer.headers.get("content-length")
    if answer.status in (204, 304):
        length = "0"
    if length is None:
        return _to_the_end(reader, silence)
    if not (length.isascii() and length.isdigit()):
        raise ValueError(f"its length is {length[:20]!r}")
    return _measured(reader, int(length), silence)


async def _measured(reader: StreamReader, left: int, silence: float) -> AsyncIterator[bytes]:
    while left > 0:
        async with asyncio.timeout(silence):
            block = await reader.read(min(BLOCK, left))
        if not block:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(block)
        yield block


async def _to_the_end(reader: StreamReader, silence: float) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(silence):
            block = await reader.read(BLOCK)
        if not block:
            return
        yield block


async def _chunked(reader: StreamReader, limit: int, silence: float) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(silence):
            size = _hex((await reader.readuntil(b"\r\n")).partition(b";")[0].strip())
            if size > limit:
                raise ValueError(f"one of its chunks has {size:,} bytes")
            if not size:
                while await reader.readuntil(b"\r\n") != b"\r\n":
                    pass  # trailing headers
                return
            block = await reader.readexactly(size)
            await reader.readexactly(2)
        yield block


def _hex(digits: bytes) -> int:
    """Read a chunk's size; `int` alone would also take signs and underscores."""
    if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
        raise ValueError(f"the size of one of its chunks is {digits[:20]!r}")
    return int(digits, 16)
