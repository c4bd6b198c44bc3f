"""The SQL schema as a list of migrations; append one, never edit an existing one."""

import sqlite3
from collections.abc import Iterator

from clew.errors import VersionError
from clew.store.sqlite.connections import transaction

# Keys are never reused (AUTOINCREMENT): derived arrays identify known elements by key.
_INITIAL_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('generation', '0');
CREATE TABLE documents(
  key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
  text TEXT NOT NULL, metadata TEXT NOT NULL, pages TEXT NOT NULL, stamp TEXT NOT NULL);
CREATE TABLE sources(
  name TEXT PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents(key)) WITHOUT ROWID;
CREATE INDEX sources_document ON sources(document);
CREATE TABLE chunks(
  key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
  document INTEGER NOT NULL REFERENCES documents(key), start INTEGER NOT NULL,
  end INTEGER NOT NULL, text TEXT NOT NULL, heading TEXT NOT NULL, page INTEGER,
  row INTEGER NOT NULL, failed TEXT NOT NULL DEFAULT '');
CREATE INDEX chunks_failed ON chunks(failed) WHERE failed != '';
CREATE INDEX chunks_document ON chunks(document);
CREATE TABLE entities(
  key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL DEFAULT '',
  name_hash INTEGER NOT NULL DEFAULT 0, type TEXT NOT NULL DEFAULT '',
  description TEXT NOT NULL DEFAULT '', aliases TEXT NOT NULL DEFAULT '',
  attributes TEXT NOT NULL DEFAULT '', support INTEGER NOT NULL DEFAULT 0,
  row INTEGER NOT NULL DEFAULT -1);
CREATE TABLE forms(
  entity INTEGER NOT NULL, hash INTEGER NOT NULL, weight INTEGER NOT NULL, part INTEGER NOT NULL,
  PRIMARY KEY (entity, hash)) WITHOUT ROWID;
CREATE TABLE facts(
  key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL DEFAULT '',
  relation TEXT NOT NULL DEFAULT '', keywords TEXT NOT NULL DEFAULT '',
  description TEXT NOT NULL DEFAULT '', weight REAL NOT NULL DEFAULT 1,
  support INTEGER NOT NULL DEFAULT 0, row INTEGER NOT NULL DEFAULT -1);
CREATE TABLE participants(
  fact INTEGER NOT NULL, ordinal INTEGER NOT NULL, entity INTEGER NOT NULL, role TEXT NOT NULL,
  PRIMARY KEY (fact, ordinal)) WITHOUT ROWID;
CREATE TABLE mentions(
  entity INTEGER NOT NULL, chunk INTEGER NOT NULL, surface TEXT NOT NULL, type TEXT NOT NULL,
  description TEXT NOT NULL, spans TEXT NOT NULL, times INTEGER NOT NULL, about REAL NOT NULL,
  aliases TEXT NOT NULL, attributes TEXT NOT NULL, PRIMARY KEY (entity, chunk)) WITHOUT ROWID;
CREATE INDEX mentions_chunk ON mentions(chunk);
CREATE TABLE sayings(
  fact INTEGER NOT NULL, chunk INTEGER NOT NULL, text TEXT NOT NULL, relation TEXT NOT NULL,
  keywords TEXT NOT NULL, description TEXT NOT NULL, weight REAL NOT NULL,
  start INTEGER NOT NULL, end INTEGER NOT NULL, PRIMARY KEY (fact, chunk)) WITHOUT ROWID;
CREATE INDEX sayings_chunk ON sayings(chunk);
CREATE TABLE memory(
  kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (kind, key)) WITHOUT ROWID;
"""
# `checksum` is of the row, `extracted` of all that was extracted from the chunk; NULL in rows from
# before.
_CHECKSUMS = """
ALTER TABLE documents ADD COLUMN checksum INTEGER;
ALTER TABLE sources ADD COLUMN checksum INTEGER;
ALTER TABLE chunks ADD COLUMN checksum INTEGER;
ALTER TABLE chunks ADD COLUMN extracted INTEGER;
ALTER TABLE entities ADD COLUMN checksum INTEGER;
ALTER TABLE facts ADD COLUMN checksum INTEGER;
ALTER TABLE memory ADD COLUMN checksum INTEGER;
"""
# `PRAGMA user_version` is the number of those applied.
MIGRATIONS = (_INITIAL_SCHEMA, _CHECKSUMS)


def migrate(db: sqlite3.Connection, where: str, *, writable: bool = True) -> None:
    """Bring the schema up to date; refuse a newer format."""
    version = read_version(db)
    if version > len(MIGRATIONS):
        raise VersionError(
            f"the knowledge base {where} has format {version}, and this Clew reads up to format "
            f"{len(MIGRATIONS)}; upgrade clew, or build a new one with --kb"
        )
    if version == len(MIGRATIONS):
        return
    if not writable:
        raise VersionError(
            f"the knowledge base {where} has format {version} and cannot be written to; open it "
            "once where it can, which brings it up to date"
        )
    with transaction(db):
        version = read_version(db)  # another process may have migrated first
        for number, step in enumerate(MIGRATIONS[version:], start=version + 1):
            for statement in _split_statements(step):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {number}")


def read_version(db: sqlite3.Connection) -> int:
    """Number of migrations applied; 0 for a new file."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _split_statements(step: str) -> Iterator[str]:
    """Split a script, because `executescript` would commit the open transaction."""
    statement = ""
    for part in step.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):  # false inside a trigger or a string
            yield statement
            statement = ""
