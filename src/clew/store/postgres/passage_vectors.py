"""A table of the passages' vectors for SQL, where the database has the extension pgvector.

Clew's own searches read mapped files, which are faster; the table is for other programs that use
the same database. It follows the published generation: what a killed writer has left undone, the
next one does.
"""

from typing import LiteralString

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from clew.store.postgres.connections import READ, Connection, Database
from clew.store.protocol import Array, VectorTable

_INSTALLED: LiteralString = (
    "SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n "
    "ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
)
_AVAILABLE: LiteralString = (
    "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"
)
_MADE_BY: LiteralString = "SELECT value FROM meta WHERE key = 'passage vectors'"
_CREATE: LiteralString = """
DROP TABLE IF EXISTS passage_vectors;
CREATE TABLE passage_vectors(
  key bigint PRIMARY KEY, vector_row bigint NOT NULL, vector {type}({width}) NOT NULL);
INSERT INTO meta VALUES ('passage vectors', {embedder}) ON CONFLICT (key)
  DO UPDATE SET value = excluded.value
"""
_REMOVE_OLD: LiteralString = (
    "DELETE FROM passage_vectors p WHERE NOT EXISTS (SELECT FROM chunks c "
    "WHERE c.key = p.key AND c.vector_row = p.vector_row)"
)
_FIND_NEW: LiteralString = (
    "SELECT c.key, c.vector_row FROM chunks c LEFT JOIN passage_vectors p ON p.key = c.key "
    "WHERE p.key IS NULL AND c.vector_row >= 0 ORDER BY c.key"
)
_COPY: LiteralString = "COPY passage_vectors(key, vector_row, vector) FROM STDIN (FORMAT BINARY)"
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # without flags and without an extension
_TRAILER = b"\xff\xff"
_ROWS_AT_ONCE = 4096


def describe_pgvector(database: Database) -> str:
    """Whether the database has pgvector, and how many passages its programs find by it."""
    with database.transaction(READ) as db:
        if (installed := db.execute(_INSTALLED).fetchone()) is None:
            offered = db.execute(_AVAILABLE).fetchone()
            if offered is None:
                return "not on this server, and not needed"
            return (
                f"{offered[0]} on this server; after `CREATE EXTENSION vector` and the next write "
                "SQL can search passages"
            )
        if db.execute(_MADE_BY).fetchone() is None:
            return f"{installed[1]}; passages can be searched by SQL after the next write"
        found = db.execute("SELECT count(*) FROM passage_vectors").fetchone()
    return f"{installed[1]}; SQL can search {found[0] if found else 0} passages"


def update_passage_vectors(db: Connection, embedder: str, vectors: VectorTable) -> None:
    """Give every passage of the published generation its vector, if there is pgvector."""
    installed = db.execute(_INSTALLED).fetchone()
    if installed is None or not embedder:
        return
    matrix = vectors.matrix()
    made_by = f"{embedder} {matrix.shape[1]}"
    if (row := db.execute(_MADE_BY).fetchone()) is None or row[0] != made_by:
        db.execute(
            sql.SQL(_CREATE).format(
                type=sql.Identifier(installed[0], "vector"),
                width=matrix.shape[1],
                embedder=made_by,
            )
        )
    db.execute(_REMOVE_OLD)
    new: Array = np.array(db.execute(_FIND_NEW).fetchall(), np.int64).reshape(-1, 2)
    with db.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.write(_SIGNATURE)
        for at in range(0, len(new), _ROWS_AT_ONCE):
            some = new[at : at + _ROWS_AT_ONCE]
            copy.write(_encode(some, matrix[some[:, 1]]))
        copy.write(_TRAILER)


def _encode(keys: Array, vectors: NDArray[np.floating]) -> bytes:
    """Rows of a binary COPY: key, row and vector, each after its size in bytes."""
    width = vectors.shape[1]
    head = ">i2, >i4, >i8, >i4, >i8, >i4, >i2, >i2"
    rows = np.zeros(len(keys), np.dtype(f"{head}, ({width},)>f4"))
    cells = (3, 8, keys[:, 0], 8, keys[:, 1], 4 + 4 * width, width, 0, vectors)
    for number, value in enumerate(cells):
        rows[f"f{number}"] = value
    return rows.tobytes()
