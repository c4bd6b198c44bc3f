"""The export command: writes the graph as a file for other tools, or as an HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from clew.cli.door import CommandContext, DebugOption, JsonOption, KbOption, load_context, out, run
from clew.errors import InputError
from clew.export import FORMATS, ExportResult, export
from clew.export.graph import ExportGraph
from clew.export.html import GraphPage
from clew.export.tree import load_communities


def register_export(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command(name="export")(export_)


def export_(
    file: Annotated[Path, typer.Argument(help=f"Ends in .{', .'.join(FORMATS)}.")],
    form: Annotated[
        str | None, typer.Option("--format", help="If the file's name does not tell it.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="HTML: how many entities to draw.")] = 300,
    around: Annotated[str, typer.Option(help="HTML: draw what is around this name.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write the graph as GraphML, JSON lines, Parquet, Cypher, TSV, CSV or one HTML page."""
    there = file.exists()
    page = GraphPage(top, around)
    run(lambda: _export(load_context(kb, as_json), file, form, page, there and not force), debug)


async def _export(
    ctx: CommandContext, file: Path, form: str | None, page: GraphPage, exists: bool
) -> None:
    if exists:
        raise InputError(f"{file} is already there; `clew export --force` overwrites it")
    async with ctx.open_kb(embed=False) as base, base.store.snapshot() as now:
        options = GraphPage(page.top, page.around, ctx.settings.kb.name)
        done = await export(
            ExportGraph(now, await load_communities(now, base.store)), file, form, options
        )
    ctx.show(done, lambda: _print_export(done))


def _print_export(result: ExportResult) -> None:
    content = f"{result.entities} entities, {result.facts} facts"
    if result.left_out and result.format == "html":
        content = f"{result.entities - result.left_out} of {result.entities} entities"
    elif result.left_out:
        content = f"{result.facts - result.left_out} of {result.facts} facts"
    size = f"{result.format}, {result.bytes / 1e6:.1f} MB"
    out.print(f"wrote {result.file} ({size}): {content}", markup=False)
    if result.left_out and result.format != "html":
        out.print(f"{result.left_out} facts are no triples and have no place in a table")
