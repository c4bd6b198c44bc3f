"""The tune command."""

from pathlib import Path
from typing import Annotated

import typer

from clew.adapt.keep import delete_tuning
from clew.cli.bars import show_progress
from clew.cli.door import CommandContext, DebugOption, JsonOption, KbOption, load_context, out, run
from clew.errors import ConfigError
from clew.evaluate.datasets import Question, load_dataset
from clew.tune.encoder import EncoderTuningReport, forget_encoder, tune_encoder
from clew.tune.story import TuningReport, retriever_name, tune
from clew.tune.where import RecipeTrial


def register_tune(app: typer.Typer) -> None:
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
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Learn from questions with known answers; every step that scores then uses it."""
    if bool(questions) == forget:
        raise typer.BadParameter("give questions to learn from, or --forget")
    if forget:
        run(lambda: _forget(load_context(kb, as_json)), debug)
    elif encoder:
        run(lambda: _tune_encoder(load_context(kb, as_json), questions or [], limit), debug)
    else:
        run(
            lambda: _tune(
                load_context(kb, as_json), questions or [], limit, _split_recipes(recipe)
            ),
            debug,
        )


async def _tune_encoder(ctx: CommandContext, paths: list[Path], limit: int | None) -> None:
    from clew.train.encoder import fine_tune, require_torch

    require_torch()  # before anything is read
    async with ctx.open_kb() as base:
        with show_progress(ctx.json) as tell:
            learnt = await tune_encoder(base, _load_questions(paths, limit), fine_tune, tell)
    ctx.show(learnt, lambda: _print_encoder(learnt))


def _load_questions(paths: list[Path], limit: int | None) -> list[Question]:
    return [question for path in paths for question in load_dataset(path).questions[:limit]]


async def _tune(
    ctx: CommandContext, paths: list[Path], limit: int | None, recipes: list[str]
) -> None:
    async with ctx.open_kb() as base:
        with show_progress(ctx.json) as tell:
            learnt = await tune(
                base,
                _load_questions(paths, limit),
                tell,
                [retriever_name(name) for name in recipes],
            )
    ctx.show(learnt, lambda: _print_tuned(learnt))


async def _forget(ctx: CommandContext) -> None:
    async with ctx.open_kb() as base:
        if base.embed is None:
            raise ConfigError("there is no embedder, so nothing was learnt over it")
        await delete_tuning(base.store, base.embed.name)
        with show_progress(ctx.json) as tell:
            await forget_encoder(base, tell)
    ctx.show({"forgotten": True}, lambda: out.print("back to the embedder as it is"))


def _split_recipes(recipes: str | None) -> list[str]:
    return [name.strip() for name in (recipes or "").split(",") if name.strip()]


def _print_tuned(learnt: TuningReport) -> None:
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
        out.print(
            f"  {one.recipe}: gold documents among five passages {_format_change(one)}; {usage}"
        )
    seconds = _format_seconds(learnt.seconds)
    out.print(f"[dim]measured on a fifth held back; {seconds}; {learnt.bytes} bytes kept[/dim]")


def _print_encoder(learnt: EncoderTuningReport) -> None:
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
        out.print(f"{one.recipe}: gold documents among five passages {_format_change(one)}")
    kept = "kept, and all vectors made anew" if learnt.kept else "not kept: it does not help"
    out.print(f"{kept}; vectors are of {learnt.embedder}")
    out.print(f"[dim]measured on a fifth held back; {_format_seconds(learnt.seconds)}[/dim]")


def _format_change(one: RecipeTrial) -> str:
    return f"{one.before:.3f} before, {one.after:.3f} after"


def _format_seconds(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {spent:.1f} s" for name, spent in seconds.items())
