"""Commands that question a knowledge base: search, ask, recipes."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from clew.agents.answer import Answer, Results
from clew.agents.converse import Turn
from clew.cli.door import AsJson, Debug, Door, Kb, enter, out, plain, run
from clew.cli.talking import AnswerMode, Wish, asked, read_history, write_history
from clew.context import TraceStep
from clew.llm.budget import Limits
from clew.llm.roles import trained_model
from clew.recipes import RECIPES, rows_named
from clew.recipes.agents import AGENTS
from clew.recipes.table import needs_of
from clew.retrieve.step import Chain
from clew.types import Passage, Route

Question = Annotated[str, typer.Argument(help="A question in plain words.")]
Recipe = Annotated[str | None, typer.Option(help="The method; `clew recipes` lists them.")]
HowMany = Annotated[int, typer.Option("-k", help="How many passages at most.")]
ShowTrace = Annotated[bool, typer.Option("--trace", help="Show every step that led here.")]

_SHOWN_TEXT = 300
_SHOWN_REPORTS = 5


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
    mode: AnswerMode = "open",
    k: Annotated[
        int | None, typer.Option("-k", help="How many passages per look; the agent's own if left.")
    ] = None,
    trace: ShowTrace = False,
    model: Annotated[
        str | None,
        typer.Option(help="A model's name, or the --out folder of `clew train`."),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(help="A conversation as JSON lines (question, answer); it is continued."),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show steps and the answer as they come.")
    ] = False,
    max_calls: Annotated[int | None, typer.Option(help="Model calls at most.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens at most.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Seconds at most.")] = None,
    max_money: Annotated[float | None, typer.Option(help="Money at most.")] = None,
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Answer a question from the knowledge base, every sentence cited."""
    limits = Limits(max_calls, max_tokens, max_seconds, max_money)
    wish = Wish(recipe, mode, k, trace, stream, limits)
    run(lambda: _ask(_with_model(enter(kb, as_json), model), question, wish, history), debug)


def _with_model(door: Door, model: str | None) -> Door:
    if model is None:
        return door
    models = door.settings.models
    if Path(model).is_dir():
        models = trained_model(models, model)
    else:
        models = models.model_copy(update={"model": model})
    return replace(door, settings=door.settings.model_copy(update={"models": models}))


async def _ask(door: Door, question: str, wish: Wish, history: Path | None) -> None:
    turns = read_history(history) if history else []
    async with door.kb() as base:
        answer = await asked(base, door, question, wish, turns)
    if history:
        write_history(history, [*turns, Turn(question, answer.answer)])
    door.show(answer_json(answer), lambda: tell_answer(answer, wish.trace, wish.stream))


def recipes(
    name: Annotated[str | None, typer.Argument(help="Show this recipe's steps.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List every recipe, or show one as a table of steps and numbers."""
    run(lambda: _recipes(Door(enter(None).settings, as_json), name), debug)


async def _recipes(door: Door, name: str | None) -> None:
    if name is None:
        listed = [
            {
                "name": r.name,
                "kind": kind,
                "about": r.about,
                "needs": needs_of(r) if isinstance(r, Chain) else "a model",
                "source": r.source,
            }
            for kind, some in (("retriever", RECIPES), ("agent", AGENTS))
            for r in some.values()
        ]
        door.show(listed, lambda: _tell_recipes(listed))
    else:
        rows = rows_named(name)
        door.show(rows, lambda: _tell_recipe(name, rows))


def _tell_recipes(listed: list[dict[str, str]]) -> None:
    for kind, head in (
        ("retriever", "Retrievers: `clew search --recipe NAME`, and `clew ask`"),
        ("agent", "Agents: `clew ask --recipe NAME`, or NAME+RETRIEVER"),
    ):
        out.print(head, style="bold", highlight=False)
        rows = [{k: v for k, v in row.items() if k != "kind"} for row in listed]
        chosen = [row for row, full in zip(rows, listed, strict=True) if full["kind"] == kind]
        _table(("recipe", "what it does", "needs", "source"), chosen)
        out.print()
    out.print("`clew recipes NAME` shows one step by step, every number with its source")


def _tell_recipe(name: str, rows: list[dict[str, str]]) -> None:
    for one in (AGENTS.get(name.partition("+")[0]), RECIPES.get(name.rpartition("+")[2])):
        if one is not None:
            needs = needs_of(one) if isinstance(one, Chain) else "a model"
            told = f"{one.name}: {one.about}\n  source: {one.source}\n  needs: {needs}"
            out.print(escape(told), highlight=False)
    out.print()
    _table(("step", "parameter", "value", "source"), rows)


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
        "missing": answer.missing,
        "complete": answer.complete,
        "citations": plain(answer.citations),
        **plain(answer.evidence),
        "trace": plain(answer.trace),
    }


# -- shapes for people


def _tell_found(found: Results, trace: bool) -> None:
    for number, passage in enumerate(found.evidence.chunks, start=1):
        _tell_passage(number, passage)
    for report in found.evidence.communities[:_SHOWN_REPORTS]:
        summary = report.summary
        if len(summary) > _SHOWN_TEXT:
            summary = summary[:_SHOWN_TEXT].rsplit(" ", 1)[0] + " …"
        out.print(f"• [bold]{escape(report.name)}[/bold] [dim]{report.size} members[/dim]")
        out.print(f"   {escape(summary)}")
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


def tell_answer(answer: Answer, trace: bool, told: bool = False) -> None:
    """Print an answer with its citations and the path that led there.

    A streamed text was told before it was checked, so the checked one is always printed.
    """
    if told:
        out.print()
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
    _grow(tree, trace)
    out.print(tree)


def _grow(tree: Tree, steps: tuple[TraceStep, ...]) -> None:
    """One branch per step: what it was given, what it left, what it took, and what is within."""
    for step in steps:
        cost = f"{step.seconds * 1000:.0f} ms"
        if step.usage.calls or step.usage.cached_calls:
            cost += f", {step.usage.calls + step.usage.cached_calls} calls"
        given = f" {escape(_brief(step.input))}" if step.input else ""
        node = tree.add(f"[bold]{escape(_brief(step.step, 60))}[/bold]{given} [dim]{cost}[/dim]")
        if step.output:
            node.add(f"[green]→[/green] {escape(_brief(step.output, 200))}")
        _grow(node, step.steps)


def _brief(text: str, most: int = 120) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
