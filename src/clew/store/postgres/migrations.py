"""The schema of the tables as a list of migrations; append one, never edit an existing one."""

from shlex import quote
from typing import LiteralString

import psycopg
from psycopg import sql

from clew.errors import StoreError, VersionError
from clew.store.postgres.connections import WRITE, Connection, Database

# Keys come from `counters`, which a rolled back write leaves as it was; they are never reused.
# Columns named `*_code` hold what the arrays need of a text, so that reading them is a COPY.
_INITIAL_SCHEMA: LiteralString = """
CREATE TABLE meta(key text PRIMARY KEY, value text NOT NULL);
INSERT INTO meta VALUES ('generation', '0'), ('id', gen_random_uuid()::text);
CREATE TABLE counters(name text PRIMARY KEY, last bigint NOT NULL);
INSERT INTO counters VALUES ('documents', 0), ('chunks', 0), ('entities', 0), ('facts', 0);
CREATE TABLE documents(
  key bigint PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE, title text NOT NULL,
  text text NOT NULL, metadata text NOT NULL, pages text NOT NULL, stamp text NOT NULL,
  checksum bigint);
CREATE TABLE sources(
  name text COLLATE "C" PRIMARY KEY, document bigint NOT NULL, checksum bigint);
CREATE INDEX sources_document ON sources(document);
CREATE TABLE chunks(
  key bigint PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE, document bigint NOT NULL,
  start bigint NOT NULL, stop bigint NOT NULL, text text NOT NULL, heading text NOT NULL,
  page bigint, vector_row bigint NOT NULL, failed text NOT NULL, checksum bigint,
  extracted bigint);
CREATE INDEX chunks_failed ON chunks(key) WHERE failed != '';
CREATE INDEX chunks_document ON chunks(document);
CREATE TABLE entities(
  key bigint PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE, name text NOT NULL,
  name_hash bigint NOT NULL, type text NOT NULL, description text NOT NULL,
  aliases text NOT NULL, attributes text NOT NULL, support bigint NOT NULL,
  vector_row bigint NOT NULL, checksum bigint, type_code bigint NOT NULL,
  id_code bigint NOT NULL, literal bigint NOT NULL, exact bigint NOT NULL);
CREATE TABLE forms(
  entity bigint NOT NULL, hash bigint NOT NULL, weight bigint NOT NULL, part bigint NOT NULL,
  PRIMARY KEY (entity, hash));
CREATE TABLE facts(
  key bigint PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE, text text NOT NULL,
  relation text NOT NULL, keywords text NOT NULL, description text NOT NULL,
  weight double precision NOT NULL, support bigint NOT NULL, vector_row bigint NOT NULL,
  checksum bigint, relation_code bigint NOT NULL, weight_code bigint NOT NULL);
CREATE TABLE participants(
  fact bigint NOT NULL, ordinal bigint NOT NULL, entity bigint NOT NULL, role text NOT NULL,
  PRIMARY KEY (fact, ordinal));
CREATE TABLE mentions(
  entity bigint NOT NULL, chunk bigint NOT NULL, surface text NOT NULL, type text NOT NULL,
  description text NOT NULL, spans text NOT NULL, times bigint NOT NULL,
  about double precision NOT NULL, aliases text NOT NULL, attributes text NOT NULL,
  about_code bigint NOT NULL, class_code bigint NOT NULL, PRIMARY KEY (entity, chunk));
CREATE INDEX mentions_chunk ON mentions(chunk);
CREATE TABLE sayings(
  fact bigint NOT NULL, chunk bigint NOT NULL, text text NOT NULL, relation text NOT NULL,
  keywords text NOT NULL, description text NOT NULL, weight double precision NOT NULL,
  start bigint NOT NULL, stop bigint NOT NULL, PRIMARY KEY (fact, chunk));
CREATE INDEX sayings_chunk ON sayings(chunk);
CREATE TABLE memory(
  kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, value text NOT NULL,
  checksum bigint, PRIMARY KEY (kind, key));
CREATE TABLE vector_tables(
  embedder text NOT NULL, kind text NOT NULL, count bigint NOT NULL DEFAULT 0,
  width bigint NOT NULL DEFAULT 0, PRIMARY KEY (embedder, kind));
CREATE TABLE vector_blocks(
  embedder text NOT NULL, kind text NOT NULL, first bigint NOT NULL, count bigint NOT NULL,
  file text NOT NULL, checksum bigint NOT NULL, PRIMARY KEY (embedder, kind, first));
CREATE TABLE files(
  name text COLLATE "C" NOT NULL, part bigint NOT NULL, data bytea NOT NULL,
  PRIMARY KEY (name, part));
ALTER TABLE files ALTER COLUMN data SET STORAGE EXTERNAL;
"""
# Builds and their jobs, the workers, and the limits that they share.
_JOBS: LiteralString = """
CREATE TABLE runs(
  id text PRIMARY KEY, budget double precision, spent double precision NOT NULL DEFAULT 0,
  seen timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE jobs(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run text NOT NULL, kind text NOT NULL,
  payload bytea NOT NULL, state smallint NOT NULL DEFAULT 0, attempts integer NOT NULL DEFAULT 0,
  worker text NOT NULL DEFAULT '', lease timestamptz, result bytea, error text NOT NULL DEFAULT '',
  not_before timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX jobs_open ON jobs(id) WHERE state < 2;
CREATE INDEX jobs_ended ON jobs(run) WHERE state >= 2;
CREATE TABLE workers(name text PRIMARY KEY, seen timestamptz NOT NULL);
CREATE TABLE slots(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, model text NOT NULL, run text NOT NULL,
  worker text NOT NULL, until timestamptz NOT NULL);
CREATE TABLE rates(
  model text NOT NULL, what text NOT NULL, full_at double precision NOT NULL,
  PRIMARY KEY (model, what));
"""
# Every row has the generations that it belongs to (see `versions`): what was a table is now a view
# of the published generation, or of the one that a transaction has set for itself.
_VERSIONED: LiteralString = """
ALTER TABLE {table} RENAME TO {table}_versions;
ALTER TABLE {table}_versions ADD COLUMN since bigint NOT NULL DEFAULT 0,
  ADD COLUMN until bigint NOT NULL DEFAULT 9223372036854775807;
ALTER TABLE {table}_versions ALTER COLUMN since
  SET DEFAULT current_setting('clew.generation')::bigint;
ALTER TABLE {table}_versions DROP CONSTRAINT {table}_pkey;
ALTER TABLE {table}_versions ADD PRIMARY KEY ({key}, since);
CREATE INDEX {table}_ended ON {table}_versions(until) WHERE until < 9223372036854775807;
CREATE VIEW {table} AS SELECT {columns} FROM {table}_versions
  WHERE since <= ({shown}) AND until > ({shown});
"""
_SHOWN: LiteralString = (
    "SELECT coalesce(nullif(current_setting('clew.generation', true), '')::bigint, value::bigint) "
    "FROM meta WHERE key = 'generation'"
)
_IDENTIFIED: LiteralString = (
    "ALTER TABLE {table}_versions DROP CONSTRAINT {table}_id_key; "
    "ALTER TABLE {table}_versions ADD UNIQUE (id, since);"
)
# By table: its key, and its columns.
_TABLES_OF_ROWS: dict[LiteralString, tuple[LiteralString, LiteralString]] = {
    "documents": ("key", "key, id, title, text, metadata, pages, stamp, checksum"),
    "sources": ("name", "name, document, checksum"),
    "chunks": (
        "key",
        "key, id, document, start, stop, text, heading, page, vector_row, failed, checksum, "
        "extracted",
    ),
    "entities": (
        "key",
        "key, id, name, name_hash, type, description, aliases, attributes, support, vector_row, "
        "checksum, type_code, id_code, literal, exact",
    ),
    "forms": ("entity, hash", "entity, hash, weight, part"),
    "facts": (
        "key",
        "key, id, text, relation, keywords, description, weight, support, vector_row, checksum, "
        "relation_code, weight_code",
    ),
    "participants": ("fact, ordinal", "fact, ordinal, entity, role"),
    "mentions": (
        "entity, chunk",
        "entity, chunk, surface, type, description, spans, times, about, aliases, attributes, "
        "about_code, class_code",
    ),
    "sayings": (
        "fact, chunk",
        "fact, chunk, text, relation, keywords, description, weight, start, stop",
    ),
}
_VERSIONS: LiteralString = "".join(
    _VERSIONED.format(table=table, key=key, columns=columns, shown=_SHOWN)
    + (_IDENTIFIED.format(table=table) if "key, id," in columns else "")
    for table, (key, columns) in _TABLES_OF_ROWS.items()
)
# What a build's calls have used; and with each slot, what its call costs if nobody tells.
_USAGE: LiteralString = """
ALTER TABLE runs ADD COLUMN calls bigint NOT NULL DEFAULT 0,
  ADD COLUMN prompt_tokens bigint NOT NULL DEFAULT 0,
  ADD COLUMN completion_tokens bigint NOT NULL DEFAULT 0;
ALTER TABLE slots ADD COLUMN calls bigint NOT NULL DEFAULT 0,
  ADD COLUMN prompt_tokens bigint NOT NULL DEFAULT 0,
  ADD COLUMN money double precision NOT NULL DEFAULT 0;
"""
MIGRATIONS: tuple[LiteralString, ...] = (_INITIAL_SCHEMA, _JOBS, _VERSIONS, _USAGE)


