"""The command that brings an extra fits how Clew was installed."""

import json
from importlib import metadata
from pathlib import Path

import pytest

from clew.version import pip_install_command


def _set_direct_url(monkeypatch: pytest.MonkeyPatch, stored: str | None) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return stored

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())


def test_a_clone_that_is_edited_is_installed_from_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "my clew"
    clone.mkdir()
    stored = {"url": clone.as_uri(), "dir_info": {"editable": True}}
    _set_direct_url(monkeypatch, json.dumps(stored))
    assert pip_install_command("local") == f"pip install -e '{clone}[local]'"
    monkeypatch.chdir(clone)
    assert pip_install_command("local") == "pip install -e '.[local]'"
    _set_direct_url(monkeypatch, json.dumps({"url": clone.as_uri(), "dir_info": {}}))
    assert pip_install_command("pdf") == "pip install '.[pdf]'"


@pytest.mark.parametrize(
    ("stored", "command"),
    [
        (None, "pip install 'clew[rdf]'"),
        ("no JSON", "pip install 'clew[rdf]'"),
        (
            '{"url": "https://example.org/clew.git", "vcs_info": {"vcs": "git"}}',
            "pip install 'clew[rdf] @ git+https://example.org/clew.git'",
        ),
    ],
)
def test_from_elsewhere(monkeypatch: pytest.MonkeyPatch, stored: str | None, command: str) -> None:
    _set_direct_url(monkeypatch, stored)
    assert pip_install_command("rdf") == command


def test_what_is_not_installed_is_looked_for_in_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    assert pip_install_command("train") == "pip install 'clew[train]'"
