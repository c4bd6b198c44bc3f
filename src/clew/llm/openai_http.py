"""Chat client for OpenAI-compatible endpoints, over our own HTTP client."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from clew.errors import ModelError
from clew.llm.chat import EndpointError, Reply, Request, TextCallback
from clew.llm.framing import ResponseHead
from clew.llm.openai_body import (
    ParameterSupport,
    build_body,
    encode_body,
    endpoint_name,
    parse_json,
    parse_reply,
)
from clew.llm.openai_errors import error_from_body, error_from_response
from clew.llm.openai_stream import StreamedReply
from clew.llm.wire import HttpClient
from clew.model_settings import OPENAI_URL

CHAT_PATH = "/chat/completions"


@dataclass(eq=False)
class OpenAIChat:
    """Chat with `model` at `base_url`; safe to share between tasks and event loops."""

    model: str
    base_url: str = OPENAI_URL
    api_key: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Added to every request body, for example `{"reasoning_effort": "low"}`."""
    connect_timeout: float = 10.0
    read_timeout: float = 300.0
    max_body: int = 32 * 1024 * 1024
    ca_file: str = ""

    def __post_init__(self) -> None:
        auth = {"Authorization": f"Bearer {self.api_key.strip()}"} if self.api_key else {}
        self._http = HttpClient(
            self.base_url,
            {"Accept": "*/*", "User-Agent": "clew", **auth},
            self.connect_timeout,
            self.read_timeout,
            self.max_body,
            self.ca_file,
        )
        self._parameters = ParameterSupport()

    @property
    def name(self) -> str:
        """Model, endpoint and extra parameters."""
        return endpoint_name(self.model, self.base_url, self.extra)

    async def __call__(self, request: Request, /, hear: TextCallback | None = None) -> Reply:
        """Send the request; parameters the endpoint rejects are dropped from then on."""
        while True:
            body = build_body(self.model, request, streaming=hear is not None) | dict(self.extra)
            body = self._parameters.adapt(body)
            raw = encode_body(body, request)
            try:
                return await (
                    self._complete_streaming(raw, request, hear)
                    if hear
                    else self._complete(raw, request)
                )
            except EndpointError as error:
                if not self._parameters.note_refusal(error, body):
                    raise

    async def _complete(self, raw: bytes, request: Request) -> Reply:
        head, body = await self._http.post(CHAT_PATH, raw)
        if head.status != 200:
            raise self._response_error(head, body)
        return self._parse_completion(head, body, request)

    async def _complete_streaming(self, raw: bytes, request: Request, hear: TextCallback) -> Reply:
        """Read server-sent events; a plain JSON reply is passed to `hear` as a whole."""
        async with aclosing(self._http.stream(CHAT_PATH, raw)) as parts:
            head = await anext(parts)
            assert isinstance(head, ResponseHead)
            if head.status != 200 or "json" in head.headers.get("content-type", ""):
                body = b"".join([part async for part in parts if isinstance(part, bytes)])
                if head.status != 200:
                    raise self._response_error(head, body)
                reply = self._parse_completion(head, body, request)
                hear(reply.text)
                return reply
            pieces = StreamedReply(hear, self.base_url)
            async for event in _iter_events(parts):
                pieces.add_event(event)
            return pieces.to_reply(request)

    def _parse_completion(self, head: ResponseHead, body: bytes, request: Request) -> Reply:
        try:
            parsed = parse_json(body)
            failure = error_from_body(parsed, head.headers, self.model, self.base_url)
            if failure is not None:
                raise failure
            return parse_reply(parsed, request)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            start = body[:80].decode("utf-8", "replace")
            raise EndpointError(
                f"{self.base_url} answered with something that is no chat completion "
                f"({start!r}): check the base URL, which usually ends in /v1."
            ) from error

    def _response_error(self, head: ResponseHead, body: bytes) -> ModelError:
        return error_from_response(head.status, head.headers, body, self.model, self.base_url)

    def close(self) -> None:
        """Close idle connections now; otherwise they close with their event loop."""
        self._http.close()


async def _iter_events(parts: AsyncIterator[ResponseHead | bytes]) -> AsyncIterator[bytes]:
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
