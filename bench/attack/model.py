"""Puts faults between a build and its chat and embedding endpoints.

`python -m bench.attack.model [--count N] [--seconds S] [--seed N]`. A proxy in front of a sound
endpoint answers some requests with errors, nonsense, silence, a drip of bytes, or an echo of the
API key. The build ends in time, in one sentence or with counted failures; the key is stored nowhere
and said nowhere; nothing is lost; and once the endpoint is sound, the knowledge base becomes the
same as without faults, no valid reply being asked for again. Faults that look like another valid
reply cannot be noticed, and are left out.
"""

import asyncio
import json
import random
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bench.attack.campaign import expect, parse_options, run_campaign
from bench.attack.sample import make_sample, read_truth, run, stream
from clew.config import ModelSettings, Settings
from clew.engine import KnowledgeBase, open_store
from clew.errors import ClewError
from clew.llm.embed_endpoint import EndpointEmbedder
from clew.llm.limits import RetryPolicy
from clew.testing.stub_endpoint import StubEndpoint

KEY = "sk-attack-0123456789abcdef"
_LIMIT = 0.6  # seconds for one call
_POLICY = RetryPolicy(tries=2, first_wait=0.01, max_wait=0.02, total_seconds=2.0)
_MOST_SECONDS = 60.0  # of one build
_DOCUMENTS = 4
Answer = tuple[int, bytes] | None
"""Status and body; None sends nothing and closes."""


def _echo(status: int) -> Callable[[random.Random, bytes], Answer]:
    def answer(_: random.Random, __: bytes) -> Answer:
        return status, json.dumps({"error": {"message": f"bad key {KEY} (Bearer {KEY})"}}).encode()

    return answer


def _change_vectors(value: Any) -> Callable[[random.Random, bytes], Answer]:
    def answer(_: random.Random, body: bytes) -> Answer:
        parsed = json.loads(body)
        for item in parsed.get("data", []):
            item["embedding"] = value
        return 200, json.dumps(parsed).encode()

    return answer


def _cut(rng: random.Random, body: bytes) -> Answer:
    return 200, body[: rng.randrange(len(body))]


def _echo_in_reply(_: random.Random, body: bytes) -> Answer:
    return 200, json.dumps({**json.loads(body), "model": f"m for {KEY}"}).encode()


FAULTS: dict[str, Callable[[random.Random, bytes], Answer]] = {
    **{f"status {code}": _echo(code) for code in (400, 401, 403, 404, 408, 422, 429, 500, 503)},
    "closed": lambda rng, body: None,
    "empty": lambda rng, body: (200, b""),
    "not JSON": lambda rng, body: (200, b"<html>busy</html>"),
    "null": lambda rng, body: (200, b"null"),
    "deep": lambda rng, body: (200, b"[" * 50_000),
    "bytes": lambda rng, body: (200, rng.randbytes(200)),
    "cut": _cut,
    "key in the reply": _echo_in_reply,
    "no vector": _change_vectors([]),
    "NaN": _change_vectors([float("nan")] * 8),
    "text": _change_vectors("text"),
    "number": _change_vectors(7),
}


