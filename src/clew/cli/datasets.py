"""The commands that make evaluation data (dataset, anonymise, make-questions), and advise."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from clew.cli.common import (
    CommandContext,
    DebugOption,
    JsonOption,
    KbOption,
    err,
    format_table,
    load_context,
    out,
    run,
)
from clew.cli.evaluate import AnswersOption, SeedOption, split_names
from clew.cli.progress import show_progress
from clew.errors import ConfigError
from clew.evaluate.advise import (
    DEFAULT_RECIPES,
    GENERATED_QUESTIONS_WARNING,
    Advice,
    QueryCostLimit,
    TrialSettings,
    advise,
)
from clew.evaluate.anonymise import AnonymiseResult, anonymise, restore
from clew.evaluate.datasets import QUESTIONS_FILE, load_dataset
from clew.evaluate.loaders.convert import LOADERS, ConversionResult, convert
from clew.evaluate.question_generation import QUESTION_KINDS, GeneratedQuestions, make_questions
from clew.evaluate.report.text import build_table

OutOption = Annotated[Path, typer.Option("--out", help="The folder to write.")]


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    datasets = typer.Typer(help="Data sets with gold answers.", no_args_is_help=True)
    datasets.command(name="convert")(convert_)
    app.add_typer(datasets, name="dataset")
    app.command(name="anonymise")(anonymise_)
    app.command(name="make-questions")(make_questions_)
    app.command(name="advise")(advise_)


def convert_(
    form: Annotated[str, typer.Argument(help=f"One of {', '.join(LOADERS)}.")],
    paths: Annotated[list[Path], typer.Argument(help="The files as published, or their folder.")],
    into: OutOption,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")] = None,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Turn a published data set into a folder that `clew eval` reads."""

    async def work() -> None:
        ctx = load_context(kb, as_json)
        taken = convert(form, paths, into, limit)
        ctx.show(taken, lambda: _print_converted(taken))

    run(work, debug)


def _print_converted(taken: ConversionResult) -> None:
    out.print(
        f"{taken.questions} questions, {taken.passages} passages in {taken.folder}", markup=False
    )
    for graph in taken.graphs:
        out.print(f"graph: {graph} (`clew import` takes it in)", markup=False)
    _print_problems(taken.problems)


def _print_problems(problems: Sequence[str]) -> None:
    for problem in problems[:5]:
        err.print(f"  {problem}", style="yellow", markup=False)
    if len(problems) > 5:
        err.print(f"  … {len(problems)} problems in all; --json lists them", style="yellow")


def anonymise_(
    folder: Annotated[Path, typer.Argument(help="A folder with corpus.jsonl and questions.jsonl.")],
    into: OutOption,
    back: Annotated[
        bool, typer.Option("--restore", help="Undo: put the names back by the key file.")
    ] = False,
    seed: SeedOption = 0,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Replace every name by a mark, so that a model cannot answer from memory."""

    async def work() -> None:
        ctx = load_context(kb, as_json)
        if back:
            rows = restore(folder, into)
            ctx.show({"rows": rows, "folder": into}, lambda: out.print(f"{rows} rows restored"))
            return
        done = await anonymise(folder, into, seed)
        ctx.show(done, lambda: _print_anonymised(done))

    run(work, debug)


def _print_anonymised(done: AnonymiseResult) -> None:
    out.print(
        f"{done.names} names in {done.passages} passages and {done.questions} questions replaced; "
        f"{done.choice} multiple-choice and {done.reversion} reversion tasks"
    )
    if done.left:
        err.print(f"  {done.left} questions hold no name and are as they were", style="yellow")
    _print_problems(done.problems)
    out.print(f"written: {done.folder}; key.json leads back, keep it apart", markup=False)


def make_questions_(
    into: OutOption,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many.")] = 100,
    kinds: Annotated[
        str, typer.Option(help=f"Kinds, separated by commas: {', '.join(QUESTION_KINDS)}.")
    ] = ",".join(QUESTION_KINDS[:4]),
    word: Annotated[
        bool, typer.Option("--word", help="Let the model word them as a person would.")
    ] = False,
    seed: SeedOption = 0,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Make multi-hop questions with gold evidence from your own knowledge base."""

    async def work() -> None:
        ctx = load_context(kb, as_json)
        async with ctx.open_kb(embed=False) as base:
            chat = base.models.chat("plan") if word else None
            made = await make_questions(base, count, kinds=split_names(kinds), seed=seed, chat=chat)
        _write_questions(into, made)
        payload = {"folder": into, "questions": len(made.rows), "stiff": made.template_worded}
        ctx.show(payload, lambda: _print_questions(into, made, count))

    run(work, debug)


def _write_questions(folder: Path, made: GeneratedQuestions) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in made.rows]
    (folder / QUESTIONS_FILE).write_text("".join(lines), encoding="utf-8")


