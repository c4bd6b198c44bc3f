"""JSON of OpenAI-compatible endpoints: request bodies, replies, usage, errors, strict schemas."""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from clew.errors import AuthError, ModelError
from clew.llm.chat import (
    ContextTooLong,
    EndpointError,
    FinishReason,
    Message,
    Reply,
    Request,
    ResponseFormat,
)
from clew.llm.http import HttpClient, auth_headers
from clew.llm.tools import without_wants
from clew.types import Usage

MAX_BODY_BYTES = 256 * 1024 * 1024  # of a response with vectors
ANNOTATION_KEYS = frozenset({"default", "title", "examples"})


class _NoStrictForm(Exception):  # noqa: N818  (never leaves this file)
    """The schema has an open object and no strict form."""


def to_strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert a schema to strict mode, or return None if it has no strict form."""
    try:
        return _close_objects(schema)
    except _NoStrictForm:
        return None


def _close_objects(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("type") == "object" and "properties" not in schema:
        raise _NoStrictForm  # a mapping with any keys
    closed: dict[str, Any] = {}
    for key, part in schema.items():
        match key:
            case "properties" | "$defs":
                closed[key] = {name: _close_objects(each) for name, each in part.items()}
            case "anyOf" | "oneOf" | "allOf":
                closed[key] = [_close_objects(each) for each in part]
            case "items":
                closed[key] = _close_objects(part)
            case "prefixItems":
                closed["items"] = _close_objects(_shared_item_schema(part))
            case _ if key not in ANNOTATION_KEYS:
                closed[key] = part
    if "properties" in closed:
        closed |= {"additionalProperties": False, "required": list(closed["properties"])}
    return closed


def _shared_item_schema(parts: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Item schema of a tuple whose items are all alike: strict mode has no tuples."""
    first, *others = parts
    if any(other != first for other in others):
        raise _NoStrictForm
    return first


_BYTES_PER_TOKEN = 4
_MAX_TOKEN_COUNT = 10**9  # larger counts of one call are implausible
PARAMETER_ALIASES = {"max_tokens": "max_completion_tokens"}
"""New names of parameters whose usual name newer models reject."""
OPTIONAL_PARAMETERS = ("temperature", "seed", "stop", "stream_options", "max_completion_tokens")


@dataclass
class ParameterSupport:
    """The parameters one endpoint has rejected so far."""

    unsupported: set[str] = field(default_factory=set)

    def note_refusal(self, error: ModelError, sent: Mapping[str, Any]) -> bool:
        """Record a parameter the error names; true if the request is worth sending again."""
        if not isinstance(error, EndpointError) or error.status not in (400, 422):
            return False
        for name in (*PARAMETER_ALIASES, *OPTIONAL_PARAMETERS):
            if name in sent and name not in self.unsupported and f"'{name}'" in str(error):
                self.unsupported.add(name)
                return True
        return False

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        """Rename or drop rejected parameters."""
        for name in self.unsupported & body.keys():
            value = body.pop(name)
            other = PARAMETER_ALIASES.get(name)
            if other and other not in self.unsupported:
                body[other] = value
        return body


def endpoint_name(model: str, base_url: str, extra: Mapping[str, Any]) -> str:
    """Name a model by its endpoint and extra parameters."""
    parameters = json.dumps(dict(extra), sort_keys=True) if extra else ""
    return f"{model} at {base_url.rstrip('/')} {parameters}".rstrip()


def build_body(model: str, request: Request, *, streaming: bool = False) -> dict[str, Any]:
    """Build the request body, leaving out unset parameters."""
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
    if request.response_format is not None:
        body |= build_response_format(request.response_format)
    if streaming:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def encode_body(body: Mapping[str, Any], request: Request) -> bytes:
    """Encode the body as JSON; parts that many requests share are encoded once."""
    shape = request.response_format
    format_fields = build_response_format(shape) if shape is not None else {}
    parts = []
    for name, value in body.items():
        if name == "messages":
            text = f"[{','.join([_encode_message(t.role, t.content) for t in request.messages])}]"
        elif shape is not None and value is format_fields.get(name):
            text = _encode_format_part(shape, name)
        else:
            text = _ENCODER.encode(value)
        parts.append(f"{_ENCODER.encode(name)}:{text}")
    return f"{{{','.join(parts)}}}".encode("utf-8", "replace")


