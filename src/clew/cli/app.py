"""All commands under one name; a command's room is opened when the command is called."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

# Opening every room takes longer than most commands do.
ROOMS = {
    "building": ("init", "add", "update", "rm", "reembed", "backup"),
    "importing": ("import",),
    "exporting": ("export",),
    "asking": ("search", "ask", "recipes"),
    "talking": ("chat",),
    "calibrating": ("calibrate",),
    "looking": ("status", "show", "verify", "doctor", "demo"),
    "naming": ("split", "join", "resolve"),
    "schema": ("schema",),
    "measuring": ("eval", "compare"),
    "making": ("dataset", "anonymise", "make-questions", "advise"),
    "tree": ("tree",),
    "training": ("train",),
    "tuning": ("tune",),
}
_ROOM_OF = {command: room for room, commands in ROOMS.items() for command in commands}


def opened(room: str) -> dict[str, Any]:
    """The commands of one room."""
    its = typer.Typer(add_completion=False)
    # A room with one command would become that command; a second entry keeps it a group.
    its.callback()(lambda: None)
    import_module(f"clew.cli.{room}").register(its)
    return dict(get_group(its).commands)


class Rooms(TyperGroup):
    """Finds commands by name without opening rooms that are not asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All of them, in the order of the rooms."""
        return list(_ROOM_OF)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Open the command's room."""
        room = _ROOM_OF.get(cmd_name)
        return opened(room)[cmd_name] if room else None


app = typer.Typer(
    name="clew",
    cls=Rooms,
    help="Agentic GraphRAG: one knowledge base, every published method, every sentence cited.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def clew() -> None:
    """Agentic GraphRAG: one knowledge base, every published method, every sentence cited."""


def main() -> None:
    """Run the command line."""
    app()
