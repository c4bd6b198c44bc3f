"""Any sequence of adds, updates and removals equals a fresh build of what remains."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.index.derive import derive_arrays
from clew.store.memory import MemoryStore
from clew.store.protocol import Addition, Change, Store
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import StoreContract, make_addition, make_triple, read_content


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> SqliteStore:
        return SqliteStore(tmp_path / "kb", create=True)


NAMES = st.sampled_from(["a", "b", "c", "d"])
WORDS = st.sampled_from(["Marie", "marie", "Пётр", "北京", "Paris", "found", "İstanbul", "é", "é"])
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


@st.composite
def additions(draw: st.DrawFn) -> Addition:
    facts = [
        make_triple(draw(WORDS), draw(st.sampled_from(["knows", "Knows", "likes"])), draw(WORDS))
        for _ in range(draw(st.integers(0, 2)))
    ]
    text = draw(TEXTS)
    # Facts are a function of the text, as with any deterministic extractor.
    return make_addition(draw(NAMES), text, facts=facts if len(text) % 2 else ())


CHANGES = st.lists(
    st.builds(
        Change,
        add=st.lists(additions(), max_size=3),
        remove=st.lists(NAMES, max_size=2, unique=True),
    ),
    max_size=5,
)


async def _replay(store: Store, changes: list[Change]) -> dict[str, object]:
    for change in changes:
        await store.write(change, derive_arrays)
    return await read_content(store)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(CHANGES)
def test_sqlite_agrees_with_the_reference(changes: list[Change]) -> None:
    consistent = _consistent(changes)

    async def check() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = SqliteStore(Path(folder) / "kb", create=True, durable=False)
            assert await _replay(store, consistent) == await _replay(MemoryStore(), consistent)
            assert await store.find_problems() == []
            await store.close()

    asyncio.run(check())


def _consistent(changes: list[Change]) -> list[Change]:
    """The same content always has the same extraction, whatever its name."""
    first: dict[str, Addition] = {}
    found = []
    for change in changes:
        added = []
        for one in change.add:
            known = first.setdefault(one.document.id, one)
            added.append(Addition(one.document, known.chunks, known.extractions, known.stamp))
        found.append(Change(add=added, remove=change.remove))
    return found