_ENCODER = json.JSONEncoder(ensure_ascii=False)


@lru_cache(64)
def _encode_message(role: str, content: str) -> str:
    return _ENCODER.encode({"role": role, "content": content})


@lru_cache(64)
def _encode_format_part(shape: ResponseFormat, part: str) -> str:
    return _ENCODER.encode(build_response_format(shape)[part])


@lru_cache(256)
def build_response_format(shape: ResponseFormat) -> dict[str, Any]:
    """Build the request fields that ask for JSON; cached, as many requests share them."""
    match shape.mode:
        case "schema":
            strict = to_strict_schema(shape.schema)
            wrapped = {
                "name": shape.name,
                "strict": strict is not None,
                "schema": strict if strict is not None else shape.schema,
            }
            return {"response_format": {"type": "json_schema", "json_schema": wrapped}}
        case "tool":
            own = _describe_function(shape.name, "Give the answer.", shape.schema)
            return {
                "tools": [own],
                "tool_choice": {"type": "function", "function": {"name": shape.name}},
            }
        case "tools" | "tools_auto":
            functions = [_describe_function(one.name, one.about, one.schema) for one in shape.tools]
            schema = without_wants(shape.schema)
            if schema["properties"]:
                about = schema.pop("description", "Give the answer.")
                functions.append(_describe_function(shape.name, about, schema))
            choice = "required" if shape.mode == "tools" else "auto"
            return {"tools": functions, "tool_choice": choice}
        case "json":
            return {"response_format": {"type": "json_object"}}


