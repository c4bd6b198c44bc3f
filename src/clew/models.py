"""The chat models of one knowledge base: assembled on first use, replies kept in its memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clew.errors import ConfigError
from clew.llm.chat import Chat
from clew.llm.roles import Chats, chosen, has_model
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
    _chats: Chats | Mapping[Role, Chat] | None = None
    _booked: float = 0.0

    async def book(self) -> None:
        """Add what was spent since the last time to the knowledge base's account."""
        fresh = self.meter.total.money - self._booked
        if fresh > 0:
            self._booked += fresh  # before anyone else can look
            try:
                await self.memory.add_up("manifest", "spent", fresh)
            except BaseException:
                self._booked -= fresh
                raise

    def has(self, role: Role) -> bool:
        """Whether a model is set that does this."""
        return has_model(role, self.settings)

    @property
    def configured(self) -> bool:
        """Whether a model is set that can extract."""
        return self.has("extract")

    def trained(self) -> Trained | None:
        """How the planning model was trained, where it is a folder that says so."""
        if not self.has("plan"):
            return None
        at = chosen("plan", self.settings)
        return trained_as(Path(at.model)) if at.client == "transformers" else None

    def price(self, role: Role) -> Price:
        """What this role's model costs, as the settings say."""
        return self.settings.prices.get(chosen(role, self.settings).model, Price())

    def check_prices(self, roles: Sequence[Role]) -> None:
        """Refuse to count money where a model has no price: its calls would seem to cost none."""
        for role in filter(self.has, roles):
            name = chosen(role, self.settings).model
            if name not in self.settings.prices:
                raise ConfigError(
                    f"no price is set for {name!r}, so money cannot be counted; add it to prices "
                    f'under [models] in clew.toml: prices = {{ "{name}" = {{ prompt = 0.15, '
                    "completion = 0.6 } } (per million tokens, 0 where it is free)"
                )

    def chat(self, role: Role) -> Chat:
        """The model that does this; one clear error when none is set."""
        if self._chats is None:
            self._chats = Chats(self.settings, Replies(self.memory), self.meter)
        return self._chats[role]
