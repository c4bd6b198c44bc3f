"""The commands on entity resolution: split, join, resolve."""

from typing import Annotated

import typer
from rich.markup import escape

from clew.cli.common import CommandContext, command, out
from clew.entities.editor import EntityExplanation

_SHOWN_PAIRS = 20


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    for one in (split, join, resolve):
        app.command()(one)


@command
async def split(
    ctx: CommandContext,
    name: Annotated[str, typer.Argument(help="An entity whose names were merged.")],
    other: Annotated[str | None, typer.Option("--name", help="Split off only this name.")] = None,
    document: Annotated[
        list[str] | None,
        typer.Option("--document", help="Split off the mentions in this document."),
    ] = None,
) -> None:
    """Split names that were merged into one entity; they are not merged again."""
    async with ctx.open_kb_to_edit() as base:
        counts = await base.identity.split(name, other=other, documents=document or [])
    ctx.show(
        {"entities": counts.entities, "generation": counts.generation},
        lambda: out.print(f"split; now {counts.entities} entities", markup=False),
    )


@command
async def join(
    ctx: CommandContext,
    one: Annotated[str, typer.Argument(help="A name.")],
    other: Annotated[str, typer.Argument(help="Another name of the same entity.")],
) -> None:
    """Merge two names into one entity; `clew split` undoes it."""
    async with ctx.open_kb_to_edit() as base:
        counts = await base.identity.merge(one, other)
    ctx.show(
        {"entities": counts.entities, "generation": counts.generation},
        lambda: out.print(f"merged; now {counts.entities} entities", markup=False),
    )


@command
async def resolve(
    ctx: CommandContext,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of pairs.")] = 200,
    ask: Annotated[
        bool, typer.Option("--ask/--list", help="Ask the model, or only list the pairs.")
    ] = False,
) -> None:
    """List similar names that are still separate; with --ask a model decides whether to merge."""
    async with ctx.open_kb_to_edit() as base:
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
                f"{len(found.pairs)} similar pairs; `clew join A B` merges two names, "
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


def print_merges(entities: list[EntityExplanation]) -> None:
    """Print which names were merged into each entity, and why."""
    for one in entities:
        out.print(f"[bold]{escape(one.entity.name)}[/bold]  {len(one.names)} names")
        for merge in one.merges:
            out.print(
                f"  {escape(merge.name)} = {escape(merge.into)}: {merge.because} "
                f"({merge.score:.2f})"
            )
        for namesake in one.namesakes:
            out.print(f"  separate entity with the same name: {escape(namesake)}")
        if not one.merges and not one.namesakes:
            out.print("  nothing was merged into it", style="dim")
