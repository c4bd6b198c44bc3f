"""Conversations: `clew chat`, the history file, and telling people what happens meanwhile."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape

from clew.agents.answer import Answer, Mode
from clew.agents.ask import Manner
from clew.agents.converse import Turn
from clew.cli.door import Debug, Door, Kb, enter, err, out, run
from clew.context import Began, Ended, Event, Said
from clew.errors import InputError
from clew.llm.budget import UNLIMITED, Limits

if TYPE_CHECKING:
    from clew.engine import KnowledgeBase

AnswerMode = Annotated[
    Literal["open", "reject"], typer.Option(help="reject: refuse when evidence is missing.")
]
_DEEP = 2  # steps within steps within steps are for --trace
_TURNS = 20  # of a conversation that are kept in mind


@dataclass(frozen=True)
class Wish:
    """How a question shall be answered and told."""

    recipe: str | None = None
    mode: Mode = "open"
    k: int | None = None
    trace: bool = False
    stream: bool = False
    limits: Limits = UNLIMITED


async def asked(
    base: "KnowledgeBase", door: Door, question: str, wish: Wish, turns: Sequence[Turn]
) -> Answer:
    """Ask, telling steps and pieces on the way where that is wanted."""
    tell = _tell if wish.stream and not door.json else None
    return await base.ask(
        question,
        recipe=wish.recipe,
        mode=wish.mode,
        k=wish.k,
        manner=Manner(wish.limits, tell, turns),
    )


def _tell(event: Event) -> None:
    """Steps go to stderr, so that what is piped on is the answer alone."""
    match event:
        case Began(step, given, depth) if depth < _DEEP:
            err.print(f"[dim]{'  ' * depth}{escape(step[:60])} {escape(given[:100])}[/dim]")
        case Ended(step, depth) if depth < _DEEP and step.output:
            err.print(f"[dim]{'  ' * depth}→ {escape(step.output[:120])}[/dim]")
        case Said(text):
            sys.stdout.write(text)
            sys.stdout.flush()
        case _:
            pass


def read_history(file: Path) -> list[Turn]:
    """Earlier turns from a file of JSON lines; a file that is not there is an empty history."""
    if not file.exists():
        return []
    turns = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            turns.append(Turn(str(row["question"]), str(row.get("answer", ""))))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(
                f"{file}:{number} is no turn of a conversation; "
                'write {"question": "…", "answer": "…"} on each line'
            ) from error
    return turns


def write_history(file: Path, turns: Sequence[Turn]) -> None:
    """Keep the conversation for the next question."""
    rows = [{"question": turn.question, "answer": turn.answer} for turn in turns]
    file.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )


def register(app: typer.Typer) -> None:
    """Add this room's commands."""
    app.command()(chat)


def chat(
    recipe: Annotated[str | None, typer.Option(help="The method.")] = None,
    mode: AnswerMode = "open",
    kb: Kb = None,
    debug: Debug = False,
) -> None:
    """Talk with the knowledge base; an empty line ends it."""
    wish = Wish(recipe, mode, stream=sys.stdout.isatty())
    run(lambda: _chat(enter(kb), wish), debug)


async def _chat(door: Door, wish: Wish) -> None:
    from clew.cli.asking import tell_answer  # it shows answers; here they are only asked for

    turns: list[Turn] = []
    async with door.kb() as base:
        while question := _next_question():
            answer = await asked(base, door, question, wish, turns[-_TURNS:])
            tell_answer(answer, trace=False, told=wish.stream)
            out.print()
            turns.append(Turn(question, answer.answer))
            wish = replace(wish)


def _next_question() -> str:
    """A line from the terminal or a pipe; empty at its end."""
    if sys.stdin.isatty():
        out.print("[bold]?[/bold] ", end="")
    return sys.stdin.readline().strip()
