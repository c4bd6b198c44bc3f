"""Counts and size of a knowledge base on disk."""

import os
import sqlite3
from pathlib import Path

from clew.store.protocol import Arrays, Counts

_COUNT_QUERIES = {
    "documents": "SELECT count(*) FROM documents",
    "chunks": "SELECT count(*) FROM chunks",
    "entities": "SELECT count(*) FROM entities",
    "facts": "SELECT count(*) FROM facts",
    "failed": "SELECT count(*) FROM chunks WHERE failed != ''",
}


def read_counts(db: sqlite3.Connection, generation: int, arrays: Arrays, folder: Path) -> Counts:
    """Count the elements of one generation, and the bytes of all files."""
    number = {
        table: int(db.execute(statement).fetchone()[0])
        for table, statement in _COUNT_QUERIES.items()
    }
    number["communities"] = len(arrays.get("community_keys", ()))
    if "entity_keys" in arrays:  # resolved entities; the table holds names
        number["entities"] = len(arrays["entity_keys"])
    return Counts(**number, generation=generation, bytes=_folder_size(folder))


def _folder_size(folder: Path) -> int:
    """Total size of the files; files removed meanwhile are skipped."""
    size = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                size += (Path(where) / name).stat().st_size
            except FileNotFoundError:
                continue
    return size
