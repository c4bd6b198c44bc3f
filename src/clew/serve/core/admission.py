"""What happens to a request before its body is read, as one ASGI middleware.

In order: Host and Origin are checked, the key is identified, its rate and the server's queue are
looked at, the size of the body is checked. Only then does the request reach a route.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.config import ServeSettings
from clew.serve.core.keys import Key
from clew.serve.core.problems import Problem, describe_error, route_path
from clew.serve.core.server import Server, tell_stopping

EVERY_HOST = "*"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OPEN_PATHS = frozenset({"/health", "/ready"})
_UPLOAD_ENDING = "/documents"
_STREAM_TYPES = ("text/event-stream", "application/x-ndjson")
_MAY_STREAM = ("/events", "/ask", "/chat/completions", "/responses", "/api/chat", "/mcp")
# Routes that change nothing, so that they may be cancelled half-way.
_ONLY_READ = (
    *("/search", "/ask", "/chat/completions", "/responses", "/api/chat", "/embeddings"),
    *("/export", "/overview", "/schema", "/reading", "/paths", "/tree", "/show"),
)
_CLIENT_GONE = 499
_UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
}
_MAX_HEADER_BYTES = 32_768
_MAX_DIGITS = 18
_NO_RATE_WAIT = 3600.0  # seconds that a key without any requests is told to wait
_MAX_BUCKETS = 10_000  # keys whose rate is remembered


def known_hosts(settings: ServeSettings) -> set[str]:
    """Return the names by which the server may be called."""
    return {*_LOOPBACK, settings.host, *settings.hosts}


def check_host(headers: Headers, hosts: set[str]) -> None:
    """Refuse unknown names: a page could make a browser call this server by its own name."""
    sent = headers.getlist("host")
    address = _split(f"//{sent[0]}") if len(sent) == 1 else None
    if address is None or address.netloc != sent[0] or "@" in sent[0]:
        raise Problem(421, "the Host header is missing, repeated or not a host name")
    host = address.hostname or ""
    if not hosts & {host, f"[{host}]", EVERY_HOST}:
        raise Problem(421, "unknown host name; add it to hosts under [serve] in clew.toml")


@dataclass
class RateLimiter:
    """A token bucket for each key."""

    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def take(self, key: str, per_minute: float) -> float:
        """Take one token; return 0, or the seconds until there is one."""
        if per_minute <= 0:
            return _NO_RATE_WAIT
        now, rate = time.monotonic(), per_minute / 60
        most = max(1.0, per_minute / 6)  # ten seconds' worth may come at once
        tokens, before = self._buckets.get(key, (most, now))
        tokens = min(most, tokens + (now - before) * rate)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.clear()
        if tokens < 1:
            self._buckets[key] = (tokens, now)
            return (1 - tokens) / rate
        self._buckets[key] = (tokens - 1, now)
        return 0.0


class Admission:
    """Lets requests in, or answers them at once."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server
        self._settings: ServeSettings = server.settings.serve
        self._rates = RateLimiter()
        self._hosts = known_hosts(self._settings)
        self._in_work = 0
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit a request, count it and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visit = _Visit(self._server, scope, send)
        try:
            self._admit(scope, visit.path)
        except Problem as problem:
            reason = str(problem.status_code)
            self._server.metrics.add("clew_refused_total", status=reason)
            reply = describe_error(problem).to_response(visit.path)
            await reply(scope, receive, visit.send)
            visit.finish()
            return
        if visit.method == "OPTIONS":  # a browser asks whether its page may call
            await Response(status_code=204)(scope, receive, visit.send)
            visit.finish()
            return
        self._count(visit, 1)
        visit.on_stream = self._move_to_streams
        body = _LimitedBody(
            receive, self._limit_for(visit.path, visit.method), self._settings.body_seconds
        )
        try:
            if visit.path.endswith(_ONLY_READ):
                if visit.method == "GET":
                    body.expect_none()
                await self._run_until_gone(visit, scope, body)
            else:
                await self._app(scope, body.receive, visit.send)
        except asyncio.CancelledError:
            if not self._server.is_cut:
                raise
            if not visit.is_begun:
                reply = describe_error(tell_stopping()).to_response(visit.path)
                await reply(scope, receive, visit.send)
        finally:
            self._count(visit, -1)
            visit.finish()

    async def _run_until_gone(self, visit: "_Visit", scope: Scope, body: "_LimitedBody") -> None:
        """Answer a question; cancel it when nobody waits for the answer any more."""
        work = asyncio.ensure_future(self._app(scope, body.receive, visit.send))
        watch = asyncio.ensure_future(body.wait_for_disconnection())
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if visit.is_answered:  # what is left to do is to clean up
                await asyncio.wait({work})
        finally:
            watch.cancel()
            if work.cancel():
                visit.status = _CLIENT_GONE
                await asyncio.wait({work})
        if not work.cancelled():
            await work

    def _admit(self, scope: Scope, path: str) -> None:
        headers = Headers(scope=scope)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _MAX_HEADER_BYTES:
            raise Problem(431, "the headers are too large")
        if path in _OPEN_PATHS:
            return
        check_host(headers, self._hosts)
        self._check_origin(headers)
        if scope["method"] == "OPTIONS":
            return
        key = self._server.identify(_read_token(headers))
        scope.setdefault("state", {})["key"] = key
        self._check_rate(key)
        self._check_queue(path)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > _MAX_DIGITS:
            raise Problem(400, "Content-Length is not a number")
        if int(length) > self._limit_for(path, scope["method"]):
            raise Problem(413, "the body is too large")

    def _check_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is None or origin in self._settings.origins:
            return
        own = _split(origin)
        if own and own.scheme in ("http", "https") and own.netloc == headers.get("host"):
            return
        raise Problem(403, "this origin may not call; add it to origins under [serve]")

    def _check_rate(self, key: Key) -> None:
        own = key.limits.requests_per_minute
        wait = self._rates.take(key.id, self._settings.requests_per_minute if own is None else own)
        if wait:
            raise Problem(429, "too many requests with this key", retry_after=wait)

    def _check_queue(self, path: str) -> None:
        if path.endswith(_MAY_STREAM) and self._streams >= self._settings.streams:
            raise Problem(429, "too many open streams", retry_after=5)
        if self._in_work >= self._settings.queue:
            raise Problem(429, "the server is busy; try again", retry_after=1)

    def _limit_for(self, path: str, method: str) -> int:
        if method == "POST" and path.endswith(_UPLOAD_ENDING):
            return self._settings.upload_bytes
        return self._settings.body_bytes

    def _move_to_streams(self, visit: "_Visit") -> None:
        """Count an answer that has begun to stream as a stream: it may last for long."""
        self._count(visit, -1)
        visit.is_stream = True
        self._count(visit, 1)

    def _count(self, visit: "_Visit", amount: int) -> None:
        if visit.is_stream:
            self._streams += amount
            self._server.metrics.set("clew_streams", self._streams)
        elif visit.path not in _OPEN_PATHS:
            self._in_work += amount
            self._server.metrics.set("clew_in_work", self._in_work)


