"""The context window of a model: from the settings, or as its endpoint reports it."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clew.errors import ClewError
from clew.llm.http import HttpClient, auth_headers
from clew.llm.local_chat import LlamaChat
from clew.llm.roles import ResolvedModel
from clew.llm.trained_model import find_model_folder

_SECONDS = 5.0  # for one look at an endpoint's list of models
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


async def find_window(at: ResolvedModel, ca_file: str = "") -> int | None:
    """Return the model's window in tokens, or None if nobody says."""
    if at.client == "llama":
        return LlamaChat.context
    if at.client == "transformers":
        return _read_config(at.model)
    client = HttpClient(at.base_url, auth_headers(at.api_key), _SECONDS, _SECONDS, ca_file=ca_file)
    try:
        async with asyncio.timeout(_SECONDS):
            head, raw = await client.get("/models")
    except (ClewError, TimeoutError):
        return None  # the call that matters will say what is wrong
    finally:
        client.close()
    return parse_window(raw, at.model) if 200 <= head.status < 300 else None


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
