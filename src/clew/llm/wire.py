"""HTTP/1.1 over asyncio streams: kept-alive POSTs to one origin, and nothing else.

Why our own: general clients spend 2 to 3 ms of processor time on each call, this one 0.15 ms
(docs/decisions/0003-own-http-client.md). Redirects and proxies are not followed; use the SDK
client where a proxy stands between.
"""

import asyncio
import errno
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from clew.errors import ConfigError
from clew.llm.chat import EndpointError
from clew.llm.framing import Answer, read_body, read_head, read_short

HERE = frozenset({"localhost", "127.0.0.1", "::1"})
MAX_HEAD = 256 * 1024
IDLE_LINES = 64


@dataclass(eq=False, slots=True)
class _Line:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used: bool = False

    def usable(self) -> bool:
        """Say whether the server has kept it open."""
        return not (self.reader.at_eof() or self.writer.is_closing())

    def close(self) -> None:
        """Hang up at once; there is nothing left to flush."""
        self.writer.transport.abort()


class _Idle:
    """The unused lines of one event loop, closed with it."""

    def __init__(self) -> None:
        self.lines: list[_Line] = []
        # asyncio closes open async generators when a loop shuts down: the one hook it offers.
        self.watch: AsyncIterator[None] | None = self._until_loop_ends()

    async def _until_loop_ends(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.watch = None  # it refers to the loop, which would otherwise live on with us
            self.close()
            await asyncio.sleep(0)  # lets the transports close before the loop does

    def close(self) -> None:
        while self.lines:
            self.lines.pop().close()


@dataclass(eq=False)
class Wire:
    """POSTs to paths under `base_url`, over connections that are kept and reused."""

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
        self._head = "\r\n".join(lines)
        if not self._head.isascii() or len(self._head.splitlines()) != len(lines):
            raise ConfigError(
                f"the API key or base URL for {self.base_url} holds a line break or a letter "
                "outside ASCII: copy it again."
            )
        self._context: ssl.SSLContext | None = None
        self._idle: WeakKeyDictionary[asyncio.AbstractEventLoop, _Idle] = WeakKeyDictionary()

    async def post(self, path: str, body: bytes) -> tuple[Answer, bytes]:
        """Send `body`, wait for the whole answer."""
        line, answer = await self._ask(self._message(path, body))
        spent = False
        try:
            with self._named("while reading its answer"):
                bounds = (self.max_body, self.read_timeout)
                whole = await read_short(line.reader, answer, *bounds)
                if whole is None:
                    parts = [part async for part in read_body(line.reader, answer, *bounds)]
                    whole = b"".join(parts)
            spent = True
        finally:
            await self._leave(line, spent and answer.keeps_line())
        return answer, whole

    async def exchange(self, path: str, body: bytes) -> AsyncGenerator[Answer | bytes, None]:
        """Yield the answer's head, then its body in blocks as they come."""
        line, answer = await self._ask(self._message(path, body))
        spent = False
        try:
            yield answer
            with self._named("while reading its answer"):
                async for block in read_body(line.reader, answer, self.max_body, self.read_timeout):
                    yield block
            spent = True
        finally:
            await self._leave(line, spent and answer.keeps_line())

    def _message(self, path: str, body: bytes) -> bytes:
        head = (
            f"POST {self._path}{path}{self._query} HTTP/1.1\r\n{self._head}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("ascii") + body

    async def _leave(self, line: _Line, good: bool) -> None:
        """Keep a line that can be used again, and hang up on any other."""
        if good:
            await self._keep(line)
        else:
            line.close()

    def close(self) -> None:
        """Close the connections that are not in use."""
        for idle in self._idle.values():
            idle.close()

    async def _ask(self, message: bytes) -> tuple[_Line, Answer]:
        """Send on a kept line; a line the server gave up in the meantime is replaced once."""
        line = self._kept() or await self._dial()
        done = False
        try:
            with self._named("before it answered"):
                try:
                    answer = await self._send(line, message)
                except (ConnectionError, asyncio.IncompleteReadError) as gone:
                    begun = isinstance(gone, asyncio.IncompleteReadError) and gone.partial
                    if begun or not line.used:
                        raise
                    line.close()
                    line = await self._dial()
                    answer = await self._send(line, message)
            done = True
            return line, answer
        finally:
            if not done:
                line.close()

    async def _send(self, line: _Line, message: bytes) -> Answer:
        line.writer.write(message)
        async with asyncio.timeout(self.read_timeout):
            return await read_head(line.reader)

    def _kept(self) -> _Line | None:
        idle = self._idle.get(asyncio.get_running_loop())
        while idle is not None and idle.lines:
            line = idle.lines.pop()
            if line.usable():
                return line
            line.close()
        return None

    async def _keep(self, line: _Line) -> None:
        loop = asyncio.get_running_loop()
        idle = self._idle.get(loop)
        if idle is None:
            idle = self._idle[loop] = _Idle()
            if idle.watch is not None:
                await anext(idle.watch)
        line.used = True
        if len(idle.lines) < IDLE_LINES and line.usable():
            idle.lines.append(line)
        else:
            line.close()

    async def _dial(self) -> _Line:
        context = self._verify() if self._tls else None
        with self._named("while connecting"):
            async with asyncio.timeout(self.connect_timeout):
                reader, writer = await asyncio.open_connection(
                    self._host, self._port, ssl=context, limit=MAX_HEAD
                )
        return _Line(reader, writer)

    def _verify(self) -> ssl.SSLContext:
        if self._context is None:
            try:
                self._context = ssl.create_default_context(cafile=self.ca_file or None)
            except OSError as error:
                raise ConfigError(f"ca_file {self.ca_file!r} cannot be read: {error}.") from error
            if not self.ca_file and not self._context.cert_store_stats()["x509_ca"]:
                import httpx  # carries a list of authorities for systems that have none

                self._context = httpx.create_ssl_context()
        return self._context

    def _named(self, when: str) -> "_Named":
        return _Named(self.base_url, when)


@dataclass(slots=True)
class _Named:
    """Turns what the network raises into one sentence that names the endpoint."""

    base_url: str
    when: str

    def __enter__(self) -> None:
        """Begin watching."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Translate, where it is a failure of the network."""
        what, passing = self._say(error)
        if what:
            raise EndpointError(
                f"{self.base_url} {what}.", transient=passing, absent=self._absent(error)
            ) from error

    def _absent(self, error: BaseException | None) -> bool:
        """Whether this machine itself says that nothing listens there, at every address."""
        if not isinstance(error, OSError) or urlsplit(self.base_url).hostname not in HERE:
            return False
        # Of several addresses asyncio tells in words alone.
        refused = f"[Errno {errno.ECONNREFUSED}]"
        return isinstance(error, ConnectionRefusedError) or (
            0 < str(error).count("[Errno ") == str(error).count(refused)
        )

    def _say(self, error: BaseException | None) -> tuple[str, bool]:
        """Find the words, and whether it may pass."""
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
