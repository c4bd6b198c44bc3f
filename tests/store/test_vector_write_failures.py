"""Vector files: a write that fails midway leaves the stored vectors unchanged."""

import os
from pathlib import Path

import numpy as np
import pytest

from clew.errors import StoreError
from clew.store.vector_files import VectorFile
from clew.text.unicode import digest

ONE, TWO = digest("one"), digest("two")


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("before", [0, 1])
def test_a_write_that_fails_midway_adds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, before: int
) -> None:
    path = tmp_path / "model.npy"
    if before:
        VectorFile(path).append([ONE], np.ones((1, 4), np.float32))
    calls = iter(range(1, 100))
    sync = os.fsync

    def failing(handle: int) -> None:
        if next(calls) == number:
            raise OSError(28, "No space left")
        sync(handle)

    with monkeypatch.context() as patched:
        patched.setattr("clew.store.append_files.os.fsync", failing)
        with pytest.raises(StoreError, match="stored vectors are unchanged"):
            VectorFile(path).append([TWO], np.full((1, 4), 2, np.float32))
    again = VectorFile(path)
    assert again.find_rows([ONE, TWO]).tolist() == [0 if before else -1, -1]
    assert again.count_checked_rows() == before
    again.append([TWO], np.full((1, 4), 3, np.float32))
    assert again.find_rows([TWO]).tolist() == [before]
    assert again.matrix()[before].tolist() == [3, 3, 3, 3]
