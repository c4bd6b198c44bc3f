"""The structure of the code: folders form layers, modules have a readable size."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from bench.architecture import parse

SOURCE = Path(__file__).parents[1] / "src"
MAX_LINES = 800
MIN_LINES = 60


def _modules() -> dict[str, Path]:
    found = {}
    for path in sorted((SOURCE / "clew").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _folder(module: str) -> str:
    return module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]


@cache
def _imports(*, everywhere: bool) -> dict[str, set[str]]:
    """The project modules each module imports: at its top only, or within functions too."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, path in MODULES.items():
        tree, _ = parse(path)
        for node in ast.walk(tree) if everywhere else tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in node.names:
                    full = f"{node.module}.{name.name}"
                    target = full if full in MODULES else node.module
                    if target in MODULES and target != module:
                        found[module].add(target)
    return found


@pytest.fixture(scope="module", autouse=True)
def forgotten_trees() -> Iterator[None]:
    """Leave no trees of all files in memory."""
    yield
    parse.cache_clear()


def test_no_two_folders_import_each_other() -> None:
    edges = {
        (_folder(module), _folder(target))
        for module, targets in _imports(everywhere=True).items()
        for target in targets
    }
    # The modules directly under `clew` stand on several layers; import-linter orders them.
    mutual = {(a, b) for a, b in edges if a < b and (b, a) in edges and "clew" not in (a, b)}
    assert mutual == set()


def test_modules_form_no_cycle() -> None:
    imports = _imports(everywhere=False)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " > ".join((*path, module))
        if module not in done:
            for target in imports[module]:
                visit(target, (*path, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


def test_modules_have_a_readable_size() -> None:
    lines = {module: parse(path)[1] for module, path in MODULES.items()}
    assert {module for module, count in lines.items() if count > MAX_LINES} == set()
    importers: dict[str, set[str]] = defaultdict(set)
    for module, targets in _imports(everywhere=True).items():
        for target in targets:
            importers[target].add(module)
    lonely = {
        module
        for module, count in lines.items()
        if count < MIN_LINES and len(importers[module]) == 1 and MODULES[module].name[:2] != "__"
    }
    assert lonely == set()  # a small module that one other imports belongs into that other


def test_no_function_or_class_is_written_twice() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for module, path in MODULES.items():
        for node in parse(path)[0].body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[ast.dump(node)].append(f"{module}.{node.name}")
    assert [places for places in found.values() if len(places) > 1] == []
