"""The tests themselves: they use public names only, and each of them can fail."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import clew.testing.contracts

TESTS = Path(__file__).parent
FILES = sorted(TESTS.rglob("*.py"))
SHARED_CHECKS = Path(clew.testing.contracts.__file__)
ALLOWED = {
    ("test_readers_docx.py", "_cells"),  # python-docx has no public list of all cells
}
BY_NAME = {"setattr", "delattr", "setitem", "delitem", "getattr", "hasattr", "patch", "object"}
"""Functions that take the name of an attribute as a string."""
CHECKS = {"raises", "warns", "fail", "deprecated_call"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def forgotten_trees() -> Iterator[None]:
    """Leave no trees of all files in memory."""
    yield
    parse.cache_clear()


def test_tests_use_no_private_name() -> None:
    found = [
        f"{file.relative_to(TESTS)}:{line} {name}"
        for file in FILES
        for line, name in private_names(parse(file))
        if (file.name, name) not in ALLOWED
    ]
    assert not found, "private names in tests:\n" + "\n".join(found)


def test_every_test_can_fail() -> None:
    trees = {file: parse(file) for file in (*FILES, SHARED_CHECKS)}
    functions = [
        (file, function)
        for file, tree in trees.items()
        for function in ast.walk(tree)
        if isinstance(function, Function)
    ]
    checking = {(file, function.name) for file, function in functions if has_check(function)}
    imported = {file: imported_names(tree) for file, tree in trees.items()}
    used = [(file, function.name, names_used(function)) for file, function in functions]
    while True:
        usable = usable_checks(imported, checking)
        more = {(file, name) for file, name, names in used if names & usable[file]}
        if more <= checking:
            break
        checking |= more
    found = [
        f"{file.relative_to(TESTS)}:{function.lineno} {function.name}"
        for file, function in functions
        if function.name.startswith("test_") and (file, function.name) not in checking
    ]
    assert not found, "tests without an assertion:\n" + "\n".join(found)


def test_what_the_checks_detect() -> None:
    private = """
        from clew.engine import _check
        import clew._own
        base._view = None
        Models(settings, _chats={})
        monkeypatch.setattr(module, "_LIMIT", 1)
        monkeypatch.setattr("clew.engine._LIMIT", 1)
        base.__dict__["models"] = None
        vars(base)["models"] = None
        CHILD = "import clew.engine\\nclew.engine._LIMIT = 2"
    """
    lines = [line.strip() for line in private.strip().splitlines()]
    assert [len(list(private_names(ast.parse(line)))) for line in lines] == [1] * len(lines)
    public = ["self._held = 1", "x.__name__", 'row["_id"]', "x.method(name=1)", "vars(x)"]
    assert [list(private_names(ast.parse(line))) for line in public] == [[]] * len(public)
    bodies = ["assert x", "with pytest.raises(E): f()", "np.testing.assert_allclose(a, b)", "f()"]
    trees = [ast.parse(f"def test_it():\n    {body}") for body in bodies]
    assert [has_check(tree.body[0]) for tree in trees] == [True, True, True, False]


def private_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each use of a private name, also in scripts within strings."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.ImportFrom(module=module, names=names):
                parts = [*(module or "").split("."), *(one.name for one in names)]
                yield from ((line, part) for part in parts if is_private(part))
            case ast.Import(names=names):
                parts = [part for one in names for part in one.name.split(".")]
                yield from ((line, part) for part in parts if is_private(part))
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if is_private(name) or name == "__dict__":
                yield line, name
            case ast.Subscript(value=ast.Call(func=ast.Name(id="vars"))):
                yield line, "vars"
            case ast.keyword(arg=str(name)) if is_private(name):
                yield node.value.lineno, name
            case ast.Call(args=args) if called_name(node) in BY_NAME:
                yield from ((line, name) for name in named_attributes(args) if is_private(name))
            case ast.Constant(value=str(text)) if "clew" in text and "import" in text:
                yield from ((line, name) for _, name in private_names_of_script(text))


def private_names_of_script(text: str) -> Iterator[tuple[int, str]]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    if any(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body):
        yield from private_names(tree)


def named_attributes(args: list[ast.expr]) -> Iterator[str]:
    """Yield the attribute that each string argument names: the last part of a dotted path."""
    for one in args[:2]:
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value.rpartition(".")[2]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def has_check(function: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and is_check(called_name(node)))
        for node in ast.walk(function)
    )


def is_check(name: str) -> bool:
    return name in CHECKS or name.startswith("assert_")


def imported_names(tree: ast.AST) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {one.name for node in imports for one in node.names}


def usable_checks(
    imported: dict[Path, set[str]], checking: set[tuple[Path, str]]
) -> dict[Path, set[str]]:
    """Return the names of checking functions that each file defines or imports."""
    names = {name for _, name in checking}
    found = {file: mine & names for file, mine in imported.items()}
    for file, name in checking:
        found[file].add(name)
    return found


def names_used(function: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Call):
            found.add(called_name(node))
    return found


def called_name(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
