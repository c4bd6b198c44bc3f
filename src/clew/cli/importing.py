"""The import command: recorded extractions (and, later, whole graphs)."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from clew.cli.bars import progress
from clew.cli.door import AsJson, Debug, Door, Kb, enter, out, run
from clew.extract.openie import Recorded, recorded
from clew.ingest.build import Added
from clew.ingest.read import read

_SHOWN = 5


def register(app: typer.Typer) -> None:
    """Add this room's commands."""
    app.command(name="import")(import_)


def import_(
    file: Annotated[Path, typer.Argument(help="Recorded extractions, one JSON object a line.")],
    corpus: Annotated[Path, typer.Option(help="The documents they are about (`id`, `text`).")],
    form: Annotated[Literal["openie"], typer.Option("--format", help="What the file holds.")] = (
        "openie"
    ),
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad row.")] = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take in recorded extractions with their corpus: a graph without a single model call."""
    run(lambda: _import(enter(kb, as_json), file, corpus, strict), debug)


async def _import(door: Door, file: Path, corpus: Path, strict: bool) -> None:
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
