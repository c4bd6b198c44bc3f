"""Reads HTTP/1.1 responses from a stream: head, body, chunks, compression, all bounded.

ValueError means that the data is not HTTP/1.1 or exceeds a limit.
"""

import asyncio
import zlib
from asyncio import StreamReader
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

BLOCK_BYTES = 64 * 1024
COMPRESSED_ENCODINGS = ("gzip", "x-gzip", "deflate")


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """Status and headers of a response; header names are lower case."""

    status: int
    headers: Mapping[str, str]

    def is_keep_alive(self) -> bool:
        """Whether the connection can be reused after the body."""
        has_end = "content-length" in self.headers or "transfer-encoding" in self.headers
        return has_end and self.headers.get("connection", "").lower() != "close"


async def read_head(reader: StreamReader) -> ResponseHead:
    """Read the final head, skipping interim ones such as "100 Continue"."""
    while True:
        head = _parse_head(await reader.readuntil(b"\r\n\r\n"))
        if head.status >= 200:
            return head


def _parse_head(raw: bytes) -> ResponseHead:
    first, *rest = raw[:-4].decode("latin-1").split("\r\n")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1.") or not status[:3].isdigit():
        raise ValueError(f"its first line is {first[:60]!r}")
    headers = {}
    for line in rest:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return ResponseHead(int(status[:3]), headers)


async def read_body(
    reader: StreamReader, answer: ResponseHead, limit: int, idle_limit: float
) -> AsyncIterator[bytes]:
    """Yield the decompressed body as it arrives; more than `limit` bytes is an error."""
    encoding = answer.headers.get("content-encoding", "identity").lower()
    if encoding not in ("identity", *COMPRESSED_ENCODINGS):
        raise ValueError(f"its body is packed as {encoding!r}")
    decompressor = (
        zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in COMPRESSED_ENCODINGS else None
    )
    remaining = limit
    async for block in _iter_blocks(reader, answer, limit, idle_limit):
        data = decompressor.decompress(block, remaining + 1) if decompressor else block
        remaining -= len(data)
        if remaining < 0:
            raise ValueError(f"its body is longer than {limit:,} bytes")
        if data:
            yield data


async def read_short_body(
    reader: StreamReader, answer: ResponseHead, limit: int, idle_limit: float
) -> bytes | None:
    """Read a short uncompressed body of known length at once; None (unread) for any other."""
    length = answer.headers.get("content-length", "")
    encoded = "transfer-encoding" in answer.headers or "content-encoding" in answer.headers
    if encoded or answer.status != 200 or not (length.isascii() and length.isdigit()):
        return None
    if int(length) > min(BLOCK_BYTES, limit):
        return None
    async with asyncio.timeout(idle_limit):
        return await reader.readexactly(int(length))


def _iter_blocks(
    reader: StreamReader, answer: ResponseHead, limit: int, idle_limit: float
) -> AsyncIterator[bytes]:
    """Choose the body framing by the headers."""
    if answer.headers.get("transfer-encoding", "").lower() == "chunked":
        return _iter_chunked(reader, limit, idle_limit)
    length = answer.headers.get("content-length")
    if answer.status in (204, 304):
        length = "0"
    if length is None:
        return _iter_until_eof(reader, idle_limit)
    if not (length.isascii() and length.isdigit()):
        raise ValueError(f"its length is {length[:20]!r}")
    return _iter_sized(reader, int(length), idle_limit)


async def _iter_sized(reader: StreamReader, left: int, idle_limit: float) -> AsyncIterator[bytes]:
    while left > 0:
        async with asyncio.timeout(idle_limit):
            block = await reader.read(min(BLOCK_BYTES, left))
        if not block:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(block)
        yield block


async def _iter_until_eof(reader: StreamReader, idle_limit: float) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(idle_limit):
            block = await reader.read(BLOCK_BYTES)
        if not block:
            return
        yield block


async def _iter_chunked(
    reader: StreamReader, limit: int, idle_limit: float
) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(idle_limit):
            size = _parse_chunk_size((await reader.readuntil(b"\r\n")).partition(b";")[0].strip())
            if size > limit:
                raise ValueError(f"one of its chunks has {size:,} bytes")
            if not size:
                while await reader.readuntil(b"\r\n") != b"\r\n":
                    pass  # trailing headers
                return
            block = await reader.readexactly(size)
            await reader.readexactly(2)
        yield block


def _parse_chunk_size(digits: bytes) -> int:
    """Parse a chunk size; `int` alone would also accept signs and underscores."""
    if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
        raise ValueError(f"the size of one of its chunks is {digits[:20]!r}")
    return int(digits, 16)
