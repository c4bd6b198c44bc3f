"""The model folder of a run is swapped as a whole: killed at any point, one of the two is left."""

import signal
from multiprocessing import get_context
from pathlib import Path

from clew.testing.kill_points import KillPoints
from clew.train.run_folder import TrainingLog, finish_swap, read_log, swap_in


def _make(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        (folder / name).write_text(text)
    return folder


def _swap(point: int, folder: Path) -> None:
    KillPoints(folder, point).install()
    swap_in(folder / ".model.new", folder / "model")


def _kill_at(point: int, folder: Path) -> bool:
    """Swap in a process that is killed at a point; tell whether it came to its end."""
    child = get_context("fork").Process(target=_swap, args=(point, folder))
    child.start()
    child.join()
    assert child.exitcode in (0, -signal.SIGKILL)
    return child.exitcode == 0


def test_a_kill_leaves_the_old_model_or_the_new_one(tmp_path: Path) -> None:
    seen = set()
    for point in range(1, 50):
        here = tmp_path / str(point)
        _make(here / "model", "old")
        _make(here / ".model.new", "new")
        done = _kill_at(point, here)
        finish_swap(here / "model")
        found = {path.read_text() for path in (here / "model").iterdir()}
        assert len(found) == 1 and len(list((here / "model").iterdir())) == 2
        assert not (here / ".model.old").exists()
        seen |= found
        if done:
            assert found == {"new"} and point > 3
            break
    assert seen == {"old", "new"}


def test_a_log_is_rewound_as_a_whole(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path, board=False)
    for step in range(5):
        log.write({"step": step})
    log.rewind(3)
    assert [row["step"] for row in read_log(tmp_path / "log.jsonl")] == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]
