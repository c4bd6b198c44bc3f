"""Our HTTP client against aiohttp and httpx: calls, streams, faults, imports, install size.

`python -m bench.http_clients [--calls N] [--rounds N]`. Every client serves the same `OpenAIChat`,
so that only the client differs; `aiohttp, bare` shows what the library costs without our bounds and
error messages. The endpoint is the stub in a process of its own; the clients take turns, the median
of the rounds counts, and CPU time is what to trust. Needs `pip install aiohttp httpx`.
"""

import argparse
import asyncio
import gzip
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from bench.machine import load_library, print_result
from clew.errors import ClewError
from clew.llm.chat import EndpointError, Request, text_request
from clew.llm.http import HttpClient, find_proxy
from clew.llm.http_response import ResponseHead
from clew.llm.openai_chat import OpenAIChat
from clew.llm.prompt import fence
from clew.testing.stub_endpoint import StubEndpoint
from clew.testing.stub_responses import CUT, DROP, HANG, HUGE, Fault

SYSTEM = "Find the people, places and organisations in the text, and what it says of them. " * 30
PASSAGE = "Maria Silva founded the Alpha Institute in New Haven after she left Basel. " * 6
CONCURRENCY = (1, 32, 200)
MAX_HEADER_BYTES = 256 * 1024
SHORT = 64 * 1024


def words(_: object) -> str:
    """What the stub streams: some 170 events."""
    return "It is a long thread that leads out of the labyrinth; " * 20


@cache
def aiohttp() -> Any:
    """The library, loaded when it is needed."""
    return load_library("aiohttp")


@cache
def httpx() -> Any:
    """The library, loaded when it is needed."""
    return load_library("httpx")


# --- the libraries with the interface of `HttpClient` --------------------------------------------


@dataclass(eq=False)
class AiohttpClient:
    """What `HttpClient` does, by aiohttp: the same bounds, messages and pools per loop."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    connect_timeout: float = 10.0
    read_timeout: float = 300.0
    max_body: int = 32 * 1024 * 1024
    ca_file: str = ""

    def __post_init__(self) -> None:
        self._checked = HttpClient(self.base_url, self.headers)  # checks address and key
        self._given = {"Content-Type": "application/json", **self.headers}
        self._held: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    async def post(self, path: str, body: bytes) -> tuple[ResponseHead, bytes]:
        """Send `body`, wait for the whole answer."""
        session = await self._session()
        try:
            async with await self._send(session, path, body) as answer:
                short = (answer.content_length or self.max_body) < min(SHORT, self.max_body)
                if short and "Content-Encoding" not in answer.headers:
                    whole = await answer.read()
                else:
                    whole = b"".join([block async for block in self._blocks(answer)])
                return ResponseHead(answer.status, _lower(answer)), whole
        except (aiohttp().ClientError, OSError, ValueError) as error:
            raise self._to_error(error) from error

    async def stream(self, path: str, body: bytes) -> AsyncIterator[ResponseHead | bytes]:
        """Yield the answer's head, then its body in blocks as they come."""
        session = await self._session()
        try:
            async with await self._send(session, path, body) as answer:
                yield ResponseHead(answer.status, _lower(answer))
                async for block in self._blocks(answer):
                    yield block
        except (aiohttp().ClientError, OSError, ValueError) as error:
            raise self._to_error(error) from error

    async def _blocks(self, answer: Any) -> AsyncIterator[bytes]:
        left = self.max_body
        async for block in answer.content.iter_any():
            left -= len(block)
            if left < 0:
                raise ValueError(f"its body is longer than {self.max_body:,} bytes")
            yield block

    async def _send(self, session: Any, path: str, body: bytes) -> Any:
        """A kept line that the server gave up is replaced once; aiohttp does so for GET alone."""
        for last in (False, True):
            used = SimpleNamespace(again=False)
            try:
                return await session.post(
                    self.base_url.rstrip("/") + path,
                    data=body,
                    allow_redirects=False,
                    trace_request_ctx=used,
                )
            except (aiohttp().ServerDisconnectedError, aiohttp().ClientOSError):
                if last or not used.again:
                    raise
        raise AssertionError

    async def _session(self) -> Any:
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None:
            trace = aiohttp().TraceConfig()
            trace.on_connection_reuseconn.append(_mark)
            secure = self._checked._tls
            self._checked.ca_file = self.ca_file
            session = aiohttp().ClientSession(
                headers=self._given,
                connector=aiohttp().TCPConnector(
                    limit=0, ssl=self._checked._load_tls_context() if secure else True
                ),
                timeout=aiohttp().ClientTimeout(
                    total=None, sock_connect=self.connect_timeout, sock_read=self.read_timeout
                ),
                trace_configs=[trace],
                proxy=proxy.geturl() if (proxy := find_proxy(self.base_url)) else None,
                max_line_size=MAX_HEADER_BYTES,
                max_field_size=MAX_HEADER_BYTES,
                cookie_jar=aiohttp().DummyCookieJar(),
            )
            watch = _until_loop_ends(session)
            await anext(watch)
            held = self._held[loop] = (session, watch)
        return held[0]

    def _to_error(self, error: BaseException) -> EndpointError:
        message, transient = _describe(error)
        return EndpointError(f"{self.base_url} {message}.", transient=transient)

    def close(self) -> None:
        """Sessions close with their loop."""


