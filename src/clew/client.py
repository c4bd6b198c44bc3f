"""A client of `clew serve` with the methods of `clew.open`: `clew.connect(url, key=…)`.

Results are the same classes as those of a local knowledge base. A busy server is asked again after
the time it names.
"""

import asyncio
import http.client
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import quote, urlencode, urlsplit

from clew.agents.ask import DEFAULT_OPTIONS, AnswerStream, AskOptions, stream_answer
from clew.agents.base import Answer, Mode, Results
from clew.arguments import check_text_pairs, list_arguments
from clew.builder import ignore_progress
from clew.context import AnswerDelta, Event, StepEnded, StepStarted, TraceStep
from clew.errors import ClewError, ConfigError, InputError, Locked, StoreError
from clew.ingest.build import AddResult
from clew.ingest.embedding import ProgressCallback
from clew.ingest.files import find_files
from clew.ingest.readers.source import Skipped
from clew.llm.limits import ModelWait
from clew.store.protocol import Counts
from clew.types import Document, Evidence, Usage

T = TypeVar("T")
_TRIES = 5
_TIMEOUT = 600.0
_MAX_WAIT = 30.0
_POLL_SECONDS = 0.3
_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_JSON = {"Content-Type": "application/json"}


class RemoteKb:
    """A workspace of a server, used like a knowledge base on this machine."""

    def __init__(self, url: str, *, workspace: str = "default", key: str = "") -> None:
        parts = urlsplit(str(url))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is not the address of a server; write http://host:port")
        self._kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self._host, self._port = parts.hostname, parts.port
        self._prefix = f"{parts.path.rstrip('/')}/workspaces/{quote(workspace, safe='')}"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._connection: http.client.HTTPConnection | None = None
        self._idle: list[RemoteKb] = []  # connections of `aio`
        self._again = partial(RemoteKb, url, workspace=workspace, key=key)

    @property
    def aio(self) -> "AsyncRemoteKb":
        """The same for async callers, as `aio` of a local knowledge base."""
        return AsyncRemoteKb(self._borrow)

    @contextmanager
    def _borrow(self) -> "Iterator[RemoteKb]":
        """Use another connection to the same workspace, for callers that run at once."""
        other = self._idle.pop() if self._idle else self._again()
        try:
            yield other
        finally:
            self._idle.append(other)

    def add(
        self,
        paths: Sequence[Path | str] | Path | str,
        *,
        extractor: str | None = None,
        retry: bool = False,
        labels: Sequence[str] = (),
        progress: ProgressCallback = ignore_progress,
        recipe: str | None = None,
    ) -> AddResult:
        """Upload files and folders, and build what is new or changed, split as `recipe` wants."""
        listed = list_arguments(paths, "paths", (str, Path))
        found = find_files(listed)
        skipped = tuple(item for item in found if isinstance(item, Skipped))
        sent = [
            self._upload(_remote_name(item.name), item.path.read_bytes(), labels)
            for item in found
            if not isinstance(item, Skipped)
        ]
        how = {"extractor": extractor, "retry": retry, "recipe": recipe}
        done = self._build(sent, how, progress)
        return replace(done, skipped=(*skipped, *done.skipped))

    def add_texts(
        self,
        texts: Iterable[tuple[str, str]],
        *,
        extractor: str | None = None,
        retry: bool = False,
        progress: ProgressCallback = ignore_progress,
    ) -> AddResult:
        """Add texts given as (name, text) pairs."""
        sent = [self._upload(name, text.encode(), ()) for name, text in check_text_pairs(texts)]
        return self._build(sent, {"extractor": extractor, "retry": retry}, progress)

    def search(
        self,
        question: str,
        *,
        recipe: str | None = None,
        k: int = 10,
        entities: Sequence[str] = (),
        manner: AskOptions = DEFAULT_OPTIONS,
    ) -> Results:
        """Retrieve evidence for a question; needs no model."""
        body = {"question": question, "recipe": recipe, "k": k, "entities": list(entities)}
        found = self._json("POST", "/search", {**body, **_show_limits(manner)})
        shared = question, found["recipe"], from_json(Evidence, found)
        used = from_json(Usage, found["usage"])
        if manner.meter is not None:
            manner.meter.add(used)
        return Results(*shared, (), found["seconds"], used, found.get("note", ""))

    def ask(  # noqa: PLR0913  (all by name, and most are left out)
        self,
        question: str,
        *,
        recipe: str | None = None,
        mode: Mode = "open",
        k: int | None = None,
        entities: Sequence[str] = (),
        confidence: float | None = None,
        manner: AskOptions = DEFAULT_OPTIONS,
    ) -> Answer:
        """Answer with citations; `manner` holds budgets, event listeners and the history."""
        manner = manner.require(confidence)
        body = {
            "question": question,
            "recipe": recipe,
            "mode": mode,
            "k": k,
            "entities": list(entities),
            "history": [{"question": t.question, "answer": t.answer} for t in manner.history],
            "evidence": manner.evidence,
            "confidence": manner.confidence,
            "style": manner.style,
            **_show_limits(manner),
        }
        answer = self._ask(body, manner)
        if manner.meter is not None:
            manner.meter.add(answer.usage)
        return answer

    def _ask(self, body: dict[str, Any], manner: AskOptions) -> Answer:
        if manner.on_event is None:
            return _read_answer(self._json("POST", "/ask", body))
        for name, data in self._events("POST", "/ask", {**body, "stream": True}):
            if name == "answer":
                return _read_answer(data)
            if name == "error":
                raise _make_error(data["status"], data["detail"])
            manner.on_event(_read_event(name, data))
        raise StoreError("the server ended the stream before the answer; ask again")

    def remove(self, names: Sequence[str] | str) -> Counts:
        """Remove documents by name."""
        known = dict(self._list_documents())
        listed = list_arguments(names, "names of documents", str)
        wanted = {known[name] for given in listed for name in _find_named(given, known)}
        for document in sorted(wanted):
            self._json("DELETE", f"/documents/{document}")
        return self._counts()

    def status(self) -> dict[str, Any]:
        """Return counts, embedder, size on disk and money spent."""
        found: dict[str, Any] = self._json("GET", "")
        return found

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> "RemoteKb":
        """Use as a context manager."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close at the end."""
        self.close()

    # -- uploads and builds

    def _upload(self, name: str, content: bytes, labels: Sequence[str]) -> str:
        if not isinstance(name, str):
            raise InputError("a text is given as a pair of strings; pass (name, text)")
        query = urlencode([("name", name), *(("label", label) for label in labels)])
        headers = {"Content-Type": "application/octet-stream"}
        sent = json.loads(self._call("POST", f"/documents?{query}", content, headers))
        return str(sent["name"])

    def _build(
        self, names: Sequence[str], how: Mapping[str, Any], progress: ProgressCallback
    ) -> AddResult:
        if not names and not how.get("retry"):
            return AddResult(self._counts())
        job = self._json("POST", "/builds", {"names": list(names) or None, **how})
        while job["state"] in ("queued", "running"):
            if progress is ignore_progress:
                time.sleep(_POLL_SECONDS)
            else:
                self._report_progress(job["id"], progress)
            job = self._json("GET", f"/jobs/{job['id']}")
        if job["state"] != "done":
            raise StoreError(f"the build {job['state']}: {job['error'] or 'see the server'}")
        return from_json(AddResult, {"counts": {}, **job["result"]})

    def _report_progress(self, job: str, progress: ProgressCallback) -> None:
        """Report how a job goes on, until it ends or the server is reloaded."""
        for name, data in self._events("GET", f"/jobs/{job}/events"):
            if name == "progress":
                progress(data["stage"], data["done"], data["total"])

    def _list_documents(self) -> Iterator[tuple[str, str]]:
        after: str | None = ""
        while after is not None:
            page = self._json("GET", f"/documents?{urlencode({'after': after, 'limit': 500})}")
            yield from ((one["name"], one["id"]) for one in page["documents"])
            after = page["next"]

    def _counts(self) -> Counts:
        return from_json(Counts, self.status())

    # -- HTTP

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        return json.loads(self._call(method, path, sent, _JSON if sent else {}))

    def _call(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> bytes:
        for attempt in range(_TRIES):
            reply = self._send(method, path, body, headers)
            content = reply.read()
            if reply.status < 400:
                return content
            if reply.status not in _BUSY or attempt == _TRIES - 1:
                break
            time.sleep(min(_MAX_WAIT, float(reply.headers.get("Retry-After", 1))))
        raise _make_error(reply.status, _read_detail(content))

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        """Send a request; a kept connection that was closed meanwhile is opened again."""
        for fresh in (self._connection is None, True):
            if self._connection is None:
                self._connection = self._kind(self._host, self._port, timeout=_TIMEOUT)
            try:
                self._connection.request(
                    method, self._prefix + path, body, {**self._headers, **headers}
                )
                return self._connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if fresh:
                    raise StoreError(f"the server at {self._host} does not answer: {error}") from (
                        error
                    )
        raise AssertionError("unreachable: the second attempt is fresh")

    def _events(self, method: str, path: str, body: Any = None) -> Iterator[tuple[str, Any]]:
        reply = self._send(method, path, json.dumps(body).encode() if body else None, _JSON)
        if reply.status >= 400:
            raise _make_error(reply.status, _read_detail(reply.read()))
        name = ""
        for raw in reply:
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                yield name, json.loads(line[6:])


@dataclass(frozen=True)
class AsyncRemoteKb:
    """The methods of a workspace for async callers; each call has a connection and a thread."""

    _borrow: Callable[[], AbstractContextManager[RemoteKb]]

    async def add(
        self,
        paths: Sequence[Path | str] | Path | str,
        *,
        extractor: str | None = None,
        retry: bool = False,
        labels: Sequence[str] = (),
        progress: ProgressCallback = ignore_progress,
        recipe: str | None = None,
    ) -> AddResult:
        """Upload files and folders, and build what is new or changed, split as `recipe` wants."""
        how: dict[str, Any] = {"extractor": extractor, "retry": retry, "labels": labels}
        return await self._run(lambda kb: kb.add(paths, progress=progress, recipe=recipe, **how))

    async def take(
        self,
        documents: AsyncIterator[Document],
        extractor: str | None = None,
        *,
        retry: bool = False,
        progress: ProgressCallback = ignore_progress,
    ) -> AddResult:
        """Add documents that are already read, by their text."""
        texts = [(one.names[0], one.text) async for one in documents]
        return await self._run(
            lambda kb: kb.add_texts(texts, extractor=extractor, retry=retry, progress=progress)
        )

    async def search(
        self,
        question: str,
        *,
        recipe: str | None = None,
        k: int = 10,
        entities: Sequence[str] = (),
        manner: AskOptions = DEFAULT_OPTIONS,
    ) -> Results:
        """Retrieve evidence for a question; needs no model."""
        how: dict[str, Any] = {"recipe": recipe, "k": k, "entities": entities}
        return await self._run(lambda kb: kb.search(question, manner=manner, **how))

    async def ask(
        self,
        question: str,
        *,
        recipe: str | None = None,
        mode: Mode = "open",
        k: int | None = None,
        entities: Sequence[str] = (),
        manner: AskOptions = DEFAULT_OPTIONS,
    ) -> Answer:
        """Answer with citations; listeners are called on the caller's event loop."""
        listen, loop = manner.on_event, asyncio.get_running_loop()

        def tell(event: Event) -> None:
            if listen is not None:
                loop.call_soon_threadsafe(listen, event)

        if listen is not None:
            manner = replace(manner, on_event=tell)
        how: dict[str, Any] = {"recipe": recipe, "mode": mode, "k": k, "entities": entities}
        return await self._run(lambda kb: kb.ask(question, manner=manner, **how))

    def stream(
        self, question: str, *, manner: AskOptions = DEFAULT_OPTIONS, **how: Any
    ) -> AnswerStream:
        """Answer a question as a stream of events; the last item is the answer."""
        return stream_answer(
            lambda emit: self.ask(question, manner=replace(manner, on_event=emit), **how)
        )

    async def remove(self, names: Sequence[str] | str) -> Counts:
        """Remove documents by name."""
        return await self._run(lambda kb: kb.remove(names))

    async def status(self) -> dict[str, Any]:
        """Return counts, embedder, size on disk and money spent."""
        return await self._run(lambda kb: kb.status())

    async def close(self) -> None:
        """Close the connection that is used next; `close` of the whole closes all."""
        await self._run(lambda kb: kb.close())

    async def _run(self, work: Callable[[RemoteKb], T]) -> T:
        def call() -> T:
            with self._borrow() as kb:
                return work(kb)

        return await asyncio.to_thread(call)


def connect(url: str, *, workspace: str = "default", key: str = "") -> RemoteKb:
    """Return a workspace of a server, to be used like what `clew.open` returns."""
    return RemoteKb(url, workspace=workspace, key=key)


def from_json(kind: type[T], value: Any) -> T:
    """Make a dataclass of JSON values; what it has no field for is left out."""
    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind) if field.name in value]  # type: ignore[arg-type]
    return kind(**{name: _convert(hints[name], value[name]) for name in known})


