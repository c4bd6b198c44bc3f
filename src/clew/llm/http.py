"""Minimal HTTP/1.1 client over asyncio streams: keep-alive POST requests to one origin.

Why our own: general clients take 2 to 3 ms of CPU time per call, this one 0.15 ms
(docs/decisions/0003-own-http-client.md). Redirects and proxies are not supported; use the SDK
client behind a proxy.

Reads HTTP/1.1 responses from a stream: head, body, chunks, compression, all bounded.
"""

import asyncio
import errno
import ssl
import zlib
from asyncio import StreamReader
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from clew.errors import ConfigError
from clew.llm.chat import EndpointError

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


LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
MAX_HEADER_BYTES = 256 * 1024
MAX_IDLE_CONNECTIONS = 64


@dataclass(eq=False, slots=True)
class _HttpConnection:
    """One keep-alive connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used: bool = False

    def is_usable(self) -> bool:
        """Whether the connection is still open."""
        return not (self.reader.at_eof() or self.writer.is_closing())

    def close(self) -> None:
        """Abort the connection; there is nothing left to flush."""
        self.writer.transport.abort()


class _IdlePool:
    """The idle connections of one event loop, closed when the loop shuts down."""

    def __init__(self) -> None:
        self.connections: list[_HttpConnection] = []
        # asyncio closes open async generators when a loop shuts down: its only shutdown hook.
        self.closer: AsyncIterator[None] | None = self._close_with_loop()

    async def _close_with_loop(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.closer = None  # it refers to the loop, which could otherwise not be freed
            self.close()
            await asyncio.sleep(0)  # the transports must close before the loop does

    def close(self) -> None:
        while self.connections:
            self.connections.pop().close()


@dataclass(eq=False)
class HttpClient:
    """Sends POST requests to paths under `base_url` over pooled connections."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout: float = 10.0
    read_timeout: float = 300.0
    max_body: int = 32 * 1024 * 1024
    ca_file: str = ""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.base_url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigError(
                f"base_url {self.base_url!r} is no address of an endpoint: write it as "
                "http://host:port/v1."
            )
        self._tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = port or (443 if self._tls else 80)
        self._path = parts.path.rstrip("/")
        self._query = f"?{parts.query}" if parts.query else ""
        given = {"Accept-Encoding": "gzip", "Content-Type": "application/json", **self.headers}
        lines = [f"{name}: {value}" for name, value in {"Host": parts.netloc, **given}.items()]
        self._header_block = "\r\n".join(lines)
        if not self._header_block.isascii() or len(self._header_block.splitlines()) != len(lines):
            raise ConfigError(
                f"the API key or base URL for {self.base_url} holds a line break or a letter "
                "outside ASCII: copy it again."
            )
        self._tls_context: ssl.SSLContext | None = None
        self._idle: WeakKeyDictionary[asyncio.AbstractEventLoop, _IdlePool] = WeakKeyDictionary()

    async def post(self, path: str, body: bytes) -> tuple[ResponseHead, bytes]:
        """Send `body` and return the whole response."""
        conn, head = await self._send_request(self._build_request(path, body))
        complete = False
        try:
            with self._translate_errors("while reading its answer"):
                bounds = (self.max_body, self.read_timeout)
                content = await read_short_body(conn.reader, head, *bounds)
                if content is None:
                    parts = [part async for part in read_body(conn.reader, head, *bounds)]
                    content = b"".join(parts)
            complete = True
        finally:
            await self._release(conn, complete and head.is_keep_alive())
        return head, content

    async def stream(self, path: str, body: bytes) -> AsyncGenerator[ResponseHead | bytes, None]:
        """Yield the response head, then its body in blocks as they arrive."""
        conn, head = await self._send_request(self._build_request(path, body))
        complete = False
        try:
            yield head
            with self._translate_errors("while reading its answer"):
                async for block in read_body(conn.reader, head, self.max_body, self.read_timeout):
                    yield block
            complete = True
        finally:
            await self._release(conn, complete and head.is_keep_alive())

    def _build_request(self, path: str, body: bytes) -> bytes:
        head = (
            f"POST {self._path}{path}{self._query} HTTP/1.1\r\n{self._header_block}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("ascii") + body

    async def _release(self, conn: _HttpConnection, reusable: bool) -> None:
        """Return a reusable connection to the pool, or close it."""
        if reusable:
            await self._return_idle(conn)
        else:
            conn.close()

    def close(self) -> None:
        """Close the idle connections."""
        for idle in self._idle.values():
            idle.close()

    async def _send_request(self, message: bytes) -> tuple[_HttpConnection, ResponseHead]:
        """Send on a pooled connection; one the server closed meanwhile is replaced once."""
        conn = self._take_idle() or await self._connect()
        done = False
        try:
            with self._translate_errors("before it answered"):
                try:
                    head = await self._exchange(conn, message)
                except (ConnectionError, asyncio.IncompleteReadError) as gone:
                    partial = isinstance(gone, asyncio.IncompleteReadError) and gone.partial
                    if partial or not conn.used:
                        raise
                    conn.close()
                    conn = await self._connect()
                    head = await self._exchange(conn, message)
            done = True
            return conn, head
        finally:
            if not done:
                conn.close()

    async def _exchange(self, conn: _HttpConnection, message: bytes) -> ResponseHead:
        conn.writer.write(message)
        async with asyncio.timeout(self.read_timeout):
            return await read_head(conn.reader)

    def _take_idle(self) -> _HttpConnection | None:
        idle = self._idle.get(asyncio.get_running_loop())
        while idle is not None and idle.connections:
            conn = idle.connections.pop()
            if conn.is_usable():
                return conn
            conn.close()
        return None

    async def _return_idle(self, conn: _HttpConnection) -> None:
        loop = asyncio.get_running_loop()
        idle = self._idle.get(loop)
        if idle is None:
            idle = self._idle[loop] = _IdlePool()
            if idle.closer is not None:
                await anext(idle.closer)
        conn.used = True
        if len(idle.connections) < MAX_IDLE_CONNECTIONS and conn.is_usable():
            idle.connections.append(conn)
        else:
            conn.close()

    async def _connect(self) -> _HttpConnection:
        context = self._load_tls_context() if self._tls else None
        with self._translate_errors("while connecting"):
            async with asyncio.timeout(self.connect_timeout):
                reader, writer = await asyncio.open_connection(
                    self._host, self._port, ssl=context, limit=MAX_HEADER_BYTES
                )
        return _HttpConnection(reader, writer)

    def _load_tls_context(self) -> ssl.SSLContext:
        if self._tls_context is None:
            try:
                self._tls_context = ssl.create_default_context(cafile=self.ca_file or None)
            except OSError as error:
                raise ConfigError(f"ca_file {self.ca_file!r} cannot be read: {error}.") from error
            if not self.ca_file and not self._tls_context.cert_store_stats()["x509_ca"]:
                import httpx  # bundles CA certificates for systems that have none

                self._tls_context = httpx.create_ssl_context()
        return self._tls_context

    def _translate_errors(self, when: str) -> "_ErrorTranslator":
        return _ErrorTranslator(self.base_url, when)


@dataclass(slots=True)
class _ErrorTranslator:
    """Context manager that turns network exceptions into an `EndpointError` naming the endpoint."""

    base_url: str
    when: str

    def __enter__(self) -> None:
        """Enter the context."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Translate network errors."""
        message, transient = self._describe(error)
        if message:
            raise EndpointError(
                f"{self.base_url} {message}.",
                transient=transient,
                absent=self._is_not_listening(error),
            ) from error

    def _is_not_listening(self, error: BaseException | None) -> bool:
        """Whether the connection to a local address was refused, at every address tried."""
        if not isinstance(error, OSError) or urlsplit(self.base_url).hostname not in LOCAL_HOSTS:
            return False
        # For several addresses asyncio reports the errors only as text.
        refused = f"[Errno {errno.ECONNREFUSED}]"
        return isinstance(error, ConnectionRefusedError) or (
            0 < str(error).count("[Errno ") == str(error).count(refused)
        )

    def _describe(self, error: BaseException | None) -> tuple[str, bool]:
        """The message, and whether the error is transient."""
        match error:
            case TimeoutError():
                return f"kept silent {self.when}; a longer timeout may help", True
            case ssl.SSLCertVerificationError():
                return (
                    f"shows a certificate that cannot be verified ({error.verify_message}); if "
                    "the server is yours, set ca_file to the PEM file of its authority",
                    False,
                )
            case ssl.SSLError():
                return f"does not speak TLS as it should ({error.reason}); try http://", False
            case asyncio.IncompleteReadError() | ConnectionResetError() | BrokenPipeError():
                return f"hung up {self.when}", True
            case asyncio.LimitOverrunError() | ValueError() | zlib.error():
                return f"does not answer in HTTP/1.1 as it should: {error}", False
            case OSError():
                reason = error.strerror or str(error) or type(error).__name__
                return f"cannot be reached ({reason}); is it running?", True
        return "", False
