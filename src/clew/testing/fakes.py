"""Deterministic fakes: an embedder that hashes words, and scripted chat models."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import count
from typing import Any

import numpy as np

from clew.llm.chat import Reply, Request, TextCallback
from clew.llm.embed import EmbedRole, Passage, Vectors
from clew.llm.openai_api import estimate_prompt_tokens, estimate_tokens
from clew.text.unicode import hash64, split_words
from clew.types import Usage

ScriptedReply = str | Reply | Exception
Messages = Sequence[Mapping[str, Any]]
PromptReply = str | Mapping[str, Any] | Callable[[str], Any] | Sequence[Any]
"""A reply, a function of the last message, or several replies given in turn."""
_name_counter = count(1)


@lru_cache(20_000)
def _find_direction(word: str, dim: int) -> Vectors:
    # To seed a generator costs more than all else that a test's embedding does.
    found = np.random.default_rng(hash64(word)).standard_normal(dim).astype(np.float32)
    found.flags.writeable = False
    return found


class HashEmbed:
    """Embeds a text as a hashed bag of words: texts that share words are close."""

    def __init__(self, name: str = "hash", dim: int = 64) -> None:
        self._name = name
        self._dim = dim
        self.texts = 0
        """Number of texts embedded, to show that none is embedded twice."""

    @property
    def name(self) -> str:
        """The name that the manifest records."""
        return self._name

    @property
    def dim(self) -> int:
        """The length of every vector."""
        return self._dim

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Sum a pseudo-random direction per word."""
        if role == "passage":
            self.texts += len(texts)
        vectors = np.zeros((len(texts), self._dim), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in split_words(text) or [text]:
                row += _find_direction(word, self._dim)
            length = float(np.linalg.norm(row))
            row /= length or 1.0
        return vectors


class QuotingEmbed(HashEmbed):
    """Embeds the parts of a text in their context: half their own words, half those of the text."""

    async def embed_quotes(self, passages: Sequence[Passage], /) -> Vectors:
        """Embed texts and parts of them."""
        rows = [np.zeros((0, self.dim), np.float32)]
        for text, spans in passages:
            parts = await self([text, *(text[start:end] for start, end in spans)])
            parts[1:] = (parts[1:] + parts[0]) / 2
            rows.append(parts / np.maximum(np.linalg.norm(parts, axis=1, keepdims=True), 1e-9))
        return np.concatenate(rows)


@dataclass(eq=False)
class ScriptedChat:
    """Replies from a list in order, or by a function of the request; records every request.

    An exception in the script, or in `failures` under the number of the call, is raised.
    """

    script: Sequence[ScriptedReply] | Callable[[Request], ScriptedReply]
    failures: Mapping[int, Exception] = field(default_factory=dict)
    # A unique name: what is learned about one model (JSON modes) must not apply to another.
    name: str = field(default_factory=lambda: f"scripted {next(_name_counter)}")
    requests: list[Request] = field(default_factory=list, init=False)

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Return the next scripted reply."""
        number = len(self.requests)
        self.requests.append(request)
        if number in self.failures:
            raise self.failures[number]
        scripted = self._next_reply(request, number)
        if isinstance(scripted, Exception):
            raise scripted
        reply = scripted if isinstance(scripted, Reply) else _to_reply(request, scripted)
        for start in range(0, len(reply.text) if on_text else 0, 8):
            assert on_text is not None
            on_text(reply.text[start : start + 8])
        return reply

    def _next_reply(self, request: Request, number: int) -> ScriptedReply:
        if callable(self.script):
            return self.script(request)
        if number >= len(self.script):
            raise AssertionError(
                f"{self.name} has {len(self.script)} lines and was asked once more: "
                f"{request.messages[-1].content[:200]!r}"
            )
        return self.script[number]


def _to_reply(request: Request, text: str) -> Reply:
    return Reply(
        text,
        Usage(1, estimate_prompt_tokens(request.messages), estimate_tokens(text)),
        "stop",
        "scripted",
    )


_INPUT = re.compile(r"\$\w+")


@cache
def _first_lines() -> list[tuple[re.Pattern[str], str]]:
    """Return patterns of the first line of each prompt file, its inputs open, with its name."""
    names = []
    for file in (files("clew") / "prompts").iterdir():
        if file.name.endswith(".md"):
            first = file.read_text(encoding="utf-8").strip().splitlines()[0]
            pattern = ".*".join(map(re.escape, _INPUT.split(first)))
            names.append((re.compile(pattern), file.name.split(".")[0]))
    return names


def prompt_name(messages: Messages) -> str:
    """Return the name of the prompt these messages were made from; empty if unknown."""
    first = str(messages[0].get("content") or "") if messages else ""
    line = first.strip().splitlines()[0] if first.strip() else ""
    return next((name for pattern, name in _first_lines() if pattern.fullmatch(line)), "")


@dataclass
class AgentScript:
    """Replies by prompt name; `prompts` lists the prompts in the order they came.

    What is said to `read` is also said to `read_graph`, unless that has a reply of its own.
    """

    replies: Mapping[str, PromptReply]
    prompts: list[str] = field(default_factory=list)

    def __call__(self, messages: Messages) -> str:
        """Return the scripted reply for this prompt, `{}` if there is none."""
        name = prompt_name(messages)
        before = self.prompts.count(name)
        self.prompts.append(name)
        reply: Any = self.replies.get(name, self.replies.get(name.removesuffix("_graph"), {}))
        if isinstance(reply, list | tuple):
            reply = reply[min(before, len(reply) - 1)]
        if callable(reply):
            reply = reply(str(messages[-1].get("content") or ""))
        return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
