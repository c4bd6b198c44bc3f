"""The command recipes: list them, show one, print one as TOML, list the steps."""

from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from clew.cli.common import CommandContext, command, out
from clew.errors import ConfigError
from clew.recipes.describe import describe_recipe_needs, find_chunk_source
from clew.recipes.registry import (
    RecipeSet,
    describe_agent_needs,
    describe_recipes,
    list_heads,
    resolve_recipe,
    tabulate_recipe,
)
from clew.recipes.toml import format_recipe, list_steps
from clew.retrieve.step import Chain


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(recipes)


@command
async def recipes(
    ctx: CommandContext,
    name: Annotated[str | None, typer.Argument(help="Show this recipe's steps.")] = None,
    steps: Annotated[
        bool, typer.Option("--steps", help="List all steps, joins and agents with parameters.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="List the variants, too.")] = False,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the recipe as a table of clew.toml.")
    ] = False,
) -> None:
    """List recipes by group (--all: their variants, too), or show the steps of one."""
    known = ctx.recipes
    if (steps and (toml or name)) or (toml and name is None):
        raise ConfigError("use `clew recipes --steps` alone, and --toml with the name of a recipe")
    if steps:
        rows = list_steps()
        ctx.show(rows, lambda: _print_steps(rows))
    elif name is None:
        listed, heads = describe_recipes(known), set(list_heads(known))
        shown = [row for row in listed if every or row["name"] in heads]
        ctx.show(listed, lambda: _print_recipes(shown, len(listed)))
    elif toml:
        text = format_recipe(name, f"my-{name.replace('+', '-')}", known)
        ctx.show({"toml": text}, lambda: out.print(text, end="", markup=False))
    else:
        rows = tabulate_recipe(name, known)
        ctx.show(rows, lambda: _print_recipe(name, rows, known))


_GROUP_TITLES = {
    "house": "House: the best of all put together",
    "baselines": "Baselines",
    "agents": "Agents: NAME, or NAME+RETRIEVER; a model plans, searches and answers",
    "papers": "Papers' retrievers: `clew search --recipe NAME`; asked, a model answers once",
    "own": "Your own",
}


def _print_recipes(listed: list[dict[str, str]], many: int) -> None:
    for group, title in _GROUP_TITLES.items():
        rows = {row["name"]: row for row in listed if row["group"] == group}
        if rows:
            out.print(title, style="bold", highlight=False)
            columns = ("name", "about", "needs", "source")
            chosen = [{one: row[one] for one in columns} for row in rows.values()]
            _print_table(("recipe", "what it does", "needs", "source"), chosen)
            out.print()
    if len(listed) < many:
        out.print(f"`clew recipes --all` lists all {many}, with their variants")
    out.print("`clew recipes NAME` shows the steps of one, and the source of each parameter;")
    out.print("`clew ask --recipe NAME --set field=value` changes a parameter", markup=False)
    out.print("`clew recipes NAME --toml` prints one to change, `--steps` lists all steps")


def _print_recipe(name: str, rows: list[dict[str, str]], known: RecipeSet) -> None:
    agent = known.agents.get(name.partition("+")[0])
    retriever = known.retrievers.get(name.rpartition("+")[2])
    for one in (agent, retriever):
        # A recipe of clew.toml with an agent of its own is both.
        twice = one is retriever and agent is not None and one and one.about == agent.about
        if one is not None and not twice:
            needs = (
                describe_recipe_needs(one)
                if isinstance(one, Chain)
                else describe_agent_needs(name, known)
            )
            summary = f"{one.name}: {one.about}\n  source: {one.source}\n  needs: {needs}"
            out.print(escape(summary), highlight=False)
    resolved = resolve_recipe(name, known)
    if resolved.chunk:
        out.print(f"  chunks: {resolved.chunk} (`clew add PATH… --recipe {name}`)", markup=False)
        if source := find_chunk_source(resolved.retrieve, resolved.chunk, resolved.agent):
            out.print(f"    source: {source}", markup=False)
    out.print()
    _print_table(("step", "parameter", "value", "source"), rows)


def _print_steps(rows: list[dict[str, Any]]) -> None:
    for kind, head in (
        ("step", 'Steps: { step = "NAME", parameter = value }'),
        ("join", 'Joins of a Fork: join = "NAME"'),
        ("agent", 'Agents: agent = { name = "NAME", parameter = value }'),
    ):
        out.print(head, style="bold", highlight=False, markup=False)
        for row in rows:
            if row["kind"] == kind:
                out.print(f"{row['name']}: {row['about']}", markup=False)
                for one in row["parameters"]:
                    shown = f"    {one['name']} = {one['default']}  ({one['type']})"
                    out.print(shown, style="dim", markup=False)
        out.print()


def _print_table(titles: tuple[str, ...], rows: list[dict[str, str]]) -> None:
    table = Table(*titles, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row.values()))
    out.print(table)
