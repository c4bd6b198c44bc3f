"""`clew.connect` has the methods of `clew.open`, and gives the same results."""

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Listening, fill, make_key, make_server

import clew
from clew.agents.ask import AskOptions
from clew.agents.base import Answer
from clew.agents.conversation import ConversationTurn
from clew.api import Kb
from clew.client import AsyncRemoteKb, RemoteKb, connect
from clew.config import Settings
from clew.context import StepStarted
from clew.engine import KnowledgeBase
from clew.errors import ClewError, ConfigError, StoreError
from clew.llm.budget import UsageLimits
from clew.llm.wrappers import UsageMeter
from clew.testing.hashed_kb import open_hashed
from conftest import document, stream

QUESTION = "Where was Ilse Brandvik born?"


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[RemoteKb]:
    """A client of a served knowledge base."""
    fill(tmp_path / "root" / "valley")
    server = make_server(tmp_path / "root")
    key = make_key(server, {"valley": "write"})["Authorization"].split()[1]
    with Listening(server) as url, clew.connect(url, workspace="valley", key=key) as kb:
        yield kb


# What works on the files of this machine, or belongs to the engine itself.
LOCAL_ONLY = {
    *("backup", "restore", "repair", "reembed", "verify", "open", "import_graph", "plan"),
    *("chunk_presets", "context", "count_pending", "forget_view", "progress", "show", "use_tool"),
}


def find_public(kind: type) -> set[str]:
    """The public methods of a class."""
    return {name for name, _ in inspect.getmembers(kind, callable) if name[0] != "_"}


def test_it_has_the_methods_of_a_local_one() -> None:
    assert find_public(RemoteKb) == find_public(Kb) - LOCAL_ONLY
    assert find_public(AsyncRemoteKb) == find_public(KnowledgeBase) - LOCAL_ONLY


@pytest.mark.parametrize(("there", "here"), [(RemoteKb, Kb), (AsyncRemoteKb, KnowledgeBase)])
def test_methods_take_what_those_of_a_local_one_take(there: type, here: type) -> None:
    for name in find_public(there):
        theirs, mine = (list_parameters(getattr(kind, name)) for kind in (here, there))
        theirs.pop("chunk", None)  # how a recipe splits is known to the engine only
        assert mine == theirs, name


def list_parameters(method: Any) -> dict[str, tuple[Any, Any]]:
    """Return how each parameter is given, and its default."""
    listed = inspect.signature(method).parameters.values()
    return {one.name: (one.kind, one.default) for one in listed}


def test_names_recipes_and_limits_pass(remote: RemoteKb, tmp_path: Path) -> None:
    (tmp_path / "ferry.txt").write_text("The Otter Ferry was built by Marta Quill.")
    with pytest.raises(ConfigError, match="no recipe 'nonsense'"):
        remote.add(tmp_path / "ferry.txt", recipe="nonsense")
    assert remote.add(tmp_path / "ferry.txt", recipe="e2graphrag").added == 1
    meter = UsageMeter()
    manner = AskOptions(meter=meter, limits=UsageLimits(calls=0))
    found = remote.search(QUESTION, entities=["Ilse Brandvik"], manner=manner)
    assert found.evidence.chunks and meter.total == found.usage
    with pytest.raises(ConfigError, match="keeps no prompts"):
        remote.ask(QUESTION, manner=AskOptions(record_prompts=True))
    assert remote.add_texts([("note.md", "The Otter Ferry sank in 1901.")]).added == 1
    assert remote.remove("note.md").documents == 7


async def test_async_callers_ask_at_once_and_follow_a_stream(remote: RemoteKb) -> None:
    found = await asyncio.gather(*(remote.aio.search(QUESTION, k=3) for _ in range(4)))
    local = await asyncio.to_thread(remote.search, QUESTION, k=3)
    assert all(one.evidence == local.evidence for one in found)
    events = [event async for event in remote.aio.stream(QUESTION)]
    assert isinstance(events[0], StepStarted) and isinstance(events[-1], Answer)
    said: list[str] = []
    path = Path(__file__).with_name("serving.py")
    added = await remote.aio.add([path], progress=lambda stage, *_: said.append(stage))
    assert added.added == 1 and said
    texts = stream([document("note", "The Otter Ferry sank in 1901.", "")])
    assert (await remote.aio.take(texts)).added == 1
    assert (await remote.aio.remove(["note"])).documents == (await remote.aio.status())["documents"]
    await remote.aio.close()


def test_results_are_those_of_a_local_one(remote: RemoteKb, tmp_path: Path) -> None:
    base = clew.sync.wait(open_hashed(Settings(kb=tmp_path / "root" / "valley"), False))
    with Kb(base) as local:
        here, there = (kb.search(QUESTION, k=3) for kb in (local, remote))
        assert there.evidence == here.evidence and there.recipe == here.recipe
        one, other = (kb.ask(QUESTION) for kb in (local, remote))
        assert (other.answer, other.citations, other.evidence) == (
            *(one.answer, one.citations, one.evidence),
        )
        assert [step.step for step in other.trace] == [step.step for step in one.trace]
        assert remote.status()["documents"] == local.status()["documents"]


def test_events_and_history_pass(remote: RemoteKb) -> None:
    events: list[Any] = []
    history = [ConversationTurn("Who designed the Marrow Bridge?", "Ilse Brandvik")]
    answer = remote.ask(
        "Where was she born?", manner=AskOptions(on_event=events.append, history=history)
    )
    assert answer.candidate == "Hallowmere"
    assert isinstance(events[0], StepStarted)


def test_files_and_texts_are_added_and_removed(remote: RemoteKb, tmp_path: Path) -> None:
    (tmp_path / "ferry.txt").write_text("The Otter Ferry was built by Marta Quill.")
    added = remote.add(tmp_path / "ferry.txt")
    assert added.added == 1 and added.counts.documents == 7
    assert remote.add_texts([("note", "The Otter Ferry sank in 1901.")]).added == 1
    found = remote.search("When did the Otter Ferry sink?", k=2).evidence.chunks
    assert "note" in [passage.doc for passage in found]
    assert remote.remove(["note"]).documents == 7


def test_errors_are_clews(remote: RemoteKb, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no recipe 'nonsense'"):
        remote.search(QUESTION, recipe="nonsense")
    with pytest.raises(ClewError, match="no document named"):
        remote.remove(["nothing"])
    with pytest.raises(ConfigError, match="address of a server"):
        connect("ftp://x")
    with pytest.raises(StoreError, match="does not answer"):
        connect("http://127.0.0.1:9").status()
