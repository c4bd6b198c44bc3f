"""The calibrate command: sets the relevance threshold below which questions are refused."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from clew.agents.gate import UNCALIBRATED, Threshold, calibrated, keep_threshold, threshold
from clew.cli.bars import progress
from clew.cli.door import AsJson, Debug, Door, Kb, enter, out, plain, read_text, run
from clew.errors import InputError
from clew.recipes import gated

_FEW = 3


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(calibrate)


def calibrate(
    good: Annotated[Path, typer.Argument(help="Questions the documents answer, one per line.")],
    bad: Annotated[Path, typer.Argument(help="Questions they do not answer, one per line.")],
    recipe: Annotated[
        str | None,
        typer.Option(help="The recipe whose gate is set, such as rograg+naive; rograg if left."),
    ] = None,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Find the relevance below which `rograg` refuses in reject mode; no other recipe reads it."""
    run(lambda: _calibrate(enter(kb, as_json), good, bad, recipe), debug)


async def _calibrate(ctx: Door, good: Path, bad: Path, recipe: str | None) -> None:
    question_sets = [_questions(good), _questions(bad)]
    name = recipe or gated(ctx.settings.recipe)
    async with ctx.kb() as base:
        with progress(ctx.json) as tell:
            total = sum(map(len, question_sets))
            scores: list[list[float]] = [[], []]
            for kind, questions in enumerate(question_sets):
                for question in questions:
                    scores[kind].append((await base.relevance(question, recipe=name)).score)
                    tell("scoring", sum(map(len, scores)), total)
        result = calibrated(*scores)
        if result.balance <= 0:
            raise InputError(_inseparable(good, bad, scores))
        stored = await threshold(base.store)
        before = UNCALIBRATED if stored is None else stored
        await keep_threshold(base.store, result.value)
    ctx.show(
        {**plain(result), "before": before, "recipe": name},
        lambda: _tell(result, name, f"{before:.3f}" + (" by default" if stored is None else "")),
    )


def _inseparable(good: Path, bad: Path, scores: list[list[float]]) -> str:
    swapped = calibrated(*reversed(scores)).balance > 0
    way_out = "are the two files swapped?" if swapped else "give questions that differ more"
    return (
        f"relevance does not part the questions of {good} from those of {bad}: no threshold is "
        f"better than refusing all or none, so nothing was kept; {way_out}"
    )


def _tell(found: Threshold, recipe: str, before: str) -> None:
    out.print(
        f"threshold {found.value:.3f} for {escape(recipe)} in reject mode (was {before}): "
        f"{found.refused_good} of {found.good} good questions would be refused, "
        f"{found.passed_bad} of {found.bad} bad ones let through"
    )


def _questions(file: Path) -> list[str]:
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
    if len(found) < _FEW:
        raise InputError(f"{file} holds {len(found)} questions; {_FEW} are the least that tell")
    return found
