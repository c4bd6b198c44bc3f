import asyncio
import sys
import time
from types import ModuleType

import pytest

from clew.errors import ConfigError
from clew.llm.chat import EndpointError, Message, Request, ResponseFormat, stream_text, text_request
from clew.llm.local_chat import LlamaChat
from clew.llm.structured import StructuredRequest, ask_structured


class FakeLlama:
    """Stands for llama_cpp.Llama: says its last message word by word."""

    made = []
    asked = []
    running = most = 0
    pause = 0.0

    def __init__(self, path, **options):
        FakeLlama.made.append((path, options))

    def create_chat_completion(self, *, messages, **options):
        FakeLlama.asked.append(options)
        FakeLlama.running += 1
        FakeLlama.most = max(FakeLlama.most, FakeLlama.running)
        try:
            if "response_format" in options:
                words = ['{"names": ', '["Ada"]}']
            else:
                words = [word + " " for word in messages[-1]["content"].split()]
            for word in words:
                time.sleep(FakeLlama.pause)
                yield {"choices": [{"delta": {"content": word}, "finish_reason": None}]}
            yield {"choices": [{"delta": {}, "finish_reason": "length"}]}
        finally:
            FakeLlama.running -= 1


@pytest.fixture
def chat(monkeypatch, tmp_path):
    library = ModuleType("llama_cpp")
    library.Llama = FakeLlama
    monkeypatch.setitem(sys.modules, "llama_cpp", library)
    monkeypatch.setattr(FakeLlama, "made", [])
    monkeypatch.setattr(FakeLlama, "asked", [])
    monkeypatch.setattr(FakeLlama, "pause", 0.0)
    monkeypatch.setattr(FakeLlama, "most", 0)
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    return LlamaChat(str(tmp_path / "tiny.gguf"))


async def test_a_model_file_answers_in_this_process(chat):
    reply = await chat(text_request("one two three"))
    assert (reply.text, reply.finish, reply.model) == ("one two three ", "length", "tiny.gguf")
    assert reply.usage.completion_tokens == 3
    assert [piece async for piece in stream_text(chat, text_request("a b"))] == ["a ", "b "]
    assert len(FakeLlama.made) == 1
    assert chat.name == "tiny.gguf in this process"


async def test_one_generation_runs_at_a_time(chat):
    FakeLlama.pause = 0.002
    await asyncio.gather(*[chat(text_request("x y z")) for _ in range(5)])
    assert FakeLlama.most == 1


async def test_json_is_asked_for_by_grammar(chat):
    from pydantic import BaseModel

    class Names(BaseModel):
        names: list[str]

    answer = await ask_structured(chat, StructuredRequest("names", Names, text_request("Ada sat.")))
    assert answer.value.names == ["Ada"]
    assert FakeLlama.asked[0]["response_format"]["schema"]["properties"]
    with pytest.raises(EndpointError):
        await chat(
            Request((Message("user", "q"),), response_format=ResponseFormat("tool", "s", {}))
        )


async def test_a_cancelled_call_stops_generating(chat):
    FakeLlama.pause = 0.01
    call = asyncio.ensure_future(chat(text_request("word " * 200)))
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    began = time.monotonic()
    await chat(text_request("next"))
    assert time.monotonic() - began < 1


async def test_what_is_missing_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(ConfigError, match=r"pip install .*\[llama\]'"):
        await LlamaChat("x.gguf")(text_request("q"))
    monkeypatch.setitem(sys.modules, "llama_cpp", ModuleType("llama_cpp"))
    with pytest.raises(ConfigError, match="no model file 'x.gguf'"):
        await LlamaChat("x.gguf")(text_request("q"))