def migrate(database: Database, *, create: bool) -> None:
    """Bring the tables up to date; refuse a newer format; without `create` they must exist."""
    if not database.is_there():
        if not create:
            raise StoreError(
                f"no knowledge base in {database.address}; `clew add PATH --kb "
                f"{quote(str(database.address))}` creates one"
            )
        _create_schema(database)
    with database.transaction() as db:
        if _read_version(db) == len(MIGRATIONS):
            return
        # Another process may be doing the same.
        db.execute("SELECT pg_advisory_xact_lock(%s)", (database.lock_key ^ 1,))
        version = _read_version(db)
        if version > len(MIGRATIONS):
            raise VersionError(
                f"the knowledge base {database.address} has format {version}, and this Clew reads "
                f"up to format {len(MIGRATIONS)}; upgrade clew, or build a new one with --kb"
            )
        for step in MIGRATIONS[version:]:
            db.execute(step)
        db.execute(
            "INSERT INTO meta VALUES ('format', %s) ON CONFLICT (key) "
            "DO UPDATE SET value = excluded.value",
            (str(len(MIGRATIONS)),),
        )


def _create_schema(database: Database) -> None:
    """Create the schema, unless an administrator has."""
    name = database.address.schema
    with database.transaction(WRITE) as db:
        if db.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (name,)).fetchone():
            return
        try:
            with db.transaction():  # a savepoint
                db.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        except (psycopg.errors.DuplicateSchema, psycopg.errors.UniqueViolation):
            pass  # another process has just created it


def _read_version(db: Connection) -> int:
    """Number of migrations applied; 0 for an empty schema."""
    held = db.execute("SELECT to_regclass('meta') IS NOT NULL").fetchone()
    if not held or not held[0]:
        return 0
    row = db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    return int(row[0]) if row else 0
