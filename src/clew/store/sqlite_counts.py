"""Counts and size of a knowledge base on disk."""

import os
import sqlite3
from pathlib import Path

from clew.store.protocol import Arrays, Counts

_COUNT = {
    "documents": "SELECT count(*) FROM documents",
    "chunks": "SELECT count(*) FROM chunks",
    "entities": "SELECT count(*) FROM entities",
    "facts": "SELECT count(*) FROM facts",
    "failed": "SELECT count(*) FROM chunks WHERE failed != ''",
}


def counts_of(db: sqlite3.Connection, generation: int, arrays: Arrays, folder: Path) -> Counts:
    """Count the elements of one generation, and the bytes of all files."""
    number = {
        table: int(db.execute(statement).fetchone()[0]) for table, statement in _COUNT.items()
    }
    number["communities"] = len(arrays.get("community_keys", ()))
    if "entity_keys" in arrays:  # resolved entities; the table holds names
        number["entities"] = len(arrays["entity_keys"])
    return Counts(**number, generation=generation, bytes=_size(folder))


def _size(folder: Path) -> int:
    """Total size of the files; files removed meanwhile are skipped."""
    size = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                size += (Path(where) / name).stat().st_size
            except FileNotFoundError:
                continue
    return size
