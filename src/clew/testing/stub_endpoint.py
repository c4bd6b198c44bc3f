"""An OpenAI-compatible stub HTTP server for tests and benchmarks, with fault injection.

    async with StubEndpoint(latency=0.05, faults=[DROP, None, Fault(429)]) as stub:
        chat = OpenAIChat("stub", base_url=stub.base_url)

In its own process, so that a benchmark measures the client alone:

    python -m clew.testing.stub_endpoint --port 8099 --latency-ms 50 --refuse schema=500

`GET /stats` returns its call counters.
"""

import argparse
import asyncio
import importlib
import json
import ssl
import sys
import time
from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from clew.testing.stub_responses import (
    HUGE_BYTES,
    Fault,
    hash_vector,
    json_mode,
    make_completion,
    parse_fault,
    request_schema,
    response_head,
    to_events,
    write_plain_reply,
    write_schema_reply,
)

Messages = Sequence[Mapping[str, Any]]
to_base64 = partial(b2a_base64, newline=False)
ReplyFunction = Callable[[Messages], str | None]
"""Maps messages to a reply; None falls back to the default reply."""


@dataclass(slots=True)
class StubStats:
    """Counters and request bodies of the stub."""

    chat_calls: int = 0
    embed_calls: int = 0
    texts_embedded: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    connections: int = 0
    paced: list[float] = field(default_factory=list)
    """When (by `time.time`) the events of the latest paced stream were sent."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@dataclass(eq=False)
class StubEndpoint:
    """The server; `reply` maps messages to text, by default names and facts found in them."""

    reply: ReplyFunction | None = None
    latency: float = 0.0
    pace: float = 0.0
    """Seconds between two events of a stream; without it they are sent at once."""
    faults: Sequence[Fault | None] | Callable[[int], Fault | None] = ()
    """The fault of the n-th chat call; None answers it."""
    refuse: Mapping[str, int] = field(default_factory=dict)
    """JSON modes (`schema`, `tool`, `json`) to refuse, with the HTTP status."""
    dim: int = 384
    tls: ssl.SSLContext | None = None
    keep_bodies: int = 1000
    embed: Callable[[Sequence[str]], Any] | None = None
    """Maps texts to vectors; by default words are hashed."""
    stats: StubStats = field(default_factory=StubStats, init=False)
    base_url: str = field(default="", init=False)
    _server: asyncio.Server | None = field(default=None, init=False)
    _connections: set["_Connection"] = field(default_factory=set, init=False)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Start listening; port 0 takes a free port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), host, port, ssl=self.tls, backlog=1024
        )
        port = self._server.sockets[0].getsockname()[1]
        self.base_url = f"{'https' if self.tls else 'http'}://{host}:{port}/v1"

    async def stop(self) -> None:
        """Close every connection and stop listening."""
        if self._server is not None:
            self._server.close()
            for connection in tuple(self._connections):
                connection.abort()
            await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        """Start on a free port."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        await self.stop()

    def fault_for(self, body: Mapping[str, Any], number: int) -> Fault | None:
        """Return the fault of the `number`-th chat call, if any."""
        mode = json_mode(body)
        if mode in self.refuse:
            return Fault(self.refuse[mode], message=f"{mode} is not supported here")
        if callable(self.faults):
            return self.faults(number)
        return self.faults[number] if number < len(self.faults) else None

    def text_for(self, body: Mapping[str, Any]) -> str:
        """Return the reply text of a chat call."""
        messages = body.get("messages") or []
        reply = self.reply(messages) if self.reply is not None else None
        if reply is not None:
            return reply
        schema = request_schema(body)
        return write_schema_reply(messages, schema) if schema else write_plain_reply(messages)

    def vectors_for(self, body: Mapping[str, Any]) -> bytes:
        """Build the response of an embeddings call; base64 vectors skip the JSON encoder."""
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.stats.embed_calls += 1
        self.stats.texts_embedded += len(texts)
        dim = int(body.get("dimensions") or self.dim)
        vectors = self.embed(texts) if self.embed else [hash_vector(str(one), dim) for one in texts]
        packed = body.get("encoding_format") == "base64"
        rows = [
            b'{"object": "embedding", "index": %d, "embedding": %s}'
            % (
                index,
                b'"%s"' % to_base64(vector) if packed else json.dumps(vector.tolist()).encode(),
            )
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": sum(map(len, texts)) // 4, "total_tokens": 0}
        more = json.dumps({"object": "list", "model": body.get("model"), "usage": usage}).encode()
        return b'{"data": [%s], %s' % (b", ".join(rows), more[1:])


class _Connection(asyncio.Protocol):
    """One keep-alive client connection."""

    def __init__(self, stub: StubEndpoint) -> None:
        self.stub = stub
        self.buffer = bytearray()
        self.transport: asyncio.Transport | None = None
        self.task: asyncio.Task[None] | None = None
        self.buffered: list[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.stub.stats.connections += 1
        self.stub._connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self.stub._connections.discard(self)
        if self.task is not None:
            self.task.cancel()

    def abort(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    def send(self, payload: bytes) -> None:
        """Write a payload, unless the client has disconnected."""
        if self.buffered is not None:
            self.buffered.append(payload)
        elif self.transport is not None and not self.transport.is_closing():
            self.transport.write(payload)

    def data_received(self, received: bytes) -> None:
        self.buffer += received
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        lines = self.buffer[:end].decode("latin-1").split("\r\n")
        headers = {
            key.strip().lower(): value.strip()
            for key, _, value in (line.partition(":") for line in lines[1:])
        }
        size = int(headers.get("content-length", 0))
        if len(self.buffer) < end + 4 + size:
            return
        raw = bytes(self.buffer[end + 4 : end + 4 + size])
        del self.buffer[: end + 4 + size]
        self.handle_request(lines[0].split(" ")[1].partition("?")[0], headers, raw)

    def handle_request(self, path: str, headers: dict[str, str], raw: bytes) -> None:
        """Route a request; without latency it is answered at once, to keep the stub cheap."""
        stub, stats = self.stub, self.stub.stats
        if path.endswith("/stats"):
            return self.send_json({**_counters(stats)})
        if path.endswith("/models"):
            return self.send_json({"object": "list", "data": [{"id": "stub", "object": "model"}]})
        if not path.endswith(("/embeddings", "/chat/completions")):
            return self.send_json({"error": {"message": f"no such path: {path}"}}, 404)
        body = json.loads(raw) if raw else {}
        if len(stats.bodies) < stub.keep_bodies:
            stats.bodies.append(body)
            stats.headers.append(headers)
        fault = None
        if path.endswith("/embeddings"):
            answer: Callable[[], None] = lambda: self.send_raw(stub.vectors_for(body))  # noqa: E731
        else:
            number, stats.chat_calls = stats.chat_calls, stats.chat_calls + 1
            fault = stub.fault_for(body, number)
            answer = lambda: self.answer_chat(body, fault)  # noqa: E731
        if not stub.latency:
            return answer()
        if fault is not None:
            self.task = asyncio.get_running_loop().create_task(self.sleep_then_answer(answer))
            return None
        return self.answer_after_latency(answer)

    def answer_after_latency(self, answer: Callable[[], None]) -> None:
        """Answer after the latency, which includes the time to compute the answer."""
        loop, stats = asyncio.get_running_loop(), self.stub.stats
        due = loop.time() + self.stub.latency
        stats.in_flight += 1
        stats.most_in_flight = max(stats.most_in_flight, stats.in_flight)
        self.buffered = []
        answer()
        payload, self.buffered = b"".join(self.buffered), None
        loop.call_at(due, self.send_delayed, payload)

    def send_delayed(self, payload: bytes) -> None:
        """Send a delayed payload."""
        self.stub.stats.in_flight -= 1
        self.send(payload)

    async def sleep_then_answer(self, answer: Callable[[], None]) -> None:
        """Sleep for the latency, then answer; counts requests in flight."""
        stats = self.stub.stats
        stats.in_flight += 1
        stats.most_in_flight = max(stats.most_in_flight, stats.in_flight)
        try:
            await asyncio.sleep(self.stub.latency)
        finally:
            stats.in_flight -= 1
        answer()

    def send_json(self, value: Mapping[str, Any], status: int = 200, more: str = "") -> None:
        """Send a JSON response."""
        self.send_raw(json.dumps(value).encode(), status, more)

    def send_raw(self, raw: bytes, status: int = 200, more: str = "") -> None:
        """Send a response whose body is already encoded."""
        self.send(response_head(status, len(raw), more) + raw)

    def answer_chat(self, body: Mapping[str, Any], fault: Fault | None) -> None:
        """Answer a chat call, or apply its fault."""
        if fault is not None and not self.apply_fault(body, fault):
            return
        whole = make_completion(body, self.stub.text_for(body))
        if not body.get("stream"):
            return self.send_json(whole)
        wants = bool((body.get("stream_options") or {}).get("include_usage"))
        chunks = [
            f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in to_events(whole, wants)
        ]
        if self.stub.pace:
            self.task = asyncio.get_running_loop().create_task(self.send_slowly(chunks))
            return None
        return self.send(response_head(200, None) + b"".join(chunks) + b"0\r\n\r\n")

    async def send_slowly(self, chunks: Sequence[bytes]) -> None:
        """Send the events of a stream one after the other."""
        self.stub.stats.paced = []
        self.send(response_head(200, None))
        for chunk in chunks:
            self.stub.stats.paced.append(time.time())
            self.send(chunk)
            await asyncio.sleep(self.stub.pace)
        self.send(b"0\r\n\r\n")

    def apply_fault(self, body: Mapping[str, Any], fault: Fault) -> bool:
        """Apply a fault; return whether the call is answered normally."""
        if fault.kind == "drop":
            self.abort()
        elif fault.kind == "huge":
            self.send_json(make_completion({}, "la " * (HUGE_BYTES // 3)))
        elif fault.kind == "garbage":
            raw = json.dumps(make_completion(body, '{"entities": ["caf@@"]}')).encode()
            raw = raw.replace(b"@@", b"\xff\xfe\xe9")
            self.send(response_head(200, len(raw)) + raw)
        elif fault.kind == "cut":
            self.send(response_head(200, 500) + b'{"choices": [')
            assert self.transport is not None
            self.transport.close()
        elif fault.kind == "answer" and fault.status != 200:
            more = f"Retry-After: {fault.retry_after}\r\n" if fault.retry_after else ""
            error = {"message": fault.message, "param": fault.param or None}
            self.send_json({"error": error}, fault.status, more)
        return fault.kind == "answer" and fault.status == 200


def _counters(stats: StubStats) -> dict[str, int]:
    names = [name for name in StubStats.__slots__ if name not in ("bodies", "headers", "paced")]
    return {name: getattr(stats, name) for name in names}


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m clew.testing.stub_endpoint")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--refuse", default="", help="e.g. schema=500,tool=400")
    parser.add_argument("--faults", default="", help="repeated for ever, e.g. ok,drop,429+1")
    parser.add_argument("--reply", default="", help="module:function from messages to text")
    return parser.parse_args(words)


async def serve(given: argparse.Namespace) -> None:
    """Serve until killed; the first line on stdout is the base URL."""
    cycle = [parse_fault(word) for word in given.faults.split(",") if word]
    refuse = dict(pair.split("=") for pair in given.refuse.split(",") if pair)
    module, _, function = given.reply.partition(":")
    stub = StubEndpoint(
        getattr(importlib.import_module(module), function) if module else None,
        latency=given.latency_ms / 1000,
        faults=lambda number: cycle[number % len(cycle)] if cycle else None,
        refuse={mode: int(status) for mode, status in refuse.items()},
        keep_bodies=0,
    )
    await stub.start(port=given.port)
    sys.stdout.write(stub.base_url + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner() as runner:
        runner.run(serve(parse_arguments(sys.argv[1:])))
