"""The examples in CONTRIBUTING.md run as they stand."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew import sync
from clew.api import Kb
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.evaluate.metrics.registry import SHORT_METRICS
from clew.ingest.files import READERS
from clew.recipes.agents import AGENTS
from clew.recipes.registry import RECIPES
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed

PAGE = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^### An? ([\w ]+)\n.*?^```python\n(.*?)^```", PAGE, re.M | re.S))
REGISTRIES: tuple[dict[str, Any], ...] = (RECIPES, AGENTS, READERS, SHORT_METRICS)
UNUSED = ("cacheprovider", "schemathesis", "xdist")
"""Plugins that take longer to start than the tests of the example."""
TEXTS = (
    ("bridge", "Marrow Bridge is a stone bridge over the Tarn. Ilse Brandvik designed it."),
    ("ilse", "Ilse Brandvik was an engineer. She was born in Hallowmere."),
    ("town", "Hallowmere is a fishing town on the Grey Coast."),
)


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[Kb]:
    """A small knowledge base with a fake embedder; registries are restored afterwards."""
    before = [dict(registry) for registry in REGISTRIES]
    settings = Settings(kb=tmp_path / "kb")
    store = SqliteStore(settings.kb, create=True, durable=False)
    opened = Kb(KnowledgeBase(store, settings, HashEmbed()))
    opened.add_texts(TEXTS)
    yield opened
    opened.close()
    for registry, entries in zip(REGISTRIES, before, strict=True):
        registry.clear()
        registry.update(entries)


def run(example: str, kb: Kb) -> dict[str, Any]:
    """Execute an example and return its variables."""
    # Classes look their module up when they are made, so the example needs a module name.
    variables: dict[str, Any] = {"kb": kb, "__name__": "contributing_example"}
    exec(compile(EXAMPLES[example], f"CONTRIBUTING.md, {example}", "exec"), variables)
    return variables


def test_every_extension_point_has_an_example() -> None:
    expected = {"recipe", "retrieval step", "agent", "file reader", "store", "metric"}
    assert set(EXAMPLES) == expected


def test_the_recipe_retrieves(kb: Kb) -> None:
    results = run("recipe", kb)["results"]
    assert results.evidence.chunks[0].doc == "bridge"


def test_the_step_drops_weak_chunks(kb: Kb) -> None:
    results = run("retrieval step", kb)["results"]
    everything = kb.search("Who designed the Marrow Bridge?", recipe="bm25")
    assert [chunk.doc for chunk in results.evidence.chunks] == ["bridge"]
    assert len(everything.evidence.chunks) > 1


def test_the_agent_answers_with_a_citation(kb: Kb) -> None:
    answer = run("agent", kb)["answer"]
    assert (answer.verdict, answer.recipe) == ("answered", "first+bm25")
    assert "Ilse Brandvik" in answer.answer
    assert [citation.doc for citation in answer.citations] == ["bridge"]
    assert kb.ask("xyzzy", recipe="first+bm25").verdict == "refused"


def test_the_reader_reads_a_notebook(
    kb: Kb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["Clara Lindqvist described mosses."]},
        {"cell_type": "code", "source": ["1 + 1"]},
    ]
    (tmp_path / "notes.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run("file reader", kb)
    found = kb.search("Clara Lindqvist", recipe="bm25", k=1)
    assert [chunk.text for chunk in found.evidence.chunks] == ["Clara Lindqvist described mosses."]


def test_the_store_passes_its_contract(tmp_path: Path) -> None:
    file = tmp_path / "test_example.py"
    file.write_text(EXAMPLES["store"], encoding="utf-8")
    options = [
        "-q",
        *(f"-pno:{one}" for one in UNUSED),
        "-c",
        "/dev/null",
        "-o",
        "asyncio_mode=auto",
    ]
    command = [sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


def test_the_metric_is_computed(kb: Kb) -> None:
    made = run("metric", kb)
    scored = sync.wait(made["scorer"].score(made["question"], made["output"]))
    assert scored.values["first-word"] == 1.0
    assert 0 < scored.values["f1"] < 1
