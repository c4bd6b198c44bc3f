"""The schema command: shows, edits and reverts the types that bound extraction."""

from pathlib import Path
from typing import Annotated, Any

import typer

from clew.cli.door import (
    CommandContext,
    DebugOption,
    JsonOption,
    KbOption,
    fail,
    load_context,
    out,
    run,
)
from clew.extract.growth import SchemaHistory
from clew.extract.schema_file import dump_schema
from clew.ingest.schema_room import SchemaStore


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(schema)


def schema(
    edit: Annotated[
        Path | None, typer.Option(help="Make this TOML or JSON file the schema in force.")
    ] = None,
    revert: Annotated[int | None, typer.Option(help="Take back the step of this number.")] = None,
    write: Annotated[Path | None, typer.Option(help="Write the schema to a file to edit.")] = None,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the types that bound `--extractor schema`, with every step of their growth."""
    if edit is not None and revert is not None:
        fail("give --edit or --revert, not both")
    run(lambda: _schema(load_context(kb, as_json), edit, revert, write), debug)


async def _schema(
    ctx: CommandContext, edit: Path | None, step: int | None, write: Path | None
) -> None:
    async with ctx.open_kb(create=edit is not None, embed=False) as base:
        store = SchemaStore(base.store, ctx.settings.schema_file)
        if edit is not None:
            history = await store.edit(edit)
        elif step is not None:
            history = await store.revert(step)
        else:
            history = await store.load_history()
    if write is not None:
        _write_schema(history, write)
    ctx.show(
        {"schema": history.schema.to_json(), "steps": history.to_json()["steps"]},
        lambda: _print_schema(history, write),
    )


def _write_schema(history: SchemaHistory, file: Path) -> None:
    form: Any = "json" if file.suffix == ".json" else "toml"
    file.write_text(dump_schema(history.schema, form), encoding="utf-8")


def _print_schema(history: SchemaHistory, written: Path | None) -> None:
    if written is not None:
        out.print(f"wrote {written}; after editing: `clew schema --edit {written}`", markup=False)
        return
    out.print(dump_schema(history.schema), markup=False)
    for step in history.steps:
        state = " (taken back)" if step.reverted else ""
        names = ", ".join([f"+{one.name}" for one in step.added])
        gone = ", ".join([f"-{one.name}" for one in step.removed])
        changes = " ".join(part for part in (names, gone) if part)
        out.print(f"step {step.number}, {step.cause}{state}: {changes}", markup=False)
