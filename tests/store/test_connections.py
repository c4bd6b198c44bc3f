"""Connections are lent and taken back; none stays open, none keeps others out."""

import sqlite3
from pathlib import Path

import pytest

from clew.errors import Locked, StoreError
from clew.store.sqlite.connections import ConnectionPool, translate_errors


@pytest.fixture
def lent(tmp_path: Path) -> ConnectionPool:
    return ConnectionPool(tmp_path / "kb.sqlite", durable=False)


def test_closing_closes_those_that_nobody_uses(lent: ConnectionPool) -> None:
    idle, used = lent.acquire(), lent.acquire()
    lent.release(idle)
    lent.close()
    with pytest.raises(sqlite3.ProgrammingError):
        idle.execute("SELECT 1")
    assert used.execute("SELECT 1").fetchone() == (1,)
    used.close()


def test_one_that_was_given_back_is_lent_again(lent: ConnectionPool) -> None:
    with lent.connection() as first:
        pass
    with lent.connection() as again, lent.connection() as other:
        assert again is first
        assert other is not first
    lent.close()


def test_a_transaction_that_was_left_open_is_undone(lent: ConnectionPool) -> None:
    with lent.connection() as db:
        db.execute("CREATE TABLE t (n)")
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO t VALUES (1)")
    with lent.connection() as db:
        assert not db.in_transaction
        assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)
    lent.close()


@pytest.mark.parametrize(
    ("said", "kind", "told_as"),
    [
        ("database is locked", Locked, "locked for too long"),
        ("database or disk is full", StoreError, "is the disk full"),
        ("disk I/O error", StoreError, "is the disk full"),
        ("file is not a database", StoreError, "not a knowledge base, or is damaged"),
        ("database disk image is malformed", StoreError, "not a knowledge base, or is damaged"),
        ("no such table: t", StoreError, r"kb\.sqlite: no such table: t$"),
    ],
)
def test_what_sqlite_says_is_told_in_our_words(
    tmp_path: Path, said: str, kind: type[StoreError], told_as: str
) -> None:
    with pytest.raises(StoreError, match=told_as) as raised, translate_errors(tmp_path):
        raise sqlite3.OperationalError(said)
    assert type(raised.value) is kind
    assert ("damaged" in str(raised.value)) == ("damaged" in told_as)


def test_what_the_disk_says_is_told_in_our_words(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No space left"), translate_errors(tmp_path):
        raise OSError(28, "No space left")
