"""The commands that make evaluation data (dataset, anonymise, make-questions), and advise."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from clew.cli.bars import progress
from clew.cli.door import AsJson, Debug, Door, Kb, enter, err, out, run
from clew.cli.measuring import Answers, Seed, listed
from clew.cli.tables import whole_table
from clew.errors import ConfigError
from clew.evaluate.advise import CAUTION, DEFAULT, Advice, Budget, Trial, advise
from clew.evaluate.anonymise import Anonymised, anonymise, restore
from clew.evaluate.datasets import QUESTIONS, load_dataset
from clew.evaluate.loaders import LOADERS, Taken, convert
from clew.evaluate.questions import KINDS, Questions, make_questions
from clew.evaluate.report.text import table_rows

Into = Annotated[Path, typer.Option("--out", help="The folder to write.")]


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
    into: Into,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")] = None,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Turn a published data set into a folder that `clew eval` reads."""

    async def work() -> None:
        ctx = enter(kb, as_json)
        taken = convert(form, paths, into, limit)
        ctx.show(taken, lambda: _tell_taken(taken))

    run(work, debug)


def _tell_taken(taken: Taken) -> None:
    out.print(
        f"{taken.questions} questions, {taken.passages} passages in {taken.folder}", markup=False
    )
    for graph in taken.graphs:
        out.print(f"graph: {graph} (`clew import` takes it in)", markup=False)
    _tell_problems(taken.problems)


def _tell_problems(problems: Sequence[str]) -> None:
    for problem in problems[:5]:
        err.print(f"  {problem}", style="yellow", markup=False)
    if len(problems) > 5:
        err.print(f"  … {len(problems)} problems in all; --json lists them", style="yellow")


def anonymise_(
    folder: Annotated[Path, typer.Argument(help="A folder with corpus.jsonl and questions.jsonl.")],
    into: Into,
    back: Annotated[
        bool, typer.Option("--restore", help="Undo: put the names back by the key file.")
    ] = False,
    seed: Seed = 0,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Replace every name by a mark, so that a model cannot answer from memory."""

    async def work() -> None:
        ctx = enter(kb, as_json)
        if back:
            rows = restore(folder, into)
            ctx.show({"rows": rows, "folder": into}, lambda: out.print(f"{rows} rows restored"))
            return
        done = await anonymise(folder, into, seed)
        ctx.show(done, lambda: _tell_anonymised(done))

    run(work, debug)


def _tell_anonymised(done: Anonymised) -> None:
    out.print(
        f"{done.names} names in {done.passages} passages and {done.questions} questions replaced; "
        f"{done.choice} multiple-choice and {done.reversion} reversion tasks"
    )
    if done.left:
        err.print(f"  {done.left} questions hold no name and are as they were", style="yellow")
    _tell_problems(done.problems)
    out.print(f"written: {done.folder}; key.json leads back, keep it apart", markup=False)


def make_questions_(
    into: Into,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many.")] = 100,
    kinds: Annotated[
        str, typer.Option(help=f"Kinds, separated by commas: {', '.join(KINDS)}.")
    ] = ",".join(KINDS[:4]),
    word: Annotated[
        bool, typer.Option("--word", help="Let the model word them as a person would.")
    ] = False,
    seed: Seed = 0,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make multi-hop questions with gold evidence from your own knowledge base."""

    async def work() -> None:
        ctx = enter(kb, as_json)
        async with ctx.kb(embed=False) as base:
            chat = base.models.chat("plan") if word else None
            made = await make_questions(base, count, kinds=listed(kinds), seed=seed, chat=chat)
        _write(into, made)
        payload = {"folder": into, "questions": len(made.rows), "stiff": made.stiff}
        ctx.show(payload, lambda: _tell_made(into, made, count))

    run(work, debug)


def _write(folder: Path, made: Questions) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in made.rows]
    (folder / QUESTIONS).write_text("".join(lines), encoding="utf-8")


def _tell_made(folder: Path, made: Questions, count: int) -> None:
    for row in made.rows[:3]:
        out.print(f"{row['type']}: {row['question']}", markup=False)
        out.print(f"  → {row.get('answer', '(to be refused)')}", style="dim", markup=False)
    if len(made.rows) < count:
        err.print(f"  only {len(made.rows)}: the graph has no more paths", style="yellow")
    if made.stiff:
        err.print(f"  {made.stiff} kept the template's wording", style="yellow")
    out.print(f"written: {folder / QUESTIONS} ({len(made.rows)} questions)", markup=False)


def advise_(
    folder: Annotated[
        Path | None, typer.Argument(help="Your questions; without them some are made.")
    ] = None,
    recipe: Annotated[str, typer.Option(help="Recipes to try.")] = ",".join(DEFAULT),
    ms: Annotated[
        float | None, typer.Option("--ms", min=0, help="Budget: milliseconds a question (p95).")
    ] = None,
    money: Annotated[
        float | None, typer.Option("--money", min=0, help="Budget: money for 1,000 questions.")
    ] = None,
    sample: Annotated[int, typer.Option(min=5, help="Questions to try on.")] = 50,
    answers: Answers = False,
    seed: Seed = 0,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Try recipes on your own documents and recommend one for your budget."""
    budget, how = Budget(ms, money), (sample, answers, seed)
    run(lambda: _advise(enter(kb, as_json), folder, recipe, budget, how), debug)


async def _advise(
    ctx: Door, folder: Path | None, recipe: str, budget: Budget, how: tuple[int, bool, int]
) -> None:
    sample, answers, seed = how
    dataset = load_dataset(folder) if folder else None
    questions = dataset.questions if dataset else ()
    if dataset is not None and not questions:
        raise ConfigError(f"{folder} holds no question; leave it out and some are made")
    async with ctx.kb() as base:
        with progress(ctx.json) as tell:
            trial = Trial(listed(recipe), sample, seed, answers)
            advice = await advise(base, trial, questions, budget, tell)
    if dataset is not None:
        problems = (*advice.problems, *dataset.problems)
        advice = replace(advice, problems=problems, unread=dataset.unread)
    ctx.show(advice.told(), lambda: _tell_advice(advice))


def _tell_advice(advice: Advice) -> None:
    _tell_problems(advice.problems)
    made = "made from your documents" if advice.made else "of yours"
    unread = f", {advice.unread} rows could not be read" if advice.unread else ""
    out.print(f"{advice.questions} questions {made}{unread}")
    out.print(whole_table(*table_rows(advice.comparison)))
    for name, why in advice.left_out.items():
        err.print(f"  {name} left out: {why}", style="yellow", markup=False)
    out.print(f"\n[bold]{escape(advice.recipe)}[/bold]: {escape(advice.reason)}")
    if advice.made:
        out.print(CAUTION, style="yellow", markup=False)