def _lower(answer: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


async def _mark(_: Any, context: Any, __: Any) -> None:
    context.trace_request_ctx.again = True


async def _until_loop_ends(session: Any) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await session.close()


def _describe(error: BaseException) -> tuple[str, bool]:
    library, text = aiohttp(), str(error)
    if isinstance(error, TimeoutError):
        return "timed out", True
    if isinstance(error, library.ClientConnectorCertificateError):
        return "has a certificate that cannot be verified; set ca_file", False
    if isinstance(error, library.ClientConnectorSSLError):
        return "failed the TLS handshake", False
    if isinstance(error, library.ClientConnectorError):
        return "cannot be reached; is it running?", True
    if isinstance(error, library.ClientPayloadError) and ("length" in text or "Transfer" in text):
        return "closed the connection while sending its response", True
    if isinstance(error, (library.ServerDisconnectedError, library.ClientOSError)):
        return "closed the connection", True
    return f"sent an invalid HTTP/1.1 response: {text[:200]}", False


@dataclass(eq=False)
class BareAiohttpClient(AiohttpClient):
    """aiohttp as its own documentation uses it: no bounds, no retry, no translation."""

    async def post(self, path: str, body: bytes) -> tuple[ResponseHead, bytes]:
        """Send and read."""
        session = await self._session()
        async with session.post(self.base_url + path, data=body) as answer:
            return ResponseHead(answer.status, answer.headers), await answer.read()

    async def stream(self, path: str, body: bytes) -> AsyncIterator[ResponseHead | bytes]:
        """Send and read by blocks."""
        session = await self._session()
        async with session.post(self.base_url + path, data=body) as answer:
            yield ResponseHead(answer.status, answer.headers)
            async for block in answer.content.iter_any():
                yield block

    async def _session(self) -> Any:
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            session = aiohttp().ClientSession(
                headers=self._given, connector=aiohttp().TCPConnector(limit=0)
            )
            watch = _until_loop_ends(session)
            await anext(watch)
            self._held[loop] = (session, watch)
        return self._held[loop][0]


@dataclass(eq=False)
class HttpxClient:
    """The same by httpx, as a client of ours would use it."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    connect_timeout: float = 10.0
    read_timeout: float = 300.0
    max_body: int = 32 * 1024 * 1024
    ca_file: str = ""

    def __post_init__(self) -> None:
        self._held: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    async def post(self, path: str, body: bytes) -> tuple[ResponseHead, bytes]:
        """Send `body`, wait for the whole answer."""
        parts = [part async for part in self.stream(path, body)]
        head = parts[0]
        assert isinstance(head, ResponseHead)
        return head, b"".join(part for part in parts[1:] if isinstance(part, bytes))

    async def stream(self, path: str, body: bytes) -> AsyncIterator[ResponseHead | bytes]:
        """Yield the answer's head, then its body in blocks as they come."""
        client = await self._client()
        try:
            async with client.stream("POST", path.lstrip("/"), content=body) as answer:
                named = {name.lower(): value for name, value in answer.headers.items()}
                yield ResponseHead(answer.status_code, named)
                left = self.max_body
                async for block in answer.aiter_bytes():
                    left -= len(block)
                    if left < 0:
                        raise ValueError(f"its body is longer than {self.max_body:,} bytes")
                    yield block
        except (httpx().HTTPError, OSError, ValueError) as error:
            transient = isinstance(error, (httpx().TransportError, OSError))
            message = f"{type(error).__name__} {str(error)[:200]}"
            raise EndpointError(f"{self.base_url} {message}.", transient=transient) from error

    async def _client(self) -> Any:
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            tls: Any = self.base_url.startswith("https:")
            if tls and self.ca_file:
                tls = ssl.create_default_context(cafile=self.ca_file)
            client = httpx().AsyncClient(
                base_url=self.base_url,
                headers={"Content-Type": "application/json", **self.headers},
                timeout=httpx().Timeout(self.read_timeout, connect=self.connect_timeout),
                limits=httpx().Limits(max_connections=None, max_keepalive_connections=None),
                verify=tls,
            )
            watch = _until_client_ends(client)
            await anext(watch)
            self._held[loop] = (client, watch)
        return self._held[loop][0]

    def close(self) -> None:
        """Clients close with their loop."""


async def _until_client_ends(client: Any) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await client.aclose()


CLIENTS: Mapping[str, Any] = {
    "ours": HttpClient,
    "aiohttp, bare": BareAiohttpClient,
    "aiohttp, our contract": AiohttpClient,
    "httpx": HttpxClient,
}


def client(name: str, url: str, **given: Any) -> OpenAIChat:
    """`OpenAIChat` over one of the clients."""
    chat = OpenAIChat("m", url, **given)
    ours = chat._http
    chat._http = CLIENTS[name](
        *(url, ours.headers, ours.connect_timeout, ours.read_timeout, ours.max_body, ours.ca_file)
    )
    return chat


# --- calls and streams --------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock and of CPU time of this process."""

    wall: float
    cpu: float


def question(number: int) -> Request:
    """The n-th request, 3 kB, no two alike."""
    return text_request(fence("text", f"{PASSAGE}Passage {number}."), SYSTEM)


async def measure(name: str, url: str, calls: int, in_flight: int, streamed: bool) -> Cost:
    """Make the calls, so many in flight, after one to warm up."""
    chat = client(name, url)
    on_text = [].append if streamed else None
    await chat(question(-1), on_text)
    numbers = iter(range(calls))

    async def worker() -> None:
        for number in numbers:
            await chat(question(number), on_text)

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[worker() for _ in range(in_flight)])
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


