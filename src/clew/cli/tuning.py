"""The tune command."""

from pathlib import Path
from typing import Annotated

import typer

from clew.adapt.keep import forgotten
from clew.cli.bars import progress
from clew.cli.door import AsJson, Debug, Door, Kb, enter, out, run
from clew.errors import ConfigError
from clew.evaluate.datasets import Question, load_dataset
from clew.tune.encoder import Encoded, forget_encoder, tune_encoder
from clew.tune.story import Learnt, retriever, tune
from clew.tune.where import Tried


def register(app: typer.Typer) -> None:
    """Register this module's command."""
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
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Recipes to try what is learnt from passages with; those it helps use it.",
            show_default="the usual one, clew, naive, hybrid",
        ),
    ] = None,
    encoder: Annotated[
        bool,
        typer.Option(
            "--encoder", help="Learn the local encoder itself further, and embed all anew [train]."
        ),
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Go back to the embedder as it is.")
    ] = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Learn from questions with known answers; every step that scores then uses it."""
    if bool(questions) == forget:
        raise typer.BadParameter("give questions to learn from, or --forget")
    if forget:
        run(lambda: _forget(enter(kb, as_json)), debug)
    elif encoder:
        run(lambda: _encode(enter(kb, as_json), questions or [], limit), debug)
    else:
        run(lambda: _tune(enter(kb, as_json), questions or [], limit, _named(recipe)), debug)


async def _encode(ctx: Door, paths: list[Path], limit: int | None) -> None:
    from clew.train.encoder import fine_tuned, torch_here

    torch_here()  # before anything is read
    async with ctx.kb() as base:
        with progress(ctx.json) as tell:
            learnt = await tune_encoder(base, _asked(paths, limit), fine_tuned, tell)
    ctx.show(learnt, lambda: _tell_encoder(learnt))


def _asked(paths: list[Path], limit: int | None) -> list[Question]:
    return [question for path in paths for question in load_dataset(path).questions[:limit]]


async def _tune(ctx: Door, paths: list[Path], limit: int | None, recipes: list[str]) -> None:
    async with ctx.kb() as base:
        with progress(ctx.json) as tell:
            learnt = await tune(
                base, _asked(paths, limit), tell, [retriever(name) for name in recipes]
            )
    ctx.show(learnt, lambda: _tell(learnt))


async def _forget(ctx: Door) -> None:
    async with ctx.kb() as base:
        if base.embed is None:
            raise ConfigError("there is no embedder, so nothing was learnt over it")
        await forgotten(base.store, base.embed.name)
        with progress(ctx.json) as tell:
            await forget_encoder(base, tell)
    ctx.show({"forgotten": True}, lambda: out.print("back to the embedder as it is"))


def _named(recipes: str | None) -> list[str]:
    return [name.strip() for name in (recipes or "").split(",") if name.strip()]


def _tell(learnt: Learnt) -> None:
    out.print(
        f"{learnt.questions} questions: {learnt.paths} with paths, {learnt.passages} with passages"
    )
    if learnt.before is not None and learnt.after is not None:
        out.print(f"right path first: {learnt.before:.3f} before, {learnt.after:.3f} after")
    if learnt.hops is not None:
        out.print(f"hops told right: {learnt.hops_before:.3f} before, {learnt.hops:.3f} after")
    if learnt.passages_before is not None and learnt.passages_after is not None:
        out.print(
            f"gold passages among five: {learnt.passages_before:.3f} before, "
            f"{learnt.passages_after:.3f} after"
        )
    for one in learnt.recipes:
        usage = "uses it" if one.used else "goes without it"
        out.print(f"  {one.recipe}: gold documents among five passages {_change(one)}; {usage}")
    seconds = _spent(learnt.seconds)
    out.print(f"[dim]measured on a fifth held back; {seconds}; {learnt.bytes} bytes kept[/dim]")


def _tell_encoder(learnt: Encoded) -> None:
    out.print(
        f"{learnt.questions} questions: {learnt.paths} with paths, {learnt.passages} with passages"
    )
    if learnt.before is not None and learnt.after is not None:
        out.print(f"right path first: {learnt.before:.3f} before, {learnt.after:.3f} after")
    if learnt.passages_before is not None and learnt.passages_after is not None:
        out.print(
            f"gold passages among five: {learnt.passages_before:.3f} before, "
            f"{learnt.passages_after:.3f} after"
        )
    if one := learnt.recipe:
        out.print(f"{one.recipe}: gold documents among five passages {_change(one)}")
    kept = "kept, and all vectors made anew" if learnt.kept else "not kept: it does not help"
    out.print(f"{kept}; vectors are of {learnt.embedder}")
    out.print(f"[dim]measured on a fifth held back; {_spent(learnt.seconds)}[/dim]")


def _change(one: Tried) -> str:
    return f"{one.before:.3f} before, {one.after:.3f} after"


def _spent(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {spent:.1f} s" for name, spent in seconds.items())
