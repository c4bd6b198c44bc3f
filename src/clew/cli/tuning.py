"""The command that learns: tune."""

from pathlib import Path
from typing import Annotated

import typer

from clew.adapt.keep import forgotten
from clew.cli.bars import progress
from clew.cli.door import AsJson, Debug, Door, Kb, enter, out, run
from clew.errors import ConfigError
from clew.evaluate.datasets import Question, load_dataset
from clew.tune.story import Learnt, tune


def register(app: typer.Typer) -> None:
    """Add this room's command."""
    app.command(name="tune")(tune_)


def tune_(
    questions: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files or folders of questions with `entities` and `answers`, or with `gold`.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first N questions of each.")
    ] = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="Go back to the embedder as it is.")
    ] = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Learn from questions with known answers; every step that scores then uses it."""
    door = enter(kb, as_json)
    if bool(questions) == forget:
        raise typer.BadParameter("give questions to learn from, or --forget")
    if forget:
        run(lambda: _forget(door), debug)
    else:
        run(lambda: _tune(door, questions or [], limit), debug)


async def _tune(door: Door, paths: list[Path], limit: int | None) -> None:
    asked: list[Question] = []
    for path in paths:
        asked += load_dataset(path).questions[:limit]
    async with door.kb() as base:
        with progress(door.json) as tell:
            learnt = await tune(base, asked, tell)
    door.show(learnt, lambda: _tell(learnt))


async def _forget(door: Door) -> None:
    async with door.kb() as base:
        if base.embed is None:
            raise ConfigError("there is no embedder, so nothing was learnt over it")
        await forgotten(base.store, base.embed.name)
    door.show({"forgotten": True}, lambda: out.print("back to the embedder as it is"))


def _tell(learnt: Learnt) -> None:
    out.print(
        f"{learnt.questions} questions: {learnt.paths} with paths, {learnt.passages} with passages"
    )
    if learnt.before is not None and learnt.after is not None:
        out.print(f"right path first: {learnt.before:.3f} before, {learnt.after:.3f} after")
    if learnt.hops is not None:
        out.print(f"number of hops told right: {learnt.hops:.3f}")
    if learnt.passages_before is not None and learnt.passages_after is not None:
        out.print(
            f"gold passages among five: {learnt.passages_before:.3f} before, "
            f"{learnt.passages_after:.3f} after"
        )
    seconds = ", ".join(f"{name} {spent:.1f} s" for name, spent in learnt.seconds.items())
    out.print(f"[dim]measured on a fifth held back; {seconds}; {learnt.bytes} bytes kept[/dim]")
