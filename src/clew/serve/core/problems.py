"""Errors as answers: problem+json (RFC 9457), OpenAI's shape under `/v1`, JSON-RPC's at `/mcp`."""

import errno
import logging
import sqlite3
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi import HTTPException as RouteError
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from clew.errors import (
    ClewError,
    Locked,
    ModelError,
    StoreError,
    UnknownEntity,
)
from clew.llm.budget import BudgetExceeded
from clew.serve.core.folders import UnknownWorkspace

_log = logging.getLogger(__name__)
_REFUSED_CALL = -32000  # the first of the codes that JSON-RPC leaves to servers
_INVALID = 422
_FULL_DISK = {errno.ENOSPC, errno.EDQUOT}
_FULL_DISK_WORDS = ("no space left", "disk is full", "quota exceeded")
# Type and code of an error, as OpenAI's clients know them.
_OPENAI_ERRORS = {
    401: ("authentication_error", "invalid_api_key"),
    403: ("permission_error", None),
    404: ("not_found_error", "model_not_found"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}
# Starlette answers these with the name of the status alone.
_ROUTE_SENTENCES = {
    404: "there is no such route; /openapi.json lists them",
    405: "this route does not take this method; the Allow header says which it takes",
}

# The first that fits; the last column is Retry-After.
_STATUS_BY_ERROR: tuple[tuple[type[Exception], int, str], ...] = (
    (BudgetExceeded, 429, "60"),
    (UnknownEntity, 404, ""),
    (ModelError, 502, ""),
    (StoreError, 409, ""),
    (ClewError, 400, ""),
)


class Problem(RouteError):  # noqa: N818  (the name of RFC 9457)
    """An answer other than success: a status and one clear sentence."""

    def __init__(self, status: int, detail: str, *, retry_after: float | None = None) -> None:
        headers = {} if retry_after is None else {"Retry-After": str(max(1, round(retry_after)))}
        if status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        super().__init__(status, detail, headers)


def not_found(what: str = "there is nothing here that you may see") -> Problem:
    """Return the answer for whatever does not exist or belongs to others: both look the same."""
    return Problem(404, what)


@dataclass(frozen=True)
class ProblemReply:
    """Status, sentence and headers of an error."""

    status: int
    detail: str
    headers: dict[str, str]

    def to_json(self, path: str) -> dict[str, Any]:
        """Return the body in the shape that callers of this path expect."""
        if path.startswith("/v1/"):
            other = "server_error" if self.status >= 500 else "invalid_request_error"
            kind, code = _OPENAI_ERRORS.get(self.status, (other, None))
            error = {"message": self.detail, "type": kind, "param": None, "code": code}
            return {"error": error}
        if path.startswith("/api/"):
            return {"error": self.detail}
        if path == "/mcp":  # a client shows the sentence of this shape, and of no other
            return {
                "jsonrpc": "2.0",
                "id": None,
                "error": {"code": _REFUSED_CALL, "message": self.detail},
            }
        title = HTTPStatus(self.status).phrase
        return {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail}

    def to_response(self, path: str) -> JSONResponse:
        """Return the answer."""
        if self.status == _INVALID and path.startswith("/v1/"):
            return replace(self, status=400).to_response(path)  # as OpenAI does
        kind = (
            None
            if path.startswith(("/v1/", "/api/")) or path == "/mcp"
            else "application/problem+json"
        )
        return JSONResponse(self.to_json(path), self.status, self.headers, kind)


def describe_error(error: Exception) -> ProblemReply:
    """Return the status and the sentence for an error; a failure of the server is logged."""
    reply = _describe(error)
    if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(error, Problem):
        _log.error("answered %d (%s)", reply.status, reply.detail, exc_info=error)
    return reply


def _describe(error: Exception) -> ProblemReply:
    match error:
        case HTTPException():
            detail = str(error.detail)
            if detail == HTTPStatus(error.status_code).phrase:
                detail = _ROUTE_SENTENCES.get(error.status_code, detail)
            return ProblemReply(error.status_code, detail, dict(error.headers or {}))
        case RequestValidationError():
            return ProblemReply(_INVALID, _describe_validation(error), {})
        case UnknownWorkspace():
            return _describe(not_found())
    if _is_full_disk(error):
        return ProblemReply(507, "the disk is full; nothing was written", {})
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return ProblemReply(503, "the server's database is busy; try again", {"Retry-After": "1"})
    if isinstance(error, Locked):  # its message names a process and a folder of the server
        return ProblemReply(409, "something else is writing here; try again", {"Retry-After": "5"})
    for kind, status, retry in _STATUS_BY_ERROR:
        if isinstance(error, kind):
            return ProblemReply(status, str(error), {"Retry-After": retry} if retry else {})
    return ProblemReply(500, "the server failed; its log says why", {})


def install_handlers(app: FastAPI) -> None:
    """Make every error of a route a problem."""

    async def answer(request: Request, error: Exception) -> JSONResponse:
        return describe_error(error).to_response(route_path(request.scope))

    async def answer_unexpected(request: Request, error: Exception) -> JSONResponse:
        # Not logged here: it is raised again, and whoever runs the app logs it.
        return _describe(error).to_response(route_path(request.scope))

    own = (HTTPException, RequestValidationError, ClewError)
    for kind in (*own, OSError, sqlite3.OperationalError):
        app.add_exception_handler(kind, answer)
    app.add_exception_handler(Exception, answer_unexpected)


def route_path(scope: Any) -> str:
    """Return the path within the app, without the prefix of a reverse proxy."""
    path, prefix = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(prefix) :] if prefix and path.startswith(prefix + "/") else path


def _is_full_disk(error: Exception) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _FULL_DISK:
            return True
        if any(words in str(cause).lower() for words in _FULL_DISK_WORDS):
            return True
        cause = cause.__cause__
    return False


def _describe_validation(error: RequestValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {str(first['ctx']['error']).lower()}"
    where = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    return f"{where}: {str(first['msg']).lower().removeprefix('value error, ')}"
