import asyncio
import gzip
import json
from contextlib import asynccontextmanager

import pytest

from clew.errors import AuthError, ConfigError, ModelError
from clew.llm.chat import EndpointError, Message, Request, ResponseFormat, stream_text, text_request
from clew.llm.openai_chat import OpenAIChat
from clew.testing.stub_endpoint import StubEndpoint
from clew.testing.stub_responses import CUT, DROP, GARBAGE, HANG, HUGE, HUGE_BYTES, Fault

COMPLETION = {
    "choices": [{"message": {"content": "caf\u00e9"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
}


def say(*messages):
    return "you said: " + messages[0][-1]["content"]


@asynccontextmanager
async def raw_server(*answers: bytes):
    """A server that sends these bytes, one per connection, and hangs up."""
    left = list(answers)

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def answer(body: bytes, headers: str = "", status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\n{headers}\r\n".encode() + body


async def test_a_question_is_asked_and_its_bill_comes_with_the_answer():
    async with StubEndpoint(say) as stub:
        chat = OpenAIChat("m", stub.base_url, "key-1")
        request = Request(
            (Message("system", "be brief"), Message("user", "héllo 你好")),
            temperature=0.5,
            max_tokens=50,
            stop=("END",),
            seed=7,
        )
        reply = await chat(request)
    assert reply.text == "you said: héllo 你好"
    assert (reply.usage.calls, reply.usage.prompt_tokens > 0, reply.finish) == (1, True, "stop")
    body = stub.stats.bodies[0]
    assert body["messages"][0] == {"role": "system", "content": "be brief"}
    assert (body["temperature"], body["max_tokens"], body["stop"], body["seed"]) == (
        0.5,
        50,
        ["END"],
        7,
    )
    assert stub.stats.headers[0]["authorization"] == "Bearer key-1"


async def test_connections_are_kept_and_shared():
    async with StubEndpoint(say) as stub:
        chat = OpenAIChat("m", stub.base_url)
        for _ in range(10):
            await chat(text_request("one"))
        assert stub.stats.connections == 1
        await asyncio.gather(*[chat(text_request(str(n))) for n in range(8)])
        assert stub.stats.connections <= 8


async def test_streaming_gives_the_pieces_and_the_same_reply():
    text = "It is a long thread, 线, that leads out of the labyrinth; " * 5
    async with StubEndpoint(lambda _: text) as stub:
        chat = OpenAIChat("m", stub.base_url)
        pieces = [piece async for piece in stream_text(chat, text_request("go"))]
        whole = await chat(text_request("go"))
        heard: list[str] = []
        reply = await chat(text_request("go"), heard.append)
    assert len(pieces) > 3
    assert "".join(pieces) == "".join(heard) == reply.text == whole.text == text
    assert reply.usage == whole.usage


async def test_leaving_a_stream_early_is_clean():
    async with StubEndpoint(lambda _: "word " * 1000) as stub:
        chat = OpenAIChat("m", stub.base_url)
        pieces = stream_text(chat, text_request("go"))
        assert await anext(pieces)
        await pieces.aclose()
        assert (await chat(text_request("again"))).text.startswith("word")


@pytest.mark.parametrize("mode", ["schema", "tool", "json"])
async def test_each_way_of_asking_for_json_reaches_the_endpoint(mode):
    schema = {
        "type": "object",
        "properties": {"names": {"type": "array", "items": {"type": "string"}}},
    }
    async with StubEndpoint() as stub:
        chat = OpenAIChat("m", stub.base_url)
        request = Request(
            (Message("user", "Ada met Bob."),),
            response_format=ResponseFormat(mode, "found", schema),
        )
        plain = await chat(request)
        streamed = await chat(request, lambda _: None)
    assert json.loads(plain.text)
    assert plain.text == streamed.text
    if mode != "json":
        assert json.loads(plain.text) == {"names": ["Ada", "Bob"]}


async def test_a_reply_that_hit_the_limit_says_so():
    async with StubEndpoint(lambda _: "x" * 1000) as stub:
        reply = await OpenAIChat("m", stub.base_url)(Request((Message("user", "q"),), max_tokens=5))
    assert reply.finish == "length"


async def test_a_wrong_key_is_one_sentence():
    async with StubEndpoint(faults=[Fault(401, message="bad key"), Fault(403)]) as stub:
        chat = OpenAIChat("m", stub.base_url, "wrong")
        with pytest.raises(AuthError, match=r"rejects the API key.*bad key.*OPENAI_API_KEY"):
            await chat(text_request("q"))
        with pytest.raises(AuthError):
            await chat(text_request("q"))


async def test_an_unknown_model_is_named_with_its_endpoint():
    async with StubEndpoint(faults=[Fault(404)]) as stub:
        with pytest.raises(ModelError, match=rf"{stub.base_url} has no model 'gpt-9'"):
            await OpenAIChat("gpt-9", stub.base_url)(text_request("q"))


async def test_no_money_is_no_reason_to_wait():
    error = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    async with raw_server(answer(json.dumps(error).encode(), status="429 Too Many")) as url:
        with pytest.raises(AuthError, match="quota"):
            await OpenAIChat("m", url)(text_request("q"))


@pytest.mark.parametrize(
    ("fault", "status", "transient"),
    [
        (Fault(429, retry_after="7"), 429, True),
        (Fault(500), 500, True),
        (Fault(503), 503, True),
        (Fault(400), 400, False),
        (Fault(501), 501, False),
        (DROP, None, True),
        (CUT, None, True),
    ],
)
async def test_failures_say_whether_they_may_pass(fault, status, transient):
    async with StubEndpoint(faults=lambda _: fault) as stub:
        with pytest.raises(EndpointError) as caught:
            await OpenAIChat("m", stub.base_url)(text_request("q"))
    assert (caught.value.status, caught.value.transient) == (status, transient)
    assert caught.value.retry_after == (7.0 if fault.retry_after else None)
    assert stub.base_url in str(caught.value)


async def test_silence_ends_with_a_timeout():
    async with StubEndpoint(faults=lambda _: HANG) as stub:
        chat = OpenAIChat("m", stub.base_url, read_timeout=0.05)
        with pytest.raises(EndpointError, match="timed out") as caught:
            await chat(text_request("q"))
    assert caught.value.transient


async def test_ten_megabytes_are_read_and_more_than_the_limit_is_refused():
    async with StubEndpoint(faults=lambda _: HUGE) as stub:
        reply = await OpenAIChat("m", stub.base_url)(text_request("q"))
        assert len(reply.text) > HUGE_BYTES - 10
        with pytest.raises(EndpointError, match="longer than 1,000,000 bytes") as caught:
            await OpenAIChat("m", stub.base_url, max_body=1_000_000)(text_request("q"))
    assert not caught.value.transient


async def test_bytes_that_are_no_utf8_survive():
    async with StubEndpoint(faults=lambda _: GARBAGE) as stub:
        reply = await OpenAIChat("m", stub.base_url)(text_request("q"))
    assert reply.text.startswith('{"entities": ["caf')
    reply.text.encode()


async def test_lone_halves_of_characters_are_mended():
    said = json.dumps(COMPLETION | {"model": "m\ud800"})
    body = said.replace("caf\\u00e9", r"\ud83d\ude00 \ud83d!").encode()
    async with raw_server(answer(body)) as url:
        reply = await OpenAIChat("m", url)(text_request("q"))
    assert (reply.text, reply.model) == ("😀 \ufffd!", "m\ufffd")
    piece = {"model": "m\ud800", "choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}
    event = f"data: {json.dumps(piece)}\n\n".encode()
    async with raw_server(answer(event, "Content-Type: text/event-stream\r\n")) as url:
        reply = await OpenAIChat("m", url)(text_request("q"), lambda _: None)
    assert reply.model == "m\ufffd"


async def test_a_server_that_went_away_is_named():
    async with StubEndpoint() as stub:
        pass
    with pytest.raises(EndpointError, match=rf"{stub.base_url} cannot be reached") as caught:
        await OpenAIChat("m", stub.base_url)(text_request("q"))
    assert caught.value.transient


async def test_a_line_the_server_closed_meanwhile_is_replaced():
    async with StubEndpoint(say, faults=[None, DROP, None]) as stub:
        chat = OpenAIChat("m", stub.base_url)
        await chat(text_request("one"))
        assert (await chat(text_request("two"))).text == "you said: two"
    assert stub.stats.connections == 2


@pytest.mark.parametrize(
    "raw",
    [
        answer(b"".join([b"5\r\n", json.dumps(COMPLETION).encode()[:5], b"\r\n"])
               + f"{len(json.dumps(COMPLETION)) - 5:x};note=1\r\n".encode()
               + json.dumps(COMPLETION).encode()[5:] + b"\r\n0\r\nTrailer: x\r\n\r\n",
               "Transfer-Encoding: chunked\r\n"),
        answer(gzip.compress(json.dumps(COMPLETION).encode()), "Content-Encoding: gzip\r\n"),
        answer(json.dumps(COMPLETION).encode()),
        b"HTTP/1.1 100 Continue\r\n\r\n" + answer(json.dumps(COMPLETION).encode()),
    ],
    ids=["chunks", "gzip", "until the end", "continue"],
)  # fmt: skip
async def test_every_framing_of_http_is_read(raw):
    async with raw_server(raw) as url:
        reply = await OpenAIChat("m", url)(text_request("q"))
    assert reply.text == "café"


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        answer(b"{}", "Content-Length: -5\r\n"),
        answer(b"zz\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n"),
        answer(b"fffffffffff\r\n{}", "Transfer-Encoding: chunked\r\n"),
        answer(b"not gzip at all", "Content-Encoding: gzip\r\n"),
        answer(b"{}", "Content-Encoding: br\r\n"),
        answer(b"<html>a web page</html>"),
        answer(b'{"choices": []}'),
        answer(b"[" * 100_000),
        answer(b"null"),
        answer(b"", "X: " + "y" * 300_000 + "\r\n"),
        answer(b"", "Location: http://elsewhere/\r\nContent-Length: 0\r\n", "302 Found"),
        answer(gzip.compress(b"[" * 50_000_000), "Content-Encoding: gzip\r\n"),
    ],
)
async def test_what_is_no_completion_is_reported_as_what_it_is(raw):
    async with raw_server(raw) as url:
        with pytest.raises(EndpointError, match=url) as caught:
            await OpenAIChat("m", url)(text_request("q"))
    assert not caught.value.transient
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        (b'data: {"error": {"message": "out of memory"}}\n\n', "out of memory"),
        (b'data: {"choices": [{"delta": {"content": "He"}}]}\n\n', "closed the stream"),
        (b"data: {nonsense\n\n", "not JSON"),
    ],
)
async def test_a_stream_that_breaks_is_an_error(events, problem):
    raw = answer(events, "Content-Type: text/event-stream\r\n")
    async with raw_server(raw) as url:
        with pytest.raises(EndpointError, match=problem):
            await OpenAIChat("m", url)(text_request("q"), lambda _: None)


async def test_an_endpoint_that_cannot_stream_is_heard_at_once():
    raw = answer(json.dumps(COMPLETION).encode(), "Content-Type: application/json\r\n")
    heard: list[str] = []
    async with raw_server(raw) as url:
        reply = await OpenAIChat("m", url)(text_request("q"), heard.append)
    assert heard == [reply.text] == ["café"]


async def test_parameters_a_model_lacks_are_renamed_or_dropped_and_remembered():
    refused = {
        "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "temperature": "'temperature' does not support 0.0 with this model.",
    }
    stub = StubEndpoint(say)

    def faults(number):
        body = stub.stats.bodies[-1]
        blamed = [name for name in refused if name in body]
        return Fault(400, message=refused[blamed[0]], param=blamed[0]) if blamed else None

    stub.faults = faults
    async with stub:
        chat = OpenAIChat("o9", stub.base_url)
        request = Request((Message("user", "hi"),), max_tokens=20)
        assert (await chat(request)).text == "you said: hi"
        await chat(request)
    assert stub.stats.chat_calls == 4
    last = stub.stats.bodies[-1]
    assert last["max_completion_tokens"] == 20
    assert "temperature" not in last


def test_one_client_serves_several_event_loops():
    with asyncio.Runner() as runner:
        stub = StubEndpoint(say)
        runner.run(stub.start())
        chat = OpenAIChat("m", stub.base_url)
        assert runner.run(chat(text_request("a"))).text
        port = int(stub.base_url.split(":")[2].split("/")[0])
        runner.run(stub.stop())
    with asyncio.Runner() as runner:
        runner.run(stub.start(port=port))
        assert runner.run(chat(text_request("b"))).text == "you said: b"
        runner.run(stub.stop())


@pytest.mark.parametrize("url", ["api.openai.com", "ftp://x/v1", "http://", "http://h:port/v1"])
def test_a_base_url_that_is_none_is_refused(url):
    with pytest.raises(ConfigError, match="base_url"):
        OpenAIChat("m", url)


def test_a_key_with_a_line_break_is_refused_and_keys_are_never_shown():
    with pytest.raises(ConfigError, match="line break"):
        OpenAIChat("m", "http://h/v1", "abc\r\nX-Evil: 1")
    assert "secret" not in repr(OpenAIChat("m", "http://h/v1", "secret"))


async def test_tls_to_a_plain_server_is_explained():
    async def serve(reader, writer):
        await reader.read(10)
        writer.write(answer(b"", status="400 Bad Request"))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        with pytest.raises(EndpointError, match="TLS"):
            await OpenAIChat("m", url)(text_request("q"))


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [None]},
        {"choices": {"a": 1}},
        {"choices": [{"delta": "hi"}]},
        {"choices": [{"delta": {"tool_calls": [None]}}]},
    ],
)
async def test_an_event_that_is_no_part_of_a_completion_is_said_to_be_none(event):
    raw = answer(b"data: " + json.dumps(event).encode() + b"\n\n", "Content-Type: text/x\r\n")
    async with raw_server(raw) as url:
        with pytest.raises(EndpointError, match="not part of a completion"):
            await OpenAIChat("m", url)(text_request("q"), lambda _: None)


