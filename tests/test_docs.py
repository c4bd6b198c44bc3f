"""The documentation names only modules, classes, functions, files and links that exist."""

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from bench import architecture

from clew.agents.confidence import SIGNALS
from clew.agents.tools import TOOLS, describe_tool
from clew.recipes.agents import AGENTS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_DOTTED = re.compile(r"(?<![\w./-])clew(?:\.[A-Za-z_]\w*)+")
_IMPORT = re.compile(r"^[ \t]*from[ \t]+clew[\w.]*[ \t]+import[ \t]+(?:\([^)]*\)|[^\n]+)", re.M)
_CODE_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.M | re.S)
_FILE = re.compile(r"(?<![\w./-])(?:\w+/)+\w+\.py\b")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_NAME_IN_DRAWING = re.compile(r'class="name"[^>]*>([^<]+)<')
_INLINE_CODE = re.compile(r"`([^`\n]+)`")
_CLASS = re.compile(r"\b[A-Z][a-z]+[A-Z]\w*")
_OTHER_CLASSES = {
    *dir(builtins),
    "HippoRAG",
    "MatMulNBits",
    "MultiHopRAG",
    "NaN",
    "StreamWriter",
    "TaskGroup",
}
"""Classes and words of other projects that the documentation mentions."""
_FILE_NAMES = {"clew.toml", "clew.json"}
_SPANS = {
    f"clew.{name}" for name in "ask search build plan eval compare tree workspace recipe".split()
}
"""Names in the server's traces, of spans and their attributes: no modules."""
_FOLDERS = (ROOT, SOURCE, SOURCE / "clew")
"""A file may be named from the repository root or from the package."""


@cache
def _top_level(file: Path) -> dict[str, ast.stmt]:
    """Return the names that a module defines or imports, and where."""
    names: dict[str, ast.stmt] = {}
    pending = list(architecture.parse(file)[0].body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id: node for target in targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.split(".")[0]: node for alias in node.names}
        elif isinstance(node, ast.If | ast.Try):
            pending += [*node.body, *node.orelse]
    return names


@cache
def _class_names() -> set[str]:
    """Return the names of all classes of the package."""
    files = (SOURCE / "clew").rglob("*.py")
    return {
        name
        for file in files
        for name, node in _top_level(file).items()
        if isinstance(node, ast.ClassDef)
    }


def _module_file(parts: list[str]) -> Path | None:
    place = SOURCE.joinpath(*parts)
    candidates = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in candidates if file.exists()), None)


def _has_member(node: ast.stmt, name: str) -> bool:
    if not isinstance(node, ast.ClassDef):
        return True  # an attribute of an imported name or a value: not looked into
    for statement in node.body:
        target = statement.target if isinstance(statement, ast.AnnAssign) else None
        if getattr(statement, "name", None) == name or getattr(target, "id", None) == name:
            return True
    return bool(node.bases)


def dotted_path_exists(path: str) -> bool:
    """Tell whether `clew.module.Name` or `clew.module.Class.member` exists."""
    parts = path.split(".")
    for size in range(len(parts), 0, -1):
        file = _module_file(parts[:size])
        if file is None:
            continue
        rest = parts[size:]
        if not rest:
            return True
        node = _top_level(file).get(rest[0])
        return node is not None and (len(rest) == 1 or _has_member(node, rest[1]))
    return False


def _imported_paths(text: str) -> Iterator[str]:
    for block in _CODE_BLOCK.findall(text):
        for line in _IMPORT.findall(block):
            [statement] = ast.parse(line.strip()).body
            assert isinstance(statement, ast.ImportFrom)
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)


def find_wrong_names(text: str) -> list[str]:
    """Return the dotted paths, imports, files and classes in a page that do not exist."""
    paths = {*_DOTTED.findall(text), *_imported_paths(text)} - _FILE_NAMES - _SPANS
    wrong = [path for path in paths if not dotted_path_exists(path)]
    for file in set(_FILE.findall(text)):
        if not any((folder / file).exists() for folder in _FOLDERS):
            wrong.append(file)
    prose = _CODE_BLOCK.sub("", text)
    classes = {name for code in _INLINE_CODE.findall(prose) for name in _CLASS.findall(code)}
    return sorted([*wrong, *(classes - _class_names() - _OTHER_CLASSES)])


