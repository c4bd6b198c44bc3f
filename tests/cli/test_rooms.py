"""Commands are found in the rooms that the list names, and starting opens no other room."""

import subprocess
import sys
from pathlib import Path

import clew.cli
from clew.cli.app import ROOMS, opened


def test_the_list_of_commands_is_what_the_rooms_register() -> None:
    assert {room: set(opened(room)) for room in ROOMS} == {
        room: set(commands) for room, commands in ROOMS.items()
    }


def test_every_room_is_listed() -> None:
    folder = Path(clew.cli.__file__).parent
    having = {p.stem for p in folder.glob("*.py") if "\ndef register(" in p.read_text("utf-8")}
    assert having == set(ROOMS)


def test_a_light_command_opens_no_heavy_room() -> None:
    seen = (
        "import sys; from clew.cli.app import opened; opened('building'); "
        "print(sorted(m for m in sys.modules if m.startswith(('clew.evaluate', 'clew.train'))))"
    )
    ran = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
