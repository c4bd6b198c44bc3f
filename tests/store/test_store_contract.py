"""Any sequence of adds, updates and removals equals a fresh build of what remains."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from clew.index.derive import derive_arrays
from clew.store.memory import MemoryStore
from clew.store.protocol import Change, Store
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import StoreContract, read_content
from store_changes import CHANGES, make_consistent


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> SqliteStore:
        return SqliteStore(tmp_path / "kb", create=True)


async def _replay(store: Store, changes: list[Change]) -> dict[str, object]:
    for change in changes:
        await store.write(change, derive_arrays)
    return await read_content(store)


@settings(
    max_examples=settings.default.max_examples // 3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(CHANGES)
def test_sqlite_agrees_with_the_reference(changes: list[Change]) -> None:
    consistent = make_consistent(changes)

    async def check() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = SqliteStore(Path(folder) / "kb", create=True, durable=False)
            assert await _replay(store, consistent) == await _replay(MemoryStore(), consistent)
            assert await store.find_problems() == []
            await store.close()

    asyncio.run(check())