@pytest.mark.parametrize(
    "text",
    [
        "see `clew.no_such_module`",
        "see `clew.retrieve.step.NoSuchStep`",
        "see `clew.retrieve.step.Chain.no_such_field`",
        "```python\nfrom clew.retrieve.step import (\n    Chain,\n    NoSuchStep,\n)\n```",
        "see `src/clew/no_such_file.py`",
        "see `retrieve/no_such_file.py`",
        "the step `NoSuchStep(top_k=5)`",
    ],
)
def test_a_wrong_name_is_found(text: str) -> None:
    assert find_wrong_names(text)


def test_right_names_and_settings_files_are_accepted() -> None:
    text = (
        "`clew.open`, `clew.retrieve.step.Chain.steps`, `clew.toml`, `src/clew/retrieve/step.py`, "
        "`retrieve/step.py`\n```python\nfrom clew.retrieve.step import Chain, Fork\n```"
    )
    assert not find_wrong_names(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_name_in_the_documentation_exists(page: Path) -> None:
    assert find_wrong_names(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_link_in_the_documentation_leads_somewhere(page: Path) -> None:
    links = _LINK.findall(_INLINE_CODE.sub("", page.read_text(encoding="utf-8")))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_the_agents_page_lists_every_tool_as_a_model_is_told() -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    section = page.partition("\n## Tools\n")[2].partition("\n## ")[0]
    specs = [describe_tool(tool) for tool in TOOLS.values()]
    told = [
        (f"{one.name}({', '.join(one.schema['properties'])})", one.about.partition("\n\n")[0])
        for one in specs
    ]
    assert re.findall(r"^\| `(\w+\([^)]*\))` \| (.+) \|$", section, re.M) == told


def test_the_answers_page_lists_every_signal_of_the_confidence() -> None:
    page = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")
    [table] = re.findall(r"^\| signal \|.*?\n\n", page, re.M | re.S)
    assert tuple(_first_cells(table)[2:]) == tuple(f"`{name}`" for name in SIGNALS)


def test_the_agents_page_names_agents_and_their_fields() -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    listed, *_ = re.findall(r"^\| agent \|.*?\n\n", page, re.M | re.S)
    named = {name for cell in _first_cells(listed) for name in _INLINE_CODE.findall(cell)}
    assert named and named <= AGENTS.keys()
    families = {name.partition("-")[0] for name in AGENTS}
    assert {name.partition("-")[0] for name in named} == families
    tables = re.findall(r"^\| field \|.*?\n\n", page, re.M | re.S)
    used = {n for one in tables for c in _first_cells(one) for n in _INLINE_CODE.findall(c)}
    known = {one.name for recipe in AGENTS.values() for one in fields(cast(Any, recipe.agent))}
    assert used and used <= known


@cache
def _read_code() -> tuple[list[list[str]], dict[str, architecture.Unit]]:
    return architecture.read_layers(), architecture.read_units()


def test_the_architecture_page_lists_every_package_in_its_layer() -> None:
    layers, units = _read_code()
    page = architecture.PAGE.read_text(encoding="utf-8")
    table = page.partition(architecture.BEGIN)[2].partition(architecture.END)[0]
    assert _first_cells(table) == _first_cells(architecture.format_table(layers, units))


def test_the_drawing_shows_every_package_in_its_layer() -> None:
    layers, units = _read_code()
    drawing = architecture.DRAWING.read_text(encoding="utf-8")
    assert _NAME_IN_DRAWING.findall(drawing) == _NAME_IN_DRAWING.findall(
        architecture.draw(layers, units)
    )


def test_the_drawn_layers_hold_in_the_code() -> None:
    layers, units = _read_code()
    assert architecture.find_upward_imports(layers, units) == []


def _first_cells(table: str) -> list[str]:
    return [row.split("|")[1].strip() for row in table.strip().splitlines()]
