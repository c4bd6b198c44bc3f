"""The chat models of one knowledge base: assembled on first use, replies kept in its memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clew.errors import ConfigError
from clew.llm.chat import Chat
from clew.llm.roles import chats_for, chosen
from clew.llm.trained import Trained, trained_as
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

    def trained(self) -> Trained | None:
        """How the planning model was trained, where it is a folder that says so."""
        if not (self.settings.plan.model or self.settings.model):
            return None
        at = chosen("plan", self.settings)
        return trained_as(Path(at.model)) if at.client == "transformers" else None

    def price(self, role: Role) -> Price:
        """What this role's model costs, as the settings say."""
        return self.settings.prices.get(chosen(role, self.settings).model, Price())

    def check_prices(self, roles: Sequence[Role]) -> None:
        """Refuse to count money where a model has no price: its calls would seem to cost none."""
        for role in roles:
            name = chosen(role, self.settings).model
            if name not in self.settings.prices:
                raise ConfigError(
                    f"no price is set for {name!r}, so money cannot be counted; add it to prices "
                    f'under [models] in clew.toml: prices = {{ "{name}" = {{ prompt = 0.15, '
                    "completion = 0.6 } } (per million tokens, 0 where it is free)"
                )

    def chat(self, role: Role) -> Chat:
        """The model that does this; one clear error when none is set."""
        chosen(role, self.settings)  # the error names the role that is asked for
        if not self._chats:
            self._chats = chats_for(self.settings, Replies(self.memory), self.meter)
        return self._chats[role]
