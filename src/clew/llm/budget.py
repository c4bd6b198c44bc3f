"""Usage limits of one question, and a chat wrapper that enforces them."""

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
    """The budget of a question is used up; the agent returns its best answer so far."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits for one question; None means unlimited."""

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    money: float | None = None

    def __post_init__(self) -> None:
        """Reject negative limits; the comparison is written so that NaN is rejected too."""
        for name in _PARTS:
            amount = getattr(self, name)
            if amount is not None and not amount >= 0:
                raise ConfigError(f"{amount:g} {name} is no limit; give 0 or more")

    def within(self, other: "Limits") -> "Limits":
        """The stricter of both limits, field by field."""
        return Limits(
            _least(self.calls, other.calls),
            _least(self.tokens, other.tokens),
            _least(self.seconds, other.seconds),
            _least(self.money, other.money),
        )

    def __str__(self) -> str:
        """Format the limits for the trace."""
        amounts = {name: getattr(self, name) for name in _PARTS}
        parts = [f"{amount:g} {name}" for name, amount in amounts.items() if amount is not None]
        return ", ".join(parts) or "no limit"


UNLIMITED = Limits()


def _least(a: Amount | None, b: Amount | None) -> Amount | None:
    return b if a is None else a if b is None else min(a, b)


@dataclass(eq=False)
class Budget:
    """Limits and usage so far; shared by all tasks of one question."""

    limits: Limits = UNLIMITED
    spent: Meter = field(default_factory=Meter)
    begun: float = field(default_factory=monotonic)
    outer: "Budget | None" = None
    """The budget this one was derived from; every call counts against both."""
    _asked: int = 0

    def narrowed(self, calls: int) -> "Budget":
        """Derive a budget that allows at most `calls` more calls."""
        limits = self.limits.within(Limits(calls=calls))
        return Budget(limits, self.spent, self.begun, outer=self)

    def left(self) -> float | None:
        """Seconds that remain, or None without a time limit."""
        if self.limits.seconds is None:
            return None
        return max(0.0, self.limits.seconds - (monotonic() - self.begun))

    def in_time(self) -> None:
        """Raise if the time is up, for work that calls no model."""
        if self.left() == 0.0:
            raise BudgetEnded(f"the budget of {self.limits.seconds:g} seconds is spent")

    def take(self) -> None:
        """Count one call, or raise naming the limit that is reached."""
        total, limits = self.spent.total, self.limits
        reached = {
            "calls": limits.calls is not None and self._asked >= limits.calls,
            "tokens": limits.tokens is not None and _tokens(total) >= limits.tokens,
            "seconds": self.left() == 0.0,
            "money": limits.money is not None and total.money >= limits.money,
        }
        for name, is_reached in reached.items():
            if is_reached:
                raise BudgetEnded(f"the budget of {getattr(limits, name):g} {name} is spent")
        if self.outer is not None:
            self.outer.take()
        # Counted before sending, so that concurrent tasks cannot exceed the limit together.
        self._asked += 1

    @property
    def asked(self) -> int:
        """Calls so far, including those answered from the cache."""
        return self._asked


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


@dataclass(frozen=True, eq=False)
class Budgeted:
    """Counts each call against `budget` and records its usage there and in `meter`."""

    inner: Chat
    budget: Budget
    bill: Meter

    @property
    def name(self) -> str:
        """The wrapped chat's name."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Send the request if the budget allows it."""
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
