"""What the stub endpoint sends: default replies, hash vectors, faults and events."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

CAPITAL = "[A-ZÀ-ÞΑ-ΩА-Я]"
NAME = re.compile(rf"{CAPITAL}\w+(?: (?:of |the )?{CAPITAL}\w+)*")
SENTENCE = re.compile(r"[.?!。？！]\s*")
WORD = re.compile(r"\w+")
FENCED = re.compile(r"\[\[\w+ ([0-9a-f]{8})\]\]\n(.*?)\n\[\[end \1\]\]", re.DOTALL)
Triple = tuple[str, str, str]
HEAD_KEYS = frozenset({"head", "subject", "source", "from", "h"})
TAIL_KEYS = frozenset({"tail", "object", "target", "to", "t"})
RELATION_KEYS = frozenset({"relation", "predicate", "relationship", "r"})
FACT_KEYS = re.compile(r"triple|relation|fact|edge|segment|statement")


def prompt_document(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the document of a prompt: its fenced part, or the end of the last message."""
    last = str(messages[-1].get("content") or "") if messages else ""
    fenced = [text for _, text in FENCED.findall(last)]
    return "\n".join(fenced) if fenced else last[-2000:]


def find_facts(text: str) -> tuple[list[str], list[Triple]]:
    """Find capitalised names, and a triple for each neighbouring pair within a sentence."""
    names: dict[str, None] = {}
    triples: list[Triple] = []
    for sentence in SENTENCE.split(text):
        found = list(NAME.finditer(sentence))
        names.update((match[0], None) for match in found)
        for left, right in zip(found, found[1:], strict=False):
            if left[0] != right[0]:
                between = sentence[left.end() : right.start()].strip(" ,;:") or "is related to"
                triples.append((left[0], between, right[0]))
    return list(names), triples


def write_plain_reply(messages: Sequence[Mapping[str, Any]]) -> str:
    """Reply with the names and triples of the prompt's document, as JSON."""
    names, triples = find_facts(prompt_document(messages))
    return json.dumps({"entities": names, "triples": triples}, ensure_ascii=False)


