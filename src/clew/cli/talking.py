"""The chat command, the history file, and streamed output of steps and answers."""

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
_DEEP = 2  # deeper steps are shown by --trace only
_TURNS = 20  # turns of a conversation that are passed on


@dataclass(frozen=True)
class Wish:
    """Options of `clew ask`: how a question is answered and shown."""

    recipe: str | None = None
    mode: Mode = "open"
    k: int | None = None
    trace: bool = False
    stream: bool = False
    limits: Limits = UNLIMITED


async def asked(
    base: "KnowledgeBase", ctx: Door, question: str, wish: Wish, turns: Sequence[Turn]
) -> Answer:
    """Ask a question, streaming steps and answer pieces if wanted."""
    printer = Teller() if wish.stream and not ctx.json else None
    try:
        answer = await base.ask(
            question,
            recipe=wish.recipe,
            mode=wish.mode,
            k=wish.k,
            manner=Manner(wish.limits, printer, turns),
        )
    finally:
        if printer is not None:
            printer.rest()
    if printer is not None:
        printer.turn_to_the_answer()
    return answer


@dataclass(eq=False)
class Teller:
    """Prints steps on stderr, so that piped output is answers only, and pieces on stdout."""

    _midway: bool = False
    _drafted: bool = False

    def __call__(self, event: Event, /) -> None:
        """Print an event, unless it is nested too deeply."""
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
        """End the line on which a draft is being written."""
        if self._midway:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._midway = False

    def turn_to_the_answer(self) -> None:
        """Print the heading that separates the draft from the checked answer."""
        if self._drafted:
            out.print("\n[dim]checked against the documents:[/dim]")
        else:
            err.print()


def read_history(file: Path) -> list[Turn]:
    """Read earlier turns from a JSON lines file; a missing file is an empty history."""
    _check_place(file)
    if not file.exists():
        return []
    turns = []
    # Not splitlines: JSON strings may contain U+2028 and the like.
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
    """Raise before a question is asked if the history could not be written."""
    if file.is_dir():
        raise InputError(f"{file} is a folder; name a file for the history")
    if file.exists() and not (file.is_file() and os.access(file, os.W_OK)):
        raise InputError(f"{file} may not be written to; name another file for the history")
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent} for the history; make it first")


def continue_history(file: Path, turn: Turn) -> None:
    """Append a turn to the history file."""
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
    """Register this module's commands."""
    app.command()(chat)


def chat(
    recipe: Annotated[str | None, typer.Option(help="The method.")] = None,
    mode: AnswerMode = "open",
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Talk with the knowledge base; an empty line ends it. With --json the answers come last."""
    args = Wish(recipe, mode, stream=sys.stdout.isatty())
    run(lambda: _chat(enter(kb, as_json), args), debug)


async def _chat(ctx: Door, args: Wish) -> None:
    answers: list[Answer] = []
    async with ctx.filled_kb() as base:
        while question := _next_question(silent=ctx.json):
            turns = [Turn(one.question, one.answer) for one in answers[-_TURNS:]]
            # As typed: the answer's question may be a rewritten form.
            answer = replace(await asked(base, ctx, question, args, turns), question=question)
            answers.append(answer)
            if not ctx.json:
                tell_answer(answer, trace=False)
                out.print()
    if ctx.json:
        ctx.show([answer_json(one) for one in answers], lambda: None)


def _next_question(silent: bool) -> str:
    """Read a line from the terminal or a pipe; "" at its end."""
    if sys.stdin.isatty() and not silent:
        out.print("[bold]?[/bold] ", end="")
    return valid_text(sys.stdin.readline()).strip()
