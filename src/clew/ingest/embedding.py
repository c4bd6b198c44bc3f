"""Vectors for what documents bring, made while more is being extracted."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple, get_args

from clew.errors import EmbedderMismatch
from clew.llm.embed import Embed, Vectors, check_same_width
from clew.store.merge import embedded_text
from clew.store.protocol import Addition, Store
from clew.text import digest
from clew.types import LITERALS, Kind

_QUICK = 0.5  # seconds for a block, by which an embedder counts as quick
_KINDS: tuple[Kind, ...] = get_args(Kind)
_BLOCK = 1024  # texts embedded between two appends to the vector files

Progress = Callable[[str, int, int], None]


class _Wanted(NamedTuple):
    """One text that may have no vector yet."""

    kind: Kind
    key: str
    text: str


@dataclass(eq=False)
class Embedding:
    """Takes additions in order and embeds what is new in them, block by block, in the background.

    Which texts share a block depends on the additions alone, so rows come out the same in every
    run, however the work is interleaved.
    """

    store: Store
    embed: Embed
    progress: Progress
    ending: Callable[[], None] = lambda: None
    """Called when the last block is begun, if that will not take long."""
    _pending: list[_Wanted] = field(default_factory=list)
    _known: dict[Kind, set[str]] = field(default_factory=dict)
    _blocks: asyncio.Queue[list[_Wanted]] = field(default_factory=asyncio.Queue)
    _done: int = 0
    _total: int = 0
    _closed: bool = False
    _fits: bool = False

    def take(self, addition: Addition) -> None:
        """Note what an addition brings; a full block is handed on."""
        for kind, texts in texts_of(addition).items():
            self.want(kind, texts)

    def want(self, kind: Kind, texts: Sequence[str]) -> None:
        """Note texts; those that are on their way to a vector already are passed over."""
        known = self._known.setdefault(kind, set())
        for text in texts:
            key = digest(text)
            if key not in known:
                known.add(key)
                self._pending.append(_Wanted(kind, key, text))
        while len(self._pending) >= _BLOCK:
            self._hand_on(self._pending[:_BLOCK])
            del self._pending[:_BLOCK]

    def _hand_on(self, block: Sequence[_Wanted]) -> None:
        """Queue those of a block that have no vector yet."""
        lacking: list[_Wanted] = []
        for kind in dict.fromkeys(one.kind for one in block):
            wanted = [one for one in block if one.kind == kind]
            rows = self.store.vectors(self.embed.name, kind).rows([one.key for one in wanted])
            lacking += [one for one, row in zip(wanted, rows.tolist(), strict=True) if row < 0]
        if lacking:
            self._total += len(lacking)
            self._blocks.put_nowait(lacking)

    def close(self) -> None:
        """Hand on what is left and say that no more will come."""
        self._hand_on(self._pending)
        self._pending = []
        self._closed = True
        self._blocks.put_nowait([])

    async def run(self) -> None:
        """Embed block after block until closed; one is kept while the next is embedded."""
        keeping: asyncio.Future[None] | None = None
        took = _QUICK
        try:
            while block := await self._blocks.get():
                if self._closed and self._blocks.qsize() == 1 and took < _QUICK:
                    self.ending()
                began = perf_counter()
                # Longest first: texts of like length share a batch without padding.
                block.sort(key=lambda one: -len(one.text))
                vectors = await self.embed([one.text for one in block])
                took = perf_counter() - began
                if not self._fits:
                    check_width(self.store, self.embed.name, vectors.shape[1])
                    self._fits = True
                if keeping is not None:
                    await keeping
                keeping = asyncio.ensure_future(self._kept(block, vectors))
        finally:
            if keeping is not None:
                await keeping  # what was embedded is kept, whatever became of the next

    async def _kept(self, block: Sequence[_Wanted], vectors: Vectors) -> None:
        await asyncio.to_thread(self._keep, block, vectors)
        self._done += len(block)
        # How many there will be is known only when no more can come.
        self.progress("embed", self._done, self._total if self._closed else 0)

    def _keep(self, block: Sequence[_Wanted], vectors: Vectors) -> None:
        for kind in dict.fromkeys(one.kind for one in block):
            at = [place for place, one in enumerate(block) if one.kind == kind]
            table = self.store.vectors(self.embed.name, kind)
            table.append([block[place].key for place in at], vectors[at])


def texts_of(addition: Addition) -> dict[Kind, list[str]]:
    """What of an addition is embedded."""
    texts: dict[Kind, list[str]] = {"chunk": [embedded_text(c) for c in addition.chunks]}
    texts["entity"] = [*_names(addition)]
    texts["fact"] = [fact.text for said in addition.extractions for fact in said.facts]
    return texts


def _names(addition: Addition) -> Iterator[str]:
    """The names of all things said, members of facts that were not listed too; no plain values."""
    for said in addition.extractions:
        values = {e.name.strip() for e in said.entities if e.type in LITERALS}
        names = dict.fromkeys(e.name.strip() for e in said.entities)
        names |= dict.fromkeys(name.strip() for fact in said.facts for name, _ in fact.members)
        yield from (name for name in names if name and name not in values)


async def embed_texts(
    store: Store, embed: Embed, texts: Mapping[Kind, Sequence[str]], progress: Progress
) -> None:
    """Embed what the store has no vector for yet, block by block, each kept at once."""
    embedding = Embedding(store, embed, progress)
    for kind, wanted in texts.items():
        # Longest first across blocks too.
        embedding.want(kind, sorted(wanted, key=len, reverse=True))
    embedding.close()
    await embedding.run()


def check_width(store: Store, embedder: str, width: int) -> None:
    """Refuse vectors of another length than those that the embedder gave before."""
    for kind in _KINDS:
        held = store.vectors(embedder, kind).matrix()
        if len(held):
            check_same_width(embedder, held.shape[1], width)


def mend_vectors(store: Store, embedder: str) -> None:
    """Put vector files that cannot be read away, before all texts are embedded."""
    for kind in _KINDS:
        store.vectors(embedder, kind).mend()


async def check_embedder(store: Store, embed: Embed | None, *, claim: bool = False) -> None:
    """Refuse to mix vectors of two embedders; `claim` records ours where none is recorded."""
    if embed is None:
        return
    held = (await store.recall("manifest", ["embedder"])).get("embedder")
    if held is None and claim:
        # Asked rather than looked up: an endpoint's dimension is known from its first answer.
        dim = (await embed(["dimension"])).shape[1]
        await store.remember("manifest", {"embedder": embed.name, "dim": str(dim)})
    elif held is not None and held != embed.name:
        raise EmbedderMismatch(
            f"this knowledge base was embedded with {held!r}, the settings name {embed.name!r}; "
            "set [embed] back, or run `clew reembed`"
        )
