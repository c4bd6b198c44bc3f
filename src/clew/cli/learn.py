"""The commands that learn from questions: train, tune."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from clew.adapters import delete_tuning
from clew.agents.graph_r1 import GraphR1
from clew.cli.common import CommandContext, command, err, out
from clew.cli.progress import show_progress
from clew.config import ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.datasets import Question, load_dataset
from clew.recipes.registry import resolve_recipe
from clew.retrieve.blend import PLAIN_SIGNALS
from clew.tune.encoder import EncoderTuningReport, forget_encoder, tune_encoder
from clew.tune.run import RecipeTrial, TuningReport, retriever_name, tune
from clew.tune.signals import SignalTrial

_RunInputs = tuple[str, Path, Any, Any]
"""Model, output folder, tasks and training settings."""
_NO_RECIPE, _DEFAULT_AGENT = "none", "graph-r1"


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(train)
    app.command(name="tune")(tune_)


_SHOWN_ROWS = 20  # that cannot be read and are named


@command
async def train(
    ctx: CommandContext,
    questions: Annotated[
        Path | None, typer.Option(help="A dataset folder, or its questions.jsonl.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model folder or hub name.")] = None,
    target: Annotated[
        Path | None, typer.Option("--out", help="Folder of the run; an unfinished run is resumed.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of training settings.")] = None,
    recipe: Annotated[
        str,
        typer.Option(
            help="graph-r1, graph-r1-facts or graph-r1+RETRIEVER; none: no retrieval (R1)."
        ),
    ] = _DEFAULT_AGENT,
    k: Annotated[
        int | None,
        typer.Option("-k", help="Facts or passages per query; by default the recipe's own."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Total number of steps.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this time.")] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Only export the knowledge base to this .npz file, to train elsewhere."),
    ] = None,
    merge: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Only merge a run's adapter into its base model: RUN and output folder."),
    ] = None,
) -> None:
    """Train a small model to search this knowledge base, by reinforcement learning (Graph-R1)."""
    alone = [name for name, one in (("--merge", merge), ("--export", export)) if one is not None]
    if alone and (questions or model or target or len(alone) > 1):
        raise typer.BadParameter(
            f"{alone[0]} cannot be combined with other options of `clew train`"
        )
    if merge is not None:
        await _merge_adapter(ctx, *merge)
        return
    if export is not None:
        await _export_kb(ctx, export)
        return
    given = {"--questions": questions, "--model": model, "--out": target}
    lacking = [name for name, value in given.items() if value is None]
    if lacking:
        raise typer.BadParameter(
            f"missing {', '.join(lacking)} (or use --export FILE or --merge RUN FOLDER alone)"
        )
    how = {"config": config, "recipe": recipe, "k": k, "steps": steps, "minutes": minutes}
    await _train(ctx, (questions, str(model), target), how)


async def _export_kb(ctx: CommandContext, path: Path) -> None:
    from clew.train.search.exported_kb import export_kb

    async with ctx.open_kb(embed=False) as base:
        found = await export_kb(base.store, path)
    ctx.show({"file": str(path), **found}, lambda: out.print(f"{path}: {found}", markup=False))


async def _merge_adapter(ctx: CommandContext, folder: Path, target: Path) -> None:
    import asyncio

    from clew.train.run_folder import merge_adapter

    found = await asyncio.to_thread(merge_adapter, folder, target)
    ctx.show(found, lambda: out.print(f"{target}: {found}", markup=False))


async def _train(ctx: CommandContext, given: tuple[Any, str, Any], options: dict[str, Any]) -> None:
    import asyncio

    from clew.train.core.settings import settings_from
    from clew.train.learn.policy import require_train_extra
    from clew.train.questions import load_tasks

    require_train_extra()
    settings = settings_from(options["config"], steps=options["steps"], minutes=options["minutes"])
    questions, model, target = given
    tasks = load_tasks(questions)
    inputs = (model, target, tasks, settings)
    if options["recipe"] == _NO_RECIPE:
        found = await train_until_done(inputs, None, recipe=_NO_RECIPE)
    else:
        recipe, agent, retriever = _resolve_recipe(
            ctx, options["recipe"], options["k"], settings.reply_tokens
        )
        room = 4 * agent.room  # characters, as older runs recorded it
        serving = {"recipe": recipe, "k": agent.top_k, "characters": room, "show": agent.show}
        if not settings.turns:
            err.print("turns = 0: the model never queries, as with --recipe none", markup=False)
        from clew import sync

        # The rollout runs in a thread and queries the knowledge base on the background loop.
        base = await asyncio.to_thread(sync.wait, KnowledgeBase.open(_without_models(ctx)))
        try:
            retrieve = await asyncio.to_thread(_make_retriever, base, agent, retriever)
            found = await train_until_done(inputs, retrieve, **serving)
        finally:
            await asyncio.to_thread(sync.wait, base.close())
    from clew.train.learn.distributed import join_process_group

    served = {**found, "model": str(target / "model")}
    if join_process_group().is_main:  # only one of several processes prints
        ctx.show(served, lambda: out.print(f"done: {served}", markup=False))


async def train_until_done(inputs: _RunInputs, retrieve: Any, **serving: Any) -> dict[str, Any]:
    """Train in a thread; on Ctrl-C stop it and wait, as it still reads the knowledge base."""
    import asyncio
    from threading import Event

    from clew.train.core.rollout import StopRequested

    stop = Event()
    work = asyncio.create_task(
        asyncio.to_thread(run_training, inputs, retrieve, stop=stop, **serving)
    )
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        err.print("stopping; saving the weights first", markup=False)
        with suppress(StopRequested):
            await work
        raise


def _without_models(ctx: CommandContext) -> Settings:
    """Return settings without chat models: served agents' queries are answered without, too."""
    return ctx.settings.model_copy(update={"models": ModelSettings()})


