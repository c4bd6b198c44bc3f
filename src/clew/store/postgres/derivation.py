"""What the arrays of a generation are derived from, read when its rows are written."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from clew.store.postgres.connections import READ, Connection, Database
from clew.store.postgres.keyvalue import select_values
from clew.store.postgres.tables import (
    TABLES_OF_COLUMNS,
    ChunkTexts,
    read_columns,
    read_decisions,
    read_tables,
)
from clew.store.postgres.vectors import SharedVectors
from clew.store.postgres.versions import UnpublishedWrite, read_generation, show_generation
from clew.store.postgres.write import find_all_vector_rows
from clew.store.protocol import (
    COLUMN_PREFIX,
    DETAIL_PREFIX,
    LATE_KINDS,
    Array,
    Arrays,
    Change,
    Tables,
)
from clew.store.quotes import open_quotes
from clew.store.sqlite.tables import update_tables
from clew.store.sqlite.write import TouchedElements
from clew.types import Kind

_PARALLEL_READS = 3  # connections that read columns at once
_ELEMENTS: dict[Kind, str] = {"chunk": "chunks", "entity": "entities", "fact": "facts"}


@dataclass(frozen=True)
class DerivationInput:
    """The tables; and, for a new embedder, the vector row of every element."""

    tables: Tables
    vector_rows: Mapping[Kind, Array]


@dataclass(frozen=True)
class InputReader:
    """Reads the tables as they will be once a write is published."""

    database: Database
    load_arrays: Callable[[int, str], Arrays]
    """The arrays of a generation, by its number and its seal."""
    vectors: Callable[[str, Kind], SharedVectors]

    def find_rows(self, embedder: str, kind: Kind, hashes: Sequence[str]) -> Array:
        """Vector row of each content hash; -1 without a vector."""
        if not embedder or not hashes:
            return np.full(len(hashes), -1)
        return self.vectors(embedder, kind).find_rows(hashes)

    def read(
        self, write: UnpublishedWrite, change: Change, touched: TouchedElements, embedder: str
    ) -> DerivationInput:
        """Read the tables; no transaction stays open."""
        moved: dict[Kind, Array] = {}
        with self.database.transaction(READ) as db:
            previous = {} if change.rebuild else self.load_arrays(*read_generation(db))
            show_generation(db, write.generation)
            # A new embedder changes every vector row, and a bulk write touches most rows.
            whole = bool(change.embedder) or change.bulk is not None
            tables = _read_tables(self.database, db, write, {} if whole else previous, touched)
            decided, pinned = read_decisions(db, change.values)
            late = select_values(db, "manifest", LATE_KINDS)
            if change.embedder:
                moved = find_all_vector_rows(db, partial(self.find_rows, embedder))
                tables = _use_vector_rows(tables, moved)
                # Nearest neighbours and rows of descriptions depend on the embedder.
                dropped = ("near_", DETAIL_PREFIX)
                previous = {k: previous[k] for k in previous if not k.startswith(dropped)}
        set_now = change.values.get("manifest", {})
        kinds = " ".join(set_now.get(key, late.get(key, "")) for key in LATE_KINDS).split()
        compared = embedder and "entity" not in kinds
        # Texts to index: those of new chunks, or all if there is no index yet.
        keys = touched.chunks if "text_terms" in previous else None
        tables = replace(
            tables,
            merge_decisions=decided,
            sense_pins=pinned,
            texts=ChunkTexts(self.database, write.generation, keys),
            previous=previous,
            entity_vectors=self.vectors(embedder, "entity").matrix() if compared else None,
            quotes=open_quotes(self.vectors, embedder, kinds),
        )
        return DerivationInput(tables, moved)


def _read_tables(
    database: Database,
    db: Connection,
    write: UnpublishedWrite,
    previous: Arrays,
    touched: TouchedElements,
) -> Tables:
    """Update the columns of the previous generation; if it has none, read all, several at once."""
    if all(COLUMN_PREFIX + name in previous for name in TABLES_OF_COLUMNS):
        changed = {
            "chunks": {*touched.chunks, *touched.removed_chunks},
            "entities": touched.entities,
            "facts": touched.facts,
        }
        return read_tables(db, previous, changed)
    # Other connections share the snapshot of this one, so that all see the same rows.
    row = db.execute("SELECT pg_export_snapshot()").fetchone()
    read = partial(_read_shared, database, str(row[0]) if row else "", write.generation)
    with ThreadPoolExecutor(_PARALLEL_READS) as pool:
        found = dict(zip(TABLES_OF_COLUMNS, pool.map(read, TABLES_OF_COLUMNS), strict=True))
    return update_tables({}, {}, lambda name, keys: found[name])


def _read_shared(database: Database, shared: str, generation: int, name: str) -> Array:
    with database.transaction(READ, shared) as db:
        show_generation(db, generation)
        return read_columns(db, name)


def _use_vector_rows(tables: Tables, moved: Mapping[Kind, Array]) -> Tables:
    """The same tables with other vector rows, given by key for every element."""
    found = {}
    for kind, name in _ELEMENTS.items():
        table = getattr(tables, name).copy()
        table[:, 1] = moved[kind][:, 1]
        found[name] = table
    return replace(tables, **found)
