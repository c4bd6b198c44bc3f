"""Commands are found in the modules that the list names; no other module is imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import clew as run

import clew.cli
from clew.cli.app import COMMANDS_BY_MODULE, load_commands


def test_the_list_of_commands_is_what_the_rooms_register() -> None:
    assert {module: set(load_commands(module)) for module in COMMANDS_BY_MODULE} == {
        module: set(commands) for module, commands in COMMANDS_BY_MODULE.items()
    }


def test_what_the_list_says_of_a_command_is_what_the_command_says() -> None:
    shown = {
        module: {name: one.help for name, one in load_commands(module).items()}
        for module in COMMANDS_BY_MODULE
    }
    assert shown == COMMANDS_BY_MODULE


def test_help_lists_every_command_and_opens_no_room() -> None:
    seen = (
        "import sys\nfrom typer.testing import CliRunner\nfrom clew.cli.app import app\n"
        "said = CliRunner().invoke(app, ['--help']).output\n"
        "print('tune' in said and 'make-questions' in said)\n"
        "print(sorted(m for m in sys.modules if m.startswith('clew.cli.')), 'numpy' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["True", "['clew.cli.app'] False"]


def test_the_version_is_printed(tmp_path: Path) -> None:
    assert run("--version", cwd=tmp_path) == f"clew {clew.__version__}\n"


@pytest.mark.parametrize("given", [["--kb", "{}"], ["--kb={}"]])
def test_the_knowledge_base_may_be_named_before_the_command(
    given: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("Ilse Brandvik designed Marrow Bridge.", "utf-8")
    before = [word.format(tmp_path / "kb") for word in given]
    run(*before, "add", str(tmp_path / "a.md"), cwd=tmp_path)
    shown = run("status", "--kb", str(tmp_path / "kb"), "--json", cwd=tmp_path)
    assert json.loads(shown)["documents"] == 1


def test_every_room_is_listed() -> None:
    folder = Path(clew.cli.__file__).parent
    having = {p.stem for p in folder.glob("*.py") if "\ndef register(" in p.read_text("utf-8")}
    assert having == set(COMMANDS_BY_MODULE)


def test_a_light_command_opens_no_heavy_room() -> None:
    seen = (
        "import sys; from clew.cli.app import load_commands; load_commands('add'); "
        "print(sorted(m for m in sys.modules if m.startswith(('clew.evaluate', 'clew.train'))))"
    )
    ran = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
