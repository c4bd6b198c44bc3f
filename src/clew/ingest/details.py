"""Embeds descriptions, keywords and attributes once they are merged: after a write.

An element without details keeps the vector of its name or text. One whose details changed has that
vector, too, until they are embedded, so a crash in between loses no element. Details that were
embedded before are found by their content hash, for which no embedder is needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.errors import ArraysMissing, Locked, StoreError
from clew.graph.csr import Ints, Mask
from clew.index.derive import derive_arrays, derive_keeping_trees, has_current_layout
from clew.index.details import (
    NO_VECTOR,
    PAIRS,
    PENDING,
    DetailTable,
    load_details,
    use_detailed_rows,
)
from clew.ingest.embedding import ProgressCallback, embed_texts
from clew.llm.embed import Embedder
from clew.store.merge import attribute_texts, detailed_text, name_hash
from clew.store.protocol import (
    PARTLY_EMBEDDED,
    Arrays,
    Change,
    Counts,
    DeriveArrays,
    Snapshot,
    Store,
    Tables,
)
from clew.store.vector_records import DamagedVectors
from clew.text.unicode import digest
from clew.types import LITERAL_TYPES, Entity, Fact, Kind

_BLOCK = 4096  # elements whose details are in memory at a time
_CHECKED = "details"  # manifest key: all details are known to the columns
_TEXT_KINDS: dict[str, Kind] = {"entity": "description", "fact": "fact"}


@dataclass(frozen=True)
class DetailEmbedder:
    """Embeds the details that are new or changed, and publishes their rows."""

    store: Store
    embed: Embedder | None
    """None: only details that have a vector already get its row."""
    name: str
    """The embedder of the stored vectors."""
    progress: ProgressCallback
    limit: int | None = None
    """Of an import: with more elements to embed their details are left out."""

    async def __call__(self, *, recheck_long: bool = False) -> Counts | None:
        """Embed what is pending; None if nothing is, or nothing can be found.

        With `recheck_long`, long descriptions are read again: they may have a summary by now.
        """
        async with self.store.write_lock():
            await self._check_earlier_version()
            async with self.store.snapshot() as now:
                tables = await self._read_tables(now, recheck_long)
                done = {
                    kind: await self._embed_pending(now, kind, table)
                    for kind, table in tables.items()
                    if (table.rows == PENDING).any()
                }
            found = {k: t for k, t in done.items() if (t.rows != tables[k].rows).any()}
            if not found:
                return None
            return await self.store.write(Change(), _publish(found))

    async def _check_earlier_version(self) -> None:
        """Derive the columns again if an earlier version wrote them, and elements have details."""
        if await _is_checked(self.store):
            return
        async with self.store.snapshot() as now:
            held = now.arrays
            detailed = await _has_details(now)
        if detailed:
            await self.store.write(Change(rebuild=True), derive_keeping_trees(held))
        await self.store.set("manifest", {_CHECKED: "1"})

    async def _read_tables(self, now: Snapshot, recheck_long: bool) -> dict[str, DetailTable]:
        """Return the tables of the kinds to embed; those left out deliberately are not."""
        partly = await _read_partly(self.store)
        tables = _load_wanted(now.arrays, partly)
        if recheck_long:
            tables = {k: _reset_long(now.arrays, k, table) for k, table in tables.items()}
        if self.limit is not None and _count(tables) > self.limit:
            partly = sorted({*partly, "description"})
            await self.store.set("manifest", {PARTLY_EMBEDDED: " ".join(partly)})
            return {}
        return tables

    async def _embed_pending(self, now: Snapshot, kind: str, table: DetailTable) -> DetailTable:
        """Embed the pending elements of a kind; return the table with their rows."""
        pending = table.rows == PENDING
        rows, stays = table.rows.copy(), ~np.isin(table.pair_keys, table.keys[pending])
        pairs: list[tuple[int, int]] = []
        for block in _blocks(np.flatnonzero(pending)):
            keys = [int(key) for key in table.keys[block]]
            held: dict[int, Entity] | dict[int, Fact]
            held = await (now.entities(keys) if kind == "entity" else now.facts(keys))
            elements = [held.get(key) for key in keys]
            texts = [_text_of(one) for one in elements]
            found = await self._embed(_TEXT_KINDS[kind], texts)
            listed = await self._embed_pairs(keys, elements)
            lacking = {key for key, value in listed if kind == "entity" and value < 0}
            lacking |= set(table.keys[block][found == PENDING].tolist())
            found[np.isin(table.keys[block], sorted(lacking))] = PENDING
            rows[block] = found
            pairs += [pair for pair in listed if pair[0] not in lacking]
        fresh = np.array(sorted(pairs), np.int64).reshape(-1, 2)
        return replace(
            table,
            rows=rows,
            pair_keys=np.concatenate([table.pair_keys[stays], fresh[:, 0]]),
            pair_values=np.concatenate([table.pair_values[stays], fresh[:, 1]]),
        )

    async def _embed_pairs(
        self, keys: Sequence[int], elements: Sequence[Entity | Fact | None]
    ) -> list[tuple[int, int]]:
        """Return the keyword hashes of facts and the vector rows of entities' attributes."""
        pairs = [
            (key, name_hash(word))
            for key, one in zip(keys, elements, strict=True)
            if isinstance(one, Fact)
            for word in one.keywords
        ]
        listed = [
            (key, text)
            for key, one in zip(keys, elements, strict=True)
            if isinstance(one, Entity)
            for text in attribute_texts(one)
        ]
        rows = await self._embed("attribute", [text for _, text in listed])
        at = zip(listed, rows.tolist(), strict=True)
        return pairs + [(key, row) for (key, _), row in at]

    async def _embed(self, kind: Kind, texts: Sequence[str]) -> Ints:
        """Return the vector row of each text; NO_VECTOR for empty ones, PENDING if it has none."""
        wanted = [text for text in texts if text]
        if self.embed is not None:
            await embed_texts(self.store, self.embed, {kind: wanted}, self.progress)
        rows = np.full(len(texts), NO_VECTOR, np.int64)
        has_text = [bool(text) for text in texts]
        table = self.store.vectors(self.name, kind)
        rows[has_text] = table.find_rows([digest(text) for text in wanted])
        return rows


