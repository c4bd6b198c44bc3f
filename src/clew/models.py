"""The chat models of one knowledge base: assembled on first use, replies kept in its memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clew.llm.chat import Chat
from clew.llm.roles import chats_for, chosen
from clew.llm.wrap import Meter
from clew.model_settings import ModelSettings, Price, Role
from clew.store.protocol import Memory


@dataclass(frozen=True)
class Replies:
    """A knowledge base's memory as the cache of model replies."""

    memory: Memory

    async def recall(self, keys: Sequence[str], /) -> Mapping[str, str]:
        """Return those that are known."""
        return await self.memory.recall("reply", keys)

    async def remember(self, items: Mapping[str, str], /) -> None:
        """Keep them; on return they survive a crash."""
        await self.memory.remember("reply", items)


@dataclass
class Models:
    """Chats by role, and what they cost so far."""

    settings: ModelSettings
    memory: Memory
    meter: Meter = field(default_factory=Meter)
    _chats: Mapping[Role, Chat] = field(default_factory=dict)
    _booked: float = 0.0

    async def book(self) -> None:
        """Add what was spent since the last time to the knowledge base's account."""
        total = self.meter.total.money
        if total > self._booked:
            held = (await self.memory.recall("manifest", ["spent"])).get("spent", "0")
            spent = float(held) + total - self._booked
            await self.memory.remember("manifest", {"spent": repr(round(spent, 9))})
            self._booked = total

    @property
    def configured(self) -> bool:
        """Whether a model is set that can extract."""
        return bool(self.settings.model or self.settings.extract.model)

    @property
    def answers(self) -> bool:
        """Whether a model is set that can write answers."""
        return bool(self.settings.model or self.settings.answer.model)

    def price(self, role: Role) -> Price:
        """What this role's model costs, as the settings say."""
        return self.settings.prices.get(chosen(role, self.settings).model, Price())

    def chat(self, role: Role) -> Chat:
        """The model that does this; one clear error when none is set."""
        if not self._chats:
            self._chats = chats_for(self.settings, Replies(self.memory), self.meter)
        return self._chats[role]
