"""`clew init`: settings for people to edit, with the same options as every command."""

import json
from pathlib import Path

import pytest
from in_process import clew

from clew.config import load_settings


def test_it_takes_the_options_of_every_command(tmp_path: Path) -> None:
    told = clew("init", "--json", "--kb", 'my "own" bäse', cwd=tmp_path)
    assert json.loads(told) == {"file": "clew.toml"}
    assert load_settings(tmp_path / "clew.toml").kb == Path('my "own" bäse')
    assert "already here" in clew("init", "--json", cwd=tmp_path, code=1)
    assert "wrote clew.toml" in clew("init", "--force", cwd=tmp_path)
    assert load_settings(tmp_path / "clew.toml").kb == Path("kb")


def test_a_broken_file_can_be_overwritten(tmp_path: Path) -> None:
    (tmp_path / "clew.toml").write_text("kb = [")
    clew("init", "--force", cwd=tmp_path)
    assert load_settings(tmp_path / "clew.toml").kb == Path("kb")


@pytest.mark.parametrize(
    ("words", "why"), [((), "cannot write clew.toml"), (("--kb", "caf\udce9"), "is not UTF-8")]
)
def test_what_cannot_be_written_is_one_sentence(
    tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    if not words:
        (tmp_path / "clew.toml").mkdir()
    assert why in clew("init", "--force", *words, cwd=tmp_path, code=1)
