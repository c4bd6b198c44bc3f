"""Reader agent: one retrieval, one answer."""

from dataclasses import dataclass

from clew.agents.answer import Answer, Mode
from clew.agents.notebook import Looker, Notebook
from clew.agents.writing.extractive import extractive_answer
from clew.agents.writing.finish import bounded
from clew.agents.writing.written import refusal, written_answer
from clew.context import Context
from clew.retrieve.step import Step


@dataclass(frozen=True)
class Reader:
    """Retrieves once and writes the answer; quotes the evidence when there is no model."""

    top_k: int = 5

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Retrieve, then write."""
        book = Notebook()
        return await bounded(ctx, book, mode, self._work(ctx, book, retrieve, mode))

    async def _work(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        retrieval = await Looker(retrieve, book, self.top_k)(ctx, ctx.question)
        if retrieval.failed:
            return refusal(ctx, retrieval.evidence, retrieval.failed)
        if ctx.chat("answer") is None:
            return await extractive_answer(ctx, retrieval.evidence, retrieval.found, mode)
        return await written_answer(ctx, retrieval.evidence, mode)
