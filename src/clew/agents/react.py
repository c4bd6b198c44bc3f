"""Reasoning and retrieval by turns: ReAct (Yao et al. 2023) and IRCoT (Trivedi et al. 2023)."""

from dataclasses import dataclass

from pydantic import BaseModel, Field

from clew.agents.base import Answer, Mode
from clew.agents.evidence import EVERYTHING, EvidencePage, show_evidence
from clew.agents.tools import Toolbox, format_call
from clew.agents.writing import (
    AnswerListener,
    Written,
    ask_to_write,
    finish,
    mode_rules,
    write_answer,
)
from clew.context import Context
from clew.llm.prompt import Prompt
from clew.llm.tools import ToolCall


class Turn(Written, title="Turn"):
    """One turn of ReAct: a thought (`reasoning`), then an action, or the answer that finishes."""

    wants: list[ToolCall] = Field(default_factory=list, description="the one action of this turn")


class Thought(BaseModel):
    """One sentence of an interleaved chain of thought."""

    sentence: str = ""
    done: bool = False


REACT = Prompt("react", Turn, {"question", "log", "left", "rules"}, documents={"log"})
LAST = Prompt("react", Written, {"question", "log", "left", "rules"}, documents={"log"})
"""The last turn, in which there is nothing to do but to finish."""
NEXT_THOUGHT = Prompt(
    "next_thought", Thought, {"question", "evidence", "thoughts"}, {"evidence", "thoughts"}
)


@dataclass(frozen=True)
class React:
    """Thought, action, observation, until the model finishes; it sees all of them."""

    turns: int = 7  # §3.2: for HotpotQA, as more steps do not help
    tools: tuple[str, ...] = ()
    """The tools it may act with; by default all."""

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Act until the model finishes; after the last turn it must."""
        log: list[str] = []
        page = EvidencePage()
        listener = AnswerListener(ctx)
        left, said = self.turns, Written()
        while True:
            said = await ask_to_write(
                ctx,
                REACT if left else LAST,
                step="think and act",
                listener=listener,
                tools=tools.specs(self.tools) if left else (),
                question=ctx.question,
                log="\n\n".join(log) or "(nothing yet)",
                left=str(left),
                rules=mode_rules(ctx, mode),
            )
            if said.answer or said.short or not left:
                break
            if not isinstance(said, Turn) or not said.wants:
                left = 0  # neither an action nor an answer: the answer is asked for
                continue
            left, action = left - 1, said.wants[0]
            seen = await self._observe(ctx, tools, action)
            known, page = page, page.merge(seen)
            log.append(
                f"Thought: {said.reasoning}\nAction: {format_call(action)}\n"
                f"Observation:\n{_format_observation(seen, known, page)}"
            )
        return finish(ctx, said, page, tools.evidence(), mode)

    async def _observe(self, ctx: Context, tools: Toolbox, action: ToolCall) -> EvidencePage:
        """Call a tool and show what it found: each turn has an equal share of the window."""
        found = await tools.call(action.tool, action.arguments)
        layout = ctx.layout if action.tool == "search" else EVERYTHING
        room = await ctx.room("answer") // (self.turns + 2)
        return await show_evidence(ctx, found, layout.fit(room))


def _format_observation(seen: EvidencePage, known: EvidencePage, page: EvidencePage) -> str:
    """Write what was seen, with its numbers on the page; what was known is only numbered."""
    rows = []
    for line in seen.lines:
        number = page.lines.index(line) + 1
        rows.append(f"[{number}] {'(as above)' if line in known.lines else line}")
    return "\n".join(rows) or "nothing was found"


@dataclass(frozen=True)
class IrCot:
    """Every sentence of the reasoning is the next query, until the model has the answer."""

    turns: int = 8  # §3.1: at most eight reasoning steps
    top_k: int = 6  # §4: 2, 4, 6 or 8 paragraphs a step, by the data set

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Retrieve with the question, then by turns reason and retrieve; a reader answers."""
        page = await show_evidence(ctx, await tools.search(ctx.question, most=self.top_k))
        thoughts: list[str] = []
        for _ in range(self.turns):
            thought = await ctx.ask(
                NEXT_THOUGHT,
                role="plan",
                step="think on",
                otherwise=Thought(done=True),
                question=ctx.question,
                evidence=page,
                thoughts="\n".join(thoughts) or "(nothing yet)",
            )
            if not thought.sentence or thought.sentence in thoughts:
                break
            thoughts.append(thought.sentence)
            if thought.done:
                break
            found = await tools.search(thought.sentence, most=self.top_k)
            page = page.merge(await show_evidence(ctx, found))
        return await write_answer(ctx, tools, page, mode, notes="\n".join(thoughts))
