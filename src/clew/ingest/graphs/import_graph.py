"""Imports a graph: graph file → staged rows → passages → vectors → one write.

Rows are read into a stage, from which a killed import resumes; vectors are cached by content; the
write is one transaction. Where the store's memory is bounded, it does not grow with the file.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from time import perf_counter

from clew.errors import InputError
from clew.index.derive import derive_arrays
from clew.ingest.arrivals import record_arrivals
from clew.ingest.build import AddResult
from clew.ingest.document_names import GRAPHS_KIND, document_parts
from clew.ingest.embedding import ProgressCallback, check_embedder, embed_texts
from clew.ingest.files import document_name, find_files
from clew.ingest.graphs.formats import GraphFormat, detect_format, graph_files
from clew.ingest.graphs.passages import PASSAGES_VERSION, PassageBuilder
from clew.ingest.graphs.rows import READER_VERSION, StartPosition, stage_rows
from clew.ingest.graphs.staging import GraphStage, StageProgress
from clew.ingest.readers.source import SourceFile
from clew.llm.embed import Embedder
from clew.store.merge import embedded_text
from clew.store.protocol import (
    PARTLY_EMBEDDED,
    Addition,
    Arrays,
    Change,
    Counts,
    KeyValueStore,
    Store,
    Tables,
)
from clew.text.names import relation_to_words
from clew.text.unicode import digest
from clew.types import LITERAL_TYPES, Kind

# What is embedded, most useful first.
EMBEDDED_KINDS: dict[str, Kind] = {
    "relations": "relation",
    "entities": "entity",
    "chunks": "chunk",
    "facts": "fact",
}
_MAX_SHOWN_BAD_ROWS = 5  # reported with line and reason
_PIECE = 1 << 20


# Where each phase of a write ends, in percent of its time; the time of each is linear in the rows.
_ENDS = {"stage": 54, "join": 68, "merge": 84, "columns": 95, "derive": 99}
_STARTS = dict(zip(_ENDS, (0, *_ENDS.values()), strict=False))


@dataclass(frozen=True)
class WriteProgress:
    """Reports the phases of a write as one stage, in percent."""

    report: ProgressCallback
    lines: int
    """Lines of all additions, about."""

    def count_additions(self, additions: Iterable[Addition]) -> Iterator[Addition]:
        """Yield the additions; report how many of the lines were in those that were taken."""
        taken = 0
        for addition in additions:
            yield addition
            taken += sum(chunk.text.count("\n") + 1 for chunk in addition.chunks)
            self("stage", min(taken, self.lines), self.lines)

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Report how far a phase is."""
        begin, end = _STARTS[phase], _ENDS[phase]
        self.report("write", begin + (end - begin) * done // max(total, 1), 100)


@dataclass(frozen=True)
class ImportResult:
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
    embed: Embedder | None = None
    max_embedded: int | None = None
    """Maximum number of elements to embed; None: all."""
    strict: bool = False
    progress: ProgressCallback = field(default=lambda stage, done, total: None, repr=False)

    async def __call__(self, path: Path, wanted: str | None = None) -> ImportResult:
        """Import a file; an unchanged one costs no more than reading it."""
        name, source = _locate(path)
        chosen = await asyncio.to_thread(detect_format, source, wanted)
        seal = await asyncio.to_thread(self._compute_seal, source, chosen)
        async with self.store.write_lock():
            parts = await self._imported_parts(name)
            stored = (await self.store.get(GRAPHS_KIND, [name])).get(name)
            record = json.loads(stored) if stored else {}
            if record.get("seal") == seal and record.get("parts") == len(parts):
                counts = await self.store.counts()
                return ImportResult(counts, name, chosen.name, record["rows"], unchanged=True)
            stage = await asyncio.to_thread(
                GraphStage, self.scratch / f"{digest(name)[:16]}.stage", seal
            )
            try:
                result = await self._import_rows(stage, source, chosen, (name, parts))
            except BaseException:
                stage.close()
                raise
            await self._record_import(name, seal, result)
            await asyncio.to_thread(stage.delete)
        return result

    async def _import_rows(
        self, stage: GraphStage, path: Path, chosen: GraphFormat, known: tuple[str, list[str]]
    ) -> ImportResult:
        name, parts = known
        clock = _StageTimer()
        read = await asyncio.to_thread(self._stage_file, stage, path, chosen)
        clock.lap("read")
        passages = PassageBuilder(name, chosen.label)
        embedded, left = await self._embed_texts(lambda: passages(stage))
        clock.lap("embed")
        await record_arrivals(self.store, [name])
        counts = await self._write(parts, passages(stage), stage.count_lines())
        clock.lap("write")
        return ImportResult(
            *(counts, name, chosen.name, read.rows, read.bad, read.shown),
            embedded=embedded,
            not_embedded=left,
            shared_names=read.shared_names,
            seconds=clock.laps,
        )

    def _compute_seal(self, path: Path, chosen: GraphFormat) -> str:
        """Return a hash of the content and how it is read: same seal, same graph."""
        state = blake2b(digest_size=16)
        for source in graph_files(path, chosen):
            state.update(source.name.encode())
            with source.open("rb") as file:
                while piece := file.read(_PIECE):
                    state.update(piece)
        return digest(state.hexdigest(), chosen.name, PASSAGES_VERSION, READER_VERSION)

    async def _imported_parts(self, name: str) -> list[str]:
        """Return the document names of an earlier import of this file."""
        return [part for part in document_parts(name, await self.store.sources()) if part != name]

    # -- reading

    def _stage_file(self, stage: GraphStage, path: Path, chosen: GraphFormat) -> StageProgress:
        """Read the file into the stage, from where an earlier run stopped."""
        state = stage.load_progress()
        if state.done:
            return state
        total = sum(one.stat().st_size for one in graph_files(path, chosen))
        for batch in chosen.read(path, StartPosition(state.place, state.line)):
            nodes, links, bad = stage_rows(batch.rows)
            if bad and self.strict:
                raise InputError(
                    f"{path}, line {bad[0].line}: {bad[0].reason}; correct it, or omit --strict"
                )
            state = replace(
                state,
                place=batch.position,
                line=batch.line,
                rows=state.rows + batch.count_good(),
                bad=state.bad + len(bad),
                shown=(*state.shown, *((one.line, one.reason) for one in bad))[
                    :_MAX_SHOWN_BAD_ROWS
                ],
            )
            stage.commit_rows(nodes, links, state)
            self.progress("file", min(batch.bytes_read, total), total)  # shows the remaining time
            self.progress("rows", state.rows, 0)
        if not state.rows:
            raise InputError(
                f"{path} holds no row that can be read{_first_error(state)}; is it {chosen.name}?"
            )
        state = stage.assign_names(state, chosen.label)
        self.progress("file", total, total)
        return state

    # -- writing

    async def _write(self, old: list[str], parts: Iterator[Addition], lines: int) -> Counts:
        """Replace the parts of an earlier import by these, and tell how far that is."""
        tell = WriteProgress(self.progress, lines)
        tell("stage", 0, lines)

        def derive(tables: Tables) -> Arrays:
            tell("columns", 1, 1)
            arrays = derive_arrays(tables)
            tell("derive", 1, 1)
            return arrays

        change = Change(remove=old, bulk=tell.count_additions(parts), progress=tell)
        counts = await self.store.write(change, derive)
        self.progress("write", 100, 100)
        return counts

    # -- embedding

    async def _embed_texts(
        self, passages: Callable[[], Iterator[Addition]]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Embed relations, names, chunks and facts, in this order, up to the limit."""
        if self.embed is None:
            return (), tuple(EMBEDDED_KINDS)
        read = self._count_parts(passages())
        texts = await asyncio.to_thread(_collect_texts, read, self.max_embedded)
        if not any(texts.values()):
            return (), tuple(EMBEDDED_KINDS)
        await check_embedder(self.store, self.embed, claim=True)
        by_kind = {kind: texts[name] for name, kind in EMBEDDED_KINDS.items() if name in texts}
        await embed_texts(self.store, self.embed, by_kind, self.progress)
        return tuple(texts), tuple(kind for kind in EMBEDDED_KINDS if kind not in texts)

    def _count_parts(self, parts: Iterator[Addition]) -> Iterator[Addition]:
        """Yield the parts, and tell how many were."""
        for at, part in enumerate(parts, 1):
            yield part
            self.progress("collect", at, 0)

    async def _record_import(self, name: str, seal: str, result: ImportResult) -> None:
        stored = (
            (await self.store.get("manifest", [PARTLY_EMBEDDED])).get(PARTLY_EMBEDDED, "").split()
        )
        partly = sorted({*stored, *(EMBEDDED_KINDS[kind] for kind in result.not_embedded)})
        await self.store.set("manifest", {PARTLY_EMBEDDED: " ".join(partly)})
        parts = len(await self._imported_parts(name))
        record = {"seal": seal, "parts": parts, "rows": result.rows, "format": result.format}
        await self.store.set(GRAPHS_KIND, {name: json.dumps(record)})


class _StageTimer:
    """Measures seconds per stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._at = perf_counter()

    def lap(self, name: str) -> None:
        now = perf_counter()
        self.laps[name] = round(now - self._at, 2)
        self._at = now


def _locate(path: Path) -> tuple[str, Path]:
    """Return the graph's document name and path; a folder is one graph."""
    found = find_files([path])
    if not path.is_dir() and not isinstance(found[0], SourceFile):
        raise InputError(str(found[0]))
    return document_name(path), path


def _first_error(state: StageProgress) -> str:
    return f" (line {state.shown[0][0]} {state.shown[0][1]})" if state.shown else ""


def _collect_texts(additions: Iterator[Addition], most: int | None) -> dict[str, list[str]]:
    """Collect the distinct texts of the first kinds that together fit the limit."""
    found: dict[str, set[str]] = {kind: set() for kind in EMBEDDED_KINDS}
    for addition in additions:
        for kind, texts in _texts_by_kind(addition).items():
            if kind in found:
                found[kind] |= texts
        while most is not None and sum(map(len, found.values())) > most:
            found.popitem()  # drop the last kind to make room for those before it
    return {kind: sorted(texts) for kind, texts in found.items()}


def _texts_by_kind(addition: Addition) -> dict[str, set[str]]:
    facts = [fact for extraction in addition.extractions for fact in extraction.facts]
    entities = [entity for extraction in addition.extractions for entity in extraction.entities]
    # A value needs no vector, and only the node that says so knows that it is one.
    values = {entity.name for entity in entities if entity.type in LITERAL_TYPES}
    names = {entity.name for entity in entities} | {name for f in facts for name, _ in f.members}
    return {
        "relations": {relation_to_words(fact.relation) for fact in facts if fact.relation},
        "entities": names - values,
        "chunks": {embedded_text(chunk) for chunk in addition.chunks},
        "facts": {fact.text for fact in facts},
    }


async def find_imported_graphs(
    key_values: KeyValueStore, paths: Sequence[Path | str | SourceFile]
) -> dict[Path | str, str]:
    """Return those of the paths that were imported as graphs, with their formats."""
    plain = [path for path in paths if not isinstance(path, SourceFile)]
    names = {path: document_name(Path(path)) for path in plain}
    held = await key_values.get(GRAPHS_KIND, list(names.values()))
    return {path: json.loads(held[name])["format"] for path, name in names.items() if name in held}


def combine_results(done: Sequence[ImportResult], added: AddResult | None = None) -> AddResult:
    """Combine the result of an add with the re-imports of graphs among its paths."""
    result = added or AddResult(done[-1].counts)
    same = sum(one.unchanged for one in done)
    return replace(
        result, unchanged=result.unchanged + same, updated=result.updated + len(done) - same
    )
