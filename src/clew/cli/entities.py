"""The commands on entity resolution: split, join, resolve."""

from typing import Annotated

import typer
from rich.markup import escape

from clew.cli.common import (
    CommandContext,
    DebugOption,
    JsonOption,
    KbOption,
    load_context,
    out,
    run,
)
from clew.entities.editor import EntityExplanation

_SHOWN_PAIRS = 20


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    for command in (split, join, resolve):
        app.command()(command)


def split(
    name: Annotated[str, typer.Argument(help="An entity whose names were merged.")],
    other: Annotated[
        str | None, typer.Option("--name", help="Take out only this one of its names.")
    ] = None,
    document: Annotated[
        list[str] | None,
        typer.Option("--document", help="Set apart what this document says of it."),
    ] = None,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Take apart what was merged into one entity; it stays apart."""
    run(lambda: _split_entity(load_context(kb, as_json), name, other, document or []), debug)


async def _split_entity(
    ctx: CommandContext, name: str, other: str | None, documents: list[str]
) -> None:
    async with ctx.open_kb(embed=False) as base:
        counts = await base.identity.split(name, other=other, documents=documents)
    ctx.show(
        {"entities": counts.entities, "generation": counts.generation},
        lambda: out.print(f"set apart; now {counts.entities} entities", markup=False),
    )


def join(
    one: Annotated[str, typer.Argument(help="A name.")],
    other: Annotated[str, typer.Argument(help="Another name of the same thing.")],
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Make two names one entity; `clew split` takes it back."""
    run(lambda: _join_entities(load_context(kb, as_json), one, other), debug)


async def _join_entities(ctx: CommandContext, one: str, other: str) -> None:
    async with ctx.open_kb(embed=False) as base:
        counts = await base.identity.merge(one, other)
    ctx.show(
        {"entities": counts.entities, "generation": counts.generation},
        lambda: out.print(f"joined; now {counts.entities} entities", markup=False),
    )


def resolve(
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many pairs.")] = 200,
    ask: Annotated[
        bool, typer.Option("--ask/--list", help="Ask the model, or only list the pairs.")
    ] = False,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List names that lie close but are still two; with --ask a model decides on them."""
    run(lambda: _resolve_entities(load_context(kb, as_json), limit, ask), debug)


async def _resolve_entities(ctx: CommandContext, limit: int, ask: bool) -> None:
    async with ctx.open_kb(embed=False) as base:
        chat = base.models.chat("extract") if ask else None
        found = await base.identity.review_close_names(chat, limit)
        await base.models.record_spending()
    same = sum(decision.same for decision in found.decisions)

    def people() -> None:
        for one, other, cosine in found.pairs[:_SHOWN_PAIRS]:
            out.print(f"  {cosine:.2f}  {escape(one.name)}  |  {escape(other.name)}")
        if len(found.pairs) > _SHOWN_PAIRS:
            out.print(f"  … and {len(found.pairs) - _SHOWN_PAIRS} more (all of them with --json)")
        if ask:
            out.print(
                f"{same} of {len(found.pairs)} pairs are the same, "
                f"{len(found.decisions) - same} are not, {found.failed} got no answer",
                markup=False,
            )
        else:
            out.print(
                f"{len(found.pairs)} pairs lie close; `clew join A B` makes one of two, "
                "`clew resolve --ask` lets the model decide",
                markup=False,
            )

    ctx.show(
        {
            "pairs": [
                {"one": a.name, "other": b.name, "cosine": round(c, 4)} for a, b, c in found.pairs
            ],
            "same": same,
            "different": len(found.decisions) - same,
            "failed": found.failed,
        },
        people,
    )


def print_merges(things: list[EntityExplanation]) -> None:
    """Print which names were merged into each entity, and why."""
    for thing in things:
        out.print(f"[bold]{escape(thing.entity.name)}[/bold]  {len(thing.names)} names")
        for merge in thing.merges:
            out.print(
                f"  {escape(merge.name)} = {escape(merge.into)}: {merge.because} "
                f"({merge.score:.2f})"
            )
        for namesake in thing.namesakes:
            out.print(f"  kept apart from a namesake: {escape(namesake)}")
        if not thing.merges and not thing.namesakes:
            out.print("  one name, one thing: nothing was merged", style="dim")
