"""Conversations: `clew chat`, the history file, and telling people what happens meanwhile."""

import json
import os
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
from clew.cli.door import AsJson, Debug, Door, Kb, enter, err, out, read_text, run, valid_text
from clew.cli.shapes import answer_json
from clew.cli.telling import tell_answer
from clew.cli.tracing import brief, readable
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
    teller = Teller() if wish.stream and not door.json else None
    try:
        answer = await base.ask(
            question,
            recipe=wish.recipe,
            mode=wish.mode,
            k=wish.k,
            manner=Manner(wish.limits, teller, turns),
        )
    finally:
        if teller is not None:
            teller.rest()
    if teller is not None:
        teller.turn_to_the_answer()
    return answer


@dataclass(eq=False)
class Teller:
    """Tells steps on stderr, so that what is piped on is answers alone, and pieces as they come."""

    _midway: bool = False
    _drafted: bool = False

    def __call__(self, event: Event, /) -> None:
        """Tell what happens, if it is not too deep within."""
        match event:
            case Began(step, given, depth) if depth < _DEEP:
                self._step(depth, f"{brief(step, 60)} {brief(readable(given), 100)}")
            case Ended(step, depth) if depth < _DEEP and step.output:
                self._step(depth, f"→ {brief(step.output)}")
            case Said(text):
                self._piece(text)
            case _:
                pass

    def _step(self, depth: int, line: str) -> None:
        self.rest()
        err.print(f"[dim]{'  ' * depth}{escape(line)}[/dim]")

    def _piece(self, text: str) -> None:
        if not self._midway:
            out.print("[dim]draft, not checked yet:[/dim]")
        self._midway = self._drafted = True
        sys.stdout.write(text)
        sys.stdout.flush()

    def rest(self) -> None:
        """Leave the line that a draft is being written on."""
        if self._midway:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._midway = False

    def turn_to_the_answer(self) -> None:
        """Say that what follows is no longer the draft."""
        if self._drafted:
            out.print("\n[dim]checked against the documents:[/dim]")
        else:
            err.print()


def read_history(file: Path) -> list[Turn]:
    """Earlier turns from a file of JSON lines; a file that is not there is an empty history."""
    _check_place(file)
    if not file.exists():
        return []
    turns = []
    # Not splitlines: JSON leaves U+2028 and its like as they are within a line.
    for number, line in enumerate(read_text(file).split("\n"), start=1):
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


def _check_place(file: Path) -> None:
    """Say before anything is asked when the conversation could not be kept there."""
    if file.is_dir():
        raise InputError(f"{file} is a folder; name a file for the history")
    if file.exists() and not (file.is_file() and os.access(file, os.W_OK)):
        raise InputError(f"{file} may not be written to; name another file for the history")
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent} for the history; make it first")


def continue_history(file: Path, turn: Turn) -> None:
    """Add a turn for the next question; what stands there stays as it is."""
    row = {"question": turn.question, "answer": turn.answer}
    line = json.dumps(row, ensure_ascii=False) + "\n"
    try:
        with file.open("a+b") as history:
            if history.tell():
                history.seek(-1, os.SEEK_END)
                line = line if history.read() == b"\n" else f"\n{line}"
            history.write(line.encode("utf-8", "replace"))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"the answer is not in the history {file}: {why}") from error


def register(app: typer.Typer) -> None:
    """Add this room's commands."""
    app.command()(chat)


def chat(
    recipe: Annotated[str | None, typer.Option(help="The method.")] = None,
    mode: AnswerMode = "open",
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Talk with the knowledge base; an empty line ends it. With --json the answers come last."""
    wish = Wish(recipe, mode, stream=sys.stdout.isatty())
    run(lambda: _chat(enter(kb, as_json), wish), debug)


async def _chat(door: Door, wish: Wish) -> None:
    answers: list[Answer] = []
    async with door.filled_kb() as base:
        while question := _next_question(silent=door.json):
            turns = [Turn(one.question, one.answer) for one in answers[-_TURNS:]]
            # As it was asked: what it was taken to mean may stand in the answer's question.
            answer = replace(await asked(base, door, question, wish, turns), question=question)
            answers.append(answer)
            if not door.json:
                tell_answer(answer, trace=False)
                out.print()
    if door.json:
        door.show([answer_json(one) for one in answers], lambda: None)


def _next_question(silent: bool) -> str:
    """A line from the terminal or a pipe; empty at its end."""
    if sys.stdin.isatty() and not silent:
        out.print("[bold]?[/bold] ", end="")
    return valid_text(sys.stdin.readline()).strip()
