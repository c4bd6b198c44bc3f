"""Records real model replies in a file and replays them in tests.

A request is keyed by its prompt and question, not by its evidence: retrieval may change without
invalidating the recordings.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from clew.llm.cache import FINISH_REASONS
from clew.llm.chat import Chat, Reply, Request, TextCallback
from clew.llm.openai_api import estimate_prompt_tokens, estimate_tokens
from clew.types import Usage

_FENCED = re.compile(r"\[\[\w+ ([0-9a-f]{8})\]\]\n.*?\n\[\[end \1\]\]", re.DOTALL)
_KNOWLEDGE = re.compile(r"<knowledge>.*?</knowledge>", re.DOTALL)


def request_key(request: Request) -> str:
    """Hash a request's messages without the documents in them."""
    messages = [
        f"{turn.role}:{_KNOWLEDGE.sub('', _FENCED.sub('', turn.content))}"
        for turn in request.messages
    ]
    return blake2b("\n".join(messages).encode("utf-8", "replace"), digest_size=12).hexdigest()


def prompt_key(request: Request) -> str:
    """Hash only the prompt: the fallback when a question was not recorded."""
    first = request.messages[0].content if request.messages else ""
    return blake2b(first.encode("utf-8", "replace"), digest_size=6).hexdigest()


@dataclass(eq=False)
class RecordingChat:
    """Chat wrapper that records a row per call."""

    inner: Chat
    row_fields: Mapping[str, str]
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The same for every recording."""
        return "recorded"

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Call the inner model and record its reply."""
        reply = await self.inner(request, on_text)
        row = {**self.row_fields, "key": request_key(request), "prompt": prompt_key(request)}
        self.rows.append({**row, "text": reply.text, "finish": reply.finish})
        return reply


@dataclass(eq=False)
class ReplayChat:
    """Replays recorded replies in order; the last one repeats when more are requested."""

    rows: Iterable[Mapping[str, Any]]
    miss_count: int = 0
    """Requests that were not recorded; they got another reply to the same prompt."""
    request_count: int = 0
    _by_key: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _by_prompt: dict[str, str] = field(default_factory=dict)
    _replayed: Counter[str] = field(default_factory=Counter)
    _finish: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.rows:
            self._by_key[row["key"]].append(row["text"])
            self._by_prompt.setdefault(row["prompt"], row["text"])
            self._finish[row["text"]] = row["finish"]

    @property
    def name(self) -> str:
        """The same for every recording."""
        return "recorded"

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Return the reply recorded for this question."""
        key = request_key(request)
        self.request_count += 1
        known = self._by_key.get(key)
        if known:
            text = known[min(self._replayed[key], len(known) - 1)]
            self._replayed[key] += 1
        else:
            self.miss_count += 1
            text = self._by_prompt.get(prompt_key(request), "")
        if on_text is not None:
            on_text(text)
        usage = Usage(1, estimate_prompt_tokens(request.messages), estimate_tokens(text))
        return Reply(
            text, usage, FINISH_REASONS.get(self._finish.get(text, "stop"), "stop"), "recorded"
        )


def load_rows(file: Path) -> list[dict[str, Any]]:
    """Read recorded rows."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
