"""`clew.connect` has the methods of `clew.open`, and gives the same results."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Listening, fill, make_key, make_server

import clew
from clew.agents.ask import AskOptions
from clew.agents.conversation import ConversationTurn
from clew.api import Kb
from clew.client import RemoteKb, connect
from clew.config import Settings
from clew.context import StepStarted
from clew.errors import ClewError, ConfigError, StoreError
from clew.testing.hashed_kb import open_hashed

QUESTION = "Where was Ilse Brandvik born?"


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[RemoteKb]:
    """A client of a served knowledge base."""
    fill(tmp_path / "root" / "valley")
    server = make_server(tmp_path / "root")
    key = make_key(server, {"valley": "write"})["Authorization"].split()[1]
    with Listening(server) as url, clew.connect(url, workspace="valley", key=key) as kb:
        yield kb


def test_it_has_the_methods_of_a_local_one() -> None:
    def public(kind: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(kind, callable) if name[0] != "_"}

    assert public(RemoteKb) == public(Kb)


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
