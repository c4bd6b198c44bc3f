"""Chat models by role (extract, plan, answer, judge), assembled from the settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from clew.errors import ConfigError
from clew.llm.cache import Cache
from clew.llm.chat import Chat
from clew.llm.limits import Bucket, Limited, Paced, TimeLimited
from clew.llm.llama import LlamaChat
from clew.llm.openai_http import OpenAIChat
from clew.llm.openai_sdk import SdkChat
from clew.llm.retry import Patience, Retrying
from clew.llm.structured import Shaped
from clew.llm.trained import folder_named
from clew.llm.transformers_chat import TransformersChat
from clew.llm.wrap import Cached, Counted, Meter, Traced
from clew.model_settings import (
    Client,
    ModelSettings,
    Price,
    Role,
    RoleSettings,
    ShapeBy,
)

__all__ = [
    *("ModelSettings", "Role", "RoleSettings"),
    *("Chats", "chat_for", "chosen", "has_model", "named_model", "trained_model"),
]


@dataclass(frozen=True)
class Chosen:
    """The model and endpoint of one role, with every default filled in."""

    model: str
    base_url: str
    api_key: str = field(repr=False)
    client: Client
    extra: Mapping[str, Any]
    shape_by: ShapeBy


def _model(role: Role, settings: ModelSettings) -> str:
    role_settings: RoleSettings = getattr(settings, role)
    return role_settings.model or settings.model


def has_model(role: Role, settings: ModelSettings) -> bool:
    """Whether a model is configured for this role."""
    return bool(_model(role, settings))


def chosen(role: Role, settings: ModelSettings) -> Chosen:
    """Resolve a role's model settings against the shared defaults."""
    role_settings: RoleSettings = getattr(settings, role)
    model = _model(role, settings)
    if not model:
        raise ConfigError(
            f"no model is set for {role!r}: set CLEW_MODEL, or model under [models] in clew.toml."
        )
    base_url = role_settings.base_url or settings.base_url
    # An API key is only ever sent to the endpoint it was configured for.
    key = settings.api_key if base_url == settings.base_url else SecretStr("")
    return Chosen(
        model,
        base_url,
        (role_settings.api_key or key).get_secret_value(),
        role_settings.client or settings.client,
        settings.extra if role_settings.extra is None else role_settings.extra,
        role_settings.shape_by or settings.shape_by,
    )


def trained_model(settings: ModelSettings, folder: str) -> ModelSettings:
    """Settings with a trained model for planning, and for all roles where no model is set."""
    overrides: dict[str, Any] = {"model": folder, "client": "transformers"}
    update: dict[str, Any] = {"plan": RoleSettings(**overrides)}
    return settings.model_copy(update=update if settings.model else {**overrides, **update})


def named_model(settings: ModelSettings, name: str) -> ModelSettings:
    """Settings with the model `--model` names: a folder of `clew train`, or an endpoint's model."""
    if folder_named(name) is not None:
        return trained_model(settings, name)
    return settings.model_copy(update={"model": name})


def client_for(spec: Chosen, settings: ModelSettings) -> Chat:
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


def patient_client(spec: Chosen, settings: ModelSettings) -> Chat:
    """Create the client with its limits; a call waiting for a retry holds no concurrency slot."""
    chat: Chat = TimeLimited(client_for(spec, settings), settings.timeout)
    in_process = spec.client in ("llama", "transformers")  # these run one call at a time
    chat = Limited(chat, 1 if in_process else settings.concurrency)
    requests, tokens = settings.requests_per_minute, settings.tokens_per_minute
    if requests or tokens:
        chat = Paced(
            chat, Bucket(requests) if requests else None, Bucket(tokens) if tokens else None
        )
    return Retrying(chat, Patience(tries=settings.tries, total=settings.retry_for))


@dataclass(frozen=True, eq=False)
class Chats:
    """Chats by role, each created on first use.

    So a role without a model, or whose client is not installed, does not affect other roles.
    Roles at the same endpoint share its limits.
    """

    settings: ModelSettings
    cache: Cache | None = None
    meter: Meter = field(default_factory=Meter)
    _places: dict[tuple[str, ...], Chat] = field(default_factory=dict, init=False, repr=False)
    _chats: dict[Role, Chat] = field(default_factory=dict, init=False, repr=False)

    def __getitem__(self, role: Role) -> Chat:
        """The role's chat; ConfigError if no model is configured for it."""
        if role not in self._chats:
            self._chats[role] = self._made(chosen(role, self.settings))
        return self._chats[role]

    def _made(self, at: Chosen) -> Chat:
        """Create or reuse the wrapped client: one for all roles of the same endpoint and model."""
        key = (at.model, at.base_url, at.api_key, at.client, str(sorted(at.extra.items())))
        chat = self._places.get(key)
        if chat is None:
            chat = self._with_habits(patient_client(at, self.settings), at.model)
            # Threads may create it concurrently: all use the first one stored.
            chat = self._places.setdefault(key, chat)
        if at.shape_by == "auto":
            return chat
        return Shaped(chat, None if at.shape_by == "text" else at.shape_by)

    def _with_habits(self, chat: Chat, model: str) -> Chat:
        if self.cache is not None:
            chat = Cached(chat, self.cache)
        return Counted(Traced(chat), self.meter, self.settings.prices.get(model, Price()))


def chat_for(
    role: Role, settings: ModelSettings, cache: Cache | None = None, meter: Meter | None = None
) -> Chat:
    """Create the chat of one role."""
    return Chats(settings, cache, meter or Meter())[role]
