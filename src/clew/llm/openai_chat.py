"""Chat clients for OpenAI-compatible endpoints: over our own HTTP client, or the official SDK."""

import asyncio
import importlib
import json
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from clew.config import OPENAI_URL
from clew.errors import ConfigError, ModelError
from clew.llm.chat import EndpointError, FinishReason, Reply, Request, TextCallback
from clew.llm.http import HttpClient, auth_headers
from clew.llm.http_response import ResponseHead
from clew.llm.openai_api import (
    ParameterSupport,
    build_body,
    encode_body,
    endpoint_name,
    error_from_body,
    error_from_response,
    join_reply,
    parse_finish_reason,
    parse_json,
    parse_reply,
    parse_usage,
    repair_surrogates,
)
from clew.llm.secrets import HeldText, make_filter
from clew.version import pip_install_command

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
        self._http = HttpClient(
            self.base_url,
            auth_headers(self.api_key),
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

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request; parameters the endpoint rejects are dropped from then on."""
        while True:
            body = build_body(self.model, request, streaming=on_text is not None) | dict(self.extra)
            body = self._parameters.adapt(body)
            raw = encode_body(body, request)
            try:
                return await (
                    self._complete_streaming(raw, request, on_text)
                    if on_text
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

    async def _complete_streaming(
        self, raw: bytes, request: Request, on_text: TextCallback
    ) -> Reply:
        """Read server-sent events; a plain JSON reply is passed to `on_text` as a whole."""
        async with aclosing(self._http.stream(CHAT_PATH, raw)) as parts:
            head = await anext(parts)
            assert isinstance(head, ResponseHead)
            if head.status != 200 or "json" in head.headers.get("content-type", ""):
                body = b"".join([part async for part in parts if isinstance(part, bytes)])
                if head.status != 200:
                    raise self._response_error(head, body)
                reply = self._parse_completion(head, body, request)
                on_text(reply.text)
                return reply
            held = HeldText(self._http.filter, on_text)
            pieces = StreamedReply(held, self.base_url, request)
            async for event in _iter_events(parts):
                pieces.add_event(event)
            held.flush()
            return self._http.filter.scrub_reply(pieces.to_reply())

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
                f"{self.base_url} did not answer with a chat completion "
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


class StreamedReply:
    """Accumulates the events of one reply and forwards its text.

    Of tool calls, the arguments are forwarded that give the answer; calls of tools are not.
    """

    def __init__(self, on_text: TextCallback, base_url: str, request: Request) -> None:
        self._on_text = on_text
        self._base_url = base_url
        self._request = request
        self._texts: list[str] = []
        self._calls: list[_StreamedCall] = []
        self._usage: Any = None
        self._finish: FinishReason | None = None
        self._model = ""

    def add_event(self, event: bytes) -> None:
        """Add the payload of one event."""
        if event == b"[DONE]":
            self._finish = self._finish or "stop"
            return
        try:
            chunk = parse_json(event)
        except ValueError as error:
            raise self._error("sent an event that is not JSON") from error
        self.add_chunk(chunk)

    def add_chunk(self, chunk: Any) -> None:
        """Add one parsed event."""
        if not isinstance(chunk, dict) or chunk.get("error"):
            raise self._error(f"sent an error in the stream ({str(chunk)[:300]})", transient=True)
        self._model = repair_surrogates(str(chunk.get("model") or self._model))
        self._usage = chunk.get("usage") or self._usage
        try:
            heard = self._add_choice(chunk)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            data = str(chunk)[:80]
            raise self._error(f"sent an event that is not part of a completion ({data})") from error
        if heard:
            self._on_text(heard)

    def _add_choice(self, chunk: Mapping[str, Any]) -> str:
        """Add the text, tool calls and finish reason of an event; return what to forward."""
        choices = chunk.get("choices") or ()
        if not choices:  # the usage comes in an event of its own
            return ""
        if reason := choices[0].get("finish_reason"):
            self._finish = parse_finish_reason(reason)
        delta = choices[0].get("delta") or {}
        text = repair_surrogates(str(delta.get("content") or delta.get("refusal") or ""))
        self._texts.append(text)
        parts = [self._add_call(part) for part in delta.get("tool_calls") or ()]
        return "".join(parts if self._offers_tools else (text, *parts))

    def _add_call(self, part: Mapping[str, Any]) -> str:
        """Add a part of a tool call; some endpoints give all calls the same index, or none.

        Return what was added to the call that gives the answer.
        """
        given, function = part.get("id"), part.get("function") or {}
        index = part.get("index")
        call = next((one for one in reversed(self._calls) if index in (None, one.index)), None)
        if call is None or (given and call.id and given != call.id):
            call = _StreamedCall(index, given or "")
            self._calls.append(call)
        call.name = call.name or function.get("name") or ""
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        arguments = repair_surrogates(arguments)
        call.texts.append(arguments)
        shape = self._request.response_format
        own = call.name == shape.name if shape and self._offers_tools else call is self._calls[0]
        return arguments if own else ""

    @property
    def _offers_tools(self) -> bool:
        shape = self._request.response_format
        return shape is not None and shape.offers_tools

    def to_reply(self) -> Reply:
        """Build the reply; a stream without a finish reason is an error."""
        if self._finish is None:
            raise self._error("closed the stream before the reply was complete", transient=True)
        calls = [(call.name, "".join(call.texts)) for call in self._calls]
        text = join_reply(self._request, calls, "".join(self._texts))
        usage = parse_usage(self._usage, self._request, text)
        return Reply(text, usage, self._finish, self._model)

    def _error(self, what: str, transient: bool = False) -> EndpointError:
        return EndpointError(f"{self._base_url} {what}.", transient=transient)


@dataclass
class _StreamedCall:
    """A tool call as far as it has arrived."""

    index: int | None
    id: str
    name: str = ""
    texts: list[str] = field(default_factory=list)


@dataclass(eq=False)
class SdkChat:
    """Chat with `model` at `base_url` through the `openai` package (2 or 3), which is slower."""

    model: str
    base_url: str = OPENAI_URL
    api_key: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 300.0

    def __post_init__(self) -> None:
        try:
            self._openai: Any = importlib.import_module("openai")
        except ImportError as error:
            raise ConfigError(
                f"client 'sdk' needs the openai package: {pip_install_command('openai')}, or use "
                "client 'http', which needs nothing."
            ) from error
        self._parameters = ParameterSupport()
        self._filter = make_filter([self.api_key])
        # The SDK's connections belong to the loop that opened them.
        self._clients: WeakKeyDictionary[AbstractEventLoop, Any] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """Model and endpoint; the same name as `OpenAIChat`, so both share cached replies."""
        return endpoint_name(self.model, self.base_url, self.extra)

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request; parameters the endpoint rejects are dropped from then on."""
        while True:
            body = self._parameters.adapt(
                build_body(self.model, request, streaming=on_text is not None)
            )
            try:
                with self._translate_errors():
                    reply = await self._complete(body, request, on_text)
                return self._filter.scrub_reply(reply)
            except ModelError as error:
                self._filter.scrub_error(error)
                if not isinstance(error, EndpointError):
                    raise
                if not self._parameters.note_refusal(error, body):
                    raise

    async def _complete(
        self, body: dict[str, Any], request: Request, on_text: TextCallback | None
    ) -> Reply:
        create = self._get_client().chat.completions.create
        response = await create(**body, extra_body=dict(self.extra))
        if on_text is None:
            parsed = response.model_dump()
            failure = error_from_body(parsed, {}, self.model, self.base_url)
            if failure is not None:
                raise failure
            return parse_reply(parsed, request)
        held = HeldText(self._filter, on_text)
        streamed = StreamedReply(held, self.base_url, request)
        async with response:
            async for chunk in response:
                streamed.add_chunk(chunk.model_dump())
        held.flush()
        return streamed.to_reply()

    def _get_client(self) -> Any:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = self._openai.AsyncOpenAI(
                base_url=self.base_url,
                api_key=self.api_key or "none",
                max_retries=0,
                timeout=self.timeout,
            )
        return client

    async def close(self) -> None:
        """Close this loop's connections."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate the SDK's exceptions into ours."""
        sdk = self._openai
        try:
            yield
        except sdk.APIStatusError as error:
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            raw = error.response.content
            raise error_from_response(
                error.status_code, headers, raw, self.model, self.base_url
            ) from error
        except sdk.APITimeoutError as error:
            raise EndpointError(
                f"{self.base_url} timed out; a longer timeout may help.", transient=True
            ) from error
        except sdk.APIConnectionError as error:
            raise self._connection_error(error) from error
        except (sdk.APIError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise EndpointError(
                f"{self.base_url} did not answer with a chat completion "
                f"({str(error)[:80]}): check the base URL, which usually ends in /v1."
            ) from error

    def _connection_error(self, error: Exception) -> EndpointError:
        reason = str(error.__cause__ or error)
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            return EndpointError(
                f"{self.base_url} has a certificate that cannot be verified ({reason}): point "
                "SSL_CERT_FILE to the PEM file of its authority."
            )
        return EndpointError(
            f"{self.base_url} cannot be reached ({reason}); check the address", transient=True
        )
