"""HTTP/1.1 client for one endpoint: keep-alive connections, streaming, TLS and proxies.

Our own, because general clients take up to 3 ms of CPU time per call and this one 0.15 ms
(docs/decisions/0011-http-client.md). Redirects are not followed: a key must not reach another host.
Heads, bodies and waiting times are bounded, and every failure is an `EndpointError`.
"""

import asyncio
import errno
import importlib
import ssl
import weakref
from asyncio import StreamReader
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit
from weakref import WeakKeyDictionary

from clew.errors import ConfigError
from clew.llm.chat import EndpointError
from clew.llm.http_response import (
    MAX_HEADER_BYTES,
    ResponseHead,
    read_body,
    read_head,
    read_short_body,
)
from clew.llm.secrets import SecretFilter, make_filter

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
MAX_IDLE_CONNECTIONS = 64


def auth_headers(api_key: str) -> dict[str, str]:
    """The headers that every request to an endpoint carries."""
    auth = {"Authorization": f"Bearer {api_key.strip()}"} if api_key else {}
    return {"Accept": "*/*", "User-Agent": "clew", **auth}


def find_proxy(base_url: str) -> SplitResult | None:
    """The proxy the environment sets for this address, unless NO_PROXY excludes it."""
    parts = urlsplit(base_url)
    if parts.hostname in LOCAL_HOSTS:
        return None
    from urllib.request import getproxies, proxy_bypass  # slow to import

    proxies = getproxies()
    url = proxies.get(parts.scheme) or proxies.get("all")
    if not url or proxy_bypass(parts.hostname or ""):
        return None
    proxy = urlsplit(url if "://" in url else f"http://{url}")
    if proxy.scheme not in ("http", "https") or not proxy.hostname:
        raise ConfigError(
            f"the {proxy.scheme} proxy set in the environment for {base_url} is not supported: set "
            f"{parts.scheme.upper()}_PROXY to http://host:port, or add the host to NO_PROXY."
        )
    return proxy


def _proxy_auth(proxy: SplitResult) -> str:
    """The header line with the proxy's user and password, or ""."""
    if proxy.username is None:
        return ""
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return f"Proxy-Authorization: Basic {b64encode(pair.encode()).decode()}\r\n"


@dataclass(eq=False, slots=True)
class _Connection:
    reader: StreamReader
    writer: asyncio.StreamWriter
    used: bool = False

    def is_usable(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())

    def close(self) -> None:
        self.writer.transport.abort()  # there is nothing left to flush


class _IdlePool:
    """The idle connections of one event loop, closed when the loop shuts down."""

    def __init__(self) -> None:
        self.connections: list[_Connection] = []
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


def _close_pools(pools: "WeakKeyDictionary[asyncio.AbstractEventLoop, _IdlePool]") -> None:
    """Close the connections of a client that nobody uses any more, each in its own loop."""
    for loop, idle in list(pools.items()):
        if not loop.is_closed():
            loop.call_soon_threadsafe(idle.close)


