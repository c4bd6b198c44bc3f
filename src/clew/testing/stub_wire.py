"""Wire format of the stub endpoint: faults, completions and server-sent events."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

FaultKind = Literal["answer", "drop", "hang", "huge", "garbage", "cut"]
HUGE_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Fault:
    """An injected fault: an HTTP status, or a broken connection or body."""

    status: int = 200
    retry_after: str = ""
    message: str = "the stub was told to fail"
    kind: FaultKind = "answer"
    param: str = ""
    """The parameter named in the error object, as OpenAI does for unsupported ones."""


DROP = Fault(kind="drop")  # closes the connection without a response
HANG = Fault(kind="hang")  # never answers
HUGE = Fault(kind="huge")  # a 10 MB reply
GARBAGE = Fault(kind="garbage")  # text that is not UTF-8
CUT = Fault(kind="cut")  # promises more bytes than it sends
FAULTS: Mapping[str, Fault | None] = {
    "ok": None,
    "drop": DROP,
    "hang": HANG,
    "huge": HUGE,
    "garbage": GARBAGE,
    "cut": CUT,
}


def parse_fault(word: str) -> Fault | None:
    """Parse a fault of the command line: `drop`, `500`, `429+2` (retry after 2 s)."""
    if word in FAULTS:
        return FAULTS[word]
    status, _, retry_after = word.partition("+")
    return Fault(int(status), retry_after=retry_after)


def json_mode(body: Mapping[str, Any]) -> str:
    """Return the JSON mode of a call: schema, tool, json or text."""
    kind = (body.get("response_format") or {}).get("type", "text")
    if body.get("tools"):
        return "tool"
    return {"json_schema": "schema", "json_object": "json"}.get(kind, "text")


def request_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON schema of a call, if any."""
    found: Mapping[str, Any] | None = None
    for tool in body.get("tools") or ():
        found = tool["function"]["parameters"]
    wrapper = (body.get("response_format") or {}).get("json_schema")
    return wrapper["schema"] if wrapper else found


def make_completion(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Wrap a text as a completion, cut at `max_tokens` (four characters per token)."""
    limit = body.get("max_tokens") or body.get("max_completion_tokens")
    finish = "stop"
    if limit and len(text) > 4 * limit:
        text, finish = text[: 4 * limit], "length"
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if body.get("tools"):
        name = body["tools"][0]["function"]["name"]
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": text}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    prompt = sum(len(str(turn.get("content") or "")) for turn in body.get("messages") or ()) // 4
    return {
        "id": "stub",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "stub"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": len(text) // 4,
            "total_tokens": prompt + len(text) // 4,
        },
    }


def to_events(whole: Mapping[str, Any], with_usage: bool) -> list[bytes]:
    """Split a completion into server-sent events."""
    base = {key: whole[key] for key in ("id", "created", "model")}
    base["object"] = "chat.completion.chunk"
    choice = whole["choices"][0]
    calls = choice["message"].get("tool_calls")
    text = calls[0]["function"]["arguments"] if calls else choice["message"]["content"]
    parts: list[dict[str, Any]] = []
    for start in range(0, len(text), 20):
        piece = text[start : start + 20]
        call = {"index": 0, "function": {"arguments": piece}}
        parts.append({"delta": {"tool_calls": [call]} if calls else {"content": piece}})
    parts.append({"delta": {}, "finish_reason": choice["finish_reason"]})
    chunks = [{**base, "choices": [{"index": 0, "finish_reason": None, **part}]} for part in parts]
    if with_usage:
        chunks.append({**base, "choices": [], "usage": whole["usage"]})
    lines = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    return [b": a comment\n\n", *lines, b"data: [DONE]\n\n"]


def response_head(status: int, length: int | None, more: str = "") -> bytes:
    """Build the HTTP response head; no length means chunked encoding."""
    kind = "application/json" if length is not None else "text/event-stream"
    size = f"Content-Length: {length}" if length is not None else "Transfer-Encoding: chunked"
    return f"HTTP/1.1 {status} Stub\r\nContent-Type: {kind}\r\n{size}\r\n{more}\r\n".encode()
