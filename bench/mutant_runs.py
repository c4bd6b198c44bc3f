"""Runs tests for `bench.mutants`: in forks of a process that has imported the large libraries."""

import compileall
import contextlib
import importlib
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PRELOADED = (
    "numpy",
    "pydantic",
    "pydantic_settings",
    "httpx",
    "rich.console",
    "typer",
    "hypothesis",
)
COPIED = (
    *("src", "tests", "bench", "docs", "pyproject.toml", "Makefile", "LICENSE"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md"),
)
_MEMORY_LIMIT = 12 * 2**30  # bytes: an endless loop must not use up the memory
_NOT_RUN = 70  # exit code: no test was run
_OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
_OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is already imported


def copy_tree(root: Path, to: Path, more: Path | None = None) -> Path:
    """Copy the tree, to mutate the copy; `more` is a folder of additional tests."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    skipped = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, to / name, ignore=skipped)
        elif (root / name).exists():
            shutil.copy2(root / name, to / name)
    if more:
        shutil.copytree(more, to / "tests", ignore=skipped, dirs_exist_ok=True)
    return to


# -- tracing


class _ContextPlugin:
    """A pytest plugin: tells coverage which test is running, and records each duration."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        started = time.perf_counter()
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")
            self.seconds[item.nodeid] = round(time.perf_counter() - started, 4)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped:
            self.failed.add(report.nodeid)


def trace_tests(tree: Path, packages: Sequence[str], log: Path) -> dict[str, Any]:
    """Run every test once; return which tests run which line of these packages."""
    import json

    result = tree / "traced.json"

    def work() -> int:
        import coverage

        places = [f"{tree}/src/*/{package}/*" for package in packages]
        measurement = coverage.Coverage(data_file=None, include=places, config_file=False)
        plugin = _ContextPlugin(measurement)
        measurement.start()
        options = [*_OPTIONS, "--continue-on-collection-errors"]
        code = int(pytest.main([*options, "tests"], plugins=[plugin]))
        measurement.stop()
        result.write_text(
            json.dumps(_collect_lines(measurement.get_data(), plugin, tree)), encoding="utf-8"
        )
        return code

    child = _fork(tree, log, work)
    _, status = os.waitpid(child, 0)
    if not result.exists():
        raise SystemExit(f"the tests could not be run ({status}); see {log}")
    found = dict(json.loads(result.read_text(encoding="utf-8")))
    if not found["tests"]:
        raise SystemExit(f"no test passed without a mutation; see {log}")
    return found


def _collect_lines(found: Any, plugin: _ContextPlugin, tree: Path) -> dict[str, Any]:
    tests = sorted(set(plugin.seconds) - plugin.failed)
    numbers = {test: at for at, test in enumerate(tests)}
    lines: dict[str, dict[int, list[int]]] = defaultdict(dict)
    for file in sorted(found.measured_files()):
        for line, names in sorted(found.contexts_by_lineno(file).items()):
            known = sorted(numbers[name] for name in names if name in numbers)
            if known:
                lines[str(Path(file).relative_to(tree))][line] = known
    seconds = {test: plugin.seconds[test] for test in tests}
    return {"tests": tests, "seconds": seconds, "lines": lines}


# -- running one mutant


@dataclass(frozen=True)
class TestRun:
    """A mutated file and the tests to run on it."""

    file: str
    mutated: str
    tests: Sequence[str]
    limit: float


class _SelectTests:
    """A pytest plugin: runs only these tests, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.place = {test: at for at, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.place]
        items.sort(key=lambda item: self.place[item.nodeid])


class Worker:
    """A copy of the tree in which one mutant at a time is tested."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._child = 0
        self._deadline = 0.0
        self._restore: Callable[[], object] = lambda: None
        os.waitpid(_fork(tree, tree / "run.log", _compile_and_collect, bytecode=True), 0)

    def start(self, run: TestRun) -> None:
        """Write the mutated file and start the tests."""
        file = self.tree / run.file
        shutil.copy2(file, self.tree / "original")
        file.write_text(run.mutated, encoding="utf-8")
        # With its old modification time, so that its bytecode is valid again.
        self._restore = lambda: shutil.move(self.tree / "original", file)
        files = list(dict.fromkeys(test.partition("::")[0] for test in run.tests))

        def work() -> int:
            return int(pytest.main([*_OPTIONS, "-x", *files], plugins=[_SelectTests(run.tests)]))

        self._deadline = time.monotonic() + run.limit
        self._child = _fork(self.tree, self.tree / "run.log", work)

    def poll(self) -> bool | None:
        """Return whether the mutant was detected, or None while the tests run."""
        ended, status = os.waitpid(self._child, os.WNOHANG)
        if not ended and time.monotonic() < self._deadline:
            return None
        with contextlib.suppress(ProcessLookupError):  # with the processes that the tests started
            os.killpg(self._child, signal.SIGKILL)
        if not ended:
            os.waitpid(self._child, 0)
        self._restore()
        shutil.rmtree(self.tree / "temp", ignore_errors=True)
        code = os.waitstatus_to_exitcode(status) if ended else 1
        if code in (_NOT_RUN, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise SystemExit(f"no test could be run; see {self.tree / 'run.log'}")
        return code != 0


def _compile_and_collect() -> int:
    compileall.compile_dir("src", quiet=2)
    return int(pytest.main([*_OPTIONS, "--collect-only", "tests"]))


def _fork(tree: Path, log: Path, work: Callable[[], int], *, bytecode: bool = False) -> int:
    for name in PRELOADED:
        importlib.import_module(name)
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = _NOT_RUN
    try:
        os.setsid()
        _isolate(tree, log)
        _set_bytecode(bytecode)
        code = work()
    finally:
        if code == _NOT_RUN:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(code)


def _isolate(tree: Path, log: Path) -> None:
    """Work in the copy, write to the log, and share no hypothesis examples with other runs."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(out, stream)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))
    os.chdir(tree)
    temp = tree / "temp"
    temp.mkdir(exist_ok=True)
    os.environ |= {"PYTHONPATH": str(tree / "src"), "TMPDIR": str(temp)}
    os.environ |= {"HYPOTHESIS_STORAGE_DIRECTORY": str(temp / "examples")}
    sys.path[:] = [str(tree / "src"), str(tree), *(one for one in sys.path if one)]
    from hypothesis import settings

    settings.register_profile("mutants", derandomize=True, database=None, deadline=None)
    settings.load_profile("mutants")


def _set_bytecode(kept: bool) -> None:
    sys.dont_write_bytecode = not kept
    if not kept:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
