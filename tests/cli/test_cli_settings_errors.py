"""A settings file that cannot be read is one sentence in every command."""

from pathlib import Path

import pytest
from in_process import clew

from clew.cli.app import COMMANDS_BY_MODULE
from clew.errors import ConfigError

# What each command must be given before it looks at anything.
WORDS = {
    "add": ["docs"],
    "update": ["docs"],
    "watch": ["docs"],
    "rm": ["a"],
    "label": ["a"],
    "keys": ["list"],
    "backup": ["copy"],
    "restore": ["copy"],
    "copy": ["a", "b"],
    "import": ["graph.tsv"],
    "export": ["graph.tsv"],
    "search": ["q"],
    "ask": ["q"],
    "calibrate": ["questions.jsonl"],
    "show": ["a"],
    "split": ["a"],
    "join": ["a", "b"],
    "eval": ["data"],
    "compare": ["data"],
    "dataset": ["convert", "metaqa", "qa.txt", "--out", "made"],
    "anonymise": ["data", "--out", "made"],
    "make-questions": ["--out", "made"],
    "train": ["--export", "kb.npz"],
    "tune": ["data"],
}
COMMANDS = sorted({name for room in COMMANDS_BY_MODULE.values() for name in room} - {"init"})


@pytest.mark.parametrize("command", COMMANDS)
def test_a_broken_file_is_one_sentence(command: str, tmp_path: Path) -> None:
    (tmp_path / "clew.toml").write_text("kb = \n")
    words = (command, *WORDS.get(command, []))
    said = clew(*words, cwd=tmp_path, code=1)
    assert said.startswith("error: clew.toml is not valid TOML")
    assert len(said.splitlines()) == 1
    with pytest.raises(ConfigError):
        clew(*words, "--debug", cwd=tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["clew.toml"]


def test_a_byte_order_mark_is_no_part_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "clew.toml").write_text('kb = "elsewhere"\n', encoding="utf-8-sig")
    assert "elsewhere" in clew("status", cwd=tmp_path, code=1)


def test_a_file_that_may_not_be_read_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clew.toml").write_text("")

    def refused(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refused)
    assert "cannot read clew.toml: permission denied" in clew("status", cwd=tmp_path, code=1)
