"""Graph-R1 agent with any chat model: think, query the knowledge base, think again, answer."""

from dataclasses import dataclass, replace
from typing import Literal

from clew.agents.answer import Answer, Mode
from clew.agents.graph_r1 import STOPS, Protocol, closed, listed, paged, read_move
from clew.agents.notebook import Looker, Notebook
from clew.agents.writing.finish import borne_out, bounded, concluded
from clew.agents.writing.reading import page_of, page_of_facts
from clew.context import Context
from clew.extract.language import prompt_language
from clew.llm.chat import Author, Message, Request
from clew.llm.repair import without_thoughts
from clew.llm.trained import Trained
from clew.retrieve.step import Step
from clew.types import Evidence


@dataclass(frozen=True)
class GraphR1:
    """Serves the protocol used in training; after the last query the final answer is demanded."""

    turns: int = 5
    top_k: int = 5  # paper, §4.2: facts returned to the agent
    room: int = 2500
    """Characters of knowledge per turn."""
    brief: bool = False
    """For a trained policy: the question alone, without instructions."""
    step: int = 300
    """Maximum tokens of one think-and-act step."""
    unaided: bool = False
    """Retrieve without a model, as in training."""
    show: Literal["passages", "facts"] = "passages"
    """What the model reads where the retriever returns both; facts are grouped by page title."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Loop until the model answers or the turns are used up."""
        book = Notebook()
        return await bounded(ctx, book, mode, self._work(ctx, book, retrieve, mode))

    def trained(self, how: Trained) -> "GraphR1":
        """Return a copy with the settings the model was trained with."""
        return replace(
            self,
            turns=how.turns,
            brief=how.brief,
            step=how.step_tokens,
            unaided=True,
            top_k=how.k or self.top_k,
            room=how.characters or self.room,
        )

    async def _work(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        retriever = Looker(retrieve, book, self.top_k)
        if ctx.chat("plan") is None:
            await retriever(ctx, ctx.question)
            return await concluded(ctx, book, mode)
        final = await self._loop(ctx, book, retriever)
        if not book.looked:
            await retriever(self._searching(ctx), ctx.question)
        return await borne_out(ctx, book, final, mode)

    def _searching(self, ctx: Context) -> Context:
        return replace(ctx, models=None) if self.unaided else ctx

    async def _loop(self, ctx: Context, book: Notebook, retriever: Looker) -> str:
        chinese = not self.brief and prompt_language(ctx.question) == "zh"
        protocol = Protocol(self.turns, self.brief, "zh" if chinese else "en")
        messages = [Message(_author(role), text) for role, text in protocol.opening(ctx.question)]
        asked = 0
        for _ in range(2 * self.turns + 2):
            said = await self._say(ctx, messages)
            move = read_move(closed(said))
            messages.append(Message("assistant", closed(said)))
            if move.kind == "answer":
                return move.text
            if move.kind == "query" and asked < self.turns:
                asked += 1
                retrieval = await retriever(self._searching(ctx), move.text)
                knowledge = protocol.knowledge(self.knowledge(retrieval.evidence), asked)
                messages.append(Message("user", knowledge))
            elif asked >= self.turns:
                return ""
            else:
                asked += 1
                messages.append(Message("user", protocol.nudge(asked)))
        return ""

    async def _say(self, ctx: Context, messages: list[Message]) -> str:
        # At first the last message holds the instructions: the trace shows the question.
        begins = not any(message.role == "assistant" for message in messages)
        about = ctx.question if begins else messages[-1].content[:200]
        async with ctx.step("think", about) as step:
            chat = step.ctx.chat("plan")
            assert chat is not None
            request = Request(tuple(messages), max_tokens=self.step, stop=STOPS)
            reply = await chat(request)
            step.left = " ".join(reply.text.split())[:200]
            return reply.text if "<" in reply.text else without_thoughts(reply.text)

    def knowledge(self, found: Evidence) -> str:
        """Format a retrieval for the model; training uses the same text."""
        if self.show == "facts" and found.facts:
            rows = [(fact.title, fact.start, fact.text) for fact in found.facts[: self.top_k]]
            return paged(rows)[: self.room]
        facts = page_of_facts(found.facts[: self.top_k], self.room).lines
        chunks = page_of(found.chunks[: self.top_k], self.room).lines
        return listed(chunks or facts)


def _author(role: str) -> Author:
    return "system" if role == "system" else "user" if role == "user" else "assistant"