def _describe_function(name: str, about: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": about, "parameters": schema}
    return {"type": "function", "function": function}


def parse_reply(body: Mapping[str, Any], request: Request) -> Reply:
    """Parse a completion; KeyError, TypeError and IndexError mean that it is not one."""
    choice = body["choices"][0]
    message = choice["message"]
    finish = parse_finish_reason(choice.get("finish_reason"))
    text = message.get("content") or ""
    if isinstance(text, list):  # some endpoints return content parts
        text = "".join(part.get("text", "") for part in text)
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    calls = [(str(function.get("name")), function["arguments"]) for function in functions]
    text = join_reply(request, calls, str(text))
    if message.get("refusal"):
        text, finish = message["refusal"], "refusal"
    text = repair_surrogates(text)
    usage = parse_usage(body.get("usage"), request, text)
    return Reply(text, usage, finish, repair_surrogates(str(body.get("model") or "")))


def join_reply(request: Request, calls: Sequence[tuple[str, Any]], said: str) -> str:
    """Return the text of a reply: what was said, or the tool calls as JSON."""
    shape = request.response_format
    if shape is not None and shape.offers_tools:
        return shape.read_calls(calls, said)
    if not calls:
        return said
    arguments = calls[0][1]  # some endpoints give them as parsed JSON
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def parse_finish_reason(reason: str | None) -> FinishReason:
    """Map the endpoints' finish reasons to ours."""
    if reason in ("length", "max_tokens"):
        return "length"
    return "refusal" if reason in ("content_filter", "refusal", "safety") else "stop"


def repair_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def parse_usage(given: Any, request: Request, text: str) -> Usage:
    """Parse the token usage; estimate counts that are missing or implausible."""
    usage = given if isinstance(given, Mapping) else {}
    prompt = _parse_token_count(usage.get("prompt_tokens"))
    if prompt is None:
        return Usage(1, estimate_prompt_tokens(request.messages), estimate_tokens(text))
    completion = _parse_token_count(usage.get("completion_tokens") or 0)
    return Usage(1, prompt, estimate_tokens(text) if completion is None else completion)


def _parse_token_count(value: Any) -> int | None:
    try:
        count = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return count if 0 <= count <= _MAX_TOKEN_COUNT else None


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text in any script: one per four UTF-8 bytes."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return size // _BYTES_PER_TOKEN + 1


def cut_to_tokens(text: str, tokens: int) -> str:
    """Cut a text to a number of tokens, as `estimate_tokens` counts them."""
    room = max(0, _BYTES_PER_TOKEN * tokens)
    return text.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")


def estimate_prompt_tokens(messages: Iterable[Message]) -> int:
    """Estimate the tokens of a conversation, with three for the framing of each message."""
    return sum(estimate_tokens(turn.content) + 3 for turn in messages)


def parse_json(raw: bytes) -> Any:
    """Parse JSON, tolerating invalid UTF-8; ValueError if it is not JSON."""
    try:
        return from_json(raw)  # several times faster, and stricter
    except ValueError:
        pass
    try:
        return json.loads(raw.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except ValueError as error:  # its words are for programmers
        raise ValueError("it is no JSON") from error


@dataclass(eq=False)
class JsonEndpoint:
    """Posts JSON bodies to one endpoint that serves a model, such as an embedder or a reranker."""

    model: str
    base_url: str
    api_key: str = field(default="", repr=False)
    timeout: float = 60.0

    def __post_init__(self) -> None:
        connect = min(10.0, self.timeout)
        headers = auth_headers(self.api_key)
        self.http = HttpClient(self.base_url, headers, connect, self.timeout, MAX_BODY_BYTES)

    async def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Send once; return the response, not masked; failures raise `EndpointError`, `AuthError`.

        A key could occur among millions of numbers by chance.
        """
        raw = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            async with asyncio.timeout(self.timeout):  # of the whole call, however slowly it drips
                head, answer = await self.http.post_for_numbers(path, raw)
        except TimeoutError as error:
            raise EndpointError(
                f"{self.base_url} did not answer within {self.timeout:g} s; set a longer timeout, "
                "or a smaller batch.",
                transient=True,
            ) from error
        if head.status != 200:
            raise error_from_response(head.status, head.headers, answer, self.model, self.base_url)
        return answer


TRANSIENT_STATUSES = frozenset(
    {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
)
BILLING_CODES = ("insufficient_quota", "billing_not_active", "account_deactivated")
TRANSIENT_CODES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 503,
    "server_error": 503,
}
"""Textual error codes of transient failures, and the statuses they stand for."""
_CONTENT_POLICY = re.compile(
    r"moderat|flagged|content.?(?:policy|filter|management)|harmful|inappropriate|prohibited.content",
    re.IGNORECASE,
)
_PAYLOAD_TOO_LARGE = 413
_TOO_LONG_STATUSES = frozenset({400, 422, 500})
# Every endpoint words it otherwise, but says of what there is too much, and that there is.
_TOO_LONG = re.compile(
    r"(?=.*(?:\b(?:prompt|messages?|tokens?|inputs?(?! validation))\b|context|上下文|输入))"
    r".*(?:context.?(?:length|window|size)|\btoo (?:long|large|many|big)\b|exceed|overflow|<=|> ?\d"
    r"|\b(?:long|great|larg)er than\b|\breduce\b|\bshorten|\bdoes not fit\b|length should be"
    r"|\bmaximum (?:number|of)\b|\blimit of\b|超[过出]|[过太]长)",
    re.IGNORECASE,
)
_TOLD_WINDOW = re.compile(
    r"(?:context.?(?:length|window|size)|maximum|<=)\D{0,40}?(\d[\d,]{2,})|(\d[\d,]{2,}) maximum",
    re.IGNORECASE,
)
_ACCOUNT_PROBLEM = re.compile(r"\baccount|\bapi.?key|\borgani[sz]ation|\bbilling", re.IGNORECASE)


def error_from_response(
    status: int, headers: Mapping[str, str], raw: bytes, model: str, base_url: str
) -> ModelError:
    """Build the exception for an HTTP error, with advice on what to do."""
    text, code, fields = _parse_error_message(raw)
    if (
        status == 403
        and _CONTENT_POLICY.search(f"{code} {text}")
        and not _ACCOUNT_PROBLEM.search(text)
    ):
        return EndpointError(
            f"{base_url} does not allow {model!r} to read this text (HTTP 403: {text}).",
            status=status,
        )
    if status in (401, 402, 403) or code in BILLING_CODES:
        return AuthError(
            f"{base_url} rejects the API key or the account (HTTP {status}: {text}): "
            "set OPENAI_API_KEY, or api_key in clew.toml, to a valid one."
        )
    if status == 404:
        return EndpointError(
            f"{base_url} has no model {model!r} (HTTP 404: {text}): check the model's name and "
            "the base URL, which usually ends in /v1.",
            status=status,
        )
    if 300 <= status < 400:
        where = headers.get("location", "another address")
        return EndpointError(
            f"{base_url} redirects to {where} (HTTP {status}): set the base URL to that address.",
            status=status,
        )
    failed = f"{base_url} failed on {model!r} (HTTP {status}: {text})."
    told = f"{code} {fields.get('type', '')} {text}"
    too_long = status in _TOO_LONG_STATUSES and _TOO_LONG.match(told)
    if too_long or status == _PAYLOAD_TOO_LARGE:
        window = _parse_token_count(fields.get("n_ctx"))  # llama.cpp's server
        return ContextTooLong(failed, status=status, window=window or _parse_told_window(text))
    return EndpointError(
        failed,
        status=status,
        retry_after=parse_retry_after(headers, datetime.now(UTC)),
        transient=status in TRANSIENT_STATUSES,
    )


def _parse_told_window(text: str) -> int | None:
    """The window that an error message names, if it does."""
    found = _TOLD_WINDOW.search(text)
    return int((found[1] or found[2]).replace(",", "")) if found else None


def error_from_body(
    body: Any, headers: Mapping[str, str], model: str, base_url: str
) -> ModelError | None:
    """Build the exception for an error reported in the body of a 200 response, if there is one."""
    error = body.get("error") if isinstance(body, Mapping) else None
    if not error or body.get("choices"):
        return None
    status = _infer_status(error) if isinstance(error, Mapping) else None
    raw = json.dumps({"error": error}, default=str).encode()
    text, code, _ = _parse_error_message(raw)
    if status is not None or code in BILLING_CODES:
        return error_from_response(status or 402, headers, raw, model, base_url)
    return EndpointError(
        f"{base_url} answered {model!r} with an error ({text}): check the base URL, which usually "
        "ends in /v1, and the model's name."
    )


def _infer_status(error: Mapping[str, Any]) -> int | None:
    """The HTTP status named by an error's code, status or type, if any."""
    for name in ("code", "status", "type"):
        word = str(error.get(name) or "")
        if word in TRANSIENT_CODES:
            return TRANSIENT_CODES[word]
        if re.fullmatch(r"[45]\d\d", word):
            return int(word)
    return None


def parse_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Parse the retry-after headers into seconds: milliseconds, seconds or an HTTP date."""
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


def _parse_error_message(raw: bytes) -> tuple[str, str, Mapping[str, Any]]:
    """The endpoint's error message on one line, its error code, and all that it says of it."""
    try:
        body = parse_json(raw)
    except ValueError:
        body = raw.decode("utf-8", "replace")
    text, code, fields = body, "", dict[str, Any]()
    if isinstance(body, dict):
        error = body.get("error", body.get("detail", body))
        if isinstance(error, dict):
            fields = error
            text, code = error.get("message", error), str(error.get("code") or "")
            param = error.get("param")
            text = f"{text} ('{param}')" if param and f"'{param}'" not in str(text) else text
        else:
            text = error
    line = " ".join(repair_surrogates(str(text)).split())
    return (line[:300] + "…" if len(line) > 300 else line or "no explanation"), code, fields
