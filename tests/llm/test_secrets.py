"""An endpoint that echoes the API key: it is neither said nor stored, however it is sent."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from clew.errors import AuthError
from clew.llm.chat import EndpointError, Message, Request
from clew.llm.embed_endpoint import EndpointEmbedder
from clew.llm.http import HttpClient, auth_headers
from clew.llm.limits import RetryPolicy
from clew.llm.openai_chat import OpenAIChat
from clew.llm.secrets import HeldText, make_filter
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
    said = str(caught.value)
    assert KEY not in said and SHAPES[shape] not in said
    assert "wrong key ***" in said or shape == "base64" and "***" in said
    server.close()


SPELLINGS = {
    "upper case": KEY.upper(),
    "lower case": KEY.lower(),
    "spaced": " ".join(KEY),
    "dashes": "-".join(KEY),
    "lines": "\\n".join(KEY),
    "backwards": KEY[::-1],
    "hexadecimal": KEY.encode().hex(" "),
    "a header": b64encode(f":{KEY}".encode()).decode(),
    "a header with a user": b64encode(f"me:{KEY}".encode()).decode(),
    "base64 in a longer one": b64encode(f"u=1;{KEY};v=2".encode()).decode(),
    "base64 of addresses": urlsafe_b64encode(f"a{KEY}b".encode()).decode(),
    "page": "".join(f"&#{ord(one)};" for one in KEY),
    "upper case and escaped": quote(KEY, safe="").upper(),
    "code points twice escaped": "".join(f"\\\\u{ord(one):04x}" for one in KEY),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_key_is_masked_however_it_is_spelled(spelling: str) -> None:
    found = make_filter([KEY])
    shown = SPELLINGS[spelling]
    masked = found.scrub_text(f'{{"error": "wrong key {shown}, said the endpoint"}}')
    assert masked.startswith('{"error": "wrong key ') and "***" in masked
    assert masked.endswith(', said the endpoint"}')
    left = [shown[at : at + 12] for at in range(len(shown) - 11)]
    assert not [part for part in left if part in masked]


@pytest.mark.parametrize("spelling", ["upper case", "spaced", "dashes", "a header"])
async def test_a_key_that_is_streamed_in_pieces_is_not_passed_on(spelling: str) -> None:
    shown = SPELLINGS[spelling]
    for size in (1, 3, 7):
        pieces: list[str] = []
        held = HeldText(make_filter([KEY]), pieces.append)
        text = f"It is {shown}. That is all."
        for at in range(0, len(text), size):
            held(text[at : at + size])
        held.flush()
        said = "".join(pieces)
        assert said.startswith("It is ") and said.endswith(". That is all.")
        assert not [at for at in range(len(shown) - 11) if shown[at : at + 12] in said]


@pytest.mark.parametrize("key", ["not-needed", "lm-studio", "my secret", "MySecretPassword"])
def test_keys_that_are_words_leave_ordinary_text_alone(key: str) -> None:
    text = "Not needed: my secret passes, in the LM studio, on 2024-05-06 at 12:30."
    assert make_filter([key, "7f3a9c2e1b"]).scrub_text(text.replace(key, "")) == text.replace(
        key, ""
    )


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
