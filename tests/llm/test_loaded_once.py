from collections.abc import Callable
from pathlib import Path

import pytest

from clew.llm.loaded_once import once_per_file


@pytest.fixture
def load() -> Callable[..., list[str]]:
    return once_per_file(lambda path, mark="": [path.read_text(), mark])


def test_a_file_is_loaded_once(tmp_path: Path, load: Callable[..., list[str]]) -> None:
    file = tmp_path / "model"
    file.write_text("weights")
    assert load(file) is load(file)
    assert load(file, "int8") is not load(file)
    assert load(file, mark="int8") == ["weights", "int8"]


def test_a_changed_file_is_loaded_again(tmp_path: Path, load: Callable[..., list[str]]) -> None:
    file = tmp_path / "model"
    file.write_text("weights")
    first = load(file)
    file.write_text("other weights")
    assert load(file) == ["other weights", ""]
    assert first == ["weights", ""]


def test_a_file_that_failed_is_tried_again(tmp_path: Path, load: Callable[..., list[str]]) -> None:
    file = tmp_path / "model"
    with pytest.raises(FileNotFoundError):
        load(file)
    file.write_text("weights")
    assert load(file) == ["weights", ""]
