"""What a key has used today: every model call is charged before it is sent.

The amounts stand in the server's database, so all processes see one budget, and a process that is
killed has paid for what it sent.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from clew.llm.budget import BudgetExceeded
from clew.serve.core.keys import Key, KeyStore
from clew.types import Usage


class _MoneyShort(BudgetExceeded):
    """The money left may not be enough for another call, as calls under way have reserved some."""


@dataclass(eq=False)
class KeyAccount:
    """Pays for the model calls of one key in one process; used on one event loop."""

    keys: KeyStore
    key: Key
    _under_way: int = 0
    _settled: int = 0
    _waiters: list[asyncio.Future[None]] = field(default_factory=list)

    async def charge(self, most: Usage, /) -> None:
        """Take one call and the most money that it may cost; raise if that is not left."""
        while True:
            settled = self._settled
            try:
                await self._take(most)
            except _MoneyShort:
                # Calls reserve more than most of them cost: those under way may leave enough.
                if not await self._wait_for_change(settled):
                    raise
            else:
                self._under_way += 1
                return

    async def settle(self, most: Usage, used: Usage, /) -> None:
        """Give back what a call did not use."""
        try:
            await asyncio.to_thread(self.keys.spend, self.key.id, used - most)
        finally:
            self._under_way -= 1
            self._settled += 1
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def _wait_for_change(self, settled: int) -> bool:
        """Wait until a call has ended; False if there is none to wait for."""
        if self._settled == settled:
            if not self._under_way:
                return False
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        return True

    async def _take(self, most: Usage) -> None:
        # A thread goes on when its task is cancelled: what it took is then given back.
        taking = asyncio.ensure_future(asyncio.to_thread(self._take_now, most))
        try:
            await asyncio.shield(taking)
        except asyncio.CancelledError:
            with suppress(BudgetExceeded):
                await taking
                await asyncio.to_thread(self.keys.spend, self.key.id, Usage() - most)
            raise

    def _take_now(self, most: Usage) -> None:
        limits = self.key.limits
        with self.keys.database.transaction():
            calls, money = self.keys.spent_today(self.key.id)
            if limits.calls_per_day is not None and calls >= limits.calls_per_day:
                raise BudgetExceeded(
                    f"this key has used its {limits.calls_per_day} model calls for today"
                )
            if limits.money_per_day is not None and money + most.money > limits.money_per_day:
                raise _MoneyShort(
                    f"this key has used {money:.4g} of its {limits.money_per_day:g} for today, and "
                    f"another call may cost {most.money:.4g}"
                )
            self.keys.spend(self.key.id, most)
