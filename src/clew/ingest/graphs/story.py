"""Imports a graph: graph file → staged rows → passages → vectors → one write.

Rows are read into a stage, from which a killed import resumes; vectors are cached by content; the
write is one transaction. Memory does not grow with the file except for the derived arrays.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from time import perf_counter

from clew.arrays import arrays_of
from clew.errors import InputError
from clew.ingest.build import check_embedder, embed_texts
from clew.ingest.graphs.again import KNOWN, name_of, parts_of
from clew.ingest.graphs.formats import Format, files, format_of
from clew.ingest.graphs.passages import STAMP, Passages
from clew.ingest.graphs.rows import READING, Bad, Link, Node, Start
from clew.ingest.read import find
from clew.ingest.readers.source import Source
from clew.llm.embed import Embed
from clew.names import relation_words
from clew.store.check import PARTLY
from clew.store.graph_stage import Progress, Stage
from clew.store.merge import embedded_text
from clew.store.protocol import Addition, Change, Counts, Store
from clew.text import digest
from clew.types import LITERALS, Kind

# What is embedded, most useful first.
KINDS: dict[str, Kind] = {
    "relations": "relation",
    "entities": "entity",
    "chunks": "chunk",
    "facts": "fact",
}
_SHOWN = 5  # reported with line and reason
_PIECE = 1 << 20

Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Imported:
    """Result of an import."""

    counts: Counts
    name: str
    format: str
    rows: int = 0
    bad: int = 0
    bad_rows: tuple[tuple[int, str], ...] = ()
    """The first bad rows: line and reason."""
    unchanged: bool = False
    embedded: tuple[str, ...] = ()
    not_embedded: tuple[str, ...] = ()
    shared_names: int = 0
    """Names shared by several nodes: each gets its id in brackets, and the name as an alias."""
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GraphImport:
    """Imports graph files into a store."""

    store: Store
    scratch: Path
    """Folder for the stage file."""
    embed: Embed | None = None
    most: int | None = None
    """Maximum number of elements to embed; None: all."""
    strict: bool = False
    tell: Tell = field(default=lambda stage, done, total: None, repr=False)

    async def __call__(self, path: Path, wanted: str | None = None) -> Imported:
        """Import a file; an unchanged one costs no more than reading it."""
        name, source = _source(path)
        chosen = await asyncio.to_thread(format_of, source, wanted)
        seal = await asyncio.to_thread(self._seal, source, chosen)
        async with self.store.writing():
            parts = await self._parts(name)
            stored = (await self.store.recall(KNOWN, [name])).get(name)
            record = json.loads(stored) if stored else {}
            if record.get("seal") == seal and record.get("parts") == len(parts):
                counts = await self.store.counts()
                return Imported(counts, name, chosen.name, record["rows"], unchanged=True)
            stage = await asyncio.to_thread(
                Stage, self.scratch / f"{digest(name)[:16]}.stage", seal
            )
            try:
                result = await self._take(stage, source, chosen, (name, parts))
            except BaseException:
                stage.close()
                raise
            await self._remember(name, seal, result)
            await asyncio.to_thread(stage.drop)
        return result

    async def _take(
        self, stage: Stage, path: Path, chosen: Format, known: tuple[str, list[str]]
    ) -> Imported:
        name, parts = known
        clock = _Clock()
        read = await asyncio.to_thread(self._stage, stage, path, chosen)
        clock.lap("read")
        passages = Passages(name, chosen.label)
        embedded, left = await self._embed(lambda: passages(stage))
        clock.lap("embed")
        self.tell("write", 0, 1)
        counts = await self.store.write(Change(remove=parts, bulk=passages(stage)), arrays_of)
        self.tell("write", 1, 1)
        clock.lap("write")
        return Imported(
            *(counts, name, chosen.name, read.rows, read.bad, read.shown),
            embedded=embedded,
            not_embedded=left,
            shared_names=read.shared_names,
            seconds=clock.laps,
        )

    def _seal(self, path: Path, chosen: Format) -> str:
        """Return a hash of the content and how it is read: same seal, same graph."""
        state = blake2b(digest_size=16)
        for source in files(path, chosen):
            state.update(source.name.encode())
            with source.open("rb") as file:
                while piece := file.read(_PIECE):
                    state.update(piece)
        return digest(state.hexdigest(), chosen.name, STAMP, READING)

    async def _parts(self, name: str) -> list[str]:
        """Return the document names of an earlier import of this file."""
        return [part for part in parts_of(name, await self.store.sources()) if part != name]

    # -- reading

    def _stage(self, stage: Stage, path: Path, chosen: Format) -> Progress:
        """Read the file into the stage, from where an earlier run stopped."""
        state = stage.progress()
        if state.done:
            return state
        total = sum(one.stat().st_size for one in files(path, chosen))
        for batch in chosen.read(path, Start(state.place, state.line)):
            bad = [row for row in batch.rows if isinstance(row, Bad)]
            if bad and self.strict:
                raise InputError(
                    f"{path}, line {bad[0].line}: {bad[0].reason}; mend it, or leave --strict out"
                )
            links = [row.row() for row in batch.rows if isinstance(row, Link)]
            nodes = [cell for row in batch.rows if isinstance(row, Node) for cell in row.rows()]
            state = replace(
                state,
                place=batch.place,
                line=batch.line,
                rows=state.rows + batch.good(),
                bad=state.bad + len(bad),
                shown=(*state.shown, *((one.line, one.reason) for one in bad))[:_SHOWN],
            )
            stage.keep(nodes, links, state)
            self.tell("file", min(batch.seen, total), total)  # shows the remaining time
            self.tell("rows", state.rows, 0)
        if not state.rows:
            raise InputError(
                f"{path} holds no row that can be read{_first(state)}; is it {chosen.name}?"
            )
        state = stage.settle(state, chosen.label)
        self.tell("file", total, total)
        return state

    # -- embedding

    async def _embed(
        self, passages: Callable[[], Iterator[Addition]]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Embed relations, names, chunks and facts, in this order, up to the limit."""
        if self.embed is None:
            return (), tuple(KINDS)
        texts = await asyncio.to_thread(_texts, passages(), self.most)
        if not texts:
            return (), tuple(KINDS)
        await check_embedder(self.store, self.embed, claim=True)
        by_kind = {kind: texts[name] for name, kind in KINDS.items() if name in texts}
        await embed_texts(self.store, self.embed, by_kind, self.tell)
        return tuple(texts), tuple(kind for kind in KINDS if kind not in texts)

    async def _remember(self, name: str, seal: str, result: Imported) -> None:
        stored = (await self.store.recall("manifest", [PARTLY])).get(PARTLY, "").split()
        partly = sorted({*stored, *(KINDS[kind] for kind in result.not_embedded)})
        await self.store.remember("manifest", {PARTLY: " ".join(partly)})
        parts = len(await self._parts(name))
        record = {"seal": seal, "parts": parts, "rows": result.rows, "format": result.format}
        await self.store.remember(KNOWN, {name: json.dumps(record)})


