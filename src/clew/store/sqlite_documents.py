"""Batched inserts of documents, their names and their chunks."""

import json
import sqlite3
from collections.abc import Sequence

from clew.store import sqlite_rows as rows
from clew.store.merge import embedded_text
from clew.store.protocol import Addition
from clew.store.sqlite_fresh import FindVectorRows, next_key
from clew.text import digest
from clew.types import Chunk, Extraction

ChunkRow = tuple[int, Chunk, Extraction, int]
"""A chunk's key, the chunk, what was extracted from it, and its document's key."""


def find_documents(
    db: sqlite3.Connection, additions: Sequence[Addition]
) -> dict[str, tuple[int, str]]:
    """Key and stamp, by id, of the documents that are already stored."""
    found = db.execute(
        "SELECT id, key, stamp FROM documents WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps([a.document.id for a in additions]),),
    )
    return {name: (key, stamp) for name, key, stamp in found}


def insert_documents(
    db: sqlite3.Connection, additions: Sequence[Addition]
) -> tuple[list[Addition], list[ChunkRow]]:
    """Insert documents and names; return those without chunks, and their future chunk rows."""
    db.executemany(
        "INSERT OR IGNORE INTO documents(id,title,text,metadata,pages,stamp) VALUES (?,?,?,?,?,?)",
        [rows.document_to_row(a.document, a.stamp) for a in additions],
    )
    stored = find_documents(db, additions)
    keys = {name: key for name, (key, _) in stored.items()}
    db.executemany(
        "INSERT OR REPLACE INTO sources VALUES (?,?)",
        [(name, keys[a.document.id]) for a in additions for name in a.document.names],
    )
    db.executemany(
        "UPDATE documents SET stamp = ? WHERE key = ?",
        [(a.stamp, keys[a.document.id]) for a in additions if a.stamp != stored[a.document.id][1]],
    )
    fresh = _filter_without_chunks(db, additions, keys)
    first = next_key(db, "chunks")
    chunks = [
        (chunk, extraction, keys[a.document.id])
        for a in fresh
        for chunk, extraction in zip(a.chunks, a.extractions, strict=True)
    ]
    return fresh, [(first + at, *chunk_row) for at, chunk_row in enumerate(chunks)]


def _filter_without_chunks(
    db: sqlite3.Connection, additions: Sequence[Addition], keys: dict[str, int]
) -> list[Addition]:
    """Additions whose chunks are not stored; of a repeated document only the first."""
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


def insert_chunks(
    db: sqlite3.Connection, vector_rows: FindVectorRows, many: Sequence[ChunkRow]
) -> None:
    """Insert chunks, each with its vector row."""
    at = vector_rows("chunk", [digest(embedded_text(chunk)) for _, chunk, _, _ in many]).tolist()
    db.executemany(
        "INSERT INTO chunks(key,id,document,start,end,text,heading,page,row,failed) "
        "VALUES (?,?,?,?,?,?,?,?,?,?)",
        [
            (
                *(key, chunk.id, document, chunk.start, chunk.end, chunk.text),
                *(chunk.heading, chunk.page, row, extraction.failed),
            )
            for (key, chunk, extraction, document), row in zip(many, at, strict=True)
        ],
    )