@contextmanager
def stub(*more: str) -> Iterator[str]:
    """Run the stub endpoint in its own process."""
    command = [sys.executable, "-m", "clew.testing.stub_endpoint", *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def measure_in_turns(given: argparse.Namespace, in_flight: int, streamed: bool) -> dict[str, Cost]:
    """Let the sides take turns, and give each its median."""
    costs: dict[str, list[Cost]] = {name: [] for name in CLIENTS}
    calls = given.calls // 4 if streamed else given.calls
    with stub(*(["--reply", "bench.http_clients:words"] if streamed else [])) as url:
        for _ in range(given.rounds):
            for name in CLIENTS:
                costs[name].append(asyncio.run(measure(name, url, calls, in_flight, streamed)))
    return {
        name: Cost(
            median(cost.wall for cost in all_) / calls, median(cost.cpu for cost in all_) / calls
        )
        for name, all_ in costs.items()
    }


# --- faults -------------------------------------------------------------------------------------


def answer(body: bytes, headers: str = "", status: str = "200 OK") -> bytes:
    """An answer as bytes."""
    return f"HTTP/1.1 {status}\r\n{headers}\r\n".encode() + body


GOOD = json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}).encode()
CHUNKED = "Transfer-Encoding: chunked\r\n"
RAW: Mapping[str, tuple[bytes, str]] = {
    "chunks with a trailer": (
        answer(f"{len(GOOD):x};n=1\r\n".encode() + GOOD + b"\r\n0\r\nT: x\r\n\r\n", CHUNKED),
        "hi",
    ),
    "gzip": (answer(gzip.compress(GOOD), "Content-Encoding: gzip\r\n"), "hi"),
    "body until the end": (answer(GOOD), "hi"),
    "100 Continue first": (b"HTTP/1.1 100 Continue\r\n\r\n" + answer(GOOD), "hi"),
    "not HTTP": (b"SSH-2.0-OpenSSH\r\n\r\n", "permanent"),
    "length -5": (answer(b"{}", "Content-Length: -5\r\n"), "permanent"),
    "chunk size zz": (answer(b"zz\r\n{}\r\n0\r\n\r\n", CHUNKED), "permanent"),
    "chunk of 17 TB": (answer(b"fffffffffff\r\n{}", CHUNKED), "permanent"),
    "gzip that is none": (answer(b"not gzip at all", "Content-Encoding: gzip\r\n"), "permanent"),
    "head of 300 kB": (answer(b"", "X: " + "y" * 300_000 + "\r\n"), "permanent"),
    "redirect": (answer(b"", "Location: http://a/\r\nContent-Length: 0\r\n", "302 F"), "permanent"),
    "gzip bomb of 50 MB": (
        answer(gzip.compress(b"[" * 50_000_000), "Content-Encoding: gzip\r\n"),
        "permanent",
    ),
}


