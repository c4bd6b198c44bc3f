"""Chat models of one knowledge base, created on first use, with cached replies and spending."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from clew.config import ModelSettings, Price, Role
from clew.errors import ConfigError
from clew.layout import ASSUMED_WINDOW
from clew.llm.budget import BudgetedChat, ChargedChat, UsageBudget
from clew.llm.chat import Chat
from clew.llm.embed import Embedder
from clew.llm.fit_prompt import PromptRoom
from clew.llm.limits import ConcurrencyLimit
from clew.llm.roles import ChatGate, ResolvedModel, RoleChats, has_model, resolve_model
from clew.llm.trained_model import TrainedConfig, read_trained_config
from clew.llm.window import find_known_window, find_window
from clew.llm.wrappers import UsageMeter
from clew.store.protocol import KeyValueStore
from clew.types import Usage


@dataclass(frozen=True)
class ReplyCache:
    """Cache of model replies in a knowledge base's key-value store."""

    key_values: KeyValueStore
    space: str = ""
    """Replies of another space are not found."""

    async def get(self, keys: Sequence[str], /) -> Mapping[str, str]:
        """Return the cached replies among these keys."""
        found = await self.key_values.get("reply", [key + self.space for key in keys])
        return {key.removesuffix(self.space): text for key, text in found.items()}

    async def set(self, items: Mapping[str, str], /) -> None:
        """Store replies durably."""
        stored = {key + self.space: text for key, text in items.items()}
        await self.key_values.set("reply", stored)


@dataclass
class Models:
    """Chat models by role, and their usage so far."""

    settings: ModelSettings
    key_values: KeyValueStore
    meter: UsageMeter = field(default_factory=UsageMeter)
    chats: RoleChats | Mapping[Role, Chat] | None = None
    """The model of each role; if None, the settings decide at the first call."""
    limit: ConcurrencyLimit | None = None
    """A limit on calls at once that other knowledge bases share."""
    gate: ChatGate | None = None
    """Limits that other processes share."""
    budget: UsageBudget | None = None
    """What all calls together may use."""
    reply_space: str = ""
    """Where replies are cached; whoever may not know what others asked has a space apart."""
    embedders: dict[Role, Embedder] = field(default_factory=dict)
    """The models as embedders (LLMs-E); created from the settings at the first use."""
    _recorded: Usage = Usage()
    _rooms: dict[tuple[str, int | None], PromptRoom] = field(default_factory=dict)

    async def prompt_room(self, role: Role) -> PromptRoom:
        """The room of this role's model: its window, and what was learned of its tokens."""
        at = resolve_model(role, self.settings)
        # Kept with the replies: stored once, and never waits for another writer.
        key = f"window of {at.model} at {at.base_url}"
        if (key, at.window) not in self._rooms:
            known = await self.key_values.get("reply", [key])
            window = at.window or await self._find_window(at, key, known.get(key))
            # What was learnt beside another window, perhaps an assumed one, says nothing of this.
            learned = f"{key}, share of {window}"
            share = float((await self.key_values.get("reply", [learned])).get(learned, 1.0))
            room = PromptRoom(window, share, lambda new: self._keep(learned, str(new)))
            self._rooms.setdefault((key, at.window), room)
        return self._rooms[key, at.window]

    async def _find_window(self, at: ResolvedModel, key: str, known: str | None) -> int:
        """The context window: as the endpoint tells or told it, known by name, or assumed."""
        if isinstance(self.chats, Mapping):
            return ASSUMED_WINDOW
        if known is None:
            window = await find_window(at, self.settings.ca_file)
            if window is None:
                return ASSUMED_WINDOW
            known = str(window)
            await self._keep(key, known)
        return int(known) or find_known_window(at.model) or ASSUMED_WINDOW

    async def _keep(self, key: str, value: str) -> None:
        await self.key_values.set("reply", {key: value})

    async def record_spending(self) -> None:
        """Add the calls, tokens and money since the last call to the knowledge base's totals."""
        used = self.meter.total - self._recorded
        if not used.calls:
            return
        self._recorded += used  # before another task can run
        tokens = used.prompt_tokens + used.completion_tokens
        # Money last: what fails is added again the next time, and money must not count twice.
        amounts = {"calls": used.calls, "tokens": tokens, "spent": used.money}
        try:
            for key, amount in amounts.items():
                if amount:
                    await self.key_values.increment("manifest", key, amount)
        except BaseException:
            self._recorded -= used
            raise

    def count_recorded(self, usage: Usage) -> None:
        """Count usage that is in the knowledge base's totals already."""
        self.meter.add(usage)
        self._recorded += usage

    def meter_embedder(self, embed: Embedder | None) -> None:
        """Count the calls of an embedder at an endpoint, if its model has a price."""
        if embed is None or not self.settings.prices:
            return
        from clew.llm.embed_endpoint import EndpointCall, EndpointEmbedder

        if not isinstance(embed, EndpointEmbedder) or embed.model not in self.settings.prices:
            return
        price = self.settings.prices[embed.model]

        @asynccontextmanager
        async def count(about: Usage) -> AsyncIterator[EndpointCall]:
            call = EndpointCall(about)
            yield call
            self.meter.add(replace(call.used, money=price.cost(call.used)))

        embed.gate = count

    @property
    def reply_cache(self) -> ReplyCache:
        """The cache of replies that these models use."""
        return ReplyCache(self.key_values, self.reply_space)

    def has(self, role: Role) -> bool:
        """Whether a model is configured for this role."""
        return has_model(role, self.settings)

    @property
    def can_extract(self) -> bool:
        """Whether a model is configured for extraction."""
        return self.has("extract")

    def planner_training(self) -> TrainedConfig | None:
        """Training settings of the planning model, if its folder records them."""
        if not self.has("plan"):
            return None
        planner = resolve_model("plan", self.settings)
        return (
            read_trained_config(Path(planner.model)) if planner.client == "transformers" else None
        )

    def price(self, role: Role) -> Price:
        """The configured price of this role's model."""
        return self.settings.prices.get(resolve_model(role, self.settings).model, Price())

    def check_prices(self, roles: Sequence[Role]) -> None:
        """Raise if a model has no price: a money budget would count its calls as free."""
        for role in filter(self.has, roles):
            self._check_price(resolve_model(role, self.settings).model)

    def check_embedder_price(self, embed: Embedder | None) -> None:
        """Raise if an embedder at an endpoint has no price."""
        from clew.llm.embed_endpoint import EndpointEmbedder

        if isinstance(embed, EndpointEmbedder):
            self._check_price(embed.model)

    def _check_price(self, name: str) -> None:
        if name not in self.settings.prices:
            raise ConfigError(
                f"no price is set for {name!r}, so its cost is unknown; add it to prices "
                f'under [models] in clew.toml: prices = {{ "{name}" = {{ prompt = 0.15, '
                "completion = 0.6 } } (per million tokens, 0 if it is free)"
            )

    def embedder(self, role: Role) -> Embedder:
        """The role's model as an embedder, through the endpoint it is served at."""
        if role not in self.embedders:
            from clew.llm.embed_endpoint import EndpointEmbedder

            model = resolve_model(role, self.settings)
            if model.client not in ("http", "sdk"):
                raise ConfigError(
                    f"{model.model!r} runs in this process and gives no embeddings; serve it at an "
                    "endpoint that answers POST /embeddings, and set base_url under [models]"
                )
            self.embedders[role] = EndpointEmbedder(model.model, model.base_url, model.api_key)
        return self.embedders[role]

    def chat(self, role: Role) -> Chat:
        """The chat model for this role; raises ConfigError if none is configured."""
        if self.chats is None:
            cache = self.reply_cache
            self.chats = RoleChats(self.settings, cache, self.meter, self.limit, self.gate)
        chat = self.chats[role]
        if not isinstance(self.chats, RoleChats):  # those charge what they send
            chat = ChargedChat(chat, self.price(role) if self.has(role) else Price())
        return chat if self.budget is None else BudgetedChat(chat, self.budget, UsageMeter())
