"""A server over small knowledge bases, with keys, for the tests of the HTTP API."""

import atexit
import multiprocessing
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastapi.testclient import TestClient

from clew import sync
from clew.config import ModelSettings, ServeSettings, Settings
from clew.labels import save_labels
from clew.serve.app import create_app
from clew.serve.core.folders import Folders
from clew.serve.core.keys import Scope
from clew.serve.core.server import Server
from clew.serve.core.workspaces import OpenKb
from clew.serve.http_server import StoppableServer
from clew.serve.run import bind
from clew.testing.hashed_kb import open_hashed
from clew.text.unicode import digest
from clew.types import Document
from conftest import VALLEY, stream

# Jobs are processes of their own here too, but forked from one that has imported everything.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["clew.serve.core.job_process", "clew.testing.hashed_kb"])

# Knowledge bases that several tests begin with.
_KEPT = TemporaryDirectory(prefix="clew-tests-")
atexit.register(_KEPT.cleanup)


def fork(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a process quickly."""
    process = _FORKS.Process(target=target, args=arguments)
    process.start()
    return process


def fill(
    folder: Path,
    documents: Sequence[Document] = VALLEY,
    labels: Mapping[str, Sequence[str]] | None = None,
    trees: Sequence[str] = (),
) -> None:
    """Build a knowledge base, or copy it if it has no labels; they are by document name."""
    if labels or folder.exists():
        _build(folder, documents, labels or {}, trees)
        return
    held = [part for one in documents for part in (one.id, *one.names)]
    kept = Path(_KEPT.name) / digest(*held, "with", *trees)
    if not kept.exists():
        _build(kept, documents, {}, trees)
    shutil.copytree(kept, folder)


def _build(
    folder: Path,
    documents: Sequence[Document],
    labels: Mapping[str, Sequence[str]],
    trees: Sequence[str],
) -> None:
    async def build() -> None:
        base = await open_hashed(Settings(kb=folder), True)
        await save_labels(base.store, labels)
        await base.take(stream(documents))
        if trees:
            await base.builder.make_tree_manager().build(trees)
        await base.close()

    sync.wait(build())


def make_server(
    root: Path,
    open_kb: OpenKb = open_hashed,
    models: ModelSettings | None = None,
    **serve: Any,
) -> Server:
    """A server over the workspaces under `root`."""
    options = {"queue": 1000, "requests_per_minute": 1e6, **serve}
    settings = Settings(
        kb=root, wait=5, models=models or ModelSettings(), serve=ServeSettings(**options)
    )
    return Server(settings, Folders(root), open_kb, start_process=fork)


def make_key(
    server: Server, grants: Mapping[str, Scope], labels: Sequence[str] | None = None, **more: Any
) -> dict[str, str]:
    """The headers of a new key."""
    held = None if labels is None else frozenset(labels)
    _, token = server.keys.create("test", grants, labels=held, **more)
    return {"Authorization": f"Bearer {token}"}


@contextmanager
def running(server: Server, headers: Mapping[str, str] | None = None) -> Iterator[TestClient]:
    """A client of the app, from its start to its stop."""
    app = create_app(server)
    with TestClient(app, base_url="http://localhost", headers=dict(headers or {})) as client:
        yield client


class Listening:
    """A server on a port of this machine, in a thread."""

    def __init__(self, server: Server) -> None:
        self._uvicorn = StoppableServer(server)
        self._bound = bind("127.0.0.1", 0)
        self._thread = threading.Thread(target=lambda: self._uvicorn.run([self._bound]))

    def __enter__(self) -> str:
        self._thread.start()
        while not self._uvicorn.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{self._bound.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._uvicorn.should_exit = True
        self._thread.join()