@dataclass(eq=False)
class FaultyProxy:
    """Forwards requests to a sound endpoint, or answers with a fault."""

    target: StubEndpoint
    rng: random.Random
    share: float
    injected: Counter[str] = field(default_factory=Counter)
    sound: Counter[str] = field(default_factory=Counter)
    """How often each request got its right answer."""
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, then close."""
        try:
            head, body = await _read_message(reader)
            answer = await self._forward(head, body)
            await self._respond(writer, body, answer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client gave up
        finally:
            writer.close()

    async def _respond(self, writer: asyncio.StreamWriter, asked: bytes, answer: bytes) -> None:
        if self.rng.random() >= self.share:
            self.sound[asked.decode("utf-8", "replace")] += 1
            await _send(writer, 200, answer)
            return
        name = self.rng.choice([*FAULTS, "silence", "drip", "bomb"])
        self.injected[name] += 1
        if name == "silence":
            await asyncio.sleep(2 * _LIMIT)
        elif name == "drip":
            await _drip(writer, answer)
        elif name == "bomb":
            raw = zlib.compress(bytes(80_000_000), 9)
            await _send(writer, 200, raw, "Content-Encoding: deflate\r\n")
        elif (found := FAULTS[name](self.rng, answer)) is not None:
            await _send(writer, *found)

    async def _forward(self, head: str, body: bytes) -> bytes:
        host, port = self.target.base_url.removeprefix("http://").split("/")[0].split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        path = head.split(" ")[1]
        start = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(start.encode() + body)
        _, answer = await _read_message(reader)
        writer.close()
        return answer


async def _read_message(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    fields = [line.partition(":") for line in head.split("\r\n")]
    size = next(int(text) for name, _, text in fields if name.lower() == "content-length")
    return head, await reader.readexactly(size)


async def _send(writer: asyncio.StreamWriter, status: int, body: bytes, more: str = "") -> None:
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def _drip(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(f"HTTP/1.1 200 X\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    for at in range(min(len(body), 40)):
        writer.write(body[at : at + 1])
        await writer.drain()
        await asyncio.sleep(0.05)


@asynccontextmanager
async def faulty_endpoint(rng: random.Random, share: float) -> AsyncIterator[FaultyProxy]:
    """A proxy with faults in front of a sound endpoint."""
    async with StubEndpoint(dim=8) as target:
        proxy = FaultyProxy(target, rng, share)
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        try:
            yield proxy
        finally:
            server.close()


async def _open(folder: Path, url: str) -> KnowledgeBase:
    models = ModelSettings(
        model="m",
        base_url=url,
        api_key=SecretStr(KEY),
        timeout=_LIMIT,
        tries=2,
        retry_for=2.0,
        concurrency=4,
    )
    settings = Settings(kb=folder, models=models, extractor="triples")
    embed = EndpointEmbedder(
        "e", url, KEY, batch=8, concurrency=2, timeout=_LIMIT, retry_policy=_POLICY
    )
    return KnowledgeBase(await open_store(settings, create=True), settings, embed)


async def _build(folder: Path, url: str, retry: bool) -> tuple[str, bool]:
    """Build; return what was said, and whether it was given up with calls in flight."""
    base = await _open(folder, url)
    documents = [make_sample(number) for number in range(_DOCUMENTS)]
    try:
        async with asyncio.timeout(_MOST_SECONDS):
            added = await base.take(stream(documents), retry=retry)
        failures = [failure.reason for failure in await base.store.failures()]
        return " ".join([*failures, *map(str, added.skipped)]), False
    except ClewError as error:
        return str(error), True
    finally:
        await base.close()


async def _attack(rng: random.Random, folder: Path) -> str:
    said: list[str] = []
    given_up = 0
    async with faulty_endpoint(rng, rng.choice((0.1, 0.3, 0.7))) as proxy:
        for _ in range(rng.choice((1, 2))):
            words, stopped = await _build(folder / "kb", proxy.url, retry=False)
            said.append(words)
            given_up += stopped
        injected = Counter(proxy.injected)
        proxy.share = 0.0
        for _ in range(2):
            said.append((await _build(folder / "kb", proxy.url, retry=True))[0])
        expect(not said[-1], f"the endpoint is sound, but: {said[-1][:300]}")
        # Once here, once for the fresh build below, and once for each time it was in flight.
        again = [asked for asked, times in proxy.sound.items() if times > 2 + given_up]
        expect(not again, f"asked again for what was answered: {again[:1]}")
        await _build(folder / "fresh", proxy.url, retry=False)
        same = read_truth(folder / "kb") == read_truth(folder / "fresh")
        expect(same, "not the same as without faults")
        base = await _open(folder / "kb", proxy.url)
        problems = await base.verify()
        await base.close()
    expect(not problems, f"{problems}")
    expect(KEY not in " ".join(said), f"the key is said: {said}")
    files = [path for path in (folder / "kb").rglob("*") if path.is_file()]
    stored = [path.name for path in files if KEY.encode() in path.read_bytes()]
    expect(not stored, f"the key is stored in {stored}")
    return f"{min(injected.total(), 10)}{'+' if injected.total() >= 10 else ''} faults"


def attack_model(rng: random.Random, folder: Path) -> str:
    """One trial: a build under faults, and its completion."""
    return run(_attack(rng, folder))


if __name__ == "__main__":
    run_campaign("model", attack_model, parse_options(str(__doc__), 500))
