"""The JSON of OpenAI-compatible chat endpoints: written from a request, read into a reply."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from clew.errors import AuthError, ModelError
from clew.llm.chat import EndpointError, Finish, Message, Reply, Request, Shape
from clew.llm.strict import strict_schema
from clew.types import Usage

TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
NO_MONEY = ("insufficient_quota", "billing_not_active", "account_deactivated")
OTHER_NAMES = {"max_tokens": "max_completion_tokens"}
"""What newer models call a parameter whose usual name they refuse."""
CAN_DO_WITHOUT = ("temperature", "seed", "stop", "stream_options", "max_completion_tokens")


@dataclass
class Dialect:
    """Which parameters one endpoint turned down so far."""

    refused: set[str] = field(default_factory=set)

    def learn(self, error: ModelError, sent: Mapping[str, Any]) -> bool:
        """Take note of a parameter the endpoint blames; true when it is worth asking again."""
        if not isinstance(error, EndpointError) or error.status not in (400, 422):
            return False
        for name in (*OTHER_NAMES, *CAN_DO_WITHOUT):
            if name in sent and name not in self.refused and f"'{name}'" in str(error):
                self.refused.add(name)
                return True
        return False

    def spell(self, body: dict[str, Any]) -> dict[str, Any]:
        """Rename or leave out what was refused."""
        for name in self.refused & body.keys():
            value = body.pop(name)
            other = OTHER_NAMES.get(name)
            if other and other not in self.refused:
                body[other] = value
        return body


def endpoint_name(model: str, base_url: str, extra: Mapping[str, Any]) -> str:
    """Name a model at an endpoint, with what is always sent along: all that sets it apart."""
    told = json.dumps(dict(extra), sort_keys=True) if extra else ""
    return f"{model} at {base_url.rstrip('/')} {told}".rstrip()


def body_of(model: str, request: Request, *, streaming: bool = False) -> dict[str, Any]:
    """Write a request as the endpoint wants it, leaving out what was not asked for."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": turn.role, "content": turn.content} for turn in request.messages],
        "temperature": request.temperature,
    }
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.stop:
        body["stop"] = list(request.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if request.shape is not None:
        body |= shape_of(request.shape)
    if streaming:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def written(body: Mapping[str, Any], request: Request) -> bytes:
    """The body as JSON; what thousands of requests have in common is written only once."""
    shape = request.shape
    shaped = shape_of(shape) if shape is not None else {}
    parts = []
    for name, value in body.items():
        if name == "messages":
            text = f"[{','.join([_turn_text(t.role, t.content) for t in request.messages])}]"
        elif shape is not None and value is shaped.get(name):
            text = _shape_text(shape, name)
        else:
            text = _JSON.encode(value)
        parts.append(f"{_JSON.encode(name)}:{text}")
    return f"{{{','.join(parts)}}}".encode("utf-8", "replace")


_JSON = json.JSONEncoder(ensure_ascii=False)


@lru_cache(64)
def _turn_text(role: str, content: str) -> str:
    return _JSON.encode({"role": role, "content": content})


@lru_cache(64)
def _shape_text(shape: Shape, part: str) -> str:
    return _JSON.encode(shape_of(shape)[part])


@lru_cache(256)
def shape_of(shape: Shape) -> dict[str, Any]:
    """Write the part of a request that asks for JSON; it is the same for thousands of them."""
    match shape.mode:
        case "schema":
            strict = strict_schema(shape.schema)
            wrapped = {
                "name": shape.name,
                "strict": strict is not None,
                "schema": strict if strict is not None else shape.schema,
            }
            return {"response_format": {"type": "json_schema", "json_schema": wrapped}}
        case "tool":
            function = {
                "name": shape.name,
                "description": "Give the answer.",
                "parameters": shape.schema,
            }
            return {
                "tools": [{"type": "function", "function": function}],
                "tool_choice": {"type": "function", "function": {"name": shape.name}},
            }
        case "json":
            return {"response_format": {"type": "json_object"}}


def reply_of(body: Mapping[str, Any], request: Request) -> Reply:
    """Read a whole completion; KeyError, TypeError and IndexError mean: this is none."""
    choice = body["choices"][0]
    message = choice["message"]
    finish = finish_of(choice.get("finish_reason"))
    text = message.get("content") or ""
    for call in message.get("tool_calls") or ():
        text = call["function"]["arguments"]
        break
    if isinstance(text, list):  # some endpoints answer in parts
        text = "".join(part.get("text", "") for part in text)
    elif isinstance(text, Mapping):  # and some with arguments that are JSON already
        text = json.dumps(text, ensure_ascii=False)
    if message.get("refusal"):
        text, finish = message["refusal"], "refusal"
    text = clean(str(text))
    usage = usage_of(body.get("usage"), request, text)
    return Reply(text, usage, finish, str(body.get("model") or ""))


def finish_of(reason: str | None) -> Finish:
    """Fold the endpoints' many reasons into three."""
    if reason in ("length", "max_tokens"):
        return "length"
    return "refusal" if reason in ("content_filter", "refusal", "safety") else "stop"


def clean(text: str) -> str:
    """Join or replace lone halves of characters: no store and no wire can carry them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def usage_of(given: Mapping[str, Any] | None, request: Request, text: str) -> Usage:
    """Read the bill, or estimate it where the endpoint sends none."""
    if given and given.get("prompt_tokens") is not None:
        return Usage(1, int(given["prompt_tokens"]), int(given.get("completion_tokens") or 0))
    return Usage(1, prompt_tokens(request.messages), tokens(text))


def tokens(text: str) -> int:
    """Estimate the tokens of a text in any script: four UTF-8 bytes each."""
    return (len(text) if text.isascii() else len(text.encode("utf-8", "replace"))) // 4 + 1


def prompt_tokens(messages: Iterable[Message]) -> int:
    """Estimate the tokens of a conversation, with the few that frame each turn."""
    return sum(tokens(turn.content) + 3 for turn in messages)


def read_json(raw: bytes) -> Any:
    """Read JSON whatever its bytes; ValueError means: this is none."""
    try:
        return from_json(raw)  # several times faster, and stricter
    except ValueError:
        pass
    try:
        return json.loads(raw)
    except UnicodeDecodeError:
        return json.loads(raw.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def error_of(
    status: int, headers: Mapping[str, str], raw: bytes, model: str, base_url: str
) -> ModelError:
    """Say in one sentence what an HTTP error means and what to do about it."""
    said, code = _complaint(raw)
    if status in (401, 402, 403) or code in NO_MONEY:
        return AuthError(
            f"{base_url} refuses the API key or the account (HTTP {status}: {said}): "
            "set OPENAI_API_KEY, or api_key in clew.toml, to a valid one."
        )
    if status == 404:
        return EndpointError(
            f"{base_url} has no model {model!r} (HTTP 404: {said}): check the model's name and "
            "the base URL, which usually ends in /v1.",
            status=status,
        )
    if 300 <= status < 400:
        where = headers.get("location", "elsewhere")
        return EndpointError(
            f"{base_url} points to {where} (HTTP {status}): set the base URL to where it is.",
            status=status,
        )
    return EndpointError(
        f"{base_url} failed on {model!r} (HTTP {status}: {said}).",
        status=status,
        retry_after=retry_after(headers, datetime.now(UTC)),
        transient=status in TRANSIENT,
    )


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Read how many seconds to wait: milliseconds, seconds or an HTTP date."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _complaint(raw: bytes) -> tuple[str, str]:
    """Find the endpoint's own words, made fit for one line, and its error code."""
    try:
        body = read_json(raw)
    except ValueError:
        body = raw.decode("utf-8", "replace")
    said, code = body, ""
    if isinstance(body, dict):
        error = body.get("error", body.get("detail", body))
        if isinstance(error, dict):
            said, code = error.get("message", error), str(error.get("code") or "")
            blamed = error.get("param")
            said = f"{said} ('{blamed}')" if blamed and f"'{blamed}'" not in str(said) else said
        else:
            said = error
    line = " ".join(clean(str(said)).split())
    return (line[:300] + "…" if len(line) > 300 else line or "no explanation"), code
