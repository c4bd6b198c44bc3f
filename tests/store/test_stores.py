from pathlib import Path

import pytest

from clew.store.memory import MemoryStore
from clew.store.sqlite import SqliteStore
from clew.testing.contracts import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> SqliteStore:
        return SqliteStore(tmp_path / "kb", create=True)
