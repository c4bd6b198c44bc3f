"""The tree command: prints the community tree, rebuilds it, or has a model describe it."""

from typing import Annotated

import typer
from rich.markup import escape
from rich.tree import Tree

from clew.cli.bars import progress
from clew.cli.door import AsJson, Debug, Door, Kb, enter, out, run
from clew.cli.tracing import cut
from clew.graph.forest import TREES
from clew.tree.outline import ATTRIBUTE, COMMUNITY, Branch, Keyword, Opening, Outline, outline
from clew.tree.room import Grown

_SUMMARY = 160


def register(app: typer.Typer) -> None:
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
    kb: Kb = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the knowledge tree: communities, their keywords, facts and attributes."""
    if grow or describe:
        run(lambda: _grow(enter(kb, as_json), by, grow, describe), debug)
    else:
        run(lambda: _show(enter(kb, as_json), by, Opening(level, depth, most)), debug)


async def _grow(ctx: Door, by: str | None, grow: bool, describe: bool) -> None:
    async with ctx.kb() as base:
        with progress(ctx.json) as tell:
            trees = base.builder.trees(tell)
            result = await trees.grow([by or TREES[0]]) if grow else None
            if describe:
                result = await trees.describe()
        await base.models.book()
    assert result is not None
    done = result
    ctx.show(done, lambda: _tell_grown(done))


def _tell_grown(grown: Grown) -> None:
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


async def _show(ctx: Door, by: str | None, opening: Opening) -> None:
    async with ctx.kb(embed=False) as base, base.store.snapshot() as snapshot:
        shown = await outline(snapshot, base.store, by, opening)
    ctx.show(shown, lambda: _tell(shown))


def _tell(found: Outline) -> None:
    levels = " + ".join(str(count) for count in found.levels)
    root = Tree(f"[bold]{found.tree}[/bold]: {found.communities} communities ({levels})")
    for branch in found.branches:
        _add(root, branch)
    tops = found.levels[0] if found.levels else 0
    if tops > len(found.branches):
        root.add(f"[dim]… and {tops - len(found.branches)} more (--most 0 for all)[/dim]")
    out.print(root)


def _add(node: Tree, branch: Branch) -> None:
    here = node.add(f"[bold]{escape(branch.name)}[/bold] [dim]{branch.size} members[/dim]")
    if branch.summary:
        here.add(f"[italic]{escape(cut(branch.summary, _SUMMARY))}[/italic]")
    for child in branch.below:
        _add(here, child)
    for keyword in branch.keywords:
        _add_keyword(here, keyword)


def _add_keyword(node: Tree, keyword: Keyword) -> None:
    kind = f" ({keyword.type})" if keyword.type else ""
    here = node.add(f"{escape(keyword.name)}[dim]{escape(kind)} {keyword.score:.2f}[/dim]")
    for fact in keyword.facts:
        here.add(f"• {escape(' '.join(fact.split()))}")
    for name, value in keyword.attributes.items():
        here.add(f"{escape(name)} = {escape(value)}")
