"""Commands that question a knowledge base: search, ask, recipes."""

from typing import Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from clew.agents.answer import Answer, Results
from clew.cli.door import AsJson, Debug, Door, Kb, enter, out, plain, run
from clew.context import TraceStep
from clew.recipes import RECIPES, recipe_named
from clew.recipes.table import rows_of
from clew.types import Passage, Route

Question = Annotated[str, typer.Argument(help="A question in plain words.")]
Recipe = Annotated[str | None, typer.Option(help="The method; `clew recipes` lists them.")]
HowMany = Annotated[int, typer.Option("-k", help="How many passages at most.")]
ShowTrace = Annotated[bool, typer.Option("--trace", help="Show every step that led here.")]

_SHOWN_TEXT = 300


def register(app: typer.Typer) -> None:
    """Add this room's commands."""
    for command in (search, ask, recipes):
        app.command()(command)


def search(
    question: Question,
    recipe: Recipe = None,
    k: HowMany = 5,
    trace: ShowTrace = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Find evidence for a question; needs no model."""
    run(lambda: _search(enter(kb, as_json), question, recipe, k, trace), debug)


async def _search(door: Door, question: str, recipe: str | None, k: int, trace: bool) -> None:
    async with door.kb() as base:
        found = await base.search(question, recipe=recipe, k=k)
    door.show(search_json(found), lambda: _tell_found(found, trace))


def ask(
    question: Question,
    recipe: Recipe = None,
    mode: Annotated[
        Literal["open", "reject"], typer.Option(help="reject: refuse when evidence is missing.")
    ] = "open",
    k: HowMany = 5,
    trace: ShowTrace = False,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Answer a question from the knowledge base, every sentence cited."""
    run(lambda: _ask(enter(kb, as_json), question, recipe, (mode, k, trace)), debug)


async def _ask(
    door: Door,
    question: str,
    recipe: str | None,
    how: tuple[Literal["open", "reject"], int, bool],
) -> None:
    mode, k, trace = how
    async with door.kb() as base:
        answer = await base.ask(question, recipe=recipe, mode=mode, k=k)
    door.show(answer_json(answer), lambda: tell_answer(answer, trace))


def recipes(
    name: Annotated[str | None, typer.Argument(help="Show this recipe's steps.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List every recipe, or show one as a table of steps and numbers."""
    run(lambda: _recipes(Door(enter(None).settings, as_json), name), debug)


async def _recipes(door: Door, name: str | None) -> None:
    if name is None:
        listed = [{"name": r.name, "about": r.about, "source": r.source} for r in RECIPES.values()]
        door.show(listed, lambda: _table(("recipe", "what it does", "source"), listed))
    else:
        rows = rows_of(recipe_named(name))
        door.show(rows, lambda: _table(("step", "parameter", "value", "source"), rows))


def _table(titles: tuple[str, ...], rows: list[dict[str, str]]) -> None:
    table = Table(*titles, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row.values()))
    out.print(table)


# -- shapes for programs


def search_json(found: Results) -> dict[str, Any]:
    """The contract of `clew search --json`."""
    return {
        "question": found.question,
        "recipe": found.recipe,
        "seconds": round(found.seconds, 6),
        "usage": plain(found.usage),
        **plain(found.evidence),
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """The contract of `clew ask --json`."""
    return {
        "question": answer.question,
        "recipe": answer.recipe,
        "seconds": round(answer.seconds, 6),
        "usage": plain(answer.usage),
        "answer": answer.answer,
        "candidate": answer.candidate,
        "verdict": answer.verdict,
        "note": answer.note,
        "citations": plain(answer.citations),
        **plain(answer.evidence),
        "trace": plain(answer.trace),
    }


# -- shapes for people


def _tell_found(found: Results, trace: bool) -> None:
    for number, passage in enumerate(found.evidence.chunks, start=1):
        _tell_passage(number, passage)
    if not found.evidence.chunks:
        out.print("nothing found")
    out.print(f"[dim]{found.recipe}, {found.seconds * 1000:.0f} ms[/dim]")
    if trace:
        _tell_trace(found.trace)


def _tell_passage(number: int, passage: Passage) -> None:
    where = f"{passage.doc}:{passage.start}-{passage.end}"
    page = f" p. {passage.page}" if passage.page else ""
    title = f"[bold]{escape(passage.title)}[/bold]  " if passage.title else ""
    out.print(f"{number}. {title}[cyan]{escape(where)}{page}[/cyan] [dim]{passage.score:.3f}[/dim]")
    text = " ".join(passage.text.split())
    short = text if len(text) <= _SHOWN_TEXT else text[:_SHOWN_TEXT].rsplit(" ", 1)[0] + " …"
    out.print(f"   {escape(short)}")


def tell_answer(answer: Answer, trace: bool) -> None:
    """Print an answer with its citations and the path that led there."""
    out.print(escape(answer.answer))
    if answer.citations:
        out.print("\n[bold]Cited[/bold]")
    for number, c in enumerate(answer.citations, start=1):
        out.print(f"  \\[{number}] [cyan]{escape(c.doc)}:{c.start}-{c.end}[/cyan]")
    if answer.evidence.paths:
        out.print("\n[bold]Path[/bold]")
        for path in _longest(answer.evidence.paths)[:2]:
            _tell_path(path.entities, path.facts)
    if answer.note:
        out.print(f"\n[dim]{escape(answer.note)}[/dim]")
    if trace:
        _tell_trace(answer.trace)


def _longest(paths: tuple[Route, ...]) -> list[Route]:
    """Paths that are not the beginning of another one."""
    return [
        path
        for path in paths
        if not any(
            len(other.entities) > len(path.entities)
            and other.entities[: len(path.entities)] == path.entities
            for other in paths
        )
    ]


def _tell_path(entities: tuple[str, ...], facts: tuple[str, ...]) -> None:
    out.print(f"  [bold]{escape(entities[0])}[/bold]")
    for fact, entity in zip(facts, entities[1:], strict=False):
        out.print(f"    └ {escape(fact)}")
        out.print(f"  → [bold]{escape(entity)}[/bold]")


def _tell_trace(trace: tuple[TraceStep, ...]) -> None:
    tree = Tree("[bold]Trace[/bold]")
    for step in trace:
        node = tree.add(f"{escape(step.step)} [dim]{step.seconds * 1000:.1f} ms[/dim]")
        node.add(f"[dim]{escape(step.input)} → {escape(step.output)}[/dim]")
    out.print(tree)
