import pytest

pytest.importorskip("openai")

from clew.errors import AuthError, ModelError
from clew.llm.chat import EndpointError, Message, Request, ResponseFormat, text_request
from clew.llm.openai_chat import OpenAIChat, SdkChat
from clew.testing.stub_endpoint import StubEndpoint
from clew.testing.stub_responses import DROP, HANG, Fault


async def test_both_clients_say_the_same():
    schema = {"type": "object", "properties": {"names": {"type": "array", "items": {}}}}
    requests = [
        text_request("Ada met Bob.", "Be brief."),
        Request((Message("user", "Ada met Bob."),), max_tokens=3, stop=("x",), seed=1),
        *[
            Request((Message("user", "Ada."),), response_format=ResponseFormat(mode, "s", schema))
            for mode in ("schema", "tool", "json")
        ],
    ]
    async with StubEndpoint() as stub:
        ours, theirs = OpenAIChat("m", stub.base_url), SdkChat("m", stub.base_url)
        assert ours.name == theirs.name
        for request in requests:
            assert await ours(request) == await theirs(request)
            heard = []
            assert await theirs(request, heard.append) == await ours(request)
            assert "".join(heard) == (await ours(request)).text
        sent = [
            {key: value for key, value in body.items() if key != "stream"}
            for body in stub.stats.bodies
        ]
        assert sent[0] == sent[1]
        await theirs.close()


@pytest.mark.parametrize("fault", [Fault(429, retry_after="3"), Fault(500), Fault(400), DROP])
async def test_failures_are_told_alike(fault):
    async with StubEndpoint(faults=lambda _: fault) as stub:
        told = []
        for chat in (OpenAIChat("m", stub.base_url), SdkChat("m", stub.base_url)):
            with pytest.raises(EndpointError) as caught:
                await chat(text_request("q"))
            error = caught.value
            told.append((error.status, error.retry_after, error.transient))
        assert told[0] == told[1]
        assert stub.stats.chat_calls == 2
        await chat.close()


async def test_keys_models_and_silence():
    async with StubEndpoint(faults=[Fault(401), Fault(404), HANG]) as stub:
        chat = SdkChat("m", stub.base_url, timeout=0.05)
        with pytest.raises(AuthError, match="API key"):
            await chat(text_request("q"))
        with pytest.raises(ModelError, match="has no model 'm'"):
            await chat(text_request("q"))
        with pytest.raises(EndpointError, match="timed out") as caught:
            await chat(text_request("q"))
        assert caught.value.transient
        await chat.close()
