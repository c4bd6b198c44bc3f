"""Usage limits of one question, accounts that pay for calls, and the chats that enforce them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TypeVar

from clew.config import Price
from clew.errors import ClewError, ConfigError
from clew.llm.chat import CallAccount, Chat, EndpointError, Reply, Request, TextCallback
from clew.llm.limits import DEFAULT_REPLY_TOKENS
from clew.llm.openai_api import estimate_prompt_tokens
from clew.llm.wrappers import UsageMeter
from clew.types import Usage

Amount = TypeVar("Amount", int, float)
_LIMIT_NAMES = ("calls", "tokens", "seconds", "money")


class BudgetExceeded(ClewError):  # noqa: N818  (reads as what happened)
    """The budget of a question is used up; the agent returns its best answer so far."""


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """Upper limits for one question; None means unlimited."""

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    money: float | None = None

    def __post_init__(self) -> None:
        """Reject negative limits; the comparison is written so that NaN is rejected too."""
        for name in _LIMIT_NAMES:
            amount = getattr(self, name)
            if amount is not None and not amount >= 0:
                raise ConfigError(f"{amount:g} {name} is not a valid limit; use 0 or more")

    def intersect(self, other: "UsageLimits") -> "UsageLimits":
        """The stricter of both limits, field by field."""
        return UsageLimits(
            _smaller(self.calls, other.calls),
            _smaller(self.tokens, other.tokens),
            _smaller(self.seconds, other.seconds),
            _smaller(self.money, other.money),
        )

    def __str__(self) -> str:
        """Format the limits for the trace."""
        amounts = {name: getattr(self, name) for name in _LIMIT_NAMES}
        parts = [f"{amount:g} {name}" for name, amount in amounts.items() if amount is not None]
        return ", ".join(parts) or "no limit"


UNLIMITED = UsageLimits()


def _smaller(a: Amount | None, b: Amount | None) -> Amount | None:
    return b if a is None else a if b is None else min(a, b)


@dataclass(eq=False)
class UsageBudget:
    """Limits and usage so far; shared by all tasks of one question."""

    limits: UsageLimits = UNLIMITED
    spent: UsageMeter = field(default_factory=UsageMeter)
    started: float = field(default_factory=monotonic)
    parent: "UsageBudget | None" = None
    """The budget this one was derived from; every call counts against both."""
    account: CallAccount | None = None
    """Who pays for the calls that are sent; None: the parent's, if it has one."""
    refusal: BudgetExceeded | None = None
    """Why the account did not pay for a call, if that happened."""
    _calls: int = 0
    _under_way: set[asyncio.Future[None]] = field(default_factory=set)

    def add(self, usage: Usage) -> None:
        """Count usage, against the parent too."""
        self.spent.add(usage)
        if self.parent is not None and self.parent.spent is not self.spent:
            self.parent.add(usage)

    @property
    def payer(self) -> CallAccount | None:
        """The account of this budget or of the nearest one that it was derived from."""
        if self.account is not None or self.parent is None:
            return self.account
        return self.parent.payer

    def note_refusal(self, error: BudgetExceeded) -> None:
        """Keep why a call was not paid for, here and in the budgets this one was derived from."""
        self.refusal = error
        if self.parent is not None:
            self.parent.note_refusal(error)

    @contextmanager
    def call_under_way(self) -> Iterator[None]:
        """Count a call as under way."""
        ended = asyncio.get_running_loop().create_future()
        self._under_way.add(ended)
        try:
            yield
        finally:
            self._under_way.remove(ended)
            ended.set_result(None)

    async def wait_for_calls(self) -> None:
        """Wait until the calls that are under way now have ended."""
        if self._under_way:
            await asyncio.wait(set(self._under_way))

    def seconds_left(self) -> float | None:
        """Seconds that remain, or None without a time limit."""
        if self.limits.seconds is None:
            return None
        return max(0.0, self.limits.seconds - (monotonic() - self.started))

    def check_time(self) -> None:
        """Raise if the time is up, for work that calls no model."""
        if self.seconds_left() == 0.0:
            raise BudgetExceeded(f"the budget of {self.limits.seconds:g} seconds is spent")

    def take_call(self) -> None:
        """Count one call, or raise naming the limit that is reached."""
        total, limits = self.spent.total, self.limits
        reached = {
            "calls": limits.calls is not None and self._calls >= limits.calls,
            "tokens": limits.tokens is not None and _total_tokens(total) >= limits.tokens,
            "seconds": self.seconds_left() == 0.0,
            "money": limits.money is not None and total.money >= limits.money,
        }
        for name, is_reached in reached.items():
            if is_reached:
                raise BudgetExceeded(f"the budget of {getattr(limits, name):g} {name} is spent")
        if self.parent is not None:
            self.parent.take_call()
        # Counted before sending, so that concurrent tasks cannot exceed the limit together.
        self._calls += 1


def _total_tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


@dataclass(frozen=True, eq=False)
class BudgetedChat:
    """Counts each call against `budget` and records its usage there and in `meter`."""

    inner: Chat
    budget: UsageBudget
    meter: UsageMeter
    price: Price = Price()
    """What a call is counted with whose reply nobody waited for."""

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request if the budget allows it."""
        self.budget.take_call()
        if (payer := self.budget.payer) is not None:
            request = replace(request, account=payer)
        try:
            async with asyncio.timeout(self.budget.seconds_left()):
                with self.budget.call_under_way():
                    reply = await self.inner(request, on_text)
        except BudgetExceeded as refusal:
            self.budget.note_refusal(refusal)
            # The caller may cancel its other calls now; they are paid, so their replies are kept.
            await self.budget.wait_for_calls()
            raise
        except TimeoutError as error:
            self._count_abandoned(request)
            seconds = self.budget.limits.seconds
            raise BudgetExceeded(f"the budget of {seconds:g} seconds is spent") from error
        except asyncio.CancelledError:
            self._count_abandoned(request)
            raise
        self._count(reply.usage)
        return reply

    def _count_abandoned(self, request: Request) -> None:
        """Count a call that was sent and given up: the endpoint has read its prompt."""
        usage = Usage(calls=1, prompt_tokens=estimate_prompt_tokens(request.messages))
        self._count(replace(usage, money=self.price.cost(usage)))

    def _count(self, usage: Usage) -> None:
        self.budget.add(usage)
        self.meter.add(usage)


@dataclass(frozen=True, eq=False)
class ChargedChat:
    """Charges each call to the account of its request, before it is sent; the innermost wrapper."""

    inner: Chat
    price: Price = Price()

    @property
    def name(self) -> str:
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request if its account pays for it."""
        if (account := request.account) is None:
            return await self.inner(request, on_text)
        # What a call costs whose reply nobody waited for: the endpoint has read its prompt.
        used = self._price(Usage(1, estimate_prompt_tokens(request.messages)))
        reply_tokens = request.max_tokens or DEFAULT_REPLY_TOKENS
        most = self._price(replace(used, completion_tokens=reply_tokens, money=0.0))
        await account.charge(most)
        try:
            reply = await self.inner(request, on_text)
            used = self._price(reply.usage)
        except EndpointError as error:
            if error.status is not None or error.not_listening:
                used = Usage()  # refused: the endpoint has done nothing that it could charge
            raise
        finally:
            await account.settle(most, used)
        return reply

    def _price(self, usage: Usage) -> Usage:
        return replace(usage, money=usage.money or self.price.cost(usage))
