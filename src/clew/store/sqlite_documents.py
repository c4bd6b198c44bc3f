"""Documents, their names and their chunks, written many at a time."""

import json
import sqlite3
from collections.abc import Sequence

from clew.store import sqlite_rows as rows
from clew.store.merge import embedded_text
from clew.store.protocol import Addition
from clew.store.sqlite_fresh import VectorRows, next_key
from clew.text import digest
from clew.types import Chunk, Extraction

ChunkRow = tuple[int, Chunk, Extraction, int]
"""A chunk's key, the chunk, what was extracted from it, and its document's key."""


def documents_there(
    db: sqlite3.Connection, additions: Sequence[Addition]
) -> dict[str, tuple[int, str]]:
    """The documents among these that are known already, by id: key and stamp."""
    found = db.execute(
        "SELECT id, key, stamp FROM documents WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps([a.document.id for a in additions]),),
    )
    return {name: (key, stamp) for name, key, stamp in found}


def add_documents(
    db: sqlite3.Connection, additions: Sequence[Addition]
) -> tuple[list[Addition], list[ChunkRow]]:
    """Keep documents and names; those whose chunks are not here, and the rows these will have."""
    db.executemany(
        "INSERT OR IGNORE INTO documents(id,title,text,metadata,pages,stamp) VALUES (?,?,?,?,?,?)",
        [rows.document_row(a.document, a.stamp) for a in additions],
    )
    there = documents_there(db, additions)
    keys = {name: key for name, (key, _) in there.items()}
    db.executemany(
        "INSERT OR REPLACE INTO sources VALUES (?,?)",
        [(name, keys[a.document.id]) for a in additions for name in a.document.names],
    )
    db.executemany(
        "UPDATE documents SET stamp = ? WHERE key = ?",
        [(a.stamp, keys[a.document.id]) for a in additions if a.stamp != there[a.document.id][1]],
    )
    fresh = _without_chunks(db, additions, keys)
    first = next_key(db, "chunks")
    many = [
        (chunk, said, keys[a.document.id])
        for a in fresh
        for chunk, said in zip(a.chunks, a.extractions, strict=True)
    ]
    return fresh, [(first + at, *one) for at, one in enumerate(many)]


def _without_chunks(
    db: sqlite3.Connection, additions: Sequence[Addition], keys: dict[str, int]
) -> list[Addition]:
    """Those whose chunks are not here; of the same document said twice, the first."""
    held = {
        row[0]
        for row in db.execute(
            "SELECT document FROM chunks WHERE document IN (SELECT value FROM json_each(?))",
            (json.dumps(list(keys.values())),),
        )
    }
    fresh = []
    for addition in additions:
        key = keys[addition.document.id]
        if key not in held:
            fresh.append(addition)
            if addition.chunks:
                held.add(key)
    return fresh


def add_chunks(db: sqlite3.Connection, vector_rows: VectorRows, many: Sequence[ChunkRow]) -> None:
    """Keep chunks, each with the place of its vector."""
    at = vector_rows("chunk", [digest(embedded_text(chunk)) for _, chunk, _, _ in many]).tolist()
    db.executemany(
        "INSERT INTO chunks(key,id,document,start,end,text,heading,page,row,failed) "
        "VALUES (?,?,?,?,?,?,?,?,?,?)",
        [
            (
                *(key, chunk.id, document, chunk.start, chunk.end, chunk.text),
                *(chunk.heading, chunk.page, row, said.failed),
            )
            for (key, chunk, said, document), row in zip(many, at, strict=True)
        ],
    )
