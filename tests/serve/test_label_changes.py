"""Hidden documents that are written or removed while a reader without their labels reads."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from serving import fill, make_key, make_server, running

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.labels import save_labels
from clew.store.protocol import Snapshot
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.hashed_kb import open_hashed
from conftest import document, stream

SECRET = document("secret", "Marta Quill owns what Anton Reeve wrote in Montsalvat.", "")
AT = "/workspaces/valley"


async def add_secret(folder: Path) -> None:
    """Label and add a document, as another process does."""
    base = await open_hashed(Settings(kb=folder), False)
    await save_labels(base.store, {"secret": ["team=legal"]})
    await base.take(stream([SECRET]))
    await base.close()


async def add_and_remove_secret(folder: Path) -> None:
    """The same, and remove it again."""
    await add_secret(folder)
    base = await open_hashed(Settings(kb=folder), False)
    await base.remove(["secret"])
    await base.close()


class RacingStore(SqliteStore):
    """Another process writes just before a snapshot is opened."""

    countdown: int = 0
    write_elsewhere: Callable[[Path], Awaitable[None]] = staticmethod(add_secret)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Open the newest generation; the number counts down to the write."""
        self.countdown -= 1
        if self.countdown == 0:
            await self.write_elsewhere(self.folder)
        async with super().snapshot() as now:
            yield now


@pytest.mark.parametrize("write", [add_secret, add_and_remove_secret])
@pytest.mark.parametrize("moment", [1, 2, 3])
def test_a_document_labelled_while_it_is_searched_is_not_shown(
    tmp_path: Path, moment: int, write: Callable[[Path], Awaitable[None]]
) -> None:
    fill(tmp_path / "valley")
    stores: list[RacingStore] = []

    async def open_racing(settings: Settings, create: bool) -> KnowledgeBase:
        if settings.kb != tmp_path / "valley":
            return await open_hashed(settings, create)
        store = RacingStore(tmp_path / "valley", durable=False)
        stores.append(store)
        return KnowledgeBase(store, settings, HashEmbed())

    server = make_server(tmp_path, open_racing)
    reader = make_key(server, {"valley": "read"}, [])
    body = {
        "question": "Who owns what Anton Reeve wrote of Marta Quill?",
        "recipe": "bm25",
        "k": 20,
    }
    with running(server) as client:
        assert client.post(f"{AT}/search", json=body, headers=reader).status_code == 200
        stores[0].write_elsewhere, stores[0].countdown = write, moment
        reply = client.post(f"{AT}/search", json=body, headers=reader)
        assert reply.status_code == 200
        assert stores[0].countdown <= 0
        assert "montsalvat" not in reply.text.lower()
        assert "poet" in {chunk["doc"] for chunk in reply.json()["chunks"]}
