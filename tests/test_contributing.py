"""The examples in CONTRIBUTING.md and docs/agents.md run as they stand."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew import sync
from clew.agents.tools import TOOLS
from clew.api import Kb
from clew.config import ROLES, ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.evaluate.metrics.registry import SHORT_METRICS
from clew.ingest.files import READERS
from clew.llm.chat import Request
from clew.models import Models
from clew.recipes.agents import AGENTS
from clew.recipes.registry import RECIPES
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed, ScriptedChat

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
AGENTS_PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^### An? ([\w ]+)\n.*?^```python\n(.*?)^```", PAGE, re.M | re.S))
[EXAMPLES["planner"]] = re.findall(r"^```python\n(.*?)^```", AGENTS_PAGE, re.M | re.S)
REGISTRIES: tuple[dict[str, Any], ...] = (RECIPES, AGENTS, TOOLS, READERS, SHORT_METRICS)
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


def script(kb: Kb, *replies: dict[str, Any]) -> list[str]:
    """Let a model give these replies in turn; returns the list in which its prompts are kept."""
    prompts: list[str] = []

    def say(request: Request) -> str:
        prompts.append(request.messages[-1].content)
        return json.dumps(replies[min(len(prompts), len(replies)) - 1])

    base = kb.aio
    models = ModelSettings(model="m")
    base.settings = base.settings.model_copy(update={"models": models})
    base.models = Models(models, base.store, chats=dict.fromkeys(ROLES, ScriptedChat(say)))
    return prompts


def run(example: str, kb: Kb) -> dict[str, Any]:
    """Execute an example and return its variables."""
    # Classes look their module up when they are made, so the example needs a module name.
    variables: dict[str, Any] = {"kb": kb, "__name__": "contributing_example"}
    exec(compile(EXAMPLES[example], f"CONTRIBUTING.md, {example}", "exec"), variables)
    return variables


def test_every_extension_point_has_an_example() -> None:
    expected = {"recipe", "retrieval step", "agent", "tool", "file reader", "store", "metric"}
    assert set(EXAMPLES) == {*expected, "planner"}


def test_the_recipe_retrieves(kb: Kb) -> None:
    results = run("recipe", kb)["results"]
    assert results.evidence.chunks[0].doc == "bridge"


def test_the_step_drops_weak_chunks(kb: Kb) -> None:
    results = run("retrieval step", kb)["results"]
    everything = kb.search("Who designed the Marrow Bridge?", recipe="bm25")
    assert [chunk.doc for chunk in results.evidence.chunks] == ["bridge"]
    assert len(everything.evidence.chunks) > 1


def test_the_agent_answers_with_a_citation(kb: Kb) -> None:
    said = {"enough": True, "answer": "Ilse Brandvik designed it [1].", "short": "Ilse Brandvik"}
    prompts = script(kb, said)
    answer = run("agent", kb)["answer"]
    assert (answer.verdict, answer.recipe) == ("answered", "two-looks+bm25")
    assert [citation.doc for citation in answer.citations] == ["bridge"]
    assert "Passages:" in prompts[0] and "Relations:" in prompts[0]


def test_the_tool_is_called_by_the_model(kb: Kb) -> None:
    wanted = {"tool": "count_mentions", "arguments": {"name": "Ilse Brandvik"}}
    prompts = script(kb, {"wants": [wanted]}, {"enough": True, "answer": "Twice.", "short": "2"})
    answer = run("tool", kb)["answer"]
    assert answer.candidate == "2"
    assert "Ilse Brandvik is mentioned in 2 passages" in prompts[-1]


def test_the_planner_searches_for_what_the_model_wants(
    kb: Kb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = {"enough": True, "answer": "She was born in Hallowmere [1].", "short": "Hallowmere"}
    prompts = script(kb, {"reasoning": "who?", "queries": ["fishing town"]}, said)
    answer = run("planner", kb)["answer"]
    assert (answer.candidate, answer.recipe) == ("Hallowmere", "planner+bm25")
    assert prompts[0].startswith("What has to be searched for")
    assert "fishing town on the Grey Coast" in prompts[1]


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
