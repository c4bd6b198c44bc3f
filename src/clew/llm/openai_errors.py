"""What the errors of OpenAI-compatible endpoints mean, and what to do about them."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from clew.errors import AuthError, ModelError
from clew.llm.chat import EndpointError
from clew.llm.openai_body import clean, read_json

TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
NO_MONEY = ("insufficient_quota", "billing_not_active", "account_deactivated")
PASSING = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 503,
    "server_error": 503,
}
"""Codes in words of what may pass, and the statuses they stand for."""
_ABOUT_THE_TEXT = re.compile(
    r"moderat|flagged|content.?(?:policy|filter|management)|harmful|inappropriate|prohibited.content",
    re.IGNORECASE,
)
_ABOUT_THE_CALLER = re.compile(r"\baccount|\bapi.?key|\borgani[sz]ation|\bbilling", re.IGNORECASE)


def error_of(
    status: int, headers: Mapping[str, str], raw: bytes, model: str, base_url: str
) -> ModelError:
    """Say in one sentence what an HTTP error means and what to do about it."""
    said, code = _complaint(raw)
    if (
        status == 403
        and _ABOUT_THE_TEXT.search(f"{code} {said}")
        and not (_ABOUT_THE_CALLER.search(said))
    ):
        return EndpointError(
            f"{base_url} does not let {model!r} read this text (HTTP 403: {said}).", status=status
        )
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


def failure_in(
    body: Any, headers: Mapping[str, str], model: str, base_url: str
) -> ModelError | None:
    """The failure that an endpoint reports in place of a completion, under a status of success."""
    told = body.get("error") if isinstance(body, Mapping) else None
    if not told or body.get("choices"):
        return None
    status = _status_in(told) if isinstance(told, Mapping) else None
    raw = json.dumps({"error": told}, default=str).encode()
    said, code = _complaint(raw)
    if status is not None or code in NO_MONEY:
        return error_of(status or 402, headers, raw, model, base_url)
    return EndpointError(
        f"{base_url} answered {model!r} with an error ({said}): check the base URL, which usually "
        "ends in /v1, and the model's name."
    )


def _status_in(error: Mapping[str, Any]) -> int | None:
    """The HTTP status that an error without one stands for, if it says so."""
    for name in ("code", "status", "type"):
        word = str(error.get(name) or "")
        if word in PASSING:
            return PASSING[word]
        if re.fullmatch(r"[45]\d\d", word):
            return int(word)
    return None


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
