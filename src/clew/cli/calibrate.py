"""The command calibrate: refit the confidence of answers on questions with known answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from clew.agents.confidence import save_model
from clew.cli.common import CommandContext, command, out
from clew.cli.evaluate import print_problems
from clew.cli.progress import show_progress
from clew.errors import InputError
from clew.evaluate.calibrate import MIN_QUESTIONS, ConfidenceFit, refit_confidence
from clew.evaluate.datasets import Question, load_dataset
from clew.json_output import to_json_value


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
            "line; an empty answer marks a question that the documents do not answer."
        ),
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="The recipe that is asked.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Restore the shipped confidence.")] = False,
) -> None:
    """Refit the confidence of answers on your own questions, and store it in the knowledge base."""
    if reset:
        async with ctx.open_kb(embed=False) as base:
            await save_model(base.store, None)
        ctx.show({"reset": True}, lambda: out.print("the shipped confidence is used again"))
    elif questions is None:
        raise typer.BadParameter("give questions with answers (questions.jsonl), or --reset")
    else:
        await _refit(ctx, questions, recipe)


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
            await save_model(base.store, fit.model)
    shown = {key: value for key, value in to_json_value(fit).items() if key != "model"}
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
    if fit.one_sided:
        out.print(
            "add questions that the documents do not answer (`answerable: false`, or an empty "
            "answer): without them nothing shows how sure one may be where there is no answer",
            markup=False,
        )