@dataclass
class _LimitedBody:
    """Receives a body up to a size and within a time, whatever its headers say."""

    inner: Receive
    most: int
    seconds: float
    _received: int = 0
    _deadline: float | None = None
    _done: asyncio.Event = field(default_factory=asyncio.Event)

    def expect_none(self) -> None:
        """Know that no route reads a body, so that a disconnection is noticed at once."""
        self._done.set()

    async def wait_for_disconnection(self) -> None:
        """Return once the body has arrived and the caller is gone."""
        await self._done.wait()
        while (await self.inner())["type"] != "http.disconnect":
            pass

    async def receive(self) -> Message:
        if self._done.is_set():  # only a disconnection can follow, after any time
            return await self.inner()
        now = asyncio.get_running_loop().time()
        if self._deadline is None:  # one for the whole body, however it is cut into pieces
            self._deadline = now + self.seconds
        try:
            message = await asyncio.wait_for(self.inner(), max(0.0, self._deadline - now))
        except TimeoutError as error:
            raise Problem(408, "the body did not arrive in time") from error
        self._received += len(message.get("body", b""))
        if self._received > self.most:
            raise Problem(413, "the body is too large")
        if not message.get("more_body", False):
            self._done.set()
        return message


class _Visit:
    """One request on its way: adds headers to its answer, and records it at the end."""

    def __init__(self, server: Server, scope: Scope, send: Send) -> None:
        self._server, self._scope, self._send = server, scope, send
        self.path: str = route_path(scope)
        self.method: str = scope["method"]
        self.id = secrets.token_hex(8)
        self.is_stream = False
        self.is_begun = False
        self.is_answered = False
        self.on_stream: Callable[[_Visit], None] | None = None
        self.status = 500
        self._began = time.perf_counter()
        scope.setdefault("state", {})["request"] = self.id

    async def send(self, message: Message) -> None:
        """Send a part of the answer; its head gets the security headers."""
        if message["type"] == "http.response.start":
            self.status, self.is_begun = message["status"], True
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.id
            if headers.get("content-type", "").startswith(_STREAM_TYPES) and self.on_stream:
                self.on_stream(self)
            for name, value in self._extra_headers():
                headers.setdefault(name, value)
        else:
            self.is_answered = not message.get("more_body", False)
        await self._send(message)

    def finish(self) -> None:
        """Count the request, and write it to the audit log."""
        route = self._scope.get("route")
        template = getattr(route, "path", "") or "other"
        self._server.metrics.add("clew_requests_total", route=template, status=str(self.status))
        self._server.metrics.observe(time.perf_counter() - self._began, route=template)
        key: Key | None = self._scope["state"].get("key")
        if key is None:
            if self.status >= 400 and self.path not in _OPEN_PATHS:
                self._server.records.note_refusal(self.method, self.path, self.status, self.id)
        elif self.method in _UNSAFE or self.status in (401, 403, 404):
            self._server.records.note_access(key, self.method, self.path, self.status, self.id)

    def _extra_headers(self) -> Iterable[tuple[str, str]]:
        yield from _SECURITY_HEADERS.items()
        origin = Headers(scope=self._scope).get("origin")
        if origin and origin in self._server.settings.serve.origins:
            yield "Access-Control-Allow-Origin", origin
            yield "Access-Control-Allow-Headers", "authorization, content-type, last-event-id"
            yield "Access-Control-Allow-Methods", "GET, POST, PUT, DELETE, OPTIONS"
            yield "Vary", "Origin"


def _split(address: str) -> SplitResult | None:
    """Return the parts of an address; None if it is not one."""
    try:
        return urlsplit(address)
    except ValueError:
        return None


def _read_token(headers: Headers) -> str | None:
    held: str | None = headers.get("authorization")
    if held is None:
        return None
    kind, _, token = held.partition(" ")
    if kind.lower() != "bearer":
        raise Problem(401, "send the key as `Authorization: Bearer KEY`")
    return token.strip()
