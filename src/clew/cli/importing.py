"""The import command: a graph you already have, or recorded extractions with their corpus."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from clew.cli.bars import progress
from clew.cli.door import AsJson, Debug, Door, Kb, enter, out, run
from clew.extract.openie import Recorded, recorded
from clew.ingest.build import Added
from clew.ingest.graphs.formats import FORMATS, format_of
from clew.ingest.graphs.story import Imported
from clew.ingest.read import read

_SHOWN = 5
_OPENIE = "openie"


def register(app: typer.Typer) -> None:
    """Add this room's commands."""
    app.command(name="import")(import_)


def import_(
    file: Annotated[Path, typer.Argument(help="A graph, or recorded extractions.")],
    corpus: Annotated[
        Path | None, typer.Option(help="With openie: the documents they are about (`id`, `text`).")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"What the file holds, if not to be told: {', '.join(FORMATS)}, openie.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad row.")] = False,
    embed: Annotated[
        bool | None,
        typer.Option(
            "--embed/--no-embed", help="Embed everything, or nothing; default: as the size allows."
        ),
    ] = None,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take in a graph you already have, or recorded extractions with their corpus."""
    if form == _OPENIE or (form is None and corpus is not None):
        if corpus is None:
            raise typer.BadParameter("recorded extractions need --corpus", param_hint="--corpus")
        about = corpus
        run(lambda: _recorded(enter(kb, as_json), file, about, strict), debug)
        return
    if corpus is not None:
        raise typer.BadParameter("--corpus goes with --format openie", param_hint="--corpus")
    run(lambda: _graph(enter(kb, as_json), file, form, strict, embed), debug)


async def _graph(
    door: Door, file: Path, form: str | None, strict: bool, embed: bool | None
) -> None:
    await door.check_first([file])
    await asyncio.to_thread(format_of, file, form)  # before a folder is made for what cannot be
    async with door.kb(create=True, embed=embed is not False) as base:
        with progress(door.json) as tell:
            done = await base.import_graph(
                file, form=form, strict=strict, embed=embed, progress=tell
            )
    door.show(done, lambda: _tell_graph(done))


def _tell_graph(done: Imported) -> None:
    counts = done.counts
    if done.unchanged:
        out.print(f"{done.name} is here already, unchanged ({done.rows} rows)", markup=False)
        return
    seconds = sum(done.seconds.values())
    speed = done.rows / max(seconds - done.seconds.get("embed", 0.0), 1e-9)
    out.print(
        f"{done.rows} rows of {done.name} ({done.format}) in {seconds:.1f} s, "
        f"{speed:.0f} rows/s without embedding",
        markup=False,
    )
    if done.bad:
        out.print(f"{done.bad} rows could not be read:", style="yellow")
    for line, reason in done.bad_rows:
        out.print(f"  line {line} {reason}", style="yellow", markup=False)
    if done.shared_names:
        out.print(
            f"{done.shared_names} names are borne by several nodes; each node has its id in "
            "brackets, the name is an alias"
        )
    if done.embedded:
        out.print(f"embedded: {', '.join(done.embedded)}")
    if done.not_embedded:
        out.print(
            f"not embedded: {', '.join(done.not_embedded)}; `clew reembed` does it later, "
            "`clew import --embed` at once"
        )
    out.print(
        f"knowledge base: {counts.documents} documents, {counts.chunks} chunks, "
        f"{counts.entities} entities, {counts.facts} facts"
    )


async def _recorded(door: Door, file: Path, corpus: Path, strict: bool) -> None:
    await door.check_first([file, corpus])
    recording = recorded(file, strict)
    extractor = Recorded(recording)
    async with door.kb(create=True) as base:
        with progress(door.json) as tell:
            documents = read([corpus], row_names="id")
            added = await base.take(documents, extractor, progress=tell)
    found = {
        "rows": len(recording.rows),
        "bad_rows": [{"line": bad.line, "reason": bad.reason} for bad in recording.bad],
        "dropped": {**recording.dropped, **extractor.dropped},
        "added": added,
    }
    door.show(found, lambda: _tell(found, added))


def _tell(found: dict[str, object], added: Added) -> None:
    counts = added.counts
    out.print(
        f"{added.added} documents added, {added.unchanged} unchanged: {counts.entities} entities, "
        f"{counts.facts} facts from {found['rows']} rows"
    )
    bad = found["bad_rows"]
    for row in bad[:_SHOWN] if isinstance(bad, list) else []:
        out.print(f"  line {row['line']} {row['reason']}", style="yellow", markup=False)
    if isinstance(bad, list) and len(bad) > _SHOWN:
        out.print(f"  … {len(bad)} bad rows in all (every one with --json)")
    dropped = found["dropped"]
    for reason, times in dropped.items() if isinstance(dropped, dict) else ():
        out.print(f"  {times} × {reason}", style="yellow", markup=False)
