"""Parses a reply into a Pydantic model: finds the JSON, drops and counts what does not fit."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from clew.errors import ParseError
from clew.llm.json_repair import JsonValue, iter_values

Out = TypeVar("Out", bound=BaseModel)
MAX_CANDIDATES = 20
MAX_DROP_ROUNDS = 12
MAX_NESTING = 6
# Escaped surrogates: a complete pair, or a lone one.
_SURROGATE_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


class NoJsonAnswer(ParseError):  # noqa: N818  (reads as what happened)
    """The reply contains no JSON, or only an echo of the schema or example."""


@dataclass(frozen=True, slots=True)
class ParsedAnswer(Generic[Out]):
    """The parsed answer, how many items were dropped, and whether the reply was truncated."""

    value: Out
    dropped: int = 0
    truncated: bool = False


def parse_answer(text: str, out: type[Out]) -> ParsedAnswer[Out]:
    """Parse the first JSON value in `text` that fits `out`; raises only ParseError."""
    # Lone surrogates cannot be encoded as UTF-8; JSON allows them, and models write them.
    text = _SURROGATE_ESCAPES.sub(lambda found: "\\ufffd" if found["lone"] else found[0], text)
    problem: ParseError | None = None
    try:
        for reading in islice(iter_values(text), MAX_CANDIDATES):
            try:
                return _fit_value(reading, out)
            except ParseError as error:
                if problem is None or isinstance(problem, NoJsonAnswer):
                    problem = error
    except RecursionError as error:
        raise ParseError("the answer is nested too deep") from error
    raise problem or NoJsonAnswer(
        "the answer holds no JSON" if text.strip() else "the answer is empty"
    )


def _fit_value(reading: JsonValue, out: type[Out]) -> ParsedAnswer[Out]:
    """Validate the value itself, then objects nested in it."""
    first: ParseError | None = None
    for value in _candidate_objects(reading.value, out):
        try:
            return _validate(value, out, reading.truncated)
        except ParseError as error:
            first = first or error
    raise first or NoJsonAnswer("the answer is not an object of the asked shape")


def _candidate_objects(value: Any, out: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Yield candidate objects: the value, one nested in it, or one built around a bare list."""
    names = _field_names(out)
    if isinstance(value, list):
        lists = [key for key, part in _json_schema(out)["properties"].items() if _is_array(part)]
        if len(lists) == 1 and len(names) == len(set(names.values())) == 1:
            yield {lists[0]: value}
        value = value[0] if len(value) == 1 else None
    if not isinstance(value, dict) or is_echo(value, out):
        return
    for candidate in (value, *islice(value.values(), MAX_CANDIDATES)):
        if isinstance(candidate, dict):
            renamed: dict[str, Any] = {
                names.get(_normalise_name(key)) or key: part for key, part in candidate.items()
            }
            if renamed.keys() & set(names.values()) or not (names and candidate):
                yield renamed


def is_echo(value: Mapping[str, Any], out: type[BaseModel]) -> bool:
    """Whether the model returned the schema or the example instead of an answer."""
    own = set(_field_names(out).values())
    schema_like = isinstance(value.get("properties"), dict) and not own & value.keys()
    example = _example_value(out)
    # Without placeholder text, the example may be a genuine answer: {"found": true}.
    return bool(value) and (schema_like or (value == example and _contains_text(example)))


def _contains_text(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_contains_text, value.values()))
    return any(map(_contains_text, value)) if isinstance(value, list) else isinstance(value, str)


def _validate(value: dict[str, Any], out: type[Out], cut: bool) -> ParsedAnswer[Out]:
    """Validate the value, dropping what does not fit: an optional field, else its list item."""
    if cut and not value:
        raise NoJsonAnswer("the answer breaks off before it begins")
    value = drop_repeats(value, cut)
    dropped = 0
    for _ in range(MAX_DROP_ROUNDS):
        try:
            return ParsedAnswer(out.model_validate(value), dropped, cut)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            removed = _remove_invalid(value, problems)
            if not removed:
                raise ParseError(_describe_problems(problems)) from error
            dropped += removed
    raise ParseError("the answer does not fit, whatever is left out of it")


def _remove_invalid(value: dict[str, Any], problems: list[ErrorDetails]) -> int:
    """Remove what the validation errors point at; return the number of removals."""
    removals: dict[int, tuple[Any, set[Any]]] = {}
    for problem in problems:
        target = _locate_problem(value, problem)
        if target is not None:
            removals.setdefault(id(target[0]), (target[0], set()))[1].add(target[1])
    for container, keys in removals.values():
        if isinstance(container, list):
            container[:] = [item for index, item in enumerate(container) if index not in keys]
        else:
            for key in keys:
                del container[key]
    return sum(len(keys) for _, keys in removals.values())


