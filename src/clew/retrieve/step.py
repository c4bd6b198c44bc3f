"""The protocol of retrieval steps, and their combinators: `Chain` and `Fork`."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Protocol

from clew.context import Context, TraceStep
from clew.errors import ClewError
from clew.layout import PASSAGES, Layout
from clew.types import Chunking, Found


class Step(Protocol):
    """A retrieval step: takes what was found so far and returns what is found now."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Run the step."""
        ...


@dataclass(frozen=True)
class Chain:
    """Runs steps one after another and records each in the trace."""

    name: str
    steps: tuple[Step, ...]
    about: str = field(default="", repr=False)
    source: str = field(default="", repr=False)
    notes: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Sources of single parameters: ("Step.parameter", "paper and place")."""
    layout: Layout = field(default=PASSAGES, repr=False)
    """What a model is shown of the result."""
    chunk: Chunking | None = field(default=None, repr=False)
    """How documents are split for this recipe; None: as the settings say."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Pass `found` through every step."""
        for step, shown in zip(self.steps, self._shown, strict=True):
            before, started = found.sizes(), perf_counter()
            found = await step(ctx, found)
            seconds = perf_counter() - started
            ctx.trace.append(TraceStep(shown, before, found.sizes(), seconds))
        return found

    @cached_property
    def _shown(self) -> tuple[str, ...]:
        """The steps as the trace shows them."""
        return tuple(map(repr, self.steps))


@dataclass(frozen=True)
class Fork:
    """Runs branches concurrently on the same input and joins their results."""

    branches: tuple[Step, ...]
    join: Callable[[Sequence[Found]], Found]

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Give every branch the same `found`; join the results."""
        # Each branch has a trace of its own, so that the order does not depend on their speed.
        contexts = [replace(ctx, trace=[]) for _ in self.branches]

        async def run(branch: Step, own: Context) -> Found:
            return await branch(own, found)

        try:
            async with asyncio.TaskGroup() as group:
                pairs = zip(self.branches, contexts, strict=True)
                tasks = [group.create_task(run(branch, own)) for branch, own in pairs]
        except* ClewError as many:
            # The first error cancelled the others: it alone is worth reporting.
            raise many.exceptions[0] from None
        ctx.trace.extend(step for own in contexts for step in own.trace)
        return self.join([task.result() for task in tasks])
