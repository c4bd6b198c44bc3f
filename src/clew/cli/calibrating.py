"""The command that teaches a knowledge base which questions are none of its business."""

import json
from pathlib import Path
from typing import Annotated

import typer

from clew.agents.gate import UNCALIBRATED, calibrated, keep_threshold
from clew.cli.bars import progress
from clew.cli.door import AsJson, Debug, Door, Kb, enter, out, plain, run
from clew.engine import KnowledgeBase
from clew.errors import InputError

_FEW = 3


def register(app: typer.Typer) -> None:
    """Add this room's commands."""
    app.command()(calibrate)


def calibrate(
    good: Annotated[Path, typer.Argument(help="Questions the documents answer, one per line.")],
    bad: Annotated[Path, typer.Argument(help="Questions they do not answer, one per line.")],
    recipe: Annotated[str | None, typer.Option(help="The retriever that looks them up.")] = None,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Find the relevance below which questions are refused; kept in the knowledge base."""
    run(lambda: _calibrate(enter(kb, as_json), good, bad, recipe), debug)


async def _calibrate(door: Door, good: Path, bad: Path, recipe: str | None) -> None:
    asked = [_questions(good), _questions(bad)]
    async with door.kb() as base:
        with progress(door.json) as tell:
            total = sum(map(len, asked))
            scores: list[list[float]] = [[], []]
            for kind, questions in enumerate(asked):
                for question in questions:
                    scores[kind].append(await _score(base, question, recipe))
                    tell("scoring", sum(map(len, scores)), total)
        found = calibrated(*scores)
        await keep_threshold(base.store, found.value)
    door.show(
        plain(found),
        lambda: out.print(
            f"threshold {found.value:.3f} (was {UNCALIBRATED} before any calibration): refuses "
            f"{found.recall:.0%} of {found.bad} bad questions; "
            f"{found.precision:.0%} of what it refuses is bad"
        ),
    )


async def _score(base: KnowledgeBase, question: str, recipe: str | None) -> float:
    """The relevance of one question, as the gate will see it."""
    return (await base.relevance(question, recipe=recipe)).score


def _questions(file: Path) -> list[str]:
    """One per line, or one JSON object with a `question` per line."""
    if not file.is_file():
        raise InputError(f"no file {file}; give one question per line")
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
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
