"""What one question may cost, and a wrapper that stops asking when it has been spent."""

import asyncio
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeVar

from clew.errors import ClewError, ConfigError
from clew.llm.chat import Chat, Hear, Reply, Request
from clew.llm.wrap import Meter
from clew.types import Usage

Amount = TypeVar("Amount", int, float)
_PARTS = ("calls", "tokens", "seconds", "money")


class BudgetEnded(ClewError):  # noqa: N818  (reads as what happened)
    """The question has cost what it may; whoever asked gives the best answer so far."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one question may cost; None is no limit."""

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    money: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no amount; written so that NaN is none either."""
        for name in _PARTS:
            amount = getattr(self, name)
            if amount is not None and not amount >= 0:
                raise ConfigError(f"{amount:g} {name} is no limit; give 0 or more")

    def within(self, other: "Limits") -> "Limits":
        """The stricter of both, part by part."""
        return Limits(
            _least(self.calls, other.calls),
            _least(self.tokens, other.tokens),
            _least(self.seconds, other.seconds),
            _least(self.money, other.money),
        )

    def __str__(self) -> str:
        """Say it for the trace."""
        amounts = {name: getattr(self, name) for name in _PARTS}
        parts = [f"{amount:g} {name}" for name, amount in amounts.items() if amount is not None]
        return ", ".join(parts) or "no limit"


UNLIMITED = Limits()


def _least(one: Amount | None, other: Amount | None) -> Amount | None:
    return other if one is None else one if other is None else min(one, other)


@dataclass(eq=False)
class Budget:
    """Limits and what was spent of them; shared by all tasks of one question."""

    limits: Limits = UNLIMITED
    spent: Meter = field(default_factory=Meter)
    begun: float = field(default_factory=monotonic)
    outer: "Budget | None" = None
    """What it was narrowed from; every call is taken from both."""
    _asked: int = 0

    def narrowed(self, calls: int) -> "Budget":
        """The same for a part of the work that may ask no more than so many calls."""
        limits = self.limits.within(Limits(calls=calls))
        return Budget(limits, self.spent, self.begun, outer=self)

    def left(self) -> float | None:
        """Seconds that remain, None when time does not count."""
        if self.limits.seconds is None:
            return None
        return max(0.0, self.limits.seconds - (monotonic() - self.begun))

    def in_time(self) -> None:
        """Say so when the time is up, for work that asks no model."""
        if self.left() == 0.0:
            raise BudgetEnded(f"the budget of {self.limits.seconds:g} seconds is spent")

    def take(self) -> None:
        """Take one call, or say which limit is reached."""
        total, limits = self.spent.total, self.limits
        reached = {
            "calls": limits.calls is not None and self._asked >= limits.calls,
            "tokens": limits.tokens is not None and _tokens(total) >= limits.tokens,
            "seconds": self.left() == 0.0,
            "money": limits.money is not None and total.money >= limits.money,
        }
        for name, ended in reached.items():
            if ended:
                raise BudgetEnded(f"the budget of {getattr(limits, name):g} {name} is spent")
        if self.outer is not None:
            self.outer.take()
        # Counted when it is sent: many tasks may ask at once, and none may pass unseen.
        self._asked += 1

    @property
    def asked(self) -> int:
        """Calls so far, remembered replies included."""
        return self._asked


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


@dataclass(frozen=True, eq=False)
class Budgeted:
    """Takes each call from `budget` and writes its cost there and on `bill`."""

    inner: Chat
    budget: Budget
    bill: Meter

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Ask while there is something left to ask with."""
        self.budget.take()
        try:
            async with asyncio.timeout(self.budget.left()):
                reply = await self.inner(request, hear)
        except TimeoutError as error:
            seconds = self.budget.limits.seconds
            raise BudgetEnded(f"the budget of {seconds:g} seconds is spent") from error
        self.budget.spent.add(reply.usage)
        self.bill.add(reply.usage)
        return reply
