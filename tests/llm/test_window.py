"""The window of a model: set, told by its endpoint, known by its name, or assumed."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from clew.config import ModelSettings, RoleSettings
from clew.layout import ASSUMED_WINDOW
from clew.llm.window import OLLAMA_WINDOW, find_known_window
from clew.models import Models

LENGTH = "content-length:"


class Kept:
    """What a knowledge base keeps beside its replies."""

    def __init__(self):
        self.items = {}

    async def get(self, kind, keys):
        return {key: self.items[key] for key in keys if key in self.items}

    async def set(self, kind, items):
        self.items |= items


@asynccontextmanager
async def serving(paths):
    """Answer GET and POST by path, else 404; yields the base URL and the paths asked for."""
    asked = []

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split("\r\n")[0].split(" ")
        asked.append(f"{method} {path}")
        found = paths.get(path)
        found = found(asked) if callable(found) else found
        status = "200 OK" if found is not None else "404 No"
        size = sum(int(line[15:]) for line in head.lower().split("\r\n") if line[:15] == LENGTH)
        await reader.readexactly(size)
        raw = json.dumps(found if found is not None else {}).encode()
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", asked


async def window(url, model="m", kept=None, **more):
    settings = ModelSettings(model=model, base_url=url, **more)
    return (await Models(settings, kept or Kept()).prompt_room("answer")).window


async def test_a_setting_comes_before_the_endpoint_and_the_endpoint_before_the_name():
    told = {"/v1/models": {"data": [{"id": "gpt-4o", "max_model_len": 20_000}]}}
    async with serving(told) as (url, asked):
        assert await window(url, "gpt-4o") == 20_000
        assert await window(url, "gpt-4o", window=10_000) == 10_000
        role = RoleSettings(window=5000)
        assert await window(url, "gpt-4o", window=10_000, answer=role) == 5000
    assert asked == ["GET /v1/models"]
    async with serving({"/v1/models": {"data": [{"id": "gpt-4o"}]}}) as (url, _):
        assert await window(url, "gpt-4o") == 128_000
        assert await window(url, "somebody/model-7") == ASSUMED_WINDOW


async def test_what_an_endpoint_tells_is_kept_and_that_it_was_down_is_not():
    kept = Kept()
    assert await window("http://127.0.0.1:9/v1", "gpt-4o", kept) == ASSUMED_WINDOW
    assert not kept.items
    async with serving({"/v1/models": {"data": []}}) as (url, asked):
        for _ in range(2):
            assert await window(url, "gpt-4o", kept) == 128_000
        assert asked == ["GET /v1/models", "GET /api/ps"]


def ollama(context):
    def loaded(asked):
        one = {"name": "llama3.1:latest"} | ({"context_length": context} if context else {})
        return {"models": [one] if "POST /api/generate" in asked else []}

    listed = {"data": [{"id": "llama3.1:latest", "object": "model", "owned_by": "library"}]}
    return {"/v1/models": listed, "/api/ps": loaded, "/api/generate": {"done": True}}


@pytest.mark.parametrize(("context", "used"), [(16_384, 16_384), (None, OLLAMA_WINDOW)])
async def test_ollama_is_asked_what_it_uses_not_what_the_model_could_read(context, used):
    async with serving(ollama(context)) as (url, asked):
        assert await window(url, "llama3.1") == used
    assert asked[-3:] == ["GET /api/ps", "POST /api/generate", "GET /api/ps"]


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o-mini", 128_000),
        ("openai/gpt-4.1-nano", 1_000_000),
        ("gpt-5-mini", 272_000),
        ("gpt-4", 8_192),
        ("o3-mini", 200_000),
        ("openai/o1", 200_000),
        ("anthropic/claude-sonnet-4", 200_000),
        ("gemini-2.5-flash", 1_000_000),
        ("Qwen/Qwen2.5-7B-Instruct", 32_768),
        ("qwen3:8b", 32_768),
        ("meta-llama/Llama-3.3-70B-Instruct", 128_000),
        ("llama3:8b", 8_192),
        ("mistral-small-latest", 32_000),
        ("mixtral-8x7b", 32_000),
        ("gemma3:4b", 32_000),
        ("gemma-2-9b-it", 8_192),
        ("phi4", 16_000),
        ("deepseek-chat", 64_000),
        ("command-r-plus", 128_000),
        ("glm-4-flash", 128_000),
        ("solo1-base", None),
        ("my-model", None),
    ],
)
def test_well_known_models_are_known_by_name(model, tokens):
    assert find_known_window(model) == tokens
