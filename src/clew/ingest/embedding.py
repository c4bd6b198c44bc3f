"""Embeds the texts of additions in the background while more are extracted."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, get_args

import numpy as np

from clew.errors import EmbedderMismatch, StoreError, VectorsDeferred
from clew.index.nearest import MIN_ESTIMATED, StoredIndexes
from clew.index.view import StoredMatrices, View
from clew.llm.embed import Embedder, Vectors, can_quote, check_meaning, check_same_dim
from clew.llm.embed_local import count_cores
from clew.out_of_core import keep_freed_memory
from clew.store.merge import embedded_text
from clew.store.protocol import DEFERRED, QUOTED, Addition, Snapshot, Store
from clew.store.quotes import Quote, find_quote, find_quotes, place_quotes
from clew.store.vector_records import DamagedVectors
from clew.text.unicode import digest
from clew.types import LITERAL_TYPES, Kind

_QUICK_SECONDS = 0.5  # an embedder that takes less for a block counts as quick
_VECTOR_KINDS: tuple[Kind, ...] = get_args(Kind)
EMBEDDED_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")
"""What the texts of an addition are embedded as."""
BLOCK = 1024  # texts embedded between two appends to the vector files
_CALL_SECONDS = 1.0  # of a call to an embedder without batches of its own: each is saved at once
_FIRST_CHARACTERS = 2_000  # per core, of its first call
_CHARACTERS_OF_RUN = 20  # what embedding an empty text would cost, in characters
WAIT_SECONDS = 1.0  # that an answer waits for a slower call before it is kept aside

ProgressCallback = Callable[[str, int, int], None]
P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]


class _PendingText(NamedTuple):
    """A text that may have no vector yet."""

    kind: Kind
    key: str
    text: str
    quotes: tuple[Quote, ...] = ()
    """Parts of a passage that are embedded with it, as facts."""

    def list_keys(self) -> list[tuple[Kind, str]]:
        """Return kind and key of each vector that the text gives."""
        return [(self.kind, self.key), *(("fact", quote.key) for quote in self.quotes)]


@dataclass(eq=False)
class EmbeddingQueue:
    """Takes additions in order and embeds their new texts, block by block, in the background.

    Which texts share a block depends on the additions alone, so rows come out the same in every
    run, however the work is interleaved.
    """

    store: Store
    embed: Embedder
    progress: ProgressCallback
    kinds: Collection[Kind] = EMBEDDED_KINDS
    """Which of the texts of an addition are embedded."""
    quoted: bool = False
    """Whether facts in the words of their passage are embedded with it."""
    on_last_block: Callable[[], None] = lambda: None
    """Called when the last block starts, if the embedder is quick."""
    _pending: list[_PendingText] = field(default_factory=list)
    _known: dict[Kind, set[str]] = field(default_factory=dict)
    _blocks: asyncio.Queue[list[_PendingText]] = field(default_factory=asyncio.Queue)
    _done: int = 0
    _total: int = 0
    _work_done: int = 0
    _work: int = 0
    """What there is to embed, in characters: texts differ much in the time they take."""
    _closed: bool = False
    _width_checked: bool = False
    _saving: asyncio.Future[None] | None = None
    _per_call: float = field(default_factory=lambda: _FIRST_CHARACTERS * count_cores())
    """How much the next call to an embedder without batches of its own is given."""

    def enqueue_addition(self, addition: Addition) -> None:
        """Enqueue the texts of an addition."""
        quoted = self.quoted and {"chunk", "fact"} <= {*self.kinds}
        if quoted:
            for chunk, found in zip(addition.chunks, addition.extractions, strict=True):
                text = embedded_text(chunk)
                key = digest(text)
                self.enqueue_passage(key, text, find_quotes(found, text, key))
        for kind, texts in texts_to_embed(addition, quoted=quoted).items():
            if kind in self.kinds:
                self.enqueue_texts(kind, texts)

    def enqueue_passage(self, key: str, text: str, quotes: Iterable[Quote]) -> None:
        """Enqueue a passage with the facts that it quotes."""
        known, facts = (self._known.setdefault(kind, set()) for kind in ("chunk", "fact"))
        fresh = {quote.key: quote for quote in quotes if quote.key not in facts}
        if fresh or key not in known:
            known.add(key)
            facts.update(fresh)
            self._enqueue(_PendingText("chunk", key, text, tuple(fresh.values())))

    def enqueue_texts(self, kind: Kind, texts: Sequence[str]) -> None:
        """Enqueue texts, skipping those already enqueued."""
        known = self._known.setdefault(kind, set())
        for text in texts:
            key = digest(text)
            if key not in known:
                known.add(key)
                self._enqueue(_PendingText(kind, key, text))

    def _enqueue(self, item: _PendingText) -> None:
        """Enqueue a text; full blocks go to the embedder."""
        self._pending.append(item)
        while len(self._pending) >= BLOCK:
            self._queue_block(self._pending[:BLOCK])
            del self._pending[:BLOCK]

    def _queue_block(self, block: Sequence[_PendingText]) -> None:
        """Queue those texts of a block that have no vector yet."""
        lacking: list[_PendingText] = []
        for kind in dict.fromkeys(item.kind for item in block):
            wanted = [item for item in block if item.kind == kind]
            rows = self.store.vectors(self.embed.name, kind).find_rows(
                [item.key for item in wanted]
            )
            for item, row in zip(wanted, rows.tolist(), strict=True):
                lacks = item._replace(quotes=self._find_missing(item.quotes))
                if row < 0 or lacks.quotes:
                    lacking.append(lacks)
        if lacking:
            self._total += _count(lacking)
            self._work += _weigh(lacking)
            self._blocks.put_nowait(lacking)

    def _find_missing(self, quotes: tuple[Quote, ...]) -> tuple[Quote, ...]:
        """Return those quotes that have no vector yet."""
        if not quotes:
            return ()
        table = self.store.vectors(self.embed.name, "fact")
        rows = table.find_rows([quote.key for quote in quotes]).tolist()
        return tuple(quote for quote, row in zip(quotes, rows, strict=True) if row < 0)

    def close(self) -> None:
        """Queue the remaining texts and mark the end; from now on the total is known."""
        self._queue_block(self._pending)
        self._pending = []
        self._closed = True
        if self._total:
            self._report()
        self._blocks.put_nowait([])

    async def run(self) -> None:
        """Embed block after block until closed; each is saved while the next is embedded."""
        block_seconds = _QUICK_SECONDS
        try:
            while block := await self._blocks.get():
                if self._closed and self._blocks.qsize() == 1 and block_seconds < _QUICK_SECONDS:
                    self.on_last_block()
                began = perf_counter()
                # Longest first: texts of like length share a batch without padding.
                block.sort(key=lambda item: -len(item.text))
                for part in self._split_by_calls(block):
                    await self._embed_calls(part)
                block_seconds = perf_counter() - began
        finally:
            await self._finish_saving()  # what is answered is saved even if the next call failed
        await asyncio.to_thread(_EarlyVectors(self.store, self.embed.name).forget)

    def _split_by_calls(self, block: list[_PendingText]) -> Iterator[list[list[_PendingText]]]:
        """Split a block into calls, and these into groups that are in flight together.

        An embedder without batches of its own gets one call after the other, of as much as it did
        in a second before.
        """
        size = getattr(self.embed, "batch", 0)
        if size:
            calls = [block[at : at + size] for at in range(0, len(block), size)]
            parallel = getattr(self.embed, "concurrency", len(calls))
            yield from (calls[at : at + parallel] for at in range(0, len(calls), parallel))
            return
        at = 0
        while at < len(block):
            until, weight = at, 0
            while until < len(block) and (until == at or weight < self._per_call):
                weight += _weigh(block[until : until + 1])
                until += 1
            began = perf_counter()
            yield [block[at:until]]
            pace = weight / max(perf_counter() - began, 1e-6)
            self._per_call = min(pace * _CALL_SECONDS, 2 * self._per_call)
            at = until

    async def _embed_calls(self, calls: list[list[_PendingText]]) -> None:
        """Embed in concurrent calls; what is answered is kept, even if another call failed.

        An answer is saved once all calls before it are answered, and kept aside until then.
        """
        tasks = [asyncio.ensure_future(self._embed_once(call)) for call in calls]
        at, aside = 0, set[int]()
        try:
            while at < len(tasks):
                await asyncio.wait([tasks[at]], timeout=WAIT_SECONDS)
                if not tasks[at].done():
                    await self._keep_aside(calls, tasks, aside)
                    continue
                end = at
                while end < len(tasks) and tasks[end].done():
                    end += 1
                await self._start_saving(calls[at:end], tasks[at:end])
                at = end
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _keep_aside(
        self,
        calls: list[list[_PendingText]],
        tasks: Sequence[asyncio.Future[Vectors]],
        aside: set[int],
    ) -> None:
        """Keep the answers that wait for a slower call where a kill does not cost them."""
        early = _EarlyVectors(self.store, self.embed.name)
        for at, task in enumerate(tasks):
            if at not in aside and task.done() and not task.cancelled() and not task.exception():
                aside.add(at)
                keys = [key for item in calls[at] for _, key in item.list_keys()]
                await asyncio.to_thread(early.save, keys, task.result())

    async def _embed_once(self, call: Sequence[_PendingText]) -> Vectors:
        """Embed the texts of a call, unless that was done before a kill."""
        keys = [key for item in call for _, key in item.list_keys()]
        found = _EarlyVectors(self.store, self.embed.name).find(keys)
        if found is None:
            found = await self._embed_few(call)
        self._report(call)
        return found

    async def _embed_few(self, call: Sequence[_PendingText]) -> Vectors:
        """Embed each different text once: a row's passage and its fact have the same."""
        name = self.embed.name
        if _count(call) > len(call) and can_quote(self.embed):
            spans = [[(quote.start, quote.end) for quote in item.quotes] for item in call]
            texts = [item.text for item in call]
            vectors = await self.embed.embed_quotes(list(zip(texts, spans, strict=True)))
            told = [item.text for item in call for _ in item.list_keys()]
            return check_meaning(name, told, vectors)
        position = {text: at for at, text in enumerate(dict.fromkeys(item.text for item in call))}
        vectors = check_meaning(name, [*position], await self.embed([*position]))
        return vectors[[position[item.text] for item in call]]

    def _report(self, more: Sequence[_PendingText] = ()) -> None:
        """Tell how many vectors there are; once all texts are queued, of how many, by length."""
        self._done += _count(more)
        self._work_done += _weigh(more)
        if not self._closed:
            self.progress("embed", self._done, 0)
            return
        done = self._total * self._work_done // max(1, self._work)
        self.progress("embed", done, self._total)

    async def _start_saving(
        self, calls: list[list[_PendingText]], tasks: Sequence[asyncio.Future[Vectors]]
    ) -> None:
        """Save the vectors of answered calls in the background, after those before them."""
        done = [
            (call, task.result())
            for call, task in zip(calls, tasks, strict=True)
            if not task.cancelled() and task.exception() is None
        ]
        await self._finish_saving()
        if done:
            vectors = np.concatenate([found for _, found in done])
            self._check_width_once(vectors)
            items = [item for call, _ in done for item in call]
            work = asyncio.to_thread(self._append_vectors, items, vectors)
            self._saving = asyncio.ensure_future(work)

    async def _finish_saving(self) -> None:
        saving, self._saving = self._saving, None
        if saving is not None:
            await saving

    def _check_width_once(self, vectors: Vectors) -> None:
        if not self._width_checked:
            check_width(self.store, self.embed.name, vectors.shape[1])
            self._width_checked = True

    def _append_vectors(self, block: Sequence[_PendingText], vectors: Vectors) -> None:
        listed = [pair for item in block for pair in item.list_keys()]
        for kind in dict.fromkeys(kind for kind, _ in listed):
            indices = [index for index, pair in enumerate(listed) if pair[0] == kind]
            table = self.store.vectors(self.embed.name, kind)
            table.append([listed[index][1] for index in indices], vectors[indices])


