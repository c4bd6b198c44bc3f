"""Extraction by rules in several processes, for large builds.

Each is a plain child process (nothing is forked, and the parent's main module is not run) that ends
with its input, at the latest when the parent does. A document is extracted from alone, so that the
result does not depend on who does it; what a process that ended had to do is done here.
"""

import asyncio
import json
import marshal
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from clew.extract.model_extractors import DocumentExtractor
from clew.extract.propositions import OFFLINE_EXTRACTORS
from clew.extract.rules import Offline
from clew.llm.embed import Embedder
from clew.llm.embed_local import LocalEmbedder, count_cores
from clew.store.packed import PACK_FROM, decode_extraction, encode_extraction
from clew.sync import run
from clew.types import Chunk, Document, Extraction

MIN_CHUNKS = 1_000
"""Chunks of one add from which on starting other interpreters pays off."""
_CHILD_CODE = (
    "import json,sys;sys.path[:]=json.loads(sys.argv[1]);"
    "from clew.ingest import extract_processes;extract_processes.main(*sys.argv[2:])"
)
_READ_BYTES = 1 << 20  # that the parent buffers of a process's replies
_HEAD = 8  # bytes before a message: its length
NOT_STARTED = "Other processes that extract could not be started; this one extracted alone."
ENDED = "A process that extracted ended early; its documents were extracted from without it."


def choose_processes(wanted: int, embed: Embedder | None) -> int:
    """Return how many processes extract beside this one.

    A local embedder keeps all cores busy for much longer than rules do: then none, unless wanted.
    """
    if wanted:
        return wanted - 1
    return 0 if isinstance(embed, LocalEmbedder) else count_cores() - 1


@dataclass(eq=False)
class _Worker:
    """The parent's handle of a process; replies come in the order of the documents sent."""

    process: Process
    waiting: deque[asyncio.Future[Any]] = field(default_factory=deque)
    reading: asyncio.Task[None] | None = None
    usable: bool = True

    def send(self, message: bytes) -> asyncio.Future[Any]:
        """Send a document; the result is None if the process ends before it replies."""
        assert self.process.stdin is not None
        self.process.stdin.write(len(message).to_bytes(_HEAD, "little") + message)
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting.append(reply)
        return reply

    async def read_replies(self) -> None:
        """Hand out the replies until the process ends."""
        pipe = self.process.stdout
        assert pipe is not None
        try:
            while True:
                size = int.from_bytes(await pipe.readexactly(_HEAD), "little")
                raw = marshal.loads(await pipe.readexactly(size))  # trusted: from our own child
                reply = self.waiting.popleft()
                if not reply.done():  # who waited for it may be cancelled
                    reply.set_result(raw)
        except (OSError, EOFError):  # it ended
            pass
        finally:
            self.usable = False
            for reply in self.waiting:
                if not reply.done():
                    reply.set_result(None)

    async def end(self) -> None:
        """End the process at once: nothing of it is needed any more."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
        if self.reading is not None:
            self.reading.cancel()
            await asyncio.gather(self.reading, return_exceptions=True)
        if self.process.stdin is not None:
            self.process.stdin.close()
        await self.process.wait()


@dataclass(eq=False, repr=False)
class ProcessExtractor:
    """Extracts as `inner` would, in `count` other processes once there is much to do.

    Its `repr` is `inner`'s, so that stamps are equal.
    """

    inner: DocumentExtractor
    name: str
    spacy: str
    count: int
    note: str = ""
    """What the user should know: that processes ended or did not start."""
    _chunks: int = 0
    _workers: list[_Worker] = field(default_factory=list)
    _starting: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return repr(self.inner)

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk."""
        self._chunks += len(chunks)
        if self._chunks >= MIN_CHUNKS and self._starting is None:
            self._starting = asyncio.create_task(self._start())
        if self._starting is not None:
            await asyncio.shield(self._starting)
        usable = [worker for worker in self._workers if worker.usable]
        # What a long document says is packed while it is found: here.
        if not usable or len(chunks) >= PACK_FROM:
            return await self.inner(document, chunks)
        try:
            message = marshal.dumps((_encode_document(document), [_cells(one) for one in chunks]))
        except ValueError:  # metadata that marshal cannot serialise
            return await self.inner(document, chunks)
        reply = await min(usable, key=lambda worker: len(worker.waiting)).send(message)
        if reply is None:
            self.note = ENDED
            return await self.inner(document, chunks)
        return [decode_extraction(one) for one in reply]

    async def _start(self) -> None:
        for _ in range(self.count):
            process = await _start_process(self.name, self.spacy)
            if process is None:
                self.note = NOT_STARTED
                return
            worker = _Worker(process)
            worker.reading = asyncio.create_task(worker.read_replies())
            self._workers.append(worker)

    async def close(self) -> None:
        """End all processes."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        workers, self._workers = self._workers, []
        for worker in workers:
            await worker.end()


@asynccontextmanager
async def extract_in_processes(
    extract: DocumentExtractor, name: str, spacy: str, count: int
) -> AsyncIterator[DocumentExtractor]:
    """Yield an extractor that lets `count` other processes work; `extract` itself if none do."""
    if count < 1 or name not in OFFLINE_EXTRACTORS:
        yield extract
        return
    shared = ProcessExtractor(extract, name, spacy, count)
    try:
        yield shared
    finally:
        await shared.close()


async def _start_process(name: str, spacy: str) -> Process | None:
    if not sys.executable:
        return None
    command = (sys.executable, "-c", _CHILD_CODE, json.dumps(sys.path), name, spacy)
    try:
        return await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=_READ_BYTES
        )
    except (OSError, ValueError):
        return None


def _encode_document(document: Document) -> dict[str, Any]:
    return {
        "id": document.id,
        "text": document.text,
        "title": document.title,
        "names": document.names,
        "metadata": dict(document.metadata),
        "page_starts": document.page_starts,
    }


def _cells(c: Chunk) -> tuple[Any, ...]:
    return (c.id, c.document, c.start, c.end, c.text, c.title, c.heading, c.page)


def main(name: str, spacy: str) -> None:
    """Extract from what arrives until the input ends, at the latest when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what prints must not garble replies
    extract = OFFLINE_EXTRACTORS[name](Offline(spacy=spacy))

    async def answer() -> None:
        while len(head := sys.stdin.buffer.read(_HEAD)) == _HEAD:
            size = int.from_bytes(head, "little")
            if len(raw := sys.stdin.buffer.read(size)) < size:
                return
            document, chunks = marshal.loads(raw)  # trusted: sent by the parent process
            found = await extract(Document(**document), [Chunk(*one) for one in chunks])
            reply = marshal.dumps([encode_extraction(one) for one in found])
            replies.write(len(reply).to_bytes(_HEAD, "little") + reply)
            replies.flush()

    with suppress(BrokenPipeError):  # the parent is gone
        run(answer())
    os._exit(0)  # skips the slow teardown; nothing needs closing
