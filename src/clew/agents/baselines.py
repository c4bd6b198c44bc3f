"""The agents that the papers compare with: ReAct, IRCoT, and a model without documents."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from clew.agents.answer import Answer, Mode
from clew.agents.notebook import Looker, Notebook
from clew.agents.planning.ask_plan import ask_plainly
from clew.agents.writing.finish import borne_out, bounded, concluded
from clew.agents.writing.reading import page_of, unknown
from clew.agents.writing.wordings import OWN, in_words_of, no_writer
from clew.agents.writing.written import answered, own_knowledge, refusal
from clew.context import Context
from clew.llm.prompt import Prompt
from clew.retrieve.step import Step
from clew.types import Evidence

_OBSERVED = 1500  # characters of what a search found that stay in the log


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
NEXT = Prompt("next_thought", Thought, {"question", "evidence", "thoughts"}, {"evidence"})


@dataclass(frozen=True)
class React:
    """Thought, action, observation, until the model finishes or the turns are used up."""

    turns: int = 5
    top_k: int = 5

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Loop, then bear the answer out."""
        book = Notebook()
        return await bounded(ctx, book, mode, self._work(ctx, book, retrieve, mode))

    async def _work(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        look = Looker(retrieve, book, self.top_k)
        log: list[str] = []
        asked: set[str] = set()
        for _ in range(self.turns):
            turn = await ask_plainly(
                ctx, REACT, "act", question=ctx.question, log="\n".join(log) or "(empty)"
            )
            if turn is None or turn.input.casefold() in asked:
                break
            if turn.action == "finish":
                if not book.looked:
                    await look(ctx, ctx.question)
                return await borne_out(ctx, book, turn.input, mode)
            asked.add(turn.input.casefold())
            looked = await look(ctx, turn.input)
            seen = " ".join(page_of(looked.evidence.chunks, _OBSERVED).lines) or "nothing"
            log += [f"search: {turn.input}", f"found: {seen}"]
        if not book.looked:
            await look(ctx, ctx.question)
        return await concluded(ctx, book, mode)


@dataclass(frozen=True)
class IrCot:
    """Each sentence of the reasoning is the next query (IRCoT, Trivedi et al. 2023)."""

    turns: int = 4
    top_k: int = 5
    least: int = 2
    """Sentences before an answer counts: a small model takes the first name for the goal."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Retrieve, think one sentence, retrieve by it."""
        book = Notebook()
        return await bounded(ctx, book, mode, self._work(ctx, book, retrieve, mode))

    async def _work(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        look = Looker(retrieve, book, self.top_k)
        await look(ctx, ctx.question)
        for turn in range(1, self.turns + 1):
            page = page_of(book.evidence().chunks, 6000)
            thought = await ask_plainly(
                ctx,
                NEXT,
                "think on",
                question=ctx.question,
                evidence=str(page),
                thoughts=" ".join(book.background) or "nothing",
            )
            if thought is None:
                break
            there = thought.answer and not unknown(thought.answer)
            if there and (turn >= self.least or not thought.sentence):
                return await borne_out(ctx, book, thought.answer, mode)
            if not thought.sentence or thought.sentence in book.background:
                break
            book.background.append(thought.sentence)
            await look(ctx, thought.sentence)
        return await concluded(ctx, book, mode)


@dataclass(frozen=True)
class Bare:
    """A model without documents, the baseline; in reject mode there is nothing to rest on."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Ask the model alone."""
        nothing = Evidence()
        if mode == "reject":
            return refusal(ctx, nothing, "this recipe reads no documents")
        if ctx.chat("answer") is None:
            return refusal(ctx, nothing, no_writer(ctx))
        book = Notebook()

        async def work() -> Answer:
            known = await own_knowledge(ctx)
            if known is None:
                return refusal(ctx, nothing, "the model does not know")
            said = f"{known.answer.strip()} {in_words_of(ctx.question, OWN)}"
            return answered(ctx, nothing, said, (), known.short.strip())

        return await bounded(ctx, book, mode, work())
