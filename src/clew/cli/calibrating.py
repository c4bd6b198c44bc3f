"""The calibrate command: sets the relevance threshold below which questions are refused."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from clew.agents.gate import (
    DEFAULT_THRESHOLD,
    Threshold,
    calibrate_threshold,
    load_threshold,
    save_threshold,
)
from clew.cli.bars import show_progress
from clew.cli.door import (
    CommandContext,
    DebugOption,
    JsonOption,
    KbOption,
    load_context,
    out,
    read_text,
    run,
    to_json_value,
)
from clew.errors import InputError
from clew.recipes import recipe_with_gate

_MIN_QUESTIONS = 3


def register_calibrate(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(calibrate)


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
