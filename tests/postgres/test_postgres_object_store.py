"""Arrays and vectors of a knowledge base in PostgreSQL may be in an object store that speaks S3."""

from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest

from clew.errors import StoreError
from clew.index.derive import derive_arrays
from clew.kb_address import DatabaseAddress
from clew.store.protocol import Change
from clew.testing.contracts import MARIE, PIERRE, read_content
from clew.text.unicode import digest

pytest.importorskip("psycopg", reason="psycopg is not installed")
pytest.importorskip("s3fs", reason="s3fs is not installed")
pytest.importorskip("moto", reason="moto is not installed")

from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

from clew.store.postgres.store import PostgresStore

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
FILES = "s3://clew-test/some/prefix"


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadedMotoServer]:
    """An object store on this machine, with an empty bucket."""
    S3FileSystem.clear_instance_cache()  # else the next test would get this one's address
    made = ThreadedMotoServer(port=0, verbose=False)
    made.start()
    host, port = made.get_host_and_port()
    url = f"http://{host}:{port}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with urlopen(Request(f"{url}/clew-test", method="PUT")) as reply:
        assert reply.status == 200
    yield made
    made.stop()


async def test_machines_share_files_in_an_object_store(
    objects: ThreadedMotoServer, address: DatabaseAddress, tmp_path: Path
) -> None:
    one = PostgresStore(address, tmp_path / "one", create=True, files=FILES)
    one.vectors("model", "fact").append([digest("x")], np.ones((1, 3), np.float32))
    for addition in (MARIE, PIERRE, MARIE):
        await one.write(Change(add=[addition]), derive_arrays)
    other = PostgresStore(address, tmp_path / "two", files=FILES)
    assert await read_content(other) == await read_content(one)
    assert other.vectors("model", "fact").find_rows([digest("x")]).tolist() == [0]
    assert await other.find_problems() == []
    with one.database.transaction() as db:
        assert db.execute("SELECT count(*) FROM files").fetchone() == (0,)
    await one.close()
    await other.close()


async def test_a_write_without_the_object_store_changes_nothing(
    objects: ThreadedMotoServer, address: DatabaseAddress, tmp_path: Path
) -> None:
    store = PostgresStore(address, tmp_path / "one", create=True, files=FILES)
    await store.write(Change(add=[MARIE]), derive_arrays)
    objects.stop()
    with pytest.raises(StoreError, match="nothing was changed"):
        await store.write(Change(add=[PIERRE]), derive_arrays)
    assert (await store.counts()).generation == 1
    objects.start()
    await store.close()
