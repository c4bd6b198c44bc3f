"""Hidden documents that are written or removed while a reader without their labels reads."""

import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from serving import fill, make_key, make_server, running

from clew import sync
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.labels import save_labels
from clew.serve.core.label_views import Outdated, find_visible, make_view
from clew.serve.core.workspaces import OpenKb
from clew.store.protocol import Snapshot
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.hashed_kb import open_hashed
from conftest import VALLEY, document, one_in_three, stream

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


def make_racing(folder: Path) -> tuple[OpenKb, list[RacingStore]]:
    """What opens the folder with a racing store, and the stores that it opened."""
    stores: list[RacingStore] = []

    async def open_racing(settings: Settings, create: bool) -> KnowledgeBase:
        if settings.kb != folder:
            return await open_hashed(settings, create)
        stores.append(RacingStore(folder, durable=False))
        return KnowledgeBase(stores[-1], settings, HashEmbed())

    return open_racing, stores


@pytest.mark.parametrize("write", [add_secret, add_and_remove_secret])
@pytest.mark.parametrize("moment", one_in_three([1, 2, 3]))
def test_a_document_labelled_while_it_is_searched_is_not_shown(
    tmp_path: Path, moment: int, write: Callable[[Path], Awaitable[None]]
) -> None:
    fill(tmp_path / "valley")
    open_racing, stores = make_racing(tmp_path / "valley")
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


@pytest.mark.parametrize("moment", [2, 4])
def test_a_document_labelled_during_a_stream_is_not_shown(tmp_path: Path, moment: int) -> None:
    fill(tmp_path / "valley")
    open_racing, stores = make_racing(tmp_path / "valley")
    server = make_server(tmp_path, open_racing)
    reader = make_key(server, {"valley": "read"}, [])
    body = {"question": "Where did Marta Quill and Anton Reeve write?", "stream": True}
    with running(server) as client:
        client.post(f"{AT}/ask", json=body, headers=reader)
        stores[0].countdown = moment
        reply = client.post(f"{AT}/ask", json=body, headers=reader)
    assert stores[0].countdown <= 0
    assert "montsalvat" not in reply.text.lower()
    assert "event: answer" in reply.text or '"status":429' in reply.text


def search_valley(client: TestClient, key: dict[str, str]) -> Response:
    """Search with the words of the poet's document."""
    body = {"question": "Who was Anton Reeve?", "recipe": "bm25", "k": 20}
    return client.post(f"{AT}/search", json=body, headers=key)


def test_a_copy_that_is_removed_while_it_is_read_is_made_again(tmp_path: Path) -> None:
    fill(tmp_path / "valley", labels={"town": ["team=legal"]})
    opened: list[Path] = []

    async def open_removed(settings: Settings, create: bool) -> KnowledgeBase:
        if isinstance(settings.kb, Path) and settings.kb != tmp_path / "valley":
            opened.append(settings.kb)
            if len(opened) == 1:  # as another worker does that keeps newer copies only
                shutil.rmtree(settings.kb)
        return await open_hashed(settings, create)

    server = make_server(tmp_path, open_removed)
    reader = make_key(server, {"valley": "read"}, [])
    with running(server) as client:
        assert search_valley(client, reader).status_code == 200
        assert len(opened) == 2
        shutil.rmtree(opened[1])  # in use: its files are open
        reply = search_valley(client, reader)
        assert reply.status_code == 200
        assert "poet" in {chunk["doc"] for chunk in reply.json()["chunks"]}


def test_a_failure_is_logged_with_its_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path / "valley")

    async def fail(settings: Settings, create: bool) -> KnowledgeBase:
        raise PermissionError("a file that may not be read")

    server = make_server(tmp_path, fail)
    reader = make_key(server, {"valley": "read"})
    with running(server) as client:
        assert search_valley(client, reader).status_code == 500
    assert "Traceback" in caplog.text and "a file that may not be read" in caplog.text


def test_no_unfinished_copy_is_left(tmp_path: Path) -> None:
    fill(tmp_path / "valley", labels={"town": ["team=legal"]})
    views = tmp_path / ".server" / "views" / "valley"
    killed = views / "7-made.new"
    killed.mkdir(parents=True)
    (killed / "kb.sqlite").write_text("Hallowmere")

    async def change_and_copy() -> None:
        base = await open_hashed(Settings(kb=tmp_path / "valley"), False)
        found = await find_visible(base, [])
        await base.remove(["moss"])
        with pytest.raises(Outdated):
            await make_view(base, found, views)
        await base.close()

    with running(make_server(tmp_path)):
        assert list(views.glob("*.new")) == []
        sync.wait(change_and_copy())
        assert list(views.glob("*.new")) == []


def test_nothing_keeps_the_text_of_a_deleted_document(tmp_path: Path) -> None:
    labels = {"secret": ["team=legal"], "town": ["team=sales"]}
    fill(tmp_path / "valley", [*VALLEY, SECRET], labels)
    server = make_server(tmp_path)
    admin = make_key(server, {"valley": "admin"})
    reader = make_key(server, {"valley": "read"}, ["team=legal"])

    def find_copies() -> list[Path]:
        files = (path for path in tmp_path.rglob("kb.sqlite*") if path.is_file())
        return [path for path in files if SECRET.text.encode() in path.read_bytes()]

    with running(server) as client:
        assert "Montsalvat" in search_valley(client, reader).text
        assert len(find_copies()) >= 2
        listed = client.get(f"{AT}/documents", headers=admin).json()["documents"]
        secret = next(one["id"] for one in listed if one["name"] == "secret")
        assert client.delete(f"{AT}/documents/{secret}", headers=admin).status_code == 200
        assert find_copies() == []
        reply = search_valley(client, reader)
        assert reply.status_code == 200 and "Montsalvat" not in reply.text


def test_a_copy_with_a_document_that_was_removed_beside_the_server_goes(tmp_path: Path) -> None:
    fill(tmp_path / "valley", [*VALLEY, SECRET], labels={"poet": ["team=legal"]})
    server = make_server(tmp_path)
    reader = make_key(server, {"valley": "read"}, [])
    with running(server, reader) as client:
        assert client.get(f"{AT}/documents").status_code == 200
        copies = tmp_path / ".server" / "views" / "valley"
        [held] = copies.glob("*-*/")
        sync.wait(remove_elsewhere(tmp_path / "valley", "secret"))
        while held.exists():
            time.sleep(0.05)
        assert "secret" not in client.get(f"{AT}/documents").text
        [now] = copies.glob("*-*/")
        late = document("ferry", "The Otter Ferry was built by Nils Hage.", "Otter Ferry")
        fill(tmp_path / "valley", [late])  # an addition leaves it to those who read it
        sync.wait(server.pool.remove_outdated_copies())
        assert now.exists()


async def remove_elsewhere(folder: Path, name: str) -> None:
    """Remove a document as another process does."""
    base = await open_hashed(Settings(kb=folder), False)
    await base.remove([name])
    await base.close()
