"""Every command of docs/papers.md parses, and its recipes, metrics and options exist."""

import asyncio
import json
import re
import shlex
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click import Context
from in_process import clew
from typer.main import get_command

from clew.cli.app import app
from clew.evaluate.grid import EvidenceUse
from clew.evaluate.metrics.registry import check_metric
from clew.recipes.registry import resolve_recipe
from clew.testing.fakes import AgentScript
from clew.testing.stub_endpoint import StubEndpoint

PAGE = Path(__file__).parent.parent.parent / "docs" / "papers.md"
_COMMAND = re.compile(r"`(clew [^`]+)`")
_PAPERS = ("GraphSearch", "Youtu-GraphRAG", "Graph-R1", "ROGRAG", "LEGO-GraphRAG")
# As the papers number them: (tables, figures).
_NUMBERED = {
    "GraphSearch": (4, 13),
    "Youtu-GraphRAG": (6, 8),
    "Graph-R1": (7, 12),
    "ROGRAG": (7, 5),
    "LEGO-GraphRAG": (10, 9),
}
_RANGE = re.compile(r"(Table|Figure)s? ([\d, and to]+)")


def _section(paper: str) -> str:
    text = PAGE.read_text(encoding="utf-8").partition("## Every table and figure")[2]
    return next(part for part in text.split("\n### ")[1:] if part.startswith(paper))


def _commands() -> list[str]:
    text = PAGE.read_text(encoding="utf-8").partition("## Every table and figure")[2]
    return list(dict.fromkeys(_COMMAND.findall(text)))


COMPARISONS = [line for line in _commands() if line.startswith("clew compare")]


def _numbers(text: str) -> set[int]:
    found: set[int] = set()
    for start, end in re.findall(r"(\d+)(?: to (\d+))?", text):
        found |= set(range(int(start), int(end or start) + 1))
    return found


@pytest.mark.parametrize("paper", _PAPERS)
def test_every_table_and_figure_has_its_row(paper: str) -> None:
    cells = [row.split("|")[1] for row in _section(paper).splitlines() if row.startswith("| ")]
    listed: dict[str, set[int]] = {"Table": set(), "Figure": set()}
    for cell in cells:
        for kind, numbers in _RANGE.findall(cell):
            listed[kind] |= _numbers(numbers)
    tables, figures = _NUMBERED[paper]
    assert listed["Table"] == set(range(1, tables + 1))
    assert listed["Figure"] == set(range(1, figures + 1))


@pytest.mark.parametrize("line", _commands())
def test_every_command_parses_and_its_names_exist(line: str) -> None:
    words = shlex.split(line)[1:]
    if words[0] == "dataset":
        return  # named as a command, without its arguments
    group: Any = get_command(app)
    with Context(group, info_name="clew") as ctx:
        command = group.get_command(ctx, words[0])
        assert command is not None, words[0]
        if words == ["train"]:
            return
        parsed = command.make_context(words[0], words[1:], parent=ctx)
    given = parsed.params
    for name in filter(None, str(given.get("recipe") or "").split(",")):
        resolve_recipe(name)
    for name in filter(None, str(given.get("metrics") or "").split(",")):
        check_metric(name)
    for name in str(given.get("evidence") or "all").split(","):
        assert name in EvidenceUse.__args__  # type: ignore[attr-defined]


def test_a_wrong_name_in_a_command_is_found() -> None:
    for line in (
        "clew compare data --recipe lightrga",
        "clew compare data --metrics subme",
        "clew compare data --modle x",
        "clew compair data",
    ):
        with pytest.raises((Exception, SystemExit)):
            test_every_command_parses_and_its_names_exist(line)
