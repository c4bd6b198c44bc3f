"""Embeddings from any OpenAI-compatible endpoint."""

import asyncio
import base64
import hashlib
import json
import random
import time
from asyncio import AbstractEventLoop, Semaphore
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError, ModelError, ParseError
from clew.llm.chat import EndpointError
from clew.llm.embed import Role, Vectors
from clew.llm.openai_body import error_of
from clew.llm.retry import Patience

if TYPE_CHECKING:
    import httpx  # takes a quarter of a second, so it waits for the first request

OPENAI = "https://api.openai.com/v1"


@dataclass(eq=False)
class EndpointEmbed:
    """Asks `model` at `base_url`, in batches, several at once; learns the dimension if not given.

    Safe to share between tasks and event loops. Connections close with their loop, or by `aclose`.
    """

    model: str
    base_url: str = OPENAI
    api_key: str = field(default="", repr=False)
    expected_dim: int | None = None
    batch: int = 64
    concurrency: int = 4
    passage_prefix: str = ""
    query_prefix: str = ""
    max_letters: int = 8_000
    """Longer texts are cut: most endpoints refuse a whole batch for one that is too long."""
    timeout: float = 60.0
    patience: Patience = Patience()
    _links: WeakKeyDictionary[AbstractEventLoop, "_Link"] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )

    def __post_init__(self) -> None:
        if min(self.batch, self.concurrency, self.max_letters) < 1:
            raise ConfigError("batch, concurrency and max_letters of an embedder are at least 1.")
        if not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"base_url {self.base_url!r} is no web address: write it as http://host:port/v1."
            )
        if not (self.api_key.isascii() and self.api_key.isprintable()):
            raise ConfigError(
                f"The API key for {self.base_url} holds a line break or a letter outside ASCII: "
                "copy it again."
            )
        self._dim = self.expected_dim
        # Base64 vectors are read forty times faster than lists of decimals.
        self._packed = True

    @property
    def name(self) -> str:
        """The model, and a mark of what is put before passages, since that changes the vectors."""
        if not self.passage_prefix:
            return self.model
        return f"{self.model}+{hashlib.sha256(self.passage_prefix.encode()).hexdigest()[:8]}"

    @property
    def dim(self) -> int:
        """The length of every vector, known once an answer came (or when given)."""
        if self._dim is None:
            raise ModelError(
                f"The dimension of {self.model} is not known before its first answer: await "
                "learn_dim(), or set the dimension in the settings."
            )
        return self._dim

    async def learn_dim(self) -> int:
        """Ask for one short vector unless the dimension is known."""
        if self._dim is None:
            await self(["dimension"])
        return self.dim

    async def __call__(self, texts: Sequence[str], /, *, role: Role = "passage") -> Vectors:
        """Embed a batch of any size; the first failure that does not pass ends it."""
        if not texts:
            return np.zeros((0, await self.learn_dim()), np.float32)
        prefix = self.query_prefix if role == "query" else self.passage_prefix
        # Endpoints refuse an empty string; a space is the nearest thing they take.
        ready = [(prefix + text)[: self.max_letters] or " " for text in texts]
        parts = [ready[at : at + self.batch] for at in range(0, len(ready), self.batch)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._embed(part)) for part in parts]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None  # the others were stopped because of it
        return np.concatenate([task.result() for task in tasks])

    async def aclose(self) -> None:
        """Close this loop's connections now."""
        link = self._links.pop(asyncio.get_running_loop(), None)
        if link is not None:
            await link.client.aclose()

    async def _embed(self, texts: list[str]) -> Vectors:
        link = await self._link()
        async with link.gate:
            began, failures = time.monotonic(), 0
            while True:
                try:
                    return self._read(await self._post(link.client, texts), len(texts))
                except EndpointError as error:
                    if self._packed and _about_encoding(error):
                        self._packed = False  # this endpoint knows vectors as lists only
                        continue
                    failures += 1
                    if not error.transient:
                        raise
                    pause = self._pause(error, failures, time.monotonic() - began)
                await asyncio.sleep(pause)

    async def _post(self, client: "httpx.AsyncClient", texts: list[str]) -> bytes:
        """Send once; whatever goes wrong is an `EndpointError` or an `AuthError`."""
        import httpx

        body = {
            "model": self.model,
            "input": texts,
            "encoding_format": "base64" if self._packed else "float",
        }
        raw = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            answer = await client.post("embeddings", content=raw)
        except httpx.TimeoutException as error:
            raise EndpointError(
                f"{self.base_url} kept silent for {self.timeout:g} s; a longer timeout may help.",
                transient=True,
            ) from error
        except httpx.TransportError as error:
            raise EndpointError(
                f"{self.base_url} cannot be reached ({error or type(error).__name__}); is it "
                "running?",
                transient=True,
            ) from error
        except httpx.HTTPError as error:
            raise EndpointError(f"{self.base_url} answered badly ({error}).") from error
        if answer.status_code != 200:
            headers = {name.lower(): value for name, value in answer.headers.items()}
            raise error_of(answer.status_code, headers, answer.content, self.model, self.base_url)
        return answer.content

    def _pause(self, error: EndpointError, failures: int, spent: float) -> float:
        """Choose the wait before the next attempt, or give up and say so."""
        pause = self.patience.wait(failures, random.random())
        if error.retry_after is not None:
            pause = error.retry_after + self.patience.first_wait * random.random()
        if failures >= self.patience.tries or spent + pause > self.patience.total:
            raise EndpointError(
                f"{str(error).rstrip('.')}; gave up after {failures} tries in {spent:.0f} s.",
                status=error.status,
                retry_after=error.retry_after,
            ) from error
        return pause

    def _read(self, raw: bytes, count: int) -> Vectors:
        """Take the vectors out in the order asked, checked and at unit length."""
        try:
            rows = _rows(json.loads(raw), count)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            start = raw[:80].decode("utf-8", "replace")
            raise ParseError(
                f"{self.base_url} answered with something that is no list of {count} embeddings "
                f"({start!r}; {error}): check the base URL and that {self.model} embeds."
            ) from error
        if self._dim is None:
            self._dim = rows.shape[1]
        if rows.shape[1] != self._dim:
            raise ModelError(
                f"{self.model} at {self.base_url} gave {rows.shape[1]} dimensions where "
                f"{self._dim} were expected: check the model's name and the dimension you set."
            )
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    async def _link(self) -> "_Link":
        """Return this loop's connections; a client belongs to the loop it first ran in."""
        loop = asyncio.get_running_loop()
        link = self._links.get(loop)
        if link is None:
            import httpx

            key = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
            client = httpx.AsyncClient(
                base_url=self.base_url,
                headers={"Content-Type": "application/json", "User-Agent": "clew", **key},
                timeout=httpx.Timeout(self.timeout, connect=min(10.0, self.timeout)),
                # Reading the list of authorities takes a tenth of a second: not without TLS.
                verify=self.base_url.startswith("https:"),
            )
            link = self._links[loop] = _Link(client, Semaphore(self.concurrency))
            await anext(link.watch)
        return link


