"""Whatever characters come in or go out, a command ends in its own words and never in a trace."""

import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import clew

from clew.cli.app import main
from clew.cli.common import CommandContext
from clew.config import Settings
from clew.errors import InputError

TOWN = "Zürich – a town on the Limmat."


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("town")
    (folder / "town.txt").write_text(TOWN, encoding="utf-8")
    clew("add", "town.txt", cwd=folder)
    return folder


def _said(*words: str | bytes, cwd: Path, encoding: str, told: bytes = b"") -> str:
    unset = {k: v for k, v in os.environ.items() if not k.startswith(("CLEW", "OPENAI"))}
    done = subprocess.run(
        [sys.executable, "-m", "clew", *words],
        cwd=cwd,
        env=unset | {"PYTHONIOENCODING": encoding},
        input=told,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8")


@pytest.mark.parametrize(
    "encoding",
    [
        pytest.param("utf-8:strict", marks=pytest.mark.slow),
        pytest.param("utf-8:surrogateescape", marks=pytest.mark.slow),
        "ascii",
    ],
)
def test_a_question_with_broken_characters_is_answered(town: Path, encoding: str) -> None:
    words = ("search", b"caf\xe9 on the Limmat", "--recipe", "bm25")
    found = json.loads(_said(*words, "--json", cwd=town, encoding=encoding))
    assert found["question"] == "caf? on the Limmat"
    assert found["chunks"][0]["text"] == TOWN
    assert TOWN in _said(*words, cwd=town, encoding=encoding)


@pytest.mark.slow  # one question: the test above
def test_a_conversation_with_broken_characters_goes_on(town: Path) -> None:
    asked = b"Which caf\xe9 is on the Limmat?\nWhere is Z\xc3\xbcrich?\n"
    said = _said("chat", "--recipe", "bm25", cwd=town, encoding="ascii", told=asked)
    assert said.count("Limmat") >= 2


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def _help_on(stream: io.TextIOBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["clew", "add", "--help"])  # which says PATH…
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0


def test_a_terminal_keeps_its_encoding_and_shows_what_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = _Terminal(io.BytesIO(), encoding="latin-1")
    _help_on(terminal, monkeypatch)
    terminal.flush()
    assert terminal.encoding == "latin-1"
    assert b"PATH?" in terminal.buffer.getvalue()  # type: ignore[attr-defined]


def test_what_is_no_stream_of_bytes_is_written_to_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    page = io.StringIO()
    _help_on(page, monkeypatch)
    assert "PATH…" in page.getvalue()


def test_numbers_that_json_does_not_know_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    CommandContext(Settings(), json=True).show({"a": math.inf, "b": [math.nan, 1.5]}, lambda: None)
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "a": None,
        "b": [None, 1.5],
    }


def test_the_message_of_an_error_can_be_stored_whatever_it_quotes() -> None:
    assert str(InputError("no text: \ud800")).encode() == b"no text: ?"
