"""The commands search and ask."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from clew.agents.conversation import ConversationTurn
from clew.cli.chat import AnswerMode, AskArgs, append_history, ask_question, read_history
from clew.cli.common import CommandContext, command, err, fail, to_valid_text
from clew.cli.progress import show_waiting
from clew.cli.render import describe_model_error, print_answer, print_results
from clew.json_output import answer_json, search_json
from clew.layout import Modality
from clew.llm.budget import UsageLimits
from clew.llm.limits import tell_waits
from clew.llm.roles import with_named_model

QuestionArgument = Annotated[str, typer.Argument(help="A question in plain words.")]
RecipeOption = Annotated[str | None, typer.Option(help="The recipe; `clew recipes` lists them.")]
TopKOption = Annotated[int, typer.Option("-k", help="Maximum number of passages.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a parameter of the recipe: field=value; repeatable."),
]
TraceOption = Annotated[bool, typer.Option("--trace", help="Show the trace of all steps.")]


def register(app: typer.Typer) -> None:
    """Register this module's commands."""
    for one in (search, ask):
        app.command()(one)


@command
async def search(
    ctx: CommandContext,
    question: QuestionArgument,
    recipe: RecipeOption = None,
    k: TopKOption = 5,
    trace: TraceOption = False,
    changes: SetOption = None,
) -> None:
    """Find evidence for a question; needs no model."""
    if changes:
        ctx, [recipe] = ctx.with_parameters([recipe or ctx.settings.recipe], changes)
    async with ctx.open_nonempty_kb(embed=recipe != "bm25") as base:
        with show_waiting(ctx.json) as hear:
            found = await tell_waits(hear, base.search(to_valid_text(question), recipe=recipe, k=k))
    ctx.show(search_json(found), lambda: print_results(found, trace))


@command
async def ask(
    ctx: CommandContext,
    question: QuestionArgument,
    recipe: RecipeOption = None,
    mode: AnswerMode = "open",
    confidence: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="With --mode reject: the least confidence of an answer."),
    ] = None,
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
    changes: SetOption = None,
) -> None:
    """Answer a question from the knowledge base, every sentence cited."""
    if confidence is not None and mode != "reject":
        note = f"--confidence {confidence:g} has no effect without --mode reject"
        err.print(note, style="yellow", markup=False)
    if changes:
        ctx, [recipe] = ctx.with_parameters([recipe or ctx.settings.recipe], changes)
    limits = UsageLimits(max_calls, max_tokens, max_seconds, max_money)
    args = AskArgs(recipe, mode, k, trace, stream, limits, evidence, show_prompt, confidence)
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
    if answer.model_error:
        fail(describe_model_error(answer))