async def outcome(chat: OpenAIChat, limit: float = 10.0) -> str:
    """What comes of a call: the text, `transient`, `permanent`, or what no caller expects."""
    try:
        async with asyncio.timeout(limit):
            return (await chat(text_request("q"))).text
    except EndpointError as error:
        return "transient" if error.transient else "permanent"
    except TimeoutError:
        return "hung"
    except (ClewError, Exception) as error:  # noqa: BLE001  (this is what is counted)
        return f"leaks {type(error).__name__}"


@asynccontextmanager
async def raw_server(raw: bytes, at_once: bool = False) -> AsyncIterator[str]:
    """A server that sends these bytes and hangs up."""

    async def serve(reader: Any, writer: Any) -> None:
        try:
            await (reader.read(10) if at_once else reader.readuntil(b"\r\n\r\n"))
            writer.write(raw)
            writer.close()
            await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def faults(name: str, folder: Path) -> dict[str, tuple[str, str]]:
    """Every case: what should come of it, and what does."""
    found: dict[str, tuple[str, str]] = {}
    for case, (raw, wanted) in RAW.items():
        async with raw_server(raw) as url:
            found[case] = (wanted, await outcome(client(name, url)))
    for case, fault, wanted, more in (
        ("dropped", DROP, "transient", {}),
        ("cut in mid-answer", CUT, "transient", {}),
        ("silence", HANG, "transient", {"read_timeout": 0.2}),
        ("503", Fault(503), "transient", {}),
        ("400", Fault(400), "permanent", {}),
        ("longer than the limit", HUGE, "permanent", {"max_body": 1_000_000}),
    ):
        async with StubEndpoint(faults=lambda _, fault=fault: fault) as one:
            found[case] = (wanted, await outcome(client(name, one.base_url, **more)))
    async with StubEndpoint(lambda _: "hi", faults=[None, DROP, None]) as one:
        chat = client(name, one.base_url)
        await outcome(chat)
        found["kept connection closed by the server"] = ("hi", await outcome(chat))
    async with StubEndpoint() as one:
        pass
    found["nothing listens"] = ("transient", await outcome(client(name, one.base_url)))
    found |= await secure(name, folder)
    found["proxy of the environment"] = await proxied(name)
    return found


async def secure(name: str, folder: Path) -> dict[str, tuple[str, str]]:
    """Certificates unknown and known, and TLS to a server without."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    found = {}
    async with StubEndpoint(lambda _: "hi", tls=context) as one:
        found["unknown certificate"] = ("permanent", await outcome(client(name, one.base_url)))
        known = client(name, one.base_url, ca_file=str(folder / "cert.pem"))
        found["known certificate"] = ("hi", await outcome(known))
    async with raw_server(answer(b"", status="400 Bad Request"), at_once=True) as url:
        plain = url.replace("http:", "https:")
        found["TLS to a plain server"] = ("permanent", await outcome(client(name, plain)))
    return found


async def proxied(name: str) -> tuple[str, str]:
    """A host that only the proxy knows."""
    async with StubEndpoint(lambda _: "hi") as one:
        os.environ["HTTP_PROXY"] = os.environ["http_proxy"] = one.base_url.removesuffix("/v1")
        try:
            return "hi", await outcome(client(name, "http://model.invalid/v1"))
        finally:
            del os.environ["HTTP_PROXY"], os.environ["http_proxy"]


def certificate(folder: Path) -> None:
    """A certificate of our own."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=clew", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem",
         "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip


