"""Placeholder, being written."""

from dataclasses import dataclass

from clew.agents.base import Answer, Mode
from clew.agents.tools import Toolbox
from clew.agents.writing import refuse
from clew.context import Context


@dataclass(frozen=True)
class Quick:
    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        await tools.search(ctx.question)
        return refuse(ctx, tools.evidence(), "not written yet")
