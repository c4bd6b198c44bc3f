"""The default agent: show the evidence; the model answers, or asks for more by tools."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from clew.agents.base import Answer, Mode, run_concurrently
from clew.agents.evidence import EVERYTHING, EvidencePage, show_evidence
from clew.agents.tables import describe_tables
from clew.agents.tools import Toolbox, format_call
from clew.agents.writing import AnswerListener, Written, ask_to_write, finish, mode_rules
from clew.context import Context
from clew.llm.prompt import Prompt
from clew.llm.tools import ToolCall


class Turn(Written, title="Turn"):
    """An answer, or what the model wants to look at first."""

    wants: list[ToolCall] = Field(
        default_factory=list, description="tools to call where the evidence is not enough"
    )


_INPUTS = {"question", "evidence", "calls", "left", "most", "rules"}
SEARCH = Prompt("answer_or_search", Turn, _INPUTS, documents={"evidence", "calls"})
LAST = Prompt("answer_or_search", Written, _INPUTS, documents={"evidence", "calls"})
"""The last turn, in which there is nothing to call."""


@dataclass(frozen=True)
class Searcher:
    """Searches with the question, then as the model asks; its last word stands."""

    rounds: int = 3
    """How often the model may ask for more before it must answer."""
    at_once: int = 8
    """Calls of tools in one round at most."""
    tools: tuple[str, ...] = ()
    """The tools it may call; by default all."""

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Answer the question; raises ModelError or BudgetExceeded where the model cannot go on."""
        first = ToolCall(tool="search", arguments={"query": ctx.question})
        page, calls = await run_tools(ctx, tools, [first], EvidencePage())
        listener = AnswerListener(ctx)
        left, said = self.rounds, Written()
        while True:
            said = await ask_to_write(
                ctx,
                SEARCH if left else LAST,
                step="answer or search",
                listener=listener,
                tools=tools.specs(self.tools) if left else (),
                question=ctx.question,
                evidence=page,
                calls="\n".join(f"{call}: {found}" for call, found in calls.items()),
                left=str(left),
                most=str(self.at_once),
                rules=mode_rules(ctx, mode),
            )
            wants = said.wants if isinstance(said, Turn) and not said.enough else []
            wanted = [one for one in wants if format_call(one) not in calls][: self.at_once]
            if not wanted and (said.answer or said.short or not left):
                break
            page, found = await run_tools(ctx, tools, wanted, page)
            calls |= found
            left = left - 1 if wanted else 0  # of a reply that says nothing the answer is asked for
        return finish(ctx, said, page, tools.evidence(), mode)


async def run_tools(
    ctx: Context, tools: Toolbox, wanted: Sequence[ToolCall], page: EvidencePage
) -> tuple[EvidencePage, dict[str, str]]:
    """Call tools at once; return the page with what they found, and the numbers each call found.

    A search is shown as the recipe shows it, with the tables of the documents that it found.
    """
    found = await run_concurrently([tools.call(one.tool, one.arguments) for one in wanted])
    numbers: dict[str, str] = {}
    for one, evidence in zip(wanted, found, strict=True):
        layout = None if one.tool == "search" else EVERYTHING
        shown = (await show_evidence(ctx, evidence, layout)).without_said(page)
        tables = await show_evidence(ctx, await describe_tables(ctx, evidence), EVERYTHING)
        page = page.merge(shown).merge(tables)
        numbers[format_call(one)] = page.numbers_of(shown) or "nothing"
    return page, numbers