async def test_what_hears_the_words_fails_in_its_own_name():
    def deaf(_):
        raise TypeError("who listens?")

    async with StubEndpoint(say) as stub:
        with pytest.raises(TypeError, match="who listens"):
            await OpenAIChat("m", stub.base_url)(text_request("q"), deaf)


@pytest.mark.parametrize(
    "usage",
    [
        '{"prompt_tokens": "n/a"}',
        "[1]",
        '{"prompt_tokens": -5, "completion_tokens": 2}',
        '{"prompt_tokens": 1e400}',
        '{"prompt_tokens": 1' + "0" * 400 + "}",
    ],
)
async def test_a_bill_that_is_none_costs_no_reply(usage):
    choice = '{"message": {"content": "hi"}, "delta": {"content": "hi"}, "finish_reason": "stop"}'
    body = f'{{"choices": [{choice}], "usage": {usage}}}'.encode()
    streamed = answer(b"data: " + body + b"\n\n", "Content-Type: text/event-stream\r\n")
    async with raw_server(answer(body), streamed) as url:
        chat = OpenAIChat("m", url)
        for reply in (await chat(text_request("q")), await chat(text_request("q"), lambda _: None)):
            assert reply.text == "hi"
            assert 0 < reply.usage.prompt_tokens < 100


