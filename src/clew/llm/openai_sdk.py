"""Chat client for OpenAI-compatible endpoints over the official SDK: slower, supports proxies.

The SDK's own retries are off; `RetryingChat` retries for every client.
"""

import asyncio
import importlib
from asyncio import AbstractEventLoop
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from clew.errors import ConfigError
from clew.llm.chat import EndpointError, Reply, Request, TextCallback
from clew.llm.openai_body import ParameterSupport, build_body, endpoint_name, parse_reply
from clew.llm.openai_errors import error_from_body, error_from_response
from clew.llm.openai_stream import StreamedReply
from clew.model_settings import OPENAI_URL
from clew.version import pip_install_command


@dataclass(eq=False)
class SdkChat:
    """Chat with `model` at `base_url` through the `openai` package, version 2 or 3."""

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
        # The SDK's connections belong to the loop that opened them.
        self._clients: WeakKeyDictionary[AbstractEventLoop, Any] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """Model and endpoint; the same name as `OpenAIChat`, so both share cached replies."""
        return endpoint_name(self.model, self.base_url, self.extra)

    async def __call__(self, request: Request, /, hear: TextCallback | None = None) -> Reply:
        """Send the request; parameters the endpoint rejects are dropped from then on."""
        while True:
            body = self._parameters.adapt(
                build_body(self.model, request, streaming=hear is not None)
            )
            try:
                with self._translate_errors():
                    return await self._complete(body, request, hear)
            except EndpointError as error:
                if not self._parameters.note_refusal(error, body):
                    raise

    async def _complete(
        self, body: dict[str, Any], request: Request, hear: TextCallback | None
    ) -> Reply:
        create = self._get_client().chat.completions.create
        response = await create(**body, extra_body=dict(self.extra))
        if hear is None:
            parsed = response.model_dump()
            failure = error_from_body(parsed, {}, self.model, self.base_url)
            if failure is not None:
                raise failure
            return parse_reply(parsed, request)
        streamed = StreamedReply(hear, self.base_url)
        async with response:
            async for chunk in response:
                streamed.add_chunk(chunk.model_dump())
        return streamed.to_reply(request)

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
                f"{self.base_url} kept silent; a longer timeout may help.", transient=True
            ) from error
        except sdk.APIConnectionError as error:
            raise self._connection_error(error) from error
        except (sdk.APIError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise EndpointError(
                f"{self.base_url} answered with something that is no chat completion "
                f"({str(error)[:80]}): check the base URL, which usually ends in /v1."
            ) from error

    def _connection_error(self, error: Exception) -> EndpointError:
        reason = str(error.__cause__ or error)
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            return EndpointError(
                f"{self.base_url} shows a certificate that cannot be verified ({reason}): point "
                "SSL_CERT_FILE to the PEM file of its authority."
            )
        return EndpointError(
            f"{self.base_url} cannot be reached ({reason}); is it running?", transient=True
        )
