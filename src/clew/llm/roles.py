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
from clew.llm.structured import pin
from clew.llm.trained import folder_named
from clew.llm.transformers_chat import TransformersChat
from clew.llm.wrap import Cached, Counted, Meter, Traced
from clew.model_settings import (
    ROLES,
    Client,
    ModelSettings,
    Price,
    Role,
    RoleSettings,
    ShapeBy,
)

__all__ = [
    *("ROLES", "ModelSettings", "Role", "RoleSettings"),
    *("chat_for", "chats_for", "chosen", "named_model", "trained_model"),
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


def chosen(role: Role, settings: ModelSettings) -> Chosen:
    """Fill a role's settings up with those for all."""
    own: RoleSettings = getattr(settings, role)
    model = own.model or settings.model
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


def chats_for(
    settings: ModelSettings, cache: Cache | None = None, meter: Meter | None = None
) -> Mapping[Role, Chat]:
    """Assemble the chats of all roles; roles at the same endpoint share its limits."""
    shared: dict[tuple[str, ...], Chat] = {}
    chats: dict[Role, Chat] = {}
    for role in ROLES:
        at = chosen(role, settings)
        key = (at.model, at.base_url, at.api_key, at.client, str(sorted(at.extra.items())))
        if key not in shared:
            shared[key] = _with_habits(patient_client(at, settings), at, settings, cache, meter)
        chats[role] = shared[key]
    return chats


def chat_for(
    role: Role, settings: ModelSettings, cache: Cache | None = None, meter: Meter | None = None
) -> Chat:
    """Assemble the chat of one role."""
    at = chosen(role, settings)
    return _with_habits(patient_client(at, settings), at, settings, cache, meter)


def _with_habits(
    chat: Chat, at: Chosen, settings: ModelSettings, cache: Cache | None, meter: Meter | None
) -> Chat:
    if at.shape_by != "auto":
        pin(chat.name, None if at.shape_by == "text" else at.shape_by)
    if cache is not None:
        chat = Cached(chat, cache)
    price = settings.prices.get(at.model, Price())
    return Counted(Traced(chat), meter or Meter(), price)
