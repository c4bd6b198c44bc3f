"""The connection pool: connections are reused, closed and rolled back; errors are translated."""

import resource
import sqlite3
from pathlib import Path

import pytest

from clew.errors import Locked, StoreError
from clew.store.sqlite.connections import MAX_IDLE, ConnectionPool, translate_errors


@pytest.fixture
def pool(tmp_path: Path) -> ConnectionPool:
    return ConnectionPool(tmp_path / "kb.sqlite", durable=False)


def test_closing_closes_idle_connections(pool: ConnectionPool) -> None:
    idle, used = pool.acquire(), pool.acquire()
    pool.release(idle)
    pool.close()
    with pytest.raises(sqlite3.ProgrammingError):
        idle.execute("SELECT 1")
    assert used.execute("SELECT 1").fetchone() == (1,)
    used.close()


def test_a_released_connection_is_reused(pool: ConnectionPool) -> None:
    with pool.connection() as first:
        pass
    with pool.connection() as again, pool.connection() as other:
        assert again is first
        assert other is not first
    pool.close()


def test_what_is_written_after_the_disk_was_full_is_seen(
    tmp_path: Path, pool: ConnectionPool
) -> None:
    with pool.connection() as db:
        db.execute("CREATE TABLE t (n)")
    pool.close()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pool.connection() as db:
            assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)
        assert not pool.writable
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    other = ConnectionPool(tmp_path / "kb.sqlite", durable=False)
    with other.connection() as db:
        db.execute("INSERT INTO t VALUES (1)")
    with pool.connection() as db:
        assert db.execute("SELECT count(*) FROM t").fetchone() == (1,)
    assert pool.writable
    other.close()
    pool.close()


def test_many_folders_share_a_few_idle_connections(tmp_path: Path) -> None:
    pools = [ConnectionPool(tmp_path / f"{n}.sqlite", durable=False) for n in range(MAX_IDLE + 20)]
    opened = []
    for one in pools:
        with one.connection() as db:
            opened.append(db)
    for number, db in enumerate(opened):
        if number < 20:
            with pytest.raises(sqlite3.ProgrammingError):
                db.execute("SELECT 1")
        else:
            assert db.execute("SELECT 1").fetchone() == (1,)
    with pools[0].connection() as again:  # opened anew
        assert again.execute("SELECT 1").fetchone() == (1,)
    for one in pools:
        one.close()


def test_an_open_transaction_is_rolled_back(pool: ConnectionPool) -> None:
    with pool.connection() as db:
        db.execute("CREATE TABLE t (n)")
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO t VALUES (1)")
    with pool.connection() as db:
        assert not db.in_transaction
        assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)
    pool.close()


@pytest.mark.parametrize(
    ("message", "kind", "expected"),
    [
        ("database is locked", Locked, "locked for too long"),
        ("database or disk is full", StoreError, "is the disk full"),
        ("disk I/O error", StoreError, "is the disk full"),
        ("file is not a database", StoreError, "not a knowledge base, or is damaged"),
        ("database disk image is malformed", StoreError, "not a knowledge base, or is damaged"),
        ("no such table: t", StoreError, r"kb\.sqlite: no such table: t$"),
    ],
)
def test_sqlite_errors_are_translated(
    tmp_path: Path, message: str, kind: type[StoreError], expected: str
) -> None:
    with pytest.raises(StoreError, match=expected) as raised, translate_errors(tmp_path):
        raise sqlite3.OperationalError(message)
    assert type(raised.value) is kind
    assert ("damaged" in str(raised.value)) == ("damaged" in expected)


def test_file_errors_are_translated(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No space left"), translate_errors(tmp_path):
        raise OSError(28, "No space left")
