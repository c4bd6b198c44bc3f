"""The export command: the graph as a file for other tools, or as a page to look at."""

from pathlib import Path
from typing import Annotated

import typer

from clew.cli.door import AsJson, Debug, Door, Kb, enter, out, run
from clew.errors import InputError
from clew.export import FORMATS, Exported, export
from clew.export.graph import Graph
from clew.export.html import Page
from clew.export.tree import communities


def register(app: typer.Typer) -> None:
    """Add this room's commands."""
    app.command(name="export")(export_)


def export_(
    file: Annotated[Path, typer.Argument(help=f"Ends in .{', .'.join(FORMATS)}.")],
    form: Annotated[
        str | None, typer.Option("--format", help="If the file's name does not tell it.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="HTML: how many entities to draw.")] = 300,
    around: Annotated[str, typer.Option(help="HTML: draw what is around this name.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write the graph as GraphML, JSON lines, Parquet, Cypher, TSV, CSV or one HTML page."""
    there = file.exists()
    page = Page(top, around)
    run(lambda: _export(enter(kb, as_json), file, form, page, there and not force), debug)


async def _export(door: Door, file: Path, form: str | None, page: Page, there: bool) -> None:
    if there:
        raise InputError(f"{file} is already there; `clew export --force` overwrites it")
    async with door.kb(embed=False) as base, base.store.snapshot() as now:
        named = Page(page.top, page.around, door.settings.kb.name)
        done = await export(Graph(now, await communities(now, base.store)), file, form, named)
    door.show(done, lambda: _tell(done))


def _tell(done: Exported) -> None:
    held = f"{done.entities} entities, {done.facts} facts"
    if done.left_out and done.format == "html":
        held = f"{done.entities - done.left_out} of {done.entities} entities"
    elif done.left_out:
        held = f"{done.facts - done.left_out} of {done.facts} facts"
    size = f"{done.format}, {done.bytes / 1e6:.1f} MB"
    out.print(f"wrote {done.file} ({size}): {held}", markup=False)
    if done.left_out and done.format != "html":
        out.print(f"{done.left_out} facts are no triples and have no place in a table")
