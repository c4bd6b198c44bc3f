"""The commands import and export: graphs from and for other tools."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from clew.cli.common import CommandContext, command, count_of, describe_counts, out
from clew.cli.progress import show_progress
from clew.errors import InputError
from clew.export.formats import FORMATS as EXPORT_FORMATS
from clew.export.formats import ExportResult, export
from clew.export.graph import ExportGraph, load_communities
from clew.export.html import GraphPage
from clew.extract.openie import Recorded, load_recording
from clew.ingest.build import AddResult
from clew.ingest.files import read
from clew.ingest.graphs.formats import FORMATS, detect_format
from clew.ingest.graphs.import_graph import ImportResult

_SHOWN_BAD_ROWS = 5
_OPENIE = "openie"


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command(name="import")(import_)
    app.command(name="export")(export_)


@command
async def import_(
    ctx: CommandContext,
    file: Annotated[Path, typer.Argument(help="A graph, or recorded extractions.")],
    corpus: Annotated[
        Path | None, typer.Option(help="With openie: the documents (`id`, `text`).")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help=f"Format, if it cannot be detected: {', '.join(FORMATS)}, openie."
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad row.")] = False,
    embed: Annotated[
        bool | None,
        typer.Option("--embed/--no-embed", help="Embed everything or nothing; default: by size."),
    ] = None,
) -> None:
    """Import an existing graph, or recorded extractions with their corpus."""
    if form == _OPENIE or (form is None and corpus is not None):
        if corpus is None:
            raise typer.BadParameter("recorded extractions need --corpus", param_hint="--corpus")
        await _import_recorded(ctx, file, corpus, strict)
        return
    if corpus is not None:
        raise typer.BadParameter("--corpus needs --format openie", param_hint="--corpus")
    await ctx.check_paths([file])
    await asyncio.to_thread(detect_format, file, form)  # raises before a knowledge base is created
    async with ctx.open_kb(create=True, embed=embed is not False) as base:
        with show_progress(ctx.json) as report:
            result = await base.import_graph(
                file, form=form, strict=strict, embed=embed, progress=report
            )
    ctx.show(result, lambda: _print_import(result))


def _print_import(result: ImportResult) -> None:
    counts = result.counts
    if result.unchanged:
        out.print(
            f"{result.name} was imported before and is unchanged ({result.rows} rows)", markup=False
        )
        return
    seconds = sum(result.seconds.values())
    speed = result.rows / max(seconds - result.seconds.get("embed", 0.0), 1e-9)
    out.print(
        f"{result.rows} rows of {result.name} ({result.format}) in {seconds:.1f} s, "
        f"{speed:.0f} rows/s without embedding",
        markup=False,
    )
    if result.bad:
        out.print(f"{result.bad} rows could not be read:", style="yellow")
    for line, reason in result.bad_rows:
        out.print(f"  line {line} {reason}", style="yellow", markup=False)
    if result.shared_names:
        out.print(
            f"{result.shared_names} names are shared by several nodes; their entities are called "
            "`name (id)`, with the plain name as an alias"
        )
    if result.embedded:
        out.print(f"embedded: {', '.join(result.embedded)}")
    if result.not_embedded:
        out.print(
            f"not embedded: {', '.join(result.not_embedded)}; run `clew reembed`, or "
            "`clew import --embed`"
        )
    out.print(f"knowledge base: {describe_counts(counts)}")


async def _import_recorded(ctx: CommandContext, file: Path, corpus: Path, strict: bool) -> None:
    await ctx.check_paths([file, corpus])
    recording = load_recording(file, strict)
    extractor = Recorded(recording)
    async with ctx.open_kb(create=True) as base:
        with show_progress(ctx.json) as report:
            documents = read([corpus], row_names="id")
            added = await base.take(documents, extractor, progress=report)
    summary = {
        "rows": len(recording.rows),
        "bad_rows": [{"line": bad.line, "reason": bad.reason} for bad in recording.bad],
        "dropped": {**recording.dropped, **extractor.dropped},
        "added": added,
    }
    ctx.show(summary, lambda: _print_recorded(summary, added))


def _print_recorded(summary: dict[str, object], added: AddResult) -> None:
    counts = added.counts
    out.print(
        f"{count_of(added.added, 'document')} added, {added.unchanged} unchanged; the knowledge "
        f"base, from {summary['rows']} rows: {describe_counts(counts)}"
    )
    bad = summary["bad_rows"]
    for row in bad[:_SHOWN_BAD_ROWS] if isinstance(bad, list) else []:
        out.print(f"  line {row['line']} {row['reason']}", style="yellow", markup=False)
    if isinstance(bad, list) and len(bad) > _SHOWN_BAD_ROWS:
        out.print(f"  … {len(bad)} bad rows in total (all of them with --json)")
    dropped = summary["dropped"]
    for reason, times in dropped.items() if isinstance(dropped, dict) else ():
        out.print(f"  {times} × {reason}", style="yellow", markup=False)


@command
async def export_(
    ctx: CommandContext,
    file: Annotated[Path, typer.Argument(help=f"Ends in .{', .'.join(EXPORT_FORMATS)}.")],
    form: Annotated[
        str | None, typer.Option("--format", help="Format, if the file name has no known suffix.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="HTML: how many entities to draw.")] = 300,
    around: Annotated[str, typer.Option(help="HTML: draw the neighbourhood of this entity.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write the graph as GraphML, JSON lines, Parquet, Cypher, TSV, CSV or one HTML page."""
    if not force and await asyncio.to_thread(file.exists):
        raise InputError(f"{file} already exists; `clew export --force` overwrites it")
    async with ctx.open_kb(embed=False) as base, base.store.snapshot() as now:
        page = GraphPage(top, around, ctx.settings.kb.name)
        done = await export(
            ExportGraph(now, await load_communities(now, base.store)), file, form, page
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
        out.print(f"{result.left_out} facts are not triples and were left out of the table")
