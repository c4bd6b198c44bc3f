"""Chat client for OpenAI-compatible endpoints, over our own HTTP client."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from clew.errors import ModelError
from clew.llm.chat import EndpointError, Hear, Reply, Request
from clew.llm.framing import Answer
from clew.llm.openai_body import (
    Dialect,
    body_of,
    endpoint_name,
    read_json,
    reply_of,
    written,
)
from clew.llm.openai_errors import error_of, failure_in
from clew.llm.openai_stream import Pieces
from clew.llm.wire import Wire
from clew.model_settings import OPENAI

PATH = "/chat/completions"


@dataclass(eq=False)
class OpenAIChat:
    """Chat with `model` at `base_url`; safe to share between tasks and event loops."""

    model: str
    base_url: str = OPENAI
    api_key: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Added to every request body, for example `{"reasoning_effort": "low"}`."""
    connect_timeout: float = 10.0
    read_timeout: float = 300.0
    max_body: int = 32 * 1024 * 1024
    ca_file: str = ""

    def __post_init__(self) -> None:
        auth = {"Authorization": f"Bearer {self.api_key.strip()}"} if self.api_key else {}
        self._wire = Wire(
            self.base_url,
            {"Accept": "*/*", "User-Agent": "clew", **auth},
            self.connect_timeout,
            self.read_timeout,
            self.max_body,
            self.ca_file,
        )
        self._dialect = Dialect()

    @property
    def name(self) -> str:
        """Model, endpoint and extra parameters."""
        return endpoint_name(self.model, self.base_url, self.extra)

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Send the request; parameters the endpoint rejects are dropped from then on."""
        while True:
            body = body_of(self.model, request, streaming=hear is not None) | dict(self.extra)
            body = self._dialect.spell(body)
            raw = written(body, request)
            try:
                return await (self._listen(raw, request, hear) if hear else self._ask(raw, request))
            except EndpointError as error:
                if not self._dialect.learn(error, body):
                    raise

    async def _ask(self, raw: bytes, request: Request) -> Reply:
        head, body = await self._wire.post(PATH, raw)
        if head.status != 200:
            raise self._error(head, body)
        return self._read(head, body, request)

    async def _listen(self, raw: bytes, request: Request, hear: Hear) -> Reply:
        """Read server-sent events; a plain JSON reply is passed to `hear` as a whole."""
        async with aclosing(self._wire.exchange(PATH, raw)) as parts:
            head = await anext(parts)
            assert isinstance(head, Answer)
            if head.status != 200 or "json" in head.headers.get("content-type", ""):
                body = b"".join([part async for part in parts if isinstance(part, bytes)])
                if head.status != 200:
                    raise self._error(head, body)
                reply = self._read(head, body, request)
                hear(reply.text)
                return reply
            pieces = Pieces(hear, self.base_url)
            async for event in _events(parts):
                pieces.take(event)
            return pieces.reply(request)

    def _read(self, head: Answer, body: bytes, request: Request) -> Reply:
        try:
            parsed = read_json(body)
            failure = failure_in(parsed, head.headers, self.model, self.base_url)
            if failure is not None:
                raise failure
            return reply_of(parsed, request)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            start = body[:80].decode("utf-8", "replace")
            raise EndpointError(
                f"{self.base_url} answered with something that is no chat completion "
                f"({start!r}): check the base URL, which usually ends in /v1."
            ) from error

    def _error(self, head: Answer, body: bytes) -> ModelError:
        return error_of(head.status, head.headers, body, self.model, self.base_url)

    def close(self) -> None:
        """Close idle connections now; otherwise they close with their event loop."""
        self._wire.close()


async def _events(parts: AsyncIterator[Answer | bytes]) -> AsyncIterator[bytes]:
    """Split a byte stream into the payloads of its `data:` lines."""
    buffer = b""
    async for part in parts:
        assert isinstance(part, bytes)
        *lines, buffer = (buffer + part).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()
    if buffer.startswith(b"data:"):
        yield buffer[5:].strip()
