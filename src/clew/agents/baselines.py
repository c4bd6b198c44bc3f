"""Agents that others are compared with: one retrieval and one answer, and a model alone."""

from dataclasses import dataclass

from clew.agents.base import Answer, Mode
from clew.agents.evidence import EvidencePage, show_evidence
from clew.agents.tools import Toolbox
from clew.agents.writing import refuse, write_answer
from clew.context import Context
from clew.types import Evidence


@dataclass(frozen=True)
class Reader:
    """Retrieves once and lets the model write the answer."""

    top_k: int | None = None
    """Passages of the retrieval; None: as many as the recipe shows."""

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Answer from what one search finds."""
        found = await tools.search(ctx.question, most=self.top_k)
        return await write_answer(ctx, tools, await show_evidence(ctx, found), mode)


@dataclass(frozen=True)
class ClosedBook:
    """The model without documents; in `reject`, where documents must say it, it always refuses."""

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Answer from what the model knows."""
        if mode == "reject":
            return refuse(ctx, Evidence(), "this recipe reads no documents")
        return await write_answer(ctx, tools, EvidencePage(), mode)
