"""A generation without its arrays: the error names the remedy, and writers rebuild them."""

import shutil
from pathlib import Path

import pytest

from clew.errors import StoreError
from clew.index.derive import derive_arrays
from clew.store.protocol import Change
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import MARIE, PIERRE


async def test_a_reader_without_arrays_gets_an_error_with_the_remedy(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True, durable=False)
    await store.write(Change(add=[MARIE]), derive_arrays)
    await store.close()
    shutil.rmtree(tmp_path / "arrays" / "1")
    reader = SqliteStore(tmp_path)
    with pytest.raises(StoreError, match="are missing; `clew verify --repair`"):
        async with reader.snapshot():
            pass
    # A writer derives them again.
    writer = SqliteStore(tmp_path, durable=False)
    counts = await writer.write(Change(add=[PIERRE]), derive_arrays)
    assert counts.documents == 2
    async with reader.snapshot() as now:
        assert now.generation == counts.generation
    for one in (reader, writer):
        await one.close()
