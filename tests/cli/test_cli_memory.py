"""What happens where memory is scarce: a sentence instead of a traceback, and smaller writes."""

import os
import subprocess
import sys
from errno import EACCES, ENOMEM
from pathlib import Path

import pytest
import typer

from clew.cli.common import run
from clew.config import Settings, load_settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError, ModelError
from clew.store.memory import MemoryStore
from clew.types import Document
from conftest import stream


@pytest.mark.parametrize("error", [MemoryError(), OSError(ENOMEM, "Cannot allocate memory")])
def test_too_little_memory_is_told_in_a_sentence(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work() -> None:
        raise error

    with pytest.raises(typer.Exit):
        run(work, debug=False)
    assert "not enough memory" in capsys.readouterr().err


def test_other_errors_of_the_system_are_not_called_memory() -> None:
    async def work() -> None:
        raise OSError(EACCES, "Permission denied")

    with pytest.raises(OSError, match="Permission denied"):
        run(work, debug=False)


_EMBED_WITH_LITTLE = """
import resource
from contextlib import suppress
from pathlib import Path
from typer import Exit
from clew.cli.common import run
from clew.llm.embed_local import open_session

async def work():
    open_session(Path("missing.onnx"))

used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 12_000_000, resource.RLIM_INFINITY))
with suppress(Exit):
    run(work, debug=False)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited in Linux only")
def test_an_embedder_that_does_not_fit_is_not_to_be_reinstalled() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _EMBED_WITH_LITTLE], capture_output=True, text=True, check=False
    )
    told = " ".join(ended.stderr.split())
    assert told.startswith("error: there is not enough memory") and "pip install" not in told


def test_threads_that_cannot_start_are_a_lack_of_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work() -> None:
        raise RuntimeError("can't start new thread")

    with pytest.raises(RuntimeError):
        run(work, debug=False)
    monkeypatch.setattr("clew.machine_memory.is_memory_short", lambda: True)
    with pytest.raises(typer.Exit):
        run(work, debug=False)
    assert "not enough memory" in capsys.readouterr().err


@pytest.mark.parametrize(("limit", "bound"), [("2000000000", 10**9), ("600000000", 5 * 10**8)])
def test_a_small_machine_has_a_bound_by_itself(
    limit: str, bound: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    monkeypatch.setattr("clew.machine_memory.GROUPS", tmp_path)
    assert Settings().memory == bound
    assert Settings(memory="3GB").memory == 3 * 10**9


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        ("0::/user.slice/job", "user.slice/memory.max"),
        ("0::/user.slice/job", "user.slice/job/memory.max"),
        ("4:cpu,memory:/docker/12", "memory/docker/memory.limit_in_bytes"),
    ],
)
def test_limits_of_the_own_group_and_of_those_above_count(
    line: str, limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, groups = tmp_path / "cgroup", tmp_path / "groups"
    own.write_text(f"2:cpu:/other\n{line}\n")
    for name, size in ((limit, "2000000000"), ("other/memory.max", "1"), ("memory.max", "max")):
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(f"{size}\n")
    monkeypatch.setattr("clew.machine_memory.GROUPS", groups)
    monkeypatch.setattr("clew.machine_memory.OWN_GROUPS", own)
    assert Settings().memory == 10**9


def test_a_refusal_within_a_group_of_errors_is_told_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def work() -> None:
        raise ExceptionGroup("tasks", [ModelError("it failed: std::bad_alloc")])

    with pytest.raises(typer.Exit):
        run(work, debug=False)
    assert "not enough memory" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited in Linux only")
@pytest.mark.parametrize(
    "megabytes",
    [
        pytest.param(200, marks=pytest.mark.slow),
        230,
        pytest.param(260, marks=pytest.mark.slow),
    ],
)
def test_nothing_is_built_without_vectors_where_memory_is_refused(
    megabytes: int, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "weir.txt").write_text("Ada Lind built the Marrow Weir.")
    code = (
        "import resource, sys; from clew.cli.app import main; "
        f"resource.setrlimit(resource.RLIMIT_AS, ({megabytes}_000_000,) * 2); "
        "sys.argv = ['clew', 'add', 'weir.txt']; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    told = " ".join(ended.stderr.split())
    assert ended.returncode == 1
    assert "there is not enough memory" in told
    assert "Traceback" not in told and "pip install" not in told


def test_the_setting_is_read_as_a_size(tmp_path: Path) -> None:
    file = tmp_path / "clew.toml"
    file.write_text('memory = "1.5 GB"')
    assert load_settings(file).memory == 1_500_000_000
    file.write_text('memory = "0.5TB"')
    assert load_settings(file).memory == 500_000_000_000
    file.write_text("memory = 500_000_000")
    assert load_settings(file).memory == 500_000_000
    for wrong in ('"much"', '"100MB"', "7"):
        file.write_text(f"memory = {wrong}")
        with pytest.raises(ConfigError, match="2GB.* at least .500MB"):
            load_settings(file)


@pytest.mark.parametrize(("memory", "writes"), [(None, 1), ("500MB", 3)])
async def test_little_memory_makes_smaller_writes(
    memory: str | None, writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.ingest.build.BYTES_PER_CHARACTER", 100_000_000)
    base = KnowledgeBase(MemoryStore(), Settings(extractor="offline", memory=memory), None)
    texts = [f"Lyon{n} is a town." for n in range(3)]
    documents = [Document(str(n), text, "", (f"{n}.txt",)) for n, text in enumerate(texts)]
    result = await base.take(stream(documents))
    assert (result.added, result.counts.generation) == (3, writes)


async def test_a_question_that_memory_was_refused_for_is_no_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise OSError(ENOMEM, "Cannot allocate memory")

    base = KnowledgeBase(MemoryStore(), Settings(extractor="offline"), None)
    await base.take(stream([Document("0", "Lyon is a town.", "", ("0.txt",))]))
    monkeypatch.setattr("clew.agents.tools.run_recipe", refuse)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        await base.ask("What is Lyon?")
