"""Baseline agents: one retrieval (Reader), ReAct, IRCoT, and a model without documents."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from clew.agents.answering.finish import conclude, conclude_with_citation, run_with_fallback
from clew.agents.answering.path_answer import answer_unnamed
from clew.agents.answering.write import ask_own_knowledge, make_answer, make_refusal
from clew.agents.core.evidence_page import show_evidence
from clew.agents.core.messages import OWN_KNOWLEDGE_MARK, explain_no_model, is_unknown, localise
from clew.agents.core.scratchpad import Notebook, RecordingRetriever
from clew.agents.core.types import Answer, Mode
from clew.agents.planning.model_plan import ask_planner
from clew.context import Context
from clew.llm.prompt import Prompt
from clew.retrieve.step import Step
from clew.types import Evidence

_REACT_TOKENS = 900  # of a prompt beside its log: instructions, question, reply


class Action(BaseModel):
    """One turn of ReAct."""

    thought: str = ""
    action: Literal["search", "finish"]
    input: str


class Thought(BaseModel):
    """One sentence of an interleaved chain of thought."""

    sentence: str = ""
    answer: str = ""


REACT = Prompt("react", Action, {"question", "log"}, documents={"log"})
NEXT_THOUGHT = Prompt(
    "next_thought", Thought, {"question", "evidence", "thoughts"}, {"evidence", "thoughts"}
)


@dataclass(frozen=True)
class Reader:
    """Retrieves once and writes the answer; quotes the evidence when there is no model."""

    top_k: int | None = None
    """Passages of the retrieval; None: as many as the recipe shows."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Retrieve, then write."""
        book = Notebook()
        return await run_with_fallback(ctx, book, mode, self._answer(ctx, book, retrieve, mode))

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        top_k = self.top_k or ctx.layout.max_passages
        retrieval = await RecordingRetriever(retrieve, book, top_k)(ctx, ctx.question)
        if retrieval.error:
            unnamed = await answer_unnamed(ctx, retrieval.evidence) if retrieval.refused else None
            return unnamed or make_refusal(ctx, retrieval.evidence, retrieval.error)
        return await conclude(ctx, book, mode)


@dataclass(frozen=True)
class React:
    """Thought, action, observation, until the model finishes or the turns are used up."""

    turns: int = 5
    top_k: int = 5

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Run the loop, then look for a citation of the final answer."""
        book = Notebook()
        return await run_with_fallback(ctx, book, mode, self._answer(ctx, book, retrieve, mode))

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        retriever = RecordingRetriever(retrieve, book, self.top_k)
        log: list[str] = []
        queries: set[str] = set()
        # What was found stays in the log: all turns share the window.
        room = (await ctx.room("plan") - _REACT_TOKENS) // self.turns
        layout = ctx.layout.for_part().fit(room)
        for _ in range(self.turns):
            turn = await ask_planner(
                ctx, REACT, "act", question=ctx.question, log="\n".join(log) or "(empty)"
            )
            if turn is None or turn.input.casefold() in queries:
                break
            if turn.action == "finish":
                if not book.retrievals:
                    await retriever(ctx, ctx.question)
                return await conclude_with_citation(ctx, book, turn.input, mode)
            queries.add(turn.input.casefold())
            retrieval = await retriever(ctx, turn.input)
            page = await show_evidence(ctx, retrieval.evidence, layout, role="plan")
            thought = [f"thought: {' '.join(turn.thought.split())}"] if turn.thought else []
            found = [f"found: {line}" for line in page.lines] or ["found: nothing"]
            log += [*thought, f"search: {' '.join(turn.input.split())}", *found]
        if not book.retrievals:
            await retriever(ctx, ctx.question)
        return await conclude(ctx, book, mode)


@dataclass(frozen=True)
class IrCot:
    """Uses each sentence of the reasoning as the next query (IRCoT, Trivedi et al. 2023)."""

    turns: int = 4
    top_k: int = 5
    least: int = 2
    """Sentences before an answer counts: small models stop at the first name they meet."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Retrieve, generate one sentence, retrieve with it, and so on."""
        book = Notebook()
        return await run_with_fallback(ctx, book, mode, self._answer(ctx, book, retrieve, mode))

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        retriever = RecordingRetriever(retrieve, book, self.top_k)
        await retriever(ctx, ctx.question)
        for turn in range(1, self.turns + 1):
            thoughts = " ".join(book.background) or "nothing"
            page = await show_evidence(
                ctx, book.evidence(), beside=thoughts, reply=200, role="plan"
            )
            thought = await ask_planner(
                ctx,
                NEXT_THOUGHT,
                "think on",
                question=ctx.question,
                evidence=page,
                thoughts=thoughts,
            )
            if thought is None:
                break
            has_answer = thought.answer and not is_unknown(thought.answer)
            if has_answer and (turn >= self.least or not thought.sentence):
                return await conclude_with_citation(ctx, book, thought.answer, mode)
            if not thought.sentence or thought.sentence in book.background:
                break
            book.background.append(thought.sentence)
            await retriever(ctx, thought.sentence)
        return await conclude(ctx, book, mode)


@dataclass(frozen=True)
class ClosedBook:
    """Closed-book baseline: the model without documents; reject mode always refuses."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Ask the model alone."""
        if mode == "reject":
            return make_refusal(ctx, Evidence(), "this recipe reads no documents")
        if ctx.chat("answer") is None:
            return make_refusal(ctx, Evidence(), explain_no_model(ctx))
        return await run_with_fallback(ctx, Notebook(), mode, self._answer(ctx))

    async def _answer(self, ctx: Context) -> Answer:
        known = await ask_own_knowledge(ctx)
        if known is None:
            return make_refusal(ctx, Evidence(), "the model does not know the answer")
        text = f"{known.answer.strip()} {localise(ctx.question, OWN_KNOWLEDGE_MARK)}"
        return make_answer(ctx, Evidence(), text, (), known.short.strip())
