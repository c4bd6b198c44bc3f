"""The command calibrate: refit the confidence, or set the threshold of the relevance gate."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from clew.agents.core.confidence import save_models
from clew.agents.relevance_gate import (
    DEFAULT_THRESHOLD,
    Threshold,
    calibrate_threshold,
    load_threshold,
    save_threshold,
)
from clew.cli.common import CommandContext, command, out, read_text
from clew.cli.evaluate import print_problems
from clew.cli.progress import show_progress
from clew.errors import InputError
from clew.evaluate.calibrate import MIN_QUESTIONS, ConfidenceFit, refit_confidence
from clew.evaluate.datasets import Question, load_dataset
from clew.json_output import to_json_value
from clew.recipes.registry import recipe_with_gate

_MIN_QUESTIONS = 3


def register(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(calibrate)


@command
async def calibrate(
    ctx: CommandContext,
    questions: Annotated[
        Path | None,
        typer.Argument(
            help="A dataset folder or questions.jsonl: an object with `question` and `answer` a "
            "line; an empty answer marks a question that the documents do not answer. With a "
            "second file: questions the documents answer, one per line."
        ),
    ] = None,
    bad: Annotated[
        Path | None,
        typer.Argument(help="Questions they do not answer: sets the threshold of rograg's gate."),
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="The recipe that is asked, or whose gate is set.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Restore the shipped confidence.")] = False,
) -> None:
    """Refit the confidence of answers on your own questions, and store it in the knowledge base."""
    if reset:
        async with ctx.open_kb(embed=False) as base:
            await save_models(base.store, {})
        ctx.show({"reset": True}, lambda: out.print("the shipped confidence is used again"))
    elif questions is None:
        raise typer.BadParameter("give questions with answers (questions.jsonl), or --reset")
    elif bad is None:
        await _refit(ctx, questions, recipe)
    else:
        await _set_gate(ctx, questions, bad, recipe)


async def _refit(ctx: CommandContext, questions: Path, recipe: str | None) -> None:
    """Ask every question, compare with its answer, and fit the confidence to that."""
    dataset = load_dataset(questions)
    if dataset.unread and len(dataset.questions) < MIN_QUESTIONS:
        more = f" (and {dataset.unread - 1} lines more)" if dataset.unread > 1 else ""
        raise InputError(f"{dataset.problems[0]}{more}; {MIN_QUESTIONS} questions are needed")
    print_problems(dataset.problems, listed=False)
    _require_different(dataset.questions)
    async with ctx.open_kb() as base:
        with show_progress(ctx.json) as report:
            fit = await refit_confidence(base, dataset.questions, recipe, report)
        stored = fit.better and not fit.one_sided
        if stored:
            await save_models(base.store, fit.models)
    shown = {key: value for key, value in to_json_value(fit).items() if key != "models"}
    ctx.show({**shown, "stored": stored}, lambda: _print_fit(fit))


def _require_different(questions: Sequence[Question]) -> None:
    """Raise an error if too few questions differ: one asked many times shows no more than once."""
    different = len({one.text for one in questions})
    if different < min(MIN_QUESTIONS, len(questions)):
        raise InputError(
            f"{different} of {len(questions)} questions differ; {MIN_QUESTIONS} are needed"
        )


def _print_fit(fit: ConfidenceFit) -> None:
    done = "refitted"
    if fit.one_sided:
        done = "not stored, since no question is without an answer: tried"
    elif not fit.better:
        done = "not stored, since an error is not less than that of the shipped confidence: tried"
    out.print(
        f"{done} on {fit.questions} answers, "
        f"{fit.right} of them right: "
        f"calibration error {fit.error_before:.3f} as shipped, {fit.error_after:.3f} refitted; "
        f"squared error {fit.loss_before:.3f} and {fit.loss_after:.3f}; "
        f"at 0.5 precision {fit.precision:.2f} for {fit.coverage:.0%} of the questions "
        f"(each judged by weights fitted without it, {fit.folds} folds)",
        markup=False,
    )
    if fit.accounts:
        out.print(
            f"{fit.accounts} answers that quote several passages (accounts and lists) were left "
            "out: their confidence says how much of the topic the quotes cover, and stays as it is",
            markup=False,
        )
    if fit.one_sided:
        out.print(
            "add questions that the documents do not answer (`answerable: false`, or an empty "
            "answer): without them nothing shows how sure one may be where there is no answer",
            markup=False,
        )


async def _set_gate(ctx: CommandContext, good: Path, bad: Path, recipe: str | None) -> None:
    """Set the relevance threshold below which `rograg` refuses in reject mode."""
    question_sets = [_read_questions(good), _read_questions(bad)]
    name = recipe or recipe_with_gate(ctx.settings.recipe, ctx.recipes)
    async with ctx.open_kb() as base:
        with show_progress(ctx.json) as report:
            total = sum(map(len, question_sets))
            scores: list[list[float]] = [[], []]
            for kind, questions in enumerate(question_sets):
                for question in questions:
                    scores[kind].append((await base.relevance(question, recipe=name)).score)
                    report("scoring", sum(map(len, scores)), total)
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
        f"relevance does not separate the questions of {good} from those of {bad}: no threshold "
        f"is better than refusing all or none, so none was stored; {way_out}"
    )


def _print_threshold(found: Threshold, recipe: str, before: str) -> None:
    out.print(
        f"threshold {found.value:.3f} for {escape(recipe)} in reject mode (was {before}): "
        f"{found.refused_good} of {found.good} good questions would be refused, "
        f"{found.passed_bad} of {found.bad} bad ones would be answered"
    )


def _read_questions(file: Path) -> list[str]:
    """Read questions, one per line, as text or as JSON objects with a `question`."""
    if not file.is_file():
        raise InputError(f"{file} is not a file; give a file with one question per line")
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
        raise InputError(f"{file} has {len(found)} questions; at least {_MIN_QUESTIONS} are needed")
    return found