def _print_questions(folder: Path, made: GeneratedQuestions, count: int) -> None:
    for row in made.rows[:3]:
        out.print(f"{row['type']}: {row['question']}", markup=False)
        out.print(f"  → {row.get('answer', '(to be refused)')}", style="dim", markup=False)
    if len(made.rows) < count:
        err.print(f"  only {len(made.rows)}: the graph has no more paths", style="yellow")
    if made.template_worded:
        err.print(f"  {made.template_worded} kept the template's wording", style="yellow")
    out.print(f"written: {folder / QUESTIONS_FILE} ({len(made.rows)} questions)", markup=False)


def advise_(
    folder: Annotated[
        Path | None, typer.Argument(help="Your questions; without them some are made.")
    ] = None,
    recipe: Annotated[str, typer.Option(help="Recipes to try.")] = ",".join(DEFAULT_RECIPES),
    ms: Annotated[
        float | None,
        typer.Option("--ms", min=0, help="Budget: milliseconds a question (p95)."),
    ] = None,
    money: Annotated[
        float | None,
        typer.Option("--money", min=0, help="Budget: money for 1,000 questions."),
    ] = None,
    sample: Annotated[int, typer.Option(min=5, help="Questions to try on.")] = 50,
    answers: AnswersOption = False,
    seed: SeedOption = 0,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Try recipes on your own documents and recommend one for your budget."""
    budget, how = QueryCostLimit(ms, money), (sample, answers, seed)
    run(lambda: _advise(load_context(kb, as_json), folder, recipe, budget, how), debug)


async def _advise(
    ctx: CommandContext,
    folder: Path | None,
    recipe: str,
    budget: QueryCostLimit,
    how: tuple[int, bool, int],
) -> None:
    sample, answers, seed = how
    dataset = load_dataset(folder) if folder else None
    questions = dataset.questions if dataset else ()
    if dataset is not None and not questions:
        raise ConfigError(f"{folder} holds no question; leave it out and some are made")
    async with ctx.open_kb() as base:
        with show_progress(ctx.json) as tell:
            trial = TrialSettings(split_names(recipe), sample, seed, answers)
            advice = await advise(base, trial, questions, budget, tell)
    if dataset is not None:
        problems = (*advice.problems, *dataset.problems)
        advice = replace(advice, problems=problems, unread=dataset.unread)
    ctx.show(advice.to_dict(), lambda: _print_advice(advice))


def _print_advice(advice: Advice) -> None:
    _print_problems(advice.problems)
    made = "made from your documents" if advice.questions_generated else "of yours"
    unread = f", {advice.unread} rows could not be read" if advice.unread else ""
    out.print(f"{advice.questions} questions {made}{unread}")
    out.print(format_table(*build_table(advice.comparison)))
    for name, why in advice.left_out.items():
        err.print(f"  {name} left out: {why}", style="yellow", markup=False)
    out.print(f"\n[bold]{escape(advice.recipe)}[/bold]: {escape(advice.reason)}")
    if advice.questions_generated:
        out.print(GENERATED_QUESTIONS_WARNING, style="yellow", markup=False)