@dataclass(eq=False)
class HttpClient:
    """Sends requests to paths under `base_url`; safe to share between tasks and event loops."""

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
                f"base_url {self.base_url!r} is not the address of an endpoint: write it as "
                "http://host:port/v1."
            )
        self._tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = port or (443 if self._tls else 80)
        self._path = parts.path.rstrip("/")
        self._query = f"?{parts.query}" if parts.query else ""
        given = {"Accept-Encoding": "gzip", "Content-Type": "application/json", **self.headers}
        lines = [f"{name}: {value}\r\n" for name, value in {"Host": parts.netloc, **given}.items()]
        self._header_block = "".join(lines)
        if not self._header_block.isascii() or len(self._header_block.splitlines()) != len(lines):
            raise ConfigError(
                f"the API key or base URL for {self.base_url} contains a line break or a character "
                "outside ASCII: copy it again."
            )
        self._proxy = find_proxy(self.base_url)
        if self._proxy and not self._tls:  # a plain proxy needs the whole address
            self._path = f"http://{parts.netloc}{self._path}"
            self._header_block += _proxy_auth(self._proxy)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        password = unquote((self._proxy and self._proxy.password) or "")
        self.filter = make_filter([token, password])
        self._tls_context: ssl.SSLContext | None = None
        self._idle: WeakKeyDictionary[asyncio.AbstractEventLoop, _IdlePool] = WeakKeyDictionary()
        # A client may be dropped while its loop goes on; at exit the loop closes them.
        weakref.finalize(self, _close_pools, self._idle).atexit = False

    async def get(self, path: str) -> tuple[ResponseHead, bytes]:
        """Request `path` and return the whole response."""
        return await self._request("GET", path, b"")

    async def post(self, path: str, body: bytes) -> tuple[ResponseHead, bytes]:
        """Send `body` and return the whole response."""
        return await self._request("POST", path, body)

    async def post_for_numbers(self, path: str, body: bytes) -> tuple[ResponseHead, bytes]:
        """Like `post`, but numbers are not searched for secrets: who quotes them has to."""
        return await self._request("POST", path, body, numbers=True)

    async def _request(
        self, method: str, path: str, body: bytes, *, numbers: bool = False
    ) -> tuple[ResponseHead, bytes]:
        conn, head = await self._send(method, path, body)
        complete = False
        try:
            with self._translate_errors("while sending its response"):
                bounds = (self.max_body, self.read_timeout)
                content = await read_short_body(conn.reader, head, *bounds)
                if content is None:
                    parts = [part async for part in read_body(conn.reader, head, *bounds)]
                    content = b"".join(parts)
            complete = True
        finally:
            await self._release(conn, complete and head.is_keep_alive())
        asked = numbers and head.status == 200
        return head, content if asked else self.filter.scrub(content)

    async def stream(self, path: str, body: bytes) -> AsyncGenerator[ResponseHead | bytes, None]:
        """Send `body` and yield the response head, then its body in blocks as they arrive."""
        conn, head = await self._send("POST", path, body)
        complete = False
        try:
            yield head
            held = b""
            with self._translate_errors("while sending its response"):
                async for block in read_body(conn.reader, head, self.max_body, self.read_timeout):
                    block, held = self.filter.split_held(held + block)
                    if block:
                        yield block
            if held:
                yield self.filter.scrub(held)
            complete = True
        finally:
            await self._release(conn, complete and head.is_keep_alive())

    def close(self) -> None:
        """Close idle connections now; otherwise they close with their event loop."""
        for idle in self._idle.values():
            idle.close()

    async def _send(self, method: str, path: str, body: bytes) -> tuple[_Connection, ResponseHead]:
        """Send on a pooled connection; one the server closed meanwhile is replaced once."""
        length = f"Content-Length: {len(body)}\r\n" if method == "POST" else ""
        start = f"{method} {self._path}{path}{self._query} HTTP/1.1\r\n"
        message = f"{start}{self._header_block}{length}\r\n".encode("ascii") + body
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
            headers = {name: self.filter.scrub_text(text) for name, text in head.headers.items()}
            return conn, ResponseHead(head.status, headers)
        finally:
            if not done:
                conn.close()

    async def _exchange(self, conn: _Connection, message: bytes) -> ResponseHead:
        conn.writer.write(message)
        async with asyncio.timeout(self.read_timeout):
            return await read_head(conn.reader)

    def _take_idle(self) -> _Connection | None:
        idle = self._idle.get(asyncio.get_running_loop())
        while idle is not None and idle.connections:
            conn = idle.connections.pop()
            if conn.is_usable():
                return conn
            conn.close()
        return None

    async def _release(self, conn: _Connection, reusable: bool) -> None:
        """Return a reusable connection to the pool, or close it."""
        if not reusable:
            conn.close()
            return
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

    async def _connect(self) -> _Connection:
        context = self._load_tls_context() if self._tls else None
        with self._translate_errors("while connecting"):
            async with asyncio.timeout(self.connect_timeout):
                if self._proxy:
                    return await self._connect_by_proxy(self._proxy, context)
                reader, writer = await asyncio.open_connection(
                    self._host, self._port, ssl=context, limit=MAX_HEADER_BYTES
                )
        return _Connection(reader, writer)

    async def _connect_by_proxy(
        self, proxy: SplitResult, context: ssl.SSLContext | None
    ) -> _Connection:
        """Connect to the proxy; for https, open a tunnel through it."""
        secure = proxy.scheme == "https"
        reader, writer = await asyncio.open_connection(
            proxy.hostname,
            proxy.port or (443 if secure else 80),
            ssl=self._load_tls_context() if secure else None,
            limit=MAX_HEADER_BYTES,
        )
        conn = _Connection(reader, writer)
        if context is None:
            return conn
        host = f"[{self._host}]" if ":" in self._host else self._host
        target = f"{host}:{self._port}"
        tunnel = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{_proxy_auth(proxy)}\r\n"
        done = False
        try:
            writer.write(tunnel.encode("ascii"))
            head = await read_head(reader)
            if head.status != 200:
                raise EndpointError(
                    f"the proxy {proxy.hostname} refused the connection to {target} (HTTP "
                    f"{head.status}): check HTTPS_PROXY and NO_PROXY.",
                    transient=head.status >= 500,
                )
            await writer.start_tls(context, server_hostname=self._host)
            done = True
        finally:
            if not done:
                conn.close()
        return conn

    def _load_tls_context(self) -> ssl.SSLContext:
        if self._tls_context is None:
            try:
                context = ssl.create_default_context(cafile=self.ca_file or None)
            except OSError as error:
                raise ConfigError(f"ca_file {self.ca_file!r} cannot be read: {error}.") from error
            if not self.ca_file and not context.cert_store_stats()["x509_ca"]:
                context = ssl.create_default_context(cafile=_bundled_authorities())
            self._tls_context = context
        return self._tls_context

    def _translate_errors(self, when: str) -> "_ErrorTranslator":
        return _ErrorTranslator(self.base_url, self._proxy, when, self.filter)


