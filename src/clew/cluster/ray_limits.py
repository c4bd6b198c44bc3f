"""Calls to models from all actors of a build on Ray: at once, per minute, and what they cost.

One small process counts for all of them. A call of an actor that is lost is counted with what it
was expected to use, as its endpoint may have answered it.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple
from uuid import uuid4

import ray

from clew.cluster.ray_connection import last_line
from clew.errors import StoreError
from clew.types import Usage

_SLOT_PATIENCE = 5.0  # seconds that a call for a slot stays: who asks then looks for its budget
_LOST_SECONDS = 60.0  # in which the process that counts is started again, if it is lost
_PAUSE = 0.5
_CALLS = 100_000  # that wait for a slot, or are answered, at once
_HEAD = {"node:__internal_head__": 0.001}  # without the head there is no cluster
Total = tuple[str, Usage]
"""What was used, and who counted: one that is started again begins at zero."""


class _HeldSlot(NamedTuple):
    holder: str
    model: str
    until: float
    about: Usage


class CallLimits:
    """Counts the calls of a build; in a process of its own, on one event loop."""

    def __init__(self, budget: float | None) -> None:
        self._budget, self._name = budget, uuid4().hex
        self._used, self._lost = Usage(), 0
        self._held: dict[int, _HeldSlot] = {}
        self._full_at: dict[tuple[str, str], float] = {}
        self._changed = asyncio.Condition()

    async def take(
        self, slot: int, holder: str, model: str, most: int, seconds: float, about: Usage
    ) -> bool:
        """Take a slot of a model, after a while of waiting if needed; False if none was free."""
        until = monotonic() + _SLOT_PATIENCE
        async with self._changed:
            while slot not in self._held:
                now = monotonic()
                self._drop([key for key, held in self._held.items() if held.until < now])
                if self._is_out_of_money() or now >= until:
                    return False
                if sum(held.model == model for held in self._held.values()) < most:
                    self._held[slot] = _HeldSlot(holder, model, now + seconds, about)
                    break
                with suppress(TimeoutError):
                    async with asyncio.timeout(until - now):
                        await self._changed.wait()
        return True

    async def free(self, slot: int, used: Usage) -> Total:
        """Give a slot back, and count what its call used, unless it was lost before."""
        async with self._changed:
            if self._held.pop(slot, None) is not None:
                self._used += used
            self._changed.notify_all()
        return self._name, self._used

    async def drop(self, holder: str) -> Total:
        """Free the slots of an actor that is lost; its calls count as they were expected."""
        async with self._changed:
            self._drop([key for key, held in self._held.items() if held.holder == holder])
            self._changed.notify_all()
        return self._name, self._used

    async def reserve(self, model: str, what: str, seconds: float) -> float:
        """Reserve so many seconds of a rate; return how long to wait before using it."""
        now = monotonic()
        starts = max(self._full_at.get((model, what), 0.0), now)
        self._full_at[model, what] = starts + seconds
        return starts - now

    async def is_out_of_money(self) -> bool:
        """Whether the budget is spent."""
        return self._is_out_of_money()

    async def count_lost(self) -> int:
        """Calls that were under way on actors that were lost."""
        return self._lost

    def _is_out_of_money(self) -> bool:
        return self._budget is not None and self._used.money >= self._budget

    def _drop(self, lost: Sequence[int]) -> None:
        for held in map(self._held.pop, lost):
            self._used += held.about
            self._lost += held.about.calls


def start_limits(budget: float | None) -> Any:
    """Start the process that counts."""
    made = ray.remote(CallLimits).options(
        num_cpus=0, resources=_HEAD, max_restarts=-1, max_concurrency=_CALLS
    )
    return made.remote(budget)


async def ask_limits(limits: Any, what: str, *given: Any) -> Any:
    """Ask the process that counts; again if it is being started again."""
    until = monotonic() + _LOST_SECONDS
    while True:
        try:
            return await getattr(limits, what).remote(*given)
        except ray.exceptions.RayError as error:
            if isinstance(error, ray.exceptions.RayTaskError) or monotonic() > until:
                raise StoreError(
                    f"the process of the cluster that counts calls was lost ({last_line(error)})"
                ) from error
            await asyncio.sleep(_PAUSE)


@dataclass(eq=False)
class RaySlots:
    """The slots, rates and money of a build, asked for by one of its actors."""

    limits: Any
    holder: str
    totals: dict[str, Usage] = field(default_factory=dict)
    """What all actors have used, as far as it is known here."""

    async def take(
        self, slot: int, model: str, run: str, most: int, seconds: float, about: Usage
    ) -> bool:
        """Take a slot if one is free."""
        del run  # the process that counts has one
        return bool(
            await ask_limits(self.limits, "take", slot, self.holder, model, most, seconds, about)
        )

    async def free(self, slot: int, run: str, used: Usage) -> None:
        """Give a slot back, and count what the call used."""
        del run
        name, total = await ask_limits(self.limits, "free", slot, used)
        if total.calls >= self.totals.get(name, total).calls:  # answers may overtake each other
            self.totals[name] = total

    async def reserve(self, model: str, what: str, seconds: float) -> float:
        """Reserve so many seconds of a rate; return how long to wait before using it."""
        return float(await ask_limits(self.limits, "reserve", model, what, seconds))

    async def is_out_of_money(self, run: str) -> bool:
        """Whether the build has spent its budget."""
        del run
        return bool(await ask_limits(self.limits, "is_out_of_money"))
