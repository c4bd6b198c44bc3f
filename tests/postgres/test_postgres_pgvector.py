"""Where the database has pgvector, SQL finds the passages that Clew finds; else nothing changes."""

from collections.abc import Iterator

import pytest

from clew.config import Settings
from clew.doctor import run_checks
from clew.kb_address import DatabaseAddress
from clew.testing.hashed_kb import open_hashed
from conftest import VALLEY, stream

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

QUESTION = "Where was Anton Reeve born?"
NEAREST = (
    "SELECT c.id FROM {0}.passage_vectors p JOIN {0}.chunks c ON c.key = p.key "
    "ORDER BY p.vector <=> %s::vector LIMIT 3"
)


@pytest.fixture
def with_vectors(address: DatabaseAddress) -> Iterator[DatabaseAddress]:
    with psycopg.connect(address.url, autocommit=True) as db:
        offered = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        if db.execute(offered).fetchone() is None:
            pytest.skip("the server has no pgvector; CLEW_TEST_POSTGRES may name one that has")
        db.execute("CREATE EXTENSION vector")
        yield address
        db.execute("DROP EXTENSION vector CASCADE")


async def tell(settings: Settings) -> str:
    return {one.name: one.message for one in await run_checks(settings)}["pgvector"]


async def test_sql_finds_the_passages_that_clew_finds(
    shared: Settings, with_vectors: DatabaseAddress
) -> None:
    base = await open_hashed(shared, True)
    await base.take(stream(VALLEY))
    await base.remove(["poet"])
    [vector] = await base.embed([QUESTION], role="query")
    seen = [one.id for one in (await base.search(QUESTION, recipe="naive", k=3)).evidence.chunks]
    with psycopg.connect(with_vectors.url) as db:
        statement = NEAREST.format(with_vectors.schema)
        found = db.execute(statement, (str(vector.tolist()),)).fetchall()
    assert [one for (one,) in found] == seen
    chunks = (await base.store.counts()).chunks
    assert (await tell(shared)).endswith(f"SQL can search {chunks} passages")
    await base.close()


async def test_a_database_without_pgvector_says_so_and_works(
    shared: Settings, address: DatabaseAddress
) -> None:
    base = await open_hashed(shared, True)
    await base.take(stream(VALLEY))
    assert (await base.search(QUESTION, recipe="naive")).evidence.chunks
    with psycopg.connect(address.url) as db:
        row = db.execute("SELECT to_regclass(%s)", (f"{address.schema}.passage_vectors",))
        assert row.fetchone() == (None,)
    assert "on this server" in await tell(shared)
    await base.close()