def _resolve_recipe(
    ctx: CommandContext, recipe: str, k: int | None, tokens: int
) -> tuple[str, GraphR1, str]:
    """Return the recipe name, its agent and its retriever's name, as in `clew ask --recipe`."""
    resolved = resolve_recipe(recipe, ctx.recipes)
    if not isinstance(resolved.agent, GraphR1):
        recipe = f"{_DEFAULT_AGENT}+{recipe}"
        resolved = resolve_recipe(recipe, ctx.recipes)
    agent = resolved.agent
    assert isinstance(agent, GraphR1)
    agent = replace(agent, room=min(agent.room, tokens), top_k=k or agent.top_k)
    return recipe, agent, resolved.retrieve.name


def _make_retriever(base: KnowledgeBase, agent: GraphR1, retriever: str) -> Any:
    from clew import sync
    from clew.train.search.retrievers import KbRetriever

    counts = sync.wait(base.store.counts())
    if not counts.chunks:
        raise ConfigError("the knowledge base is empty; add documents with `clew add`")
    return KbRetriever(base, retriever, agent.top_k, agent.format_evidence)


def run_training(inputs: _RunInputs, retrieve: Any, **serving: Any) -> dict[str, Any]:
    """Train in this thread; return what is needed to serve the model."""
    from clew.train.run import Job, train

    job = Job(*inputs, retrieve, **serving)
    return train(job, lambda line: err.print(line, markup=False))


@command
async def tune_(
    ctx: CommandContext,
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
            help="Recipes to test the query adapter on; those it improves will use it.",
            show_default="the default recipe, clew, naive, hybrid",
        ),
    ] = None,
    encoder: Annotated[
        bool,
        typer.Option(
            "--encoder",
            help="Fine-tune the local encoder and recompute all vectors (extra `train`).",
        ),
    ] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Delete the adapters and return to the original embedder."),
    ] = False,
) -> None:
    """Train the scoring adapters on questions with known answers; retrieval then uses them."""
    if bool(questions) == forget:
        raise typer.BadParameter("give questions to learn from, or --forget")
    if forget:
        await _forget(ctx)
    elif encoder:
        await _tune_encoder(ctx, questions or [], limit)
    else:
        await _tune(ctx, questions or [], limit, _split_recipes(recipe))


async def _tune_encoder(ctx: CommandContext, paths: list[Path], limit: int | None) -> None:
    from clew.train.encoder import fine_tune, require_torch

    require_torch()  # before anything is read
    async with ctx.open_kb() as base:
        with show_progress(ctx.json) as report:
            learnt = await tune_encoder(base, _load_questions(paths, limit), fine_tune, report)
    ctx.show(learnt, lambda: _print_encoder(learnt))


