"""An endpoint that echoes the API key: it is neither said nor stored, however it is sent."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from clew.errors import AuthError
from clew.llm.chat import EndpointError, Message, Request
from clew.llm.embed_endpoint import EndpointEmbedder
from clew.llm.http import HttpClient, auth_headers
from clew.llm.limits import RetryPolicy
from clew.llm.openai_chat import OpenAIChat
from clew.llm.secrets import make_filter
from clew.testing.stub_endpoint import StubEndpoint

KEY = "sk-test/0123+456789"
ONCE = RetryPolicy(tries=1)


@pytest.fixture
async def echo() -> AsyncIterator[StubEndpoint]:
    async with StubEndpoint(reply=lambda messages: f"Your key is {KEY}, keep it.") as stub:
        yield stub


async def test_a_reply_with_the_key_is_masked(echo: StubEndpoint) -> None:
    chat = OpenAIChat("m", echo.base_url, KEY)
    request = Request((Message("user", "hello"),))
    assert (await chat(request)).text == "Your key is ***, keep it."
    pieces: list[str] = []
    assert KEY not in (await chat(request, pieces.append)).text


SHAPES = {
    "plain": json.dumps(KEY)[1:-1],
    "escaped slashes": KEY.replace("/", "\\/"),
    "code points": "".join(f"\\u{ord(one):04X}" for one in KEY),
    "an address": quote(KEY, safe=""),
    "base64": b64encode(f"Bearer {KEY}".encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("status", [401, 500])
async def test_an_error_with_the_key_is_masked(status: int, shape: str) -> None:
    async def answer(reader, writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = f'{{"error": {{"message": "wrong key {SHAPES[shape]}"}}}}'.encode()
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    import asyncio

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    with pytest.raises((AuthError, EndpointError)) as caught:
        await EndpointEmbedder("m", url, KEY, retry_policy=ONCE)(["text"])
    assert KEY not in str(caught.value)
    assert "wrong key ***" in str(caught.value)
    server.close()


@pytest.mark.parametrize("at", range(1, len(KEY)))
def test_a_key_that_is_split_between_two_blocks_is_masked(at: int) -> None:
    found = make_filter([KEY])
    text = f"before {KEY} after".encode()
    cut = text.index(KEY.encode()) + at
    first, held = found.split_held(text[:cut])
    second, rest = found.split_held(held + text[cut:])
    assert first + second + found.scrub(rest) == b"before *** after"


def test_short_keys_and_ordinary_text_are_left_alone() -> None:
    assert make_filter(["none", ""]).scrub(b"none") == b"none"
    client = HttpClient("http://localhost:1/v1", auth_headers(KEY))
    assert client.filter.scrub_text("nothing to mask") == "nothing to mask"


@pytest.mark.parametrize(("begin", "end"), [(0, 12), (0, 15), (4, 19), (6, 17), (11, 19)])
def test_a_part_of_a_key_is_masked(begin: int, end: int) -> None:
    masked = make_filter([KEY]).scrub_text(f"no key {KEY[begin:end]}… is known, {KEY[begin:end]}")
    assert masked == "no key ***… is known, ***"


def test_words_of_a_key_are_no_secrets() -> None:
    text = "a placeholder is required here"
    assert make_filter(["placeholder-required"]).scrub_text(text) == text


def test_a_part_of_a_key_that_comes_in_pieces_is_held() -> None:
    known = make_filter([KEY])
    sent, held = known.split_held(b"it is " + KEY[5:12].encode())
    assert (sent, held) == (b"it is ", KEY[5:12].encode())
