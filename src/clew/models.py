"""Chat models of one knowledge base, created on first use, with cached replies and spending."""

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
    """Cache of model replies in a knowledge base's key-value store."""

    memory: Memory

    async def recall(self, keys: Sequence[str], /) -> Mapping[str, str]:
        """Return the cached replies among these keys."""
        return await self.memory.recall("reply", keys)

    async def remember(self, items: Mapping[str, str], /) -> None:
        """Store replies durably."""
        await self.memory.remember("reply", items)


@dataclass
class Models:
    """Chat models by role, and their usage so far."""

    settings: ModelSettings
    memory: Memory
    meter: Meter = field(default_factory=Meter)
    _chats: Chats | Mapping[Role, Chat] | None = None
    _booked: float = 0.0

    async def book(self) -> None:
        """Add the money spent since the last call to the knowledge base's total."""
        spent = self.meter.total.money - self._booked
        if spent > 0:
            self._booked += spent  # before another task can run
            try:
                await self.memory.add_up("manifest", "spent", spent)
            except BaseException:
                self._booked -= spent
                raise

    def has(self, role: Role) -> bool:
        """Whether a model is configured for this role."""
        return has_model(role, self.settings)

    @property
    def configured(self) -> bool:
        """Whether a model is configured for extraction."""
        return self.has("extract")

    def trained(self) -> Trained | None:
        """Training settings of the planning model, if its folder records them."""
        if not self.has("plan"):
            return None
        planner = chosen("plan", self.settings)
        return trained_as(Path(planner.model)) if planner.client == "transformers" else None

    def price(self, role: Role) -> Price:
        """The configured price of this role's model."""
        return self.settings.prices.get(chosen(role, self.settings).model, Price())

    def check_prices(self, roles: Sequence[Role]) -> None:
        """Raise if a model has no price: a money budget would count its calls as free."""
        for role in filter(self.has, roles):
            name = chosen(role, self.settings).model
            if name not in self.settings.prices:
                raise ConfigError(
                    f"no price is set for {name!r}, so money cannot be counted; add it to prices "
                    f'under [models] in clew.toml: prices = {{ "{name}" = {{ prompt = 0.15, '
                    "completion = 0.6 } } (per million tokens, 0 where it is free)"
                )

    def chat(self, role: Role) -> Chat:
        """The chat model for this role; raises ConfigError if none is configured."""
        if self._chats is None:
            self._chats = Chats(self.settings, Replies(self.memory), self.meter)
        return self._chats[role]
