"""EndpointEmbed against a real server on a real socket, which follows a script."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import pytest

from clew.errors import AuthError, ConfigError, ModelError, ParseError
from clew.llm.embed_endpoint import EndpointEmbedder
from clew.llm.limits import RetryPolicy
from clew.testing.stub_endpoint import StubEndpoint

Answer = tuple[int, dict[str, str], bytes]
QUICK = RetryPolicy(tries=4, first_wait=0.01, max_wait=0.05, total_seconds=5.0)


def vector(text: str) -> list[float]:
    """A vector that tells texts apart: its direction depends on length and first letter."""
    return [1.0 + len(text), float(ord(text[0])), 3.0]


def embeddings(asked: dict[str, Any]) -> Answer:
    """Answer as the protocol says, in reverse order: `index` is what counts."""
    rows = [
        {"object": "embedding", "index": at, "embedding": vector(text)}
        for at, text in enumerate(asked["input"])
    ]
    return 200, {}, json.dumps({"data": rows[::-1], "model": asked["model"]}).encode()


def refusal(status: int, message: str = "no", code: str = "", **headers: str) -> Answer:
    error = {"error": {"message": message, "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named, json.dumps(error).encode()


@dataclass
class Server:
    """Keeps what it was asked; `script` gives the next answers, then it embeds."""

    script: list[Answer | None] = field(default_factory=list)
    embed: Callable[[dict[str, Any]], Answer] = embeddings
    slow: float = 0.0
    asked: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    busy: int = 0
    busiest: int = 0
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                size = next(
                    int(line.split(":")[1])
                    for line in head.splitlines()
                    if line.lower().startswith("content-length")
                )
                asked = json.loads(await reader.readexactly(size))
                self.heads.append(head)
                self.asked.append(asked)
                self.busy += 1
                self.busiest = max(self.busy, self.busiest)
                await asyncio.sleep(self.slow)
                self.busy -= 1
                answer = self.script.pop(0) if self.script else self.embed(asked)
                if answer is None:  # hang up without a word
                    break
                status, headers, body = answer
                lines = [f"HTTP/1.1 {status} x", f"content-length: {len(body)}"]
                lines += [f"{name}: {value}" for name, value in headers.items()]
                writer.write("\r\n".join([*lines, "", ""]).encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def running(port: int = 0, **settings: Any) -> AsyncIterator[Server]:
    server = Server(**settings)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", port)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()


@asynccontextmanager
async def asking(server: Server, **settings: Any) -> AsyncIterator[EndpointEmbedder]:
    given = {"retry_policy": QUICK, "timeout": 5.0} | settings
    embed = EndpointEmbedder("m", server.url, **given)
    try:
        yield embed
    finally:
        embed.close()


async def test_vectors_are_unit_length_and_in_the_order_asked() -> None:
    texts = ["b" * size for size in range(1, 24)] + ["a", "日本", "a"]
    async with running() as server, asking(server, batch=5) as embed:
        rows = await embed(texts)
    expected = np.array([vector(text) for text in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, expected, rtol=1e-6)
    assert [len(asked["input"]) for asked in server.asked].count(5) == 5
    assert embed.dim == 3


async def test_a_batch_changes_nothing() -> None:
    texts = [f"{letter} text" for letter in "abcdefg"]
    async with running() as server, asking(server, batch=3) as few, asking(server) as all_:
        np.testing.assert_array_equal(await few(texts), await all_(texts))


async def test_no_text_gives_no_row_but_the_right_width() -> None:
    async with running() as server, asking(server) as embed:
        assert (await embed([])).shape == (0, 3)
    async with running() as server, asking(server, expected_dim=7) as embed:
        assert (await embed([])).shape == (0, 7)
        assert server.asked == []


async def test_the_dimension_is_learned_on_demand() -> None:
    async with running() as server, asking(server) as embed:
        with pytest.raises(ModelError, match="not known before"):
            _ = embed.dim
        assert await embed.learn_dim() == 3
        assert await embed.learn_dim() == 3
        assert len(server.asked) == 1


async def test_prefixes_go_by_role_and_only_the_passages_one_is_in_the_name() -> None:
    async with running() as server:
        async with asking(server, passage_prefix="P: ", query_prefix="Q: ") as embed:
            await embed(["x"])
            await embed(["x"], role="query")
        assert [asked["input"] for asked in server.asked] == [["P: x"], ["Q: x"]]
    plain = EndpointEmbedder("m")
    assert plain.name == EndpointEmbedder("m", query_prefix="Q").name == "m"
    assert EndpointEmbedder("m", passage_prefix="P").name not in ("m", embed.name)


async def test_empty_and_endless_texts_are_made_acceptable() -> None:
    async with running() as server, asking(server, max_letters=10) as embed:
        rows = await embed(["", "z" * 1_000_000, "half \ud800 pair"])
    assert server.asked[0]["input"][:2] == [" ", "z" * 10]
    assert np.isfinite(rows).all()


async def test_at_most_so_many_requests_at_once() -> None:
    async with running(slow=0.02) as server, asking(server, batch=1, concurrency=3) as embed:
        await embed([str(number) for number in range(12)])
    assert server.busiest == 3


@pytest.mark.parametrize("failure", [refusal(429), refusal(500), refusal(503), None])
async def test_a_passing_failure_is_tried_again(failure: Answer | None) -> None:
    async with running(script=[failure, failure]) as server, asking(server) as embed:
        assert (await embed(["x"])).shape == (1, 3)
        assert len(server.asked) == 3


async def test_retry_after_is_waited_for() -> None:
    async with running(script=[refusal(429, retry_after="0.3")]) as server:
        async with asking(server) as embed:
            began = time.monotonic()
            await embed(["x"])
            assert time.monotonic() - began >= 0.3


async def test_patience_ends_with_one_sentence() -> None:
    async with running(script=[refusal(503, "tired")] * 9) as server, asking(server) as embed:
        with pytest.raises(ModelError, match=r"tired.*gave up after 4 attempts"):
            await embed(["x"])
        assert len(server.asked) == QUICK.tries


async def test_a_wait_longer_than_patience_is_not_begun() -> None:
    async with running(script=[refusal(429, retry_after="3600")]) as server:
        async with asking(server) as embed:
            with pytest.raises(ModelError, match="gave up after 1 attempt"):
                await embed(["x"])


@pytest.mark.parametrize(
    "answer", [refusal(401), refusal(403), refusal(429, code="insufficient_quota")]
)
async def test_a_refused_key_stops_at_once(answer: Answer) -> None:
    async with running(script=[answer] * 9) as server:
        async with asking(server, api_key="secret-key", batch=1, concurrency=1) as embed:
            with pytest.raises(AuthError) as caught:
                await embed(["x", "y", "z"])
            assert len(server.asked) == 1
            assert "secret-key" not in str(caught.value) + repr(embed)
        assert "authorization: bearer secret-key" in server.heads[0].lower()


async def test_an_unknown_model_is_named() -> None:
    async with running(script=[refusal(404, "unknown")]) as server, asking(server) as embed:
        with pytest.raises(ModelError, match="has no model 'm'"):
            await embed(["x"])
        assert len(server.asked) == 1


async def test_what_the_server_says_of_a_bad_request_is_passed_on() -> None:
    async with running(script=[refusal(400, "input too long")]) as server, asking(server) as embed:
        with pytest.raises(ModelError, match="input too long"):
            await embed(["x"])


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>",
        b"{}",
        b"[1]",
        b'{"data": [{"index": 0, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": ["a"]}]}',
        b'{"data": [{"index": 0, "embedding": {"a": 1}}]}',
        b'{"data": [{"index": 0, "embedding": "AAA"}]}',
        b'{"data": [{"index": "0", "embedding": [1]}]}',
        b'{"data": [{"index": 1, "embedding": [1, 1]}]}',
        b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}]}',
        b'{"data": []}',
        b'{"data": {"index": 0}}',
        b"\xff\xfe",
    ],
)
async def test_nonsense_is_a_parse_error(body: bytes) -> None:
    async with running(script=[(200, {}, body)]) as server, asking(server) as embed:
        with pytest.raises(ParseError, match="a list of 1 embeddings") as caught:
            await embed(["x"])
    python = ("indices", "sequence", "inhomogeneous", "Expecting", "convert", "argument", "'data'")
    assert not [word for word in python if word in str(caught.value)]


async def test_vectors_of_different_lengths_are_said_in_plain_words() -> None:
    uneven = b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}'
    async with running(script=[(200, {}, uneven)]) as server, asking(server) as embed:
        with pytest.raises(ParseError, match="vectors of different or no length"):
            await embed(["x", "y"])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("vector", ["[NaN, 1, 1]", "[0, 0]", "[1e308, 1]", "[1e999]"])
async def test_a_vector_without_a_direction_is_a_failed_reply(vector: str) -> None:
    body = f'{{"data": [{{"index": 0, "embedding": {vector}}}]}}'.encode()
    twice = RetryPolicy(tries=2, first_wait=0.001)
    async with running(script=[(200, {}, body)] * 2) as server:
        async with asking(server, retry_policy=twice) as embed:
            with pytest.raises(ModelError, match="zeros, or of what is no number, for the text"):
                await embed(["x"])
            assert len(server.asked) == 2
            assert (await embed(["x"])).any()


async def test_a_change_of_dimension_is_an_error() -> None:
    other = (200, {}, b'{"data": [{"index": 0, "embedding": [1, 2]}]}')
    async with running() as server, asking(server) as embed:
        await embed(["x"])
        server.script.append(other)
        with pytest.raises(ModelError, match="gave 2 dimensions where 3"):
            await embed(["x"])
    async with running() as server, asking(server, expected_dim=1536) as embed:
        with pytest.raises(ModelError, match="gave 3 dimensions where 1536"):
            await embed(["x"])


async def test_silence_is_a_timeout_and_nobody_there_is_said() -> None:
    once = RetryPolicy(tries=1)
    async with running(slow=1.0) as server:
        async with asking(server, timeout=0.05, retry_policy=once) as embed:
            with pytest.raises(ModelError, match="within 0.05 s"):
                await embed(["x"])
    absent = EndpointEmbedder("m", server.url, retry_policy=once)
    with pytest.raises(ModelError, match="cannot be reached"):
        await absent(["x"])


async def test_a_cancelled_call_ends() -> None:
    async with running(slow=30.0) as server, asking(server) as embed:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await embed(["x"])


def test_one_embedder_serves_several_loops() -> None:
    async def ask(embed: EndpointEmbedder | None = None) -> EndpointEmbedder:
        port = int(embed.base_url.split(":")[2].split("/")[0]) if embed else 0
        async with running(port) as server:
            embed = embed or EndpointEmbedder("m", server.url, retry_policy=RetryPolicy(tries=1))
            assert len(await embed(["x", "y"])) == 2
        return embed

    asyncio.run(ask(asyncio.run(ask())))


@pytest.mark.parametrize(
    "settings",
    [{"batch": 0}, {"concurrency": 0}, {"base_url": "host:80"}, {"api_key": "a\nb"}],
)
def test_bad_settings_are_refused_early(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        EndpointEmbedder("m", **settings)


async def test_packed_vectors_are_asked_for_and_read() -> None:
    async with StubEndpoint(dim=8) as stub:
        embed = EndpointEmbedder("m", stub.base_url)
        rows = await embed(["one", "two"])
        assert rows.shape == (2, 8)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
        wanted = {"model": "m", "input": ["one", "two"], "encoding_format": "float"}
        async with httpx.AsyncClient() as client:
            told = (await client.post(f"{stub.base_url}/embeddings", json=wanted)).json()
        lists = np.array([row["embedding"] for row in told["data"]])
        lengths = np.linalg.norm(lists, axis=1, keepdims=True)
        np.testing.assert_allclose(rows, lists / lengths, atol=1e-6)


async def test_batches_under_way_learn_together_that_vectors_come_as_lists() -> None:
    def lists_only(asked: dict[str, Any]) -> Answer:
        packed = asked["encoding_format"] == "base64"
        return refusal(400, "encoding_format base64 is unknown") if packed else embeddings(asked)

    async with running(embed=lists_only) as server:
        async with asking(server, batch=1, concurrency=3) as embed:
            assert (await embed(["x", "y", "z"])).shape == (3, 3)
