"""The commands search, ask and recipes."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from clew.agents.conversation import ConversationTurn
from clew.cli.chat import AnswerMode, AskArgs, append_history, ask_question, read_history
from clew.cli.common import CommandContext, command, out, to_valid_text
from clew.cli.render import answer_json, print_answer, print_results, search_json
from clew.layout import Modality
from clew.llm.budget import UsageLimits
from clew.llm.roles import with_named_model
from clew.recipes.agents import AGENTS
from clew.recipes.describe import describe_recipe_needs
from clew.recipes.registry import RECIPES, describe_agent_needs, tabulate_recipe
from clew.retrieve.step import Chain

QuestionArgument = Annotated[str, typer.Argument(help="A question in plain words.")]
RecipeOption = Annotated[str | None, typer.Option(help="The recipe; `clew recipes` lists them.")]
TopKOption = Annotated[int, typer.Option("-k", help="Maximum number of passages.")]
TraceOption = Annotated[bool, typer.Option("--trace", help="Show the trace of all steps.")]


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    for one in (search, ask, recipes):
        app.command()(one)


@command
async def search(
    ctx: CommandContext,
    question: QuestionArgument,
    recipe: RecipeOption = None,
    k: TopKOption = 5,
    trace: TraceOption = False,
) -> None:
    """Find evidence for a question; needs no model."""
    async with ctx.open_nonempty_kb() as base:
        found = await base.search(to_valid_text(question), recipe=recipe, k=k)
    ctx.show(search_json(found), lambda: print_results(found, trace))


@command
async def ask(
    ctx: CommandContext,
    question: QuestionArgument,
    recipe: RecipeOption = None,
    mode: AnswerMode = "open",
    k: Annotated[
        int | None, typer.Option("-k", help="Passages per retrieval; by default the agent's own.")
    ] = None,
    trace: TraceOption = False,
    model: Annotated[
        str | None, typer.Option(help="A model's name, or the --out folder of `clew train`.")
    ] = None,
    evidence: Annotated[
        Modality, typer.Option(help="What the model reads: passages, the graph's part, or all.")
    ] = "all",
    show_prompt: Annotated[
        bool, typer.Option("--show-prompt", help="Show exactly what each model call was sent.")
    ] = False,
    history: Annotated[
        Path | None,
        typer.Option(
            help="Conversation as JSON lines (question, answer); the new turn is appended."
        ),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print steps and the answer as they are produced.")
    ] = False,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Limit of model calls.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, help="Limit of tokens.")] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, help="Limit of seconds.")] = None,
    max_money: Annotated[
        float | None, typer.Option(min=0, help="Limit of cost, by the prices in clew.toml.")
    ] = None,
) -> None:
    """Answer a question from the knowledge base, every sentence cited."""
    limits = UsageLimits(max_calls, max_tokens, max_seconds, max_money)
    args = AskArgs(recipe, mode, k, trace, stream, limits, evidence, show_prompt)
    ctx = _with_model(ctx, model)
    await _ask(ctx, to_valid_text(question), args, history)


def _with_model(ctx: CommandContext, model: str | None) -> CommandContext:
    if model is None:
        return ctx
    models = with_named_model(ctx.settings.models, model)
    return replace(ctx, settings=ctx.settings.model_copy(update={"models": models}))


async def _ask(ctx: CommandContext, question: str, args: AskArgs, history: Path | None) -> None:
    turns = read_history(history) if history else []
    async with ctx.open_nonempty_kb() as base:
        answer = await ask_question(base, ctx, question, args, turns)
    try:
        ctx.show(answer_json(answer), lambda: print_answer(answer, args.trace))
    finally:  # after the answer, which was paid for, is shown; also if stdout was closed
        if history:
            append_history(history, ConversationTurn(question, answer.answer))


@command
async def recipes(
    ctx: CommandContext,
    name: Annotated[str | None, typer.Argument(help="Show this recipe's steps.")] = None,
) -> None:
    """List all recipes, or show one as a table of its steps and parameters."""
    if name is None:
        listed = [
            {
                "name": r.name,
                "kind": kind,
                "about": r.about,
                "needs": describe_recipe_needs(r)
                if isinstance(r, Chain)
                else describe_agent_needs(r.name),
                "source": r.source,
            }
            for kind, some in (("retriever", RECIPES), ("agent", AGENTS))
            for r in some.values()
        ]
        ctx.show(listed, lambda: _print_recipes(listed))
    else:
        rows = tabulate_recipe(name)
        ctx.show(rows, lambda: _print_recipe(name, rows))


def _print_recipes(listed: list[dict[str, str]]) -> None:
    for kind, head in (
        ("retriever", "Retrievers: `clew search --recipe NAME`, and `clew ask`"),
        (
            "agent",
            "Agents: `clew ask --recipe NAME`, or NAME+RETRIEVER; "
            "without a model they use rules and quote passages",
        ),
    ):
        out.print(head, style="bold", highlight=False)
        rows = [{k: v for k, v in row.items() if k != "kind"} for row in listed]
        chosen = [row for row, full in zip(rows, listed, strict=True) if full["kind"] == kind]
        _print_table(("recipe", "what it does", "needs", "source"), chosen)
        out.print()
    out.print("`clew recipes NAME` shows the steps of one, and the source of each parameter")


def _print_recipe(name: str, rows: list[dict[str, str]]) -> None:
    for one in (AGENTS.get(name.partition("+")[0]), RECIPES.get(name.rpartition("+")[2])):
        if one is not None:
            needs = (
                describe_recipe_needs(one) if isinstance(one, Chain) else describe_agent_needs(name)
            )
            summary = f"{one.name}: {one.about}\n  source: {one.source}\n  needs: {needs}"
            out.print(escape(summary), highlight=False)
    out.print()
    _print_table(("step", "parameter", "value", "source"), rows)


def _print_table(titles: tuple[str, ...], rows: list[dict[str, str]]) -> None:
    table = Table(*titles, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row.values()))
    out.print(table)
