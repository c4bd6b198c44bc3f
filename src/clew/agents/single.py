"""Reader agent: one retrieval, one answer."""

from dataclasses import dataclass

from clew.agents.answer import Answer, Mode
from clew.agents.notebook import Notebook, RecordingRetriever
from clew.agents.writing.extractive import extract_answer
from clew.agents.writing.finish import run_with_fallback
from clew.agents.writing.written import make_refusal, write_answer
from clew.context import Context
from clew.retrieve.step import Step


@dataclass(frozen=True)
class Reader:
    """Retrieves once and writes the answer; quotes the evidence when there is no model."""

    top_k: int = 5

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Retrieve, then write."""
        book = Notebook()
        return await run_with_fallback(ctx, book, mode, self._answer(ctx, book, retrieve, mode))

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        retrieval = await RecordingRetriever(retrieve, book, self.top_k)(ctx, ctx.question)
        if retrieval.error:
            return make_refusal(ctx, retrieval.evidence, retrieval.error)
        if ctx.chat("answer") is None:
            return await extract_answer(ctx, retrieval.evidence, retrieval.found, mode)
        return await write_answer(ctx, retrieval.evidence, mode)
