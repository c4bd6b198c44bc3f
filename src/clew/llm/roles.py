"""Which model does what: the chats of four roles, assembled from the settings."""

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
    """Where one role's calls go, with every default filled in."""

    model: str
    base_url: str
    api_key: str = field(repr=False)
    client: Client
    extra: Mapping[str, Any]
    shape_by: ShapeBy


def _model(role: Role, settings: ModelSettings) -> str:
    own: RoleSettings = getattr(settings, role)
    return own.model or settings.model


def has_model(role: Role, settings: ModelSettings) -> bool:
    """Whether a model is set for this role; without one the role is not there."""
    return bool(_model(role, settings))


def chosen(role: Role, settings: ModelSettings) -> Chosen:
    """Fill a role's settings up with those for all."""
    own: RoleSettings = getattr(settings, role)
    model = _model(role, settings)
    if not model:
        raise ConfigError(
            f"no model is set for {role!r}: set CLEW_MODEL, or model under [models] in clew.toml."
        )
    base_url = own.base_url or settings.base_url
    # A key belongs to the endpoint it was given for: it never travels to another one.
    key = settings.api_key if base_url == settings.base_url else SecretStr("")
    return Chosen(
        model,
        base_url,
        (own.api_key or key).get_secret_value(),
        own.client or settings.client,
        settings.extra if own.extra is None else own.extra,
        own.shape_by or settings.shape_by,
    )


def trained_model(settings: ModelSettings, folder: str) -> ModelSettings:
    """The settings with a trained model for planning; for all else too where none is set."""
    mine: dict[str, Any] = {"model": folder, "client": "transformers"}
    changed: dict[str, Any] = {"plan": RoleSettings(**mine)}
    return settings.model_copy(update=changed if settings.model else {**mine, **changed})


def named_model(settings: ModelSettings, name: str) -> ModelSettings:
    """The settings with what `--model` names: a folder of `clew train`, or an endpoint's model."""
    if folder_named(name) is not None:
        return trained_model(settings, name)
    return settings.model_copy(update={"model": name})


def client_for(at: Chosen, settings: ModelSettings) -> Chat:
    """Build the bare client."""
    match at.client:
        case "http":
            return OpenAIChat(
                at.model,
                at.base_url,
                at.api_key,
                at.extra,
                connect_timeout=settings.connect_timeout,
                read_timeout=settings.timeout,
                ca_file=settings.ca_file,
            )
        case "sdk":
            return SdkChat(at.model, at.base_url, at.api_key, at.extra, settings.timeout)
        case "llama":
            return LlamaChat(at.model)
        case "transformers":
            return TransformersChat(at.model)


def patient_client(at: Chosen, settings: ModelSettings) -> Chat:
    """Wrap the client in its limits; a call that waits to be tried again holds no place."""
    chat: Chat = TimeLimited(client_for(at, settings), settings.timeout)
    alone = at.client in ("llama", "transformers")  # in this process: one at a time
    chat = Limited(chat, 1 if alone else settings.concurrency)
    requests, tokens = settings.requests_per_minute, settings.tokens_per_minute
    if requests or tokens:
        chat = Paced(
            chat, Bucket(requests) if requests else None, Bucket(tokens) if tokens else None
        )
    return Retrying(chat, Patience(tries=settings.tries, total=settings.retry_for))


@dataclass(frozen=True, eq=False)
class Chats:
    """The chats of the roles, each made when it is first asked for.

    So a role without a model, or one whose client cannot be had here, troubles no other role.
    Roles at the same endpoint share its limits.
    """

    settings: ModelSettings
    cache: Cache | None = None
    meter: Meter = field(default_factory=Meter)
    _places: dict[tuple[str, ...], Chat] = field(default_factory=dict, init=False, repr=False)
    _chats: dict[Role, Chat] = field(default_factory=dict, init=False, repr=False)

    def __getitem__(self, role: Role) -> Chat:
        """The role's chat; ConfigError where no model is set for it."""
        if role not in self._chats:
            self._chats[role] = self._made(chosen(role, self.settings))
        return self._chats[role]

    def _made(self, at: Chosen) -> Chat:
        """The client with its habits: one for all roles that go to the same place."""
        place = (at.model, at.base_url, at.api_key, at.client, str(sorted(at.extra.items())))
        chat = self._places.get(place)
        if chat is None:
            chat = self._with_habits(patient_client(at, self.settings), at.model)
            # Threads may ask at once: what the first has made is for all.
            chat = self._places.setdefault(place, chat)
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
    """Assemble the chat of one role."""
    return Chats(settings, cache, meter or Meter())[role]
