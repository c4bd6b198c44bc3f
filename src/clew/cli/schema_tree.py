"""The commands schema (types that extraction may use) and tree (communities)."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.tree import Tree

from clew.cli.common import CommandContext, command, err, fail, out
from clew.cli.progress import show_progress
from clew.cli.render import truncate_words
from clew.extract.schema import dump_schema
from clew.extract.schema_growth import SchemaHistory
from clew.graph.community_tree import TREES
from clew.ingest.schema_store import SchemaStore
from clew.tree.manage import TreeReport
from clew.tree.outline import (
    ATTRIBUTE,
    COMMUNITY,
    Branch,
    Keyword,
    Outline,
    OutlineOptions,
    read_outline,
)


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(schema)
    app.command()(tree)


@command
async def schema(
    ctx: CommandContext,
    edit: Annotated[
        Path | None, typer.Option(help="Use this TOML or JSON file as the schema.")
    ] = None,
    revert: Annotated[int | None, typer.Option(help="Revert the step with this number.")] = None,
    write: Annotated[Path | None, typer.Option(help="Write the schema to a file to edit.")] = None,
) -> None:
    """Show the types that `--extractor schema` allows, and the history of their changes."""
    if edit is not None and revert is not None:
        fail("give --edit or --revert, not both")
    async with ctx.open_kb(create=edit is not None, embed=False) as base:
        store = SchemaStore(base.store, ctx.settings.schema_file)
        if edit is not None:
            history = await store.edit(edit)
        elif revert is not None:
            history = await store.revert(revert)
        else:
            history = await store.load_history()
    if write is not None:
        _write_schema(history, write)
    ctx.show(
        {"schema": history.schema.to_json(), "steps": history.to_json()["steps"]},
        lambda: _print_schema(history, write),
    )


def _write_schema(history: SchemaHistory, file: Path) -> None:
    form: Any = "json" if file.suffix == ".json" else "toml"
    file.write_text(dump_schema(history.schema, form), encoding="utf-8")


def _print_schema(history: SchemaHistory, written: Path | None) -> None:
    if written is not None:
        out.print(f"wrote {written}; after editing: `clew schema --edit {written}`", markup=False)
        return
    out.print(dump_schema(history.schema), markup=False)
    for step in history.steps:
        state = " (reverted)" if step.reverted else ""
        names = ", ".join([f"+{one.name}" for one in step.added])
        gone = ", ".join([f"-{one.name}" for one in step.removed])
        changes = " ".join(part for part in (names, gone) if part)
        out.print(f"step {step.number}, {step.cause}{state}: {changes}", markup=False)


_SUMMARY_LENGTH = 160


@command
async def tree(
    ctx: CommandContext,
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
    most: Annotated[
        int, typer.Option(min=0, help="Maximum number of branches per node; 0 for all.")
    ] = 10,
    grow: Annotated[bool, typer.Option("--grow", help="Rebuild the tree.")] = False,
    describe: Annotated[
        bool, typer.Option("--describe", help="Let the model write names and summaries.")
    ] = False,
) -> None:
    """Show the community tree: communities with their keywords, facts and attributes."""
    if grow or describe:
        await _grow_tree(ctx, by, grow, describe)
        return
    async with ctx.open_kb(embed=False) as base, base.store.snapshot() as snapshot:
        shown = await read_outline(snapshot, base.store, by, OutlineOptions(level, depth, most))
        states = await base.builder.make_tree_manager().states(snapshot)
    if states.get(shown.tree) == "stale":
        err.print(
            f"the {shown.tree} tree is stale: elements have changed since; "
            f"`clew tree --grow --by {shown.tree}` builds it again",
            style="yellow",
            markup=False,
        )
    ctx.show(shown, lambda: _print_outline(shown))


async def _grow_tree(ctx: CommandContext, by: str | None, grow: bool, describe: bool) -> None:
    async with ctx.open_kb() as base:
        with show_progress(ctx.json) as report:
            if base.embed is not None:
                await base.builder.embed_deferred("entity", report)
            trees = base.builder.make_tree_manager(report)
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
        f"{grown.kept} unchanged"
    )
    if grown.lost:
        out.print(
            f"{grown.lost} communities are quoted: the model's output was unusable",
            style="yellow",
        )


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
