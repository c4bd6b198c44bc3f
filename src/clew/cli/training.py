"""The train command."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from clew.cli.door import (
    CommandContext,
    DebugOption,
    JsonOption,
    KbOption,
    err,
    load_context,
    out,
    run,
)
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.model_settings import ModelSettings
from clew.recipes import ResolvedRecipe, resolve_recipe

_RunInputs = tuple[str, Path, Any, Any]
"""Model, output folder, tasks and training settings."""
_NO_RECIPE, _DEFAULT_AGENT = "none", "graph-r1"


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command(name="train")(train)


def train(
    questions: Annotated[
        Path | None, typer.Option(help="A dataset folder, or its questions.jsonl.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model folder or hub name.")] = None,
    target: Annotated[
        Path | None, typer.Option("--out", help="The run's folder; an unfinished run goes on.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of training settings.")] = None,
    recipe: Annotated[
        str,
        typer.Option(
            help="Trained as it is served: graph-r1, graph-r1-facts, graph-r1+R; none: R1."
        ),
    ] = _DEFAULT_AGENT,
    k: Annotated[
        int | None, typer.Option("-k", help="Facts or passages a query; the recipe's own if left.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps in all.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this time.")] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Only write the knowledge base to this .npz, to train elsewhere."),
    ] = None,
    merge: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Only add a run's adapter to its base: RUN and the folder to write."),
    ] = None,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Train a small model to search this knowledge base, by reinforcement learning (Graph-R1)."""
    alone = [name for name, one in (("--merge", merge), ("--export", export)) if one is not None]
    if alone and (questions or model or target or len(alone) > 1):
        raise typer.BadParameter(f"{alone[0]} does only that; give the rest to another command")
    if merge is not None:
        run(lambda: _merge_adapter(load_context(kb, as_json), *merge), debug)
        return
    if export is not None:
        run(lambda: _export_kb(load_context(kb, as_json), export), debug)
        return
    given = {"--questions": questions, "--model": model, "--out": target}
    lacking = [name for name, value in given.items() if value is None]
    if lacking:
        raise typer.BadParameter(
            f"give {', '.join(lacking)} as well (or --export FILE or --merge RUN FOLDER alone)"
        )
    how = {"config": config, "recipe": recipe, "k": k, "steps": steps, "minutes": minutes}
    run(lambda: _train(load_context(kb, as_json), (questions, str(model), target), how), debug)


async def _export_kb(ctx: CommandContext, path: Path) -> None:
    from clew.train.search.export import export_kb

    async with ctx.open_kb(embed=False) as base:
        found = await export_kb(base.store, path)
    ctx.show({"file": str(path), **found}, lambda: out.print(f"{path}: {found}", markup=False))


async def _merge_adapter(ctx: CommandContext, folder: Path, target: Path) -> None:
    import asyncio

    from clew.train.merging import merge_adapter

    found = await asyncio.to_thread(merge_adapter, folder, target)
    ctx.show(found, lambda: out.print(f"{target}: {found}", markup=False))


async def _train(ctx: CommandContext, given: tuple[Any, str, Any], options: dict[str, Any]) -> None:
    import asyncio

    from clew.train.policy import require_train_extra
    from clew.train.questions import load_tasks
    from clew.train.settings import settings_from

    require_train_extra()
    settings = settings_from(options["config"], steps=options["steps"], minutes=options["minutes"])
    questions, model, target = given
    tasks = load_tasks(questions)
    inputs = (model, target, tasks, settings)
    if options["recipe"] == _NO_RECIPE:
        found = await _train_until_done(inputs, None, recipe=_NO_RECIPE)
    else:
        recipe, resolved = _resolve_recipe(options["recipe"], options["k"], settings.reply_tokens)
        if not settings.turns:
            err.print("turns = 0: no query is ever asked, as with --recipe none", markup=False)
        from clew import sync

        # The rollout runs in a thread and queries the knowledge base on the background loop.
        base = await asyncio.to_thread(sync.wait, KnowledgeBase.open(_without_models(ctx)))
        try:
            retrieve = await asyncio.to_thread(_make_retriever, base, resolved)
            found = await _train_until_done(inputs, retrieve, **_serving_options(recipe, resolved))
        finally:
            await asyncio.to_thread(sync.wait, base.close())
    from clew.train.learn.parallel import join_process_group

    served = {**found, "model": str(target / "model")}
    if join_process_group().is_main:  # only one of several processes prints
        ctx.show(served, lambda: out.print(f"done: {served}", markup=False))


async def _train_until_done(inputs: _RunInputs, retrieve: Any, **serving: Any) -> dict[str, Any]:
    """Train in a thread; on Ctrl-C stop it and wait, as it still reads the knowledge base."""
    import asyncio
    from threading import Event

    from clew.train.rollout import StopRequested

    stop = Event()
    work = asyncio.create_task(asyncio.to_thread(_run, inputs, retrieve, stop=stop, **serving))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        err.print("stopping: what was learned is written first", markup=False)
        with suppress(StopRequested):
            await work
        raise


def _without_models(ctx: CommandContext) -> Settings:
    """Return settings without chat models: served agents' queries are answered without, too."""
    return ctx.settings.model_copy(update={"models": ModelSettings()})


def _resolve_recipe(recipe: str, k: int | None, tokens: int) -> tuple[str, ResolvedRecipe]:
    """Return the recipe name and its agent and retriever, as in `clew ask --recipe`."""
    from clew.agents.loop import GraphR1

    resolved = resolve_recipe(recipe)
    if not isinstance(resolved.agent, GraphR1):
        recipe = f"{_DEFAULT_AGENT}+{recipe}"
        resolved = resolve_recipe(recipe)
    agent: Any = resolved.agent
    # The served agent counts characters, training counts tokens: about four characters each.
    agent = replace(agent, room=min(agent.room, 4 * tokens))
    return recipe, replace(resolved, agent=agent).with_top_k(k)


def _serving_options(recipe: str, resolved: ResolvedRecipe) -> dict[str, Any]:
    """Return the options that the trained model has to be served with."""
    agent: Any = resolved.agent
    return {"recipe": recipe, "k": agent.top_k, "characters": agent.room}


def _make_retriever(base: KnowledgeBase, resolved: ResolvedRecipe) -> Any:
    from clew import sync
    from clew.train.search.retrievers import KbRetriever

    counts = sync.wait(base.store.counts())
    if not counts.chunks:
        raise ConfigError("the knowledge base is empty; `clew add` documents to it first")
    agent: Any = resolved.agent
    return KbRetriever(base, resolved.retrieve.name, agent.top_k, agent.knowledge)


def _run(inputs: _RunInputs, retrieve: Any, **serving: Any) -> dict[str, Any]:
    from clew.train.run import Job, train

    job = Job(*inputs, retrieve, **serving)
    return train(job, lambda line: err.print(line, markup=False))
