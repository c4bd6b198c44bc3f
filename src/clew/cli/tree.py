"""The tree command: prints the community tree, rebuilds it, or has a model describe it."""

from typing import Annotated

import typer
from rich.markup import escape
from rich.tree import Tree

from clew.cli.bars import show_progress
from clew.cli.door import CommandContext, DebugOption, JsonOption, KbOption, load_context, out, run
from clew.cli.tracing import truncate_words
from clew.graph.forest import TREES
from clew.tree.outline import (
    ATTRIBUTE,
    COMMUNITY,
    Branch,
    Keyword,
    Outline,
    OutlineOptions,
    read_outline,
)
from clew.tree.room import TreeReport

_SUMMARY_LENGTH = 160


def register_tree(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(tree)


def tree(
    by: Annotated[
        str | None, typer.Option(help=f"Which tree: {', '.join(TREES)}.", show_default="dual")
    ] = None,
    level: Annotated[
        int | None, typer.Option(min=0, help="Open communities down to this level; 0 is coarsest.")
    ] = None,
    depth: Annotated[
        int,
        typer.Option(
            min=COMMUNITY, max=ATTRIBUTE, help="1 communities, 2 keywords, 3 facts, 4 attributes."
        ),
    ] = 2,
    most: Annotated[int, typer.Option(min=0, help="Branches shown of each; 0 for all.")] = 10,
    grow: Annotated[bool, typer.Option("--grow", help="Grow the tree afresh.")] = False,
    describe: Annotated[
        bool, typer.Option("--describe", help="Let the model write names and summaries.")
    ] = False,
    kb: KbOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the knowledge tree: communities, their keywords, facts and attributes."""
    if grow or describe:
        run(lambda: _grow_tree(load_context(kb, as_json), by, grow, describe), debug)
    else:
        run(
            lambda: _show_tree(load_context(kb, as_json), by, OutlineOptions(level, depth, most)),
            debug,
        )


async def _grow_tree(ctx: CommandContext, by: str | None, grow: bool, describe: bool) -> None:
    async with ctx.open_kb() as base:
        with show_progress(ctx.json) as tell:
            trees = base.builder.make_tree_manager(tell)
            result = await trees.build([by or TREES[0]]) if grow else None
            if describe:
                result = await trees.describe()
        await base.models.record_spending()
    assert result is not None
    done = result
    ctx.show(done, lambda: _print_grown(done))


def _print_grown(grown: TreeReport) -> None:
    fresh = {name: figures for name, figures in grown.trees.items() if "seconds" in figures}
    for name, figures in (fresh or grown.trees).items():
        levels = " + ".join(str(count) for count in figures.get("levels", [])) or "nothing"
        seconds = f" in {figures['seconds']:.1f} s" if "seconds" in figures else ""
        out.print(f"{name}: {figures.get('communities', 0)} communities ({levels}){seconds}")
    of_all = f"texts of all {len(grown.trees)} trees: " if len(grown.trees) > 1 else ""
    out.print(
        f"{of_all}{grown.written} described by the model, {grown.quoted} quoted, "
        f"{grown.kept} kept as told"
    )
    if grown.lost:
        out.print(
            f"{grown.lost} communities the model gave nothing usable for; they are quoted",
            style="yellow",
        )


async def _show_tree(ctx: CommandContext, by: str | None, opening: OutlineOptions) -> None:
    async with ctx.open_kb(embed=False) as base, base.store.snapshot() as snapshot:
        shown = await read_outline(snapshot, base.store, by, opening)
    ctx.show(shown, lambda: _print_outline(shown))


def _print_outline(found: Outline) -> None:
    levels = " + ".join(str(count) for count in found.levels)
    root = Tree(f"[bold]{found.tree}[/bold]: {found.communities} communities ({levels})")
    for branch in found.branches:
        _add_branch(root, branch)
    tops = found.levels[0] if found.levels else 0
    if tops > len(found.branches):
        root.add(f"[dim]… and {tops - len(found.branches)} more (--most 0 for all)[/dim]")
    out.print(root)


def _add_branch(node: Tree, branch: Branch) -> None:
    here = node.add(f"[bold]{escape(branch.name)}[/bold] [dim]{branch.size} members[/dim]")
    if branch.summary:
        here.add(f"[italic]{escape(truncate_words(branch.summary, _SUMMARY_LENGTH))}[/italic]")
    for child in branch.below:
        _add_branch(here, child)
    for keyword in branch.keywords:
        _add_keyword(here, keyword)


def _add_keyword(node: Tree, keyword: Keyword) -> None:
    kind = f" ({keyword.type})" if keyword.type else ""
    here = node.add(f"{escape(keyword.name)}[dim]{escape(kind)} {keyword.score:.2f}[/dim]")
    for fact in keyword.facts:
        here.add(f"• {escape(' '.join(fact.split()))}")
    for name, value in keyword.attributes.items():
        here.add(f"{escape(name)} = {escape(value)}")
