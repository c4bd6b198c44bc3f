"""The `clew` command; a command's module is imported only when the command is called."""

import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

# Importing every module takes longer than most commands run, so their help texts are listed here.
COMMANDS_BY_MODULE = {
    "add": {
        "init": "Write a commented clew.toml here.",
        "add": "Build a knowledge base from files and folders, or extend it; "
        "unchanged files cost nothing.",
        "update": "Take in files that changed, as add does, "
        "and name those that are no longer there.",
        "rm": "Remove documents and all that only they said.",
        "reembed": "Make all vectors anew with the embedder of the settings.",
        "backup": "Copy the truth (kb.sqlite) while others read and write; "
        "the rest is derived from it.",
    },
    "graph_files": {
        "import": "Take in a graph you already have, or recorded extractions with their corpus.",
        "export": "Write the graph as GraphML, JSON lines, Parquet, Cypher, TSV, CSV "
        "or one HTML page.",
    },
    "ask": {
        "search": "Find evidence for a question; needs no model.",
        "ask": "Answer a question from the knowledge base, every sentence cited.",
        "recipes": "List every recipe, or show one as a table of steps and numbers.",
    },
    "chat": {
        "chat": "Talk with the knowledge base; an empty line ends it. With --json the answers come "
        "last."
    },
    "inspect": {
        "status": "Say how much the knowledge base holds.",
        "show": "Show what the knowledge base holds on one entity or document, "
        "and where it is said.",
        "verify": "Check that the knowledge base is whole: truth, arrays, vectors, spans.",
        "doctor": "Check this machine: Python, extras, embedder, models, the knowledge base.",
        "demo": "Build a small bundled corpus and answer a two-hop question over it.",
    },
    "entities": {
        "split": "Take apart what was merged into one entity; it stays apart.",
        "join": "Make two names one entity; `clew split` takes it back.",
        "resolve": "List names that lie close but are still two; with --ask a model "
        "decides on them.",
    },
    "schema_tree": {
        "schema": "Show the types that bound `--extractor schema`, "
        "with every step of their growth.",
        "tree": "Show the knowledge tree: communities, their keywords, facts and attributes.",
    },
    "evaluate": {
        "eval": "Measure recipes on a dataset folder; builds the knowledge base if there is none.",
        "compare": "Compare recipes on the same questions: one table, intervals, "
        "what differs for sure.",
    },
    "datasets": {
        "dataset": "Data sets with gold answers.",
        "anonymise": "Replace every name by a mark, so that a model cannot answer from memory.",
        "make-questions": "Make multi-hop questions with gold evidence from your own "
        "knowledge base.",
        "advise": "Try recipes on your own documents and recommend one for your budget.",
    },
    "learn": {
        "train": "Train a small model to search this knowledge base, by reinforcement "
        "learning (Graph-R1).",
        "tune": "Learn from questions with known answers; every step that scores then uses it.",
        "calibrate": "Find the relevance below which `rograg` refuses in reject mode; "
        "no other recipe reads it.",
    },
}
_MODULE_OF = {
    command: module for module, commands in COMMANDS_BY_MODULE.items() for command in commands
}


def load_commands(module: str) -> dict[str, Any]:
    """Import one command module and return its commands."""
    commands = typer.Typer(add_completion=False)
    # A Typer app with one command becomes that command; the callback keeps it a group.
    commands.callback()(lambda: None)
    import_module(f"clew.cli.{module}").register(commands)
    return dict(get_group(commands).commands)


class LazyCommands(TyperGroup):
    """Finds commands by name and imports only the modules that are needed."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all command names, in the order of the modules."""
        return list(_MODULE_OF)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command's module; while listing, return a stub with the help text."""
        module = _MODULE_OF.get(cmd_name)
        if module is None:
            return None
        if self._listing:
            return TyperCommand(cmd_name, help=COMMANDS_BY_MODULE[module][cmd_name])
        return load_commands(module)[cmd_name]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


app = typer.Typer(
    name="clew",
    cls=LazyCommands,
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
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # None if closed, another type under a test
            _allow_any_text(stream)
    app()


def _allow_any_text(stream: TextIOWrapper) -> None:
    """Make no character fail: terminals replace what they cannot show, pipes are UTF-8."""
    encoding = stream.encoding if stream.isatty() else "utf-8"
    stream.reconfigure(encoding=encoding, errors="replace")
