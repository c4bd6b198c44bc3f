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

from clew.agents.ask import AskOptions
from clew.agents.base import Answer, Mode
from clew.agents.conversation import ConversationTurn
from clew.cli.common import (
    CommandContext,
    command,
    err,
    make_printable,
    out,
    read_text,
    to_valid_text,
)
from clew.cli.progress import show_waiting
from clew.cli.render import describe_model_error, print_answer, shorten
from clew.context import AnswerDelta, Event, StepEnded, StepStarted
from clew.errors import InputError
from clew.json_output import answer_json
from clew.layout import Modality
from clew.llm.budget import UNLIMITED, UsageLimits
from clew.llm.limits import tell_waits

if TYPE_CHECKING:
    from clew.engine import KnowledgeBase

AnswerMode = Annotated[
    Literal["open", "reject"], typer.Option(help="reject: refuse when evidence is missing.")
]
_MAX_SHOWN_DEPTH = 2  # deeper steps are shown by --trace only
_HISTORY_TURNS = 20  # turns of a conversation that are passed on


@dataclass(frozen=True)
class AskArgs:
    """Options of `clew ask`: how a question is answered and shown."""

    recipe: str | None = None
    mode: Mode = "open"
    k: int | None = None
    trace: bool = False
    stream: bool = False
    limits: UsageLimits = UNLIMITED
    evidence: Modality = "all"
    show_prompt: bool = False
    confidence: float | None = None


async def ask_question(
    base: "KnowledgeBase",
    ctx: CommandContext,
    question: str,
    args: AskArgs,
    turns: Sequence[ConversationTurn],
) -> Answer:
    """Ask a question, streaming steps and answer pieces if wanted."""
    printer = StreamPrinter() if args.stream and not ctx.json else None
    try:
        with show_waiting(ctx.json, live=printer is None) as hear:
            manner = AskOptions(
                *(args.limits, printer, turns, args.evidence, args.show_prompt),
                confidence=args.confidence,
            )
            work = base.ask(question, recipe=args.recipe, mode=args.mode, k=args.k, manner=manner)
            answer = await tell_waits(hear, work)
    finally:
        if printer is not None:
            printer.end_line()
    if printer is not None:
        printer.begin_answer()
    return answer


@dataclass(eq=False)
class StreamPrinter:
    """Prints steps on stderr, so that piped output is answers only, and pieces on stdout."""

    _line_open: bool = False
    _has_draft: bool = False

    def __call__(self, event: Event, /) -> None:
        """Print an event, unless it is nested too deeply."""
        match event:
            case StepStarted(step, given, depth) if depth < _MAX_SHOWN_DEPTH:
                self._print_step(depth, f"{shorten(step, 60)} {shorten(given, 100)}")
            case StepEnded(step, depth) if depth < _MAX_SHOWN_DEPTH and step.output:
                self._print_step(depth, f"→ {shorten(step.output)}")
            case AnswerDelta(text):
                self._print_piece(text)
            case _:
                pass

    def _print_step(self, depth: int, line: str) -> None:
        self.end_line()
        err.print(f"[dim]{'  ' * depth}{escape(line)}[/dim]")

    def _print_piece(self, text: str) -> None:
        if not self._line_open:
            out.print("[dim]draft, not checked yet:[/dim]")
        self._line_open = self._has_draft = True
        sys.stdout.write(make_printable(text))
        sys.stdout.flush()

    def end_line(self) -> None:
        """End the line on which a draft is being written."""
        if self._line_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._line_open = False

    def begin_answer(self) -> None:
        """Print the heading that separates the draft from the checked answer."""
        if self._has_draft:
            out.print("\n[dim]checked against the documents:[/dim]")
        else:
            err.print()


def read_history(file: Path) -> list[ConversationTurn]:
    """Read earlier turns from a JSON lines file; a missing file is an empty history."""
    _check_history_file(file)
    if not file.exists():
        return []
    turns = []
    # Not splitlines: JSON strings may contain U+2028 and the like.
    for number, line in enumerate(read_text(file).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            turns.append(ConversationTurn(str(row["question"]), str(row.get("answer", ""))))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(
                f"{file}:{number} is not a turn of a conversation; "
                'write {"question": "…", "answer": "…"} on each line'
            ) from error
    return turns


def _check_history_file(file: Path) -> None:
    """Raise before a question is asked if the history could not be written."""
    if file.is_dir():
        raise InputError(f"{file} is a folder; name a file for the history")
    if file.exists() and not (file.is_file() and os.access(file, os.W_OK)):
        raise InputError(f"{file} is not writable; name another file for the history")
    if not file.parent.is_dir():
        raise InputError(f"the folder {file.parent} of the history does not exist; create it first")


def append_history(file: Path, turn: ConversationTurn) -> None:
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
        raise InputError(f"cannot write the answer to the history {file}: {why}") from error


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(chat)


@command
async def chat(
    ctx: CommandContext,
    recipe: Annotated[
        str | None, typer.Option(help="The recipe; `clew recipes` lists them.")
    ] = None,
    mode: AnswerMode = "open",
) -> None:
    """Ask questions in a conversation; an empty line ends it. --json prints answers at the end."""
    args = AskArgs(recipe, mode, stream=sys.stdout.isatty())
    answers: list[Answer] = []
    async with ctx.open_nonempty_kb() as base:
        while question := _read_question(silent=ctx.json):
            turns = [
                ConversationTurn(one.question, one.answer) for one in answers[-_HISTORY_TURNS:]
            ]
            # As typed: the answer's question may be a rewritten form.
            answer = replace(
                await ask_question(base, ctx, question, args, turns), question=question
            )
            answers.append(answer)
            if not ctx.json:
                print_answer(answer, trace=False)
                if answer.model_error:
                    err.print(describe_model_error(answer), style="red", markup=False)
                out.print()
    if ctx.json:
        ctx.show([answer_json(one) for one in answers], lambda: None)
    if any(one.model_error for one in answers):
        raise typer.Exit(1)


def _read_question(silent: bool) -> str:
    """Read a line from the terminal or a pipe; "" at its end."""
    if sys.stdin.isatty() and not silent:
        out.print("[bold]?[/bold] ", end="")
    return to_valid_text(sys.stdin.readline()).strip()