def _locate_problem(value: Any, problem: ErrorDetails) -> tuple[Any, Any] | None:
    """Find what to remove: the value itself, or the enclosing list item if a field is missing."""
    target: tuple[Any, Any] | None = None
    item: tuple[Any, Any] | None = None
    exists = True
    for step in problem["loc"]:
        if isinstance(value, dict) and step in value:
            target = (value, step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            target = item = (value, step)
        else:  # a missing field, or the name of a union's member
            exists = False
            continue
        exists = True
        value = value[step]
    return target if exists and problem["type"] != "missing" else item


def _describe_problems(problems: list[ErrorDetails]) -> str:
    shown = [
        f"{'.'.join(map(str, problem['loc'])) or 'answer'}: {problem['msg']}"
        for problem in problems[:3]
    ]
    return "; ".join(shown) + ("; …" if len(problems) > 3 else "")


def drop_repeats(value: Any, cut: bool, depth: int = 0) -> Any:
    """Drop repeated records, and in a truncated reply (often a loop) also repeated strings."""
    if isinstance(value, dict) and depth <= MAX_NESTING:
        return {
            key: _drop_repeated_items(part, cut, depth + 1)
            if isinstance(part, (dict, list))
            else part
            for key, part in value.items()
        }
    return value


def _drop_repeated_items(value: Any, cut: bool, depth: int) -> Any:
    """Drop repeats in a field's list; nested lists are records, whose parts may be equal."""
    if not isinstance(value, list):
        return drop_repeats(value, cut, depth)
    seen: dict[Any, Any] = {}
    for index, item in enumerate(value):
        comparable = isinstance(item, (dict, list)) or (cut and isinstance(item, str))
        key = repr(item) if comparable else index
        if key not in seen:
            seen[key] = drop_repeats(item, cut, depth + 1)
    return list(seen.values())


@cache
def _json_schema(out: type[BaseModel]) -> dict[str, Any]:
    schema = out.model_json_schema()
    if "$ref" in schema:  # a recursive model is defined under $defs
        schema |= schema["$defs"][schema.pop("$ref").rsplit("/", 1)[-1]]
    return {"properties": {}, **schema}


@cache
def _field_names(out: type[BaseModel]) -> dict[str, str]:
    """Map each field name in normalised spelling to the exact key."""
    return {
        _normalise_name(name): field.alias or key
        for key, field in out.model_fields.items()
        for name in (key, field.alias or key)
    }


def _normalise_name(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


def _is_array(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "array"


@cache
def json_schema(out: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of an answer model, nested models named by their titles.

    The titles are part of the stored reply keys: classes may be renamed, titles stay.
    """
    schema = out.model_json_schema()
    titles = {name: part.get("title", name) for name, part in schema.get("$defs", {}).items()}
    return _rename_definitions(schema, titles) if titles else schema


def _rename_definitions(part: Any, titles: Mapping[str, str]) -> Any:
    if isinstance(part, list):
        return [_rename_definitions(item, titles) for item in part]
    if not isinstance(part, dict):
        return part
    renamed = {key: _rename_definitions(value, titles) for key, value in part.items()}
    if isinstance(part.get("$ref"), str):
        head, _, name = part["$ref"].rpartition("/")
        renamed["$ref"] = f"{head}/{titles.get(name, name)}"
    if "$defs" in part:
        renamed["$defs"] = {titles.get(name, name): one for name, one in renamed["$defs"].items()}
    return renamed


def example_json(out: type[BaseModel]) -> str:
    """An example answer as JSON; small models echo a schema but follow an example."""
    return json.dumps(_example_value(out), ensure_ascii=False)


@cache
def _example_value(out: type[BaseModel]) -> Any:
    return _build_example(_json_schema(out), _json_schema(out), 0)


def _build_example(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    if "$ref" in schema:
        schema = {**root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], **schema}
    options = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    if options:
        return _build_example({**options[0], **_description_only(schema)}, root, depth)
    if depth > MAX_NESTING:
        return "…"
    if "enum" in schema or "const" in schema:
        return "|".join(map(str, schema.get("enum", [schema.get("const")])))
    match schema.get("type"):
        case "object":
            parts = schema.get("properties", {})
            return {name: _build_example(part, root, depth + 1) for name, part in parts.items()}
        case "array":
            parts = schema.get("prefixItems") or [schema.get("items", {})]
            return [_build_example(part, root, depth + 1) for part in parts]
        case "integer" | "number":
            return 0
        case "boolean":
            return True
    return schema.get("description", "text")


def _description_only(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": schema["description"]} if "description" in schema else {}