def _bundled_authorities() -> str:
    try:
        path: str = importlib.import_module("certifi").where()
    except ImportError as error:
        raise ConfigError(
            "this system has no CA certificates: install them (package ca-certificates, or "
            "`pip install certifi`), or set ca_file to a PEM file."
        ) from error
    return path


@dataclass(slots=True)
class _ErrorTranslator:
    """Context manager that turns network exceptions into an `EndpointError` naming the endpoint."""

    base_url: str
    proxy: SplitResult | None
    when: str
    filter: SecretFilter

    def __enter__(self) -> None:
        """Enter the context."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Translate network errors."""
        message, transient = self._describe(error)
        if message:
            raise EndpointError(
                f"{self.base_url} {message}.",
                transient=transient,
                not_listening=self._is_not_listening(error),
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
                return f"timed out {self.when}; a longer timeout may help", True
            case ssl.SSLCertVerificationError():
                return (
                    f"has a certificate that cannot be verified ({error.verify_message}); if the "
                    "server is yours, set ca_file to the PEM file of its authority",
                    False,
                )
            case ssl.SSLError():
                return f"failed the TLS handshake ({error.reason}); try http://", False
            case asyncio.IncompleteReadError() | ConnectionResetError() | BrokenPipeError():
                return f"closed the connection {self.when}", True
            case asyncio.LimitOverrunError() | ValueError():
                reason = self.filter.scrub_text(str(error))
                return f"sent an invalid HTTP/1.1 response: {reason}", False
            case OSError():
                reason = error.strerror or str(error) or type(error).__name__
                way = f" through the proxy {self.proxy.hostname}" if self.proxy else ""
                return (
                    f"cannot be reached{way} ({reason}); check the address",
                    True,
                )
        return "", False