def write_schema_reply(messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> str:
    """Reply with JSON that fits `schema`, its lists filled with names and triples."""
    names, triples = find_facts(prompt_document(messages))
    return json.dumps(
        _SchemaFiller(schema, names, triples).fill(schema, "", None), ensure_ascii=False
    )


Subject = str | Triple | None
FillFunction = Callable[[Subject], Any]
"""Makes a value about a name, a triple, or the whole text."""


class _SchemaFiller:
    """Fills a JSON schema with names and triples where the property names suggest them."""

    def __init__(self, schema: Mapping[str, Any], names: list[str], triples: list[Triple]) -> None:
        self.defs = schema.get("$defs", {})
        self.names = names
        self.triples = triples

    def fill(self, schema: Mapping[str, Any], key: str, about: Subject) -> Any:
        """Make a value for `schema`, the property `key`, about `about`."""
        return self.filler(schema, key)(about)

    def filler(self, schema: Mapping[str, Any], key: str) -> FillFunction:
        """Compile a schema into a function that makes values, so that it is walked once."""
        if "$ref" in schema:
            schema = self.defs[schema["$ref"].rsplit("/", 1)[-1]]
        for option in schema.get("anyOf", ())[:1]:
            return self.filler(option, key)
        if "enum" in schema:
            return _constant_filler(schema["enum"][0])
        match schema.get("type"):
            case "object":
                parts = schema.get("properties", {})
                return _object_filler(
                    [(name, self.filler(part, name)) for name, part in parts.items()]
                )
            case "array":
                return lambda about: self.fill_list(schema, key, about)
            case "string":
                return self.text_filler(key)
            case "number" | "integer":
                return _constant_filler(1)
            case "boolean":
                return _constant_filler(True)
        return _constant_filler(None)

    def fill_list(self, schema: Mapping[str, Any], key: str, about: Subject) -> Any:
        """Fill a list by its property name: a triple's parts, all triples, or all names."""
        places = schema.get("prefixItems", ())
        if isinstance(about, tuple) and (places or not FACT_KEYS.search(key)):
            return list(about) if places else [about[0], about[2]]
        if isinstance(about, str):
            return []
        items = schema.get("items", {})
        subjects: Sequence[str | Triple] = self.triples if FACT_KEYS.search(key) else self.names
        if items.get("type") == "array" and not items.get("prefixItems"):
            return [list(subject) for subject in subjects]
        return list(map(self.filler(items, ""), subjects))

    def text_filler(self, key: str) -> FillFunction:
        """Return the function that fills one string property."""
        keys = (HEAD_KEYS, RELATION_KEYS, TAIL_KEYS)
        part = next((at for at, names in enumerate(keys) if key in names), None)

        def text(about: Subject) -> str:
            if about is None:
                return " ".join(self.names[:1]) or "nothing"
            if isinstance(about, str):
                return "thing" if key == "type" else about
            return " ".join(about) if part is None else about[part]

        return text


def _constant_filler(value: Any) -> FillFunction:
    return lambda about: value


def _object_filler(parts: list[tuple[str, FillFunction]]) -> FillFunction:
    return lambda about: {name: fill(about) for name, fill in parts}


_direction_cache: dict[tuple[str, int], NDArray[np.float32]] = {}


def hash_vector(text: str, dim: int) -> NDArray[np.float32]:
    """Embed as the sum of a pseudo-random direction per word: shared words, closer vectors."""
    first, *rest = WORD.findall(text.casefold()) or ["(empty)"]
    total = _word_direction(first, dim).copy()
    for word in rest:
        total += _word_direction(word, dim)
    total /= np.float32(max(float(np.sqrt(total.dot(total))), 1e-9))
    return total


def _word_direction(word: str, dim: int) -> NDArray[np.float32]:
    direction = _direction_cache.get((word, dim))
    if direction is None:
        noise = hashlib.shake_128(word.encode("utf-8", "replace")).digest(2 * dim)
        direction = np.frombuffer(noise, "<i2").astype(np.float32) / np.float32(32768)
        if len(_direction_cache) > 50_000:
            _direction_cache.clear()
        _direction_cache[word, dim] = direction
    return direction


FaultKind = Literal["answer", "drop", "hang", "huge", "garbage", "cut"]
HUGE_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Fault:
    """An injected fault: an HTTP status, or a broken connection or body."""

    status: int = 200
    retry_after: str = ""
    message: str = "injected fault"
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
    """Return the JSON mode of a call: tools, tools_auto, schema, tool, json or text."""
    kind = (body.get("response_format") or {}).get("type", "text")
    if body.get("tools"):
        choice = body.get("tool_choice")
        return {"required": "tools", "auto": "tools_auto"}.get(str(choice), "tool")
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
    if calls := _to_calls(body, text):
        functions = [{"name": name, "arguments": arguments} for name, arguments in calls]
        listed = [
            {"id": f"c{n}", "type": "function", "function": one} for n, one in enumerate(functions)
        ]
        message = {"role": "assistant", "content": None, "tool_calls": listed}
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


def _to_calls(body: Mapping[str, Any], text: str) -> list[tuple[str, str]]:
    """Return a reply as tool calls: of the one function, or of tools and the prompt's function.

    A text that is no JSON object with `wants` is said as it is.
    """
    names = [tool["function"]["name"] for tool in body.get("tools") or ()]
    if not names or json_mode(body) == "tool":
        return [(name, text) for name in names[:1]]
    try:
        answer = json.loads(text)
        wants = answer.pop("wants")
    except (ValueError, AttributeError, KeyError, TypeError):
        return []
    own = [(names[-1], json.dumps(answer, ensure_ascii=False))] if answer else []
    return [(want["tool"], json.dumps(want["arguments"])) for want in wants] + own


def to_events(whole: Mapping[str, Any], with_usage: bool) -> list[bytes]:
    """Split a completion into server-sent events."""
    base = {key: whole[key] for key in ("id", "created", "model")}
    base["object"] = "chat.completion.chunk"
    choice = whole["choices"][0]
    calls = choice["message"].get("tool_calls")
    parts: list[dict[str, Any]] = []
    for index, call in enumerate(calls or ()):
        head = {"index": index, "id": call["id"], "function": {"name": call["function"]["name"]}}
        parts.append({"delta": {"tool_calls": [head]}})
        for piece in _split(call["function"]["arguments"]):
            more = {"index": index, "function": {"arguments": piece}}
            parts.append({"delta": {"tool_calls": [more]}})
    parts += [{"delta": {"content": piece}} for piece in _split(choice["message"]["content"] or "")]
    parts.append({"delta": {}, "finish_reason": choice["finish_reason"]})
    chunks = [{**base, "choices": [{"index": 0, "finish_reason": None, **part}]} for part in parts]
    if with_usage:
        chunks.append({**base, "choices": [], "usage": whole["usage"]})
    lines = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    return [b": a comment\n\n", *lines, b"data: [DONE]\n\n"]


def _split(text: str) -> list[str]:
    return [text[start : start + 20] for start in range(0, len(text), 20)]


def response_head(status: int, length: int | None, more: str = "") -> bytes:
    """Build the HTTP response head; no length means chunked encoding."""
    kind = "application/json" if length is not None else "text/event-stream"
    size = f"Content-Length: {length}" if length is not None else "Transfer-Encoding: chunked"
    return f"HTTP/1.1 {status} Stub\r\nContent-Type: {kind}\r\n{size}\r\n{more}\r\n".encode()
