"""All commands under one name."""

import typer

from clew.cli import (
    asking,
    building,
    calibrating,
    exporting,
    importing,
    looking,
    making,
    measuring,
    naming,
    schema,
    talking,
    training,
    tree,
    tuning,
)

app = typer.Typer(
    name="clew",
    help="Agentic GraphRAG: one knowledge base, every published method, every sentence cited.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for room in (
    building,
    importing,
    exporting,
    asking,
    talking,
    calibrating,
    looking,
    naming,
    schema,
    measuring,
    making,
    tree,
    training,
    tuning,
):
    room.register(app)


def main() -> None:
    """Run the command line."""
    app()
