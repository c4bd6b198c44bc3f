"""All commands under one name."""

import typer

from clew.cli import asking, building, importing, looking, measuring, schema

app = typer.Typer(
    name="clew",
    help="Agentic GraphRAG: one knowledge base, every published method, every sentence cited.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for room in (building, importing, asking, looking, schema, measuring):
    room.register(app)


def main() -> None:
    """Run the command line."""
    app()
