"""Reads HTTP/1.1 responses from a stream: head, body, chunks, compression, all bounded."""

import asyncio
import zlib
from asyncio import StreamReader
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

BLOCK_BYTES = 64 * 1024
MAX_HEADER_BYTES = 256 * 1024
_TOO_LONG = "its body is longer than {:,} bytes"
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
        first, *rest = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1").split("\r\n")
        version, _, status = first.partition(" ")
        if not version.startswith("HTTP/1.") or not status[:3].isdigit():
            raise ValueError(f"its first line is {first[:60]!r}")
        if int(status[:3]) >= 200:
            fields = (line.partition(":") for line in rest)
            headers = {name.strip().lower(): value.strip() for name, _, value in fields}
            return ResponseHead(int(status[:3]), headers)


async def read_body(
    reader: StreamReader, head: ResponseHead, limit: int, idle_limit: float
) -> AsyncIterator[bytes]:
    """Yield the decompressed body as it arrives; more than `limit` bytes is an error."""
    encoding = head.headers.get("content-encoding", "identity").lower()
    compressed = encoding in COMPRESSED_ENCODINGS
    if not compressed and encoding != "identity":
        raise ValueError(f"its content encoding is {encoding!r}")
    length = head.headers.get("content-length", "")
    if not compressed and length.isascii() and length.isdigit() and int(length[:20]) > limit:
        raise ValueError(_TOO_LONG.format(limit))  # before any of it is read
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 32) if compressed else None
    remaining = limit
    async for block in _iter_blocks(reader, head, limit, idle_limit):
        try:
            data = decompressor.decompress(block, remaining + 1) if decompressor else block
        except zlib.error as error:
            raise ValueError(f"its body is not what {encoding} makes") from error
        remaining -= len(data)
        if remaining < 0:
            raise ValueError(_TOO_LONG.format(limit))
        if data:
            yield data


async def read_short_body(
    reader: StreamReader, head: ResponseHead, limit: int, idle_limit: float
) -> bytes | None:
    """Read a short uncompressed body of known length at once; None (unread) for any other."""
    length = head.headers.get("content-length", "")
    encoded = "transfer-encoding" in head.headers or "content-encoding" in head.headers
    if encoded or head.status != 200 or not (length.isascii() and length.isdigit()):
        return None
    if int(length) > min(BLOCK_BYTES, limit):
        return None
    async with asyncio.timeout(idle_limit):
        return await reader.readexactly(int(length))


async def _iter_blocks(
    reader: StreamReader, head: ResponseHead, limit: int, idle_limit: float
) -> AsyncIterator[bytes]:
    """Yield the body as framed by the headers: chunked, of known length, or until the end."""
    source = _BufferedReader(reader, idle_limit)
    length = "0" if head.status in (204, 304) else head.headers.get("content-length")
    if head.headers.get("transfer-encoding", "").lower() == "chunked":
        while left := _parse_chunk_size(await source.read_line(), limit):
            while left:
                block = await source.read(left)
                left -= len(block)
                yield block
            if await source.read_line():
                raise ValueError("one of its chunks is longer than its size")
        while await source.read_line():
            pass  # trailing headers
    elif length is None:
        while block := await source.read_block():
            yield block
    elif not (length.isascii() and length.isdigit()):
        raise ValueError(f"its length is {length[:20]!r}")
    else:
        left = int(length)
        while left:
            block = await source.read(left)
            left -= len(block)
            yield block


class _BufferedReader:
    """Cuts lines and parts from a stream that is read in large blocks.

    Waiting on the stream for each line and part would double the cost of a stream of small chunks.
    """

    def __init__(self, reader: StreamReader, idle_limit: float) -> None:
        self._reader = reader
        self._idle_limit = idle_limit
        self._data = b""
        self._at = 0

    async def read_block(self) -> bytes:
        """Read from the stream; empty at its end."""
        async with asyncio.timeout(self._idle_limit):
            return await self._reader.read(BLOCK_BYTES)

    async def read(self, most: int) -> bytes:
        """Return 1 to `most` bytes."""
        if self._at == len(self._data):
            await self._fill()
        part = self._data[self._at : self._at + most]
        self._at += len(part)
        return part

    async def read_line(self) -> bytes:
        """Return the next line without its end."""
        while (end := self._data.find(b"\r\n", self._at)) < 0:
            if len(self._data) - self._at > MAX_HEADER_BYTES:
                raise ValueError("one of its lines is too long")
            await self._fill()
        line = self._data[self._at : end]
        self._at = end + 2
        return line

    async def _fill(self) -> None:
        block = await self.read_block()
        if not block:
            raise asyncio.IncompleteReadError(b"", None)
        self._data = self._data[self._at :] + block
        self._at = 0


def _parse_chunk_size(line: bytes, limit: int) -> int:
    """Parse a chunk size; `int` alone would also accept signs and underscores."""
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
        raise ValueError(f"the size of one of its chunks is {digits[:20]!r}")
    if (size := int(digits, 16)) > limit:
        raise ValueError(f"one of its chunks has {size:,} bytes")
    return size