async def mark_new(store: Store) -> None:
    """Record that a knowledge base without documents was not written by an earlier version."""
    if not await _is_checked(store) and not (await store.counts()).documents:
        await store.set("manifest", {_CHECKED: "1"})


async def find_embedded_details(store: Store) -> None:
    """Give details the rows of vectors that they have already; no embedder is needed."""
    name = (await store.get("manifest", ["embedder"])).get("embedder", "")
    if name:
        await DetailEmbedder(store, None, name, lambda *_: None)()


async def count_pending(store: Store, arrays: Arrays) -> int:
    """Number of elements whose details wait for a vector; those left out deliberately do not."""
    if not (await store.get("manifest", ["embedder"])).get("embedder"):
        return 0
    return _count(_load_wanted(arrays, await _read_partly(store)))


async def _read_partly(store: Store) -> list[str]:
    manifest = await store.get("manifest", [PARTLY_EMBEDDED])
    return manifest.get(PARTLY_EMBEDDED, "").split()


def _load_wanted(arrays: Arrays, partly: Sequence[str]) -> dict[str, DetailTable]:
    """Load the tables of the kinds that are not left out deliberately."""
    if "description" in partly:
        return {}
    return {kind: load_details(arrays, kind) for kind in PAIRS if kind not in partly}


def _count(tables: dict[str, DetailTable]) -> int:
    return sum(int((table.rows == PENDING).sum()) for table in tables.values())


async def _is_checked(store: Store) -> bool:
    return bool((await store.get("manifest", [_CHECKED])).get(_CHECKED))


def _text_of(element: Entity | Fact | None) -> str:
    if element is None or (isinstance(element, Entity) and element.type in LITERAL_TYPES):
        return ""
    return detailed_text(element)


def _reset_long(arrays: Arrays, kind: str, table: DetailTable) -> DetailTable:
    long: Mask = np.isin(table.keys, arrays[f"{kind}_keys"][arrays[f"{kind}_long"]])
    return replace(table, rows=np.where(long, PENDING, table.rows))


def _blocks(positions: Ints) -> Iterator[Ints]:
    return (positions[at : at + _BLOCK] for at in range(0, len(positions), _BLOCK))


async def _has_details(now: Snapshot) -> bool:
    """Tell whether any element has details that are worth a vector."""
    for block in _blocks(now.arrays.get("entity_keys", np.zeros(0, np.int64))):
        entities = await now.entities(block.tolist())
        if any(one.description or one.attributes for one in entities.values()):
            return True
    for block in _blocks(now.arrays.get("fact_keys", np.zeros(0, np.int64))):
        facts = await now.facts(block.tolist())
        if any(one.description or one.keywords for one in facts.values()):
            return True
    return False


def _publish(found: dict[str, DetailTable]) -> DeriveArrays:
    """Return a deriver that keeps all other arrays as they are."""

    def publish(tables: Tables) -> Arrays:
        old = tables.previous
        kept = "layout" in old
        arrays = (
            {n: old[n] for n in old if not n.startswith("raw_")} if kept else derive_arrays(tables)
        )
        for kind, table in found.items():
            arrays |= table.to_arrays(kind)
        if "fact" in found:
            arrays["fact_rows"] = use_detailed_rows(arrays)
        return arrays

    return publish


async def derive_stale_arrays(store: Store, *, required: bool = True) -> None:
    """Derive the arrays again if they are lost, damaged or of another version of Clew.

    Where nothing can be written, raise what is wrong with them if they are `required`.
    """
    held: Arrays = {}
    damage: ArraysMissing | None = None
    try:
        async with store.snapshot() as now:
            held = now.arrays
            if not now.generation or has_current_layout(held):
                return
    except ArraysMissing as error:
        damage, held = error, await store.load_sound_arrays()
    try:
        await store.write(Change(rebuild=True), derive_keeping_trees(held))
        await find_embedded_details(store)
    except DamagedVectors:
        if has_current_layout(held):
            raise
        # The arrays stay missing, which a reader is told; `clew verify --repair` mends both.
    except Locked:
        raise
    except StoreError as error:
        if required and damage is not None:
            raise type(damage)(f"{damage}, which failed here: {error}") from error
        if required:
            raise
