"""The train command.

The tune command.
The calibrate command: sets the relevance threshold below which questions are refused.
"""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from clew.adapters import delete_tuning
from clew.agents.relevance_gate import (
    DEFAULT_THRESHOLD,
    Threshold,
    calibrate_threshold,
    load_threshold,
    save_threshold,
)
from clew.cli.common import (
    CommandContext,
    DebugOption,
    JsonOption,
    KbOption,
    err,
    load_context,
    out,
    read_text,
    run,
    to_json_value,
)
from clew.cli.progress import show_progress
from clew.config import ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError, InputError
from clew.evaluate.datasets import Question, load_dataset
from clew.recipes.registry import ResolvedRecipe, recipe_with_gate, resolve_recipe
from clew.tune.encoder import EncoderTuningReport, forget_encoder, tune_encoder
from clew.tune.run import RecipeTrial, TuningReport, retriever_name, tune

_RunInputs = tuple[str, Path, Any, Any]
"""Model, output folder, tasks and training settings."""
_NO_RECIPE, _DEFAULT_AGENT = "none", "graph-r1"


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(train)
    app.command(name="tune")(tune_)
    app.command()(calibrate)


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
    from clew.train.learn.distributed import join_process_group

    served = {**found, "model": str(target / "model")}
    if join_process_group().is_main:  # only one of several processes prints
        ctx.show(served, lambda: out.print(f"done: {served}", markup=False))


async def _train_until_done(inputs: _RunInputs, retrieve: Any, **serving: Any) -> dict[str, Any]:
    """Train in a thread; on Ctrl-C stop it and wait, as it still reads the knowledge base."""
    import asyncio
    from threading import Event

    from clew.train.core.rollout import StopRequested

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
    from clew.agents.graph_r1 import GraphR1

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
    return KbRetriever(base, resolved.retrieve.name, agent.top_k, agent.format_evidence)


def _run(inputs: _RunInputs, retrieve: Any, **serving: Any) -> dict[str, Any]:
    from clew.train.run import Job, train

    job = Job(*inputs, retrieve, **serving)
    return train(job, lambda line: err.print(line, markup=False))


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


_MIN_QUESTIONS = 3


def calibrate(
    good: Annotated[Path, typer.Argument(help="Questions the documents answer, one per line.")],
    bad: Annotated[Path, typer.Argument(help="Questions they do not answer, one per line.")],
    recipe: Annotated[
        str | None,
        typer.Option(help="The recipe whose gate is set, such as rograg+naive; rograg if left."),
    ] = None,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Find the relevance below which `rograg` refuses in reject mode; no other recipe reads it."""
    run(lambda: _calibrate(load_context(kb, as_json), good, bad, recipe), debug)


async def _calibrate(ctx: CommandContext, good: Path, bad: Path, recipe: str | None) -> None:
    question_sets = [_read_questions(good), _read_questions(bad)]
    name = recipe or recipe_with_gate(ctx.settings.recipe)
    async with ctx.open_kb() as base:
        with show_progress(ctx.json) as tell:
            total = sum(map(len, question_sets))
            scores: list[list[float]] = [[], []]
            for kind, questions in enumerate(question_sets):
                for question in questions:
                    scores[kind].append((await base.relevance(question, recipe=name)).score)
                    tell("scoring", sum(map(len, scores)), total)
        result = calibrate_threshold(*scores)
        if result.balance <= 0:
            raise InputError(_inseparable_message(good, bad, scores))
        stored = await load_threshold(base.store)
        before = DEFAULT_THRESHOLD if stored is None else stored
        await save_threshold(base.store, result.value)
    ctx.show(
        {**to_json_value(result), "before": before, "recipe": name},
        lambda: _print_threshold(
            result, name, f"{before:.3f}" + (" by default" if stored is None else "")
        ),
    )


def _inseparable_message(good: Path, bad: Path, scores: list[list[float]]) -> str:
    swapped = calibrate_threshold(*reversed(scores)).balance > 0
    way_out = "are the two files swapped?" if swapped else "give questions that differ more"
    return (
        f"relevance does not part the questions of {good} from those of {bad}: no threshold is "
        f"better than refusing all or none, so nothing was kept; {way_out}"
    )


def _print_threshold(found: Threshold, recipe: str, before: str) -> None:
    out.print(
        f"threshold {found.value:.3f} for {escape(recipe)} in reject mode (was {before}): "
        f"{found.refused_good} of {found.good} good questions would be refused, "
        f"{found.passed_bad} of {found.bad} bad ones let through"
    )


def _read_questions(file: Path) -> list[str]:
    """Read questions, one per line, as text or as JSON objects with a `question`."""
    if not file.is_file():
        raise InputError(f"no file {file}; give one question per line")
    found = []
    for line in read_text(file).split("\n"):
        text = line.strip()
        if text.startswith("{"):
            try:
                text = str(json.loads(text)["question"])
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{file}: {line[:60]!r} has no question") from error
        if text:
            found.append(text)
    if len(found) < _MIN_QUESTIONS:
        raise InputError(
            f"{file} holds {len(found)} questions; {_MIN_QUESTIONS} are the least that tell"
        )
    return found
