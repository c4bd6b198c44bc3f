"""The OpenAPI description: what FastAPI derives, with errors as they are sent and examples.

Examples are in `examples.json`, by method and path; a test compares them with real answers.
"""

import json
from http import HTTPStatus
from importlib import resources
from typing import Any

from fastapi import FastAPI

from clew.serve.core.problems import ProblemReply

_TEXT = {"type": "string"}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {**_TEXT, "description": "Always about:blank."},
        "title": {**_TEXT, "description": "The name of the status."},
        "status": {"type": "integer"},
        "detail": {**_TEXT, "description": "What is wrong and what to do, in one sentence."},
    },
}
_OPENAI_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": _TEXT,
                "type": _TEXT,
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
_OLLAMA_ERROR = {"type": "object", "required": ["error"], "properties": {"error": _TEXT}}
_SHAPES = {"Problem": _PROBLEM, "OpenAIError": _OPENAI_ERROR, "OllamaError": _OLLAMA_ERROR}
_UNUSED = ("HTTPValidationError", "ValidationError")  # FastAPI's own shape of a wrong request
_ANY_ROUTE = {
    401: "a key is needed; send `Authorization: Bearer KEY`",
    404: "there is nothing here that you may see",
    429: "too many requests; try again later",
}
_WITH_INPUT = {400: "no recipe 'bm26'; choose one of bm25, clew", 422: "k: field required"}
_WRITING = {
    403: "this needs the scope write in this workspace",
    409: "a build of this workspace is already queued or running",
    507: "the disk is full; nothing was written",
}
_WRITES = ("post", "put", "delete")
_READING_POSTS = ("/search", "/ask")
_UPLOAD = "/workspaces/{workspace}/documents"
_OPEN = ("/health", "/ready")


def describe_api(app: FastAPI) -> dict[str, Any]:
    """Return the description of all routes; made at the first call."""
    if app.openapi_schema is None:
        schema = FastAPI.openapi(app)
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                _describe_errors(path, method, operation)
        _add_examples(schema)
        _describe_upload(schema["paths"][_UPLOAD]["post"])
        kept = schema["components"]["schemas"]
        for name in _UNUSED:
            kept.pop(name, None)
        kept.update(_SHAPES)
        bearer = {"type": "http", "scheme": "bearer", "description": "A key of `clew keys add`."}
        schema["components"]["securitySchemes"] = {"key": bearer}
        schema["security"] = [{"key": []}]
        app.openapi_schema = schema
    assert app.openapi_schema is not None
    return app.openapi_schema


def _describe_errors(path: str, method: str, operation: dict[str, Any]) -> None:
    """Replace the errors that FastAPI assumes by those that are sent."""
    found = {code: one for code, one in operation["responses"].items() if code.startswith("2")}
    if path in _OPEN:
        operation["security"] = []
        details = {503: "the server is starting or stopping"} if path == "/ready" else {}
    else:
        takes_input = "parameters" in operation or "requestBody" in operation
        reads = path.startswith(("/v1/", "/api/")) or path.endswith(_READING_POSTS)
        details = {**_ANY_ROUTE, **(_WITH_INPUT if takes_input else {})}
        if method in _WRITES and not reads:
            details |= _WRITING
    for status, detail in sorted(details.items()):
        found[str(status)] = _show_error(path, status, detail)
    operation["responses"] = found


def _show_error(path: str, status: int, detail: str) -> dict[str, Any]:
    shape, media = "Problem", "application/problem+json"
    if path.startswith(("/v1/", "/api/")):
        shape, media = (
            ("OpenAIError" if path.startswith("/v1/") else "OllamaError"),
            "application/json",
        )
    shown: dict[str, Any] = {
        "description": HTTPStatus(status).phrase,
        "content": {
            media: {
                "schema": {"$ref": f"#/components/schemas/{shape}"},
                "example": ProblemReply(status, detail, {}).to_json(path),
            }
        },
    }
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        seconds = {"description": "Seconds until it may be tried again.", "schema": _TEXT}
        shown["headers"] = {"Retry-After": seconds}
    return shown


def _add_examples(schema: dict[str, Any]) -> None:
    """Show what each route answers: a JSON document, or the start of a text."""
    text = resources.files("clew.serve").joinpath("examples.json").read_text("utf-8")
    for name, example in json.loads(text).items():
        method, path = name.split()
        responses = schema["paths"][path][method.lower()]["responses"]
        [answer] = [one for code, one in responses.items() if code.startswith("2")]
        if isinstance(example, str):
            media, _, start = example.partition("\n")
            answer["content"] = {media: {"schema": _TEXT, **({"example": start} if start else {})}}
        else:
            answer["content"] = {"application/json": {"schema": {}, "example": example}}


def _describe_upload(operation: dict[str, Any]) -> None:
    """Say that the body is the file."""
    file = {"schema": {**_TEXT, "format": "binary"}}
    operation["requestBody"] = {"required": True, "content": {"application/octet-stream": file}}