# --- what it costs to have it -------------------------------------------------------------------


def import_ms(module: str) -> float:
    """CPU time of a first import, after what every client needs."""
    code = (
        "import asyncio, ssl, json, zlib, dataclasses, time; from pydantic import BaseModel; "
        f"b = time.process_time(); import {module}; print(time.process_time() - b)"
    )
    took = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(7)
    ]
    return round(1000 * median(took), 1)


def closure(name: str) -> set[str]:
    """A package and what it needs, by name."""
    found: set[str] = set()
    left = [name]
    while left:
        one = re.sub(r"[-_.]+", "-", left.pop()).lower()
        try:
            needs = distribution(one).requires or []
        except PackageNotFoundError:
            continue
        if one not in found:
            found.add(one)
            left += [re.split(r"[^\w.-]", need)[0] for need in needs if "extra" not in need]
    return found


def megabytes(names: set[str]) -> float:
    """What these packages take on disk."""
    size = 0
    for name in names:
        for file in distribution(name).files or []:
            at = Path(str(file.locate()))
            size += at.stat().st_size if at.is_file() and at.suffix != ".pyc" else 0
    return round(size / 1e6, 1)


def table(titles: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    """Print rows under titles."""
    print(f"  {'':24}" + "".join(f"{title:>24}" for title in titles))
    for name, cells in rows.items():
        print(f"  {name:24}" + "".join(f"{cell:>24}" for cell in cells))


def main() -> None:
    """Measure, print tables, and the figures as the last line."""
    parser = argparse.ArgumentParser(prog="python -m bench.http_clients", description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    aiohttp(), httpx()  # exit now if one is missing
    figures: dict[str, Any] = {}
    for streamed in (False, True):
        kind = "streamed" if streamed else "whole"
        print(f"{kind} answers: calls a second, and CPU ms a call, by calls in flight")
        levels = (1, 32) if streamed else CONCURRENCY
        costs = {level: measure_in_turns(given, level, streamed) for level in levels}
        table(
            [str(level) for level in levels],
            {
                name: [
                    f"{1 / costs[n][name].wall:,.0f}/s {1000 * costs[n][name].cpu:.3f} ms"
                    for n in levels
                ]
                for name in CLIENTS
            },
        )
        figures[kind] = {
            name: {
                n: {
                    "per_s": round(1 / costs[n][name].wall),
                    "cpu_ms": round(1000 * costs[n][name].cpu, 3),
                }
                for n in levels
            }
            for name in CLIENTS
        }
    with tempfile.TemporaryDirectory() as folder:
        certificate(Path(folder))
        outcomes = {name: asyncio.run(faults(name, Path(folder))) for name in CLIENTS}
    print("faults: what comes of them where it is not what should")
    for name, cases in outcomes.items():
        wrong = {
            case: f"{got[:40]} for {want}" for case, (want, got) in cases.items() if want != got
        }
        print(f"  {name:24}{len(cases) - len(wrong)} of {len(cases)}  {wrong or ''}")
        figures.setdefault("faults", {})[name] = {
            "right": len(cases) - len(wrong),
            "of": len(cases),
            "wrong": wrong,
        }
    here = closure("pydantic") | closure("numpy") | closure("rich") | closure("typer")
    print("to have it: first import, packages and MB beyond those we need anyway")
    for name, module in (("ours", "clew.llm.http"), ("aiohttp", "aiohttp"), ("httpx", "httpx")):
        more = closure(name) - here if name != "ours" else set()
        figures.setdefault("to_have", {})[name] = {
            "import_cpu_ms": import_ms(module),
            "packages": sorted(more),
            "mb": megabytes(more),
        }
        print(f"  {name:24}{figures['to_have'][name]}")
    figures["versions"] = {name: version(name) for name in ("aiohttp", "httpx")}
    print_result("http_clients", figures, {"calls": given.calls, "rounds": given.rounds})


if __name__ == "__main__":
    main()
