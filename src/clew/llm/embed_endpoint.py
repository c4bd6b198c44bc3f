"""Embedder for OpenAI-compatible endpoints."""

import asyncio
import base64
from asyncio import AbstractEventLoop, Semaphore
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from clew.config import OPENAI_URL
from clew.errors import ConfigError, ModelError, ParseError
from clew.llm.chat import EndpointError
from clew.llm.embed import (
    EmbedRole,
    Vectors,
    describe_meaningless,
    find_meaningless,
    hash_prefix,
)
from clew.llm.limits import RetryPolicy, call_with_retries
from clew.llm.openai_api import JsonEndpoint, estimate_tokens, parse_json
from clew.types import Usage

_UNEVEN = "vectors of different or no length"


@dataclass(eq=False)
class EndpointCall:
    """A call to an endpoint, and what it has used as far as that is known."""

    used: Usage = Usage()


CallGate = Callable[[Usage], AbstractAsyncContextManager[EndpointCall]]
"""Lets a call through that will use about so much, and counts what it has used."""


@asynccontextmanager
async def _let_through(about: Usage) -> AsyncIterator[EndpointCall]:
    yield EndpointCall(about)


@dataclass(eq=False)
class EndpointEmbedder:
    """Embeds with `model` at `base_url` in concurrent batches; detects the dimension if not given.

    Safe to share between tasks and event loops.
    """

    model: str
    base_url: str = OPENAI_URL
    api_key: str = field(default="", repr=False)
    expected_dim: int | None = None
    batch: int = 64
    concurrency: int = 4
    passage_prefix: str = ""
    query_prefix: str = ""
    max_letters: int = 8_000
    """Longer texts are truncated: most endpoints reject a whole batch for one long text."""
    timeout: float = 60.0
    retry_policy: RetryPolicy = RetryPolicy()
    gate: CallGate = field(default=_let_through, repr=False)
    _semaphores: WeakKeyDictionary[AbstractEventLoop, Semaphore] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    def __post_init__(self) -> None:
        if min(self.batch, self.concurrency, self.max_letters) < 1:
            raise ConfigError("embedder: batch, concurrency and max_letters must be at least 1.")
        self._endpoint = JsonEndpoint(self.model, self.base_url, self.api_key, self.timeout)
        self._dim = self.expected_dim
        # Base64 vectors are parsed forty times faster than lists of decimals.
        self._base64 = True

    @property
    def name(self) -> str:
        """The model, and a hash of the passage prefix, since that changes the vectors."""
        return f"{self.model}{hash_prefix(self.passage_prefix)}"

    @property
    def dim(self) -> int:
        """The length of every vector, known after the first reply (or when given)."""
        if self._dim is None:
            raise ModelError(
                f"The dimension of {self.model} is not known before its first answer: await "
                "learn_dim(), or set the dimension in the settings."
            )
        return self._dim

    async def learn_dim(self) -> int:
        """Embed one short text unless the dimension is known."""
        if self._dim is None:
            await self(["dimension"])
        return self.dim

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Embed any number of texts; the first permanent failure ends the call."""
        if not texts:
            return np.zeros((0, await self.learn_dim()), np.float32)
        prefix = self.query_prefix if role == "query" else self.passage_prefix
        # Endpoints reject an empty string; a space is the closest they accept.
        ready = [(prefix + text)[: self.max_letters] or " " for text in texts]
        parts = [ready[at : at + self.batch] for at in range(0, len(ready), self.batch)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._embed_batch(part)) for part in parts]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None  # the others were cancelled because of it
        return np.concatenate([task.result() for task in tasks])

    def close(self) -> None:
        """Close idle connections now; otherwise they close with their event loop."""
        self._endpoint.http.close()

    async def _embed_batch(self, texts: list[str]) -> Vectors:
        loop = asyncio.get_running_loop()
        semaphore = self._semaphores.get(loop)
        if semaphore is None:
            semaphore = self._semaphores[loop] = Semaphore(self.concurrency)
        async with semaphore:
            await asyncio.sleep(0)  # lets this task be cancelled if another batch just failed
            return await call_with_retries(lambda: self._embed_once(texts), self.retry_policy)

    async def _embed_once(self, texts: list[str]) -> Vectors:
        """Request once; again with float lists if the endpoint rejects base64."""
        packed = self._base64  # another batch may change it meanwhile
        try:
            return await self._send(texts)
        except EndpointError as error:
            if not (packed and _rejects_base64(error)):
                raise
            self._base64 = False  # this endpoint returns vectors as lists only
        return await self._send(texts)

    async def _send(self, texts: list[str]) -> Vectors:
        async with self.gate(Usage(1, sum(map(estimate_tokens, texts)))) as call:
            return self._parse_vectors(await self._post_embeddings(texts), texts, call)

    async def _post_embeddings(self, texts: list[str]) -> bytes:
        """Send once; failures raise `EndpointError` or `AuthError`."""
        body = {
            "model": self.model,
            "input": texts,
            "encoding_format": "base64" if self._base64 else "float",
        }
        return await self._endpoint.post("/embeddings", body)

    def _parse_vectors(self, raw: bytes, texts: Sequence[str], call: EndpointCall) -> Vectors:
        """Parse, check and normalise the vectors, in the order of the texts; note the usage."""
        try:
            answer = parse_json(raw)
            call.used = _read_usage(answer) or call.used
            rows = _parse_rows(answer, len(texts))
        except ValueError as error:
            start = self._endpoint.http.filter.scrub(raw[:500])[:80].decode("utf-8", "replace")
            raise ParseError(
                f"{self.base_url} did not answer with a list of {len(texts)} embeddings "
                f"({start!r}; {error}): check the base URL and that {self.model} embeds."
            ) from error
        vectors = self._normalise(rows, texts)
        if self._dim is None:
            self._dim = rows.shape[1]
        if rows.shape[1] != self._dim:
            raise ModelError(
                f"{self.model} at {self.base_url} gave {rows.shape[1]} dimensions where "
                f"{self._dim} were expected: check the model's name and the dimension you set."
            )
        return vectors

    def _normalise(self, rows: NDArray[np.floating], texts: Sequence[str]) -> Vectors:
        """Scale vectors to length 1; one that has no direction makes the reply a failed one."""
        sizes = np.abs(rows).max(axis=1, keepdims=True)
        usable = (sizes > 0) & (sizes <= np.finfo(np.float32).max)  # false for NaN, too
        scaled = np.where(usable, rows, 0.0) / np.where(usable, sizes, 1.0)
        if len(wrong := find_meaningless(scaled)):
            raise EndpointError(
                f"{self.model} at {self.base_url} gave {describe_meaningless(texts, wrong)}.",
                transient=True,
            )
        found: Vectors = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
        return found.astype(np.float32)


def _read_usage(answer: Any) -> Usage | None:
    """The tokens that the endpoint says it has read, if it does."""
    told = answer.get("usage") if isinstance(answer, dict) else None
    tokens = told.get("prompt_tokens") if isinstance(told, dict) else None
    return Usage(1, tokens) if type(tokens) is int and tokens > 0 else None


def _parse_rows(answer: Any, count: int) -> NDArray[np.floating]:
    """Parse `data`, which may come in any order; ValueError if it does not match the texts."""
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(map(_is_embedding, items)):
        raise ValueError("its data is no list of vectors with an index each")
    items = sorted(items, key=lambda item: int(item["index"]))
    if [item["index"] for item in items] != list(range(count)):
        raise ValueError(f"{len(items)} vectors for {count} texts, or one of them twice")
    values = [item["embedding"] for item in items]
    rows = _decode_base64(values) if all(map(_is_base64, values)) else _decode_mixed(values)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(_UNEVEN)
    return rows


def _is_embedding(item: Any) -> bool:
    return isinstance(item, dict) and type(item.get("index")) is int and "embedding" in item


def _is_base64(value: Any) -> bool:
    return isinstance(value, str)


def _decode_base64(values: Sequence[str]) -> NDArray[np.floating]:
    """Decode base64 vectors of little-endian floats at once."""
    try:
        raw = [base64.b64decode(value, validate=True) for value in values]
    except ValueError as error:
        raise ValueError("a vector is no base64") from error
    if len(set(map(len, raw))) != 1 or len(raw[0]) % 4:
        raise ValueError(_UNEVEN)
    return np.frombuffer(b"".join(raw), "<f4").reshape(len(raw), -1)


def _decode_mixed(values: Sequence[Any]) -> NDArray[np.floating]:
    """Decode vectors sent as lists, possibly mixed with base64 ones."""
    try:
        rows = [_decode_base64([v])[0] if _is_base64(v) else v for v in values]
        return np.array(rows, np.float64)
    except (TypeError, OverflowError) as error:
        raise ValueError("a vector contains what is no number") from error
    except ValueError as error:  # numpy's words say nothing to who reads them
        raise ValueError(_UNEVEN) from error


def _rejects_base64(error: EndpointError) -> bool:
    """Whether the endpoint rejected the base64 encoding rather than the request."""
    message = str(error).lower()
    return error.status in (400, 415, 422) and ("encoding" in message or "base64" in message)
