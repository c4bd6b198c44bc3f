"""Tool calls: the tools a model is offered, and the calls it asks for.

Where an endpoint has tool calls of its own, a model calls tools and the function of the prompt,
whose arguments are the fields of the answer; elsewhere it writes one JSON object with a list
`wants`. Either way a reply is that one JSON object, so caches and recordings need not know.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, model_validator

from clew.llm.json_repair import iter_values, strip_thinking

WANTS = "wants"
"""The field of an answer that takes the tool calls."""
_REASONING = "reasoning"
_CALL = "ToolCall"


@dataclass(frozen=True)
class ToolSpec:
    """A tool that a model may call."""

    name: str
    about: str
    schema: Mapping[str, Any] = field(hash=False)
    """The JSON schema of its arguments."""


class ToolCall(BaseModel):
    """One tool call that a model asks for."""

    tool: str
    arguments: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _read_usual_spellings(cls, value: Any) -> Any:
        """Accept `name` for `tool`, and arguments that are written as JSON."""
        if not isinstance(value, dict):
            return value
        name = value.get("tool") or value.get("name")
        given = value.get("arguments", value.get("parameters"))
        return value | {"tool": name, "arguments": read_arguments(given)}


def read_arguments(given: Any) -> Any:
    """Return the arguments of a call as parsed JSON; what cannot be read is returned as it is."""
    if not isinstance(given, str):
        return {} if given is None else given
    found = next(iter_values(given), None)
    if found is None or found.truncated:
        return given if given.strip() else {}
    return found.value


def join_calls(
    calls: Iterable[tuple[str, Any]], said: str, own: str, schema: Mapping[str, Any]
) -> str:
    """Return the calls of one reply as the JSON of one answer.

    Calls of `own`, the prompt's function, give its fields; all others are its `wants`. What was
    said beside them is its reasoning, if it has such a field.
    """
    wants: list[dict[str, Any]] = []
    fields: dict[str, Any] = {}
    for name, given in calls:
        arguments = read_arguments(given)
        if name != own:
            wants.append({"tool": name, "arguments": arguments})
        elif isinstance(arguments, dict):
            fields |= arguments
        else:
            return str(given)  # not JSON, and so no answer
    said = strip_thinking(said).strip()
    if said and _REASONING in schema.get("properties", {}) and not fields.get(_REASONING):
        fields = {_REASONING: said} | fields | {_REASONING: said}
    return json.dumps(fields | {WANTS: wants}, ensure_ascii=False)


def find_written_calls(text: str, names: frozenset[str]) -> list[tuple[str, Any]]:
    """Find calls written as text, as a server gives them that does not know its model's format."""
    return [
        (name, call.get("arguments", call.get("parameters")))
        for reading in iter_values(text)
        for call in (reading.value if isinstance(reading.value, list) else [reading.value])
        if isinstance(call, dict)
        and (name := call.get("name") or call.get("tool")) in names
        and call.keys() & {"arguments", "parameters"}
    ]


def without_wants(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an answer without its tool calls: the arguments of its own function."""
    own = dict(schema)
    own["properties"] = {key: part for key, part in schema["properties"].items() if key != WANTS}
    own["required"] = [key for key in schema.get("required", ()) if key != WANTS]
    own["$defs"] = {key: part for key, part in schema.get("$defs", {}).items() if key != _CALL}
    return {key: part for key, part in own.items() if part or key == "properties"}


def with_tool_names(schema: Mapping[str, Any], tools: Sequence[ToolSpec]) -> Mapping[str, Any]:
    """Return the schema of an answer that may call these tools and no others."""
    call = schema.get("$defs", {}).get(_CALL)
    if call is None:
        return schema
    name = call["properties"]["tool"] | {"enum": [tool.name for tool in tools]}
    call = call | {"properties": call["properties"] | {"tool": name}}
    return {**schema, "$defs": schema["$defs"] | {_CALL: call}}


def describe_tools(tools: Sequence[ToolSpec]) -> str:
    """Describe tools and their arguments, one to a line, for a prompt."""
    return "\n".join(
        f"- {tool.name}({', '.join(_describe_arguments(tool.schema))}): {tool.about}"
        for tool in tools
    )


def example_call(tool: ToolSpec) -> str:
    """Return a call of a tool as JSON, with its required arguments left open."""
    names = tool.schema.get("required", [*tool.schema.get("properties", {})][:1])
    call = {"tool": tool.name, "arguments": dict.fromkeys(names, "…")}
    return json.dumps(call, ensure_ascii=False)


def _describe_arguments(schema: Mapping[str, Any]) -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        mark = "" if name in schema.get("required", ()) else "?"
        about = f" ({part['description']})" if part.get("description") else ""
        yield f"{name}{mark}: {_describe_type(part)}{about}"


def _describe_type(part: Mapping[str, Any]) -> str:
    if "enum" in part:
        return " | ".join(json.dumps(one, ensure_ascii=False) for one in part["enum"])
    if "anyOf" in part:
        kinds = [_describe_type(option) for option in part["anyOf"]]
        return " | ".join(kind for kind in kinds if kind != "null")
    if part.get("type") == "array":
        return f"list of {_describe_type(part.get('items', {}))}"
    return str(part.get("type", "any"))
