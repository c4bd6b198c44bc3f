"""The default agent: show the evidence; the model answers, or asks for more by tools."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from clew.agents.base import Answer, Mode, run_concurrently
from clew.agents.evidence import EVERYTHING, EvidencePage, show_evidence
from clew.agents.tools import Toolbox
from clew.agents.writing import AnswerListener, Written, ask_to_write, finish, mode_rules
from clew.context import Context
from clew.llm.prompt import Prompt
from clew.llm.tools import ToolCall


class Turn(Written, title="Turn"):
    """An answer, or what the model wants to look at first."""

    wants: list[ToolCall] = Field(
        default_factory=list, description="tools to call where the evidence is not enough"
    )


SEARCH = Prompt(
    "answer_or_search",
    Turn,
    {"question", "evidence", "calls", "left", "rules"},
    documents={"evidence", "calls"},
)


@dataclass(frozen=True)
class Searcher:
    """Searches with the question, then as the model asks; its last word stands."""

    rounds: int = 3
    """How often the model may ask for more before it must answer."""
    at_once: int = 4
    """Calls of tools in one round at most."""
    tools: tuple[str, ...] = ()
    """The tools it may call; by default all."""

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Answer the question; raises ModelError or BudgetExceeded where the model cannot go on."""
        page = await show_evidence(ctx, await tools.search(ctx.question))
        calls = [format_call(ToolCall(tool="search", arguments={"query": ctx.question}))]
        listener = AnswerListener(ctx)
        for left in range(self.rounds, -1, -1):
            said: Turn = await ask_to_write(
                ctx,
                SEARCH,
                step="answer or search",
                listener=listener,
                tools=tools.specs(self.tools) if left else (),
                question=ctx.question,
                evidence=page,
                calls="\n".join(calls),
                left=str(left),
                rules=mode_rules(ctx, mode),
            )
            wanted = [one for one in said.wants if format_call(one) not in calls][: self.at_once]
            if said.enough or not wanted or not left:
                break
            calls += map(format_call, wanted)
            page = page.merge(await run_tools(ctx, tools, wanted))
        return finish(ctx, said, page, tools.evidence(), mode)


async def run_tools(ctx: Context, tools: Toolbox, wanted: Sequence[ToolCall]) -> EvidencePage:
    """Call tools at once and show what they found, a search as the recipe shows it."""
    found = await run_concurrently([tools.call(one.tool, one.arguments) for one in wanted])
    page = EvidencePage()
    for one, evidence in zip(wanted, found, strict=True):
        layout = None if one.tool == "search" and not evidence.findings else EVERYTHING
        page = page.merge(await show_evidence(ctx, evidence, layout))
    return page


def format_call(call: ToolCall) -> str:
    """Write a call on one line, as the model is reminded of it."""
    return f"{call.tool}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"