async def test_a_failure_under_a_status_of_success_is_read_as_what_it_is():
    def told(error, headers=""):
        return answer(json.dumps({"error": error}).encode(), headers)

    async with raw_server(
        told({"message": "slow down", "code": 429}, "Retry-After: 7\r\n"),
        told({"message": "one moment", "type": "overloaded_error"}),
        told({"message": "bad key", "code": 401}),
        told({"message": "pay first", "code": "insufficient_quota"}),
        told("Unexpected endpoint"),
    ) as url:
        chat = OpenAIChat("m", url)
        with pytest.raises(EndpointError, match="slow down") as caught:
            await chat(text_request("q"))
        assert (caught.value.transient, caught.value.retry_after) == (True, 7)
        with pytest.raises(EndpointError, match="one moment") as caught:
            await chat(text_request("q"))
        assert caught.value.transient
        for words in ("bad key", "pay first"):
            with pytest.raises(AuthError, match=words):
                await chat(text_request("q"))
        with pytest.raises(EndpointError, match=r"Unexpected endpoint.*ends in /v1") as caught:
            await chat(text_request("q"))
        assert not caught.value.transient


async def test_a_text_that_may_not_be_read_is_no_refused_key():
    flagged = "Your chosen model requires moderation and your input was flagged"
    faults = [Fault(403, message=flagged), Fault(403, message="Your account was flagged")]
    async with StubEndpoint(say, faults=faults) as stub:
        chat = OpenAIChat("m", stub.base_url)
        with pytest.raises(EndpointError, match="requires moderation") as caught:
            await chat(text_request("q"))
        assert not caught.value.transient
        with pytest.raises(AuthError, match="account"):
            await chat(text_request("q"))
