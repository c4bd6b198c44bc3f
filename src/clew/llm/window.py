"""The context window of a model: from the settings, or as its endpoint reports it."""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clew.errors import ClewError
from clew.llm.http import HttpClient, auth_headers
from clew.llm.local_chat import LlamaChat
from clew.llm.roles import ResolvedModel
from clew.llm.trained_model import find_model_folder

_SECONDS = 5.0  # for one look at an endpoint's list of models
_LOAD_SECONDS = 60.0  # for Ollama to load the model, which the next call would wait for anyway
OLLAMA_WINDOW = 4096
"""What Ollama reads of a prompt unless it is told otherwise, on GPUs below 24 GB."""
_MIN_WINDOW, _MAX_WINDOW = 1024, 100_000_000
# Names under which servers report it: vLLM; OpenRouter, Together; Groq; LM Studio, Mistral;
# llama.cpp's server (in `meta`).
_FIELDS = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "n_ctx",
    "n_ctx_train",
)
# By name, first match; of a family whose members differ, the least of those in use.
_KNOWN = (
    (r"gpt-4o|gpt-4-turbo|gpt-5-chat|chatgpt-4o|gpt-oss", 128_000),
    (r"gpt-4\.1", 1_000_000),
    (r"gpt-5", 272_000),
    (r"gpt-4", 8_192),
    (r"gpt-3\.5", 16_000),
    (r"(?:^|/)o1-(?:mini|preview)", 128_000),
    (r"(?:^|/)o[134](?:$|-)", 200_000),
    (r"claude-(?:2|instant)", 100_000),
    (r"claude", 200_000),
    (r"gemini-1\.0|gemini-pro", 32_000),
    (r"gemini", 1_000_000),
    (r"deepseek-coder", 16_000),
    (r"deepseek", 64_000),
    (r"qwen-?[23]|qwq", 32_768),
    (r"llama-?(?:3[.-][123]|4)", 128_000),
    (r"llama-?3", 8_192),
    (r"mistral-nemo|command-r|glm-4", 128_000),
    (r"mistral|mixtral|ministral|glm|gemma-?3", 32_000),
    (r"gemma", 8_192),
    (r"phi-?4", 16_000),
    (r"phi-?3", 4_096),
)


async def find_window(at: ResolvedModel, ca_file: str = "") -> int | None:
    """Return the model's window as its endpoint tells it; 0: it does not, None: it cannot be asked.

    Ollama cuts longer prompts without a word, mostly at far less than the model could read: it
    tells what it uses once the model is loaded.
    """
    if at.client == "llama":
        return LlamaChat.context
    if at.client == "transformers":
        return _read_config(at.model)
    try:
        if window := parse_window(await _call(at, ca_file, at.base_url, "/models"), at.model):
            return window
        root = at.base_url.rstrip("/").removesuffix("/v1")
        window = _parse_loaded(await _call(at, ca_file, root, "/api/ps"), at.model)
        if window == 0:
            load = json.dumps({"model": at.model, "stream": False}).encode()
            await _call(at, ca_file, root, "/api/generate", load)
            window = _parse_loaded(await _call(at, ca_file, root, "/api/ps"), at.model)
        return 0 if window is None else window or OLLAMA_WINDOW
    except (ClewError, TimeoutError):
        return None  # the call that matters will say what is wrong


async def _call(
    at: ResolvedModel, ca_file: str, root: str, path: str, body: bytes | None = None
) -> bytes:
    """Return what an address answers, b"" if it refuses."""
    seconds = _SECONDS if body is None else _LOAD_SECONDS
    client = HttpClient(root, auth_headers(at.api_key), _SECONDS, seconds, ca_file=ca_file)
    try:
        async with asyncio.timeout(seconds):
            head, raw = await (client.get(path) if body is None else client.post(path, body))
    finally:
        client.close()
    return raw if 200 <= head.status < 300 else b""


def find_known_window(model: str) -> int | None:
    """Return the window of a well-known model by its name, rather too small than too large."""
    name = model.casefold()
    return next((window for names, window in _KNOWN if re.search(names, name)), None)


def parse_window(raw: bytes, model: str) -> int | None:
    """Find the window of a model in an endpoint's list of models."""
    try:
        listed = json.loads(raw)["data"]
        [found] = [one for one in listed if one.get("id") == model] or listed[:1]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    for part in (found, found.get("meta"), found.get("top_provider")):
        if isinstance(part, Mapping) and (window := _pick(part)):
            return window
    return None


def _parse_loaded(raw: bytes, model: str) -> int | None:
    """Find the window of a model that Ollama has loaded; 0: not told, None: it is not Ollama."""
    try:
        listed = json.loads(raw)["models"]
        names = (model, f"{model}:latest")
        return next((_pick(one) or 0 for one in listed if one.get("name") in names), 0)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _pick(part: Mapping[str, Any]) -> int | None:
    for name in _FIELDS:
        value = part.get(name)
        if isinstance(value, int) and _MIN_WINDOW <= value <= _MAX_WINDOW:
            return value
    return None


def _read_config(folder: str) -> int | None:
    """Read a folder's `max_position_embeddings`; an adapter's base model is not looked up."""
    found = find_model_folder(Path(folder))
    path = found / "config.json" if found else None
    if path is None or not path.is_file():
        return None
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    value = config.get("max_position_embeddings") if isinstance(config, dict) else None
    return value if isinstance(value, int) and value >= _MIN_WINDOW else None
