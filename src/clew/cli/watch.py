"""The command watch: keeps a knowledge base up to date with folders by polling them."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from clew.cli.add import (
    ExtractorOption,
    ForRecipeOption,
    PathsArgument,
    check_recipe,
    print_added,
    run_add,
)
from clew.cli.common import CommandContext, command, describe_missing_files, out
from clew.ingest.build import AddResult
from clew.ingest.document_names import find_missing_files
from clew.ingest.files import find_files
from clew.ingest.readers.source import Skipped, SourceFile

FileStates = dict[str, tuple[int, int]]
Pause = Callable[[float], Awaitable[None]]


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(command(watch, stopped="stopped watching; what was added is saved"))


async def watch(
    ctx: CommandContext,
    paths: PathsArgument,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 2.0,
    remove: Annotated[
        bool, typer.Option("--remove", help="Also remove documents whose files are deleted.")
    ] = False,
    extractor: ExtractorOption = None,
    recipe: ForRecipeOption = None,
) -> None:
    """Add a folder, and whatever changes in it, until interrupted."""
    check_recipe(ctx, recipe)
    await ctx.check_paths(_drop_empty(paths))
    if not _drop_empty(paths) and not ctx.json:
        out.print("no files yet; waiting for the first", markup=False)

    async def bring_up_to_date() -> tuple[AddResult, list[str]]:
        # Opened for each change: other commands may write in between.
        async with ctx.open_kb(create=True) as base:
            filled = _drop_empty(paths)
            added = await run_add(base, ctx, filled, extractor=extractor, recipe=recipe)
            gone = await find_missing_files(base.store, paths)
            if remove and gone:
                await base.remove(gone)
        return added, gone

    listed: set[Skipped] = set()

    def show(added: AddResult, gone: list[str]) -> None:
        def people() -> None:
            new = tuple(one for one in added.skipped if one not in listed)
            print_added(replace(added, skipped=new))
            listed.update(new)
            if gone:
                told = describe_missing_files(gone, watched=True)
                done = f"removed {', '.join(gone)}" if remove else told
                out.print(done, style="yellow", markup=False)

        ctx.show({"added": added, "gone": gone}, people)

    await follow_changes(paths, every, bring_up_to_date, show)


async def follow_changes(
    paths: Sequence[Path],
    every: float,
    bring_up_to_date: Callable[[], Awaitable[tuple[AddResult, list[str]]]],
    show: Callable[[AddResult, list[str]], None],
    pause: Pause = asyncio.sleep,
) -> None:
    """Add now, and again after each change of a file; a file still being written waits a turn."""
    before: FileStates = {}
    last: FileStates | None = None
    while True:
        now = await asyncio.to_thread(read_states, paths)
        settled = last is None or now == last
        if settled and now != before:
            show(*await bring_up_to_date())
            before = now
        last = now
        await pause(every)


def read_states(paths: Sequence[Path]) -> FileStates:
    """Return the size and time of change of every file that would be read."""
    found: FileStates = {}
    there = [path for path in _drop_empty(paths) if os.path.exists(path)]
    for item in find_files(there):
        if isinstance(item, SourceFile):
            try:
                state = item.path.stat()
            except OSError:
                continue  # deleted since it was listed: the next look tells
            found[item.name] = (state.st_mtime_ns, state.st_size)
    return found


def _drop_empty(paths: Sequence[Path]) -> list[Path]:
    """Return the paths without folders that have no entries yet."""
    return [path for path in paths if not os.path.isdir(path) or os.listdir(path)]
