"""The `clew` command; a command's module is imported only when the command is called."""

import os
import sys
import warnings
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from clew.errors import suggest
from clew.version import __version__, explain_missing

# Importing every module takes longer than most commands run, so their help texts are listed here.
COMMANDS_BY_MODULE = {
    "add": {
        "init": "Write a commented clew.toml here.",
        "add": "Build a knowledge base from files and folders, or extend it; unchanged files cost "
        "nothing.",
        "update": "Add new and changed files like `clew add`, and list files that no longer exist.",
        "rm": "Remove documents, with the entities and facts that only they support.",
        "label": "Set the labels of documents: readers without a right to them do not see the "
        "documents.",
        "reembed": "Recompute all vectors with the embedder in the settings.",
        "backup": "Copy the database (kb.sqlite) while it is in use; all other files are derived "
        "from it.",
        "restore": "Replace the knowledge base by a backup; arrays and missing vectors are "
        "computed again.",
    },
    "database": {
        "copy": "Copy a knowledge base between folders and databases, with vectors and arrays.",
        "worker": "Extract and embed for builds elsewhere (`clew add --on workers`), until "
        "interrupted.",
    },
    "watch": {
        "watch": "Add a folder, and whatever changes in it, until interrupted.",
    },
    "ask": {
        "search": "Find evidence for a question; needs no model.",
        "ask": "Answer a question from the knowledge base, every sentence cited.",
    },
    "recipes": {
        "recipes": "List recipes by group (--all: their variants, too), or show the steps of one.",
    },
    "chat": {
        "chat": "Ask questions in a conversation; an empty line ends it. --json prints answers "
        "at the end."
    },
    "inspect": {
        "status": "Show the size and state of the knowledge base.",
        "show": "Show the facts about an entity or document, with their sources.",
        "verify": "Check the integrity of the knowledge base: database, arrays, vectors, spans.",
        "doctor": "Check the installation: Python, extras, embedder, models, knowledge base.",
        "demo": "Build a small bundled corpus and answer a two-hop question over it.",
    },
    "schema_tree": {
        "schema": "Show the types that `--extractor schema` allows, and the history of their "
        "changes.",
        "tree": "Show the community tree: communities with their keywords, facts and attributes.",
    },
    "graph_files": {
        "import": "Import an existing graph, or recorded extractions with their corpus.",
        "export": "Write the graph as GraphML, JSON lines, Parquet, Cypher, TSV, CSV or one HTML "
        "page.",
    },
    "entities": {
        "split": "Split names that were merged into one entity; they are not merged again.",
        "join": "Merge two names into one entity; `clew split` undoes it.",
        "resolve": "List similar names that are still separate; with --ask a model decides "
        "whether to merge.",
    },
    "evaluate": {
        "eval": "Evaluate recipes on a dataset folder; builds the knowledge base if it does not "
        "exist.",
    },
    "compare": {
        "compare": "Compare recipes on the same questions, with confidence intervals and "
        "significance.",
    },
    "datasets": {
        "dataset": "Convert published datasets with gold answers.",
        "anonymise": "Replace every name by a placeholder, so that a model cannot answer from "
        "memory.",
        "make-questions": "Generate multi-hop questions with gold evidence from your knowledge "
        "base.",
        "advise": "Try recipes on your own documents and recommend one for your budget.",
    },
    "serve": {
        "serve": "Serve knowledge bases over HTTP: a page, a REST API, and one that OpenAI's "
        "clients speak.",
        "mcp": "Serve tools for agents by the Model Context Protocol, over stdio or HTTP.",
        "keys": "Make, list, rotate and revoke keys.",
    },
    "learn": {
        "train": "Train a small model to search this knowledge base, by reinforcement learning "
        "(Graph-R1).",
        "tune": "Train the scoring adapters on questions with known answers; retrieval then uses "
        "them.",
    },
    "calibrate": {
        "calibrate": "Refit the confidence of answers on your own questions, and store it in the "
        "knowledge base.",
    },
}
FIRST_COMMANDS = ("add", "ask", "search", "show", "status")
# Some of those that `clew recipes` lists, whose import takes a second.
FIRST_RECIPES = (
    "clew",
    "hybrid",
    "bm25",
    "hipporag2",
    "lightrag",
    "graphsearch",
    "youtu",
    "rograg",
)
_MODULE_OF = {
    command: module for module, commands in COMMANDS_BY_MODULE.items() for command in commands
}