@dataclass(frozen=True)
class _EarlyVectors:
    """Answers kept aside until those of earlier calls are there, by content hash.

    Rows of a vector file come in the order of the texts, and a kill must not cost what was answered
    before its turn. All kinds share one file: a text has the same vector in each.
    """

    store: Store
    embedder: str

    @property
    def _name(self) -> str:
        return f"{self.embedder} (early)"

    def save(self, keys: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors, durably."""
        self.store.vectors(self._name, "chunk").append(keys, vectors)

    def forget(self) -> None:
        """Remove them all: each is in its own file now."""
        self.store.forget_vectors(self._name)

    def find(self, keys: Sequence[str]) -> Vectors | None:
        """Return the vectors of these texts, if all were kept."""
        table = self.store.vectors(self._name, "chunk")
        try:
            rows = table.find_rows(keys)
            if not len(rows) or rows.min() < 0:
                return None
            found: Vectors = np.asarray(table.matrix()[rows], np.float32)
        except DamagedVectors:
            table.repair()  # they are computed again
            return None
        return found


def _weigh(block: Sequence[_PendingText]) -> int:
    """About how long texts take to embed, in characters."""
    return sum(len(item.text) + _CHARACTERS_OF_RUN for item in block)


def _count(block: Sequence[_PendingText]) -> int:
    """Number of vectors that texts give."""
    return sum(1 + len(item.quotes) for item in block)


def texts_to_embed(addition: Addition, *, quoted: bool = False) -> dict[Kind, list[str]]:
    """Return the texts of an addition that are embedded, by kind; no quotes if `quoted`."""
    passages = [embedded_text(chunk) for chunk in addition.chunks]
    facts = [
        fact.text
        for text, extraction in zip(passages, addition.extractions, strict=True)
        for fact in extraction.facts
        if not (quoted and find_quote(fact, text))
    ]
    return {"chunk": passages, "entity": [*_entity_names(addition)], "fact": facts}


def _entity_names(addition: Addition) -> Iterator[str]:
    """Yield the names of all entities and fact members, without literal values."""
    for found in addition.extractions:
        values = {e.name.strip() for e in found.entities if e.type in LITERAL_TYPES}
        names = dict.fromkeys(e.name.strip() for e in found.entities)
        names |= dict.fromkeys(name.strip() for fact in found.facts for name, _ in fact.members)
        yield from (name for name in names if name and name not in values)


class StoredPassages(NamedTuple):
    """The passages and facts of a generation that are embedded."""

    texts: list[str]
    facts: list[str]
    """Those that are no quotes, or not in every passage that states them."""
    quotes: dict[str, list[Quote]]
    """By the text of the passage that quotes."""


async def list_passages(now: Snapshot, quoted: bool) -> StoredPassages:
    """List the passages and facts of a generation; with `quoted`, quotes are told apart."""
    view = View(now.arrays, {})
    chunks = await now.chunks([int(key) for key in view.keys("chunk")])
    facts = await now.facts([int(key) for key in view.keys("fact")])
    texts = {key: embedded_text(chunk) for key, chunk in chunks.items()}
    if not quoted:
        return StoredPassages([*texts.values()], [fact.text for fact in facts.values()], {})
    keys, stated = view.keys("fact"), view.links("chunk_fact")
    quotes: dict[str, list[Quote]] = {}
    has_passage = view.links("fact_chunk").degrees() > 0
    always = {facts[key].id for key in keys[has_passage].tolist()}  # quoted wherever it is stated
    for at, key in enumerate(view.keys("chunk").tolist()):
        text = texts[key]
        here = {fact.id: fact for fact in (facts[one] for one in keys[stated.row(at)].tolist())}
        always -= {name for name, fact in here.items() if find_quote(fact, text) is None}
        quotes.setdefault(text, []).extend(place_quotes(here, text, digest(text)))
    own = [fact.text for fact in facts.values() if fact.id not in always]
    return StoredPassages([*texts.values()], own, quotes)


async def embed_texts(
    store: Store,
    embed: Embedder,
    texts: Mapping[Kind, Sequence[str]],
    progress: ProgressCallback,
    quotes: Mapping[str, Sequence[Quote]] = MappingProxyType({}),
) -> None:
    """Embed the texts the store has no vector for, block by block, each saved at once.

    `quotes` are those of passages, by their texts.
    """
    queue = EmbeddingQueue(store, embed, progress)
    for text in sorted(quotes, key=len, reverse=True):
        queue.enqueue_passage(digest(text), text, quotes[text])
    for kind, wanted in texts.items():
        # Longest first across blocks too.
        queue.enqueue_texts(kind, sorted(wanted, key=len, reverse=True))
    queue.close()
    await queue.run()


def check_width(store: Store, embedder: str, width: int) -> None:
    """Raise if vectors differ in width from those the embedder gave before."""
    for kind in _VECTOR_KINDS:
        if held := store.vectors(embedder, kind).width():
            check_same_dim(embedder, held, width)


def repair_vectors(store: Store, embedder: str) -> None:
    """Set unreadable vector files aside, before all texts are embedded."""
    for kind in _VECTOR_KINDS:
        store.vectors(embedder, kind).repair()


async def check_embedder(store: Store, embed: Embedder | None, *, claim: bool = False) -> None:
    """Raise if the store has vectors of another embedder; `claim` records this one if none is."""
    if embed is None:
        return
    stored = (await store.get("manifest", ["embedder"])).get("embedder")
    if stored is None and claim:
        # Embed a text: an endpoint's dimension is known only from its first answer.
        dim = (await embed(["dimension"])).shape[1]
        mode = {QUOTED: "fact" if can_quote(embed) else ""}
        await store.set("manifest", {"embedder": embed.name, "dim": str(dim)} | mode)
    elif stored is not None and stored != embed.name:
        raise EmbedderMismatch(
            f"this knowledge base was embedded with {stored!r}, but the settings select "
            f"{embed.name!r}; restore [embed], or run `clew reembed`"
        )


async def uses_quotes(store: Store, embed: Embedder) -> bool:
    """Whether facts in the words of their passages are embedded with them.

    Knowledge bases of earlier versions do so from the next `clew reembed` on.
    """
    held = await store.get("manifest", ["embedder", QUOTED])
    chosen = held.get(QUOTED, "") == "fact" if held.get("embedder") else True
    return chosen and can_quote(embed)


def check_backup_embedder(file: Path, held: str, embed: Embedder | None) -> None:
    """Raise if a backup has vectors of another embedder than the settings select."""
    if held and embed is not None and embed.name != held:
        raise EmbedderMismatch(
            f"{file} was embedded with {held!r}, but the settings select {embed.name!r}; "
            "set [embed] as it was, then `clew reembed` can change it; nothing was restored"
        )


async def load_deferred(store: Store) -> list[str]:
    """Return the kinds whose vectors are made when they are first read."""
    return (await store.get("manifest", [DEFERRED])).get(DEFERRED, "").split()


async def load_view(
    store: Store, embedder: str, now: Snapshot, *, exact: bool = False, lists: int = 0
) -> View:
    """View of a generation with the vectors of an embedder, if there is one.

    With `exact` the nearest elements are found without an index; else `lists` are read of one that
    has lists, or as many as are enough.
    """
    if not embedder:
        return View(now.arrays, {}, now.generation)
    if len(now.arrays.get("chunk_keys", ())) >= MIN_ESTIMATED:
        keep_freed_memory()
    matrices = StoredMatrices(store, embedder, now.arrays, await load_deferred(store))
    indexes = {} if exact else StoredIndexes(store, embedder, lists)
    return View(now.arrays, matrices, now.generation, indexes=indexes)


def embed_on_first_use(run: Method[P, T]) -> Method[P, T]:
    """Make the vectors that a method of a knowledge base turns out to read, and run it again."""

    @wraps(run)
    async def run_with_vectors(base: Any, /, *given: P.args, **named: P.kwargs) -> T:
        for _ in EMBEDDED_KINDS:
            try:
                return await run(base, *given, **named)
            except VectorsDeferred as missing:
                try:
                    await base.builder.embed_deferred(missing.kind, base.progress)
                except StoreError as error:  # a folder that cannot be written, or a busy one
                    raise type(error)(f"{missing}: {error}") from error
        return await run(base, *given, **named)

    return run_with_vectors