class _Clock:
    """Measures seconds per stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._at = perf_counter()

    def lap(self, name: str) -> None:
        now = perf_counter()
        self.laps[name] = round(now - self._at, 2)
        self._at = now


def _source(path: Path) -> tuple[str, Path]:
    """Return the graph's document name and path; a folder is one graph."""
    found = find([path])
    if not path.is_dir() and not isinstance(found[0], Source):
        raise InputError(str(found[0]))
    return name_of(path), path


def _first(state: Progress) -> str:
    return f" (line {state.shown[0][0]} {state.shown[0][1]})" if state.shown else ""


def _texts(additions: Iterator[Addition], most: int | None) -> dict[str, list[str]]:
    """Collect the distinct texts of the first kinds that together fit the limit."""
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for addition in additions:
        for kind, texts in _said(addition).items():
            if kind in found:
                found[kind] |= texts
        while most is not None and sum(map(len, found.values())) > most:
            found.popitem()  # drop the last kind to make room for those before it
    return {kind: sorted(texts) for kind, texts in found.items()}


def _said(addition: Addition) -> dict[str, set[str]]:
    facts = [fact for extraction in addition.extractions for fact in extraction.facts]
    entities = [entity for extraction in addition.extractions for entity in extraction.entities]
    # A value needs no vector, and only the node that says so knows that it is one.
    values = {entity.name for entity in entities if entity.type in LITERALS}
    names = {entity.name for entity in entities} | {name for f in facts for name, _ in f.members}
    return {
        "relations": {relation_words(fact.relation) for fact in facts if fact.relation},
        "entities": names - values,
        "chunks": {embedded_text(chunk) for chunk in addition.chunks},
        "facts": {fact.text for fact in facts},
    }