# These answer several questions at once: threads within one would only take time from the others,
# nearly half of a search's. It has to be said before numpy is imported.
_SERVING = ("serve", "mcp")


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
    _listing_all = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the command names, those to start with first; in the short help only these."""
        if self._listing and not self._listing_all:
            return list(FIRST_COMMANDS)
        return [*FIRST_COMMANDS, *(name for name in _MODULE_OF if name not in FIRST_COMMANDS)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command's module; while listing, return a stub with the help text."""
        module = _MODULE_OF.get(cmd_name)
        if module is None:
            return None
        if self._listing:
            panel = "Start here" if cmd_name in FIRST_COMMANDS else "More commands"
            about = COMMANDS_BY_MODULE[module][cmd_name]
            return TyperCommand(cmd_name, help=about, rich_help_panel=panel)
        if cmd_name in _SERVING:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # noqa: TID251  (set, not read)
        return load_commands(module)[cmd_name]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands to start with, and name the others."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Take `--kb DIR` in front of the command too, where other programs have such options."""
        return super().parse_args(ctx, _move_kb(args))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; for a name that is none, say which one may be meant."""
        if args and args[0] not in _MODULE_OF and not args[0].startswith("-"):
            hint = suggest(args[0], _MODULE_OF)
            ctx.fail(f"No such command {args[0]!r}{hint or '; `clew --help` lists them'}")
        return super().resolve_command(ctx, args)


def _move_kb(args: list[str]) -> list[str]:
    """Return the words with a `--kb` that stands before the command behind it."""
    first = args[0] if args else ""
    given = 2 if first == "--kb" else 1 if first.startswith("--kb=") else 0
    return [*args[given : given + 1], *args[:given], *args[given + 1 :]]


def _describe_the_rest() -> str:
    """Name the other commands and the recipes to start with, as the end of the help."""
    others = ", ".join(name for name in _MODULE_OF if name not in FIRST_COMMANDS)
    first, *recipes = FIRST_RECIPES
    return (
        f"Recipes to start with: {first} (the default), {', '.join(recipes)}. "
        "`clew recipes` says what they do, `clew ask QUESTION --recipe NAME` uses one.\n\n"
        f"More commands: {others}. `clew --help-all` says what they do."
    )


app = typer.Typer(
    name="clew",
    cls=LazyCommands,
    epilog=_describe_the_rest(),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clew {__version__}")
        raise typer.Exit


def _print_all_commands(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        LazyCommands._listing_all = True
        try:
            typer.echo(ctx.get_help())
        finally:
            LazyCommands._listing_all = False
        raise typer.Exit


@app.callback()
def clew(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--help-all",
            callback=_print_all_commands,
            is_eager=True,
            help="List every command and exit.",
        ),
    ] = False,
) -> None:
    """Agentic GraphRAG: one knowledge base, every published method, every sentence cited."""


def main() -> None:
    """Run the command line; a package that an extra would have brought is one sentence."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # None if closed, another type under a test
            _allow_any_text(stream)
    warnings.formatwarning = lambda message, *_: f"Warning: {message}\n"  # no line of our code
    try:
        app()
    except ModuleNotFoundError as error:
        # The extra of `clew mcp` brings the packages of the server as well.
        missing = explain_missing(error.name, "mcp" if "mcp" in sys.argv[1:2] else "")
        if not missing or "--debug" in sys.argv:
            raise
        typer.echo(f"error: {missing}", err=True)
        sys.exit(1)


def _allow_any_text(stream: TextIOWrapper) -> None:
    """Make no character fail: terminals replace what they cannot show, pipes are UTF-8."""
    encoding = stream.encoding if stream.isatty() else "utf-8"
    stream.reconfigure(encoding=encoding, errors="replace")