def _convert(hint: Any, value: Any) -> Any:
    if is_dataclass(hint) and isinstance(hint, type):
        return from_json(hint, value)
    if get_origin(hint) is tuple:
        return tuple(_convert(get_args(hint)[0], item) for item in value)
    return value


def _show_limits(manner: AskOptions) -> dict[str, Any]:
    """Return the limits as requests name them; what a server cannot do is refused."""
    if manner.record_prompts or manner.shared is not None:
        raise ConfigError("a server keeps no prompts and shares no budget; leave that out")
    limits = manner.limits
    return {
        "max_calls": limits.calls,
        "max_tokens": limits.tokens,
        "max_seconds": limits.seconds,
        "max_money": limits.money,
    }


def _read_answer(found: dict[str, Any]) -> Answer:
    return from_json(Answer, {**found, "evidence": found})


def _read_event(name: str, data: dict[str, Any]) -> Event:
    if name == "token":
        return AnswerDelta(data["text"], bool(data.get("restart")))
    if name == "step-started":
        return from_json(StepStarted, data)
    if name == "model":
        return from_json(ModelWait, data)
    return StepEnded(from_json(TraceStep, {"input": "", **data}), data["depth"])


def _read_detail(content: bytes) -> str:
    try:
        return str(json.loads(content)["detail"])
    except (ValueError, KeyError, TypeError):
        return content[:200].decode("utf-8", "replace")


def _make_error(status: int, detail: str) -> ClewError:
    kind: type[ClewError] = StoreError if status >= 500 else ConfigError
    if status == HTTPStatus.CONFLICT:
        kind = Locked
    return kind(f"{detail} (HTTP {status})")


def _find_named(given: str, known: Mapping[str, str]) -> list[str]:
    """Return the document of this name, else the rows of the file or all below the folder."""
    if given in known:
        return [given]
    found = [name for name in known if name.startswith((f"{given}#", f"{given}/"))]
    if not found:
        raise StoreError(f"no document named {given!r} is on the server")
    return found


def _remote_name(name: str) -> str:
    """Return a file's name as the server takes it: relative, without `..`."""
    parts = [part for part in PurePosixPath(name).parts if part not in ("/", "..", ".")]
    return "/".join(parts).replace("\\", "_").replace("#", "_")