class _Link:
    """One event loop's client and its gate, closed with the loop."""

    def __init__(self, client: "httpx.AsyncClient", gate: Semaphore) -> None:
        self.client = client
        self.gate = gate
        # asyncio closes open async generators when a loop shuts down: the one hook it offers.
        self.watch = self._until_loop_ends()

    async def _until_loop_ends(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.client.aclose()


def _rows(answer: Any, count: int) -> NDArray[np.float64]:
    """Read `data`, which may come in any order; raise ValueError where it is not as asked."""
    items = sorted(answer["data"], key=lambda item: int(item["index"]))
    if [int(item["index"]) for item in items] != list(range(count)):
        raise ValueError(f"{len(items)} vectors for {count} texts")
    rows = np.array([_vector(item["embedding"]) for item in items], np.float64)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError("vectors of different or no length")
    if not np.isfinite(rows).all():
        raise ValueError("a vector with a value that is no number")
    return rows


def _vector(value: Any) -> Any:
    """A vector as packed little-endian floats, or as the list that some endpoints send anyway."""
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), "<f4")
    return value


def _about_encoding(error: EndpointError) -> bool:
    """Whether an endpoint turned the packed form down rather than the request."""
    said = str(error).lower()
    return error.status in (400, 415, 422) and ("encoding" in said or "base64" in said)
