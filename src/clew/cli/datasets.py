"""The commands that make evaluation data (dataset, anonymise, make-questions), and advise."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from clew.cli.common import CommandContext, command, err, format_table, out
from clew.cli.evaluate import AnswersOption, SeedOption, print_problems, split_names
from clew.cli.progress import show_progress
from clew.errors import ConfigError
from clew.evaluate.advise import (
    GENERATED_QUESTIONS_WARNING,
    Advice,
    QueryCostLimit,
    TrialSettings,
    advise,
)
from clew.evaluate.anonymise import AnonymiseResult, anonymise, restore
from clew.evaluate.datasets import QUESTIONS_FILE, load_dataset, write_json_lines
from clew.evaluate.loaders.convert import LOADERS, ConversionResult, convert
from clew.evaluate.question_generation import QUESTION_KINDS, GeneratedQuestions, make_questions
from clew.evaluate.report.text import build_table

OutOption = Annotated[Path, typer.Option("--out", help="The folder to write.")]


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    datasets = typer.Typer(
        help="Convert published datasets with gold answers.", no_args_is_help=True
    )
    datasets.command(name="convert")(convert_)
    app.add_typer(datasets, name="dataset")
    app.command(name="anonymise")(anonymise_)
    app.command(name="make-questions")(make_questions_)
    app.command(name="advise")(advise_)


@command
async def convert_(
    ctx: CommandContext,
    form: Annotated[str, typer.Argument(help=f"One of {', '.join(LOADERS)}.")],
    paths: Annotated[list[Path], typer.Argument(help="The files as published, or their folder.")],
    into: OutOption,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")] = None,
) -> None:
    """Convert a published dataset into a folder that `clew eval` reads."""
    taken = convert(form, paths, into, limit)
    ctx.show(taken, lambda: _print_converted(taken))


def _print_converted(taken: ConversionResult) -> None:
    out.print(
        f"{taken.questions} questions, {taken.passages} passages in {taken.folder}", markup=False
    )
    for graph in taken.graphs:
        out.print(f"graph: {graph} (import it with `clew import`)", markup=False)
    print_problems(taken.problems)


@command
async def anonymise_(
    ctx: CommandContext,
    folder: Annotated[Path, typer.Argument(help="A folder with corpus.jsonl and questions.jsonl.")],
    into: OutOption,
    back: Annotated[
        bool, typer.Option("--restore", help="Undo: restore the names from the key file.")
    ] = False,
    seed: SeedOption = 0,
) -> None:
    """Replace every name by a placeholder, so that a model cannot answer from memory."""
    if back:
        rows = restore(folder, into)
        ctx.show({"rows": rows, "folder": into}, lambda: out.print(f"{rows} rows restored"))
        return
    done = await anonymise(folder, into, seed)
    ctx.show(done, lambda: _print_anonymised(done))


def _print_anonymised(done: AnonymiseResult) -> None:
    out.print(
        f"{done.names} names in {done.passages} passages and {done.questions} questions replaced; "
        f"{done.choice} multiple-choice and {done.reversion} reversion tasks"
    )
    if done.left:
        err.print(f"  {done.left} questions contain no name and are unchanged", style="yellow")
    print_problems(done.problems)
    out.print(
        f"written: {done.folder}; key.json restores the names; keep it separately", markup=False
    )


@command
async def make_questions_(
    ctx: CommandContext,
    into: OutOption,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many.")] = 100,
    kinds: Annotated[
        str, typer.Option(help=f"Kinds, separated by commas: {', '.join(QUESTION_KINDS)}.")
    ] = ",".join(QUESTION_KINDS[:4]),
    word: Annotated[
        bool, typer.Option("--word", help="Let the model rephrase the questions naturally.")
    ] = False,
    seed: SeedOption = 0,
) -> None:
    """Generate multi-hop questions with gold evidence from your knowledge base."""
    async with ctx.open_kb(embed=False) as base:
        chat = base.models.chat("plan") if word else None
        made = await make_questions(base, count, kinds=split_names(kinds), seed=seed, chat=chat)
    into.mkdir(parents=True, exist_ok=True)
    write_json_lines(into / QUESTIONS_FILE, made.rows)
    payload = {"folder": into, "questions": len(made.rows), "stiff": made.template_worded}
    ctx.show(payload, lambda: _print_questions(into, made, count))


def _print_questions(folder: Path, made: GeneratedQuestions, count: int) -> None:
    for row in made.rows[:3]:
        out.print(f"{row['type']}: {row['question']}", markup=False)
        out.print(
            f"  → {row.get('answer', '(no answer: should be refused)')}", style="dim", markup=False
        )
    if len(made.rows) < count:
        err.print(f"  only {len(made.rows)} questions: the graph has no more paths", style="yellow")
    if made.template_worded:
        err.print(f"  {made.template_worded} questions were not rephrased", style="yellow")
    out.print(f"written: {folder / QUESTIONS_FILE} ({len(made.rows)} questions)", markup=False)


@command
async def advise_(
    ctx: CommandContext,
    folder: Annotated[
        Path | None, typer.Argument(help="Your questions; by default they are generated.")
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="Recipes to try; by default those that suit your documents.")
    ] = "",
    ms: Annotated[
        float | None, typer.Option("--ms", min=0, help="Budget: milliseconds a question (p95).")
    ] = None,
    money: Annotated[
        float | None, typer.Option("--money", min=0, help="Budget: money for 1,000 questions.")
    ] = None,
    sample: Annotated[int, typer.Option(min=5, help="Questions to try on.")] = 50,
    answers: AnswersOption = False,
    seed: SeedOption = 0,
) -> None:
    """Try recipes on your own documents and recommend one for your budget."""
    dataset = load_dataset(folder) if folder else None
    questions = dataset.questions if dataset else ()
    if dataset is not None and not questions:
        raise ConfigError(f"{folder} has no questions; leave it out to generate some")
    async with ctx.open_kb() as base:
        with show_progress(ctx.json) as report:
            recipes = split_names(recipe) if recipe else ()
            trial = TrialSettings(recipes, sample, seed, answers)
            limit = QueryCostLimit(ms, money)
            advice = await advise(base, trial, questions, limit, report)
    if dataset is not None:
        problems = (*advice.problems, *dataset.problems)
        advice = replace(advice, problems=problems, unread=dataset.unread)
    ctx.show(advice.to_dict(), lambda: _print_advice(advice))


def _print_advice(advice: Advice) -> None:
    print_problems(advice.problems)
    own = advice.questions and not advice.questions_generated
    made = "from your dataset" if own else "generated from your documents"
    unread = f", {advice.unread} rows could not be read" if advice.unread else ""
    out.print(f"{advice.questions} questions {made}{unread}")
    out.print(f"{advice.kind.name}: {advice.kind.about}", markup=False)
    if advice.comparison.reports:
        out.print(format_table(*build_table(advice.comparison)))
    for name, why in advice.left_out.items():
        err.print(f"  {name} left out: {why}", style="yellow", markup=False)
    out.print(f"\n[bold]{escape(advice.recipe)}[/bold]: {escape(advice.reason)}")
    if advice.questions_generated:
        out.print(GENERATED_QUESTIONS_WARNING, style="yellow", markup=False)
