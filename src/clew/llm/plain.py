"""Fast path of parsing: replies that match the model exactly, validated in one strict pass.

Answer models are lenient: validators before their fields repair what small models write. On an
exact answer they change nothing and take most of the time. The strict validator leaves them out,
requires every field, and rejects whatever would need repair.
"""

from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator

Out = TypeVar("Out", bound=BaseModel)
Made = TypeVar("Made", bound=Callable[..., Any])

_MARK = "patient_within"
_LEAVES = frozenset({"str", "float", "int", "bool", "list"})
_SCHEMAS = ("schema", "items_schema", "definitions", "choices", "values_schema", "keys_schema")


def patient(**within: Any) -> Callable[[Made], Made]:
    """Mark a validator that leaves values of the declared type (`within` bounds) unchanged."""

    def marked(function: Made) -> Made:
        setattr(function, _MARK, within)
        return function

    return marked


def read_plainly(text: str, out: type[Out]) -> Out | None:
    """The answer, if the text is exactly a valid one without repeated records; else None."""
    reader = _reader(out)
    if reader is None:
        return None
    try:
        value: Out = reader.validate_json(text)
    except ValidationError:
        return None
    return None if _says_twice(value) else value


@cache
def _reader(out: type[BaseModel]) -> SchemaValidator | None:
    try:
        _records(out)
        reader = _without_prebuilt(_plain(out.__pydantic_core_schema__, {}))
        reader.validate_json("{}")
    except LookupError:
        return None
    except ValidationError:
        return reader
    return None  # it accepts {}: the model has no fields, or the validator was prebuilt


def _without_prebuilt(schema: Any) -> SchemaValidator:
    try:
        return SchemaValidator(schema, None, False)  # without the classes' prebuilt validators
    except TypeError:  # an older pydantic, which has no such option
        return SchemaValidator(schema)


def _plain(schema: Any, within: dict[str, Any]) -> Any:
    """A core schema without lenient validators; LookupError for any other function."""
    if isinstance(schema, list):
        return [_plain(part, {}) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if kind == "default":
        return _plain(schema["schema"], within)
    if isinstance(kind, str) and kind.startswith("function-"):
        bounds = getattr(schema["function"]["function"], _MARK, None)
        if kind != "function-before" or bounds is None:
            raise LookupError(kind)
        return _plain(schema["schema"], bounds)
    parts = {name: _plain(part, {}) for name, part in schema.items() if name in _SCHEMAS}
    if "fields" in schema:  # keyed by name, and a field may be named "type"
        parts["fields"] = {name: _plain(part, {}) for name, part in schema["fields"].items()}
    return schema | parts | ({"strict": True, **within} if kind in _LEAVES else {})


def _says_twice(value: BaseModel) -> bool:
    """Whether records may be repeated, compared by their text fields only: cautious and fast."""
    for name, texts, nested in _records(type(value)):
        records = getattr(value, name)
        if len(records) > len({texts(item.__dict__) for item in records}):
            return True
        if nested and any(map(_says_twice, records)):
            return True
    return False


@cache
def _records(out: type[BaseModel]) -> tuple[tuple[str, Callable[[Any], Any], bool], ...]:
    """A model's lists of records: field name, getter of the text fields, whether they nest."""
    lists = []
    for name, field in out.model_fields.items():
        inside = _bare(*(get_args(field.annotation) or (None,))) if _is_list(field) else str
        if isinstance(inside, type) and issubclass(inside, BaseModel):
            texts = [key for key, one in inside.model_fields.items() if one.annotation is str]
            if not texts:
                raise LookupError(name)
            lists.append((name, itemgetter(*texts), bool(_records(inside))))
        elif inside not in (str, int, float) or not (_is_list(field) or _is_plain(field)):
            raise LookupError(name)
    return tuple(lists)


def _is_list(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is list


def _is_plain(field: FieldInfo) -> bool:
    return field.annotation in (str, int, float, bool) or get_origin(field.annotation) is Literal


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind
