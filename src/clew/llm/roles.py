"""Chat models by role (extract, plan, answer, judge), assembled from the settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from clew.config import Client, JsonMode, ModelSettings, Price, Role, RoleSettings
from clew.errors import ConfigError
from clew.llm.adaptive import AdaptiveChat
from clew.llm.budget import ChargedChat
from clew.llm.cache import Cache
from clew.llm.chat import Chat
from clew.llm.limits import (
    ConcurrencyLimit,
    ConcurrencyLimitedChat,
    RateLimitedChat,
    RateLimiter,
    RetryingChat,
    RetryPolicy,
    TimeoutChat,
)
from clew.llm.local_chat import LlamaChat, TransformersChat
from clew.llm.openai_chat import OpenAIChat, SdkChat
from clew.llm.structured import FixedModeChat
from clew.llm.trained_model import resolve_model_folder
from clew.llm.wrappers import CachedChat, MeteredChat, TracedChat, UsageMeter


@dataclass(frozen=True)
class ResolvedModel:
    """The model and endpoint of one role, with every default filled in."""

    model: str
    base_url: str
    api_key: str = field(repr=False)
    client: Client
    extra: Mapping[str, Any]
    shape_by: JsonMode
    window: int | None = None


def has_model(role: Role, settings: ModelSettings) -> bool:
    """Whether a model is configured for this role."""
    return bool(getattr(settings, role).model or settings.model)


def resolve_model(role: Role, settings: ModelSettings) -> ResolvedModel:
    """Resolve a role's model settings against the shared defaults."""
    role_settings: RoleSettings = getattr(settings, role)
    model = role_settings.model or settings.model
    if not model:
        raise ConfigError(
            f"no model is set for {role!r}: set CLEW_MODEL, or model under [models] in clew.toml."
        )
    base_url = role_settings.base_url or settings.base_url
    # An API key is only ever sent to the endpoint it was configured for.
    key = settings.api_key if base_url == settings.base_url else SecretStr("")
    effort = role_settings.reasoning_effort
    effort = settings.reasoning_effort if effort is None else effort
    extra = settings.extra if role_settings.extra is None else role_settings.extra
    return ResolvedModel(
        model,
        base_url,
        (role_settings.api_key or key).get_secret_value(),
        role_settings.client or settings.client,
        {"reasoning_effort": effort} | extra if effort else extra,
        role_settings.shape_by or settings.shape_by,
        role_settings.window or (settings.window if not role_settings.model else None),
    )


def with_trained_model(settings: ModelSettings, folder: str) -> ModelSettings:
    """Settings with a trained model for planning, and for all roles where no model is set."""
    overrides: dict[str, Any] = {"model": folder, "client": "transformers"}
    update: dict[str, Any] = {"plan": RoleSettings(**overrides)}
    return settings.model_copy(update=update if settings.model else {**overrides, **update})


def with_named_model(settings: ModelSettings, name: str) -> ModelSettings:
    """Settings with the model `--model` names: a folder of `clew train`, or an endpoint's model."""
    if resolve_model_folder(name) is not None:
        return with_trained_model(settings, name)
    return settings.model_copy(update={"model": name})


def create_client(spec: ResolvedModel, settings: ModelSettings) -> Chat:
    """Create the client without wrappers."""
    match spec.client:
        case "http":
            return OpenAIChat(
                spec.model,
                spec.base_url,
                spec.api_key,
                spec.extra,
                connect_timeout=settings.connect_timeout,
                read_timeout=settings.timeout,
                ca_file=settings.ca_file,
            )
        case "sdk":
            return SdkChat(spec.model, spec.base_url, spec.api_key, spec.extra, settings.timeout)
        case "llama":
            return LlamaChat(spec.model)
        case "transformers":
            return TransformersChat(spec.model)


ChatGate = Callable[[Chat, str], Chat]
"""Wraps the client of a model by limits that several processes share."""


def create_limited_client(
    spec: ResolvedModel,
    settings: ModelSettings,
    shared: ConcurrencyLimit | None = None,
    gate: ChatGate | None = None,
) -> Chat:
    """Create the client with its limits; a call waiting for a retry holds no concurrency slot.

    `shared` is a limit that the models of several knowledge bases have in common.
    """
    chat: Chat = TimeoutChat(create_client(spec, settings), settings.timeout)
    chat = ChargedChat(chat, settings.prices.get(spec.model, Price()))
    if shared is not None:  # innermost: a call that waits for its own turn takes no other's slot
        chat = ConcurrencyLimitedChat(chat, shared)
    if spec.client in ("llama", "transformers"):  # these run one call at a time
        chat = ConcurrencyLimitedChat(chat, 1)
    elif settings.adapt:
        chat = AdaptiveChat(chat, settings.concurrency)
    else:
        chat = ConcurrencyLimitedChat(chat, settings.concurrency)
    requests, tokens = settings.requests_per_minute, settings.tokens_per_minute
    if gate is not None:
        chat = gate(chat, spec.model)
    elif requests or tokens:
        chat = RateLimitedChat(
            chat,
            RateLimiter(requests) if requests else None,
            RateLimiter(tokens) if tokens else None,
        )
    return RetryingChat(chat, RetryPolicy(tries=settings.tries, total_seconds=settings.retry_for))


@dataclass(frozen=True, eq=False)
class RoleChats:
    """Chats by role, each created on first use.

    So a role without a model, or whose client is not installed, does not affect other roles.
    Roles at the same endpoint share its limits.
    """

    settings: ModelSettings
    cache: Cache | None = None
    meter: UsageMeter = field(default_factory=UsageMeter)
    limit: ConcurrencyLimit | None = None
    """A limit on calls at once that others share."""
    gate: ChatGate | None = None
    """If given, limits that other processes share take the place of the limits on rates."""
    _by_endpoint: dict[tuple[str, ...], Chat] = field(default_factory=dict, init=False, repr=False)
    _chats: dict[Role, Chat] = field(default_factory=dict, init=False, repr=False)

    def __getitem__(self, role: Role) -> Chat:
        """The role's chat; ConfigError if no model is configured for it."""
        if role not in self._chats:
            self._chats[role] = self._create_chat(resolve_model(role, self.settings))
        return self._chats[role]

    def _create_chat(self, at: ResolvedModel) -> Chat:
        """Create or reuse the wrapped client: one for all roles of the same endpoint and model."""
        key = (at.model, at.base_url, at.api_key, at.client, str(sorted(at.extra.items())))
        chat = self._by_endpoint.get(key)
        if chat is None:
            client = create_limited_client(at, self.settings, self.limit, self.gate)
            chat = self._wrap(client, at.model)
            # Threads may create it concurrently: all use the first one stored.
            chat = self._by_endpoint.setdefault(key, chat)
        if at.shape_by == "auto":
            return chat
        return FixedModeChat(chat, None if at.shape_by == "text" else at.shape_by)

    def _wrap(self, chat: Chat, model: str) -> Chat:
        if self.cache is not None:
            chat = CachedChat(chat, self.cache)
        return MeteredChat(TracedChat(chat), self.meter, self.settings.prices.get(model, Price()))


def create_chat(
    role: Role, settings: ModelSettings, cache: Cache | None = None, meter: UsageMeter | None = None
) -> Chat:
    """Create the chat of one role."""
    return RoleChats(settings, cache, meter or UsageMeter())[role]
