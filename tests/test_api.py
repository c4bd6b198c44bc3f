"""The public names, the sync door, and what importing costs."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.agents.ask import AskOptions
from clew.api import Kb
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ClewError, ConfigError, InputError
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed


def test_the_public_names_are_these() -> None:
    assert sorted(clew.__all__) == ["ClewError", "Kb", "RemoteKb", "__version__", "connect", "open"]
    for name in clew.__all__:
        assert getattr(clew, name) is not None


def _kb(folder: Path) -> Kb:
    settings = Settings(kb=folder)
    return Kb(KnowledgeBase(SqliteStore(folder, create=True), settings, HashEmbed()))


def test_sync_use(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ilse Brandvik designed the Marrow Bridge.")
    with _kb(tmp_path / "kb") as kb:
        assert kb.add(tmp_path / "a.txt").added == 1
        assert kb.add_texts([("note", "The Marrow Bridge opened in 1887.")]).added == 1
        assert kb.search("Who designed the Marrow Bridge?", k=1).evidence.chunks[0].title == ""
        assert kb.ask("When did the Marrow Bridge open?").candidate == "1887"
        assert kb.remove(["note"]).documents == 1
        assert kb.status()["documents"] == 1


async def test_sync_use_inside_a_running_loop_as_in_a_notebook(tmp_path: Path) -> None:
    with _kb(tmp_path / "kb") as kb:
        assert kb.add_texts([("note", "The Marrow Bridge opened in 1887.")]).added == 1


def test_a_listener_that_calls_the_sync_door_is_told_so(tmp_path: Path) -> None:
    with _kb(tmp_path / "kb") as kb:
        kb.add_texts([("note", "The Marrow Bridge opened in 1887.")])
        calling = AskOptions(on_event=lambda event: kb.close())
        with pytest.raises(ClewError, match="use kb.aio and await"):
            kb.ask("When did the Marrow Bridge open?", manner=calling)
        assert kb.ask("When did the Marrow Bridge open?").candidate == "1887"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda kb: kb.add(5), "paths are expected, and 5 is none"),
        (lambda kb: kb.add(["a.txt", None]), "paths are expected, and None is none"),
        (lambda kb: kb.remove(5), "names of documents are expected, and 5 is none"),
        (lambda kb: kb.add_texts(5), r"expected as \(name, text\) pairs, and 5 is none"),
        (lambda kb: kb.ask("Who?", confidence=7), "confidence=7: must be a number from 0 to 1"),
        (lambda kb: kb.ask("Who?", confidence="high"), "must be a number from 0 to 1"),
        (lambda kb: kb.search("Who?", recipe=5), "recipe=5: must be the name of a recipe"),
        (lambda kb: clew.open(3), "3 is no knowledge base"),  # type: ignore[arg-type]
        (lambda kb: clew.connect(3), "3 is not the address of a server"),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_a_wrong_type_are_one_clear_error(
    tmp_path: Path, call: Callable[[Any], Any], said: str
) -> None:
    with _kb(tmp_path / "kb") as kb, pytest.raises(ConfigError, match=said):
        call(kb)


@pytest.mark.parametrize("one", [("a", None), ("a",), "ab", (1, "text"), ("a", "b", "c"), None])
def test_only_pairs_of_strings_are_texts(tmp_path: Path, one: Any) -> None:
    with _kb(tmp_path / "kb") as kb:
        with pytest.raises(
            InputError, match=r"text 2 is not a pair of strings; pass \(name, text\)"
        ):
            kb.add_texts([("note", "The Marrow Bridge opened in 1887."), one])
        assert kb.add_texts([["other", "Elms are tall."]]).added == 1  # type: ignore[list-item]


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys, clew; heavy = {'numpy', 'onnxruntime', 'openai', 'typer', 'rich', 'httpx', "
        "'tokenizers', 'pydantic', 'torch'} & set(sys.modules); print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_not_there_is_made_by_adding_and_not_by_asking(tmp_path: Path) -> None:
    with clew.open(tmp_path / "typo") as kb:
        for read in (lambda: kb.ask("Who?"), lambda: kb.search("Who?"), kb.status):
            with pytest.raises(ClewError, match="no knowledge base in"):
                read()
        assert not (tmp_path / "typo").exists()
        assert kb.add_texts([("note", "The Marrow Bridge opened in 1887.")]).added == 1
        assert kb.status()["documents"] == 1
    with clew.open(tmp_path / "typo") as kb:
        found = kb.search("When did the Marrow Bridge open?")
        assert [passage.doc for passage in found] == ["note"]
        asked = "When did the Marrow Bridge open?"
        assert kb.ask(asked, mode="reject", confidence=0.0).verdict == "answered"
        assert kb.ask(asked, mode="reject", confidence=1.0).verdict == "refused"


def test_what_is_closed_says_so_and_names_are_shown(tmp_path: Path) -> None:
    with _kb(tmp_path / "kb") as kb:
        kb.add_texts([("note", "Ilse Brandvik designed the Marrow Bridge in Hallowmere.")])
        assert kb.show("Ilse Brandvik").entities[0]["name"] == "Ilse Brandvik"
        with pytest.raises(ConfigError, match="whole number"):
            kb.search("Who designed it?", k=True)
    with pytest.raises(ClewError, match="was closed"):
        kb.search("Who designed the Marrow Bridge?")
    kb.close()