def _load_questions(paths: list[Path], limit: int | None) -> list[Question]:
    """Read the questions; rows that cannot be read are named, with the reason."""
    sets = [load_dataset(path) for path in paths]
    unread = [problem for one in sets for problem in one.problems[: one.unread]]
    for problem in unread[:_SHOWN_ROWS]:
        err.print(problem, style="yellow", markup=False)
    if len(unread) > _SHOWN_ROWS:
        err.print(f"{len(unread) - _SHOWN_ROWS} more rows could not be read", style="yellow")
    return [question for one in sets for question in one.questions[:limit]]


async def _tune(
    ctx: CommandContext, paths: list[Path], limit: int | None, recipes: list[str]
) -> None:
    async with ctx.open_kb() as base:
        with show_progress(ctx.json) as report:
            learnt = await tune(
                base,
                _load_questions(paths, limit),
                report,
                [retriever_name(base, name) for name in recipes],
            )
    ctx.show(learnt, lambda: _print_tuned(learnt))


async def _forget(ctx: CommandContext) -> None:
    async with ctx.open_kb() as base:
        if base.embed is None:
            raise ConfigError("no embedder is configured, so there is nothing to forget")
        await delete_tuning(base.store, base.embed.name)
        with show_progress(ctx.json) as report:
            await forget_encoder(base, report)
    ctx.show({"forgotten": True}, lambda: out.print("returned to the original embedder"))


def _split_recipes(recipes: str | None) -> list[str]:
    return [name.strip() for name in (recipes or "").split(",") if name.strip()]


def _print_tuned(learnt: TuningReport) -> None:
    _print_gains(learnt, learnt.kept)
    if learnt.hops is not None and learnt.hops_before is not None:
        gain = _format_gain(learnt.hops_before, learnt.hops, "hops", learnt.kept)
        out.print(f"correct hop counts: {gain}")
    for one in learnt.recipes:
        usage = "uses it" if one.used else "does not use it"
        out.print(f"  {one.recipe}: gold documents in the top 5: {_format_change(one)}; {usage}")
    if (signals := learnt.signals) is not None:
        out.print(_format_signals(signals))
    seconds = _format_seconds(learnt.seconds)
    stored = f"{learnt.bytes} bytes stored" if learnt.kept else "nothing stored"
    out.print(f"[dim]measured on a held-out fifth; {seconds}; {stored}[/dim]")
    if not learnt.kept:
        out.print("nothing kept: retrieval is as without tuning", style="yellow")


def _format_signals(one: SignalTrial) -> str:
    walk = "as measured" if one.walk is None else f"{one.walk:.2f}"
    shares = zip(PLAIN_SIGNALS, one.shares, strict=True)
    weights = ", ".join([f"walk {walk}", *(f"{name} {share:.2f}" for name, share in shares)])
    kept = "kept" if one.used else "not kept"
    return f"signals of `clew`: {weights}; recall {one.before:.3f} → {one.after:.3f}, {kept}"


def _print_encoder(learnt: EncoderTuningReport) -> None:
    _print_gains(learnt)
    if one := learnt.recipe:
        out.print(f"{one.recipe}: gold documents in the top 5: {_format_change(one)}")
    kept = "kept; all vectors recomputed" if learnt.kept else "discarded: it does not help"
    out.print(f"{kept}; the vectors are from {learnt.embedder}")
    out.print(f"[dim]measured on a held-out fifth; {_format_seconds(learnt.seconds)}[/dim]")


def _print_gains(
    learnt: TuningReport | EncoderTuningReport, kept: tuple[str, ...] | None = None
) -> None:
    out.print(
        f"{learnt.questions} questions: {learnt.paths} with paths, {learnt.passages} with passages"
    )
    if learnt.before is not None and learnt.after is not None:
        gain = _format_gain(learnt.before, learnt.after, "paths", kept)
        out.print(f"correct path ranked first: {gain}")
    if learnt.passages_before is not None and learnt.passages_after is not None:
        out.print(
            f"gold passages in the top 5: {learnt.passages_before:.3f} before, "
            f"{learnt.passages_after:.3f} after"
        )


def _format_gain(before: float, after: float, part: str, kept: tuple[str, ...] | None) -> str:
    """Both scores of a part of the tuning, and whether it is kept; None: not decided by them."""
    text = f"{before:.3f} before, {after:.3f} after"
    if kept is None:
        return text
    if part in kept:
        return f"{text}; kept"
    return f"{text}; not kept: {'worse' if after < before else 'no better'} on held-out questions"


def _format_change(one: RecipeTrial) -> str:
    return f"{one.before:.3f} before, {one.after:.3f} after"


def _format_seconds(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {spent:.1f} s" for name, spent in seconds.items())
