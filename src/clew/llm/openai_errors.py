"""Translates the errors of OpenAI-compatible endpoints into ours."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from clew.errors import AuthError, ModelError
from clew.llm.chat import EndpointError
from clew.llm.openai_body import parse_json, repair_surrogates

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
_ACCOUNT_PROBLEM = re.compile(r"\baccount|\bapi.?key|\borgani[sz]ation|\bbilling", re.IGNORECASE)


def error_from_response(
    status: int, headers: Mapping[str, str], raw: bytes, model: str, base_url: str
) -> ModelError:
    """Build the exception for an HTTP error, with advice on what to do."""
    text, code = _parse_error_message(raw)
    if (
        status == 403
        and _CONTENT_POLICY.search(f"{code} {text}")
        and not (_ACCOUNT_PROBLEM.search(text))
    ):
        return EndpointError(
            f"{base_url} does not let {model!r} read this text (HTTP 403: {text}).", status=status
        )
    if status in (401, 402, 403) or code in BILLING_CODES:
        return AuthError(
            f"{base_url} refuses the API key or the account (HTTP {status}: {text}): "
            "set OPENAI_API_KEY, or api_key in clew.toml, to a valid one."
        )
    if status == 404:
        return EndpointError(
            f"{base_url} has no model {model!r} (HTTP 404: {text}): check the model's name and "
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
        f"{base_url} failed on {model!r} (HTTP {status}: {text}).",
        status=status,
        retry_after=parse_retry_after(headers, datetime.now(UTC)),
        transient=status in TRANSIENT_STATUSES,
    )


def error_from_body(
    body: Any, headers: Mapping[str, str], model: str, base_url: str
) -> ModelError | None:
    """Build the exception for an error reported in the body of a 200 response, if there is one."""
    error = body.get("error") if isinstance(body, Mapping) else None
    if not error or body.get("choices"):
        return None
    status = _infer_status(error) if isinstance(error, Mapping) else None
    raw = json.dumps({"error": error}, default=str).encode()
    text, code = _parse_error_message(raw)
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


def _parse_error_message(raw: bytes) -> tuple[str, str]:
    """The endpoint's error message on one line, and its error code."""
    try:
        body = parse_json(raw)
    except ValueError:
        body = raw.decode("utf-8", "replace")
    text, code = body, ""
    if isinstance(body, dict):
        error = body.get("error", body.get("detail", body))
        if isinstance(error, dict):
            text, code = error.get("message", error), str(error.get("code") or "")
            param = error.get("param")
            text = f"{text} ('{param}')" if param and f"'{param}'" not in str(text) else text
        else:
            text = error
    line = " ".join(repair_surrogates(str(text)).split())
    return (line[:300] + "…" if len(line) > 300 else line or "no explanation"), code
